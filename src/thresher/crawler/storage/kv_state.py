"""A durable key-value store: RocksDB, changed by one synced, atomic write per commit."""

from __future__ import annotations

import errno
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice, takewhile
from pathlib import Path
from typing import Generic, TypeVar, cast

import msgspec
from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBPath,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from thresher.crawler.storage.keys import after

R = TypeVar("R", bound=msgspec.Struct)

CACHE_BYTES = 64 << 20
FILTER_BITS = 10  # per key, so that about 1 % of look-ups of a missing key read a data block
MEMTABLE_BYTES = 32 << 20
PORTION = 10_000  # entries that are changed by one commit
_UNLIMITED_BYTES = 1 << 62


class KeyValueState:
    """A sorted map of bytes to bytes. Reads see pending changes; `commit` makes them durable, all or none."""

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        """Open a state; one that is only read shows the last commit, even while a crawl writes to it."""
        blocks = BlockBasedOptions()
        blocks.set_block_cache(Cache(CACHE_BYTES))
        blocks.set_bloom_filter(FILTER_BITS, False)
        options = Options(raw_mode=True)
        options.create_if_missing(not read_only)
        options.set_block_based_table_factory(blocks)
        options.set_write_buffer_size(MEMTABLE_BYTES)
        options.set_keep_log_file_num(2)
        options.set_max_open_files(256)
        with _os_errors():
            if read_only:
                self._db = _open_read_only(directory, options)
            else:
                self._db = Rdict(str(directory), options)
        self._synced = WriteOptions()
        self._synced.sync = True
        self._pending: dict[bytes, bytes | None] = {}  # None for a key that is deleted

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, None if there is none."""
        if key in self._pending:
            return self._pending[key]
        with _os_errors():
            found: bytes | None = self._db.get(key)
        return found

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def put(self, key: bytes, value: bytes) -> None:
        """Set a value with the next commit."""
        self._pending[key] = value

    def delete(self, key: bytes) -> None:
        """Delete a key with the next commit."""
        self._pending[key] = None

    def committed(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield entries with keys in `[start, end)` in order, as of the last commit."""
        # No ReadOptions with an upper bound: rocksdict's iterator does not keep them alive.
        entries = cast(Iterator[tuple[bytes, bytes]], self._db.items(from_key=start))
        yield from takewhile(lambda entry: entry[0] < end, entries)

    def entries(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield committed entries under a prefix, in order."""
        return self.committed(prefix, after(prefix))

    def portions(self, prefix: bytes) -> Iterator[list[tuple[bytes, bytes]]]:
        """Yield committed entries under a prefix in portions; commits in between do not change them."""
        entries = self.entries(prefix)
        while portion := list(islice(entries, PORTION)):
            yield portion

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield entries under a prefix, pending changes included, in no order."""
        for key, value in self.entries(prefix):
            if key not in self._pending:
                yield key, value
        for key, pending in list(self._pending.items()):
            if pending is not None and key.startswith(prefix):
                yield key, pending

    def commit(self) -> None:
        """Make all pending changes durable at once; if that fails, all of them stay pending."""
        if not self._pending:
            return
        batch = WriteBatch(raw_mode=True)
        for key, value in self._pending.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        with _os_errors():
            self._db.write(batch, self._synced)
        self._pending = {}

    def forget_pending(self) -> None:
        """Drop pending changes."""
        self._pending = {}

    def checkpoint(self, directory: Path) -> None:
        """Make a copy as of the last commit, on the same disk, that shares files that never change."""
        with _os_errors():
            Checkpoint(self._db).create_checkpoint(str(directory))

    def compact(self) -> None:
        """Remove deleted entries from the files."""
        with _os_errors():
            self._db.flush()
            self._db.compact_range(None, None)

    def close(self) -> None:
        """Close the files; pending changes are dropped."""
        self._pending = {}
        with suppress(OSError), _os_errors():  # the disk is full; commits are in the log
            self._db.close()


class NullState(KeyValueState):
    """A state that is always empty, for simulations and tests."""

    def __init__(self) -> None:
        pass

    def get(self, key: bytes) -> bytes | None:  # noqa: ARG002
        """Return None."""
        return None

    def put(self, key: bytes, value: bytes) -> None:
        """Do nothing."""

    def delete(self, key: bytes) -> None:
        """Do nothing."""

    def committed(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:  # noqa: ARG002
        """Yield nothing."""
        return iter(())

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:  # noqa: ARG002
        """Yield nothing."""
        return iter(())


def _open_read_only(directory: Path, options: Options) -> Rdict:
    """Open a database without writing to its directory, which may be a crawl's at work or not be writable.

    rocksdict writes a file of its own into the directory that it opens, also for reading alone. So it is given a
    temporary directory with links to the two files that describe the database; data and log are read in place.
    """
    if not (directory / "CURRENT").exists():
        raise FileNotFoundError(errno.ENOENT, "no state of a crawl in this directory", str(directory))
    options.set_db_paths([DBPath(str(directory), _UNLIMITED_BYTES)])
    options.set_wal_dir(str(directory))
    with tempfile.TemporaryDirectory(prefix="thresher-") as links:
        for path in directory.iterdir():
            if path.name == "CURRENT" or path.name.startswith("MANIFEST-"):
                (Path(links) / path.name).symlink_to(path.resolve())
        return Rdict(links, options, access_type=AccessType.read_only())


@contextmanager
def _os_errors() -> Iterator[None]:
    """Raise faults of RocksDB as OSError; rocksdict raises nothing more precise than Exception."""
    try:
        yield
    except OSError:
        raise
    except Exception as fault:
        full = re.search(r"no space|quota|too large", str(fault), re.IGNORECASE)
        raise OSError(errno.ENOSPC if full else errno.EIO, str(fault)) from fault


class StateTable(Generic[R]):
    """Records of one type by name, cached in memory; records that were touched join the next commit.

    Look a record up for each use, since the cache may drop it after a commit.
    """

    MAX_IN_MEMORY = 200_000

    def __init__(self, state: KeyValueState, prefix: bytes, kind: type[R]) -> None:
        self._state = state
        self._prefix = prefix
        self._new: Callable[[], R] = kind
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._records: dict[str, R] = {}
        self._touched: set[str] = set()

    def __getitem__(self, name: str) -> R:
        """Return the record of a name for reading; a new one if there is none."""
        record = self._records.get(name)
        if record is None:
            stored = self._state.get(self._prefix + name.encode())
            record = self._records[name] = self._decode(stored) if stored else self._new()
        return record

    def touch(self, name: str) -> R:
        """Return the record of a name for changing; it joins the next commit."""
        self._touched.add(name)
        return self[name]

    def flush(self) -> None:
        """Put the touched records into the state's next commit."""
        for name in self._touched:
            self._state.put(self._prefix + name.encode(), self._encode(self._records[name]))
        self._touched.clear()
        if len(self._records) > self.MAX_IN_MEMORY:
            self._records.clear()

    def in_memory(self) -> Iterator[tuple[str, R]]:
        """Return the cached records."""
        return iter(self._records.items())

    def items(self) -> Iterator[tuple[str, R]]:
        """Yield all records in no order, for reading."""
        self.flush()
        for key, value in self._state.scan(self._prefix):
            yield key[len(self._prefix) :].decode(), self._decode(value)


def remove_names(state: KeyValueState, prefix: bytes, covers: Callable[[str], bool]) -> None:
    """Delete the records of covered names in a table, with the next commit."""
    for key, _ in state.entries(prefix):
        if covers(key[len(prefix) :].decode()):
            state.delete(key)
