"""The archives that imported pages come from: the list of a shard, and the state of the files.

Archives belong to the user and may be moved away and brought back. Rereading depends on that, so the state of the
archives of a shard is part of the key of its artifact. The list of archives never changes, so it is an artifact
too.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.compute as pc
import xxhash

from thresher.pipeline import document_shards
from thresher.store.corpus_files import ARCHIVES, CorpusError

LIST_ARCHIVES = "thresher.pipeline.reread.archives:list_archives"
FILE = "archives.json"


def list_archives(out: Path, inputs: Sequence[Path]) -> dict[str, Any]:
    """Write the paths of the archives and saved pages that the documents of a shard name."""
    found: set[str] = set()
    for batch in document_shards.batches(inputs[0], ["warc_file"]):
        names: list[str | None] = pc.unique(batch.column(0)).to_pylist()
        found.update(name for name in names if name and Path(name).is_absolute())
    (out / FILE).write_bytes(msgspec.json.encode(sorted(found)))
    return {"archives": len(found)}


def state_of(folder: Path, directory: Path) -> str:
    """Return a digest of the sizes and times of the archives of a shard, at their places or in DIR/archives."""
    files = msgspec.json.decode((folder / FILE).read_bytes(), type=list[str])
    states = [
        (name, _size_and_time(Path(name)) or _size_and_time(directory / ARCHIVES / Path(name).name))
        for name in files
    ]
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(states))


def check_archives(folder: Path, directory: Path, expected: str) -> None:
    """Raise CorpusError if this machine does not see the archives in the state that they had as the run began."""
    if state_of(folder, directory) != expected:
        raise CorpusError(
            f"{socket.gethostname()} does not see the archives of imported pages as they were when the run began; "
            f"put them into {directory / ARCHIVES}, which all machines see, and run again"
        )


def _size_and_time(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns
