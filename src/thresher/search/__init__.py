"""Corpus queries: from a query in CQL to its matches."""
