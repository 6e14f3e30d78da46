"""Named arrays in one file that is written once and then memory-mapped, so that nothing is loaded as a whole.

The arrays follow each other, each aligned to 64 bytes. After them come a directory as JSON, its length, and a mark
that identifies the format.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.errors import DataError
from thresher.search.encoding.bitpacking import Allocator

MARK = b"thresher shelf 1"
ALIGNMENT = 64  # bytes: a cache line of the processor

Array = NDArray[Any]


class ArrayPlace(Struct, frozen=True):
    """The place of an array in the file."""

    kind: str  # numpy's name of its type
    start: int
    count: int


class ArrayDirectory(Struct, frozen=True):
    """The table of contents of an array file."""

    arrays: dict[str, ArrayPlace]
    facts: dict[str, Any]  # small values that are no arrays


def mapped(file: IO[bytes], kind: Any, start: int, count: int) -> Array:
    """Return a writable array of zeros at the end of a file, mapped so that it need not fit into memory.

    Its disk space is reserved: if the disk were full at a later write to the mapping, the process would be killed.
    """
    size = count * np.dtype(kind).itemsize
    if not size:
        return np.zeros(0, kind)
    file.flush()
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), start, size)
    else:
        file.truncate(start + size)
    return np.memmap(file, kind, "r+", start, (count,)).view(np.ndarray)


class ArrayFileWriter:
    """Writes an array file, which is complete and durable when `close` returns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._arrays: dict[str, ArrayPlace] = {}
        self._facts: dict[str, Any] = {}

    def put(self, name: str, array: Array) -> None:
        """Add an array."""
        self._file.write(bytes(-self._file.tell() % ALIGNMENT))
        self._arrays[name] = ArrayPlace(array.dtype.str, self._file.tell(), len(array))
        self._file.write(np.ascontiguousarray(array).data if len(array) else b"")

    def allocate(self, name: str, kind: Any, count: int) -> Array:
        """Add an array of zeros and return it for writing; it is mapped, so it need not fit into memory."""
        self._file.write(bytes(-self._file.tell() % ALIGNMENT))
        place = ArrayPlace(np.dtype(kind).str, self._file.tell(), count)
        self._arrays[name] = place
        array = mapped(self._file, kind, place.start, count)
        self._file.seek(place.start + array.nbytes)
        return array

    def allocator(self, prefix: str) -> Allocator:
        """Return a function like `allocate` that puts a prefix before the names."""
        return lambda name, kind, count: self.allocate(prefix + name, kind, count)

    def describe(self, **facts: Any) -> None:
        """Add small values to the directory."""
        self._facts.update(facts)

    def close(self) -> None:
        """Write the directory and make the file durable."""
        contents = msgspec.json.encode(ArrayDirectory(self._arrays, self._facts))
        self._file.write(contents + len(contents).to_bytes(8, "little") + MARK)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> ArrayFileWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()


class ArrayFile:
    """An array file opened for reading. Its arrays are views of the mapped file, and keep it open."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < len(MARK) + 8:
                raise damaged(path)
            self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        end = size - len(MARK) - 8
        length = int.from_bytes(self._memory[end : end + 8], "little")
        if self._memory[end + 8 :] != MARK or length > end:
            raise damaged(path)
        try:
            self._contents = msgspec.json.decode(self._memory[end - length : end], type=ArrayDirectory)
        except msgspec.DecodeError:
            raise damaged(path) from None
        self.size = size

    @property
    def facts(self) -> dict[str, Any]:
        """Small values of the directory."""
        return self._contents.facts

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self._contents.arrays)

    def __getitem__(self, name: str) -> Array:
        place = self._contents.arrays[name]
        kind = np.dtype(place.kind)
        if not place.count:
            return np.zeros(0, kind)
        return np.frombuffer(self._memory, kind, place.count, place.start)


def damaged(path: Path) -> DataError:
    """Return the error for a file of an index that cannot be read."""
    return DataError(f"{path} is damaged or missing; rebuild the index: `thresher index DIR --rebuild`")
