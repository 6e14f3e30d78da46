"""The inputs of a recipe: files of the tables of a corpus, each identified by a digest of its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from thresher.errors import DataError
from thresher.files.durable_files import replace
from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import ArtifactOutput, Task, digest_of
from thresher.store.checked_files import json_file
from thresher.store.corpus_files import CorpusFiles
from thresher.store.shard_layout import followed
from thresher.store.table_segments import read_stream

SNAPSHOT = "thresher.pipeline.sources:snapshot"


class KnownSegment(Struct, frozen=True):
    """The digest of a file, valid as long as its size and modification time stay the same."""

    size: int
    changed: int  # in nanoseconds
    digest: str


def files(corpus: CorpusFiles, table: str, runs: Path) -> list[tuple[ArtifactOutput, int | None]]:
    """Return the files of a table that have rows, in order.

    With a file that is still being written comes the number of its committed bytes; with others, None.
    """
    known = _Digests(runs / f"digests-{table}.json")
    found: list[tuple[ArtifactOutput, int | None]] = []
    for path, length, *_ in corpus.files(table):
        if length is None:
            found.append((ArtifactOutput(path, followed(path, known.digest)), None))
        elif length:
            # The committed bytes of a stream never change, so its name and length identify them.
            found.append((ArtifactOutput(path, f"{path.name}@{length}"), length))
    known.save()
    return found


def documents(corpus: CorpusFiles, runs: Path) -> list[ArtifactOutput | Task]:
    """Return the documents of a corpus, in its order: files that never change, or tasks that make such a file."""
    return [
        file if length is None else Task(SNAPSHOT, (file,), {"length": length})
        for file, length in files(corpus, "docs", runs)
    ]


def snapshot(out: Path, inputs: Sequence[Path], *, length: int) -> dict[str, Any]:
    """Write the committed documents of a stream to a shard."""
    return {
        "documents": document_shards.write(out, followed(inputs[0], lambda path: read_stream(path, length)))
    }


class _Digests:
    """A cache of the digests of large files, so that unchanged files are not read again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._used: dict[str, KnownSegment] = {}
        try:
            self._known = json_file(path, dict[str, KnownSegment])
        except (OSError, DataError):  # missing, or damaged: it is only a cache
            self._known = {}

    def digest(self, path: Path) -> str:
        state = path.stat()
        known = self._known.get(path.name)
        if known is None or (known.size, known.changed) != (state.st_size, state.st_mtime_ns):
            known = KnownSegment(state.st_size, state.st_mtime_ns, digest_of(path))
        self._used[path.name] = known
        return known.digest

    def save(self) -> None:
        if self._used != self._known:
            with suppress(OSError):  # a corpus that cannot be written to can be read all the same
                replace(self._path, msgspec.json.encode(self._used))
