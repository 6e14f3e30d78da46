"""The working directory of one shard epoch, built from the committed files of the previous epoch.

An earlier process may only be suspended, so the new one never writes to its directory. Files that never change
are shared by hard links; files that grow are copied up to their committed length; the files of RocksDB are linked
or copied in an order that gives a consistent state even while another process writes to them. Later writes of the
earlier process go to a directory that no longer counts and is deleted.

Shards that work on disks of their own machines copy their commits into the corpus at intervals: a snapshot. Then
the snapshots are taken over, and pages that were committed after the last one are crawled again.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import xxhash

from thresher.crawler.shards.heartbeat import Superseded
from thresher.crawler.storage.crawl_writer import committed_files
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.errors import DataError
from thresher.files.durable_files import publish_directory, replace, sync_names
from thresher.store.checked_files import json_file
from thresher.store.shard_layout import epoch_folder, epochs, newest, state_folder

MAX_TRIES = 5  # to copy files to which another process may still be writing
CHANGED = (errno.ENOENT, errno.EIO, errno.ESTALE)  # errors of a file that was deleted or replaced meanwhile
NO_LINKS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EACCES)
Files = dict[str, int | None]


def issue(home: Path) -> int:
    """Return the number of the next epoch of a shard; no number is issued twice."""
    home.mkdir(parents=True, exist_ok=True)
    counter = home / "epoch"
    last = 0
    with suppress(FileNotFoundError, ValueError):
        last = int(counter.read_text())
    number = max(last, *epochs(home), 0) + 1
    replace(counter, f"{number}\n".encode())
    return number


def take_over(home: Path, epoch: int, scratch: Path | None = None) -> Path:
    """Make the directory of an epoch with the files of the newest one, delete older directories, and return it.

    With `scratch` it is made there, under a name that no other corpus has, and the corpus changes with the first
    snapshot. Raises Superseded if a newer epoch exists.
    """
    home.mkdir(parents=True, exist_ok=True)
    before = newest(home)
    place = scratch / _name_of(home) if scratch else home
    final = epoch_folder(place, epoch)
    if before and not scratch and before.name >= final.name:
        raise Superseded(f"{home} was taken over by {before.name}")
    draft = final.with_name(f"{final.name}.tmp")
    for left in (draft, final):
        shutil.rmtree(left, ignore_errors=True)
    draft.mkdir(parents=True)
    if before:
        _inherit(home, draft)
    publish_directory(draft, final)
    delete_before(place, epoch)
    return final


def _name_of(home: Path) -> str:
    """Return a name for a shard on a disk that it shares with shards of other corpora."""
    corpus = home.absolute().parents[1]
    return f"{corpus.name}-{xxhash.xxh3_64_hexdigest(bytes(corpus))}-{home.name}"


def _inherit(home: Path, target: Path) -> None:
    """Fill a directory with the files that were committed to the newest epoch.

    A process presumed dead may publish a snapshot while its files are copied, and delete the ones it replaces. It
    does so in this order; so if the same directory and the same state are the newest afterwards, the copy is
    complete.
    """
    last: object = ""
    for _ in range(MAX_TRIES):
        source = newest(home)
        assert source is not None
        state = state_folder(source)
        try:
            _copy_committed(source, state, target)
        except OSError as fault:
            if fault.errno not in CHANGED:
                raise
            last = fault
        else:
            if (newest(home), state_folder(source)) == (source, state):
                return
            last = "it was replaced while it was copied"
        shutil.rmtree(target)
        target.mkdir()
    raise DataError(f"{source} cannot be taken over: {last}; restore it")


def _copy_committed(source: Path, state: Path, target: Path) -> None:
    if not (state / "CURRENT").exists():  # nothing was committed, or it was replaced, which the caller checks
        return
    copy_state(state, target / "state")
    copied = KeyValueState(target / "state")
    try:
        files = committed_files(copied)
    finally:
        copied.close()
    _make_tables(target, files)
    for name, length in files.items():
        adopt_file(source / name, target / name, length)
    _copy_status(source, target, files)
    sync_names(target)


def _copy_status(source: Path, target: Path, files: Files) -> None:
    """Publish the statistics of the previous epoch with the files of its last commit."""
    with suppress(FileNotFoundError, DataError):
        status = json_file(source / "status.json", dict[str, object])
        status.pop("state", None)
        replace(target / "status.json", msgspec.json.encode({**status, "files": files}))


def copy_state(source: Path, target: Path) -> None:
    """Copy the files of a RocksDB that may be open in another process, so that the copy can be opened.

    Tables never change. Entries that are in no table yet are in the logs, which are copied after the tables. The
    manifest names the files that count and is copied last; if it names a table that did not exist yet, opening the
    copy fails and the caller copies again.
    """
    target.mkdir()
    names = sorted(path.name for path in source.iterdir() if path.is_file())
    current = [
        name for name in names if name == "CURRENT" or name.startswith(("MANIFEST-", "OPTIONS-", "IDENTITY"))
    ]
    for name in (name for name in names if name.endswith(".sst")):
        adopt_file(source / name, target / name, None)
    for name in (name for name in names if name.endswith(".log")):
        with suppress(FileNotFoundError):  # its entries are in a table by now, which the manifest names
            copy(source / name, target / name)
    for name in current:
        copy(source / name, target / name)


def adopt_file(source: Path, target: Path, length: int | None) -> None:
    """Share a file that never changes (length None), or copy its first `length` bytes."""
    if length is None:
        try:
            os.link(source, target)
        except OSError as fault:
            if fault.errno not in NO_LINKS:
                raise
            copy(source, target)
    else:
        append(source, target, length)


def append(source: Path, target: Path, length: int) -> None:
    """Extend a copy of a growing file to a length, and sync it."""
    with source.open("rb") as given, target.open("ab") as out:
        there = out.tell()
        given.seek(there)
        while there < length:
            part = given.read(min(length - there, 1 << 22))
            if not part:
                raise DataError(f"{source} has {there} bytes, but {length} were committed; restore it")
            out.write(part)
            there += len(part)
        out.flush()
        os.fsync(out.fileno())


def copy(source: Path, target: Path) -> None:
    """Copy a file and sync the content; its name becomes durable with `sync_names`."""
    shutil.copyfile(source, target)
    with target.open("rb") as copied:
        os.fsync(copied.fileno())


def delete_before(home: Path, epoch: int) -> None:
    """Delete older epochs; a directory that cannot be deleted now is tried again by the next epoch."""
    for number, folder in epochs(home).items():
        if number < epoch:
            shutil.rmtree(folder, ignore_errors=True)
    for draft in home.glob("e*.tmp"):
        if draft.name < f"e{epoch:06d}":
            shutil.rmtree(draft, ignore_errors=True)


class EpochSnapshots:
    """Copies of a scratch directory in the corpus, where they count."""

    def __init__(self, work: Path, home: Path, epoch: int) -> None:
        self._work = work
        self._home = home
        self._epoch = epoch
        self._target = epoch_folder(home, epoch)
        self._number = 0

    def take(self, state: KeyValueState) -> Callable[[], None]:
        """Link the files of the commit just made; return a function that copies them, for use in a thread."""
        self._number += 1
        held, name = self._work / f"snapshot-{self._number:06d}", f"state-{self._number:06d}"
        held.mkdir()
        state.checkpoint(held / "state")
        files = committed_files(state)
        _make_tables(held, files)
        for file in files:  # open segments may be sealed and deleted while they are copied
            os.link(self._work / file, held / file)
        shutil.copyfile(self._work / "status.json", held / "status.json")
        return lambda: self._copy(held, files, name)

    def _copy(self, held: Path, files: Files, state: str) -> None:
        before = newest(self._home)
        if before and before.name > self._target.name:
            raise Superseded(f"{self._home} was taken over by {before.name}")
        first = before != self._target
        target = self._target.with_name(f"{self._target.name}.tmp") if first else self._target
        if first:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
        self._copy_state(held / "state", target / state, before)
        _make_tables(target, files)
        for name, length in files.items():
            self._copy_file(held / name, target / name, length, before / name if before and first else None)
        status = json_file(held / "status.json", dict[str, object])
        sync_names(target)
        replace(target / "status.json", msgspec.json.encode({**status, "state": state}))
        if first:
            publish_directory(target, self._target)
            delete_before(self._home, self._epoch)
        _tidy(self._target, files, state)
        shutil.rmtree(held)

    def _copy_file(self, source: Path, target: Path, length: int | None, older: Path | None) -> None:
        """Copy a file; one that never changes from now on may be in the target already, in part."""
        size = source.stat().st_size if length is None else length
        if length is None and older and _has(older, size):
            adopt_file(older, target, None)
        elif not _has(target, size):
            append(source, target, size)

    def _copy_state(self, source: Path, target: Path, before: Path | None) -> None:
        """Copy a state, sharing tables with the last snapshot."""
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        last = state_folder(before) if before else None
        for path in sorted(source.iterdir()):
            older = last / path.name if last and path.suffix == ".sst" else None
            if older and _has(older, path.stat().st_size):
                adopt_file(older, target / path.name, None)
            else:
                copy(path, target / path.name)


def _has(path: Path, size: int) -> bool:
    return path.exists() and path.stat().st_size == size


def _make_tables(folder: Path, files: Files) -> None:
    """Make the subdirectories of some files."""
    for table in {name.partition("/")[0] for name in files}:
        (folder / table).mkdir(exist_ok=True)


def _tidy(folder: Path, files: Files, state: str) -> None:
    """Delete files that the newest snapshot does not name."""
    for old in folder.glob("state-*"):
        if old.name != state:
            shutil.rmtree(old, ignore_errors=True)
    for table in {name.partition("/")[0] for name in files}:
        for path in (folder / table).iterdir():
            if f"{table}/{path.name}" not in files:
                path.unlink(missing_ok=True)
