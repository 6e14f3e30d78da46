"""Numbers in messages, for every package that reports or logs."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "hit"), counted(1200, "hit"), counted(0, "page")
    ('1 hit', '1,200 hits', '0 pages')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
