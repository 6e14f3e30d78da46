"""One part of a corpus, the folder of a crawl or of one of its shards: its status and the files of its tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from thresher.errors import DataError
from thresher.files.durable_files import numbered
from thresher.store.checked_files import json_file
from thresher.store.shard_layout import followed
from thresher.store.table_segments import naming_of, read_stream, segment_path


class CorpusError(DataError):
    """A corpus cannot be opened or read."""


class TableFile(NamedTuple):
    """A file of a table: a stream with the number of committed bytes, or a sealed file, which has no length."""

    path: Path
    length: int | None
    number: int = 0
    committed: bool = True  # False: no commit names it, and its last batch may be cut off


def status(part: Path) -> dict[str, Any] | None:
    """Return the contents of status.json, None if it is missing or damaged."""
    try:
        found = json_file(part / "status.json", dict[str, Any])
        msgspec.convert(found.get("files"), dict[str, int | None])
    except (OSError, DataError, msgspec.ValidationError):
        return None
    return found


def table_files(part: Path, table: str) -> list[TableFile]:
    """Return the files of a table as of the newest commit, by number."""
    found = status(part)
    if found is None:
        return _uncommitted(part / table)
    prefix = f"{table}/"
    known: dict[str, int | None] = found["files"]
    ours = {name[len(prefix) :]: length for name, length in known.items() if name.startswith(prefix)}
    return [
        TableFile(
            segment_path(part / table, number, "parquet" if length is None else "arrows"), length, number
        )
        for number, length in numbered(ours, naming_of(table))
    ]


def _uncommitted(folder: Path) -> list[TableFile]:
    """Return the files found on disk where status.json is missing: sealed segments, and streams without one."""
    naming = naming_of(folder.name)
    names = [match for path in folder.glob("*") if (match := naming.fullmatch(path.name))]
    sealed = {int(match[1]) for match in names if match[2] == "parquet"}
    streams = {int(match[1]) for match in names if match[2] == "arrows"} - sealed
    found = []
    for number in sorted(sealed | streams):
        path = segment_path(folder, number, "parquet" if number in sealed else "arrows")
        found.append(TableFile(path, None if number in sealed else path.stat().st_size, number, False))
    return found


def segment(file: TableFile, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Return the batches of a segment, of a sealed one in portions of at most `rows` rows.

    A stream is opened at once, since the crawl may soon delete it, a sealed file when its first batch is needed.
    """
    if file.length is None:
        return sealed_batches(file.path, columns, rows)
    stream = read_stream(file.path, file.length, columns)
    return stream if file.committed else _whole(stream)


def _whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches before the first that is cut off."""
    with contextlib.suppress(DataError):
        yield from batches


def sealed_batches(path: Path, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Return the batches of a Parquet file, which must exist now and is opened later."""
    path.stat()
    return _parquet_batches(path, columns, rows)


def _parquet_batches(path: Path, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    try:
        with followed(path, pq.ParquetFile) as file:
            present = [name for name in columns if name in file.schema_arrow.names]
            yield from file.iter_batches(rows, columns=present)
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path} cannot be read: {error}; restore it") from error


def interleaved(streams: Sequence[Iterator[pa.RecordBatch]], column: str) -> Iterator[pa.RecordBatch]:
    """Merge streams that are sorted by a column into one sorted stream, with a batch of each in memory."""
    waiting = [(head, stream) for stream in streams if (head := _next(stream)) is not None]
    while waiting:
        bound = min(head[column][-1].as_py() for head, _ in waiting)
        taken, left = [], []
        for head, stream in waiting:
            cut = int(np.searchsorted(head[column].to_numpy(), bound, side="right"))
            taken.append(head.slice(0, cut))
            rest = head.slice(cut) if cut < head.num_rows else _next(stream)
            if rest is not None:
                left.append((rest, stream))
        waiting = left
        yield from pa.Table.from_batches(taken).sort_by(column).combine_chunks().to_batches()


def _next(stream: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next((batch for batch in stream if batch.num_rows), None)
