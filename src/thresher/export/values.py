"""Values of tokens as formats can hold them: imports have words of nothing but spaces, and tags with spaces."""

from __future__ import annotations

NOTHING = "_"  # instead of a word of which nothing is there: every format wants one


def form(word: str) -> str:
    """A word as it can be written: without spaces around it, and never empty.

    >>> form("New York "), form(" ")
    ('New York', '_')
    """
    return word.strip() or NOTHING


def symbol(tag: str) -> str:
    """A tag without spaces; nothing if there is nothing else in it.

    >>> symbol(" a  b"), symbol(" ")
    ('a_b', '')
    """
    return "_".join(tag.split())
