"""Pages that others fetched, brought into a corpus: Parquet files in DIR/imports with the columns of documents.

They stand beside crawled pages in the table of documents. An archive has a file of its own, which tells what was in
the archive; saved pages that come together share one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, field

from thresher.store.drafts import Draft
from thresher.store.files import StoreError
from thresher.store.segments import column_array
from thresher.store.tables import DOCS

FOLDER = "imports"
NAMING = re.compile(r"pages-(\d{6,})\.parquet")
TEMPORARY = re.compile(NAMING.pattern + r"\.tmp")
ROW_GROUP_BYTES = 16 << 20  # of text and paragraphs: what a reader holds at once
ROW_BYTES = 2_000  # that a row takes in memory besides these
_TEXT = DOCS.names.index("text")
_PARAGRAPHS = DOCS.names.index("paragraphs")


class Figures(Struct):
    """What was in archives and among saved pages, and what came of it."""

    records: int = 0  # of archives, or saved pages
    pages: int = 0  # of these, replies of servers, texts and saved pages
    kept: int = 0
    rejected: dict[str, int] = field(default_factory=dict)  # pages, by reason
    revisits: int = 0  # records that only say that a page was as before
    others: int = 0  # requests, metadata, and so on
    damaged: int = 0  # records that are cut off or make no sense
    bytes_skipped: int = 0  # in which there was no record

    def reject(self, reason: str) -> None:
        """One more page is not kept."""
        self.rejected[reason] = self.rejected.get(reason, 0) + 1

    def add(self, other: Figures) -> None:
        """Count what another counted."""
        for name in ("records", "pages", "kept", "revisits", "others", "damaged", "bytes_skipped"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, count in other.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + count


class PageFile(Struct, frozen=True):
    """A Parquet file of imported pages."""

    path: Path
    sha256: str  # of the archive, or of the digests of all saved pages
    bytes: int  # of the archive, or of all saved pages
    figures: Figures


def page_paths(directory: Path) -> list[Path]:
    """The files of imported pages in a corpus, in the order of importing."""
    named = [
        (int(match[1]), path)
        for path in (directory / FOLDER).glob("*")
        if (match := NAMING.fullmatch(path.name))
    ]
    return [path for _, path in sorted(named)]


def described(path: Path) -> PageFile:
    """What a file of imported pages tells of itself."""
    try:
        known: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
        told = {key.decode().removeprefix("thresher."): value for key, value in known.items()}
        return PageFile(
            path,
            told["sha256"].decode(),
            int(told["bytes"]),
            msgspec.json.decode(told["figures"], type=Figures),
        )
    except (pa.ArrowException, OSError, KeyError, ValueError) as fault:
        raise StoreError(
            f"{path} is no import of ours, or damaged ({fault}); restore or delete it"
        ) from fault


class PageWriter:
    """The pages of one input; nothing of them is there before it is sealed."""

    def __init__(self, folder: Path) -> None:
        numbers = [int(match[1]) for path in folder.iterdir() if (match := NAMING.fullmatch(path.name))]
        self.path = folder / f"pages-{max(numbers, default=0) + 1:06d}.parquet"
        self._draft = Draft(self.path, DOCS)
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, row: tuple[Any, ...]) -> None:
        """One more page: a row of DOCS."""
        self._rows.append(row)
        self._bytes += ROW_BYTES + len(row[_TEXT]) + sum(len(block.text) for block in row[_PARAGRAPHS])
        if self._bytes >= ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        columns = list(zip(*self._rows, strict=True)) if self._rows else [()] * len(DOCS.names)
        arrays = [column_array(values, kind.type) for values, kind in zip(columns, DOCS, strict=True)]
        self._draft.write(pa.Table.from_arrays(arrays, schema=DOCS), self._bytes)
        self._rows, self._bytes = [], 0

    def seal(self, told: Mapping[str, str]) -> Path:
        """Make it durable, with what is to be known of its input."""
        if self._rows:
            self._write()
        self._draft.seal({f"thresher.{name}": value for name, value in told.items()})
        return self.path

    def abandon(self) -> None:
        """Leave nothing of it."""
        self._draft.abandon()


def batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The pages of a file, in portions that fit into memory."""
    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield from file.iter_batches(
                    row_groups=[group], columns=None if columns is None else list(columns)
                )
    except (pa.ArrowException, OSError) as fault:
        raise StoreError(f"{path} cannot be read: {fault}; restore it") from fault


def rewrite_without(path: Path, gone: Callable[[str], bool]) -> int:
    """Write a file anew without the pages of some URLs; how many there were.

    The new file takes the place of the old one at once; one without pages stays, so that its archive is known.
    """
    count = 0
    known: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    draft = Draft(path, DOCS)
    try:
        for batch in batches(path):
            leaves = [gone(url or "") for url in batch.column("url").to_pylist()]
            count += sum(leaves)
            kept = batch.filter(pa.array([not left for left in leaves], pa.bool_()))
            if kept.num_rows:
                draft.write(pa.Table.from_batches([kept]), kept.nbytes)
        if not count:
            draft.abandon()
            return 0
        draft.seal({name.decode(): value.decode() for name, value in known.items()})
    except BaseException:
        draft.abandon()
        raise
    return count
