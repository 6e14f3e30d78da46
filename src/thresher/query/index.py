"""The index of a corpus: documents go in, are deleted, and are found; segments are merged as they become many."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from msgspec import Struct

from thresher.query.build import INPUT, KEY, Gatherer, Source, write_segment
from thresher.query.manifest import Entry, Manifest, Writer, writing
from thresher.query.merge import merge
from thresher.query.packing import Ids
from thresher.query.segment import DOCUMENT, Segment

RUN_TOKENS = 24_000_000  # that are gathered in memory
MOST_TOKENS = (1 << 32) - 1  # of a segment
WORTH_CLEANING = 0.2  # a segment of which more than this share is deleted is written anew


class Changes(Struct, frozen=True):
    """What became of an index."""

    added: int = 0  # documents
    deleted: int = 0
    tokens: int = 0  # of the documents that were added
    segments: int = 0  # that there are now


def keys_of(segment: Segment) -> np.ndarray:
    """The keys of all documents of a segment, deleted ones too, by their numbers."""
    return np.asarray(segment.table(DOCUMENT, columns=[KEY]).column(0), np.uint64)


def known_keys(writer: Writer) -> set[int]:
    """The keys of all documents in an index."""
    found: set[int] = set()
    for entry in writer.manifest.segments:
        segment = writer.segment(entry)
        keys = np.delete(keys_of(segment), segment.deleted)
        found.update(keys.tolist())
    return found


def add(
    writer: Writer,
    documents: Iterable[Source],
    *,
    run_tokens: int = RUN_TOKENS,
    lowercase: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Changes:
    """Add documents, in segments that are part of the index as soon as they are written.

    `lowercase` gives tokens the attribute `lc`, their word in small letters.
    """
    with Runs(writer) as runs:
        gatherer: Gatherer | None = None
        sequence = writer.manifest.next_document
        added = tokens = 0
        for document in documents:
            if gatherer is not None and (
                gatherer.attributes != document.attributes or gatherer.tokens >= run_tokens
            ):
                runs.put(gatherer)
                gatherer = None
            if gatherer is None:
                gatherer = Gatherer(document.attributes, sequence + added, lowercase=lowercase)
            before, already = gatherer.tokens, len(gatherer.documents)
            gatherer.add(document)
            added += len(gatherer.documents) - already
            tokens += gatherer.tokens - before
            progress(tokens)
        if gatherer is not None:
            runs.put(gatherer)
    return Changes(added, 0, tokens, len(writer.manifest.segments))


class Runs:
    """Segments being made: one is written while the documents of the next are gathered.

    A thread does it: nearly all of the work is machine code, which others need not wait for.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._thread = ThreadPoolExecutor(1)
        self._written: Future[int] | None = None  # with so many documents

    def put(self, gatherer: Gatherer) -> None:
        """Write a segment of what was gathered, once the one before is part of the index."""
        self._publish()
        folder, order = self._writer.new_folder(), self._writer.manifest.order or INPUT
        self._written = self._thread.submit(_write, folder, gatherer, order)

    def _publish(self) -> None:
        written, self._written = self._written, None
        if written and (documents := written.result()):
            self._writer.publish(documents)

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._thread:  # wait for it whatever happened: it writes to a folder that is ours no longer
            if kind is None:
                self._publish()


def _write(folder: Path, gatherer: Gatherer, order: str) -> int:
    if gatherer.documents:
        write_segment(folder, gatherer.gathered(order))
    return len(gatherer.documents)


def delete(writer: Writer, keys: Collection[int]) -> int:
    """Delete documents: from now on no search finds them; their tokens go with the next merge."""
    count = 0
    wanted = np.array(sorted(keys), np.uint64)
    for entry in writer.manifest.segments:
        segment = writer.segment(entry)
        numbers: Ids = np.flatnonzero(np.isin(keys_of(segment), wanted)).astype(np.uint32)
        fresh = np.setdiff1d(numbers, segment.deleted).astype(np.uint32)
        if len(fresh):
            writer.delete(entry, fresh)
            count += len(fresh)
    return count


def delete_where(writer: Writer, attributes: Sequence[str], is_meant: Callable[[str], bool]) -> int:
    """Delete documents of which some attribute has a value that is meant."""
    count = 0
    for entry in writer.manifest.segments:
        segment = writer.segment(entry)
        table = segment.table(DOCUMENT)
        meant = np.zeros(len(table), np.bool_)
        for name in attributes:
            if name in table.column_names:
                meant |= np.array(
                    [is_meant(value or "") for value in table.column(name).to_pylist()], np.bool_
                )
        fresh = np.setdiff1d(np.flatnonzero(meant), segment.deleted).astype(np.uint32)
        if len(fresh):
            writer.delete(entry, fresh)
            count += len(fresh)
    return count


def purge(writer: Writer) -> None:
    """Write every segment anew that has deleted documents: nothing of them is left."""
    while worn := [entry for entry in writer.manifest.segments if entry.deleted]:
        _merge(writer, (worn[0],), None)


def due(manifest: Manifest) -> tuple[Entry, ...]:
    """The segments that should be merged into one now.

    Every segment that stays is to be larger than all smaller ones together, so that there are few; and none is to
    have much that was deleted.
    """
    ordered = sorted(manifest.segments, key=lambda entry: entry.tokens)
    merged: tuple[Entry, ...] = ()
    total = 0
    for number, entry in enumerate(ordered):
        total += entry.tokens
        if total > MOST_TOKENS:
            break
        if number and entry.tokens <= 2 * (total - entry.tokens):
            merged = tuple(ordered[: number + 1])
    if merged:
        return merged
    worn = [entry for entry in ordered if entry.deleted > WORTH_CLEANING * entry.documents]
    return tuple(worn[:1])


def tidy(writer: Writer, *, all_of_them: bool = False, order: str | None = None) -> None:
    """Merge the segments that should be, or all: then nothing of deleted documents is left."""
    if all_of_them or (order is not None and order != writer.manifest.order):
        for entries in portions(writer.manifest):
            _merge(writer, entries, order)
        writer.set_order(writer.manifest.order if order is None else order)
        return
    while entries := due(writer.manifest):
        _merge(writer, entries, order)


def portions(manifest: Manifest) -> list[tuple[Entry, ...]]:
    """All segments, in groups that fit into one each."""
    groups: list[tuple[Entry, ...]] = []
    for entry in manifest.segments:
        if groups and sum(one.tokens for one in groups[-1]) + entry.tokens <= MOST_TOKENS:
            groups[-1] += (entry,)
        else:
            groups.append((entry,))
    return groups


def _merge(writer: Writer, entries: tuple[Entry, ...], order: str | None) -> None:
    emptied = tuple(entry for entry in entries if entry.deleted == entry.documents)
    writer.drop(emptied)
    # In the order of the manifest, that of the documents' coming.
    rest = tuple(entry for entry in writer.manifest.segments if entry in entries and entry not in emptied)
    if rest:
        segments = [writer.segment(entry) for entry in rest]
        merge(segments, (writer.manifest.order if order is None else order) or INPUT, writer.new_folder())
        writer.publish(sum(entry.documents - entry.deleted for entry in rest), instead_of=rest)


def build(directory: Path, documents: Iterable[Source], order: str = INPUT) -> Changes:
    """Make an index of just these documents."""
    with writing(directory) as writer:
        writer.start_anew(order)
        changes = add(writer, documents)
        tidy(writer)
    return changes
