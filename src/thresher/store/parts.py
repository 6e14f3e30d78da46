"""What one part of a corpus has, the folder of a crawl or of one of its shards: figures, and files of tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from thresher.store.files import StoreError, numbered
from thresher.store.segments import naming_of, read_stream, segment_path
from thresher.store.shards import followed


class CorpusError(StoreError):
    """A corpus cannot be opened or read; the message names it and the cure."""


class TableFile(NamedTuple):
    """A file of a table: a stream of so many bytes, or, without a length, one that is sealed and never changes."""

    path: Path
    length: int | None
    number: int = 0
    committed: bool = True  # no commit tells of it: its last batch may be cut off


def status(part: Path) -> dict[str, Any] | None:
    """status.json, or None if there is none that can be read."""
    try:
        told = msgspec.json.decode((part / "status.json").read_bytes(), type=dict[str, Any])
        msgspec.convert(told.get("files"), dict[str, int | None])
    except (OSError, msgspec.DecodeError):
        return None
    return told


def table_files(part: Path, table: str) -> list[TableFile]:
    """The files of a table as of the newest commit, by number."""
    told = status(part)
    if told is None:
        return _uncommitted(part / table)
    prefix = f"{table}/"
    known: dict[str, int | None] = told["files"]
    ours = {name[len(prefix) :]: length for name, length in known.items() if name.startswith(prefix)}
    return [
        TableFile(
            segment_path(part / table, number, "parquet" if length is None else "arrows"), length, number
        )
        for number, length in numbered(ours, naming_of(table))
    ]


def _uncommitted(folder: Path) -> list[TableFile]:
    """What there is when no commit can tell: sealed segments, and streams that were not sealed."""
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
    """The batches of a segment, a sealed one in portions of so many rows.

    A stream is opened at once, for the crawl may soon delete it; what is sealed, when its turn comes.
    """
    if file.length is None:
        return sealed_batches(file.path, columns, rows)
    stream = read_stream(file.path, file.length, columns)
    return stream if file.committed else _whole(stream)


def _whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches before the first that is cut off."""
    with contextlib.suppress(StoreError):
        yield from batches


def sealed_batches(path: Path, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """The batches of a Parquet file, which is there and never changes."""
    path.stat()
    return _parquet_batches(path, columns, rows)


def _parquet_batches(path: Path, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    try:
        with followed(path, pq.ParquetFile) as file:
            present = [name for name in columns if name in file.schema_arrow.names]
            yield from file.iter_batches(rows, columns=present)
    except (pa.ArrowInvalid, OSError) as error:
        raise CorpusError(f"{path} cannot be read: {error}; restore it") from error
