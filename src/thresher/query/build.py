"""Documents made into a segment of an index."""

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

from thresher.query import lexicon
from thresher.query.columns import counted, pack_column
from thresher.query.interner import Interner, Texts
from thresher.query.packing import Ids, Starts
from thresher.query.planes import WIDEST, pack_planes
from thresher.query.postings import pack_postings
from thresher.query.segment import DOCUMENT, LISTED, TOKENS
from thresher.query.shelf import ShelfWriter
from thresher.query.stretches import cuts, spread
from thresher.store.files import sync_directory
from thresher.store.lines import CLOSES, OPENS

KEY, SEQUENCE = (
    "key",
    "sequence",
)  # columns of documents: what tells them apart, and the order in which they came
OWN_COLUMNS = (KEY, SEQUENCE)
LOWERCASE = "lc"  # the attribute that is the word in small letters
AT_ONCE = 1 << 20  # structures that are moved at a time
INPUT = "input"  # the order in which documents came


class Source(Struct, frozen=True):
    """A document to be indexed."""

    key: int  # 64 bits that no other document has
    lines: bytes  # its tokens and structures
    attributes: tuple[str, ...]  # of a token, in the order of a line
    meta: Mapping[str, str] = {}  # attributes of the document
    dimensions: Mapping[str, float] = {}  # what it may be ranked by


class Regions(NamedTuple):
    """The structures of one kind: stretches of tokens in order, and what is said of each."""

    firsts: Starts | Ids
    nexts: Starts | Ids
    attributes: dict[str, pa.Array[Any]]


class TypeValues(NamedTuple):
    """An attribute of tokens: its values in order, and which of them each type has."""

    values: list[str]
    numbers: Ids


class Gathered(NamedTuple):
    """All that a segment is made of."""

    ids: Ids  # the type of every token; the most frequent types come first
    attributes: dict[str, TypeValues]
    structures: Iterable[tuple[str, Regions]]  # each is made when it is asked for
    dimensions: dict[str, NDArray[np.float32]]


class Gatherer:
    """Collects documents until there are enough for a segment."""

    def __init__(self, attributes: tuple[str, ...], sequence: int = 0, *, lowercase: bool = False) -> None:
        """`sequence` is the number of the first document in the order in which all came."""
        self.attributes = attributes
        self._lowercase = lowercase and LOWERCASE not in attributes
        self.tokens = 0
        self.documents: list[Source] = []
        self._sequence = sequence
        self._interner = Interner()
        self._lengths: list[int] = []
        self._ids: list[Ids] = []
        self._events: list[Ids] = []
        self._places: list[Starts] = []

    def add(self, document: Source) -> None:
        found = self._interner.add(document.lines)
        if not len(found.tokens):  # nothing can be found in it
            return
        self.documents.append(Source(document.key, b"", (), document.meta, document.dimensions))
        self._lengths.append(len(found.tokens))
        self._ids.append(found.tokens)
        self._events.append(found.events)
        self._places.append(found.places + self.tokens)
        self.tokens += len(found.tokens)

    def gathered(self, order: str = INPUT) -> Gathered:
        """All documents, the best along a dimension first, or as they came."""
        lines = self._interner.lines()
        ids = np.concatenate([*self._ids, np.zeros(0, np.uint32)])
        self._ids.clear()
        attributes, ranks = _ranked(lines, counted(ids, len(lines)), self.attributes)
        if self._lowercase:  # it depends on the word alone, so there are no more types than before
            attributes[LOWERCASE] = _lowered(attributes[self.attributes[0]])
        lengths = np.array(self._lengths, np.int64)
        documents = Regions(
            np.cumsum(lengths) - lengths,
            np.cumsum(lengths),
            _document_columns(self.documents, self._sequence),
        )
        dimensions = _dimensions(self.documents, lengths)
        moves = Moves(documents, ranking(documents, dimensions, order))
        structures = _regions(lines, self._events, self._places)
        return Gathered(
            ranks[moves.tokens(ids)],
            attributes,
            ((name, moves.regions(found)) for name, found in {**structures, DOCUMENT: documents}.items()),
            {name: values[moves.sequence] for name, values in dimensions.items()},
        )


def _ranked(lines: Texts, counts: Ids, names: tuple[str, ...]) -> tuple[dict[str, TypeValues], Ids]:
    """The types of lines, the most frequent first, and the number of its type for each line that is a token."""
    (tokens,) = np.nonzero(counts)
    told = _completed(lines.take(tokens), len(names)).dictionary_encode()
    owners, distinct = np.asarray(told.indices, np.int64), told.dictionary
    frequencies = np.bincount(owners, weights=counts[tokens], minlength=len(distinct)).astype(np.int64)
    # No letter comes before the tab, so lines are in the order of their values.
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
    """Lines of so many values each: the others are cut, or filled up with empty ones."""
    if (np.asarray(pc.count_substring(lines, "\t")) == width - 1).all():
        return lines
    values = [line.split("\t") for line in cast(list[str], lines.to_pylist())]
    return pa.array(["\t".join([*one, *[""] * width][:width]) for one in values], pa.large_string())


def _type_values(by_type: Texts) -> TypeValues:
    told = by_type.dictionary_encode()
    order = np.asarray(pc.sort_indices(told.dictionary), np.int64)  # by bytes, as Python does by letters
    numbers = np.empty(len(order), np.uint32)
    numbers[order] = np.arange(len(order), dtype=np.uint32)
    values = cast(list[str], told.dictionary.take(order).to_pylist())
    return TypeValues(values, numbers[np.asarray(told.indices, np.int64)])


def _lowered(words: TypeValues) -> TypeValues:
    low = [value.lower() for value in words.values]
    ordered = sorted(set(low))
    places = {value: number for number, value in enumerate(ordered)}
    return TypeValues(ordered, np.array([places[value] for value in low], np.uint32)[words.numbers])


def ranking(documents: Regions, dimensions: Mapping[str, NDArray[np.float32]], order: str) -> Starts:
    """The numbers of documents in an order: those with more of a dimension first; equals as they came."""
    came = np.asarray(documents.attributes[SEQUENCE], np.int64)
    if order == INPUT or order not in dimensions:
        return np.argsort(came, kind="stable")
    return np.lexsort((came, -dimensions[order]))


class Moves:
    """Where tokens go when documents change places."""

    def __init__(self, documents: Regions, sequence: Starts) -> None:
        """`sequence` has the numbers of documents as they will stand; those that are not in it are left out."""
        self.sequence = sequence
        self._firsts, self._nexts = documents.firsts, documents.nexts
        lengths = (self._nexts - self._firsts)[sequence]
        self._targets = np.full(len(self._firsts), -1, np.int64)
        self._targets[sequence] = np.cumsum(lengths) - lengths
        self.size = int(lengths.sum())
        self._is_still = np.array_equal(sequence, np.arange(len(self._firsts)))

    def tokens(self, ids: Ids) -> Ids:
        if self._is_still and self.size == len(ids):
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
        """Structures, each of which lies in one document, where they will stand."""
        kind = regions.firsts.dtype  # or else all of them would be copied to compare them
        starts, ends = (
            np.searchsorted(regions.firsts, borders.astype(kind))[self.sequence]
            for borders in (self._firsts, self._nexts)
        )
        shifts = (self._targets - self._firsts)[self.sequence]
        lengths = ends - starts
        firsts, nexts = (np.empty(int(lengths.sum()), np.uint32) for _ in range(2))
        taken = []
        at = 0
        for some in cuts(lengths, AT_ONCE):
            rows, by = spread(starts[some], ends[some]), np.repeat(shifts[some], lengths[some])
            firsts[at : at + len(rows)] = regions.firsts[rows] + by
            nexts[at : at + len(rows)] = regions.nexts[rows] + by
            at += len(rows)
            if regions.attributes:
                taken.append(rows)
        attributes = {name: values.take(np.concatenate(taken)) for name, values in regions.attributes.items()}
        return Regions(firsts, nexts, attributes)


def _regions(lines: Texts, events: Sequence[Ids], places: Sequence[Starts]) -> dict[str, Regions]:
    """The structures that events open and close, which they do in pairs."""
    every = np.concatenate([*events, np.zeros(0, np.uint32)])
    where = np.concatenate([*places, np.zeros(0, np.int64)])
    kinds = np.unique(every)
    tags = dict(zip(kinds.tolist(), cast(list[str], lines.take(kinds).to_pylist()), strict=True))
    names = {kind: tag[1:].split("\t", 1)[0] for kind, tag in tags.items()}
    found: dict[str, Regions] = {}
    for name in sorted(set(names.values())):
        ours = [kind for kind in tags if names[kind] == name]
        opens = np.isin(every, [kind for kind in ours if tags[kind].startswith(OPENS)])
        closes = np.isin(every, [kind for kind in ours if tags[kind].startswith(CLOSES)])
        firsts, nexts = where[opens], where[closes]
        full = nexts > firsts
        attributes = _tag_attributes(every[opens][full], tags)
        found[name] = Regions(firsts[full], nexts[full], attributes)
    return {name: regions for name, regions in found.items() if len(regions.firsts)}


def _tag_attributes(opened: Ids, tags: Mapping[int, str]) -> dict[str, pa.Array[Any]]:
    """The attributes of structures, by the tags that opened them."""
    kinds, numbers = np.unique(opened, return_inverse=True)
    told = [dict(part.partition("=")[::2] for part in tags[kind].split("\t")[1:]) for kind in kinds.tolist()]
    names = sorted({name for attributes in told for name in attributes})
    return {
        name: pa.array([attributes.get(name, "") for attributes in told], pa.string()).take(numbers)
        for name in names
    }


def _document_columns(documents: Sequence[Source], sequence: int) -> dict[str, pa.Array[Any]]:
    names = sorted({name for document in documents for name in document.meta} - {*OWN_COLUMNS})
    columns: dict[str, pa.Array[Any]] = {
        name: pa.array([document.meta.get(name, "") for document in documents], pa.string()) for name in names
    }
    columns[KEY] = pa.array([document.key for document in documents], pa.uint64())
    columns[SEQUENCE] = pa.array(range(sequence, sequence + len(documents)), pa.int64())
    return columns


def _dimensions(documents: Sequence[Source], lengths: Starts) -> dict[str, NDArray[np.float32]]:
    names = sorted({name for document in documents for name in document.dimensions})
    found = {
        name: np.array([document.dimensions.get(name, 0.0) for document in documents], np.float32)
        for name in names
    }
    return {**found, "length": lengths.astype(np.float32)}


def write_segment(folder: Path, gathered: Gathered) -> None:
    """Write a segment to a new folder; it is durable when this returns."""
    folder.mkdir(parents=True)
    ids = gathered.ids
    kinds = max(len(one.numbers) for one in gathered.attributes.values())
    with ShelfWriter(folder / TOKENS) as shelf:
        counts = counted(ids, kinds)
        shelf.put("counts", counts)
        width = pack_column(ids, shelf.room).width
        shelf.put("posting_starts", pack_postings(ids, counts, LISTED, shelf.room).starts)
        widths: dict[str, int] = {}
        for name, (values, numbers) in gathered.attributes.items():
            lexicon.put(shelf, name, lexicon.build(values))
            shelf.put(f"{name}.values", numbers)
            plane_bits = max(len(values) - 1, 1).bit_length()
            if plane_bits <= WIDEST:
                widths[name] = plane_bits
                pack_planes(ids, numbers, plane_bits, shelf.named(f"{name}."))
        structures: dict[str, list[str]] = {}
        for name, regions in gathered.structures:
            if len(regions.firsts):
                _put_structure(shelf, folder, name, regions)
                structures[name] = [one for one in regions.attributes if one not in OWN_COLUMNS]
        for name, figures in gathered.dimensions.items():
            shelf.put(f"dimension.{name}", figures)
        shelf.tell(
            tokens=len(ids),
            width=width,
            attributes=list(gathered.attributes),
            planes=widths,
            structures=structures,
            dimensions=list(gathered.dimensions),
        )
    sync_directory(folder)


def _put_structure(shelf: ShelfWriter, folder: Path, name: str, regions: Regions) -> None:
    """Where the structures of a kind stand, and a table of their attributes."""
    firsts, nexts = regions.firsts, regions.nexts
    if (firsts[1:] == nexts[:-1]).all():
        shelf.put(f"{name}.firsts", np.concatenate([firsts, nexts[-1:]]))
    else:
        shelf.put(f"{name}.firsts", firsts)
        shelf.put(f"{name}.nexts", nexts)
    if regions.attributes:
        with (folder / f"{name}.parquet").open("wb") as file:
            pq.write_table(pa.table(dict(regions.attributes)), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
