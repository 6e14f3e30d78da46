"""Archives that imported pages came with: which of them documents name, and what is there of these.

They belong to others and may be taken away and brought back. What is read of a page depends on that, so how the
archives of a shard look is part of what it is known by. Which ones these are never changes: that is found out once.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.compute as pc
import xxhash

from thresher.batch import shards
from thresher.store.corpus import ARCHIVES, CorpusError

NAMED = "thresher.batch.archives:named"
FILE = "archives.json"


def named(out: Path, inputs: Sequence[Path]) -> dict[str, Any]:
    """The archives, and saved pages, that the documents of a shard name."""
    found: set[str] = set()
    for batch in shards.batches(inputs[0], ["warc_file"]):
        names: list[str | None] = pc.unique(batch.column(0)).to_pylist()
        found.update(name for name in names if name and Path(name).is_absolute())
    (out / FILE).write_bytes(msgspec.json.encode(sorted(found)))
    return {"archives": len(found)}


def look(folder: Path, directory: Path) -> str:
    """A digest of what is there of the archives that a shard names, where they were or in the corpus."""
    files = msgspec.json.decode((folder / FILE).read_bytes(), type=list[str])
    told = [
        (name, _look_of(Path(name)) or _look_of(directory / ARCHIVES / Path(name).name)) for name in files
    ]
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(told))


def must_look(folder: Path, directory: Path, expected: str) -> None:
    """CorpusError if archives do not look here as they did to those who began the run."""
    if look(folder, directory) != expected:
        raise CorpusError(
            f"archives that imported pages came with do not look on {socket.gethostname()} as they did when the "
            f"run began; put them into {directory / ARCHIVES}, which all machines see, and run again"
        )


def _look_of(path: Path) -> tuple[int, int] | None:
    try:
        there = path.stat()
    except OSError:
        return None
    return there.st_size, there.st_mtime_ns
