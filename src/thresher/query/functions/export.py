"""Tables as files: CSV for spreadsheets, JSON by lines for programs, Parquet for statistics."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow.parquet as pq

from thresher.query.functions.tables import Table, one_of

BATCH = 10_000  # rows that are written at a time
RISKY = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet may take what begins so for a formula and run it


def write(table: Table, where: Path | BinaryIO, format: str = "csv", *, spreadsheet: bool = False) -> None:
    """Write a table to a file or a stream of bytes.

    For a `spreadsheet`, texts in CSV that it could take for formulas get an apostrophe in front.
    """
    writer = FORMATS[one_of(format, FORMATS, "format")]
    if isinstance(where, Path):
        with where.open("wb") as file:
            writer(table, file, spreadsheet)
    else:
        writer(table, where, spreadsheet)


def _batches(table: Table) -> Iterator[list[dict[str, Any]]]:
    for batch in table.rows.to_batches(max_chunksize=BATCH):
        yield batch.to_pylist()


def _csv(table: Table, file: BinaryIO, spreadsheet: bool) -> None:
    """RFC 4180: lines end with CR LF, and quotes stand where they must."""
    cell = _harmless if spreadsheet else lambda value: value
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([cell(name) for name in table.columns])
    for batch in _batches(table):
        writer.writerows([cell(value) for value in row.values()] for row in batch)
    text.detach()  # the stream stays open: it is the caller's


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(RISKY) else value


def _jsonl(table: Table, file: BinaryIO, _: bool) -> None:
    encoder = msgspec.json.Encoder()
    for batch in _batches(table):
        file.write(encoder.encode_lines(batch))


def _parquet(table: Table, file: BinaryIO, _: bool) -> None:
    told = {"is_whole": "true" if table.is_whole else "false", "stopped": table.stopped}
    pq.write_table(table.rows.replace_schema_metadata(told), file, compression="zstd")


FORMATS: dict[str, Callable[[Table, BinaryIO, bool], None]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
