"""Append-only files that are exactly as long as the last commit says.

The commit protocol, which every store of this room follows:

1. `flush()` makes all that was added durable: append, fsync, and fsync the directory of a new file;
2. the caller commits `lengths()`: every file name, with its durable length or None (it never changes again);
3. `retire()` deletes what that commit made superfluous;
4. on opening, files are cut back to their committed lengths and those that no commit knows are deleted.

So whatever happens in between, a row is there once or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

# Never through a symbolic link: nothing outside the corpus is written to.
_OPEN_FLAGS = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)


class StoreError(Exception):
    """The files are not as they were committed; the message names the file and the cure."""


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all; a pipe or a device is written to as it is."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        with temporary.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def exclusive(path: Path, busy: Callable[[str], Exception]) -> Iterator[None]:
    """A lock file for one process at a time, whose number it tells; it goes with the process, whatever its end.

    `busy` makes of the number of the one that has it what others are told.
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
    """Whether some process has such a lock."""
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
    """A corpus for one process that writes at a time."""
    return exclusive(
        directory / "lock",
        lambda owner: StoreError(
            f"{directory} is in use by process {owner}; wait until that crawl or import is done, or stop it"
        ),
    )


def adopt(directory: Path, committed: Mapping[str, int | None], naming: re.Pattern[str]) -> None:
    """Make a directory what was committed of it: every file is there, and of that naming no other is."""
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
            raise StoreError(f"{directory / name} is missing, though {size} had been committed; restore it")


def numbered(files: Mapping[str, int | None], naming: re.Pattern[str]) -> list[tuple[int, int | None]]:
    """Number (the first group of the naming) and length of each file, by number."""
    found = []
    for name, length in files.items():
        match = naming.fullmatch(name)
        if match is None:
            raise StoreError(f"{name} was committed, but no file of ours has such a name; restore the state")
        found.append((int(match[1]), length))
    return sorted(found, key=lambda item: item[0])


class AppendFile:
    """A file that only grows, and only by what is durable: what was added is pending until flushed.

    The file is made by the first flush that has something to write.
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
        """Bytes that are durable."""
        return self._durable

    @property
    def end(self) -> int:
        """Where the next data will stand: the durable bytes and the pending ones."""
        return self._end

    def append(self, data: bytes) -> int:
        """Add data to the end, in memory until the next flush; returns its offset."""
        offset = self._end
        self._pending.append(data)
        self._end += len(data)
        return offset

    def flush(self) -> None:
        """Make what is pending durable; an OSError leaves it pending and the file as long as it was."""
        if not self._pending:
            return
        if self._descriptor is None:
            self._descriptor = os.open(self.path, _OPEN_FLAGS | os.O_CREAT, 0o644)
        data = b"".join(self._pending)
        try:
            self._write(self._descriptor, data)
            # After a failed fsync the kernel may take the lost pages for clean: a second fsync would lie.
            # The data are still pending then, and the next flush writes all of them anew.
            os.fsync(self._descriptor)
            if not self._named:
                sync_directory(self.path.parent)
                self._named = True
        except OSError:
            # Best effort: what cannot be cut back now is overwritten by the next flush or cut on opening.
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
            raise StoreError(
                f"{self.path} has {size} bytes, but {self._durable} had been committed; "
                "it was cut or overwritten by another program: restore it"
            )
        if size > self._durable:
            os.ftruncate(self._descriptor, self._durable)

    def close(self) -> None:
        """Give the file back; what was not flushed is dropped."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._pending.clear()
        self._end = self._durable
