"""Numbers of hits: in all, by values at a place of the hits, and by parts of the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thresher.search.analysis import subcorpora
from thresher.search.analysis.places import NO_VALUE, HitPlace, place_in, values_at
from thresher.search.analysis.scope import DocumentScope, document_numbers, structure_in
from thresher.search.analysis.tables import MILLION, ResultTable, first, one_of, ordered, summed
from thresher.search.analysis.windows import spelled
from thresher.search.searcher import Index, RunningSearch


def count(
    index: Index, search: RunningSearch, *, within: str | None = None, documents: bool = True
) -> ResultTable:
    """Return the number of hits, their frequency per million tokens, and the number of documents with a hit.

    Without `documents`, hits of a plain query are counted without being listed, which is much faster.
    """
    scope = subcorpora.scope(index, within)
    if documents or within is not None:
        by_segment = scope.hits(search)
        hits = sum(map(len, by_segment))
        found = sum(
            len(np.unique(document_numbers(segment, in_segment.firsts)))
            for segment, in_segment in zip(index.segments, by_segment, strict=True)
        )
    else:
        hits, found = search.count(), None
    row = {
        "hits": pa.array([hits], pa.int64()),
        "per_million": pa.array([hits * MILLION / max(scope.tokens, 1)]),
        "documents": pa.array([found], pa.int64()),
        "tokens": pa.array([scope.tokens], pa.int64()),
    }
    return ResultTable(pa.table(row), search.stopped)


def freq(
    index: Index,
    search: RunningSearch,
    *,
    by: str = "word@node",
    within: str | None = None,
    minimum: int = 1,
    limit: int | None = None,
) -> ResultTable:
    """Return the values at a place of the hits with their frequencies; `share` is the part of all hits.

    A hit for which the place is outside its document has no value.
    """
    scope, place = subcorpora.scope(index, within), place_in(index, by)
    parts, total = [], 0
    for number, hits in scope.stream(search):
        numbers, values = values_at(index, index.segments[number], hits, place)
        parts.append(_counted(numbers[numbers != NO_VALUE], values))
        total += len(hits)
    rows = summed(parts, ["value"])
    rows = ordered(rows.filter(pc.field("count") >= minimum), "count")
    rows = rows.append_column("share", _rate(rows["count"], total))
    rows = rows.append_column("per_million", _rate(rows["count"], scope.tokens, MILLION))
    return first(rows, limit, search.stopped)


def _counted(numbers: np.ndarray, values: pa.StringArray) -> pa.Table:
    if len(values) < len(numbers):
        every = np.bincount(numbers, minlength=len(values))
        found = np.flatnonzero(every)
        counts = every[found]
    else:
        found, counts = np.unique(numbers, return_counts=True)
    return pa.table({"value": spelled(found, values), "count": pa.array(counts, pa.int64())})


def _rate(counts: Any, whole: Any, times: int = 1) -> pa.Array[Any]:
    """Return counts divided by a whole, 0 if the whole is 0."""
    share = np.asarray(counts, np.float64) * times / np.maximum(np.asarray(whole, np.float64), 1)
    return pa.array(share)


def table(
    index: Index,
    search: RunningSearch,
    *,
    rows: str = "word@match",
    columns: str = "word@matchend",
    within: str | None = None,
    minimum: int = 1,
    limit: int | None = None,
) -> ResultTable:
    """Return the pairs of values at two places of the hits with their frequencies."""
    scope, one, other = subcorpora.scope(index, within), place_in(index, rows), place_in(index, columns)
    parts = _pairs(index, scope, search, one, other)
    found = summed(parts, ["value1", "value2"])
    found = ordered(found.filter(pc.field("count") >= minimum), "count", ("value1", "value2"))
    return first(found, limit, search.stopped)


def _pairs(
    index: Index, scope: DocumentScope, search: RunningSearch, one: HitPlace, other: HitPlace
) -> Iterator[pa.Table]:
    for number, hits in scope.stream(search):
        segment = index.segments[number]
        numbers1, values1 = values_at(index, segment, hits, one)
        numbers2, values2 = values_at(index, segment, hits, other)
        both = (numbers1 != NO_VALUE) & (numbers2 != NO_VALUE)
        width = max(len(values2), 1)
        pairs, counts = np.unique(numbers1[both] * width + numbers2[both], return_counts=True)
        yield pa.table(
            {
                "value1": spelled(pairs // width, values1),
                "value2": spelled(pairs % width, values2),
                "count": pa.array(counts, pa.int64()),
            }
        )


def distribution(
    index: Index,
    search: RunningSearch,
    *,
    by: str,
    within: str | None = None,
    minimum: int = 0,
    limit: int | None = None,
) -> ResultTable:
    """Return hits by an attribute of structures, such as `doc_year`, with their frequency per million tokens.

    `tokens` are the tokens of all structures with a value, including structures without a hit.
    """
    known = (f"{name}_{one}" for name, names in index.structures.items() for one in names)
    structure, _, attribute = one_of(by, known, "attribute of structures").partition("_")
    scope = subcorpora.scope(index, within)
    parts = [_sizes(scope, number, structure, attribute) for number in range(len(index.segments))]
    for number, hits in scope.stream(search):
        found = _counted(*values_at(index, index.segments[number], hits, HitPlace(by)))
        none = pa.array(np.zeros(found.num_rows, np.int64))
        parts.append(pa.table({"value": found["value"], "hits": found["count"], "tokens": none}))
    rows = summed(parts, ["value"], ["hits", "tokens"])
    rows = rows.append_column("per_million", _rate(rows["hits"], rows["tokens"], MILLION))
    return first(ordered(rows.filter(pc.field("hits") >= minimum), "hits"), limit, search.stopped)


def _sizes(scope: DocumentScope, number: int, structure: str, attribute: str) -> pa.Table:
    """Return the number of tokens in structures of each value; tokens outside all structures have the empty one."""
    segment, rest = scope.index.segments[number], int(scope.lengths(number).sum())
    values, sums = pa.array([], pa.string()), np.zeros(0, np.int64)
    regions = structure_in(segment, structure)
    if regions is not None and attribute in regions.attributes:
        counts = scope.masks[number][document_numbers(segment, regions.firsts.astype(np.int64))]
        lengths = np.where(counts, regions.nexts.astype(np.int64) - regions.firsts, 0)
        numbers, values = segment.values(structure, attribute)
        sums = np.bincount(numbers, weights=lengths, minlength=len(values)).astype(np.int64)
    sums = np.append(sums, rest - sums.sum())
    rows = {
        "value": pa.concat_arrays([values, pa.array([""], pa.string())]),
        "hits": pa.array(np.zeros(len(sums), np.int64)),
        "tokens": pa.array(sums),
    }
    return pa.table(rows).filter(pc.field("tokens") > 0)
