"""The folder in which a shard works: made of what its forerunner had committed, and of no use to anybody else.

Whether the forerunner is dead nobody can know for certain: its node may only have been asleep. So nothing of its
folder is written to any more. Files that never change are shared by links; files that grow are copied as far as
they were committed; those of RocksDB are linked or copied in an order in which they make a whole, also while
somebody still writes to them. What the forerunner writes from now on is in a folder that does not count, and goes.

Where shards work on disks of their own machines, they copy what they have committed into the corpus now and then: a
snapshot. Then it is the snapshots that are taken over, and what was committed after the last one is crawled again.
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

from thresher.crawl.ledger import committed_files
from thresher.crawl.shards.lease import Superseded
from thresher.crawl.state import State
from thresher.store.files import StoreError, publish, sync_directory
from thresher.store.shards import epoch_folder, epochs, newest, state_folder

TRIES = 5  # to copy the files of somebody who may still be writing
GONE = (errno.ENOENT, errno.EIO, errno.ESTALE)  # or written to while it was copied
NO_LINKS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EACCES)
Files = dict[str, int | None]


def issue(home: Path) -> int:
    """The number of the next epoch of a shard, which is given once, whatever becomes of it."""
    home.mkdir(parents=True, exist_ok=True)
    counter = home / "epoch"
    last = 0
    with suppress(FileNotFoundError, ValueError):
        last = int(counter.read_text())
    number = max(last, *epochs(home), 0) + 1
    publish(counter, f"{number}\n".encode())
    return number


def take_over(home: Path, epoch: int, scratch: Path | None = None) -> Path:
    """A folder for the shard to work in from now on, with all that counts so far; older ones are deleted.

    With `scratch` it is there, under a name that no other corpus has; what counts changes with the first snapshot.
    """
    home.mkdir(parents=True, exist_ok=True)
    before = newest(home)
    place = scratch / _name_of(home) if scratch else home
    final = epoch_folder(place, epoch)
    if before and not scratch and before.name >= final.name:
        raise Superseded(f"{home} has been taken over by {before.name}")
    draft = final.with_name(f"{final.name}.tmp")
    for left in (draft, final):
        shutil.rmtree(left, ignore_errors=True)
    draft.mkdir(parents=True)
    if before:
        _inherit(home, draft)
    draft.rename(final)
    sync_directory(final.parent)
    delete_before(place, epoch)
    return final


def _name_of(home: Path) -> str:
    """A name for the folder of a shard on a disk that other corpora have shards on."""
    corpus = home.absolute().parents[1]
    return f"{corpus.name}-{xxhash.xxh3_64_hexdigest(bytes(corpus))}-{home.name}"


def _inherit(home: Path, target: Path) -> None:
    """Fill a folder with what was committed to the newest one.

    Others who were thought dead may publish while it is copied, and delete what they took the place of. They do so
    in this order: so if the same folder and the same state count afterwards, nothing of them was gone.
    """
    last: object = ""
    for _ in range(TRIES):
        source = newest(home)
        assert source is not None
        state = state_folder(source)
        try:
            _copy_committed(source, state, target)
        except OSError as fault:
            if fault.errno not in GONE:
                raise
            last = fault
        else:
            if (newest(home), state_folder(source)) == (source, state):
                return
            last = "it was replaced meanwhile"
        shutil.rmtree(target)
        target.mkdir()
    raise StoreError(f"{source} cannot be taken over: {last}; restore it")


def _copy_committed(source: Path, state: Path, target: Path) -> None:
    if not (state / "CURRENT").exists():  # nothing was ever committed, or it has gone: who called can tell
        return
    copy_state(state, target / "state")
    copied = State(target / "state")
    try:
        files = committed_files(copied)
    finally:
        copied.close()
    _make_tables(target, files)
    for name, length in files.items():
        adopt_file(source / name, target / name, length)
    _tell(source, target, files)
    _sync_names(target)


def _tell(source: Path, target: Path, files: Files) -> None:
    """Readers see the figures of the forerunner and the files of the last commit until there is a next one."""
    with suppress(FileNotFoundError, msgspec.DecodeError):
        status = msgspec.json.decode((source / "status.json").read_bytes(), type=dict[str, object])
        status.pop("state", None)
        (target / "status.json").write_bytes(msgspec.json.encode({**status, "files": files}))


def copy_state(source: Path, target: Path) -> None:
    """The files of a RocksDB, which may be open elsewhere, so that they can be opened.

    Tables never change. What is not in them yet is in the logs, which are copied after the tables; which of all of
    them count is in the manifest, which is copied last: should it name a table that was not there yet, opening
    fails, and the copy is to be made again.
    """
    target.mkdir()
    names = sorted(path.name for path in source.iterdir() if path.is_file())
    current = [
        name for name in names if name == "CURRENT" or name.startswith(("MANIFEST-", "OPTIONS-", "IDENTITY"))
    ]
    for name in (name for name in names if name.endswith(".sst")):
        adopt_file(source / name, target / name, None)
    for name in (name for name in names if name.endswith(".log")):
        with suppress(FileNotFoundError):  # its content is in a table by now, which the manifest names
            copy(source / name, target / name)
    for name in current:
        copy(source / name, target / name)


def adopt_file(source: Path, target: Path, length: int | None) -> None:
    """A file that never changes, shared; or, with a length, a copy of so many bytes."""
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
    """Bring a copy of a file that only grows to that length."""
    with source.open("rb") as given, target.open("ab") as out:
        there = out.tell()
        given.seek(there)
        while there < length:
            part = given.read(min(length - there, 1 << 22))
            if not part:
                raise StoreError(f"{source} has {there} bytes, but {length} had been committed; restore it")
            out.write(part)
            there += len(part)
        out.flush()
        os.fsync(out.fileno())


def copy(source: Path, target: Path) -> None:
    """A copy of a file that is durable, but for its name."""
    shutil.copyfile(source, target)
    with target.open("rb") as copied:
        os.fsync(copied.fileno())


def _sync_names(folder: Path) -> None:
    """Make the names of all files in a folder and in those below it durable."""
    for below in folder.iterdir():
        if below.is_dir():
            sync_directory(below)
    sync_directory(folder)


def delete_before(home: Path, epoch: int) -> None:
    """Delete what no longer counts; what cannot be deleted now is another time."""
    for number, folder in epochs(home).items():
        if number < epoch:
            shutil.rmtree(folder, ignore_errors=True)
    for draft in home.glob("e*.tmp"):
        if draft.name < f"e{epoch:06d}":
            shutil.rmtree(draft, ignore_errors=True)


class Snapshots:
    """Copies of a folder on a machine's own disk into the corpus, where they count."""

    def __init__(self, work: Path, home: Path, epoch: int) -> None:
        self._work = work
        self._home = home
        self._epoch = epoch
        self._target = epoch_folder(home, epoch)
        self._number = 0

    def take(self, state: State) -> Callable[[], None]:
        """Hold fast what was just committed; what is returned copies it, and may be called in a thread."""
        self._number += 1
        held, name = self._work / f"snapshot-{self._number:06d}", f"state-{self._number:06d}"
        held.mkdir()
        state.checkpoint(held / "state")
        files = committed_files(state)
        _make_tables(held, files)
        for file in files:  # links: streams may be sealed and deleted while they are copied
            os.link(self._work / file, held / file)
        shutil.copyfile(self._work / "status.json", held / "status.json")
        return lambda: self._copy(held, files, name)

    def _copy(self, held: Path, files: Files, state: str) -> None:
        before = newest(self._home)
        if before and before.name > self._target.name:
            raise Superseded(f"{self._home} has been taken over by {before.name}")
        first = before != self._target
        target = self._target.with_name(f"{self._target.name}.tmp") if first else self._target
        if first:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
        self._copy_state(held / "state", target / state, before)
        _make_tables(target, files)
        for name, length in files.items():
            self._copy_file(held / name, target / name, length, before / name if before and first else None)
        status = msgspec.json.decode((held / "status.json").read_bytes(), type=dict[str, object])
        _sync_names(target)
        publish(target / "status.json", msgspec.json.encode({**status, "state": state}))
        if first:
            target.rename(self._target)
            sync_directory(self._home)
            delete_before(self._home, self._epoch)
        _tidy(self._target, files, state)
        shutil.rmtree(held)

    def _copy_file(self, source: Path, target: Path, length: int | None, older: Path | None) -> None:
        """A file that never changes now may have grown until lately; then what is there of it is its beginning."""
        size = source.stat().st_size if length is None else length
        if length is None and older and _has(older, size):
            adopt_file(older, target, None)
        elif not _has(target, size):
            append(source, target, size)

    def _copy_state(self, source: Path, target: Path, before: Path | None) -> None:
        """Tables that the last snapshot has are shared with it."""
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
    """The folders that some files stand in."""
    for table in {name.partition("/")[0] for name in files}:
        (folder / table).mkdir(exist_ok=True)


def _tidy(folder: Path, files: Files, state: str) -> None:
    """Delete what a snapshot has made superfluous."""
    for old in folder.glob("state-*"):
        if old.name != state:
            shutil.rmtree(old, ignore_errors=True)
    for table in {name.partition("/")[0] for name in files}:
        for path in (folder / table).iterdir():
            if f"{table}/{path.name}" not in files:
                path.unlink(missing_ok=True)
