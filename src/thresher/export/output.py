"""Files and folders that are there only once they are whole, with the same bytes each time."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard
from isal import igzip

from thresher.config import ConfigError
from thresher.store.files import sync_directory

BLOCK = 1 << 18  # bytes that a compressor gets at once, so that its output does not depend on who writes how


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name once it is whole and durable; a pipe or a device is written to as it is.

    A name that ends in .gz or .zst makes a packed file.
    """
    special = path.exists() and not path.is_file()
    if path.is_dir():
        raise ConfigError(f"{path} is a directory; name a file in it: -o {path}/NAME")
    if not path.parent.is_dir():
        raise ConfigError(f"{path} cannot be written: {path.parent} is no directory; make it first")
    target = path if special else path.with_name(path.name + ".tmp")
    try:
        with target.open("wb") as file:
            with _packed(file, path.suffix) as out:
                yield out
            if not special:
                file.flush()
                os.fsync(file.fileno())
        if not special:
            target.replace(path)
            sync_directory(path.parent)
    except BaseException:
        if not special:
            target.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def folder(path: Path) -> Iterator[Path]:
    """A folder that gets its name once all in it is whole and durable."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path} exists and is not empty; choose another name with -o, or delete it first")
    new = path.with_name(path.name + ".tmp")
    shutil.rmtree(new, ignore_errors=True)  # of one that was killed
    new.mkdir(parents=True)
    try:
        yield new
        for place in [*(one for one in new.rglob("*") if one.is_dir()), new]:
            sync_directory(place)
        new.replace(path)
        sync_directory(path.parent)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def write_durably(path: Path, data: bytes) -> None:
    """A small file, in a folder that has no name yet."""
    with path.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


@contextlib.contextmanager
def _packed(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """Packed by file name, without names or times in it."""
    packer: Any
    if suffix == ".gz":
        packer = igzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)  # type: ignore[no-untyped-call]
    elif suffix == ".zst":
        packer = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    else:
        yield file
        return
    with packer:
        even = _Even(packer)
        yield cast(BinaryIO, even)
        even.finish()


class _Even:
    """Passes on what is written in blocks of one size."""

    closed = False

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._waiting = bytearray()
        self._written = 0

    def write(self, data: bytes) -> int:
        self._waiting += data
        self._written += len(data)
        whole = len(self._waiting) // BLOCK * BLOCK
        for start in range(0, whole, BLOCK):
            self._out.write(self._waiting[start : start + BLOCK])
        del self._waiting[:whole]
        return len(data)

    def tell(self) -> int:
        return self._written

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing: blocks are whole."""

    def close(self) -> None:
        """Nothing: who opened it closes it."""

    def finish(self) -> None:
        """Pass on the rest."""
        self._out.write(bytes(self._waiting))
        self._waiting.clear()
