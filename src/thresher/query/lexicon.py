"""The values of an attribute, in the order of their bytes, and which of them an expression matches.

A value's number is its place in that order, so those with the same beginning stand side by side. An expression is
asked only of values that have what it cannot do without: its beginning, or three letters on end from its inside, of
which an index tells who has them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.query.literals import Needs, needs
from thresher.query.packing import Ids, Postings, pack_lists, positions
from thresher.query.tree import Text

GRAM = 3  # bytes
NOTHING_NEEDED = Needs("", ())
BEHIND = b"\xff"  # no text has this byte: it comes after all others


class Trigrams(NamedTuple):
    """Which values have three bytes on end, in their order."""

    grams: NDArray[np.uint32]
    values: Postings


class Lexicon(NamedTuple):
    """Values of an attribute, sorted, with what is needed to search them."""

    values: pa.LargeStringArray
    trigrams: Trigrams
    plain: pa.LargeStringArray  # values without their accents, where they have some …
    accented: Ids  # … and the numbers of those


class ExpressionError(ValueError):
    """An expression that cannot be read."""


def build(values: Iterable[str]) -> Lexicon:
    """A lexicon of some values, each once."""
    ordered = sorted(set(values), key=str.encode)
    stripped = [(number, bare) for number, value in enumerate(ordered) if (bare := strip(value)) != value]
    return Lexicon(
        pa.array(ordered, pa.large_string()),
        _index(ordered),
        pa.array([bare for _, bare in stripped], pa.large_string()),
        np.array([number for number, _ in stripped], np.uint32),
    )


def strip(value: str) -> str:
    """A text without its accents, as far as they are marks of their own in Unicode's decomposition."""
    if value.isascii():
        return value
    return "".join(char for char in unicodedata.normalize("NFD", value) if unicodedata.category(char) != "Mn")


def _index(values: Sequence[str]) -> Trigrams:
    encoded = [value.encode() for value in values]
    source = np.frombuffer(b"".join(encoded), np.uint8).astype(np.uint32)
    owners = np.repeat(np.arange(len(values), dtype=np.uint64), [len(value) for value in encoded])
    (places,) = np.nonzero(owners[: 1 - GRAM] == owners[GRAM - 1 :])  # three bytes of one value
    grams = source[places] << 16 | source[places + 1] << 8 | source[places + 2]
    pairs = np.unique(grams.astype(np.uint64) << np.uint64(32) | owners[places])
    known, counts = np.unique(pairs >> np.uint64(32), return_counts=True)
    lists = pack_lists(
        (pairs & np.uint64(0xFFFFFFFF)).astype(np.uint32), counts.astype(np.uint32), len(values)
    )
    return Trigrams(known.astype(np.uint32), lists)


def find(lexicon: Lexicon, value: str) -> int | None:
    """The number of a value, if it is there."""
    start, end = beginning(lexicon, value)
    return start if start < end and lexicon.values[start].as_py() == value else None


def beginning(lexicon: Lexicon, prefix: str) -> tuple[int, int]:
    """The numbers of values that begin so: from one to before another."""
    sought = prefix.encode()
    return _first(lexicon.values, sought), _first(lexicon.values, sought + BEHIND)


def _first(values: pa.LargeStringArray, sought: bytes) -> int:
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle].as_buffer().to_pybytes() < sought:
            low = middle + 1
        else:
            high = middle
    return low


def matching(lexicon: Lexicon, text: Text) -> Ids:
    """The numbers of values that an expression matches as a whole, in order."""
    caseless, plain, literally = ("c" in text.flags, "d" in text.flags, "l" in text.flags)
    pattern = strip(text.pattern) if plain else text.pattern
    if literally and not caseless and not plain:
        number = find(lexicon, pattern)
        return np.array([] if number is None else [number], np.uint32)
    expression = _quoted(pattern) if literally else pattern
    _check(expression)
    needed = NOTHING_NEEDED if caseless or plain else needs(pattern)
    found = _asked(lexicon, needed, expression, caseless)
    if not plain:
        return found
    bare = lexicon.accented[_matches(lexicon.plain, expression, caseless)]
    return np.union1d(np.setdiff1d(found, lexicon.accented), bare).astype(np.uint32)


def _asked(lexicon: Lexicon, needed: Needs, expression: str, caseless: bool) -> Ids:
    """Ask an expression of all values that have what it needs."""
    start, end = beginning(lexicon, needed.prefix) if needed.prefix else (0, len(lexicon.values))
    some = _having(lexicon.trigrams, needed.parts, start, end)
    if some is None:
        return (np.flatnonzero(_matches(lexicon.values[start:end], expression, caseless)) + start).astype(
            np.uint32
        )
    return some[_matches(lexicon.values.take(pa.array(some, pa.uint32())), expression, caseless)]


def _having(trigrams: Trigrams, parts: Sequence[str], start: int, end: int) -> Ids | None:
    """The values in a range that have all parts, perhaps among others; None if no part is long enough to tell."""
    found: Ids | None = None
    for gram in {
        part.encode()[place : place + GRAM]
        for part in parts
        for place in range(len(part.encode()) - GRAM + 1)
    }:
        number = int.from_bytes(gram, "big")
        place = int(np.searchsorted(trigrams.grams, number))
        if place == len(trigrams.grams) or trigrams.grams[place] != number:
            return np.zeros(0, np.uint32)
        who = positions(trigrams.values, place, start, end)
        found = who if found is None else np.intersect1d(found, who, assume_unique=True)
    return found


def _matches(values: pa.LargeStringArray, expression: str, caseless: bool) -> NDArray[np.bool_]:
    found = pc.match_substring_regex(values, rf"\A(?:{expression})\z", ignore_case=caseless)
    told: NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return told


def _check(expression: str) -> None:
    """Refuse an expression that is none by itself: between brackets, some would be."""
    try:
        pc.match_substring_regex(pa.array(["", None]), expression)
    except pa.ArrowInvalid as fault:
        raise ExpressionError(str(fault)) from fault


def _quoted(literal: str) -> str:
    r"""An expression for just this text: \Q…\E would end at an \E in it."""
    return "".join(char if char.isalnum() or ord(char) > 127 else f"\\x{{{ord(char):x}}}" for char in literal)
