"""Output files and folders that get their names when they are whole, and have the same bytes each time."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard
from isal import igzip

from thresher.errors import UsageError
from thresher.files.durable_files import publish_directory, replacing, unfinished
from thresher.store.corpus_files import check_output, check_output_file

PACKED = (".gz", ".zst")  # suffixes of packed files
BLOCK = 1 << 18  # bytes given to a compressor at once: its output does not depend on the size of writes


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file that gets its name when it is whole and durable, packed if the name ends in .gz or .zst."""
    check_output_file(path)
    with replacing(path) as file, _packed(file, path.suffix.lower()) as out:
        yield out


@contextlib.contextmanager
def folder(path: Path) -> Iterator[Path]:
    """Make a folder that gets its name when everything in it is whole and durable."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} exists and is not empty; choose another name with -o, or delete it first")
    check_output(path)
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    new.mkdir(parents=True)
    unfinished.add(new)
    try:
        yield new
        publish_directory(new, path)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    finally:
        unfinished.discard(new)


def write_durably(path: Path, data: bytes) -> None:
    """Write a small file and make it durable, in a folder that is not published yet."""
    with path.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


@contextlib.contextmanager
def _packed(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """Open a compressor for a file by its suffix; names and times are left out of its headers."""
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
    """A writer that passes data on in blocks of one size."""

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
        """Do nothing: only whole blocks are passed on."""

    def close(self) -> None:
        """Do nothing: `_packed` closes the compressor."""

    def finish(self) -> None:
        """Pass on the rest."""
        self._out.write(bytes(self._waiting))
        self._waiting.clear()
