"""Runs of recipes: running, recording, comparing and cleaning up."""
