"""Files of arrays, written in one go and published atomically.

Arrays follow each other, each at a multiple of eight bytes. After them comes a table of contents in JSON, then its
hash, its length and the name of the format. A reader reads the contents and any part of any array. An array that is
read as a whole must have the hash that it was written with; where a part is read, its numbers must be in range. So
a damaged file is recognised, or has no worse effect than other text would have.
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

from thresher.errors import DataError
from thresher.files.durable_files import replacing

FORMAT = b"nearly01"  # files of another format are refused, and made again
MAX_CONTENTS_BYTES = 1 << 26
_ALIGNED = 8
_TAIL = struct.Struct("<QQ8s")  # hash and length of the contents, format

Kind = TypeVar("Kind", bound=np.generic)


class DedupArray(Struct, frozen=True, array_like=True):
    """The position and type of an array."""

    kind: str
    offset: int
    count: int
    hash: int


class DedupContents(Struct, frozen=True):
    """The table of contents of a file."""

    arrays: dict[str, DedupArray]
    numbers: dict[str, int]


class DedupFileError(DataError):
    """A file that cannot be used, or a setting; the message names it and the fix."""


def number(path: Path, name: str) -> int:
    """Return a named number of a file."""
    with DedupReader(path) as file:
        found = file.numbers
    if name not in found:
        raise DedupFileError(f"{path} has no number named {name}: another step made it; give the right file")
    return found[name]


class DedupWriter:
    """A writer of such a file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._arrays: dict[str, DedupArray] = {}
        self.numbers: dict[str, int] = {}
        self.end = 0

    def put(self, array: NDArray[Any]) -> int:
        """Write an array and return its offset, which the caller has to store."""
        place = self.end
        raw = array.reshape(-1).view(np.uint8).data
        for part in (raw, bytes(-len(raw) % _ALIGNED)):
            self._file.write(part)
            self.end += len(part)
        return place

    def put_named(self, name: str, array: NDArray[Any]) -> None:
        """Write an array that can be read by its name."""
        hashed = xxhash.xxh3_64_intdigest(array.reshape(-1).view(np.uint8).data)
        self._arrays[name] = DedupArray(array.dtype.str, self.put(array), array.size, hashed)

    def finish(self) -> None:
        """Write the table of contents."""
        contents = msgspec.json.encode(DedupContents(self._arrays, self.numbers), order="sorted")
        self._file.write(contents + _TAIL.pack(xxhash.xxh3_64_intdigest(contents), len(contents), FORMAT))


@contextlib.contextmanager
def writing(path: Path) -> Iterator[DedupWriter]:
    """Write a file that exists, whole and durable, after the block, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        writer = DedupWriter(file)
        yield writer
        writer.finish()


class DedupReader:
    """A reader of such a file; only the requested parts are in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.contents = self._contents()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> DedupReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    @property
    def numbers(self) -> dict[str, int]:
        """The named numbers of the file."""
        return self.contents.numbers

    def count(self, name: str) -> int:
        """Return the number of items of a named array."""
        return self._place(name).count

    def array(self, name: str, kind: type[Kind], start: int = 0, count: int = -1) -> NDArray[Kind]:
        """Return a named array, or `count` of its items from `start` on; raise DedupFileError if it is damaged."""
        place = self._place(name)
        if np.dtype(kind).str != place.kind:
            raise self._damaged(f"{name} has another type")
        is_whole = count < 0
        count = place.count - start if is_whole else count
        if not 0 <= start <= start + count <= place.count:
            raise self._damaged(f"{name} is too short")
        found = self.part(place.offset + start * np.dtype(kind).itemsize, kind, count)
        if is_whole and xxhash.xxh3_64_intdigest(found.view(np.uint8).data) != place.hash:
            raise self._damaged(f"{name} has changed since it was written")
        return found

    def part(self, offset: int, kind: type[Kind], count: int, *, below: int | None = None) -> NDArray[Kind]:
        """Return `count` items from an offset on; raise DedupFileError if one of them is not below `below`."""
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

    def _place(self, name: str) -> DedupArray:
        try:
            return self.contents.arrays[name]
        except KeyError:
            raise self._damaged(f"it has no {name}") from None

    def _contents(self) -> DedupContents:
        self._size = size = os.fstat(self._descriptor).st_size
        if size < _TAIL.size:
            raise self._damaged("it is cut short")
        hashed, length, format = _TAIL.unpack(os.pread(self._descriptor, _TAIL.size, size - _TAIL.size))
        if format != FORMAT or length > min(size - _TAIL.size, MAX_CONTENTS_BYTES):
            raise self._damaged("it has another format, or is from another version")
        contents = os.pread(self._descriptor, length, size - _TAIL.size - length)
        if xxhash.xxh3_64_intdigest(contents) != hashed:
            raise self._damaged("its table of contents has changed since it was written")
        try:
            return msgspec.json.decode(contents, type=DedupContents)
        except msgspec.DecodeError as fault:
            raise self._damaged(str(fault)) from None

    def _damaged(self, reason: str) -> DedupFileError:
        return DedupFileError(f"{self.path} cannot be used ({reason}); delete it and run the step again")
