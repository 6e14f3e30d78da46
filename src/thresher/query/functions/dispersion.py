"""Dispersion: whether hits are everywhere, or in few places."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import types
from numpy.typing import NDArray

from thresher.query.found import Index, Search
from thresher.query.functions import subcorpora
from thresher.query.functions.scope import Scope, Vocabulary, document_numbers
from thresher.query.functions.tables import FunctionError, Table
from thresher.query.packing import IDS, NEW_STARTS, STARTS, Ids, Starts
from thresher.read.scan.kernel import FLOATS, NOTHING, NUMBER, kernel

Floats = NDArray[np.float64]

_LENGTHS = types.Array(types.float64, 1, "C", readonly=True)


def dispersion(index: Index, search: Search, *, parts: str | int = "doc", within: str | None = None) -> Table:
    """Average reduced frequency of the hits, Juilland's D and Gries' DP over documents, or so many equal parts."""
    if parts != "doc" and (not isinstance(parts, int) or parts < 1):
        raise FunctionError(f"parts = {parts!r} cannot be; try parts = doc, or a number of equal parts")
    scope = subcorpora.scope(index, within)
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
    return Table(pa.table(row), search.stopped)


def _found(scope: Scope, search: Search) -> tuple[Starts, Starts]:
    """Where hits are among all tokens that count, and how many there are in each document."""
    places = [np.zeros(0, np.int64)]
    by_document = [np.zeros(len(mask), np.int64) for mask in scope.masks]
    for number, hits in scope.stream(search):
        places.append(scope.places(number, hits.firsts))
        owners = document_numbers(scope.index.segments[number], hits.firsts)
        by_document[number] += np.bincount(owners, minlength=len(by_document[number]))
    return np.concatenate(places), np.concatenate([np.zeros(0, np.int64), *by_document])


def arf_of(places: Starts, tokens: int) -> float:
    """Average reduced frequency of things at some places, in order, among so many tokens in a ring.

    Savický and Hlaváčová: cut the ring into as many parts as there are things, all of one length, and count the
    parts that have one; the mean over all ways to cut is (1/v) Σ min(distance to the one before, v), with v the
    length of a part.
    """
    if not len(places):
        return 0.0
    length = tokens / len(places)
    distances = np.diff(places, prepend=places[-1] - tokens)
    return float(np.minimum(distances, length).sum() / length)


def juilland(counts: Starts, sizes: Starts) -> float | None:
    """Juilland's D: 1 for the same frequency in all parts, 0 for all hits in one; None where it is not defined.

    Parts may be of different sizes, so it is that of relative frequencies.
    """
    rates = counts / sizes
    if len(rates) < 2 or not rates.any():
        return None
    return float(1 - rates.std() / rates.mean() / np.sqrt(len(rates) - 1))


def deviation(counts: Starts, sizes: Starts) -> tuple[float | None, float | None]:
    """Gries' DP, from 0 for hits as the sizes of parts let expect to nearly 1; and stretched to reach 1."""
    if not counts.any():
        return None, None
    shares = sizes / sizes.sum()
    dp = float(np.abs(counts / counts.sum() - shares).sum() / 2)
    return dp, dp / (1 - float(shares.min())) if len(sizes) > 1 else None


# of all values at once


class Spreads(NamedTuple):
    """By value."""

    documents: Starts
    arf: Floats


def spreads(scope: Scope, words: Vocabulary, counts: Starts) -> Spreads:
    """Documents and average reduced frequency of all values at once, in one pass over the tokens."""
    size = len(counts)
    lengths = scope.tokens / np.maximum(counts, 1)
    firsts, lasts, seen_in = (np.full(size, -1, np.int64) for _ in range(3))
    documents, sums = np.zeros(size, np.int64), np.zeros(size)
    position = document = 0
    for piece in scope.pieces():
        numbers = words.by_type[piece.segment][piece.types]
        _pass(numbers, piece.starts, position, document, lengths, firsts, lasts, seen_in, documents, sums)
        position += len(numbers)
        document += len(piece.starts)
    there = lasts >= 0
    round_the_end = firsts[there] + scope.tokens - lasts[there]
    sums[there] += np.minimum(round_the_end, lengths[there])
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
    """Follow the tokens of whole documents; positions and documents are counted on from those before."""
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
