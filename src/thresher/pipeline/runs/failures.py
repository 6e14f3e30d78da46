"""Failed tasks: their attempts, faults and logs, in a file for each."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import msgspec
from msgspec import Struct

from thresher.errors import DataError
from thresher.files.durable_files import replace
from thresher.store.checked_files import json_file

FOLDER = "failed"
MAX_ATTEMPTS = 3  # at a task, before it is given up


class FailedAttempt(Struct, frozen=True):
    """One failed attempt at a task."""

    when: float  # seconds since 1970
    fault: str
    log: str
    seconds: float


class FailedTask(Struct, frozen=True):
    """A task that failed, with all its attempts."""

    key: str
    step: str
    function: str
    inputs: tuple[str, ...]
    attempts: tuple[FailedAttempt, ...]

    @property
    def is_final(self) -> bool:
        """True if the task is given up."""
        return len(self.attempts) >= MAX_ATTEMPTS

    @property
    def fault(self) -> str:
        """The fault of the last attempt."""
        return self.attempts[-1].fault


class FailureLog:
    """The failed tasks of a corpus's runs, in a file for each."""

    def __init__(self, runs: Path) -> None:
        self._folder = runs / FOLDER

    def find(self, key: str) -> FailedTask | None:
        """Return the failure of the task with this key, or None if it has not failed."""
        with contextlib.suppress(FileNotFoundError, DataError):
            return json_file(self._path(key), FailedTask)
        return None

    def put(self, failure: FailedTask) -> None:
        """Store a failure, in place of an earlier one of the same task."""
        self._folder.mkdir(parents=True, exist_ok=True)
        replace(self._path(failure.key), msgspec.json.format(msgspec.json.encode(failure), indent=1))

    def remove(self, key: str) -> None:
        """Remove the failure of a task, if there is one."""
        self._path(key).unlink(missing_ok=True)

    def remove_all(self) -> None:
        """Remove all failures, and unfinished files of killed processes."""
        if self._folder.exists():
            shutil.rmtree(self._folder)

    def all(self) -> list[FailedTask]:
        """Return all failures, in the order of their keys."""
        keys = sorted(path.stem for path in self._folder.glob("*.json"))
        return [failure for key in keys if (failure := self.find(key))]

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"
