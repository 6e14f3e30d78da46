"""A corpus written for others: which documents, in which format, to which file."""
