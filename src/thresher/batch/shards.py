"""Shards: documents in files, the portions that steps work on; all together are in the order of the corpus."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from thresher.store.corpus import CorpusError, aligned
from thresher.store.segments import row_groups
from thresher.store.shards import followed
from thresher.store.tables import DOCS

FILE = "docs.parquet"
AT_ONCE = 512  # documents
REPEATED = pa.field("repeated", pa.float64())  # share of a text that stood in earlier ones, and was left out
KNOWN = pa.schema([*DOCS, REPEATED])  # documents as steps know them


def batches(shard: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The documents of a shard, a file or a folder with one, some at a time; what it has not is null.

    Without columns, all that it has; one that steps add, only where one did.
    """
    path = shard / FILE if shard.is_dir() else shard
    try:
        with followed(path, pq.ParquetFile) as file:
            schema = file.schema_arrow if shard.is_dir() else DOCS
            known = {field.name: field for field in (*KNOWN, *schema)}
            wanted = schema if columns is None else pa.schema([known[name] for name in columns])
            present = [name for name in wanted.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(AT_ONCE, columns=present):
                yield aligned(batch, wanted)
    except (pa.ArrowException, OSError) as fault:
        raise CorpusError(f"{path} cannot be read: {fault}; restore it") from fault


def write(folder: Path, documents: Iterable[pa.RecordBatch], schema: pa.Schema = DOCS) -> int:
    """Write a shard, and tell how many documents it has; the same documents make the same bytes."""
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
