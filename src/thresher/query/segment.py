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

from thresher.query import lexicon
from thresher.query.columns import BYTE, Column
from thresher.query.lexicon import Lexicon
from thresher.query.packing import Ids, Starts
from thresher.query.planes import Planes
from thresher.query.postings import Postings
from thresher.query.shelf import Shelf, damaged

TOKENS = "tokens"  # the file with all that is about tokens
DOCUMENT = "doc"  # the structure that is a document
LISTED = 1 << BYTE  # types from this number on have postings; the others are found faster in the column


class Attribute(NamedTuple):
    """What tokens have a value of: word, lemma, …"""

    name: str
    lexicon: Lexicon
    values: Ids  # the number of the value, by type
    planes: Planes | None  # where there are few values


class Structure(NamedTuple):
    """What tokens stand in: sentences, paragraphs, documents, in order; no two of a kind overlap."""

    name: str
    firsts: Ids
    nexts: Ids  # the position behind the last one of each
    attributes: tuple[str, ...]

    def around(self, positions: Starts) -> Starts:
        """The numbers of those that positions stand in; -1 where there is none."""
        if not len(self.firsts):
            return np.full(len(positions), -1, np.int64)
        found = np.searchsorted(self.firsts, positions.astype(np.uint32), "right") - 1
        return np.where((found >= 0) & (positions < self.nexts[found]), found, -1)


class Bounds(NamedTuple):
    """Stretches that matches must lie in, by their beginnings; `nexts` never fall."""

    firsts: Ids
    nexts: Ids


class Values(NamedTuple):
    """The values of an attribute of a structure."""

    numbers: NDArray[np.int32]  # by structure
    values: pa.StringArray  # by number


class Segment:
    """A segment, opened for reading."""

    def __init__(self, folder: Path, deleted: Ids | None = None) -> None:
        """`deleted` are the numbers of documents that are gone, in order."""
        self.folder = folder
        self.deleted = np.zeros(0, np.uint32) if deleted is None else deleted
        self._shelf = shelf = Shelf(folder / TOKENS)
        self.size: int = shelf.facts["tokens"]
        self.counts: Ids = shelf["counts"]  # of tokens, by type
        self.column = Column(shelf["low"], shelf["wide"], shelf["ranks"], shelf["high"], shelf.facts["width"])
        self.postings = Postings(
            self.size, self.counts[LISTED:], shelf["posting_starts"], shelf["posting_words"]
        )
        self.attributes = {name: self._attribute(name) for name in shelf.facts["attributes"]}
        self.structures = {
            name: self._structure(name, tuple(attributes))
            for name, attributes in shelf.facts["structures"].items()
        }
        self._values: dict[tuple[str, str], Values] = {}
        self.alive = self._alive() if len(self.deleted) else None

    def _attribute(self, name: str) -> Attribute:
        planes = None
        if width := self._shelf.facts["planes"].get(name):
            planes = Planes(self._shelf[f"{name}.planes"], width)
        return Attribute(name, lexicon.take(self._shelf, name), self._shelf[f"{name}.values"], planes)

    def _structure(self, name: str, attributes: tuple[str, ...]) -> Structure:
        # Where one begins behind the other, the ends of all but the last are not written twice.
        firsts = self._shelf[f"{name}.firsts"]
        if f"{name}.nexts" in self._shelf.names:
            return Structure(name, firsts, self._shelf[f"{name}.nexts"], attributes)
        return Structure(name, firsts[:-1], firsts[1:], attributes)

    def _alive(self) -> Bounds:
        """The stretches of tokens between deleted documents."""
        documents = self.structures[DOCUMENT]
        kept = np.ones(len(documents.firsts), np.bool_)
        kept[self.deleted] = False
        changes = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]]).astype(np.int8)))
        starts, ends = changes[::2], changes[1::2] - 1
        return Bounds(documents.firsts[starts], documents.nexts[ends])

    @property
    def documents(self) -> int:
        """How many documents there are, without those that were deleted."""
        return len(self.structures[DOCUMENT].firsts) - len(self.deleted)

    @property
    def types(self) -> int:
        """How many types of tokens there are."""
        return len(self.counts)

    @property
    def bytes(self) -> int:
        """How large the segment is on disk."""
        return sum(path.stat().st_size for path in self.folder.iterdir())

    @cached_property
    def dimensions(self) -> dict[str, NDArray[np.float32]]:
        """What documents are ranked by."""
        return {name: self._shelf[f"dimension.{name}"] for name in self._shelf.facts["dimensions"]}

    def complete(self, attributes: Iterable[str], structures: Mapping[str, Iterable[str]]) -> None:
        """Let it know what others have and it has not: there, attributes of tokens are empty, structures none."""
        for name in attributes:
            if name not in self.attributes:
                nothing = np.zeros(self.types, np.uint32)
                self.attributes[name] = Attribute(name, lexicon.build([""]), nothing, None)
        for name, names in structures.items():
            nowhere = np.zeros(0, np.uint32)
            known = self.structures.get(name, Structure(name, nowhere, nowhere, ()))
            self.structures[name] = known._replace(
                attributes=tuple(dict.fromkeys([*known.attributes, *names]))
            )

    def values(self, structure: str, attribute: str) -> Values:
        """The values of an attribute of a structure; what a structure has no value of is empty."""
        key = structure, attribute
        if key not in self._values:  # what is read once stays: these are few
            if attribute not in self._shelf.facts["structures"].get(structure, ()):
                nothing = np.zeros(len(self.structures[structure].firsts), np.int32)
                self._values[key] = Values(nothing, pa.array([""], pa.string()))
                return self._values[key]
            table = self.table(structure, columns=[attribute], read_dictionary=[attribute])
            column = table.column(0).unify_dictionaries().combine_chunks().fill_null("")
            made = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
            values = cast(pa.StringArray, made.dictionary.cast(pa.string()))
            self._values[key] = Values(np.asarray(made.indices, np.int32), values)
        return self._values[key]

    def table(self, structure: str, **options: Any) -> pa.Table:
        """The attributes of structures of a kind, a row each; nothing if they have none."""
        path = self.folder / f"{structure}.parquet"
        if structure != DOCUMENT and not self._shelf.facts["structures"].get(structure):
            return pa.table({"": pa.nulls(len(self.structures[structure].firsts))})
        try:
            return pq.read_table(path, **options)
        except (pa.ArrowException, OSError):
            raise damaged(path) from None
