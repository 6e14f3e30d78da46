"""The scope of an analysis: all documents that are not deleted, or the documents of a subcorpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.search.analysis.tables import AnalysisError
from thresher.search.cql.lexer import unknown
from thresher.search.encoding.bitpacking import Ids, Starts
from thresher.search.encoding.ranges import cuts, spread
from thresher.search.encoding.token_column import pick, unpack
from thresher.search.execution.segment_search import Hits, selected
from thresher.search.index.segment import DOCUMENT, Segment, SegmentStructure
from thresher.search.index.writer import keys_of
from thresher.search.searcher import Index, RunningSearch

CHUNK_POSITIONS = 1 << 22  # positions that are processed at a time; they take some 100 MB

Mask = NDArray[np.bool_]


class DocumentTokens(NamedTuple):
    """The tokens of some whole documents, one document after the other."""

    segment: int
    types: Ids  # of every token
    starts: Starts  # place of the first token of each document among these tokens
    shifts: Starts  # position in the segment minus place among these tokens, by document


class DocumentScope:
    """A set of documents of an index, with their tokens and the hits in them."""

    def __init__(self, index: Index, chosen: Sequence[Mask] | None = None) -> None:
        """Take the documents in the masks of each segment, or all; deleted ones are always left out."""
        self.index = index
        self.masks = [_alive(segment) for segment in index.segments]
        if chosen is not None:
            self.masks = [alive & mask for alive, mask in zip(self.masks, chosen, strict=True)]

    @cached_property
    def tokens(self) -> int:
        """Number of tokens."""
        return sum(int(self.lengths(number).sum()) for number in range(len(self.masks)))

    @property
    def documents(self) -> int:
        """Number of documents."""
        return sum(int(mask.sum()) for mask in self.masks)

    def lengths(self, number: int) -> Starts:
        """Return the numbers of tokens of the documents of a segment; 0 for documents outside the scope."""
        documents = self.index.segments[number].structures[DOCUMENT]
        return np.where(self.masks[number], documents.nexts.astype(np.int64) - documents.firsts, 0)

    def others(self) -> DocumentScope:
        """Return the scope of all other documents."""
        return DocumentScope(self.index, [~mask for mask in self.masks])

    # hits

    def hits(self, search: RunningSearch) -> list[Hits]:
        """Return the hits of a search in these documents, by segment."""
        return [self.kept(number, hits) for number, hits in enumerate(search.hits())]

    def stream(self, search: RunningSearch) -> Iterator[tuple[int, Hits]]:
        """Yield the hits of a search in these documents as they are found, with the number of their segment."""
        for number, hits in search.stream():
            yield number, self.kept(number, hits)

    def kept(self, number: int, hits: Hits) -> Hits:
        """Return the hits of a segment that lie in these documents."""
        mask, segment = self.masks[number], self.index.segments[number]
        if mask.all() or not len(hits):
            return hits
        ends = (document_numbers(segment, positions) for positions in (hits.firsts, hits.lasts))
        return selected(hits, np.logical_and.reduce([mask[numbers] for numbers in ends]))

    def places(self, number: int, positions: Starts) -> Starts:
        """Return the places of positions of a segment among all tokens of these documents."""
        before = sum(int(self.lengths(earlier).sum()) for earlier in range(number))
        lengths = self.lengths(number)
        segment = self.index.segments[number]
        owners = document_numbers(segment, positions)
        starts = before + np.cumsum(lengths) - lengths
        return starts[owners] + positions - segment.structures[DOCUMENT].firsts[owners]

    # tokens

    def type_counts(self, number: int) -> NDArray[np.int64]:
        """Return the frequencies of types in these documents of a segment.

        Tokens are read only of these documents or of the others, whichever are fewer.
        """
        segment, lengths = self.index.segments[number], self.lengths(number)
        counts = segment.counts.astype(np.int64)
        left = int(lengths.sum())
        if left == segment.size:
            return counts
        if left * 2 <= segment.size:
            return self._read_counts(number, self.masks[number])
        return counts - self._read_counts(number, ~self.masks[number])

    def _read_counts(self, number: int, mask: Mask) -> NDArray[np.int64]:
        types = self.index.segments[number].types
        counts = np.zeros(types, np.int64)
        for chunk in chunks(self.index.segments[number], number, mask):
            counts += np.bincount(chunk.types, minlength=types)
        return counts

    def chunks(self) -> Iterator[DocumentTokens]:
        """Yield all tokens of these documents in the order of the corpus."""
        for number, (segment, mask) in enumerate(zip(self.index.segments, self.masks, strict=True)):
            yield from chunks(segment, number, mask)


def _alive(segment: Segment) -> Mask:
    mask = np.ones(len(segment.structures[DOCUMENT].firsts), np.bool_)
    mask[segment.deleted] = False
    return mask


def chunks(segment: Segment, number: int, mask: Mask) -> Iterator[DocumentTokens]:
    """Yield the tokens of some documents of a segment, in portions that fit into memory."""
    documents = segment.structures[DOCUMENT]
    chosen = np.flatnonzero(mask)
    firsts, nexts = documents.firsts[chosen].astype(np.int64), documents.nexts[chosen].astype(np.int64)
    for part in cuts(nexts - firsts, CHUNK_POSITIONS):
        lengths = nexts[part] - firsts[part]
        starts = np.cumsum(lengths) - lengths
        if nexts[part][-1] - firsts[part][0] == lengths.sum():
            types = unpack(segment.column, int(firsts[part][0]), int(nexts[part][-1]))
        else:
            types = pick(segment.column, spread(firsts[part], nexts[part]).astype(np.uint32))
        yield DocumentTokens(number, types, starts, firsts[part] - starts)


def document_numbers(segment: Segment, positions: Starts) -> Starts:
    """Return the numbers of the documents around positions; every token lies in one."""
    firsts = segment.structures[DOCUMENT].firsts
    found: Starts = np.searchsorted(firsts, positions.astype(np.uint32), "right") - 1
    return found


def structure_in(segment: Segment, name: str) -> SegmentStructure | None:
    """Return the structures of a name in a segment, or None if the segment has none."""
    found = segment.structures.get(name)
    return found if found is not None and len(found.firsts) else None


# Read once: a million keys at each page of a concordance would take too long.
_KEYS: WeakKeyDictionary[Segment, NDArray[np.uint64]] = WeakKeyDictionary()


def document_keys(segment: Segment) -> NDArray[np.uint64]:
    """Return the keys of all documents of a segment in the order of their numbers."""
    if segment not in _KEYS:
        _KEYS[segment] = keys_of(segment)
    return _KEYS[segment]


# values


class AttributeVocabulary(NamedTuple):
    """The distinct values of an attribute in all segments."""

    values: pa.StringArray
    by_value: list[Ids]  # number of each value of a segment, by segment
    by_type: list[Ids]  # number of the value of each type of a segment, by segment


# Remembered, since hashing a million values takes a tenth of a second, and an index does not change.
_KNOWN: WeakKeyDictionary[Index, dict[str, AttributeVocabulary]] = WeakKeyDictionary()


def vocabulary(index: Index, attribute: str) -> AttributeVocabulary:
    """Return the values of an attribute of tokens. A segment that lacks the attribute has the empty value."""
    if index.segments and attribute not in index.attributes:
        raise AnalysisError(
            unknown("attribute of tokens", attribute, index.attributes) + index.hint(attribute)
        )
    known = _KNOWN.setdefault(index, {})
    if attribute not in known:
        known[attribute] = _vocabulary(index, attribute)
    return known[attribute]


def _vocabulary(index: Index, name: str) -> AttributeVocabulary:
    lists = [
        segment.attributes[name].lexicon.values if name in segment.attributes else pa.array([""], pa.string())
        for segment in index.segments
    ]
    if not lists:
        return AttributeVocabulary(pa.array([], pa.string()), [], [])
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
    return AttributeVocabulary(values, by_value, by_type)


def frequencies(scope: DocumentScope, words: AttributeVocabulary) -> NDArray[np.int64]:
    """Return the frequency of each value in a scope, from the frequencies of types where possible."""
    totals = np.zeros(len(words.values), np.int64)
    for number, by_type in enumerate(words.by_type):
        # Sums of whole numbers are exact in floats up to 2^53.
        sums = np.bincount(by_type, weights=scope.type_counts(number), minlength=len(totals))
        totals += sums.astype(np.int64)
    return totals


def default_attribute(index: Index) -> str:
    """Return the attribute for collocates and keywords: lemma, or word if there are no lemmas."""
    return "lemma" if "lemma" in index.attributes else main_attribute(index)


def main_attribute(index: Index) -> str:
    """Return the attribute that shows the text: word, or the first one."""
    return "word" if "word" in index.attributes else next(iter(index.attributes), "word")
