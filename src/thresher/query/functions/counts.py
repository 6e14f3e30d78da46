"""How many hits there are: in all, by what stands at a place of them, and by parts of the corpus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thresher.query.found import Index, Search
from thresher.query.functions import subcorpora
from thresher.query.functions.places import NO_VALUE, Place, read_place, values_at
from thresher.query.functions.scope import Scope, document_numbers, structure_in
from thresher.query.functions.tables import MILLION, Table, first, one_of, ordered, summed
from thresher.query.functions.windows import spelled


def count(index: Index, search: Search, *, within: str | None = None, documents: bool = True) -> Table:
    """Hits, how many that are per million tokens, and the documents that have one.

    Without `documents`, hits of a plain query are counted but not looked at, which is much faster.
    """
    scope = subcorpora.scope(index, within)
    if documents or within is not None:
        by_segment = scope.hits(search)
        hits = sum(map(len, by_segment))
        found = sum(
            len(np.unique(document_numbers(segment, some.firsts)))
            for segment, some in zip(index.segments, by_segment, strict=True)
        )
    else:
        hits, found = search.count(), None
    row = {
        "hits": pa.array([hits], pa.int64()),
        "per_million": pa.array([hits * MILLION / max(scope.tokens, 1)]),
        "documents": pa.array([found], pa.int64()),
        "tokens": pa.array([scope.tokens], pa.int64()),
    }
    return Table(pa.table(row), search.stopped)


def freq(
    index: Index,
    search: Search,
    *,
    by: str = "word@node",
    within: str | None = None,
    minimum: int = 1,
    limit: int | None = None,
) -> Table:
    """What stands at a place of the hits, and how often; `share` is of all hits.

    A hit whose document does not reach to that place counts for no value.
    """
    scope, place = subcorpora.scope(index, within), read_place(by)
    parts, total = [], 0
    for number, some in scope.stream(search):
        numbers, values = values_at(index, index.segments[number], some, place)
        parts.append(_counted(numbers[numbers != NO_VALUE], values))
        total += len(some)
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
    """So many for each of a whole; of nothing, none."""
    share = np.asarray(counts, np.float64) * times / np.maximum(np.asarray(whole, np.float64), 1)
    return pa.array(share)


def table(
    index: Index,
    search: Search,
    *,
    rows: str = "word@match",
    columns: str = "word@matchend",
    within: str | None = None,
    minimum: int = 1,
    limit: int | None = None,
) -> Table:
    """What stands at two places of the hits, and how often both are together: a row for every pair."""
    scope, one, other = subcorpora.scope(index, within), read_place(rows), read_place(columns)
    parts = _pairs(index, scope, search, one, other)
    found = summed(parts, ["value1", "value2"])
    found = ordered(found.filter(pc.field("count") >= minimum), "count", ("value1", "value2"))
    return first(found, limit, search.stopped)


def _pairs(index: Index, scope: Scope, search: Search, one: Place, other: Place) -> Iterator[pa.Table]:
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
    search: Search,
    *,
    by: str,
    within: str | None = None,
    minimum: int = 0,
    limit: int | None = None,
) -> Table:
    """Hits by an attribute of structures, such as `doc_year`, and how many that are per million tokens there.

    `tokens` are those of all structures with that value, whether they have a hit or not.
    """
    known = (f"{name}_{one}" for name, names in index.structures.items() for one in names)
    structure, _, attribute = one_of(by, known, "attribute of structures").partition("_")
    scope = subcorpora.scope(index, within)
    parts = [_sizes(scope, number, structure, attribute) for number in range(len(index.segments))]
    for number, hits in scope.stream(search):
        found = _counted(*values_at(index, index.segments[number], hits, Place(by)))
        none = pa.array(np.zeros(found.num_rows, np.int64))
        parts.append(pa.table({"value": found["value"], "hits": found["count"], "tokens": none}))
    rows = summed(parts, ["value"], ["hits", "tokens"])
    rows = rows.append_column("per_million", _rate(rows["hits"], rows["tokens"], MILLION))
    return first(ordered(rows.filter(pc.field("hits") >= minimum), "hits"), limit, search.stopped)


def _sizes(scope: Scope, number: int, structure: str, attribute: str) -> pa.Table:
    """The tokens of all structures with each value; those outside of all belong to the empty one."""
    segment, rest = scope.index.segments[number], int(scope.lengths(number).sum())
    values, sums = pa.array([], pa.string()), np.zeros(0, np.int64)
    regions = structure_in(segment, structure)
    if regions is not None and attribute in regions.attributes:
        counts = scope.masks[number][document_numbers(segment, regions.firsts.astype(np.int64))]
        lengths = np.where(counts, regions.nexts.astype(np.int64) - regions.firsts, 0)
        told = segment.values(structure, attribute)
        values = told.values
        sums = np.bincount(told.numbers, weights=lengths, minlength=len(values)).astype(np.int64)
    sums = np.append(sums, rest - sums.sum())
    rows = {
        "value": pa.concat_arrays([values, pa.array([""], pa.string())]),
        "hits": pa.array(np.zeros(len(sums), np.int64)),
        "tokens": pa.array(sums),
    }
    return pa.table(rows).filter(pc.field("tokens") > 0)
