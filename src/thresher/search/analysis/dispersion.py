"""Dispersion: how evenly hits are spread over a corpus."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from thresher.jit import FLOATS, NOTHING, NUMBER, kernel
from thresher.search.analysis import subcorpora
from thresher.search.analysis.scope import AttributeVocabulary, DocumentScope, document_numbers
from thresher.search.analysis.tables import AnalysisError, ResultTable
from thresher.search.encoding.bitpacking import IDS, NEW_STARTS, STARTS, Ids, Starts
from thresher.search.searcher import Index, RunningSearch

Floats = NDArray[np.float64]

_LENGTHS = types.Array(types.float64, 1, "C", readonly=True)


def dispersion(
    index: Index, search: RunningSearch, *, parts: str | int = "doc", within: str | None = None
) -> ResultTable:
    """Return average reduced frequency, Juilland's D and Gries' DP, over documents or a number of equal parts."""
    if parts != "doc" and (not isinstance(parts, int) or parts < 1):
        raise AnalysisError(f"parts must be doc or a number of equal parts, got {parts!r}")
    scope = subcorpora.scope(index, within)
    if isinstance(parts, int) and parts > max(scope.tokens, 1):
        raise AnalysisError(f"parts must be at most {scope.tokens:,}, the number of tokens, got {parts:,}")
    places, by_document = _found(scope, search)
    if isinstance(parts, int):
        borders = np.arange(parts + 1) * scope.tokens // parts
        counts, sizes = np.histogram(places, borders)[0], np.diff(borders)
    else:
        counts = by_document
        sizes = np.concatenate([np.zeros(0, np.int64), *map(scope.lengths, range(len(scope.masks)))])
    counts, sizes = counts[sizes > 0], sizes[sizes > 0]
    dp, dp_norm = deviation(counts, sizes)
    row = {
        "hits": pa.array([len(places)], pa.int64()),
        "documents": pa.array([int((by_document > 0).sum())], pa.int64()),
        "arf": pa.array([arf_of(places, scope.tokens)]),
        "parts": pa.array([len(sizes)], pa.int64()),
        "parts_with_hits": pa.array([int((counts > 0).sum())], pa.int64()),
        "juilland_d": pa.array([juilland(counts, sizes)], pa.float64()),
        "dp": pa.array([dp], pa.float64()),
        "dp_norm": pa.array([dp_norm], pa.float64()),
    }
    return ResultTable(pa.table(row), search.stopped)


def _found(scope: DocumentScope, search: RunningSearch) -> tuple[Starts, Starts]:
    """Return the places of hits among all tokens of a scope, and the number of hits in each document."""
    places = [np.zeros(0, np.int64)]
    by_document = [np.zeros(len(mask), np.int64) for mask in scope.masks]
    for number, hits in scope.stream(search):
        places.append(scope.places(number, hits.firsts))
        owners = document_numbers(scope.index.segments[number], hits.firsts)
        by_document[number] += np.bincount(owners, minlength=len(by_document[number]))
    return np.concatenate(places), np.concatenate([np.zeros(0, np.int64), *by_document])


def arf_of(places: Starts, tokens: int) -> float:
    """Return the average reduced frequency of occurrences at sorted places, with the corpus as a ring of tokens.

    By Savický and Hlaváčová: divide the ring into as many equal parts as there are occurrences, and count the parts
    that have one. The mean over all divisions is (1/v) Σ min(distance to the occurrence before, v), with v the
    length of a part.
    """
    if not len(places):
        return 0.0
    length = tokens / len(places)
    distances = np.diff(places, prepend=places[-1] - tokens)
    return float(np.minimum(distances, length).sum() / length)


def juilland(counts: Starts, sizes: Starts) -> float | None:
    """Return Juilland's D: 1 for equal frequencies in all parts, 0 for all hits in one part, None if undefined.

    It is computed from relative frequencies, since parts may differ in size.
    """
    rates = counts / sizes
    if len(rates) < 2 or not rates.any():
        return None
    return float(1 - rates.std() / rates.mean() / np.sqrt(len(rates) - 1))


def deviation(counts: Starts, sizes: Starts) -> tuple[float | None, float | None]:
    """Return Gries' DP, from 0 for hits in proportion to the sizes of parts to nearly 1, and normalised to 1."""
    if not counts.any():
        return None, None
    shares = sizes / sizes.sum()
    dp = float(np.abs(counts / counts.sum() - shares).sum() / 2)
    return dp, dp / (1 - float(shares.min())) if len(sizes) > 1 else None


# all values of an attribute


class Spreads(NamedTuple):
    """Number of documents and average reduced frequency, by value."""

    documents: Starts
    arf: Floats


def spreads(scope: DocumentScope, words: AttributeVocabulary, counts: Starts) -> Spreads:
    """Return number of documents and average reduced frequency of all values, in one pass over the tokens."""
    size = len(counts)
    lengths = scope.tokens / np.maximum(counts, 1)
    firsts, lasts, seen_in = (np.full(size, -1, np.int64) for _ in range(3))
    documents, sums = np.zeros(size, np.int64), np.zeros(size)
    position = document = 0
    for chunk in scope.chunks():
        numbers = words.by_type[chunk.segment][chunk.types]
        _pass(numbers, chunk.starts, position, document, lengths, firsts, lasts, seen_in, documents, sums)
        position += len(numbers)
        document += len(chunk.starts)
    occurs = lasts >= 0
    around_the_end = firsts[occurs] + scope.tokens - lasts[occurs]
    sums[occurs] += np.minimum(around_the_end, lengths[occurs])
    return Spreads(documents, sums / lengths)


@kernel(
    NOTHING, IDS, STARTS, NUMBER, NUMBER, _LENGTHS, NEW_STARTS, NEW_STARTS, NEW_STARTS, NEW_STARTS, FLOATS
)
def _pass(
    numbers: Ids,
    starts: Starts,
    position: int,
    document: int,
    lengths: Floats,
    firsts: Starts,
    lasts: Starts,
    seen_in: Starts,
    documents: Starts,
    sums: Floats,
) -> None:
    """Add the tokens of whole documents; `position` and `document` are the numbers of the first ones."""
    for which in range(len(starts)):
        end = starts[which + 1] if which + 1 < len(starts) else len(numbers)
        for place in range(starts[which], end):
            value = numbers[place]
            here = position + place
            if lasts[value] < 0:
                firsts[value] = here
            else:
                sums[value] += min(np.float64(here - lasts[value]), lengths[value])
            lasts[value] = here
            if seen_in[value] != document + which:
                seen_in[value] = document + which
                documents[value] += 1
