"""Add documents to an index, delete them, and merge segments as they become many."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from msgspec import Struct

from thresher.search.encoding.bitpacking import Ids
from thresher.search.index.manifest import Manifest, ManifestWriter, SegmentEntry, writing
from thresher.search.index.merge import merge
from thresher.search.index.segment import DOCUMENT, Segment
from thresher.search.index.segment_builder import INPUT, KEY, IndexDocument, SegmentGatherer, write_segment
from thresher.wording import ReportView

RUN_TOKENS = 24_000_000  # tokens that are gathered in memory for a segment
MOST_TOKENS = (1 << 32) - 1  # of a segment: positions have 32 bits
REWRITE_SHARE = 0.2  # a segment is rewritten when more than this share of its documents is deleted


class IndexChanges(ReportView, Struct, frozen=True):
    """The result of an update of an index."""

    added: int = 0  # documents
    deleted: int = 0  # documents
    tokens: int = 0  # of the documents that were added
    segments: int = 0  # of the index as it is now
    better_annotator: str = ""  # one that is installed, if a rebuild with it would add lemmas or improve them


def keys_of(segment: Segment) -> np.ndarray:
    """Return the keys of all documents of a segment, including deleted ones, in the order of their numbers."""
    return np.asarray(segment.table(DOCUMENT, columns=[KEY]).column(0), np.uint64)


def known_keys(writer: ManifestWriter) -> set[int]:
    """Return the keys of all documents in an index."""
    found: set[int] = set()
    for entry in writer.manifest.segments:
        segment = writer.segment(entry)
        keys = np.delete(keys_of(segment), segment.deleted)
        found.update(keys.tolist())
    return found


def add(
    writer: ManifestWriter,
    documents: Iterable[IndexDocument],
    *,
    run_tokens: int | None = None,
    lowercase: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> IndexChanges:
    """Add documents in new segments; each becomes part of the index as soon as it is written.

    `lowercase` gives tokens the attribute `lc`, the word in lower case. `progress` is called with the number of
    tokens added so far.
    """
    with PendingSegments(writer) as runs:
        gatherer: SegmentGatherer | None = None
        sequence = writer.manifest.next_document
        added = tokens = 0
        for document in documents:
            if gatherer is not None and (
                gatherer.attributes != document.attributes or gatherer.tokens >= (run_tokens or RUN_TOKENS)
            ):
                runs.put(gatherer)
                gatherer = None
            if gatherer is None:
                gatherer = SegmentGatherer(document.attributes, sequence + added, lowercase=lowercase)
            before, already = gatherer.tokens, len(gatherer.documents)
            gatherer.add(document)
            added += len(gatherer.documents) - already
            tokens += gatherer.tokens - before
            progress(tokens)
        if gatherer is not None:
            runs.put(gatherer)
    return IndexChanges(added, 0, tokens, len(writer.manifest.segments))


class PendingSegments:
    """Writes segments in a thread, each while the documents of the next one are gathered.

    A thread is enough: nearly all of the work is compiled code that releases the interpreter's lock.
    """

    def __init__(self, writer: ManifestWriter) -> None:
        self._writer = writer
        self._thread = ThreadPoolExecutor(1)
        self._written: Future[int] | None = None  # returns the number of documents

    def put(self, gatherer: SegmentGatherer) -> None:
        """Begin to write a segment, once the one before is part of the index."""
        self._publish()
        folder, order = self._writer.new_folder(), self._writer.manifest.order or INPUT
        self._written = self._thread.submit(_write, folder, gatherer, order)

    def _publish(self) -> None:
        written, self._written = self._written, None
        if written and (documents := written.result()):
            self._writer.publish(documents)

    def __enter__(self) -> PendingSegments:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._thread:  # wait even after an error: the next writer may use the same folder
            if kind is None:
                self._publish()


def _write(folder: Path, gatherer: SegmentGatherer, order: str) -> int:
    if gatherer.documents:
        write_segment(folder, gatherer.gathered(order))
    return len(gatherer.documents)


def delete(writer: ManifestWriter, keys: Collection[int]) -> int:
    """Delete documents and return their number. Their tokens stay in the files until the next merge."""
    count = 0
    wanted = np.array(sorted(keys), np.uint64)
    for entry in writer.manifest.segments:
        segment = writer.segment(entry)
        numbers: Ids = np.flatnonzero(np.isin(keys_of(segment), wanted)).astype(np.uint32)
        undeleted = np.setdiff1d(numbers, segment.deleted).astype(np.uint32)
        if len(undeleted):
            writer.delete(entry, undeleted)
            count += len(undeleted)
    return count


def delete_where(writer: ManifestWriter, attributes: Sequence[str], matches: Callable[[str], bool]) -> int:
    """Delete documents with a matching value of an attribute, and return their number."""
    count = 0
    for entry in writer.manifest.segments:
        segment = writer.segment(entry)
        table = segment.table(DOCUMENT)
        matching = np.zeros(len(table), np.bool_)
        for name in attributes:
            if name in table.column_names:
                values = table.column(name).to_pylist()
                matching |= np.array([matches(value or "") for value in values], np.bool_)
        undeleted = np.setdiff1d(np.flatnonzero(matching), segment.deleted).astype(np.uint32)
        if len(undeleted):
            writer.delete(entry, undeleted)
            count += len(undeleted)
    return count


def purge(writer: ManifestWriter) -> None:
    """Rewrite every segment that has deleted documents, so that nothing of them is left on disk."""
    while worn := [entry for entry in writer.manifest.segments if entry.deleted]:
        _merge(writer, (worn[0],), None)


def due(manifest: Manifest) -> tuple[SegmentEntry, ...]:
    """Return the segments that should be merged into one now; none if no merge is due.

    After all merges, each segment is larger than twice all smaller ones together, so that their number stays small,
    and none has a large share of deleted documents.
    """
    ordered = sorted(manifest.segments, key=lambda entry: entry.tokens)
    merged: tuple[SegmentEntry, ...] = ()
    total = 0
    for number, entry in enumerate(ordered):
        total += entry.tokens
        if total > MOST_TOKENS:
            break
        if number and entry.tokens <= 2 * (total - entry.tokens):
            merged = tuple(ordered[: number + 1])
    if merged:
        return merged
    worn = [entry for entry in ordered if entry.deleted > REWRITE_SHARE * entry.documents]
    return tuple(worn[:1])


def tidy(writer: ManifestWriter, *, all_of_them: bool = False, order: str | None = None) -> None:
    """Merge the segments that are due, or all of them if the order changes or `all_of_them` is given."""
    if all_of_them or (order is not None and order != writer.manifest.order):
        for entries in portions(writer.manifest):
            _merge(writer, entries, order)
        writer.describe(order=order)
        return
    while entries := due(writer.manifest):
        _merge(writer, entries, order)


def portions(manifest: Manifest) -> list[tuple[SegmentEntry, ...]]:
    """Return all segments in groups, each of which fits into one segment."""
    groups: list[tuple[SegmentEntry, ...]] = []
    for entry in manifest.segments:
        if groups and sum(one.tokens for one in groups[-1]) + entry.tokens <= MOST_TOKENS:
            groups[-1] += (entry,)
        else:
            groups.append((entry,))
    return groups


def _merge(writer: ManifestWriter, entries: tuple[SegmentEntry, ...], order: str | None) -> None:
    emptied = tuple(entry for entry in entries if entry.deleted == entry.documents)
    writer.drop(emptied)
    # In the order of the manifest, which is the order in which the documents came.
    rest = tuple(entry for entry in writer.manifest.segments if entry in entries and entry not in emptied)
    if rest:
        segments = [writer.segment(entry) for entry in rest]
        merge(segments, (writer.manifest.order if order is None else order) or INPUT, writer.new_folder())
        writer.publish(sum(entry.documents - entry.deleted for entry in rest), instead_of=rest)


def build(directory: Path, documents: Iterable[IndexDocument], order: str = INPUT) -> IndexChanges:
    """Make an index of just these documents, in place of an older one."""
    with writing(directory, rebuild=True) as writer:
        writer.start(order)
        changes = add(writer, documents)
        tidy(writer)
    return changes
