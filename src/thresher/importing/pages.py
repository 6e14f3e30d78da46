"""The writer of imported pages: Parquet files in DIR/imports with the columns of documents.

They belong to the table of documents like crawled pages. An archive has a file of its own, with counts of its
records; saved pages that are imported together share a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from thresher.store.atomic_parquet import AtomicParquet
from thresher.store.imported_files import PAGES_NAMING
from thresher.store.schemas import DOCS
from thresher.store.table_segments import column_array

ROW_GROUP_BYTES = 16 << 20  # of text and paragraphs, which a reader holds in memory at once
ROW_BYTES = 2_000  # of memory that a row takes besides
_TEXT = DOCS.names.index("text")
_PARAGRAPHS = DOCS.names.index("paragraphs")


class PageWriter:
    """A writer of the pages of one input; none of them exists in the corpus before `seal`."""

    def __init__(self, folder: Path) -> None:
        numbers = [int(match[1]) for path in folder.iterdir() if (match := PAGES_NAMING.fullmatch(path.name))]
        self.path = folder / f"pages-{max(numbers, default=0) + 1:06d}.parquet"
        self._draft = AtomicParquet(self.path, DOCS)
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, row: tuple[Any, ...]) -> None:
        """Add a page, as a row of DOCS."""
        self._rows.append(row)
        self._bytes += ROW_BYTES + len(row[_TEXT]) + sum(len(block.text) for block in row[_PARAGRAPHS])
        if self._bytes >= ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        columns = list(zip(*self._rows, strict=True)) if self._rows else [()] * len(DOCS.names)
        arrays = [column_array(values, kind.type) for values, kind in zip(columns, DOCS, strict=True)]
        self._draft.write(pa.Table.from_arrays(arrays, schema=DOCS), self._bytes)
        self._rows, self._bytes = [], 0

    def seal(self, facts: Mapping[str, str]) -> Path:
        """Make the file durable, with facts about its input as metadata, and return its path."""
        if self._rows:
            self._write()
        self._draft.seal({f"thresher.{name}": value for name, value in facts.items()})
        return self.path

    def abandon(self) -> None:
        """Remove the file."""
        self._draft.abandon()
