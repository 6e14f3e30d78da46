"""Parser of `data/markers.txt`: words and spellings that distinguish languages which CLD2 confuses.

The file is written by hand; its head explains the format.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

FILE = Path(__file__).parent.parent / "data" / "markers.txt"
DETECTOR = 2.0  # votes that the detector's answer is worth

Kind = Literal["word", "stem", "end", "part"]


class Marker(NamedTuple):
    """One word, stem, ending or part, and the languages it speaks for."""

    text: str
    kind: Kind
    languages: tuple[str, ...]
    weight: float


class MarkerGroup(NamedTuple):
    """Candidates for one text."""

    languages: tuple[str, ...]
    worths: tuple[float, ...] = ()  # of a vote for each; () where all are worth the same
    detector: float = DETECTOR  # votes that the detector's answer is worth


class Markers(NamedTuple):
    """All markers of the file."""

    alike: dict[str, list[MarkerGroup]]  # a language -> groups that it is one of
    frequent: dict[str, MarkerGroup]  # a script -> the languages whose commonest words are known
    words: tuple[Marker, ...]  # the frequent words
    spellings: tuple[Marker, ...]  # spellings that distinguish similar languages


def parse(lines: Iterable[str]) -> Markers:
    """Parse the lines of a marker file; raise ValueError naming a malformed line."""
    alike: dict[str, list[MarkerGroup]] = {}
    frequent: dict[str, dict[str, None]] = {}
    found: dict[bool, list[Marker]] = {True: [], False: []}  # the frequent ones, the others
    script = ""
    codes: list[str] = []
    weight = 1.0
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            kind, *names = line.strip("[]\n ").split()
            script = names[0] if kind == "frequent" else ""
            if kind == "alike":
                group = _group(names)
                for code in group.languages:
                    alike.setdefault(code, []).append(group)
            continue
        words = line
        if not line.startswith(" "):  # otherwise the entry goes on
            head, colon, words = line.partition(":")
            codes = head.split()
            if not colon or not codes:
                raise ValueError(f"line {number}: no languages before the words")
            weight = float(codes.pop()) if codes[-1][0].isdigit() else 1.0
            if script:
                frequent.setdefault(script, {}).update(dict.fromkeys(codes))
        found[bool(script)] += [_marker(word, tuple(codes), weight) for word in words.split()]
    by_script = {script: MarkerGroup(tuple(codes)) for script, codes in frequent.items()}
    return Markers(alike, by_script, tuple(found[True]), tuple(found[False]))


def _group(names: Iterable[str]) -> MarkerGroup:
    worths = {code: float(worth or 1) for code, _, worth in (name.partition("=") for name in names)}
    detector = worths.pop("detector", DETECTOR)
    return MarkerGroup(tuple(worths), tuple(worths.values()), detector)


def _marker(token: str, languages: tuple[str, ...], weight: float) -> Marker:
    kind: Kind = "end" if token.startswith("-") else "word"
    if token.endswith("-"):
        kind = "part" if kind == "end" else "stem"
    return Marker(token.strip("-"), kind, languages, weight)


@cache
def markers() -> Markers:
    """Return the markers that come with Thresher."""
    with FILE.open(encoding="utf-8") as lines:
        return parse(lines)


@cache
def frequent_words(code: str) -> frozenset[str]:
    """Return the most frequent words of a language, as far as they are known."""
    return frozenset(each.text for each in markers().words if each.kind == "word" and code in each.languages)
