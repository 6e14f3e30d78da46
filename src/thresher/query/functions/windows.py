"""What stands round hits: windows of tokens that never leave a document, and texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.query.columns import pick
from thresher.query.found import Index
from thresher.query.functions.scope import PIECE, structure_in
from thresher.query.functions.tables import FunctionError, one_of
from thresher.query.packing import Ids, Starts
from thresher.query.search import Hits
from thresher.query.segment import DOCUMENT, Segment
from thresher.query.stretches import cuts, spread

Window = tuple[int, int] | str  # from so many tokens to so many: -5, 5; or a structure: "s"


class Sides(NamedTuple):
    """The stretches left and right of hits, each from a position to before another; neither has of the hit."""

    left_starts: Starts
    left_ends: Starts
    right_starts: Starts
    right_ends: Starts


def sides(index: Index, segment: Segment, hits: Hits, window: Window) -> Sides:
    """The windows round hits of a segment: they end where the document of the hit ends, or its structure."""
    firsts, lasts = hits.firsts, hits.lasts
    if isinstance(window, str):
        name = one_of(window, index.structures, "structure")
        left_starts, right_ends = _borders(segment, name, firsts, lasts)
        return Sides(left_starts, firsts, lasts + 1, right_ends)
    left_starts, right_ends = _borders(segment, DOCUMENT, firsts, lasts)
    least, most = window
    if least > most:
        raise FunctionError(f"a window from {least} to {most} has no tokens; try {most},{least}")
    starts = np.maximum(firsts + min(least, 0), left_starts)
    ends = np.minimum(lasts + 1 + max(most, 0), right_ends)
    return Sides(
        starts,
        np.maximum(firsts + min(most + 1, 0), starts),
        np.minimum(lasts + max(least, 1), ends),
        ends,
    )


def _borders(segment: Segment, name: str, firsts: Starts, lasts: Starts) -> tuple[Starts, Starts]:
    """Where the structures begin that the first tokens lie in, and where those of the last ones end.

    What lies in none has nothing round it.
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
    """The types of all tokens in stretches; as many at once as fit into memory."""
    for some in cuts(ends - starts, PIECE):
        yield pick(segment.column, spread(starts[some], ends[some]).astype(np.uint32))


def has_one(places: Starts, starts: Starts, ends: Starts) -> NDArray[np.bool_]:
    """Which stretches have at least one of some places, which are in order."""
    return np.searchsorted(places, ends) > np.searchsorted(places, starts)


def texts(index: Index, segment: Segment, starts: Starts, ends: Starts, attribute: str) -> pa.StringArray:
    """The tokens of stretches, told by an attribute, with spaces between them."""
    tokens = spelled(*index.value(attribute, segment, spread(starts, ends)))
    return joined(tokens, np.maximum(ends - starts, 0))


def joined(tokens: pa.StringArray, lengths: Starts) -> pa.StringArray:
    """So many tokens each with spaces between them."""
    offsets: Any = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    texts: Any = pc.binary_join(pa.ListArray.from_arrays(offsets, tokens), " ")
    return cast(pa.StringArray, texts)


def spelled(numbers: NDArray[Any], values: pa.StringArray) -> pa.StringArray:
    """Values by their numbers; what has none is empty."""
    places: Any = pa.array(numbers, pa.int64(), mask=numbers < 0)
    return cast(pa.StringArray, values.take(places).fill_null(""))
