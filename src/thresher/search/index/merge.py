"""Merge segments into one that has the same documents in one order, without deleted ones."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.search.encoding.array_file import mapped
from thresher.search.encoding.bitpacking import Ids, Starts
from thresher.search.encoding.lexicon import texts
from thresher.search.encoding.token_column import counted, unpack
from thresher.search.index.segment import DOCUMENT, Segment
from thresher.search.index.segment_builder import (
    GatheredSegment,
    Regions,
    StructureMoves,
    TypeValues,
    ranking,
    write_segment,
)

TOKENS_IN_MEMORY = 1 << 24  # the types of more tokens are kept in a file during the merge


def merge(segments: Sequence[Segment], order: str, folder: Path) -> None:
    """Write one segment of all documents of several segments that are not deleted, in an order."""
    shifts = np.cumsum([0, *(segment.size for segment in segments)])
    documents = _joined(segments, shifts, DOCUMENT)
    dimensions = _dimensions(segments)
    order_of = ranking(documents, dimensions, order)
    deleted = _deleted(segments)
    moves = StructureMoves(documents, order_of[~deleted[order_of]])
    attributes, ranks = _types(segments)
    folder.parent.mkdir(parents=True, exist_ok=True)
    ids = _tokens(segments, shifts, documents, moves, ranks, folder.parent)
    attributes, ids = _occurring(attributes, ids)
    names = dict.fromkeys(name for segment in segments for name in segment.structures)
    write_segment(
        folder,
        GatheredSegment(
            ids,
            attributes,
            ((name, moves.regions(_joined(segments, shifts, name))) for name in names),
            {name: values[moves.sequence] for name, values in dimensions.items()},
        ),
    )


def _deleted(segments: Sequence[Segment]) -> NDArray[np.bool_]:
    parts = []
    for segment in segments:
        deleted = np.zeros(len(segment.structures[DOCUMENT].firsts), np.bool_)
        deleted[segment.deleted] = True
        parts.append(deleted)
    return np.concatenate(parts)


def _joined(segments: Sequence[Segment], shifts: Starts, name: str) -> Regions:
    """Return the structures of a name of all segments, one segment after the other."""
    firsts, nexts, tables = [], [], []
    for segment, shift in zip(segments, shifts.astype(np.uint32), strict=False):
        if (structure := segment.structures.get(name)) is not None:
            firsts.append(structure.firsts + shift)
            nexts.append(structure.nexts + shift)
            tables.append(segment.table(name))
    table = pa.concat_tables(tables, promote_options="permissive")
    columns = {column: _full(table.column(column)) for column in table.column_names if column}
    return Regions(np.concatenate(firsts), np.concatenate(nexts), columns)


def _full(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    whole = column.combine_chunks()
    return whole.fill_null("") if pa.types.is_string(whole.type) else whole


def _dimensions(segments: Sequence[Segment]) -> dict[str, NDArray[np.float32]]:
    names = dict.fromkeys(name for segment in segments for name in segment.dimensions)
    return {
        name: np.concatenate(
            [
                segment.dimensions.get(name, np.zeros(len(segment.structures[DOCUMENT].firsts), np.float32))
                for segment in segments
            ]
        )
        for name in names
    }


def _types(segments: Sequence[Segment]) -> tuple[dict[str, TypeValues], list[Ids]]:
    """Return the types of all segments, most frequent first, and the new number of each type of each segment."""
    names = list(dict.fromkeys(name for segment in segments for name in segment.attributes))
    columns, values = [], {}
    for name in names:
        numbers, values[name] = _numbered(segments, name)
        columns.append(numbers)
    rows = np.stack(columns, 1)
    counts = np.concatenate([segment.counts for segment in segments]).astype(np.int64)
    distinct, owners = np.unique(rows, axis=0, return_inverse=True)
    totals = np.bincount(owners.ravel(), weights=counts).astype(np.int64)
    order = np.argsort(-totals, kind="stable")
    ranks = np.empty(len(order), np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    attributes = {
        name: TypeValues(values[name], distinct[order, place].astype(np.uint32))
        for place, name in enumerate(names)
    }
    bounds = np.cumsum([0, *(segment.types for segment in segments)]).tolist()
    return attributes, [ranks[owners.ravel()[start:end]] for start, end in pairwise(bounds)]


def _numbered(segments: Sequence[Segment], name: str) -> tuple[Starts, list[str]]:
    """Return the numbers of an attribute's values for the types of all segments, and the values in order."""
    lists = [
        texts(segment.attributes[name].lexicon.values) if name in segment.attributes else [""]
        for segment in segments
    ]
    ordered = sorted({value for values in lists for value in values})
    places = {value: number for number, value in enumerate(ordered)}
    numbers = []
    for segment, values in zip(segments, lists, strict=True):
        among = np.array([places[value] for value in values], np.int64)
        if name in segment.attributes:
            numbers.append(among[segment.attributes[name].values])
        else:
            numbers.append(np.full(segment.types, among[0], np.int64))
    return np.concatenate(numbers), ordered


def _tokens(
    segments: Sequence[Segment],
    shifts: Starts,
    documents: Regions,
    moves: StructureMoves,
    ranks: Sequence[Ids],
    folder: Path,
) -> Ids:
    """Return the types of all tokens in their new order."""
    ids = _scratch(moves.size, folder)
    owners = np.searchsorted(shifts, documents.firsts[moves.sequence], "right") - 1
    at = 0
    for number, owner in zip(moves.sequence.tolist(), owners.tolist(), strict=True):
        first, after = int(documents.firsts[number]), int(documents.nexts[number])
        shift = int(shifts[owner])
        ids[at : at + after - first] = ranks[owner][
            unpack(segments[owner].column, first - shift, after - shift)
        ]
        at += after - first
    return ids


def _occurring(attributes: dict[str, TypeValues], ids: Ids) -> tuple[dict[str, TypeValues], Ids]:
    """Remove types and values of deleted documents, and rank the others by their frequency now."""
    types = len(next(iter(attributes.values())).numbers)
    counts = counted(ids, types).astype(np.int64)
    order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    ranks = np.zeros(types, np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    found = {}
    for name, (values, numbers) in attributes.items():
        left, again = np.unique(numbers[order], return_inverse=True)
        found[name] = TypeValues([values[number] for number in left.tolist()], again.astype(np.uint32))
    for start in range(0, len(ids), TOKENS_IN_MEMORY):
        ids[start : start + TOKENS_IN_MEMORY] = ranks[ids[start : start + TOKENS_IN_MEMORY]]
    return found, ids


def _scratch(size: int, folder: Path) -> Ids:
    """Return an array for `size` numbers, in memory or in a temporary file that is deleted with the array."""
    if size <= TOKENS_IN_MEMORY:
        return np.empty(size, np.uint32)
    with tempfile.TemporaryFile(dir=folder) as file:
        return mapped(file, np.uint32, 0, size)
