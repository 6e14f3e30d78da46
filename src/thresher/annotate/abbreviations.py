"""Abbreviations that keep their dot, and whether a sentence can end with them: `data/abbreviations.txt`, read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "data" / "abbreviations.txt"


class Abbreviations(NamedTuple):
    """Abbreviations of a language in small letters, without their last dot."""

    before_more: frozenset[str]  # the sentence goes on
    last: frozenset[str]  # the sentence may end


@cache
def abbreviations(language: str) -> Abbreviations:
    """The abbreviations of a language, and those known everywhere."""
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
