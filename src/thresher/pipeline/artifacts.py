"""Artifacts: results of tasks, stored under keys that cover everything they depend on.

A task is a function with parameters and inputs. Its key is a hash of all that its result depends on, so a result
stored under that key can be used instead of running the task. An artifact is a folder; it is published whole, by a
rename, and identified by a digest of its files. If a task makes the same bytes as before, the keys of the tasks
that build on it do not change either.
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
from thresher.errors import DataError
from thresher.files.durable_files import publish_directory, sync_directory
from thresher.store.checked_files import json_file
from thresher.workers.protocol import Call, function_at

FOLDER = "pieces"  # names on disk, which stay as they were
RECORD = "piece.json"
MAKE = "thresher.pipeline.artifacts:make"
READ_BYTES = 1 << 22


class ArtifactOutput(Struct, frozen=True):
    """An artifact, or a file of the corpus that serves as an input: its path and the digest of its content."""

    path: Path
    digest: str
    report: dict[str, Any] = {}

    def file(self, name: str) -> Path:
        """Return the path of one of its files; of a file of the corpus, that file."""
        return self.path / name if self.path.is_dir() else self.path


class Task(Struct, frozen=True):
    """A function to be called with a new folder, the paths of its inputs, and parameters."""

    function: str  # module:name
    inputs: tuple[ArtifactOutput, ...]
    parameters: dict[str, Any] = {}
    depends: tuple[str, ...] = ()  # digests of code, models and other things that the result depends on
    locations: dict[str, str] = {}  # further parameters, such as paths, that the result does not depend on
    # module:name of a function that returns whether a result is still valid, for results that describe other files.
    check: str = ""


class ArtifactRecord(Struct, frozen=True):
    """The record of an artifact, stored in its folder."""

    key: str
    step: str
    version: int
    function: str
    parameters: dict[str, Any]
    inputs: tuple[str, ...]  # digests
    depends: tuple[str, ...]
    digest: str
    files: dict[str, int]  # sizes in bytes, by name
    report: dict[str, Any]
    thresher: str = __version__
    made: float = 0.0  # in seconds since 1970
    seconds: float = 0.0


def key_of(step: str, version: int, task: Task) -> str:
    """Return the key of a task of a step."""
    identity = {
        "step": step,
        "version": version,
        "function": task.function,
        "parameters": task.parameters,
        "depends": task.depends,
        "inputs": [one.digest for one in task.inputs],
    }
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(identity, order="sorted"))


class ArtifactStore:
    """The artifacts in a directory, by key."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / FOLDER

    def path(self, key: str) -> Path:
        """Return the folder of an artifact, whether it exists or not."""
        return self.folder / key[:2] / key

    def find(self, key: str) -> ArtifactOutput | None:
        """Return the artifact of that key, or None if it is missing or not whole."""
        path = self.path(key)
        record = _record_of(path)
        return ArtifactOutput(path, record.digest, record.report) if record else None

    def current(self, key: str, task: Task) -> ArtifactOutput | None:
        """Return the artifact of that key if it is whole and passes the check of its task, or else None."""
        found = self.find(key)
        if found and task.check and not function_at(task.check)(found.path, **task.locations):
            return None
        return found

    def call(self, key: str, step: str, version: int, task: Task, deadline: float = 0.0) -> Call:
        """Return the call that makes an artifact, in any process that sees this directory."""
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
            "locations": task.locations,
        }
        return Call(MAKE, arguments, deadline)

    def all_keys(self) -> list[str]:
        """Return the keys of all artifacts, in order."""
        return sorted(path.parent.name for path in self.folder.glob(f"*/*/{RECORD}"))

    def remove(self, key: str) -> int:
        """Remove an artifact and return its size in bytes."""
        size = self.size(key)
        _remove(self.path(key))
        return size

    def remove_all(self) -> None:
        """Remove all artifacts, and the unfinished ones of killed processes."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def size(self, key: str) -> int:
        """Return the size of an artifact in bytes."""
        return sum(one.stat().st_size for one in self.path(key).rglob("*") if one.is_file())

    def sweep(self) -> None:
        """Remove artifacts that killed processes left unfinished or half removed."""
        for path in self.folder.glob("*/*"):
            if "." in path.name or not (path / RECORD).exists():
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
    locations: dict[str, str],
) -> str:
    """Build an artifact, publish it atomically and return its digest.

    If another worker published the same artifact first, that one is kept.
    """
    place = Path(target)
    folder = place.with_name(f"{key}.{uuid.uuid4().hex[:8]}")
    folder.mkdir(parents=True)
    start = time.monotonic()
    try:
        report = function_at(function)(folder, [Path(one) for one in inputs], **parameters, **locations) or {}
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        digest = _digest(folder, files)
        record = ArtifactRecord(
            key, step, version, function, parameters, tuple(digests), tuple(depends), digest,
            {str(path.relative_to(folder)): path.stat().st_size for path in files}, report,
            made=time.time(), seconds=time.monotonic() - start,
        )  # fmt: skip
        (folder / RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1))
        _sync_files(folder)
        _publish(folder, place, digest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return digest


def _publish(folder: Path, place: Path, digest: str) -> None:
    """Publish a folder as an artifact; one in its place is replaced if it is damaged or differs, or else kept."""
    present = _record_of(place)
    if place.exists() and (not present or present.digest != digest):
        _remove(place)
    try:
        publish_directory(folder, place)
    except OSError:
        if not folder.exists() or not _record_of(place):
            raise
        shutil.rmtree(folder)  # another worker has published the same meanwhile
        sync_directory(place.parent)


def _record_of(place: Path) -> ArtifactRecord | None:
    """Return the record of an artifact if all its files have the sizes they were written with, or else None."""
    try:
        record = json_file(place / RECORD, ArtifactRecord)
        is_whole = all((place / name).stat().st_size == size for name, size in record.files.items())
    except (FileNotFoundError, NotADirectoryError, DataError):
        return None
    return record if is_whole else None


def _remove(place: Path) -> None:
    (place / RECORD).unlink(missing_ok=True)  # first, since a folder without a record is not an artifact
    shutil.rmtree(place)


def _digest(folder: Path, files: Sequence[Path]) -> str:
    whole = xxhash.xxh3_128()
    for path in files:
        whole.update(f"{path.relative_to(folder)}\0{digest_of(path)}\n".encode())
    return whole.hexdigest()


def digest_of(path: Path) -> str:
    """Return the digest of a file."""
    whole = xxhash.xxh3_128()
    with path.open("rb") as file:
        while chunk := file.read(READ_BYTES):
            whole.update(chunk)
    return whole.hexdigest()


def _sync_files(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
