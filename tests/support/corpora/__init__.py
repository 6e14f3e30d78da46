"""Corpora and documents that tests make."""
