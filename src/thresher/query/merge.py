"""Segments made into one: the same documents, in one order, without those that were deleted."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.query.build import Gathered, Moves, Regions, TypeValues, ranking, write_segment
from thresher.query.columns import counted, unpack
from thresher.query.lexicon import texts
from thresher.query.packing import Ids, Starts
from thresher.query.segment import DOCUMENT, Segment
from thresher.query.shelf import mapped

AT_ONCE = 1 << 24  # tokens that are in memory


def merge(segments: Sequence[Segment], order: str, folder: Path) -> None:
    """Write one segment of all documents of several that were not deleted, in an order."""
    shifts = np.cumsum([0, *(segment.size for segment in segments)])
    documents = _joined(segments, shifts, DOCUMENT)
    dimensions = _dimensions(segments)
    order_of = ranking(documents, dimensions, order)
    gone = _deleted(segments)
    moves = Moves(documents, order_of[~gone[order_of]])
    attributes, ranks = _types(segments)
    folder.parent.mkdir(parents=True, exist_ok=True)
    ids = _tokens(segments, shifts, documents, moves, ranks, folder.parent)
    attributes, ids = _still_there(attributes, ids)
    names = dict.fromkeys(name for segment in segments for name in segment.structures)
    write_segment(
        folder,
        Gathered(
            ids,
            attributes,
            ((name, moves.regions(_joined(segments, shifts, name))) for name in names),
            {name: values[moves.sequence] for name, values in dimensions.items()},
        ),
    )


def _deleted(segments: Sequence[Segment]) -> NDArray[np.bool_]:
    parts = []
    for segment in segments:
        gone = np.zeros(len(segment.structures[DOCUMENT].firsts), np.bool_)
        gone[segment.deleted] = True
        parts.append(gone)
    return np.concatenate(parts)


def _joined(segments: Sequence[Segment], shifts: Starts, name: str) -> Regions:
    """The structures of a kind of all segments, one segment behind the other."""
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
    """The types of all segments, the most frequent first, and what each type of each segment is among them."""
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
    """The value of an attribute of every type of all segments, by number, and these values in order."""
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
    moves: Moves,
    ranks: Sequence[Ids],
    folder: Path,
) -> Ids:
    """The types of all tokens as they will stand."""
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


def _still_there(attributes: dict[str, TypeValues], ids: Ids) -> tuple[dict[str, TypeValues], Ids]:
    """Types and values that some token has; deleted documents leave nothing behind, and ranks are those of now."""
    kinds = len(next(iter(attributes.values())).numbers)
    counts = counted(ids, kinds).astype(np.int64)
    order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    ranks = np.zeros(kinds, np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    found = {}
    for name, (values, numbers) in attributes.items():
        left, again = np.unique(numbers[order], return_inverse=True)
        found[name] = TypeValues([values[number] for number in left.tolist()], again.astype(np.uint32))
    for start in range(0, len(ids), AT_ONCE):
        ids[start : start + AT_ONCE] = ranks[ids[start : start + AT_ONCE]]
    return found, ids


def _scratch(size: int, folder: Path) -> Ids:
    """Room for so many numbers; for many of them in a file, which is gone when nobody needs it any more."""
    if size <= AT_ONCE:
        return np.empty(size, np.uint32)
    with tempfile.TemporaryFile(dir=folder) as file:
        return mapped(file, np.uint32, 0, size)
