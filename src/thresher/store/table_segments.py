"""Segments: rows appended to an Arrow stream, and the full stream sealed into a Parquet file."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate, chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from thresher.files.durable_files import TEMPORARY, AppendFile, adopt, numbered, replacing
from thresher.store.checked_files import arrow_faults
from thresher.store.shard_layout import ALONE, Shard

ROW_GROUP_BYTES = 32 << 20  # that a reader of Parquet, and sealing, hold in memory at once
# Batches are small: handing one to a thread costs more than compressing it.
_COMPRESSION = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=False)
_END_OF_STREAM = 8  # bytes that Arrow writes when a stream is closed; ours stay open


def segment_path(directory: Path, number: int, kind: str) -> Path:
    """Return the path of a segment; the directory has the name of its table.

    >>> segment_path(Path("docs"), 7, "parquet").name
    'docs-00007.parquet'
    """
    return directory / f"{directory.name}-{number:05d}.{kind}"


def naming_of(stem: str) -> re.Pattern[str]:
    """Return a pattern of all file names of a table's segments, with the groups number and kind."""
    return re.compile(rf"{re.escape(stem)}-(\d{{5,}})\.(arrows|parquet(?:{TEMPORARY})?)")


def read_stream(path: Path, length: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Return the record batches in the first `length` bytes of a stream file, which is opened at once.

    An incomplete batch raises DataError when it is reached.
    """
    return _batches(path, pa.OSFile(str(path), "rb"), length, columns)


def _batches(
    path: Path, file: pa.NativeFile, length: int, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    with file, arrow_faults(path):
        schema = pa.ipc.open_stream(file.get_stream(0, length)).schema
        wanted = schema.names if columns is None else [name for name in columns if name in schema.names]
        options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in wanted])
        yield from pa.ipc.open_stream(file.get_stream(0, length), options=options)


def seal(stream: Path, length: int, target: Path, stop: threading.Event | None = None) -> None:
    """Turn a stream file into a Parquet file that is durable under its name, a row group at a time."""
    with replacing(target) as out:
        groups = row_groups(read_stream(stream, length))
        first = next(groups)
        with pq.ParquetWriter(out, first.schema, compression="zstd") as writer:
            for group in chain([first], groups):
                if stop is not None and stop.is_set():
                    raise InterruptedError(f"sealing {stream} was stopped")
                writer.write_table(group, row_group_size=group.num_rows)


def row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches gathered into tables of about ROW_GROUP_BYTES, none of them empty."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            gathered.append(batch)
            size += batch.nbytes
        if size >= ROW_GROUP_BYTES:
            yield pa.Table.from_batches(gathered)
            gathered, size = [], 0
    if gathered:
        yield pa.Table.from_batches(gathered)


def column_array(values: Sequence[Any], type_: pa.DataType) -> pa.Array[Any]:
    """Return a column of Python values as an Arrow array.

    Times are Unix seconds or None; the items of a list of structs are records with the struct's field names.
    """
    if pa.types.is_timestamp(type_):
        moments = np.array(values, dtype=np.float64)  # None becomes NaN
        unknown = np.isnan(moments)
        moments[unknown] = 0.0
        whole = np.rint(moments * 1e6).astype(np.int64).tolist()
        values = [None if gone else moment for moment, gone in zip(whole, unknown.tolist(), strict=True)]
    if isinstance(type_, pa.ListType) and isinstance(type_.value_type, pa.StructType):
        return _record_lists(values, type_)
    try:
        array: pa.Array[Any] = pa.array(values, type_)
    except UnicodeEncodeError:
        array = pa.array([_encodable(value) for value in values], type_)
    return array


def _record_lists(values: Sequence[Sequence[Any]], type_: pa.ListType[Any]) -> pa.Array[Any]:
    """Build a list array field by field, which is three times as fast as from a list of dictionaries."""
    flat = [record for records in values for record in records]
    offsets = pa.array(list(accumulate(map(len, values), initial=0)), pa.int32())
    fields = list(type_.value_type)
    arrays = [column_array(list(map(attrgetter(field.name), flat)), field.type) for field in fields]
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(arrays, fields=fields), type=type_)


def _encodable(value: Any) -> Any:
    """Replace lone surrogates, which UTF-8 cannot hold, by question marks."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


class TableSegments:
    """One table of a corpus, written by one process and read by any number.

    `docs-00003.arrows` is open; when it is full, `docs-00004.arrows` is opened and a thread writes
    `docs-00003.parquet`, which replaces the stream in a later commit. Until then the stream is the valid file.
    """

    def __init__(
        self,
        directory: Path,
        schema: pa.Schema,
        committed: Mapping[str, int | None],
        seal_bytes: int,
        shard: Shard = ALONE,
    ) -> None:
        self._shard = shard
        self._directory = directory
        self._schema = schema
        self._seal_bytes = seal_bytes
        self._pending: list[list[Any]] = [[] for _ in schema]
        self._pending_rows: list[tuple[Any, ...]] = []
        self._prologue: bytes = schema.serialize().to_pybytes()  # stored once, at the start of each stream

        self._sealed: list[int] = []
        self._full: dict[int, int] = {}  # length by number, of streams that wait to be sealed
        self._superseded: list[Path] = []
        self._sealing: Future[None] | None = None  # of the first stream in _full
        self._stop = threading.Event()
        self._worker: ThreadPoolExecutor | None = None

        naming = naming_of(directory.name)
        adopt(directory, committed, naming)
        for number, length in numbered(committed, naming):
            if length is None:
                self._sealed.append(number)
            else:
                self._full[number] = length
        self._rows = self._count_rows()
        self._number = max([*self._sealed, *self._full], default=0)
        if not self._continues(self._number):
            self._number = shard.next_file(self._number)
        self._file = AppendFile(self._stream(self._number), self._full.pop(self._number, 0))

    def _continues(self, number: int) -> bool:
        """Return whether rows can be added to a segment, which is true for a stream of the same schema."""
        if number not in self._full:
            return False
        path = self._stream(number)
        with arrow_faults(path), pa.OSFile(str(path), "rb") as file:
            found: pa.Schema = pa.ipc.open_stream(file).schema
        return found.equals(self._schema)

    def _count_rows(self) -> int:
        sealed = 0
        for number in self._sealed:
            with arrow_faults(path := self._parquet(number)):
                sealed += pq.read_metadata(path).num_rows
        first_column = self._schema.names[:1]
        return sealed + sum(
            batch.num_rows
            for number, length in self._full.items()
            for batch in read_stream(self._stream(number), length, first_column)
        )

    def _stream(self, number: int) -> Path:
        return segment_path(self._directory, number, "arrows")

    def _parquet(self, number: int) -> Path:
        return segment_path(self._directory, number, "parquet")

    @property
    def rows(self) -> int:
        """Number of rows in the table, pending ones included."""
        return self._rows + len(self._pending[0]) + len(self._pending_rows)

    def append(self, *values: Any) -> None:
        """Add one row, with values in the order of the schema."""
        if len(values) != len(self._pending):
            raise TypeError(f"{self._directory.name} has {len(self._pending)} columns, not {len(values)}")
        self._pending_rows.append(values)

    def extend(self, columns: Sequence[Sequence[Any]]) -> None:
        """Add rows, given as columns in the order of the schema."""
        counts = {len(column) for column in columns}
        if len(columns) != len(self._pending) or len(counts) != 1:
            raise TypeError(f"{self._directory.name} takes {len(self._pending)} columns of one length")
        self._gather()
        for pending, column in zip(self._pending, columns, strict=True):
            pending.extend(column)

    def _gather(self) -> None:
        """Move single rows into the columns, in their order."""
        if self._pending_rows:
            for pending, column in zip(self._pending, zip(*self._pending_rows, strict=True), strict=True):
                pending.extend(column)
            self._pending_rows.clear()

    def flush(self) -> None:
        """Make all rows durable. After an OSError (a full disk) nothing is lost: flush again when there is room."""
        self._encode()
        self._file.flush()
        self._finish_sealing()
        if self._file.length >= self._seal_bytes:
            self._roll()
        self._start_sealing()

    def _encode(self) -> None:
        """Append pending rows to the stream as one record batch."""
        self._gather()
        count = len(self._pending[0])
        if not count:
            return
        arrays = [
            column_array(values, field.type)
            for values, field in zip(self._pending, self._schema, strict=True)
        ]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._schema, options=_COMPRESSION) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        stream: bytes = sink.getvalue().to_pybytes()
        start = 0 if self._file.end == 0 else len(self._prologue)
        self._file.append(stream[start:-_END_OF_STREAM])
        for values in self._pending:
            values.clear()
        self._rows += count

    def _roll(self) -> None:
        """Close the open stream, which is full, and open the next one."""
        self._file.close()
        self._full[self._number] = self._file.length
        self._number = self._shard.next_file(self._number)
        self._file = AppendFile(self._stream(self._number), 0)

    def _start_sealing(self) -> None:
        if self._sealing is not None or not self._full:
            return
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix=f"seal-{self._directory.name}")
        number, length = next(iter(self._full.items()))
        self._sealing = self._worker.submit(
            seal, self._stream(number), length, self._parquet(number), self._stop
        )

    def _finish_sealing(self) -> None:
        """Replace a stream by its finished Parquet file; raise the exception of one that failed."""
        if self._sealing is None or not self._sealing.done():
            return
        finished, self._sealing = self._sealing, None
        finished.result()
        number = next(iter(self._full))
        del self._full[number]
        self._sealed.append(number)
        self._superseded.append(self._stream(number))

    def seal(self) -> None:
        """Flush, and turn every stream into Parquet before returning, as at the end of a crawl."""
        self.flush()
        if self._file.length:
            self._roll()
        while self._full:
            self._start_sealing()
            if self._sealing is not None:
                self._sealing.exception()  # waits
            self._finish_sealing()

    def lengths(self) -> dict[str, int | None]:
        """Return the files to commit with their lengths; None stands for a file that never changes."""
        lengths: dict[str, int | None] = {self._parquet(number).name: None for number in self._sealed}
        lengths.update((self._stream(number).name, length) for number, length in self._full.items())
        if self._file.length:
            lengths[self._file.path.name] = self._file.length
        return lengths

    def retire(self) -> None:
        """Delete the streams whose Parquet files were committed."""
        while self._superseded:
            self._superseded[-1].unlink(missing_ok=True)
            self._superseded.pop()

    def close(self) -> None:
        """Close the files; rows that were not flushed are dropped, and sealing starts again next time."""
        self._stop.set()
        if self._worker is not None:
            self._worker.shutdown(wait=True, cancel_futures=True)
        self._file.close()
