"""Where in a hit a value is read: `lemma@match`, `pos@match[-1]`, `word@target`, `word@node`, `doc_year`."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from thresher.query.found import Index, Values
from thresher.query.functions.scope import document_numbers
from thresher.query.functions.tables import FunctionError
from thresher.query.functions.windows import texts
from thresher.query.packing import Starts
from thresher.query.search import Hits
from thresher.query.segment import Segment

NODE = "node"  # the whole match, as a text
NO_VALUE = -1

_WRITTEN = re.compile(
    r"(?P<name>[^@\s]+?)(?:@(?P<anchor>match|matchend|target|node)(?:\[(?P<steps>[+-]?\d+)\])?)?"
)


class Place(NamedTuple):
    """An attribute at a token of a hit, or some steps from one."""

    attribute: str
    anchor: str = "match"
    steps: int = 0


def read_place(written: str) -> Place:
    """A place as people write it; without one it is the first token of the match."""
    found = _WRITTEN.fullmatch(written)
    if not found or (found["anchor"] == NODE and found["steps"]):
        raise FunctionError(
            f"{written} is no place; try word@match, word@matchend, word@match[1], word@match[-1], word@target, "
            "word@node or an attribute of a structure, such as doc_year"
        )
    return Place(found["name"], found["anchor"] or "match", int(found["steps"] or 0))


def values_at(index: Index, segment: Segment, hits: Hits, place: Place) -> Values:
    """The values at a place of every hit; a hit whose document has no such place has none.

    Where a token has no value, as outside all structures, it is empty.
    """
    if not len(hits):
        return Values(np.zeros(0, np.int64), pa.array([], pa.string()))
    if place.anchor == NODE:
        return _nodes(index, segment, hits, place.attribute)
    anchors = _anchors(hits, place.anchor)
    positions = anchors + place.steps
    is_there = (anchors >= 0) & (positions >= 0) & (positions < segment.size)  # a target may be missing
    inside = np.where(is_there, positions, 0)
    if place.steps:
        is_there &= document_numbers(segment, inside) == document_numbers(segment, np.maximum(anchors, 0))
    numbers, values = _with_empty(*index.value(place.attribute, segment, inside))
    return Values(np.where(is_there, numbers, NO_VALUE), values)


def _anchors(hits: Hits, anchor: str) -> Starts:
    if anchor == "target":
        if hits.targets is None:
            raise FunctionError("the query has no target; mark a token of it: @[…]")
        return hits.targets
    return hits.firsts if anchor == "match" else hits.lasts


def _with_empty(numbers: Starts, values: pa.StringArray) -> tuple[Starts, pa.StringArray]:
    if (numbers >= 0).all():
        return numbers, values
    empty = pa.array([""], pa.string())
    return np.where(numbers >= 0, numbers, len(values)), pa.concat_arrays([values, empty])


def _nodes(index: Index, segment: Segment, hits: Hits, attribute: str) -> Values:
    """Whole matches as texts; those that are alike are spelled once."""
    lengths = hits.lasts - hits.firsts + 1
    numbers = np.empty(len(hits), np.int64)
    found: list[pa.StringArray] = []
    known = 0
    for length in np.unique(lengths).tolist():
        some = np.flatnonzero(lengths == length)
        kinds = np.zeros(len(some), np.int64)
        for step in range(length):
            values = index.value(attribute, segment, hits.firsts[some] + step).numbers
            # Numbers stay below that of the hits, so that a pair of them fits into 64 bits.
            pairs = kinds * (int(values.max()) + 2) + values + 1
            _, kinds = np.unique(pairs, return_inverse=True)
        _, examples = np.unique(kinds, return_index=True)
        starts = hits.firsts[some][examples]
        found.append(texts(index, segment, starts, starts + length, attribute))
        numbers[some] = kinds + known
        known += len(examples)
    return Values(numbers, pa.concat_arrays(found))
