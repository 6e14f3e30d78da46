"""The values of an attribute, in the order of their bytes, and which of them an expression matches.

A value's number is its place in that order, so those with the same beginning stand side by side. An expression
is asked only of values that may have what it cannot do without: its beginning, or three bytes on end from its
inside. An index tells which blocks of values have those; it knows neither case nor accents, so that it serves all
expressions.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.query.expressions import Expression, compiled, quoted
from thresher.query.literals import FIRST, LAST, needs, spelled_out
from thresher.query.packing import Ids
from thresher.query.postings import Postings, pack_lists, positions
from thresher.query.shelf import Shelf, ShelfWriter
from thresher.query.tree import Text

GRAM = 3  # bytes
BLOCK = 64  # values that the index cannot tell apart
BEHIND = b"\xff"  # no text has this byte: it comes after all others


class Trigrams(NamedTuple):
    """Which blocks of values have three bytes on end, in their order."""

    grams: Ids
    blocks: Postings


class Lexicon(NamedTuple):
    """Values of an attribute, sorted, with what is needed to search them."""

    values: pa.StringArray
    trigrams: Trigrams
    plain: pa.StringArray  # values without their accents, where they have some …
    accented: Ids  # … and the numbers of those


class _Folded(dict[int, str]):
    """Letters without case and accents, each on its own, so that a part of a text is a part of it folded, too."""

    def __missing__(self, code: int) -> str:
        self[code] = strip(chr(code).casefold())
        return self[code]


_FOLDED = _Folded()


def build(values: Sequence[str]) -> Lexicon:
    """A lexicon of values that are sorted, each there once."""
    stripped = [
        (number, bare)
        for number, value in enumerate(values)
        if not value.isascii() and (bare := strip(value)) != value
    ]
    texts = pa.array(values, pa.string())
    return Lexicon(
        texts,
        _index(texts),
        pa.array([bare for _, bare in stripped], pa.string()),
        np.array([number for number, _ in stripped], np.uint32),
    )


def strip(value: str) -> str:
    """A text without its accents, as far as they are marks of their own in Unicode's decomposition."""
    if value.isascii():
        return value
    return "".join(char for char in unicodedata.normalize("NFD", value) if unicodedata.category(char) != "Mn")


def fold(value: str) -> str:
    """A text without case and accents, letter by letter."""
    return value.lower() if value.isascii() else value.translate(_FOLDED)


def _folded(values: pa.StringArray) -> pa.StringArray:
    """All values folded; those in ASCII, which are most, at once."""
    is_other = pc.invert(pc.string_is_ascii(values))
    others = [fold(value) for value in cast(list[str], values.filter(is_other).to_pylist())]
    folded = pc.replace_with_mask(pc.ascii_lower(values), is_other, pa.array(others, pa.string()))
    return cast(pa.StringArray, folded)


def _index(values: pa.StringArray) -> Trigrams:
    join: Any = pc.binary_join_element_wise
    offsets, text = _buffers(join(FIRST, _folded(values), LAST, ""))
    source = text.astype(np.uint32)
    owners = np.repeat(np.arange(len(values), dtype=np.uint64), np.diff(offsets))
    (places,) = np.nonzero(owners[: 1 - GRAM] == owners[GRAM - 1 :])  # three bytes of one value
    grams = source[places] << 16 | source[places + 1] << 8 | source[places + 2]
    pairs = np.sort(grams.astype(np.uint64) << np.uint64(32) | owners[places] // np.uint64(BLOCK))
    pairs = pairs[_differs(pairs)]
    owner_of, gram_of = (
        (pairs & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        (pairs >> np.uint64(32)).astype(np.uint32),
    )
    starts = np.flatnonzero(_differs(gram_of))
    counts = np.diff(np.append(starts, len(pairs))).astype(np.uint32)
    return Trigrams(gram_of[starts], pack_lists(owner_of, counts, -(-len(values) // BLOCK)))


def _differs(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Which numbers are not the same as the one before."""
    return np.concatenate([[True] if len(ordered) else [], ordered[1:] != ordered[:-1]]).astype(np.bool_)


# on disk


def put(shelf: ShelfWriter, name: str, lexicon: Lexicon) -> None:
    """Write a lexicon to a shelf."""
    for part, values in (("values", lexicon.values), ("plain", lexicon.plain)):
        offsets, text = _buffers(values)
        shelf.put(f"{name}.{part}.offsets", offsets)
        shelf.put(f"{name}.{part}.text", text)
    grams, blocks = lexicon.trigrams
    shelf.put(f"{name}.grams", grams)
    shelf.put(f"{name}.gram_counts", blocks.counts)
    shelf.put(f"{name}.gram_starts", blocks.starts)
    shelf.put(f"{name}.gram_words", blocks.words)
    shelf.put(f"{name}.accented", lexicon.accented)


def take(shelf: Shelf, name: str) -> Lexicon:
    """A lexicon from a shelf."""
    values, plain = (
        pa.StringArray.from_buffers(
            max(len(offsets := shelf[f"{name}.{part}.offsets"]) - 1, 0),
            pa.py_buffer(offsets.data),
            pa.py_buffer(shelf[f"{name}.{part}.text"].data),
        )
        for part in ("values", "plain")
    )
    blocks = Postings(
        -(-len(values) // BLOCK),
        shelf[f"{name}.gram_counts"],
        shelf[f"{name}.gram_starts"],
        shelf[f"{name}.gram_words"],
    )
    return Lexicon(values, Trigrams(shelf[f"{name}.grams"], blocks), plain, shelf[f"{name}.accented"])


def _buffers(values: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    _, offsets, text = values.buffers()
    if not offsets or not text:
        return np.zeros(len(values) + 1, np.int32), np.zeros(0, np.uint8)
    ends = np.frombuffer(memoryview(offsets), np.int32, len(values) + 1)
    return ends, np.frombuffer(memoryview(text), np.uint8, int(ends[-1]))


# search


def find(lexicon: Lexicon, value: str) -> int | None:
    """The number of a value, if it is there."""
    start = _first(lexicon.values, value.encode())
    return start if start < len(lexicon.values) and lexicon.values[start].as_py() == value else None


def beginning(lexicon: Lexicon, prefix: str) -> tuple[int, int]:
    """The numbers of values that begin so: from one to before another."""
    sought = prefix.encode()
    return _first(lexicon.values, sought), _first(lexicon.values, sought + BEHIND)


def _first(values: pa.StringArray, sought: bytes) -> int:
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle].as_buffer().to_pybytes() < sought:
            low = middle + 1
        else:
            high = middle
    return low


def matching(lexicon: Lexicon, text: Text, among: Ids | None = None) -> Ids:
    """The numbers of values that an expression matches as a whole, in order.

    If only some of the values matter, others need not be found.
    """
    caseless, plain, literally = ("c" in text.flags, "d" in text.flags, "l" in text.flags)
    pattern = strip(text.pattern) if plain else text.pattern
    if not caseless and not plain:
        spelled = [pattern] if literally else spelled_out(pattern)
        if spelled is not None:
            numbers = {find(lexicon, value) for value in spelled} - {None}
            return np.array(sorted(number for number in numbers if number is not None), np.uint32)
    needed = (f"{FIRST}{pattern}{LAST}",) if literally else needs(pattern)
    expression = compiled(quoted(pattern) if literally else pattern, caseless=caseless)
    # Those with the same beginning stand side by side, but for case and accents.
    prefix = needed[0][1:].removesuffix(LAST) if needed and needed[0][0] == FIRST else ""
    asked = _asked(lexicon, "" if caseless or plain else prefix, needed)
    if among is not None and isinstance(asked, tuple):
        asked = among[(among >= asked[0]) & (among < asked[1])]
    elif among is not None and not isinstance(asked, tuple) and len(asked) > len(among):
        asked = among[np.isin(among, asked, assume_unique=True)]
    found = _told(lexicon, asked, expression)
    if not plain:
        return found
    some = (
        np.arange(len(lexicon.accented))
        if among is None
        else np.flatnonzero(np.isin(lexicon.accented, among))
    )
    bare = lexicon.accented[some][expression(lexicon.plain.take(some))]
    return np.union1d(np.setdiff1d(found, lexicon.accented), bare).astype(np.uint32)


def takes_long(text: Text) -> bool:
    """Whether an expression must be asked of many values to tell which of them it matches."""
    if "d" in text.flags:
        return True
    if "c" not in text.flags and ("l" in text.flags or spelled_out(text.pattern) is not None):
        return False
    return not any(len(part.encode()) > GRAM for part in needs(text.pattern))


def matches(values: pa.StringArray, text: Text) -> NDArray[np.bool_]:
    """Which of some values, in any order, an expression matches as a whole; accents are looked up in each."""
    caseless, plain, literally = ("c" in text.flags, "d" in text.flags, "l" in text.flags)
    pattern = strip(text.pattern) if plain else text.pattern
    expression = compiled(quoted(pattern) if literally else pattern, caseless=caseless)
    if plain:
        values = pa.array([strip(value) for value in texts(values)], pa.string())
    return expression(values)


def texts(values: pa.StringArray) -> list[str]:
    """Values as Python has them; none is null."""
    return cast(list[str], values.to_pylist())


def _told(lexicon: Lexicon, asked: Ids | tuple[int, int], expression: Expression) -> Ids:
    """Those of some values that an expression matches."""
    if isinstance(asked, tuple):
        start, end = asked
        return (np.flatnonzero(expression(lexicon.values[start:end])) + start).astype(np.uint32)
    return asked[expression(lexicon.values.take(pa.array(asked, pa.uint32())))]


def _asked(lexicon: Lexicon, prefix: str, needed: Sequence[str]) -> Ids | tuple[int, int]:
    """The values that may begin so and have what is needed: some, or a range."""
    start, end = beginning(lexicon, prefix) if prefix else (0, len(lexicon.values))
    if end - start <= BLOCK:
        return start, end
    blocks = _having(lexicon.trigrams, needed, start // BLOCK, -(-end // BLOCK))
    if blocks is None:
        return start, end
    asked = (blocks[:, None] * BLOCK + np.arange(BLOCK, dtype=np.uint32)).ravel()
    return asked[(asked >= start) & (asked < end)].astype(np.uint32)


def _having(trigrams: Trigrams, parts: Sequence[str], start: int, end: int) -> Ids | None:
    """The blocks in a range that have all parts, perhaps among others; None if no part is long enough to tell."""
    found: Ids | None = None
    encoded = [fold(part).encode() for part in parts]
    for gram in {part[place : place + GRAM] for part in encoded for place in range(len(part) - GRAM + 1)}:
        number = int.from_bytes(gram, "big")
        place = int(np.searchsorted(trigrams.grams, number))
        if place == len(trigrams.grams) or trigrams.grams[place] != number:
            return np.zeros(0, np.uint32)
        who = positions(trigrams.blocks, place, start, end)
        found = who if found is None else np.intersect1d(found, who, assume_unique=True)
    return found
