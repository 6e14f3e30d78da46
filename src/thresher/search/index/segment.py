"""A segment of an index: tokens and structures of some documents, in files that never change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from thresher.search.encoding import lexicon
from thresher.search.encoding.array_file import ArrayFile, damaged
from thresher.search.encoding.bit_slices import BitSlices
from thresher.search.encoding.bitpacking import Ids, Starts
from thresher.search.encoding.lexicon import Lexicon
from thresher.search.encoding.postings import Postings
from thresher.search.encoding.token_column import BYTE, TokenColumn

TOKENS = "tokens"  # the file with all that is about tokens
DOCUMENT = "doc"  # the structure that is a document
# Types from this number on have postings; the more frequent ones are found faster by a scan of the column.
LISTED = 1 << BYTE


class TokenAttribute(NamedTuple):
    """An attribute of tokens, such as word or lemma."""

    name: str
    lexicon: Lexicon
    values: Ids  # number of the value, by type
    slices: BitSlices | None  # of attributes with few values


class SegmentStructure(NamedTuple):
    """The structures of one name, such as sentences, in order. They do not overlap."""

    name: str
    firsts: Ids
    nexts: Ids  # the position after the last one of each structure
    attributes: tuple[str, ...]

    def around(self, positions: Starts) -> Starts:
        """Return the numbers of the structures around positions; -1 where there is none."""
        if not len(self.firsts):
            return np.full(len(positions), -1, np.int64)
        found = np.searchsorted(self.firsts, positions.astype(np.uint32), "right") - 1
        return np.where((found >= 0) & (positions < self.nexts[found]), found, -1)


class RegionBounds(NamedTuple):
    """Regions in which matches must lie, in order of their beginnings; `nexts` never decrease."""

    firsts: Ids
    nexts: Ids


class StructureValues(NamedTuple):
    """The values of an attribute of a structure."""

    numbers: NDArray[np.int32]  # by structure
    values: pa.StringArray  # by number


class Segment:
    """A segment opened for reading."""

    def __init__(self, folder: Path, deleted: Ids | None = None) -> None:
        """Open a segment; `deleted` are the numbers of its deleted documents, in order."""
        self.folder = folder
        self.deleted = np.zeros(0, np.uint32) if deleted is None else deleted
        self._arrays = arrays = ArrayFile(folder / TOKENS)
        self.size: int = arrays.facts["tokens"]
        self.counts: Ids = arrays["counts"]  # frequencies, by type
        self.column = TokenColumn(
            arrays["low"], arrays["wide"], arrays["ranks"], arrays["high"], arrays.facts["width"]
        )
        self.postings = Postings(
            self.size, self.counts[LISTED:], arrays["posting_starts"], arrays["posting_words"]
        )
        self.attributes = {name: self._attribute(name) for name in arrays.facts["attributes"]}
        self.structures = {
            name: self._structure(name, tuple(attributes))
            for name, attributes in arrays.facts["structures"].items()
        }
        self._values: dict[tuple[str, str], StructureValues] = {}
        self.alive = self._alive() if len(self.deleted) else None

    def _attribute(self, name: str) -> TokenAttribute:
        slices = None
        if width := self._arrays.facts["planes"].get(name):
            slices = BitSlices(self._arrays[f"{name}.planes"], width)
        return TokenAttribute(name, lexicon.take(self._arrays, name), self._arrays[f"{name}.values"], slices)

    def _structure(self, name: str, attributes: tuple[str, ...]) -> SegmentStructure:
        # Structures that follow each other without gaps are stored without their ends.
        firsts = self._arrays[f"{name}.firsts"]
        if f"{name}.nexts" in self._arrays.names:
            return SegmentStructure(name, firsts, self._arrays[f"{name}.nexts"], attributes)
        return SegmentStructure(name, firsts[:-1], firsts[1:], attributes)

    def _alive(self) -> RegionBounds:
        """Return the regions between deleted documents."""
        documents = self.structures[DOCUMENT]
        kept = np.ones(len(documents.firsts), np.bool_)
        kept[self.deleted] = False
        changes = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
        starts, ends = changes[::2], changes[1::2] - 1
        return RegionBounds(documents.firsts[starts], documents.nexts[ends])

    @property
    def documents(self) -> int:
        """Number of documents, without deleted ones."""
        return len(self.structures[DOCUMENT].firsts) - len(self.deleted)

    @property
    def types(self) -> int:
        """Number of types: distinct combinations of the attributes of a token."""
        return len(self.counts)

    @property
    def bytes(self) -> int:
        """Size of the files."""
        return sum(path.stat().st_size for path in self.folder.iterdir())

    @cached_property
    def dimensions(self) -> dict[str, NDArray[np.float32]]:
        """Numbers by which documents are ranked, such as quality, by document."""
        return {name: self._arrays[f"dimension.{name}"] for name in self._arrays.facts["dimensions"]}

    def complete(self, attributes: Iterable[str], structures: Mapping[str, Iterable[str]]) -> None:
        """Add attributes and structures that other segments have; here, they have no values."""
        for name in attributes:
            if name not in self.attributes:
                nothing = np.zeros(self.types, np.uint32)
                self.attributes[name] = TokenAttribute(name, lexicon.build([""]), nothing, None)
        for name, names in structures.items():
            nowhere = np.zeros(0, np.uint32)
            known = self.structures.get(name, SegmentStructure(name, nowhere, nowhere, ()))
            self.structures[name] = known._replace(
                attributes=tuple(dict.fromkeys([*known.attributes, *names]))
            )

    def values(self, structure: str, attribute: str) -> StructureValues:
        """Return the values of an attribute of a structure, "" where there is no value."""
        key = structure, attribute
        if key not in self._values:  # read once, then kept in memory
            if attribute not in self._arrays.facts["structures"].get(structure, ()):
                nothing = np.zeros(len(self.structures[structure].firsts), np.int32)
                self._values[key] = StructureValues(nothing, pa.array([""], pa.string()))
                return self._values[key]
            table = self.table(structure, columns=[attribute], read_dictionary=[attribute])
            column = table.column(0).unify_dictionaries().combine_chunks().fill_null("")
            made = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
            values = cast(pa.StringArray, made.dictionary.cast(pa.string()))
            self._values[key] = StructureValues(np.asarray(made.indices, np.int32), values)
        return self._values[key]

    def table(self, structure: str, **options: Any) -> pa.Table:
        """Return the attributes of all structures of a name as a table; it has no columns if they have none."""
        path = self.folder / f"{structure}.parquet"
        if structure != DOCUMENT and not self._arrays.facts["structures"].get(structure):
            return pa.table({"": pa.nulls(len(self.structures[structure].firsts))})
        try:
            return pq.read_table(path, **options)
        except (pa.ArrowException, OSError):
            raise damaged(path) from None
