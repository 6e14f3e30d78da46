"""Build a segment of an index from documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct
from numpy.typing import NDArray

from thresher.files.durable_files import sync_directory
from thresher.search.encoding import lexicon
from thresher.search.encoding.array_file import ArrayFileWriter
from thresher.search.encoding.bit_slices import WIDEST, pack_slices
from thresher.search.encoding.bitpacking import Ids, Starts
from thresher.search.encoding.postings import pack_postings
from thresher.search.encoding.ranges import cuts, spread
from thresher.search.encoding.token_column import counted, pack_column
from thresher.search.index.interner import Interner, Texts
from thresher.search.index.segment import DOCUMENT, LISTED, TOKENS
from thresher.store.token_lines import CLOSES, OPENS

KEY = "key"  # column of documents: the key that identifies them
SEQUENCE = "sequence"  # column of documents: their number in the order in which they came
OWN_COLUMNS = (KEY, SEQUENCE)
LOWERCASE = "lc"  # attribute of tokens: the word in lower case
STRUCTURES_AT_A_TIME = 1 << 20  # structures that are moved in one step, which bounds the memory
INPUT = "input"  # order of documents: as they came


class IndexDocument(Struct, frozen=True):
    """A document for the index."""

    key: int  # 64 bits that identify it
    lines: bytes  # tokens and structures
    attributes: tuple[str, ...]  # of a token, in the order of a line
    meta: Mapping[str, str] = {}  # attributes of the document
    dimensions: Mapping[str, float] = {}  # numbers by which it may be ranked


class Regions(NamedTuple):
    """The structures of one name in order, with their attributes."""

    firsts: Starts | Ids
    nexts: Starts | Ids
    attributes: dict[str, pa.Array[Any]]


class TypeValues(NamedTuple):
    """An attribute of tokens: its values in order, and the number of the value by type."""

    values: list[str]
    numbers: Ids


class GatheredSegment(NamedTuple):
    """The content of a segment before it is written."""

    ids: Ids  # the type of every token; the most frequent types have the smallest numbers
    attributes: dict[str, TypeValues]
    structures: Iterable[tuple[str, Regions]]  # made one by one while they are written
    dimensions: dict[str, NDArray[np.float32]]


class SegmentGatherer:
    """Collects documents until they are enough for a segment."""

    def __init__(self, attributes: tuple[str, ...], sequence: int = 0, *, lowercase: bool = False) -> None:
        """Begin a segment; `sequence` is the number of its first document in the order of coming."""
        self.attributes = attributes
        self._lowercase = lowercase and LOWERCASE not in attributes
        self.tokens = 0
        self.documents: list[IndexDocument] = []
        self._sequence = sequence
        self._interner = Interner()
        self._lengths: list[int] = []
        self._ids: list[Ids] = []
        self._events: list[Ids] = []
        self._places: list[Starts] = []

    def add(self, document: IndexDocument) -> None:
        """Add a document; one without tokens is left out."""
        encoded = self._interner.add(document.lines)
        if not len(encoded.tokens):
            return
        self.documents.append(IndexDocument(document.key, b"", (), document.meta, document.dimensions))
        self._lengths.append(len(encoded.tokens))
        self._ids.append(encoded.tokens)
        self._events.append(encoded.events)
        self._places.append(encoded.places + self.tokens)
        self.tokens += len(encoded.tokens)

    def gathered(self, order: str = INPUT) -> GatheredSegment:
        """Return the content of the segment, its documents ordered by a dimension or as they came."""
        lines = self._interner.lines()
        ids = np.concatenate([*self._ids, np.zeros(0, np.uint32)])
        self._ids.clear()
        attributes, ranks = _ranked(lines, counted(ids, len(lines)), self.attributes)
        if self._lowercase:  # depends on the word alone, so the number of types stays the same
            attributes[LOWERCASE] = _lowered(attributes[self.attributes[0]])
        lengths = np.array(self._lengths, np.int64)
        documents = Regions(
            np.cumsum(lengths) - lengths,
            np.cumsum(lengths),
            _document_columns(self.documents, self._sequence),
        )
        dimensions = _dimensions(self.documents, lengths)
        moves = StructureMoves(documents, ranking(documents, dimensions, order))
        structures = _regions(lines, self._events, self._places)
        return GatheredSegment(
            ranks[moves.tokens(ids)],
            attributes,
            ((name, moves.regions(found)) for name, found in {**structures, DOCUMENT: documents}.items()),
            {name: values[moves.sequence] for name, values in dimensions.items()},
        )


def _ranked(lines: Texts, counts: Ids, names: tuple[str, ...]) -> tuple[dict[str, TypeValues], Ids]:
    """Return the attributes of the types, most frequent first, and the type of each line that is a token."""
    (tokens,) = np.nonzero(counts)
    encoded = _completed(lines.take(tokens), len(names)).dictionary_encode()
    owners, distinct = np.asarray(encoded.indices, np.int64), encoded.dictionary
    frequencies = np.bincount(owners, weights=counts[tokens], minlength=len(distinct)).astype(np.int64)
    # The tab sorts before all letters, so lines sort like their values.
    order = pc.sort_indices(
        pa.table({"frequency": frequencies, "line": distinct}),
        sort_keys=[("frequency", "descending"), ("line", "ascending")],
    )
    values = cast(Texts, pc.split_pattern(distinct.take(order), "\t").flatten())
    attributes = {
        name: _type_values(values.take(np.arange(place, len(values), len(names))))
        for place, name in enumerate(names)
    }
    places = np.empty(len(distinct), np.uint32)
    places[np.asarray(order, np.int64)] = np.arange(len(distinct), dtype=np.uint32)
    ranks = np.zeros(len(lines), np.uint32)
    ranks[tokens] = places[owners]
    return attributes, ranks


def _completed(lines: Texts, width: int) -> Texts:
    """Return lines of `width` values each; others are cut, or filled up with empty values."""
    if (np.asarray(pc.count_substring(lines, "\t")) == width - 1).all():
        return lines
    values = [line.split("\t") for line in cast(list[str], lines.to_pylist())]
    return pa.array(["\t".join([*one, *[""] * width][:width]) for one in values], pa.large_string())


def _type_values(by_type: Texts) -> TypeValues:
    encoded = by_type.dictionary_encode()
    # By bytes, which for UTF-8 is Python's order of texts as well.
    order = np.asarray(pc.sort_indices(encoded.dictionary), np.int64)
    numbers = np.empty(len(order), np.uint32)
    numbers[order] = np.arange(len(order), dtype=np.uint32)
    values = cast(list[str], encoded.dictionary.take(order).to_pylist())
    return TypeValues(values, numbers[np.asarray(encoded.indices, np.int64)])


def _lowered(words: TypeValues) -> TypeValues:
    low = [value.lower() for value in words.values]
    ordered = sorted(set(low))
    places = {value: number for number, value in enumerate(ordered)}
    return TypeValues(ordered, np.array([places[value] for value in low], np.uint32)[words.numbers])


def ranking(documents: Regions, dimensions: Mapping[str, NDArray[np.float32]], order: str) -> Starts:
    """Return the numbers of documents in an order: largest value of a dimension first; equal ones as they came."""
    came = np.asarray(documents.attributes[SEQUENCE], np.int64)
    if order == INPUT or order not in dimensions:
        return np.argsort(came, kind="stable")
    return np.lexsort((came, -dimensions[order]))


class StructureMoves:
    """A new order of documents, and the moves of tokens and structures that it takes."""

    def __init__(self, documents: Regions, sequence: Starts) -> None:
        """Prepare to put documents in the order of the numbers in `sequence`; other documents are dropped."""
        self.sequence = sequence
        self._firsts, self._nexts = documents.firsts, documents.nexts
        lengths = (self._nexts - self._firsts)[sequence]
        self._targets = np.full(len(self._firsts), -1, np.int64)
        self._targets[sequence] = np.cumsum(lengths) - lengths
        self.size = int(lengths.sum())
        self._is_unchanged = np.array_equal(sequence, np.arange(len(self._firsts)))

    def tokens(self, ids: Ids) -> Ids:
        """Return the types of tokens in the new order."""
        if self._is_unchanged and self.size == len(ids):
            return ids
        moved = np.empty(self.size, np.uint32)
        target = 0
        for first, after in zip(
            self._firsts[self.sequence].tolist(), self._nexts[self.sequence].tolist(), strict=True
        ):
            moved[target : target + after - first] = ids[first:after]
            target += after - first
        return moved

    def regions(self, regions: Regions) -> Regions:
        """Return structures, each of which lies in one document, at their new places."""
        dtype = regions.firsts.dtype  # with another type, numpy would copy the whole array to search it
        starts, ends = (
            np.searchsorted(regions.firsts, borders.astype(dtype))[self.sequence]
            for borders in (self._firsts, self._nexts)
        )
        shifts = (self._targets - self._firsts)[self.sequence]
        lengths = ends - starts
        firsts, nexts = (np.empty(int(lengths.sum()), np.uint32) for _ in range(2))
        taken = []
        at = 0
        for part in cuts(lengths, STRUCTURES_AT_A_TIME):
            rows, by = spread(starts[part], ends[part]), np.repeat(shifts[part], lengths[part])
            firsts[at : at + len(rows)] = regions.firsts[rows] + by
            nexts[at : at + len(rows)] = regions.nexts[rows] + by
            at += len(rows)
            if regions.attributes:
                taken.append(rows)
        attributes = {name: values.take(np.concatenate(taken)) for name, values in regions.attributes.items()}
        return Regions(firsts, nexts, attributes)


def _regions(lines: Texts, events: Sequence[Ids], places: Sequence[Starts]) -> dict[str, Regions]:
    """Return the structures that events open and close, by name."""
    every = np.concatenate([*events, np.zeros(0, np.uint32)])
    where = np.concatenate([*places, np.zeros(0, np.int64)])
    distinct = np.unique(every)
    tags = dict(zip(distinct.tolist(), cast(list[str], lines.take(distinct).to_pylist()), strict=True))
    names = {event: tag[1:].split("\t", 1)[0] for event, tag in tags.items()}
    found: dict[str, Regions] = {}
    for name in sorted(set(names.values())):
        of_name = [event for event in tags if names[event] == name]
        opens = np.isin(every, [event for event in of_name if tags[event].startswith(OPENS)])
        closes = np.isin(every, [event for event in of_name if tags[event].startswith(CLOSES)])
        firsts, nexts = where[opens], where[closes]
        full = nexts > firsts
        attributes = _tag_attributes(every[opens][full], tags)
        found[name] = Regions(firsts[full], nexts[full], attributes)
    return {name: regions for name, regions in found.items() if len(regions.firsts)}


def _tag_attributes(opened: Ids, tags: Mapping[int, str]) -> dict[str, pa.Array[Any]]:
    """Return the attributes of structures, from the tags that opened them."""
    distinct, numbers = np.unique(opened, return_inverse=True)
    parsed = [
        dict(part.partition("=")[::2] for part in tags[event].split("\t")[1:]) for event in distinct.tolist()
    ]
    names = sorted({name for attributes in parsed for name in attributes})
    return {
        name: pa.array([attributes.get(name, "") for attributes in parsed], pa.string()).take(numbers)
        for name in names
    }


def _document_columns(documents: Sequence[IndexDocument], sequence: int) -> dict[str, pa.Array[Any]]:
    names = sorted({name for document in documents for name in document.meta} - {*OWN_COLUMNS})
    columns: dict[str, pa.Array[Any]] = {
        name: pa.array([document.meta.get(name, "") for document in documents], pa.string()) for name in names
    }
    columns[KEY] = pa.array([document.key for document in documents], pa.uint64())
    columns[SEQUENCE] = pa.array(range(sequence, sequence + len(documents)), pa.int64())
    return columns


def _dimensions(documents: Sequence[IndexDocument], lengths: Starts) -> dict[str, NDArray[np.float32]]:
    names = sorted({name for document in documents for name in document.dimensions})
    found = {
        name: np.array([document.dimensions.get(name, 0.0) for document in documents], np.float32)
        for name in names
    }
    return {**found, "length": lengths.astype(np.float32)}


def write_segment(folder: Path, gathered: GatheredSegment) -> None:
    """Write a segment to a new folder. It is durable when the function returns."""
    folder.mkdir(parents=True)
    ids = gathered.ids
    types = max(len(column.numbers) for column in gathered.attributes.values())
    with ArrayFileWriter(folder / TOKENS) as arrays:
        counts = counted(ids, types)
        arrays.put("counts", counts)
        width = pack_column(ids, arrays.allocate).width
        arrays.put("posting_starts", pack_postings(ids, counts, LISTED, arrays.allocate).starts)
        widths: dict[str, int] = {}
        for name, (values, numbers) in gathered.attributes.items():
            lexicon.put(arrays, name, lexicon.build(values))
            arrays.put(f"{name}.values", numbers)
            bits = max(len(values) - 1, 1).bit_length()
            if bits <= WIDEST:
                widths[name] = bits
                pack_slices(ids, numbers, bits, arrays.allocator(f"{name}."))
        structures: dict[str, list[str]] = {}
        for name, regions in gathered.structures:
            if len(regions.firsts):
                _put_structure(arrays, folder, name, regions)
                structures[name] = [
                    attribute for attribute in regions.attributes if attribute not in OWN_COLUMNS
                ]
        for name, dimension in gathered.dimensions.items():
            arrays.put(f"dimension.{name}", dimension)
        arrays.describe(
            tokens=len(ids),
            width=width,
            attributes=list(gathered.attributes),
            planes=widths,
            structures=structures,
            dimensions=list(gathered.dimensions),
        )
    sync_directory(folder)


def _put_structure(arrays: ArrayFileWriter, folder: Path, name: str, regions: Regions) -> None:
    """Write the structures of a name, and a table of their attributes."""
    firsts, nexts = regions.firsts, regions.nexts
    if (firsts[1:] == nexts[:-1]).all():
        arrays.put(f"{name}.firsts", np.concatenate([firsts, nexts[-1:]]))
    else:
        arrays.put(f"{name}.firsts", firsts)
        arrays.put(f"{name}.nexts", nexts)
    if regions.attributes:
        with (folder / f"{name}.parquet").open("wb") as file:
            pq.write_table(pa.table(dict(regions.attributes)), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
