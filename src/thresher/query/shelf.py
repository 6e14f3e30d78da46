"""Arrays under names in one file that is written once and then lent to memory: nothing of it is loaded whole.

The arrays come one after the other, each from a multiple of 64 bytes on; behind them stands a table of contents as
JSON, its length, and a mark that tells what the file is.
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

from thresher.query.packing import Room
from thresher.store.files import StoreError

MARK = b"thresher shelf 1"
ALIGNED = 64  # bytes: a line of the processor's cache

Array = NDArray[Any]


class Place(Struct, frozen=True):
    """Where an array stands."""

    kind: str  # numpy's name of its type
    start: int
    count: int


class Contents(Struct, frozen=True):
    arrays: dict[str, Place]
    facts: dict[str, Any]  # small things that are no arrays


def mapped(file: IO[bytes], kind: Any, start: int, count: int) -> Array:
    """Zeros of a kind in a file, from a place on to its end, to be written to; they need not fit into memory.

    There is space for them on the disk: where it ran out only as they are written, the process would be killed.
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


class ShelfWriter:
    """Writes a shelf; the file is durable, and whole, when `close` returns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._arrays: dict[str, Place] = {}
        self._facts: dict[str, Any] = {}

    def put(self, name: str, array: Array) -> None:
        """Add an array."""
        self._file.write(bytes(-self._file.tell() % ALIGNED))
        self._arrays[name] = Place(array.dtype.str, self._file.tell(), len(array))
        self._file.write(np.ascontiguousarray(array).data if len(array) else b"")

    def room(self, name: str, kind: Any, count: int) -> Array:
        """Room for an array, which is written where it will lie: it need not fit into memory."""
        self._file.write(bytes(-self._file.tell() % ALIGNED))
        place = Place(np.dtype(kind).str, self._file.tell(), count)
        self._arrays[name] = place
        array = mapped(self._file, kind, place.start, count)
        self._file.seek(place.start + array.nbytes)
        return array

    def named(self, prefix: str) -> Room:
        """The same for arrays whose names get something before them."""
        return lambda name, kind, count: self.room(prefix + name, kind, count)

    def tell(self, **facts: Any) -> None:
        """Add facts."""
        self._facts.update(facts)

    def close(self) -> None:
        contents = msgspec.json.encode(Contents(self._arrays, self._facts))
        self._file.write(contents + len(contents).to_bytes(8, "little") + MARK)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def __enter__(self) -> ShelfWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()


class Shelf:
    """A shelf to read from; what it lends stays valid as long as somebody holds it."""

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
            self._contents = msgspec.json.decode(self._memory[end - length : end], type=Contents)
        except msgspec.DecodeError:
            raise damaged(path) from None
        self.size = size

    @property
    def facts(self) -> dict[str, Any]:
        return self._contents.facts

    @property
    def names(self) -> list[str]:
        return list(self._contents.arrays)

    def __getitem__(self, name: str) -> Array:
        place = self._contents.arrays[name]
        kind = np.dtype(place.kind)
        if not place.count:
            return np.zeros(0, kind)
        return np.frombuffer(self._memory, kind, place.count, place.start)


def damaged(path: Path) -> StoreError:
    """What is to be said of a file of an index that cannot be read."""
    return StoreError(f"{path} is damaged or missing; build the index anew: `thresher index DIR --rebuild`")
