"""Batch: what is done with a whole corpus at once."""
