"""Render results for people."""
