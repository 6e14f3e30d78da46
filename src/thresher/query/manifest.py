"""Which segments an index is made of: one small file, replaced as a whole."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from thresher.query.packing import Ids
from thresher.query.segment import Segment
from thresher.store.files import StoreError, exclusive, sync_directory

FOLDER = "index"
FILE = "manifest.json"
VERSION = 1  # of the files of an index; others are built anew
LOOKS = 10  # segments may be merged between the reading of a manifest and their opening

_OURS = re.compile(r"(\d{6})(\.new|\.deleted-\d+)?")


class Entry(Struct, frozen=True):
    """A segment."""

    name: str
    tokens: int
    documents: int  # with those that were deleted
    deleted: int = 0  # documents
    deletion: int = 0  # number of the file that tells which


class Manifest(Struct, frozen=True):
    """An index as of one moment."""

    version: int = VERSION
    order: str = ""  # of documents in a segment
    next_segment: int = 1
    next_document: int = 0
    segments: tuple[Entry, ...] = ()


class IndexFault(StoreError):
    """An index is not there, or cannot be used; the message tells the cure."""


def read(directory: Path) -> Manifest | None:
    """The manifest of a corpus's index; None if there is no index."""
    path = directory / FOLDER / FILE
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as fault:
        raise IndexFault(
            f"{path} cannot be read ({fault}); build it anew: thresher index {directory} --rebuild"
        ) from None
    if found.version != VERSION:
        raise IndexFault(
            f"the index of {directory} was made by another version; build it anew: "
            f"thresher index {directory} --rebuild"
        )
    return found


def open_segments(directory: Path) -> tuple[Manifest, list[Segment]]:
    """The manifest and its segments, all as of one moment."""
    for _ in range(LOOKS):
        manifest = read(directory)
        if manifest is None:
            raise IndexFault(f"{directory} has no index yet; make one: thresher index {directory}")
        with contextlib.suppress(FileNotFoundError):
            return manifest, [open_segment(directory, entry) for entry in manifest.segments]
    raise _missing(directory)


def _missing(directory: Path) -> IndexFault:
    return IndexFault(
        f"files of the index of {directory} are missing; build it anew: thresher index {directory} --rebuild"
    )


def open_segment(directory: Path, entry: Entry) -> Segment:
    folder = directory / FOLDER
    deleted: Ids | None = None
    if entry.deletion:
        deleted = np.fromfile(_deletion(folder, entry), np.uint32)
    return Segment(folder / entry.name, deleted)


def _deletion(folder: Path, entry: Entry) -> Path:
    return folder / f"{entry.name}.deleted-{entry.deletion}"


@contextlib.contextmanager
def writing(directory: Path, *, anew: bool = False) -> Iterator[Writer]:
    """The one who may change an index; others are told to wait. `anew`: whatever there is does not count."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    busy = f"the index of {directory} is being changed by another process"
    with exclusive(folder / "lock", lambda owner: IndexFault(f"{busy} ({owner}); wait for it")):
        yield Writer(directory, anew=anew)


class Writer:
    """Changes an index, each time from one manifest to the next: what a killed one had begun is not there."""

    def __init__(self, directory: Path, *, anew: bool = False) -> None:
        self.directory = directory
        self.folder = directory / FOLDER
        self.manifest = Manifest() if anew else read(directory) or Manifest()
        self._sweep()

    def segment(self, entry: Entry) -> Segment:
        """A segment of the index, which must be there: nobody else takes any away."""
        try:
            return open_segment(self.directory, entry)
        except FileNotFoundError:
            raise _missing(self.directory) from None

    def new_folder(self) -> Path:
        """Where the next segment is to be written."""
        return self.folder / f"{self.manifest.next_segment:06d}.new"

    def publish(self, documents: int, *, instead_of: tuple[Entry, ...] = ()) -> None:
        """Make the segment in the new folder part of the index, perhaps in place of others."""
        name = f"{self.manifest.next_segment:06d}"
        new = self.new_folder()
        new.rename(self.folder / name)
        sync_directory(self.folder)
        segment = Segment(self.folder / name)
        kept = tuple(entry for entry in self.manifest.segments if entry not in instead_of)
        self._swap(
            next_segment=self.manifest.next_segment + 1,
            next_document=self.manifest.next_document + (0 if instead_of else documents),
            segments=(*kept, Entry(name, segment.size, documents)),
        )

    def set_order(self, order: str) -> None:
        """Say that the documents of all segments stand in an order."""
        if order != self.manifest.order:
            self._swap(order=order)

    def drop(self, entries: tuple[Entry, ...]) -> None:
        """Take segments out of the index."""
        self._swap(segments=tuple(entry for entry in self.manifest.segments if entry not in entries))

    def delete(self, entry: Entry, documents: Ids) -> None:
        """Mark documents of a segment as deleted, besides those that are."""
        gone = documents
        if entry.deletion:
            gone = np.union1d(np.fromfile(_deletion(self.folder, entry), np.uint32), documents)
        marked = msgspec.structs.replace(entry, deleted=len(gone), deletion=entry.deletion + 1)
        with _deletion(self.folder, marked).open("wb") as file:
            file.write(np.sort(gone).astype(np.uint32).tobytes())
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self.folder)
        self._swap(
            segments=tuple(marked if one == entry else one for one in self.manifest.segments),
        )

    def start_anew(self, order: str) -> None:
        """Forget all segments."""
        self._swap(segments=(), order=order, next_document=0)

    def _swap(self, **changes: object) -> None:
        """The moment at which an index becomes another."""
        self.manifest = msgspec.structs.replace(self.manifest, **changes)
        temporary = self.folder / f"{FILE}.tmp"
        with temporary.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(self.manifest), indent=1))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.folder / FILE)
        sync_directory(self.folder)
        self._sweep()

    def _sweep(self) -> None:
        """Remove what no manifest knows of; those who read it still have it."""
        known = {entry.name for entry in self.manifest.segments}
        known |= {_deletion(self.folder, entry).name for entry in self.manifest.segments if entry.deletion}
        for path in self.folder.iterdir():
            if not _OURS.fullmatch(path.name) or path.name in known:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
