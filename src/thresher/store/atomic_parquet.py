"""A Parquet file that gets its name when it is whole and durable."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from thresher.files.durable_files import Replacement


class AtomicParquet:
    """A Parquet file under a temporary name until it is sealed."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.bytes = 0  # written so far, as the caller counts them
        self._schema = schema
        self._replacement = Replacement(path)
        try:
            self._parquet = pq.ParquetWriter(
                self._replacement.file,
                schema,
                compression="zstd",
                use_dictionary=False,
                write_statistics=False,
                store_schema=False,  # stored by `seal`, with metadata that are known only at the end
            )
        except BaseException:
            self._replacement.discard()
            raise

    def write(self, table: pa.Table, size: int) -> None:
        """Write a row group of `size` bytes."""
        try:
            self._parquet.write_table(table, row_group_size=max(table.num_rows, 1))
        except BaseException:
            self.abandon()
            raise
        self.bytes += size

    def seal(self, metadata: Mapping[str, str]) -> None:
        """Add metadata to the schema, make the file durable and give it its name."""
        try:
            schema = self._schema.with_metadata(dict(metadata)).serialize()
            self._parquet.add_key_value_metadata({"ARROW:schema": b64encode(schema).decode()})
            self._parquet.close()
            self._replacement.commit()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Delete the file."""
        with suppress(Exception):  # closing writes, and the disk may be full
            self._parquet.close()
        self._replacement.discard()
