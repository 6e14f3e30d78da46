"""Spam signals and fingerprints of a page's text."""
