"""The documents that count: all that were not deleted, or those of a subcorpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.query.columns import pick, unpack
from thresher.query.found import Index, Search
from thresher.query.functions.tables import one_of
from thresher.query.index import keys_of
from thresher.query.packing import Ids, Starts
from thresher.query.search import Hits, those
from thresher.query.segment import DOCUMENT, Segment, Structure
from thresher.query.stretches import cuts, spread

PIECE = 1 << 22  # positions that are looked at at once: some 100 MB with all that is told of each

Mask = NDArray[np.bool_]


class Piece(NamedTuple):
    """Tokens of some whole documents that count, one document behind the other."""

    segment: int
    types: Ids  # of every token
    starts: Starts  # where each document begins among these tokens
    shifts: Starts  # what positions in the segment are more than those among these tokens, by document


class Scope:
    """Some documents of an index, with their tokens and what is found in them."""

    def __init__(self, index: Index, chosen: Sequence[Mask] | None = None) -> None:
        """`chosen` tells by segment which documents count; deleted ones never do."""
        self.index = index
        self.masks = [_alive(segment) for segment in index.segments]
        if chosen is not None:
            self.masks = [alive & mask for alive, mask in zip(self.masks, chosen, strict=True)]

    @cached_property
    def tokens(self) -> int:
        return sum(int(self.lengths(number).sum()) for number in range(len(self.masks)))

    @property
    def documents(self) -> int:
        return sum(int(mask.sum()) for mask in self.masks)

    def lengths(self, number: int) -> Starts:
        """How many tokens the documents of a segment have; 0 for those that do not count."""
        documents = self.index.segments[number].structures[DOCUMENT]
        return np.where(self.masks[number], documents.nexts.astype(np.int64) - documents.firsts, 0)

    def others(self) -> Scope:
        """All the other documents."""
        return Scope(self.index, [~mask for mask in self.masks])

    # hits

    def hits(self, search: Search) -> list[Hits]:
        """All hits of a search that lie in documents that count, by segment."""
        return [self.kept(number, hits) for number, hits in enumerate(search.hits())]

    def stream(self, search: Search) -> Iterator[tuple[int, Hits]]:
        """The same as they are found, none of them kept, each with the number of its segment."""
        for number, hits in search.stream():
            yield number, self.kept(number, hits)

    def kept(self, number: int, hits: Hits) -> Hits:
        """Those hits of a segment that lie in documents that count."""
        mask, segment = self.masks[number], self.index.segments[number]
        if mask.all() or not len(hits):
            return hits
        ends = (document_numbers(segment, positions) for positions in (hits.firsts, hits.lasts))
        return those(hits, np.logical_and.reduce([mask[numbers] for numbers in ends]))

    def places(self, number: int, positions: Starts) -> Starts:
        """Where positions of a segment are among all tokens that count."""
        before = sum(int(self.lengths(earlier).sum()) for earlier in range(number))
        lengths = self.lengths(number)
        segment = self.index.segments[number]
        owners = document_numbers(segment, positions)
        starts = before + np.cumsum(lengths) - lengths
        return starts[owners] + positions - segment.structures[DOCUMENT].firsts[owners]

    # tokens

    def type_counts(self, number: int) -> NDArray[np.int64]:
        """How many tokens of each type a segment has; only those of the lesser part of its documents are read."""
        segment, lengths = self.index.segments[number], self.lengths(number)
        counts = segment.counts.astype(np.int64)
        left = int(lengths.sum())
        if left == segment.size:
            return counts
        if left * 2 <= segment.size:
            return self._read_counts(number, self.masks[number])
        return counts - self._read_counts(number, ~self.masks[number])

    def _read_counts(self, number: int, mask: Mask) -> NDArray[np.int64]:
        kinds = self.index.segments[number].types
        counts = np.zeros(kinds, np.int64)
        for piece in pieces(self.index.segments[number], number, mask):
            counts += np.bincount(piece.types, minlength=kinds)
        return counts

    def pieces(self) -> Iterator[Piece]:
        """All tokens that count, in the order of the corpus."""
        for number, (segment, mask) in enumerate(zip(self.index.segments, self.masks, strict=True)):
            yield from pieces(segment, number, mask)


def _alive(segment: Segment) -> Mask:
    mask = np.ones(len(segment.structures[DOCUMENT].firsts), np.bool_)
    mask[segment.deleted] = False
    return mask


def pieces(segment: Segment, number: int, mask: Mask) -> Iterator[Piece]:
    """The tokens of some documents of a segment, so many at once that they fit into memory."""
    documents = segment.structures[DOCUMENT]
    chosen = np.flatnonzero(mask)
    firsts, nexts = documents.firsts[chosen].astype(np.int64), documents.nexts[chosen].astype(np.int64)
    for some in cuts(nexts - firsts, PIECE):
        lengths = nexts[some] - firsts[some]
        starts = np.cumsum(lengths) - lengths
        if nexts[some][-1] - firsts[some][0] == lengths.sum():
            types = unpack(segment.column, int(firsts[some][0]), int(nexts[some][-1]))
        else:
            types = pick(segment.column, spread(firsts[some], nexts[some]).astype(np.uint32))
        yield Piece(number, types, starts, firsts[some] - starts)


def document_numbers(segment: Segment, positions: Starts) -> Starts:
    """The numbers of the documents that positions lie in; every token lies in one."""
    firsts = segment.structures[DOCUMENT].firsts
    found: Starts = np.searchsorted(firsts, positions.astype(np.uint32), "right") - 1
    return found


def structure_in(segment: Segment, name: str) -> Structure | None:
    """A structure of a segment; None if there is none of that name in it, even though others may have some."""
    found = segment.structures.get(name)
    return found if found is not None and len(found.firsts) else None


# What does not change is read once: the first page of a concordance has no time for a million keys.
_KEYS: WeakKeyDictionary[Segment, NDArray[np.uint64]] = WeakKeyDictionary()


def document_keys(segment: Segment) -> NDArray[np.uint64]:
    """The keys of all documents of a segment, by their numbers."""
    if segment not in _KEYS:
        _KEYS[segment] = keys_of(segment)
    return _KEYS[segment]


# values


class Vocabulary(NamedTuple):
    """The values of an attribute in all segments, each once."""

    values: pa.StringArray
    by_value: list[Ids]  # by segment: the number among these of every value there
    by_type: list[Ids]  # … and of every type


# An index does not change, and hashing a million values takes a tenth of a second.
_KNOWN: WeakKeyDictionary[Index, dict[str, Vocabulary]] = WeakKeyDictionary()


def vocabulary(index: Index, attribute: str) -> Vocabulary:
    """The values of a token's attribute; where a segment does not have it, all are empty."""
    if index.segments:
        one_of(attribute, index.attributes, "attribute of tokens")
    known = _KNOWN.setdefault(index, {})
    if attribute not in known:
        known[attribute] = _vocabulary(index, attribute)
    return known[attribute]


def _vocabulary(index: Index, name: str) -> Vocabulary:
    lists = [
        segment.attributes[name].lexicon.values if name in segment.attributes else pa.array([""], pa.string())
        for segment in index.segments
    ]
    if len(lists) == 1:
        values, by_value = lists[0], [np.arange(len(lists[0]), dtype=np.uint32)]
    else:
        encoded: Any = pa.chunked_array(lists, pa.string()).combine_chunks().dictionary_encode()
        values = encoded.dictionary
        numbers = np.asarray(encoded.indices, np.uint32)
        by_value = np.split(numbers, np.cumsum([len(one) for one in lists])[:-1])
    by_type = [
        among[segment.attributes[name].values]
        if name in segment.attributes
        else np.full(segment.types, among[0])
        for segment, among in zip(index.segments, by_value, strict=True)
    ]
    return Vocabulary(values, by_value, by_type)


def frequencies(scope: Scope, words: Vocabulary) -> NDArray[np.int64]:
    """How many tokens that count have each value; none of them is looked at, but for what was left out."""
    totals = np.zeros(len(words.values), np.int64)
    for number, kinds in enumerate(words.by_type):
        # Sums of whole numbers are exact in floats up to 2^53.
        sums = np.bincount(kinds, weights=scope.type_counts(number), minlength=len(totals))
        totals += sums.astype(np.int64)
    return totals


def default_attribute(index: Index) -> str:
    """What collocates and keywords are told by: lemmas, or else words."""
    return "lemma" if "lemma" in index.attributes else main_attribute(index)


def main_attribute(index: Index) -> str:
    """What a text is spelled with."""
    return "word" if "word" in index.attributes else next(iter(index.attributes), "word")
