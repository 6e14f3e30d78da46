"""N-grams: values that often stand one behind the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.query.found import Index, Search
from thresher.query.functions import subcorpora
from thresher.query.functions.scope import Piece, Scope, Vocabulary, main_attribute, structure_in, vocabulary
from thresher.query.functions.tables import MILLION, FunctionError, Table, first, ordered
from thresher.query.functions.windows import joined, spelled
from thresher.query.packing import Starts, Words
from thresher.query.segment import Segment

LONGEST = 6
ROOM = 1 << 26  # n-grams that are sorted at once: half a GB
SPREADER = np.uint64(0x9E3779B97F4A7C15)  # of the golden ratio; odd: different numbers stay different
PACKED = 64  # bits of a number
SIEVE = 22  # bits of a number that tell quickly that it is none of those that are kept


class Grams(NamedTuple):
    """The n-grams of a piece: a number for each, and where they begin."""

    values: NDArray[np.uint32]  # of its tokens
    numbers: Words
    together: NDArray[np.bool_]  # whether one begins at a token


def ngrams(
    index: Index,
    _: Search | None = None,
    *,
    n: int = 2,
    attribute: str = "",
    structure: str = "s",
    within: str | None = None,
    minimum: int = 2,
    limit: int | None = 1000,
) -> Table:
    """Sequences of values with their counts; none crosses a structure's border, or a document's if there are none.

    Memory is bounded: a large corpus is read several times, each time for another share of all n-grams.
    """
    if not 2 <= n <= LONGEST:
        raise FunctionError(f"n = {n} cannot be; n-grams have 2 to {LONGEST} tokens")
    scope = subcorpora.scope(index, within)
    words = vocabulary(index, attribute or main_attribute(index))
    numbers, counts, left_out = _counted(scope, words, n, structure, max(minimum, 1), limit)
    texts = _spelled(scope, words, n, structure, numbers)
    rows = pa.table(
        {
            "value": texts,
            "count": pa.array(counts),
            "per_million": pa.array(counts * MILLION / max(scope.tokens, 1)),
        }
    )
    found = first(ordered(rows, "count"), limit)
    if left_out and limit is not None:
        return Table(found.rows, f"the first {limit} of {left_out + rows.num_rows} rows")
    return found


def _grams(scope: Scope, words: Vocabulary, n: int, structure: str) -> Iterator[Grams]:
    """All n-grams, piece by piece."""
    width = max(len(words.values) - 1, 1).bit_length()
    # Where n values fit into 64 bits, a number stands for one n-gram alone; else that is just very probable.
    factor = np.uint64(1 << width) if n * width <= PACKED else SPREADER
    for piece in scope.pieces():
        values = words.by_type[piece.segment][piece.types]
        count = max(len(values) - n + 1, 0)
        numbers = np.zeros(count, np.uint64)
        for step in range(n):
            numbers *= factor
            numbers += values[step : step + count]
        numbers *= SPREADER
        together = _together(scope.index.segments[piece.segment], piece, structure, n)
        yield Grams(values, numbers[together], together)


def _together(segment: Segment, piece: Piece, structure: str, n: int) -> NDArray[np.bool_]:
    """The tokens that lie in one structure with the n - 1 behind them."""
    size = len(piece.types)
    begins = np.zeros(size + 1, np.int32)
    begins[piece.starts] = 1
    inside: NDArray[np.bool_] = np.ones(size, np.bool_)
    if regions := structure_in(segment, structure):
        end = size + int(piece.shifts[-1])
        some = slice(*np.searchsorted(regions.firsts, np.array([piece.shifts[0], end], np.uint32)))
        opened = np.bincount(_places(piece, regions.firsts[some]), minlength=size + 1)
        closed = np.bincount(_places(piece, regions.nexts[some]), minlength=size + 1)
        inside = np.cumsum(opened - closed)[:size] > 0
        begins += opened.astype(np.int32)
    numbers = np.cumsum(begins[:size], dtype=np.int32)
    count = max(size - n + 1, 0)
    last = numbers[size - count :], inside[size - count :]
    together: NDArray[np.bool_] = (numbers[:count] == last[0]) & inside[:count] & last[1]
    return together


def _places(piece: Piece, borders: NDArray[np.uint32]) -> Starts:
    """Where borders of structures stand among the tokens of a piece; what is between its documents is skipped."""
    ends = np.append(piece.starts[1:], len(piece.types))
    owners = np.searchsorted(piece.starts + piece.shifts, borders, "right") - 1
    places: Starts = np.minimum(borders - piece.shifts[owners], ends[owners])
    return places


def _counted(
    scope: Scope, words: Vocabulary, n: int, structure: str, minimum: int, limit: int | None
) -> tuple[Words, NDArray[np.int64], int]:
    """The most frequent n-grams by number, their counts, and how many others are as frequent as they must be."""
    shares, half = -(-scope.tokens // ROOM), np.uint64(32)
    kept, totals = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    left_out = 0
    for share in range(shares):
        parts = []
        for grams in _grams(scope, words, n, structure):
            # The upper half decides: the lower bits of a product are not as well mixed.
            mine = (grams.numbers >> half) * np.uint64(shares) >> half == share
            parts.append(grams.numbers if shares == 1 else grams.numbers[mine])
        every = np.concatenate(parts)
        parts.clear()
        every.sort()
        firsts = np.flatnonzero(np.append(True, every[1:] != every[:-1])[: len(every)])
        counts = np.diff(firsts, append=len(every))
        often = counts >= minimum
        kept, totals = np.append(kept, every[firsts[often]]), np.append(totals, counts[often])
        if limit is not None and len(totals) > limit:
            least = np.partition(totals, -limit)[-limit] if limit else totals.max() + 1
            left_out += int((totals < least).sum())
            kept, totals = kept[totals >= least], totals[totals >= least]
    return kept, totals, left_out


def _spelled(scope: Scope, words: Vocabulary, n: int, structure: str, numbers: Words) -> pa.StringArray:
    """N-grams as texts, by their numbers: the first of each is looked up."""
    order = np.argsort(numbers)
    sought = numbers[order]
    values = np.full((len(numbers), n), -1, np.int64)
    sieve = np.zeros(1 << SIEVE, np.bool_)
    sieve[sought >> np.uint64(64 - SIEVE)] = True
    missing = len(numbers)
    for grams in _grams(scope, words, n, structure):
        if not missing:
            break
        maybe = np.flatnonzero(sieve[grams.numbers >> np.uint64(64 - SIEVE)])
        some, examples = np.unique(grams.numbers[maybe], return_index=True)
        rows = np.minimum(np.searchsorted(sought, some), len(sought) - 1)
        new = (sought[rows] == some) & (values[order[rows], 0] < 0)
        starts = np.flatnonzero(grams.together)[maybe[examples[new]]]
        values[order[rows[new]]] = grams.values[starts[:, None] + np.arange(n)]
        missing -= int(new.sum())
    return joined(spelled(values.ravel(), words.values), np.full(len(numbers), n))
