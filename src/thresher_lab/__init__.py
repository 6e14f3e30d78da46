"""Laboratory of Thresher: the toy web, the training of models, and the simulation of shards."""
