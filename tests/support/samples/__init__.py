"""Texts, pages and queries that tests read."""
