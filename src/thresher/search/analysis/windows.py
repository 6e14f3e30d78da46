"""Windows of tokens around hits, which never leave the document, and texts of token ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.search.analysis.scope import CHUNK_POSITIONS, structure_in
from thresher.search.analysis.tables import AnalysisError, one_of
from thresher.search.encoding.bitpacking import Ids, Starts
from thresher.search.encoding.ranges import cuts, spread
from thresher.search.encoding.token_column import pick
from thresher.search.execution.segment_search import Hits
from thresher.search.index.segment import DOCUMENT, Segment
from thresher.search.searcher import Index

# First and last offset in tokens, such as (-5, 5) or "-5,5"; or a structure, such as "s".
Window = tuple[int, int] | str
MAX_OFFSET = 1_000_000_000  # no document is that long


def window_of(window: Window) -> Window:
    """Return a window as two numbers or as the name of a structure.

    >>> window_of("-3,3"), window_of((-3, 3)), window_of("s")
    ((-3, 3), (-3, 3), 's')
    """
    if isinstance(window, str) and "," not in window:
        return window
    try:
        first, last = map(int, window.split(",") if isinstance(window, str) else window)
    except (TypeError, ValueError):
        raise AnalysisError(_bad_window(window)) from None
    if max(abs(first), abs(last)) > MAX_OFFSET:
        raise AnalysisError(_bad_window(window))
    if first > last:
        raise AnalysisError(f"the window {first},{last} has no tokens; try {last},{first}")
    return first, last


def checked_window(index: Index, window: Window) -> Window:
    """Return a window as `window_of`; raise AnalysisError for a structure that the index does not have."""
    found = window_of(window)
    if isinstance(found, str) and index.segments:
        one_of(found, index.structures, "structure")
    return found


def _bad_window(window: object) -> str:
    return f"a window must be two offsets, such as -5,5, or a structure, such as s; got {str(window)[:40]}"


class Sides(NamedTuple):
    """The ranges `[start, end)` left and right of each hit, without tokens of the hit."""

    left_starts: Starts
    left_ends: Starts
    right_starts: Starts
    right_ends: Starts


def sides(segment: Segment, hits: Hits, window: Window) -> Sides:
    """Return the windows around hits of a segment, from `checked_window`; they end with document or structure."""
    firsts, lasts = hits.firsts, hits.lasts
    if isinstance(window, str):
        left_starts, right_ends = _borders(segment, window, firsts, lasts)
        return Sides(left_starts, firsts, lasts + 1, right_ends)
    left_starts, right_ends = _borders(segment, DOCUMENT, firsts, lasts)
    least, most = window
    starts = np.maximum(firsts + min(least, 0), left_starts)
    ends = np.minimum(lasts + 1 + max(most, 0), right_ends)
    return Sides(
        starts,
        np.maximum(firsts + min(most + 1, 0), starts),
        np.minimum(lasts + max(least, 1), ends),
        ends,
    )


def _borders(segment: Segment, name: str, firsts: Starts, lasts: Starts) -> tuple[Starts, Starts]:
    """Return the beginnings of the structures around first tokens, and the ends of the ones around last tokens.

    A hit outside all structures has empty windows.
    """
    structure = structure_in(segment, name)
    if structure is None:
        return firsts, lasts + 1
    left, right = segment.structures[name].around(firsts), segment.structures[name].around(lasts)
    return (
        np.where(left >= 0, structure.firsts[left].astype(np.int64), firsts),
        np.where(right >= 0, structure.nexts[right].astype(np.int64), lasts + 1),
    )


def types_in(segment: Segment, starts: Starts, ends: Starts) -> Iterator[Ids]:
    """Yield the types of all tokens in ranges, in portions that fit into memory."""
    for part in cuts(ends - starts, CHUNK_POSITIONS):
        yield pick(segment.column, spread(starts[part], ends[part]).astype(np.uint32))


def has_one(places: Starts, starts: Starts, ends: Starts) -> NDArray[np.bool_]:
    """Return a mask of the ranges that contain at least one of some sorted places."""
    return np.searchsorted(places, ends) > np.searchsorted(places, starts)


def texts(index: Index, segment: Segment, starts: Starts, ends: Starts, attribute: str) -> pa.StringArray:
    """Return the tokens of ranges as texts: their values of an attribute with spaces between them."""
    tokens = spelled(*index.value(attribute, segment, spread(starts, ends)))
    return joined(tokens, np.maximum(ends - starts, 0))


def joined(tokens: pa.StringArray, lengths: Starts) -> pa.StringArray:
    """Join tokens to texts of the given numbers of tokens, with spaces between them."""
    offsets: Any = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    texts: Any = pc.binary_join(pa.ListArray.from_arrays(offsets, tokens), " ")
    return cast(pa.StringArray, texts)


def spelled(numbers: NDArray[Any], values: pa.StringArray) -> pa.StringArray:
    """Return values by their numbers, "" for -1."""
    places: Any = pa.array(numbers, pa.int64(), mask=numbers < 0)
    return cast(pa.StringArray, values.take(places).fill_null(""))
