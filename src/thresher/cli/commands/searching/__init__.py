"""Commands that index a corpus and query it; each module adds its commands to the app."""

from thresher.cli.commands.searching import analyses, index, search, wordlists

__all__ = ["analyses", "index", "search", "wordlists"]
