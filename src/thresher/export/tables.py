"""Documents as rows: JSON lines, Parquet, plain text."""

from __future__ import annotations

from typing import BinaryIO

import msgspec
import pyarrow.parquet as pq

from thresher.export.selection import Selection, regrouped
from thresher.store.corpus import paragraphs
from thresher.store.tables import DOCS

ROW_GROUP_BYTES = 32 << 20  # of text: enough for columns to pack well, little enough for a reader to hold


def write_jsonl(selection: Selection, out: BinaryIO) -> int:
    """One JSON object per line, with every column."""
    encoder = msgspec.json.Encoder()
    count = 0
    for batch in selection.rows():
        rows = batch.to_pylist()
        out.write(encoder.encode_lines(rows))
        count += len(rows)
    return count


def write_text(selection: Selection, out: BinaryIO) -> int:
    """One paragraph per line, a blank line between documents."""
    count = 0
    for batch in selection.rows():
        for text in batch.column("text").to_pylist():
            if not (lines := paragraphs(text or "")):
                selection.left_out["no text"] += 1
                continue
            if count:
                out.write(b"\n")
            out.write("".join([f"{line}\n" for line in lines]).encode())
            count += 1
    return count


def write_parquet(selection: Selection, out: BinaryIO) -> int:
    """The table of documents, as one Parquet file."""
    count = 0
    with pq.ParquetWriter(out, DOCS, compression="zstd") as writer:
        for group in regrouped(selection.rows(), ROW_GROUP_BYTES):
            writer.write_table(group, row_group_size=group.num_rows)
            count += group.num_rows
    return count
