"""Shards: files of documents, on which steps work; one after the other, they are in the order of the corpus."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from thresher.store.corpus_files import CorpusError
from thresher.store.schemas import DOCS, aligned
from thresher.store.shard_layout import followed
from thresher.store.table_segments import row_groups

FILE = "docs.parquet"
BATCH_DOCUMENTS = 512
# The share of a text that was dropped because earlier documents have it.
REPEATED = pa.field("repeated", pa.float64())
KNOWN = pa.schema([*DOCS, REPEATED])  # all columns that a shard can have


def batches(shard: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a shard, which is a file or a folder with one, in batches.

    Without `columns`, the batches have all columns of the shard; a column that steps add is there only if a step
    added it. Requested columns that the shard lacks are null. Raise CorpusError if the file cannot be read.
    """
    path = shard / FILE if shard.is_dir() else shard
    try:
        with followed(path, pq.ParquetFile) as file:
            schema = file.schema_arrow if shard.is_dir() else DOCS
            # Results of older versions hold columns of ours in older types; columns of users keep theirs.
            known = {field.name: field for field in (*schema, *KNOWN)}
            names = schema.names if columns is None else columns
            wanted = pa.schema([known[name] for name in names])
            present = [name for name in wanted.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(BATCH_DOCUMENTS, columns=present):
                yield aligned(batch, wanted)
    except (pa.ArrowException, OSError) as fault:
        raise CorpusError(f"{path} cannot be read: {fault}; restore it") from fault


def write(folder: Path, documents: Iterable[pa.RecordBatch], schema: pa.Schema = DOCS) -> int:
    """Write a shard and return the number of its documents; the same documents make the same bytes."""
    count = 0
    with (folder / FILE).open("wb") as out:
        groups = row_groups(documents)
        first = next(groups, schema.empty_table())
        with pq.ParquetWriter(out, first.schema, compression="zstd") as writer:
            for group in chain([first], groups):
                writer.write_table(group, row_group_size=max(group.num_rows, 1))
                count += group.num_rows
        out.flush()
        os.fsync(out.fileno())
    return count
