"""What the crawl must not forget: RocksDB, changed by one synced, atomic write per commit."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Generic, TypeVar, cast

import msgspec
from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

R = TypeVar("R", bound=msgspec.Struct)

CACHE_BYTES = 64 << 20
FILTER_BITS = 10  # per key: about 1 % of look-ups of a missing key touch a data block
MEMTABLE_BYTES = 32 << 20


class State:
    """A sorted map of bytes to bytes. Reads see what was put; only `commit` makes it durable, all or nothing."""

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        """A state that is read only shows the last commit, also of a crawl at work."""
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
            access = AccessType.read_only() if read_only else AccessType.read_write()
            self._db = Rdict(str(directory), options, access_type=access)
        self._synced = WriteOptions()
        self._synced.sync = True
        self._pending: dict[bytes, bytes | None] = {}  # None: to be deleted

    def get(self, key: bytes) -> bytes | None:
        if key in self._pending:
            return self._pending[key]
        with _os_errors():
            found: bytes | None = self._db.get(key)
        return found

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def put(self, key: bytes, value: bytes) -> None:
        self._pending[key] = value

    def delete(self, key: bytes) -> None:
        self._pending[key] = None

    def committed(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries from start up to, not including, end, in order, as of the last commit."""
        # No ReadOptions with an upper bound: rocksdict's iterator does not keep them alive.
        entries = cast(Iterator[tuple[bytes, bytes]], self._db.items(from_key=start))
        yield from takewhile(lambda entry: entry[0] < end, entries)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Entries that start with the prefix, what is pending included, in no order."""
        for key, value in self.committed(prefix, after(prefix)):
            if key not in self._pending:
                yield key, value
        for key, pending in list(self._pending.items()):
            if pending is not None and key.startswith(prefix):
                yield key, pending

    def commit(self) -> None:
        """Make all that was put and deleted true at once; on failure nothing of it is, and it stays pending."""
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
        """Let go of what was put and not committed."""
        self._pending = {}

    def checkpoint(self, directory: Path) -> None:
        """A copy as of the last commit, on the same disk, that shares what never changes."""
        with _os_errors():
            Checkpoint(self._db).create_checkpoint(str(directory))

    def compact(self) -> None:
        """Leave nothing on disk of what was deleted."""
        with _os_errors():
            self._db.flush()
            self._db.compact_range(None, None)

    def close(self) -> None:
        """Let go of the files; what was not committed is forgotten."""
        self._pending = {}
        with suppress(OSError), _os_errors():  # no room to tidy up; what was committed is in the log
            self._db.close()


class Nowhere(State):
    """A state for what need not be remembered: always empty."""

    def __init__(self) -> None:
        pass

    def get(self, key: bytes) -> bytes | None:  # noqa: ARG002
        return None

    def put(self, key: bytes, value: bytes) -> None:
        pass

    def delete(self, key: bytes) -> None:
        pass

    def committed(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:  # noqa: ARG002
        return iter(())

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:  # noqa: ARG002
        return iter(())


@contextmanager
def _os_errors() -> Iterator[None]:
    """RocksDB's troubles with the disk as what they are; rocksdict raises nothing more precise than Exception."""
    try:
        yield
    except Exception as fault:
        full = re.search(r"no space|quota|too large", str(fault), re.IGNORECASE)
        raise OSError(errno.ENOSPC if full else errno.EIO, str(fault)) from fault


class Table(Generic[R]):
    """Records of one kind by name, kept in memory; those that were touched join the next commit.

    A record is looked up anew for each use: memory may let go of it after a commit.
    """

    MAX_IN_MEMORY = 200_000

    def __init__(self, state: State, prefix: bytes, kind: type[R]) -> None:
        self._state = state
        self._prefix = prefix
        self._new: Callable[[], R] = kind
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._records: dict[str, R] = {}
        self._touched: set[str] = set()

    def __getitem__(self, name: str) -> R:
        """The record of that name, for reading; a fresh one if there is none."""
        record = self._records.get(name)
        if record is None:
            stored = self._state.get(self._prefix + name.encode())
            record = self._records[name] = self._decode(stored) if stored else self._new()
        return record

    def touch(self, name: str) -> R:
        """The record of that name, for changing: it will be in the next commit."""
        self._touched.add(name)
        return self[name]

    def flush(self) -> None:
        """Hand the touched records to the state's next commit."""
        for name in self._touched:
            self._state.put(self._prefix + name.encode(), self._encode(self._records[name]))
        self._touched.clear()
        if len(self._records) > self.MAX_IN_MEMORY:
            self._records.clear()

    def in_memory(self) -> Iterator[tuple[str, R]]:
        """The records at hand, for a quick look."""
        return iter(self._records.items())

    def items(self) -> Iterator[tuple[str, R]]:
        """Every record there is, in no order, for reading."""
        self.flush()
        for key, value in self._state.scan(self._prefix):
            yield key[len(self._prefix) :].decode(), self._decode(value)


def after(prefix: bytes) -> bytes:
    """The first key behind all keys that start with the prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
