"""A Parquet file that has its name only once it is whole and durable."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from thresher.store.files import sync_directory


class Draft:
    """A Parquet file under its temporary name."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.bytes = 0  # that were put into it, as its writer counts them
        self._path = path
        self._schema = schema
        self._temporary = path.with_name(f"{path.name}.tmp")
        self._out = self._temporary.open("wb")
        self._parquet = pq.ParquetWriter(
            self._out,
            schema,
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            store_schema=False,  # it is stored last, when all is known that it is to tell
        )

    def write(self, table: pa.Table, size: int) -> None:
        """One more row group, of so many bytes."""
        try:
            self._parquet.write_table(table, row_group_size=max(table.num_rows, 1))
        except BaseException:
            self.abandon()
            raise
        self.bytes += size

    def seal(self, metadata: Mapping[str, str]) -> None:
        """Give it its name, once it is durable."""
        try:
            schema = self._schema.with_metadata(dict(metadata)).serialize()
            self._parquet.add_key_value_metadata({"ARROW:schema": b64encode(schema).decode()})
            self._parquet.close()
            self._out.flush()
            os.fsync(self._out.fileno())
            self._out.close()
            self._temporary.rename(self._path)
            sync_directory(self._path.parent)
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Delete it."""
        with suppress(Exception):  # of a full disk, once more
            self._parquet.close()
        with suppress(OSError):
            self._out.close()
        self._temporary.unlink(missing_ok=True)
