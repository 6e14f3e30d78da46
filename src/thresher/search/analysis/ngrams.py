"""N-grams: sequences of values by frequency."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.search.analysis import subcorpora
from thresher.search.analysis.scope import (
    AttributeVocabulary,
    DocumentScope,
    DocumentTokens,
    main_attribute,
    structure_in,
    vocabulary,
)
from thresher.search.analysis.tables import MILLION, AnalysisError, ResultTable, first, one_of, ordered
from thresher.search.analysis.windows import joined, spelled
from thresher.search.encoding.bitpacking import Starts, Words
from thresher.search.index.segment import Segment
from thresher.search.searcher import Index, RunningSearch

LONGEST_NGRAM = 6  # tokens
SORTED_NGRAMS = 1 << 26  # n-grams that are sorted at a time, which takes half a GB
MIXER = np.uint64(0x9E3779B97F4A7C15)  # from the golden ratio; odd, so that different numbers stay different
EXACT_BITS = 64  # n-grams whose values fit into so many bits get distinct numbers
SIEVE_BITS = 22  # highest bits of a number by which most other n-grams are excluded


class Grams(NamedTuple):
    """The n-grams of a chunk."""

    values: NDArray[np.uint32]  # of the tokens
    numbers: Words  # a number for each n-gram
    together: NDArray[np.bool_]  # whether an n-gram begins at a token


def ngrams(
    index: Index,
    _: RunningSearch | None = None,
    *,
    n: int = 2,
    attribute: str = "",
    structure: str = "s",
    within: str | None = None,
    minimum: int = 2,
    limit: int | None = 1000,
) -> ResultTable:
    """Return sequences of n values with their counts; none crosses the border of a structure or document.

    Memory is bounded: a large corpus is read several times, each time for another part of the n-grams.
    """
    if not 2 <= n <= LONGEST_NGRAM:
        raise AnalysisError(f"n must be from 2 to {LONGEST_NGRAM}, got {n}")
    if limit is not None and limit < 1:
        raise AnalysisError(f"limit must be at least 1, got {limit}")
    if structure != "s":  # the default, which imported tokens may lack
        one_of(structure, index.structures, "structure")
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
        return ResultTable(found.rows, f"the first {limit:,} of {left_out + rows.num_rows:,} rows")
    return found


def _grams(scope: DocumentScope, words: AttributeVocabulary, n: int, structure: str) -> Iterator[Grams]:
    """Yield all n-grams, chunk by chunk."""
    width = max(len(words.values) - 1, 1).bit_length()
    # If n values fit into 64 bits, the numbers of n-grams are distinct; else they are so with high probability.
    factor = np.uint64(1 << width) if n * width <= EXACT_BITS else MIXER
    for chunk in scope.chunks():
        values = words.by_type[chunk.segment][chunk.types]
        count = max(len(values) - n + 1, 0)
        numbers = np.zeros(count, np.uint64)
        for step in range(n):
            numbers *= factor
            numbers += values[step : step + count]
        numbers *= MIXER
        together = _together(scope.index.segments[chunk.segment], chunk, structure, n)
        yield Grams(values, numbers[together], together)


def _together(segment: Segment, chunk: DocumentTokens, structure: str, n: int) -> NDArray[np.bool_]:
    """Return a mask of the tokens that lie in one structure with the n - 1 tokens after them."""
    size = len(chunk.types)
    begins = np.zeros(size + 1, np.int32)
    begins[chunk.starts] = 1
    inside: NDArray[np.bool_] = np.ones(size, np.bool_)
    if regions := structure_in(segment, structure):
        end = size + int(chunk.shifts[-1])
        near = slice(*np.searchsorted(regions.firsts, np.array([chunk.shifts[0], end], np.uint32)))
        opened = np.bincount(_places(chunk, regions.firsts[near]), minlength=size + 1)
        closed = np.bincount(_places(chunk, regions.nexts[near]), minlength=size + 1)
        inside = np.cumsum(opened - closed)[:size] > 0
        begins += opened.astype(np.int32)
    numbers = np.cumsum(begins[:size], dtype=np.int32)
    count = max(size - n + 1, 0)
    last = numbers[size - count :], inside[size - count :]
    together: NDArray[np.bool_] = (numbers[:count] == last[0]) & inside[:count] & last[1]
    return together


def _places(chunk: DocumentTokens, borders: NDArray[np.uint32]) -> Starts:
    """Return the places of structure borders among the tokens of a chunk, which skips other documents."""
    ends = np.append(chunk.starts[1:], len(chunk.types))
    owners = np.searchsorted(chunk.starts + chunk.shifts, borders, "right") - 1
    places: Starts = np.minimum(borders - chunk.shifts[owners], ends[owners])
    return places


def _counted(
    scope: DocumentScope, words: AttributeVocabulary, n: int, structure: str, minimum: int, limit: int | None
) -> tuple[Words, NDArray[np.int64], int]:
    """Return the numbers and counts of the most frequent n-grams, and how many more reach the minimum."""
    shares, half = -(-scope.tokens // SORTED_NGRAMS), np.uint64(32)
    kept, totals = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    left_out = 0
    for share in range(shares):
        parts = []
        for grams in _grams(scope, words, n, structure):
            # By the upper half, since the lower bits of a product are not as well mixed.
            in_share = (grams.numbers >> half) * np.uint64(shares) >> half == share
            parts.append(grams.numbers if shares == 1 else grams.numbers[in_share])
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


def _spelled(
    scope: DocumentScope, words: AttributeVocabulary, n: int, structure: str, numbers: Words
) -> pa.StringArray:
    """Return n-grams as texts, by their numbers: the first occurrence of each is looked up."""
    order = np.argsort(numbers)
    sought = numbers[order]
    values = np.full((len(numbers), n), -1, np.int64)
    sieve = np.zeros(1 << SIEVE_BITS, np.bool_)
    sieve[sought >> np.uint64(64 - SIEVE_BITS)] = True
    missing = len(numbers)
    for grams in _grams(scope, words, n, structure):
        if not missing:
            break
        maybe = np.flatnonzero(sieve[grams.numbers >> np.uint64(64 - SIEVE_BITS)])
        distinct, examples = np.unique(grams.numbers[maybe], return_index=True)
        rows = np.minimum(np.searchsorted(sought, distinct), len(sought) - 1)
        new = (sought[rows] == distinct) & (values[order[rows], 0] < 0)
        starts = np.flatnonzero(grams.together)[maybe[examples[new]]]
        values[order[rows[new]]] = grams.values[starts[:, None] + np.arange(n)]
        missing -= int(new.sum())
    return joined(spelled(values.ravel(), words.values), np.full(len(numbers), n))
