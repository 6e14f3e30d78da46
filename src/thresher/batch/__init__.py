"""Batch: versioned steps over a corpus, of which only what changed is run again."""
