"""Write tables to files: CSV and TSV for spreadsheets, JSON lines for programs, Parquet for statistics."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pyarrow.parquet as pq

from thresher.files.durable_files import replacing
from thresher.search.analysis.tables import ResultTable, one_of
from thresher.store.corpus_files import check_output_file

BATCH = 10_000  # rows that are written at a time
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet may run a text that begins with one of them


def write(
    table: ResultTable, where: Path | BinaryIO, format: str = "csv", *, spreadsheet: bool = False
) -> None:
    """Write a table to a stream of bytes, or to a file, which is replaced as a whole or not at all.

    With `spreadsheet`, texts in CSV that a spreadsheet could take for formulas get an apostrophe in front.
    """
    writer = FORMATS[one_of(format, FORMATS, "format")]
    if isinstance(where, Path):
        check_output_file(where)
        with replacing(where) as file:
            writer(table, file, spreadsheet)
    else:
        writer(table, where, spreadsheet)


def _batches(table: ResultTable) -> Iterator[list[dict[str, Any]]]:
    for batch in table.rows.to_batches(max_chunksize=BATCH):
        yield batch.to_pylist()


def _csv(table: ResultTable, file: BinaryIO, spreadsheet: bool) -> None:
    """Write CSV by RFC 4180: lines end with CR LF, and values are quoted only where they must be."""
    cell = _harmless if spreadsheet else lambda value: value
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([cell(name) for name in table.columns])
    for batch in _batches(table):
        writer.writerows([cell(value) for value in row.values()] for row in batch)
    text.detach()  # the stream belongs to the caller and stays open


def _tsv(table: ResultTable, file: BinaryIO, _: bool) -> None:
    """Write lines of values between tabs, without quotes; tabs and line ends in values become spaces."""
    file.write(_tsv_line(table.columns))
    for batch in _batches(table):
        file.writelines(_tsv_line(row.values()) for row in batch)


def _tsv_line(values: Iterable[Any]) -> bytes:
    cells = ("" if value is None else re.sub(r"[\t\r\n]+", " ", str(value)) for value in values)
    return ("\t".join(cells) + "\n").encode()


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_SIGNS) else value


def _jsonl(table: ResultTable, file: BinaryIO, _: bool) -> None:
    encoder = msgspec.json.Encoder()
    for batch in _batches(table):
        file.write(encoder.encode_lines(batch))


def _parquet(table: ResultTable, file: BinaryIO, _: bool) -> None:
    metadata = {"is_whole": "true" if table.is_whole else "false", "stopped": table.stopped}
    pq.write_table(table.rows.replace_schema_metadata(metadata), file, compression="zstd")


FORMATS: dict[str, Callable[[ResultTable, BinaryIO, bool], None]] = {
    "csv": _csv,
    "tsv": _tsv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
