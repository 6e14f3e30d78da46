"""Places of work: reader processes, process pools of this machine, and Ray."""
