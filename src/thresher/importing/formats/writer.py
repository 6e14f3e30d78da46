"""The writer of imported documents: Parquet files, each complete or absent.

A large input has a file of its own; small ones share a file. A file is written under a temporary name and renamed
when it is complete and durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct

from thresher.importing.formats.document import SourceDocument
from thresher.store.atomic_parquet import AtomicParquet
from thresher.store.imported_files import NAMING

ROW_GROUP_BYTES = 8 << 20  # of documents, which a reader holds in memory, unless one document is longer
SHARED_BYTES = 64 << 20  # a file with so many bytes is not shared with further inputs
ROW_BYTES = 500  # of memory that a row takes besides its document, which may be a single word

_COLUMNS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "source": pa.string(),  # name of the file
    "number": pa.int64(),  # of the document in that file, from 1
    "meta": pa.map_(pa.string(), pa.string()),
    "text": pa.large_string(),  # null if there are tokens
    "tokens": pa.large_binary(),  # lines; null if there is text
    "count": pa.int64(),  # of tokens; null for text
}
SCHEMA = pa.schema(_COLUMNS)


class FinishedInput(Struct, frozen=True):
    """An input that was read to its end."""

    format: str
    sha256: str  # of its bytes, compressed or not
    bytes: int


class DocumentRow(NamedTuple):
    """A document with its identifier and its place in the input."""

    id: str
    source: str
    number: int
    document: SourceDocument


class DocumentWriter:
    """A writer of inputs, one after the other; an input that is not kept leaves nothing."""

    def __init__(self, directory: Path, language: str) -> None:
        self.durable = 0  # the number of kept inputs that are durable; they become so in their order
        self._directory = directory
        self._language = language
        names = [NAMING.fullmatch(path.name) for path in directory.iterdir()]
        self._number = max((int(name[1]) for name in names if name), default=0)
        self._file: AtomicParquet | None = None
        self._inputs: list[FinishedInput] = []  # kept in the open file
        self._attributes: tuple[str, ...] = ()  # of the tokens of these inputs
        self._rows = _Rows()  # of these inputs, not written yet
        self._new = _Rows()  # of the current input, not written yet

    def add(self, row: DocumentRow) -> None:
        """Add a document of the current input."""
        self._new.add(row)
        if self._new.bytes >= ROW_GROUP_BYTES:
            if self._inputs:  # if the current input fails later, earlier ones must not be lost with it
                self._seal()
            self._write(self._new)

    def keep(self, whole: FinishedInput) -> Path:
        """Keep the current input, which is complete; return the file that its documents will be in."""
        attributes = self._new.attributes
        if self._inputs and (self._inputs[0].format, self._attributes) != (whole.format, attributes):
            self._seal()
        self._inputs.append(whole)
        self._attributes = attributes
        self._rows.take(self._new)
        if self._rows.bytes >= ROW_GROUP_BYTES:
            self._write(self._rows)
        path = self._path()
        if self._file is not None and self._file.bytes >= SHARED_BYTES:
            self._seal()
        return path

    def drop(self) -> None:
        """Drop the current input."""
        self._new = _Rows()
        if self._file is not None and not self._inputs:
            self._file.abandon()
            self._file = None

    def close(self) -> None:
        """Make all kept inputs durable, and drop the current one."""
        self.drop()
        if self._inputs:
            self._seal()

    def _write(self, rows: _Rows) -> None:
        if self._file is None:
            self._file = AtomicParquet(self._path(), SCHEMA)
        try:
            self._file.write(_table(rows.rows), rows.bytes)
        except BaseException:
            self._file, self._inputs = None, []
            raise
        rows.clear()

    def _path(self) -> Path:
        return self._directory / f"{self._number + 1:06d}.parquet"

    def _seal(self) -> None:
        if self._rows.rows:
            self._write(self._rows)
        assert self._file is not None
        file, inputs = self._file, self._inputs
        self._file, self._inputs = None, []
        file.seal(
            {
                "thresher.format": inputs[0].format,
                "thresher.attributes": ",".join(self._attributes),
                "thresher.language": self._language,
                "thresher.sha256": ",".join(each.sha256 for each in inputs),
                "thresher.bytes": ",".join(str(each.bytes) for each in inputs),
            }
        )
        self._number += 1
        self.durable += len(inputs)


class _Rows:
    """Rows to be written together."""

    def __init__(self) -> None:
        self.rows: list[DocumentRow] = []
        self.bytes = 0
        self.attributes: tuple[str, ...] = ()  # of the last tokens, including written ones

    def add(self, row: DocumentRow) -> None:
        self.rows.append(row)
        self.bytes += ROW_BYTES + len(row.document.body) + sum(map(len, row.document.meta.values()))
        self.attributes = row.document.attributes or self.attributes

    def take(self, others: _Rows) -> None:
        self.rows += others.rows
        self.bytes += others.bytes
        others.clear()
        others.attributes = ()

    def clear(self) -> None:
        self.rows, self.bytes = [], 0


def _table(rows: Sequence[DocumentRow]) -> pa.Table:
    """Return rows as a table, built from buffers, since pa.array imports pandas if that is installed."""
    documents = [row.document for row in rows]
    items = [item for each in documents for item in each.meta.items()]
    columns: list[Any] = [
        _strings([row.id for row in rows]),
        _strings([row.source for row in rows]),
        _integers([row.number for row in rows], pa.int64()),
        pa.MapArray.from_arrays(
            _integers(list(accumulate((len(each.meta) for each in documents), initial=0)), pa.int32()),
            _strings([name for name, _ in items]),
            _strings([value for _, value in items]),
        ),
        _bodies([each.body if each.tokens is None else None for each in documents], pa.large_string()),
        _bodies([None if each.tokens is None else each.body for each in documents], pa.large_binary()),
        _integers([each.tokens for each in documents], pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _strings(values: Sequence[str]) -> Any:
    return _bodies([value.encode() for value in values], pa.string())


def _bodies(values: Sequence[bytes | None], type_: Any) -> Any:
    known = [value for value in values if value is not None]
    ends = list(accumulate((len(value or b"") for value in values), initial=0))
    offsets = np.array(ends, np.int32 if type_ == pa.string() else np.int64)
    buffers: list[Any] = [_present(values), pa.py_buffer(offsets.data), pa.py_buffer(b"".join(known))]
    return pa.Array.from_buffers(type_, len(values), buffers)


def _integers(values: Sequence[int | None], type_: Any) -> Any:
    numbers = np.array([value or 0 for value in values], type_.to_pandas_dtype())
    return pa.Array.from_buffers(type_, len(values), [_present(values), pa.py_buffer(numbers.data)])


def _present(values: Sequence[object]) -> pa.Buffer:
    """Return a bitmap of the values that are not None."""
    present = np.array([value is not None for value in values], np.bool_)
    return pa.py_buffer(np.packbits(present, bitorder="little").tobytes())
