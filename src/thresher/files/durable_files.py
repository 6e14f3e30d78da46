"""Append-only files that are exactly as long as the last commit says.

The commit protocol of every store in this package:

1. `flush()` makes everything added durable: append, fsync, and fsync the directory of a new file;
2. the caller commits `lengths()`: every file name, with its durable length or None (it never changes again);
3. `retire()` deletes files that the commit superseded;
4. on opening, files are cut back to their committed lengths, and uncommitted files are deleted.

After a crash between any two steps, a row is there once or not at all.

Files that are replaced as a whole go through `replace`, `replacing` or `Replacement`, and directories that are
built under another name through `publish_directory`. No other code renames files or directories to publish them;
log files are rotated, not published.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from thresher.errors import DataError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

# Never through a symbolic link: nothing outside the corpus is written to.
_OPEN_FLAGS = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# The end of the name of a file that is not whole yet, as a pattern. Earlier versions had no number in it.
TEMPORARY = r"(?:\.[0-9a-f]{16})?\.tmp"

# Files and folders of this process that are not whole yet.
unfinished: set[Path] = set()
os.register_at_fork(after_in_child=unfinished.clear)


class Replacement:
    """A file that is written beside `path` and takes its place on `commit`; until then `path` is unchanged.

    Its name is new, so that no file of the user and of another process is overwritten, and no link is followed.
    A lock on it tells the next writer of `path` whether its process lives; leftovers of killed ones are deleted.
    `replace` and `replacing` are shorter where one function writes the whole file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _sweep(path)
        self._temporary, descriptor = _beside(path)
        self.file: BinaryIO = cast(BinaryIO, io.BufferedWriter(_NamedFile(descriptor, path)))

    def commit(self) -> None:
        """Make the file durable, then give it its name, then make the name durable."""
        self.file.flush()
        with _naming(self._path):
            os.fsync(self.file.fileno())
        self.file.close()
        self._temporary.replace(self._path)
        unfinished.discard(self._temporary)
        sync_directory(self._path.parent)

    def discard(self) -> None:
        """Delete the file."""
        with contextlib.suppress(OSError):  # closing writes buffered data, and the disk may be full
            self.file.close()
        self._temporary.unlink(missing_ok=True)
        unfinished.discard(self._temporary)


def discard_unfinished() -> None:
    """Delete the files and folders of this process that are not whole yet, where it ends on the spot."""
    for path in list(unfinished):
        with contextlib.suppress(OSError):
            path.unlink() if path.is_file() else shutil.rmtree(path)


class _NamedFile(io.FileIO):
    """A file whose faults name the file that it is to become: a full disk says no more than that it is full."""

    def __init__(self, descriptor: int, path: Path) -> None:
        super().__init__(descriptor, "wb")
        self._path = path

    def write(self, data: Buffer, /) -> int:
        with _naming(self._path):
            return super().write(data)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the path to an OSError without one."""
    try:
        yield
    except OSError as fault:
        if fault.filename is None:
            fault.filename = str(path)
        raise


def _beside(path: Path) -> tuple[Path, int]:
    """Create a file beside a path, and lock it; return its path and its descriptor."""
    while True:
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
        try:
            descriptor = os.open(temporary, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError as fault:
            fault.filename = str(path)  # the name that the user knows
            raise
        unfinished.add(temporary)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        os.close(descriptor)  # another writer of `path` took it for a leftover, before it was locked
        unfinished.discard(temporary)


def _sweep(path: Path) -> None:
    """Delete the files that killed writers of a path left beside it."""
    leftover = re.compile(re.escape(path.name) + r"\.[0-9a-f]{16}\.tmp")
    for other in path.parent.iterdir():
        if leftover.fullmatch(other.name):
            with contextlib.suppress(OSError):
                _delete_unlocked(other)


def _delete_unlocked(path: Path) -> None:
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` at the end, whole and durable, or not at all.

    A pipe or a device, as in `-o /dev/stdout`, cannot be replaced and is written to as it is.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as out:
            yield out
        return
    replacement = Replacement(path)
    try:
        yield replacement.file
        replacement.commit()
    except BaseException:
        replacement.discard()
        raise


def replace(path: Path, data: bytes) -> None:
    """Write a file that takes the place of `path` as `replacing` does."""
    with replacing(path) as out:
        out.write(data)


def sync_names(directory: Path) -> None:
    """Make the names in a directory and in all directories below it durable."""
    for place, _, _ in os.walk(directory, topdown=False):
        sync_directory(Path(place))


def publish_directory(built: Path, path: Path) -> None:
    """Make the names in a directory durable, give it the name `path`, and make that name durable.

    The content of its files must be durable already. Raise OSError and leave `built` as it is if another directory
    that is not empty has the name.
    """
    sync_names(built)
    built.rename(path)
    sync_directory(path.parent)


@contextlib.contextmanager
def exclusive(path: Path, busy: Callable[[str], Exception]) -> Iterator[None]:
    """Hold a lock file that one process at a time can hold; the kernel releases it when the process ends.

    The file holds the number of the process. `busy` turns that number into the exception for the others.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            raise busy(owner) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Return whether a process holds a lock file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def locked(directory: Path) -> contextlib.AbstractContextManager[None]:
    """Hold the lock of a corpus, in which one process at a time may write."""
    return exclusive(
        directory / "lock",
        lambda owner: DataError(
            f"{directory} is in use by process {owner}; wait until that crawl or import is done, or stop it"
        ),
    )


def adopt(directory: Path, committed: Mapping[str, int | None], naming: re.Pattern[str]) -> None:
    """Delete files of this naming that were not committed; raise DataError if a committed file is missing."""
    if not directory.is_dir():
        directory.mkdir(parents=True)
        sync_directory(directory.parent)
    for path in directory.iterdir():
        known = path.name in committed or not naming.fullmatch(path.name)
        if not known and path.is_file() and not path.is_symlink():
            path.unlink()
    for name, length in committed.items():
        if not (directory / name).is_file():
            size = "a whole file" if length is None else f"{length} bytes"
            raise DataError(f"{directory / name} is missing, though {size} had been committed; restore it")


def numbered(files: Mapping[str, int | None], naming: re.Pattern[str]) -> list[tuple[int, int | None]]:
    """Return number (the first group of the naming) and length of each file, by number."""
    found = []
    for name, length in files.items():
        match = naming.fullmatch(name)
        if match is None:
            raise DataError(f"{name} was committed, but no file of ours has such a name; restore the state")
        found.append((int(match[1]), length))
    return sorted(found, key=lambda item: item[0])


class AppendFile:
    """A file that only grows; added data are pending until they are flushed, and durable afterwards.

    The first flush that has something to write creates the file.
    """

    def __init__(self, path: Path, committed: int) -> None:
        self.path = path
        self._durable = committed
        self._end = committed
        self._pending: list[bytes] = []
        self._descriptor: int | None = None
        self._named = committed > 0  # its name in the directory is durable
        if committed or path.exists():
            self._descriptor = os.open(path, _OPEN_FLAGS)
            self._cut_back()

    @property
    def length(self) -> int:
        """Number of durable bytes."""
        return self._durable

    @property
    def end(self) -> int:
        """Offset of the next data: the number of durable and pending bytes."""
        return self._end

    def append(self, data: bytes) -> int:
        """Add data to the end, in memory until the next flush, and return their offset."""
        offset = self._end
        self._pending.append(data)
        self._end += len(data)
        return offset

    def flush(self) -> None:
        """Make pending data durable; an OSError leaves them pending and the file as long as it was."""
        if not self._pending:
            return
        if self._descriptor is None:
            self._descriptor = os.open(self.path, _OPEN_FLAGS | os.O_CREAT, 0o644)
        data = b"".join(self._pending)
        try:
            with _naming(self.path):
                self._write(self._descriptor, data)
                # After a failed fsync the kernel may mark the lost pages clean, so that a second fsync succeeds
                # without writing them. The data are still pending then, and the next flush writes all again.
                os.fsync(self._descriptor)
            if not self._named:
                sync_directory(self.path.parent)
                self._named = True
        except OSError:
            # Best effort: bytes that cannot be cut off now are overwritten by the next flush or cut on opening.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._durable)
            raise
        self._pending.clear()
        self._durable += len(data)

    def _write(self, descriptor: int, data: bytes) -> None:
        """Write all of the data behind the durable part."""
        view = memoryview(data)
        written = 0
        while written < len(view):
            written += os.pwrite(descriptor, view[written:], self._durable + written)

    def _cut_back(self) -> None:
        assert self._descriptor is not None
        size = os.fstat(self._descriptor).st_size
        if size < self._durable:
            self.close()
            raise DataError(
                f"{self.path} has {size} bytes, but {self._durable} had been committed; "
                "it was cut or overwritten by another program: restore it"
            )
        if size > self._durable:
            os.ftruncate(self._descriptor, self._durable)

    def close(self) -> None:
        """Close the file; data that were not flushed are dropped."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._pending.clear()
        self._end = self._durable
