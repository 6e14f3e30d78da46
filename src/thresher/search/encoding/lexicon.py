"""Lexicon of an attribute: its values in the order of their bytes, and a search for expressions among them.

The number of a value is its place in that order, so values with the same prefix are neighbours. An expression is
matched only against values that may contain its literals: its prefix, or any three bytes in sequence. An index of
trigrams lists the blocks of values that contain them. It ignores case and accents, so that it serves all flags.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.search.cql.ast import StringPattern
from thresher.search.cql.regex import Expression, compiled, quoted
from thresher.search.cql.regex_literals import FIRST, LAST, needs, spelled_out
from thresher.search.encoding.array_file import ArrayFile, ArrayFileWriter
from thresher.search.encoding.bitpacking import Ids
from thresher.search.encoding.postings import Postings, pack_lists, positions

GRAM = 3  # bytes
BLOCK = 64  # values that share an entry in the index of trigrams
AFTER_ALL = b"\xff"  # a byte that no text has; it sorts after all others


class Trigrams(NamedTuple):
    """Index of trigrams: for each, in order, the blocks of values that contain it."""

    grams: Ids
    blocks: Postings


class Lexicon(NamedTuple):
    """The sorted values of an attribute, with an index to search them."""

    values: pa.StringArray
    trigrams: Trigrams
    plain: pa.StringArray  # accented values without their accents
    accented: Ids  # numbers of the accented values


class _Folded(dict[int, str]):
    """Letters without case and accents. Each is folded on its own, so a part of a text folds to a part of it."""

    def __missing__(self, code: int) -> str:
        self[code] = strip(chr(code).casefold())
        return self[code]


_FOLDED = _Folded()


def build(values: Sequence[str]) -> Lexicon:
    """Build a lexicon of values, which must be sorted and distinct."""
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
    """Return a text without accents: without the marks of its Unicode decomposition."""
    if value.isascii():
        return value
    return "".join(char for char in unicodedata.normalize("NFD", value) if unicodedata.category(char) != "Mn")


def fold(value: str) -> str:
    """Return a text without case and accents, folded letter by letter."""
    return value.lower() if value.isascii() else value.translate(_FOLDED)


def _folded(values: pa.StringArray) -> pa.StringArray:
    """Fold all values; ASCII values, which are the majority, all at once."""
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
    """Return a mask of the numbers that differ from the one before."""
    return np.concatenate([[True] if len(ordered) else [], ordered[1:] != ordered[:-1]]).astype(np.bool_)


# on disk


def put(file: ArrayFileWriter, name: str, lexicon: Lexicon) -> None:
    """Write a lexicon to an array file."""
    for part, values in (("values", lexicon.values), ("plain", lexicon.plain)):
        offsets, text = _buffers(values)
        file.put(f"{name}.{part}.offsets", offsets)
        file.put(f"{name}.{part}.text", text)
    grams, blocks = lexicon.trigrams
    file.put(f"{name}.grams", grams)
    file.put(f"{name}.gram_counts", blocks.counts)
    file.put(f"{name}.gram_starts", blocks.starts)
    file.put(f"{name}.gram_words", blocks.words)
    file.put(f"{name}.accented", lexicon.accented)


def take(file: ArrayFile, name: str) -> Lexicon:
    """Read a lexicon from an array file."""
    values, plain = (
        pa.StringArray.from_buffers(
            max(len(offsets := file[f"{name}.{part}.offsets"]) - 1, 0),
            pa.py_buffer(offsets.data),
            pa.py_buffer(file[f"{name}.{part}.text"].data),
        )
        for part in ("values", "plain")
    )
    blocks = Postings(
        -(-len(values) // BLOCK),
        file[f"{name}.gram_counts"],
        file[f"{name}.gram_starts"],
        file[f"{name}.gram_words"],
    )
    return Lexicon(values, Trigrams(file[f"{name}.grams"], blocks), plain, file[f"{name}.accented"])


def _buffers(values: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    _, offsets, text = values.buffers()
    if not offsets or not text:
        return np.zeros(len(values) + 1, np.int32), np.zeros(0, np.uint8)
    ends = np.frombuffer(memoryview(offsets), np.int32, len(values) + 1)
    return ends, np.frombuffer(memoryview(text), np.uint8, int(ends[-1]))


# search


def find(lexicon: Lexicon, value: str) -> int | None:
    """Return the number of a value, or None if the lexicon does not have it."""
    start = _first(lexicon.values, value.encode())
    return start if start < len(lexicon.values) and lexicon.values[start].as_py() == value else None


def beginning(lexicon: Lexicon, prefix: str) -> tuple[int, int]:
    """Return the range of numbers `[start, end)` of the values with a prefix."""
    sought = prefix.encode()
    return _first(lexicon.values, sought), _first(lexicon.values, sought + AFTER_ALL)


def _first(values: pa.StringArray, sought: bytes) -> int:
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle].as_buffer().to_pybytes() < sought:
            low = middle + 1
        else:
            high = middle
    return low


def matching(lexicon: Lexicon, text: StringPattern, among: Ids | None = None) -> Ids:
    """Return the numbers of values that an expression matches as a whole, in order.

    With `among`, values of other numbers may be missing from the result.
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
    # Values with the same prefix are neighbours only if case and accents count.
    prefix = needed[0][1:].removesuffix(LAST) if needed and needed[0][0] == FIRST else ""
    candidates = _candidates(lexicon, "" if caseless or plain else prefix, needed)
    if among is not None and isinstance(candidates, tuple):
        candidates = among[(among >= candidates[0]) & (among < candidates[1])]
    elif among is not None and not isinstance(candidates, tuple) and len(candidates) > len(among):
        candidates = among[np.isin(among, candidates, assume_unique=True)]
    found = _matched(lexicon, candidates, expression)
    if not plain:
        return found
    rows = (
        np.arange(len(lexicon.accented))
        if among is None
        else np.flatnonzero(np.isin(lexicon.accented, among))
    )
    bare = lexicon.accented[rows][expression(lexicon.plain.take(rows))]
    return np.union1d(np.setdiff1d(found, lexicon.accented), bare).astype(np.uint32)


def takes_long(text: StringPattern) -> bool:
    """Return whether an expression must be matched against a large part of a lexicon."""
    if "d" in text.flags:
        return True
    if "c" not in text.flags and ("l" in text.flags or spelled_out(text.pattern) is not None):
        return False
    return not any(len(part.encode()) > GRAM for part in needs(text.pattern))


def matches(values: pa.StringArray, text: StringPattern) -> NDArray[np.bool_]:
    """Return a mask of the values, in any order, that an expression matches as a whole."""
    caseless, plain, literally = ("c" in text.flags, "d" in text.flags, "l" in text.flags)
    pattern = strip(text.pattern) if plain else text.pattern
    expression = compiled(quoted(pattern) if literally else pattern, caseless=caseless)
    if plain:
        values = pa.array([strip(value) for value in texts(values)], pa.string())
    return expression(values)


def texts(values: pa.StringArray) -> list[str]:
    """Return values, none of which is null, as a list."""
    return cast(list[str], values.to_pylist())


def _matched(lexicon: Lexicon, candidates: Ids | tuple[int, int], expression: Expression) -> Ids:
    """Return the candidates that an expression matches."""
    if isinstance(candidates, tuple):
        start, end = candidates
        return (np.flatnonzero(expression(lexicon.values[start:end])) + start).astype(np.uint32)
    return candidates[expression(lexicon.values.take(pa.array(candidates, pa.uint32())))]


def _candidates(lexicon: Lexicon, prefix: str, needed: Sequence[str]) -> Ids | tuple[int, int]:
    """Return the values that may have a prefix and the needed texts: their numbers, or a range of numbers."""
    start, end = beginning(lexicon, prefix) if prefix else (0, len(lexicon.values))
    if end - start <= BLOCK:
        return start, end
    blocks = _having(lexicon.trigrams, needed, start // BLOCK, -(-end // BLOCK))
    if blocks is None:
        return start, end
    numbers = (blocks[:, None] * BLOCK + np.arange(BLOCK, dtype=np.uint32)).ravel()
    return numbers[(numbers >= start) & (numbers < end)].astype(np.uint32)


def _having(trigrams: Trigrams, parts: Sequence[str], start: int, end: int) -> Ids | None:
    """Return the blocks in a range that may have all parts; None if every part is shorter than a trigram."""
    blocks: Ids | None = None
    encoded = [fold(part).encode() for part in parts]
    for gram in {part[place : place + GRAM] for part in encoded for place in range(len(part) - GRAM + 1)}:
        number = int.from_bytes(gram, "big")
        place = int(np.searchsorted(trigrams.grams, number))
        if place == len(trigrams.grams) or trigrams.grams[place] != number:
            return np.zeros(0, np.uint32)
        having = positions(trigrams.blocks, place, start, end)
        blocks = having if blocks is None else np.intersect1d(blocks, having, assume_unique=True)
    return blocks
