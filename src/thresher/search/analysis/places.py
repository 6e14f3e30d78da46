"""Places of a hit at which a value is read: `lemma@match`, `pos@match[-1]`, `word@target`, `doc_year`."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from thresher.search.analysis.scope import document_numbers
from thresher.search.analysis.tables import AnalysisError
from thresher.search.analysis.windows import texts
from thresher.search.encoding.bitpacking import Starts
from thresher.search.execution.segment_search import Hits
from thresher.search.index.segment import Segment
from thresher.search.searcher import AttributeValues, Index

NODE = "node"  # the whole match, as a text
NO_VALUE = -1

_WRITTEN = re.compile(
    r"(?P<name>[^@\s]+?)(?:@(?P<anchor>match|matchend|target|node)(?:\[(?P<steps>[+-]?[0-9]{1,9})\])?)?"
)


class HitPlace(NamedTuple):
    """An attribute at a token of a hit, or at a distance from one."""

    attribute: str
    anchor: str = "match"
    steps: int = 0


def read_place(written: str) -> HitPlace:
    """Parse a place; without an anchor it is the first token of the match. Raises AnalysisError."""
    found = _WRITTEN.fullmatch(written)
    if not found or (found["anchor"] == NODE and found["steps"]):
        raise AnalysisError(
            f"invalid place {written!r}; choose from word@match, word@matchend, word@match[1], word@match[-1], "
            "word@target, word@node and attributes of structures, such as doc_year"
        )
    return HitPlace(found["name"], found["anchor"] or "match", int(found["steps"] or 0))


def place_in(index: Index, written: str) -> HitPlace:
    """Parse a place; raise AnalysisError or CqlError if it is no place or names no attribute of the index."""
    place = read_place(written)
    for segment in index.segments[:1]:
        index.value(place.attribute, segment, np.zeros(0, np.int64))  # also if there are no hits
    return place


def values_at(index: Index, segment: Segment, hits: Hits, place: HitPlace) -> AttributeValues:
    """Return the value at a place of every hit, or no value if the place is outside the hit's document.

    A token without a value, such as one outside all structures, has the empty value.
    """
    if not len(hits):
        return AttributeValues(np.zeros(0, np.int64), pa.array([], pa.string()))
    if place.anchor == NODE:
        return _nodes(index, segment, hits, place.attribute)
    anchors = _anchors(hits, place.anchor)
    positions = anchors + place.steps
    is_there = (anchors >= 0) & (positions >= 0) & (positions < segment.size)  # a target may be missing
    inside = np.where(is_there, positions, 0)
    if place.steps:
        is_there &= document_numbers(segment, inside) == document_numbers(segment, np.maximum(anchors, 0))
    numbers, values = _with_empty(*index.value(place.attribute, segment, inside))
    return AttributeValues(np.where(is_there, numbers, NO_VALUE), values)


def _anchors(hits: Hits, anchor: str) -> Starts:
    if anchor == "target":
        if hits.targets is None:
            raise AnalysisError("the query has no target; mark a token of it: @[…]")
        return hits.targets
    return hits.firsts if anchor == "match" else hits.lasts


def _with_empty(numbers: Starts, values: pa.StringArray) -> tuple[Starts, pa.StringArray]:
    if (numbers >= 0).all():
        return numbers, values
    empty = pa.array([""], pa.string())
    return np.where(numbers >= 0, numbers, len(values)), pa.concat_arrays([values, empty])


def _nodes(index: Index, segment: Segment, hits: Hits, attribute: str) -> AttributeValues:
    """Return whole matches as texts; matches of the same tokens are put together once."""
    lengths = hits.lasts - hits.firsts + 1
    numbers = np.empty(len(hits), np.int64)
    texts_of_kinds: list[pa.StringArray] = []
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
        texts_of_kinds.append(texts(index, segment, starts, starts + length, attribute))
        numbers[some] = kinds + known
        known += len(examples)
    return AttributeValues(numbers, pa.concat_arrays(texts_of_kinds))
