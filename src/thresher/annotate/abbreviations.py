"""Abbreviations that keep their dot, from `data/abbreviations.txt`, and whether a sentence can end with them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "data" / "abbreviations.txt"


class Abbreviations(NamedTuple):
    """Abbreviations of a language in lower case, without their last dot."""

    before_more: frozenset[str]  # after these, the sentence continues
    last: frozenset[str]  # after these, the sentence may end


@cache
def abbreviations(language: str) -> Abbreviations:
    """Return the abbreviations of a language and the ones common to all languages."""
    everywhere, own = _table()["*"], _table().get(language, _NONE)
    last = everywhere.last | own.last
    return Abbreviations((everywhere.before_more | own.before_more) - last, last)


_NONE = Abbreviations(frozenset(), frozenset())


@cache
def _table() -> dict[str, Abbreviations]:
    lines = [
        line for line in FILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]
    table = {}
    for entry in "\n".join(lines).replace("\n ", " ").split("\n"):
        codes, _, words = entry.partition(":")
        before_more, _, last = words.partition("|")
        row = Abbreviations(frozenset(before_more.split()), frozenset(last.split()))
        table.update(dict.fromkeys(codes.split(), row))
    return table
