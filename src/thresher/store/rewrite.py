"""Rewriting of the files of a corpus without some records, beside the old files, which stay valid until a commit.

Nothing here changes a committed file. New files get unused numbers in the order of the old ones; files that need no
change get another name for the same bytes. The caller commits the new names and deletes the old files afterwards.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from thresher.files.durable_files import numbered, replacing, sync_directory
from thresher.store import warc
from thresher.store.checked_files import arrow_faults
from thresher.store.shard_layout import ALONE, Shard
from thresher.store.table_segments import naming_of, read_stream, row_groups, segment_path

Lengths = dict[str, int | None]
Edit = Callable[[pa.RecordBatch], pa.RecordBatch]
BATCH_ROWS = 4_096


class MovedRecords(Struct, frozen=True):
    """The new places of the records of a rewritten WARC file."""

    name: str  # of the new file
    old: np.ndarray  # offsets, sorted
    new: np.ndarray


def rewrite_warcs(
    directory: Path, files: Mapping[str, int | None], dropped: Mapping[str, set[int]], shard: Shard = ALONE
) -> tuple[Lengths, dict[str, MovedRecords]]:
    """Rewrite WARC files without the records at some offsets; return the files to commit and the moved records."""
    lengths: Lengths = dict(files)
    if not dropped:
        return lengths, {}
    number = max(place for place, _ in numbered(files, warc.NAMING))
    moved: dict[str, MovedRecords] = {}
    for name, length in files.items():
        path = directory / name
        if length is not None:  # its number is no longer the last one, so it may not grow
            os.truncate(path, length)
            lengths[name] = None
        if name not in dropped:
            continue
        number = shard.next_file(number)
        new = directory / warc.file_name(number)
        places = warc.copy_without(path, path.stat().st_size, new, dropped[name])
        del lengths[name]
        if places:
            lengths[new.name] = None
        old, fresh = (np.array(offsets, np.int64) for offsets in (list(places), list(places.values())))
        moved[name] = MovedRecords(new.name, old, fresh)
    sync_directory(directory)
    return lengths, moved


def relocated(batch: pa.RecordBatch, moved: Mapping[str, MovedRecords]) -> pa.RecordBatch:
    """Return rows whose raw pages were moved with the new places."""
    if not moved or "warc_file" not in batch.schema.names:
        return batch
    names: list[Any] = batch.column("warc_file").to_pylist()
    if moved.keys().isdisjoint(names):
        return batch
    offsets: list[Any] = batch.column("warc_offset").to_pylist()
    for row, name in enumerate(names):
        if (to := moved.get(name)) is not None:
            place = int(np.searchsorted(to.old, offsets[row]))
            is_there = place < len(to.old) and to.old[place] == offsets[row]
            names[row], offsets[row] = (to.name, int(to.new[place])) if is_there else (None, None)
    return _with(batch, warc_file=names, warc_offset=offsets)


def _with(batch: pa.RecordBatch, **columns: list[Any]) -> pa.RecordBatch:
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else batch.column(field.name)
        for field in batch.schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def blanked(batch: pa.RecordBatch, column: str, rows: pa.Array[Any]) -> pa.RecordBatch:
    """Return the batch with "" in some rows of a text column."""
    values: Any = batch.column(column)
    return _with(batch, **{column: pc.if_else(rows, "", values).to_pylist()})


def rewrite_table(
    directory: Path, files: Mapping[str, int | None], edit: Edit, shard: Shard = ALONE
) -> Lengths:
    """Rewrite the segments of a table that an edit changes, rename later ones; return the files to commit."""
    naming = naming_of(directory.name)
    kinds = {number: "parquet" if length is None else "arrows" for number, length in numbered(files, naming)}
    lengths: Lengths = {}
    following = shard.next_file(max(kinds, default=0))
    renumber = False  # from the first changed segment on, so that the order stays
    for number, length in numbered(files, naming):
        path = segment_path(directory, number, kinds[number])
        changes = _changes(path, length, edit)
        renumber |= changes
        if not renumber:
            lengths[path.name] = length
            continue
        target = segment_path(directory, following, "parquet" if changes else kinds[number])
        following = shard.next_file(following)
        if changes:
            _write(path, length, target, edit)
        else:
            _give_another_name(path, target)
        lengths[target.name] = None if changes else length
    if renumber:
        sync_directory(directory)
    return lengths


def _changes(path: Path, length: int | None, edit: Edit) -> bool:
    return any(edit(batch) is not batch for batch in segment_batches(path, length))


def segment_batches(path: Path, length: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a segment with all its columns."""
    if length is not None:
        yield from read_stream(path, length)
        return
    with arrow_faults(path), pq.ParquetFile(path) as file:
        yield from file.iter_batches(BATCH_ROWS)


def _write(path: Path, length: int | None, target: Path, edit: Edit) -> None:
    batches = segment_batches(path, length)
    first = next(batches)
    with replacing(target) as out, pq.ParquetWriter(out, first.schema, compression="zstd") as writer:
        for group in row_groups(edit(batch) for batch in chain([first], batches)):
            writer.write_table(group, row_group_size=group.num_rows)


def _give_another_name(path: Path, target: Path) -> None:
    target.unlink(missing_ok=True)  # left by a killed process
    try:
        os.link(path, target)
    except OSError:  # a file system without links
        shutil.copyfile(path, target)
        with target.open("rb") as copy:
            os.fsync(copy.fileno())
