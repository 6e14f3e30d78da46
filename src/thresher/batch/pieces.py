"""Pieces of work and what came of them.

A piece is a function with its parameters and inputs. Its key is a hash of all that its result depends on, so a
result that is there under the key is the result; what is not there has to be made. Results are folders that are
published whole, by a rename, and known by a digest of their files: a piece that makes the same as before changes
nothing for those that build on it.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import xxhash
from msgspec import Struct

from thresher._version import __version__
from thresher.engine.calls import Call, function_at
from thresher.store.files import sync_directory

FOLDER = "pieces"
RECORD = "piece.json"
MAKE = "thresher.batch.pieces:make"
READ_AT_ONCE = 1 << 22


class Output(Struct, frozen=True):
    """A result: a folder, or a file that was there before, and the digest of what is in it."""

    path: Path
    digest: str
    report: dict[str, Any] = {}

    def file(self, name: str) -> Path:
        """A file of it; of what was a file before, that file."""
        return self.path / name if self.path.is_dir() else self.path


class Task(Struct, frozen=True):
    """A function to be called with a new folder, its inputs, and parameters."""

    function: str  # module:name
    inputs: tuple[Output, ...]
    parameters: dict[str, Any] = {}
    depends: tuple[str, ...] = ()  # digests of models and the like that the result depends on, too
    where: dict[str, str] = {}  # more parameters: where things are, on which the result does not depend
    check: str = ""  # module:name of what tells whether a result still counts, if it is about something else


class Record(Struct, frozen=True):
    """What is known of a result."""

    key: str
    step: str
    version: int
    function: str
    parameters: dict[str, Any]
    inputs: tuple[str, ...]  # their digests
    depends: tuple[str, ...]
    digest: str
    files: dict[str, int]  # with their sizes
    report: dict[str, Any]
    thresher: str = __version__
    made: float = 0.0  # when, in seconds since 1970
    seconds: float = 0.0


def key_of(step: str, version: int, task: Task) -> str:
    """The key of a piece."""
    told = {
        "step": step,
        "version": version,
        "function": task.function,
        "parameters": task.parameters,
        "depends": task.depends,
        "inputs": [one.digest for one in task.inputs],
    }
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(told, order="sorted"))


class Pieces:
    """Results in a directory, by key."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / FOLDER

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def find(self, key: str) -> Output | None:
        """The result of a piece, if it is there, and whole."""
        path = self.path(key)
        record = _standing(path)
        return Output(path, record.digest, record.report) if record else None

    def current(self, key: str, task: Task) -> Output | None:
        """The same, if it still counts."""
        found = self.find(key)
        if found and task.check and not function_at(task.check)(found.path, **task.where):
            return None
        return found

    def call(self, key: str, step: str, version: int, task: Task, deadline: float = 0.0) -> Call:
        """The call that makes a piece, wherever it is run."""
        arguments = {
            "target": str(self.path(key)),
            "key": key,
            "step": step,
            "version": version,
            "function": task.function,
            "inputs": [str(one.path) for one in task.inputs],
            "digests": [one.digest for one in task.inputs],
            "parameters": task.parameters,
            "depends": list(task.depends),
            "where": task.where,
        }
        return Call(MAKE, arguments, deadline)

    def all_keys(self) -> list[str]:
        """The keys of all results that are there."""
        return sorted(path.parent.name for path in self.folder.glob(f"*/*/{RECORD}"))

    def remove(self, key: str) -> int:
        """Remove a result; the answer is how many bytes it had."""
        size = self.size(key)
        _remove(self.path(key))
        return size

    def remove_all(self) -> None:
        """Remove all results, and what killed processes left behind of others."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def size(self, key: str) -> int:
        """How many bytes a result has."""
        return sum(one.stat().st_size for one in self.path(key).rglob("*") if one.is_file())

    def sweep(self) -> None:
        """Remove what killed processes left behind."""
        for path in self.folder.glob("*/*"):
            if "." in path.name or not (path / RECORD).exists():  # it never got its name, or is half removed
                shutil.rmtree(path, ignore_errors=True)


def make(
    target: str,
    key: str,
    step: str,
    version: int,
    function: str,
    inputs: Sequence[str],
    digests: Sequence[str],
    parameters: dict[str, Any],
    depends: Sequence[str],
    where: dict[str, str],
) -> str:
    """Make a piece and publish it; the answer is its digest. Who comes second finds it done."""
    place = Path(target)
    folder = place.with_name(f"{key}.{uuid.uuid4().hex[:8]}")
    folder.mkdir(parents=True)
    start = time.monotonic()
    try:
        report = function_at(function)(folder, [Path(one) for one in inputs], **parameters, **where) or {}
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        digest = _digest(folder, files)
        record = Record(
            key, step, version, function, parameters, tuple(digests), tuple(depends), digest,
            {str(path.relative_to(folder)): path.stat().st_size for path in files}, report,
            made=time.time(), seconds=time.monotonic() - start,
        )  # fmt: skip
        (folder / RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1))
        _sync(folder)
        _publish(folder, place, digest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return digest


def _publish(folder: Path, place: Path, digest: str) -> None:
    """Give a result its name, unless it is there already; what stands there and does not count goes."""
    there = _standing(place)
    if place.exists() and (not there or there.digest != digest):
        _remove(place)
    try:
        folder.rename(place)
    except OSError:
        if not _standing(place):
            raise
        shutil.rmtree(folder)  # another one was as quick, and made the same
    sync_directory(place.parent)


def _standing(place: Path) -> Record | None:
    """What is known of a result, if all its files are as long as they were when it was made."""
    try:
        record = msgspec.json.decode((place / RECORD).read_bytes(), type=Record)
        is_whole = all((place / name).stat().st_size == size for name, size in record.files.items())
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None
    return record if is_whole else None


def _remove(place: Path) -> None:
    (place / RECORD).unlink(missing_ok=True)  # first, for a folder without it is no result
    shutil.rmtree(place)


def _digest(folder: Path, files: Sequence[Path]) -> str:
    whole = xxhash.xxh3_128()
    for path in files:
        whole.update(f"{path.relative_to(folder)}\0{digest_of(path)}\n".encode())
    return whole.hexdigest()


def digest_of(path: Path) -> str:
    """The digest of a file."""
    whole = xxhash.xxh3_128()
    with path.open("rb") as file:
        while some := file.read(READ_AT_ONCE):
            whole.update(some)
    return whole.hexdigest()


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        else:
            sync_directory(path)
    sync_directory(folder)
