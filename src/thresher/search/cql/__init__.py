"""Parse CQL into an abstract syntax tree."""
