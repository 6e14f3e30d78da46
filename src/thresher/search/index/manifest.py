"""The manifest of an index: its segments and how they were made, in one small file that is replaced as a whole.

Segments never change. A writer makes new ones beside the old ones and then replaces the manifest, so a
process killed at any time leaves the old index or the new one. The next writer deletes files of no manifest.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct

from thresher.errors import DataError, NoCorpusError
from thresher.files.durable_files import exclusive, publish_directory, replace
from thresher.search.encoding.bitpacking import Ids
from thresher.search.index.segment import Segment
from thresher.store.checked_files import json_file

FOLDER = "index"
FILE = "manifest.json"
VERSION = 1  # of the format of the files; an index of another version must be rebuilt
# A reader tries so often: segments may be merged after it has read the manifest and before it opens them.
OPENING_ATTEMPTS = 10

_NEW = ".new"  # suffix of a segment that is not written to its end
_INDEX_FILE = re.compile(r"(\d{6})(\.new|\.deleted-\d+(\.tmp)?)?")


class SegmentEntry(Struct, frozen=True):
    """A segment of an index, as the manifest lists it."""

    name: str
    tokens: int
    documents: int  # deleted ones included
    deleted: int = 0  # number of deleted documents
    deletion: int = 0  # number of the file that lists the deleted documents; 0 if there is none


class IndexOrigin(Struct, frozen=True):
    """The command that made an index, and the size of its corpus at that time."""

    command: Literal["index", "process"] = "index"
    documents: int = 0  # documents that the index was to hold
    rows: int = 0  # rows that the corpus had, including documents that are left out of the index


class Manifest(Struct, frozen=True):
    """State of an index at one moment."""

    version: int = VERSION
    order: str = ""  # of documents within a segment
    next_segment: int = 1
    next_document: int = 0
    segments: tuple[SegmentEntry, ...] = ()
    # The annotator of each language. None in an index made before annotators were recorded.
    annotators: dict[str, str] | None = None
    # None in an index made before this was recorded.
    origin: IndexOrigin | None = None

    @property
    def documents(self) -> int:
        """Number of documents that a search can find."""
        return sum(entry.documents - entry.deleted for entry in self.segments)


class CorpusIndexError(DataError):
    """An index that is missing or cannot be used. The message names the command that helps."""


def read(directory: Path) -> Manifest | None:
    """Return the manifest of a corpus's index, or None if there is no index.

    Raises CorpusIndexError if the manifest is damaged or was written by another version.
    """
    path = directory / FOLDER / FILE
    try:
        manifest = json_file(path, Manifest)
    except FileNotFoundError:
        return None
    except DataError as fault:
        raise CorpusIndexError(
            f"{fault}, or rebuild the index: thresher index {directory} --rebuild"
        ) from None
    if manifest.version != VERSION:
        raise CorpusIndexError(
            f"the index of {directory} has the format of another version; rebuild it: "
            f"thresher index {directory} --rebuild"
        )
    return manifest


def open_segments(directory: Path) -> tuple[Manifest, list[Segment]]:
    """Return the manifest with its segments opened, all as of one moment."""
    for _ in range(OPENING_ATTEMPTS):
        manifest = read(directory)
        if manifest is None:
            if not directory.is_dir():
                raise NoCorpusError(directory)
            raise CorpusIndexError(f"{directory} has no index yet; make one: thresher index {directory}")
        with contextlib.suppress(FileNotFoundError):
            return manifest, [open_segment(directory, entry) for entry in manifest.segments]
    raise _missing(directory)


def _missing(directory: Path) -> CorpusIndexError:
    return CorpusIndexError(
        f"files of the index of {directory} are missing; rebuild it: thresher index {directory} --rebuild"
    )


def open_segment(directory: Path, entry: SegmentEntry) -> Segment:
    """Open a segment of a manifest."""
    folder = directory / FOLDER
    deleted: Ids | None = None
    if entry.deletion:
        deleted = np.fromfile(_deletion(folder, entry), np.uint32)
    return Segment(folder / entry.name, deleted)


def _deletion(folder: Path, entry: SegmentEntry) -> Path:
    return folder / f"{entry.name}.deleted-{entry.deletion}"


@contextlib.contextmanager
def writing(directory: Path, *, rebuild: bool = False) -> Iterator[ManifestWriter]:
    """Lock the index of a corpus for the one process that may change it, and yield its writer.

    With `rebuild`, a new index is made beside the old one. Searches use the old index until the block ends
    without an error; then the new index replaces it in one step.
    """
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    busy = f"the index of {directory} is being changed by another process"
    with exclusive(folder / "lock", lambda owner: CorpusIndexError(f"{busy} ({owner}); wait for it")):
        writer = ManifestWriter(directory, rebuild=rebuild)
        try:
            yield writer
        except BaseException:
            writer.roll_back()
            raise
        writer.commit()


class ManifestWriter:
    """Changes an index from one manifest to the next. Each change is durable when its method returns.

    In a rebuild, changes are kept in memory until `commit`, and the files of the old index stay.
    """

    def __init__(self, directory: Path, *, rebuild: bool = False) -> None:
        self.directory = directory
        self.folder = directory / FOLDER
        self._old_files: frozenset[str] = frozenset()
        # A first index has no predecessor to protect: its segments count as soon as they are written.
        self._is_rebuild = rebuild and (self.folder / FILE).exists()
        self.manifest = self._begin_rebuild() if self._is_rebuild else read(directory) or Manifest()
        self._sweep()

    def _begin_rebuild(self) -> Manifest:
        """Return an empty manifest; the names of its segments will differ from the ones of the old index."""
        try:
            old = read(self.directory) or Manifest()
            self._old_files = frozenset(_files_of(self.folder, old))
        except CorpusIndexError:  # without a readable manifest, any whole segment may be part of the index
            old = Manifest()
            paths = (path for path in self.folder.iterdir() if _INDEX_FILE.fullmatch(path.name))
            self._old_files = frozenset(path.name for path in paths if path.suffix != _NEW)
        numbers = [int(name[:6]) for name in self._old_files]
        return Manifest(order=old.order, next_segment=max(old.next_segment, *(n + 1 for n in numbers), 1))

    def segment(self, entry: SegmentEntry) -> Segment:
        """Open a segment; it must exist, since only the holder of the lock deletes segments."""
        try:
            return open_segment(self.directory, entry)
        except FileNotFoundError:
            raise _missing(self.directory) from None

    def new_folder(self) -> Path:
        """Return the folder in which to write the next segment."""
        return self.folder / f"{self.manifest.next_segment:06d}{_NEW}"

    def publish(self, documents: int, *, instead_of: tuple[SegmentEntry, ...] = ()) -> None:
        """Make the segment in the new folder part of the index, perhaps in place of others."""
        name = f"{self.manifest.next_segment:06d}"
        publish_directory(self.new_folder(), self.folder / name)
        segment = Segment(self.folder / name)
        kept = tuple(entry for entry in self.manifest.segments if entry not in instead_of)
        self._replace(
            next_segment=self.manifest.next_segment + 1,
            next_document=self.manifest.next_document + (0 if instead_of else documents),
            segments=(*kept, SegmentEntry(name, segment.size, documents)),
        )

    def describe(
        self,
        *,
        order: str | None = None,
        annotators: dict[str, str] | None = None,
        origin: IndexOrigin | None = None,
    ) -> None:
        """Record how the index was made; values left out stay as they are."""
        given = {"order": order, "annotators": annotators, "origin": origin}
        self._replace(**{name: value for name, value in given.items() if value is not None})

    def drop(self, entries: tuple[SegmentEntry, ...]) -> None:
        """Remove segments from the index."""
        self._replace(segments=tuple(entry for entry in self.manifest.segments if entry not in entries))

    def delete(self, entry: SegmentEntry, documents: Ids) -> None:
        """Mark more documents of a segment as deleted."""
        deleted = documents
        if entry.deletion:
            deleted = np.union1d(np.fromfile(_deletion(self.folder, entry), np.uint32), documents)
        marked = msgspec.structs.replace(entry, deleted=len(deleted), deletion=entry.deletion + 1)
        replace(_deletion(self.folder, marked), np.sort(deleted).astype(np.uint32).tobytes())
        self._replace(
            segments=tuple(marked if one == entry else one for one in self.manifest.segments),
        )

    def start(self, order: str) -> None:
        """Begin an index without segments, and set the order of its documents."""
        self._replace(segments=(), order=order, next_document=0, annotators={}, origin=None)

    def commit(self) -> None:
        """End a rebuild: replace the old index by the new one. Other changes are durable already."""
        if self._is_rebuild:
            self._is_rebuild, self._old_files = False, frozenset()
            self._write()

    def roll_back(self) -> None:
        """End a rebuild that failed: delete its segments, and keep the old index."""
        if self._is_rebuild:
            self.manifest = msgspec.structs.replace(self.manifest, segments=())
            self._sweep()

    def _replace(self, **changes: object) -> None:
        changed = msgspec.structs.replace(self.manifest, **changes)
        if changed == self.manifest and (self.folder / FILE).exists():
            return  # recipes recognise their index by the time at which the manifest was written
        self.manifest = changed
        if self._is_rebuild:
            self._sweep()
        else:
            self._write()

    def _write(self) -> None:
        """Make the manifest durable. From that moment on, searches use it."""
        replace(self.folder / FILE, msgspec.json.format(msgspec.json.encode(self.manifest), indent=1))
        self._sweep()

    def _sweep(self) -> None:
        """Delete files of no manifest. Readers that have them open can still read them."""
        known = _files_of(self.folder, self.manifest) | self._old_files
        for path in self.folder.iterdir():
            if not _INDEX_FILE.fullmatch(path.name) or path.name in known:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _files_of(folder: Path, manifest: Manifest) -> set[str]:
    """Return the names of the files and folders of a manifest's segments."""
    deletions = {_deletion(folder, entry).name for entry in manifest.segments if entry.deletion}
    return {entry.name for entry in manifest.segments} | deletions
