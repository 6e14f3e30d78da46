"""Bring documents from other sources into a corpus."""
