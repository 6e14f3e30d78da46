"""Files of arrays: written in one go, and published whole.

Arrays stand one after the other, each at a multiple of eight bytes. Behind them is a contents in JSON, then its
hash, its length and the name of the form. Whoever opens a file reads its contents and any part of any array. What
is read as a whole must have the hash that it was written with; where parts are read, no number may be too large. So
a damaged file is told, or does no more harm than other text would do.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import xxhash
from msgspec import Struct
from numpy.typing import NDArray

from thresher.store.files import StoreError, sync_directory

FORM = b"nearly01"  # of these files; others are made anew
LONGEST_CONTENTS = 1 << 26  # bytes
_ALIGNED = 8
_TAIL = struct.Struct("<QQ8s")  # hash and length of the contents, form

Kind = TypeVar("Kind", bound=np.generic)


class Place(Struct, frozen=True, array_like=True):
    """Where an array stands."""

    kind: str
    offset: int
    count: int
    hash: int


class Contents(Struct, frozen=True):
    """What is in a file."""

    arrays: dict[str, Place]
    numbers: dict[str, int]


class NearFault(StoreError):
    """A step cannot be done; the message names the file or the setting, and the cure."""


def number(path: Path, name: str) -> int:
    """A number that a file tells."""
    with Arrays(path) as file:
        found = file.numbers
    if name not in found:
        raise NearFault(f"{path} tells no number of {name}: it was made by another step; give the right file")
    return found[name]


class Writer:
    """A file that is being written."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._arrays: dict[str, Place] = {}
        self.numbers: dict[str, int] = {}
        self.end = 0

    def put(self, array: NDArray[Any]) -> int:
        """Write an array that the writer keeps account of; where it stands."""
        place = self.end
        raw = array.reshape(-1).view(np.uint8).data
        for part in (raw, bytes(-len(raw) % _ALIGNED)):
            self._file.write(part)
            self.end += len(part)
        return place

    def name(self, name: str, array: NDArray[Any]) -> None:
        """Write an array under a name."""
        hashed = xxhash.xxh3_64_intdigest(array.reshape(-1).view(np.uint8).data)
        self._arrays[name] = Place(array.dtype.str, self.put(array), array.size, hashed)

    def finish(self) -> None:
        told = msgspec.json.encode(Contents(self._arrays, self.numbers), order="sorted")
        self._file.write(told + _TAIL.pack(xxhash.xxh3_64_intdigest(told), len(told), FORM))


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Writer]:
    """Write a file; it is there, whole and durable, at the end. Several who write the same do no harm."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open("wb") as file:
            writer = Writer(file)
            yield writer
            writer.finish()
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


class Arrays:
    """A file that is being read. No part of it is in memory but what was asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.contents = self._contents()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Arrays:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)

    @property
    def numbers(self) -> dict[str, int]:
        return self.contents.numbers

    def count(self, name: str) -> int:
        """How many items a named array has."""
        return self._place(name).count

    def array(self, name: str, kind: type[Kind], start: int = 0, count: int = -1) -> NDArray[Kind]:
        """A named array, or some of its items."""
        place = self._place(name)
        if np.dtype(kind).str != place.kind:
            raise self._damaged(f"{name} is of another kind")
        is_whole = count < 0
        count = place.count - start if is_whole else count
        if not 0 <= start <= start + count <= place.count:
            raise self._damaged(f"{name} is too short")
        found = self.part(place.offset + start * np.dtype(kind).itemsize, kind, count)
        if is_whole and xxhash.xxh3_64_intdigest(found.view(np.uint8).data) != place.hash:
            raise self._damaged(f"{name} is not as it was written")
        return found

    def part(self, offset: int, kind: type[Kind], count: int, *, below: int | None = None) -> NDArray[Kind]:
        """So many items from a place on, all of which are below a number."""
        if not 0 <= offset <= offset + count * np.dtype(kind).itemsize <= self._size:
            raise self._damaged("it is cut short")
        found = np.empty(count, kind)
        raw = found.view(np.uint8).data
        done = 0
        while done < len(raw):
            got = os.preadv(self._descriptor, [raw[done:]], offset + done)
            if not got:
                raise self._damaged("it is cut short")
            done += got
        if below is not None and len(found) and int(found.max()) >= below:
            raise self._damaged("a number is too large")
        return found

    def _place(self, name: str) -> Place:
        try:
            return self.contents.arrays[name]
        except KeyError:
            raise self._damaged(f"it has no {name}") from None

    def _contents(self) -> Contents:
        self._size = size = os.fstat(self._descriptor).st_size
        if size < _TAIL.size:
            raise self._damaged("it is cut short")
        hashed, length, form = _TAIL.unpack(os.pread(self._descriptor, _TAIL.size, size - _TAIL.size))
        if form != FORM or length > min(size - _TAIL.size, LONGEST_CONTENTS):
            raise self._damaged("it is no such file, or one of another version")
        told = os.pread(self._descriptor, length, size - _TAIL.size - length)
        if xxhash.xxh3_64_intdigest(told) != hashed:
            raise self._damaged("its contents are not as they were written")
        try:
            return msgspec.json.decode(told, type=Contents)
        except msgspec.DecodeError as fault:
            raise self._damaged(str(fault)) from None

    def _damaged(self, how: str) -> NearFault:
        return NearFault(f"{self.path} cannot be used ({how}); delete it and run the step again")
