"""Where shards come from: the files of a corpus's tables, each known by a digest of its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from thresher.batch import shards
from thresher.batch.pieces import Output, Task, digest_of
from thresher.store.corpus import Corpus
from thresher.store.segments import read_stream
from thresher.store.shards import followed

SNAPSHOT = "thresher.batch.sources:snapshot"


class Known(Struct, frozen=True):
    """A file whose digest is known as long as it looks the same."""

    size: int
    changed: int  # in nanoseconds
    digest: str


def files(corpus: Corpus, table: str, runs: Path) -> list[tuple[Output, int | None]]:
    """The files of a table that have rows, in order; of one that is still written, how many bytes count."""
    known = _Digests(runs / f"digests-{table}.json")
    found: list[tuple[Output, int | None]] = []
    for path, length, *_ in corpus.files(table):
        if length is None:
            found.append((Output(path, followed(path, known.digest)), None))
        elif length:
            # What was committed of a stream never changes, so its name and length tell it apart.
            found.append((Output(path, f"{path.name}@{length}"), length))
    known.save()
    return found


def documents(corpus: Corpus, runs: Path) -> list[Output | Task]:
    """The documents of a corpus, in its order: files that never change, or tasks that make such a file."""
    return [
        file if length is None else Task(SNAPSHOT, (file,), {"length": length})
        for file, length in files(corpus, "docs", runs)
    ]


def snapshot(out: Path, inputs: Sequence[Path], *, length: int) -> dict[str, Any]:
    """The documents that are in a stream so far."""
    return {"documents": shards.write(out, followed(inputs[0], lambda path: read_stream(path, length)))}


class _Digests:
    """Digests of large files, remembered: nothing is read again only to see that it is the same."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._used: dict[str, Known] = {}
        try:
            self._known = msgspec.json.decode(path.read_bytes(), type=dict[str, Known])
        except (FileNotFoundError, msgspec.DecodeError):
            self._known = {}

    def digest(self, path: Path) -> str:
        there = path.stat()
        known = self._known.get(path.name)
        if known is None or (known.size, known.changed) != (there.st_size, there.st_mtime_ns):
            known = Known(there.st_size, there.st_mtime_ns, digest_of(path))
        self._used[path.name] = known
        return known.digest

    def save(self) -> None:
        if self._used != self._known:
            temporary = self._path.with_name(f"{self._path.name}.tmp")
            temporary.write_bytes(msgspec.json.encode(self._used))
            temporary.replace(self._path)
