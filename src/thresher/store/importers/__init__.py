"""Corpora that others made, read: each format gives documents, and `writer` stores them."""
