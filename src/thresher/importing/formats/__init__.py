"""Readers of corpora from elsewhere: each format gives documents, and `writer` stores them."""
