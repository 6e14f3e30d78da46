"""Pieces that failed: how often, with what, and what they wrote before they did."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import msgspec
from msgspec import Struct

FOLDER = "failed"
ATTEMPTS = 3  # at a piece, before it is left alone


class Attempt(Struct, frozen=True):
    """One that failed."""

    when: float  # seconds since 1970
    fault: str
    log: str
    seconds: float


class Failure(Struct, frozen=True):
    """A piece that failed."""

    key: str
    step: str
    function: str
    inputs: tuple[str, ...]
    attempts: tuple[Attempt, ...]

    @property
    def is_final(self) -> bool:
        """Whether it was tried often enough."""
        return len(self.attempts) >= ATTEMPTS

    @property
    def fault(self) -> str:
        return self.attempts[-1].fault


class Failures:
    """The failures of a corpus's runs, a file for each piece."""

    def __init__(self, runs: Path) -> None:
        self._folder = runs / FOLDER

    def find(self, key: str) -> Failure | None:
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
            return msgspec.json.decode(self._path(key).read_bytes(), type=Failure)
        return None

    def put(self, failure: Failure) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._path(failure.key).with_suffix(".tmp")
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(failure), indent=1))
        temporary.replace(self._path(failure.key))

    def forget(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def forget_all(self) -> None:
        """Forget all, and whatever killed processes left of others."""
        if self._folder.exists():
            shutil.rmtree(self._folder)

    def all(self) -> list[Failure]:
        """All of them, by key."""
        keys = sorted(path.stem for path in self._folder.glob("*.json"))
        return [failure for key in keys if (failure := self.find(key))]

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"
