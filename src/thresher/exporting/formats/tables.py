"""Documents as rows: JSON lines, Parquet, plain text."""

from __future__ import annotations

from typing import BinaryIO

import msgspec
import pyarrow.parquet as pq

from thresher.exporting.documents import ExportSelection, regrouped
from thresher.store.corpus_files import paragraphs
from thresher.store.schemas import DOCS

_SHOWN = ("title", "url", "text")  # columns of plain text
ROW_GROUP_BYTES = 32 << 20  # of text: columns compress well, and a reader can hold a group


def write_jsonl(selection: ExportSelection, out: BinaryIO) -> int:
    """Write one JSON object per line, with every column; return the number of documents."""
    encoder = msgspec.json.Encoder()
    count = 0
    for batch in selection.rows():
        rows = batch.to_pylist()
        out.write(encoder.encode_lines(rows))
        count += len(rows)
    return count


def write_text(selection: ExportSelection, out: BinaryIO) -> int:
    """Write title, URL and one paragraph per line, with a blank line between documents; return their number."""
    count = 0
    for batch in selection.rows():
        for title, url, text in zip(*(batch.column(name).to_pylist() for name in _SHOWN), strict=True):
            if not (lines := paragraphs(text or "")):
                selection.left_out["no text"] += 1
                continue
            if count:
                out.write(b"\n")
            known = {"title": " ".join(paragraphs(title or "")), "url": url}
            head = [f"# {name}: {value}" for name, value in known.items() if value]
            out.write("".join([f"{line}\n" for line in (*head, *lines)]).encode())
            count += 1
    return count


def write_parquet(selection: ExportSelection, out: BinaryIO) -> int:
    """Write the table of documents as one Parquet file; return the number of documents."""
    count = 0
    with pq.ParquetWriter(out, DOCS, compression="zstd") as writer:
        for group in regrouped(selection.rows(), ROW_GROUP_BYTES):
            writer.write_table(group, row_group_size=group.num_rows)
            count += group.num_rows
    return count
