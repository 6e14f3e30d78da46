"""Values of tokens in a form that all formats can hold: imports have blank words, and tags with spaces."""

from __future__ import annotations

NOTHING = "_"  # for a blank word, since every format requires one


def form(word: str) -> str:
    """Return a word without spaces around it, and "_" for a blank one.

    >>> form("New York "), form(" ")
    ('New York', '_')
    """
    return word.strip() or NOTHING


def symbol(tag: str) -> str:
    """Return a tag with "_" for spaces, "" for a blank one.

    >>> symbol(" a  b"), symbol(" ")
    ('a_b', '')
    """
    return "_".join(tag.split())
