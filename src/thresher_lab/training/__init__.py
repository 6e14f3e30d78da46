"""Training of the models in the package: boilerplate, Badness and the learned policy."""
