"""Layout of imported documents: Parquet files in DIR/imports.

Files of documents (`000001.parquet`) hold imported corpora unchanged, a row for each document, with text or with
tokens as `token_lines` writes them. Files of pages (`pages-000001.parquet`) hold pages of other crawlers in the
columns of the table of documents, which they extend.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, field

from thresher.errors import DataError
from thresher.files.durable_files import TEMPORARY
from thresher.store.atomic_parquet import AtomicParquet
from thresher.store.checked_files import decoded_json
from thresher.store.partition import CorpusError
from thresher.store.schemas import DOCS, aligned

FOLDER = "imports"
PAGES_NAMING = re.compile(r"pages-(\d{6,})\.parquet")
NAMING = re.compile(r"(\d{6,})\.parquet")
UNFINISHED = re.compile(f"(?:{PAGES_NAMING.pattern}|{NAMING.pattern}){TEMPORARY}")


class ImportFile(Struct, frozen=True):
    """A Parquet file of imported documents."""

    path: Path
    format: str
    attributes: tuple[str, ...]  # of the tokens; empty if there is text only
    language: str
    sha256: tuple[str, ...]  # of the input files
    bytes: tuple[int, ...]
    rows: int
    gaps: tuple[int, ...] = ()  # places of documents that were erased

    def places(self) -> Iterator[int]:
        """Yield for each row its place when the file was new, which identifies the document for good."""
        gone = set(self.gaps)
        return (place for place in range(self.rows + len(gone)) if place not in gone)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches that fit into memory; the file is opened for the first one."""
        wanted = None if columns is None else list(columns)
        try:
            with pq.ParquetFile(self.path) as file:
                for group in range(file.num_row_groups):
                    yield from file.iter_batches(row_groups=[group], columns=wanted)
        except (pa.ArrowException, OSError) as fault:
            raise CorpusError(f"{self.path} cannot be read: {fault}; restore it") from fault


class ImportedDocument(Struct, frozen=True):
    """A document as it was imported, one row of a file."""

    id: str
    source: str  # file name
    number: int  # in that file
    meta: dict[str, str]
    text: str | None  # paragraphs, separated by line feeds; None if there are tokens
    tokens: bytes | None  # in the form of token_lines; None if there is text
    count: int | None  # of tokens


def files(directory: Path) -> list[ImportFile]:
    """Return the files of imported documents of a corpus, in the order of importing."""
    named = [
        (match, path) for path in (directory / FOLDER).glob("*") if (match := NAMING.fullmatch(path.name))
    ]
    return [describe_file(path) for _, path in sorted(named, key=lambda item: int(item[0][1]))]


def documents(directory: Path) -> Iterator[ImportedDocument]:
    """Yield every imported document of a corpus."""
    for file in files(directory):
        for batch in file.batches():
            for row in batch.to_pylist():
                yield ImportedDocument(**{**row, "meta": dict(row["meta"])})


def describe_file(path: Path) -> ImportFile:
    """Return the description of a file of imported documents from its metadata."""
    try:
        with pq.ParquetFile(path) as file:
            known: dict[bytes, bytes] = file.schema_arrow.metadata or {}
            described_as = {
                key.decode().removeprefix("thresher."): value.decode() for key, value in known.items()
            }
            return ImportFile(
                path,
                described_as["format"],
                tuple(filter(None, described_as["attributes"].split(","))),
                described_as["language"],
                tuple(described_as["sha256"].split(",")),
                tuple(map(int, described_as["bytes"].split(","))),
                file.metadata.num_rows,
                tuple(map(int, filter(None, described_as.get("gaps", "").split(",")))),
            )
    except (pa.ArrowException, OSError, KeyError, ValueError) as fault:
        raise CorpusError(
            f"{path} is damaged or not a file of imports ({fault}); restore or delete it"
        ) from fault


def rewrite_without(file: ImportFile, gone: Callable[[Any, dict[Any, Any]], bool]) -> int:
    """Rewrite a file without the documents for which `gone`, given id and metadata, is true; return their number.

    The new file replaces the old one atomically. A file without documents stays, so that its input is known.
    """
    places, gaps = file.places(), list(file.gaps)
    with pq.ParquetFile(file.path) as old:
        schema = old.schema_arrow
    known: dict[bytes, bytes] = schema.metadata or {}
    draft = AtomicParquet(file.path, schema)
    try:
        for batch in file.batches():
            ids, metas = (batch.column(name).to_pylist() for name in ("id", "meta"))
            leaves = [gone(id, dict(meta or ())) for id, meta in zip(ids, metas, strict=True)]
            gaps += [place for place, left in zip(islice(places, len(leaves)), leaves, strict=True) if left]
            kept = batch.filter(pa.array([not left for left in leaves], pa.bool_()))
            if kept.num_rows:
                draft.write(pa.Table.from_batches([kept]), kept.nbytes)
        if len(gaps) == len(file.gaps):
            draft.abandon()
            return 0
        metadata = {name.decode(): value.decode() for name, value in known.items()}
        draft.seal({**metadata, "thresher.gaps": ",".join(map(str, sorted(gaps)))})
    except BaseException:
        draft.abandon()
        raise
    return len(gaps) - len(file.gaps)


class PageFileStats(Struct):
    """Counts of an import of archives and saved pages."""

    records: int = 0  # of archives, or saved pages
    pages: int = 0  # records that are replies of servers or texts, and saved pages
    kept: int = 0
    rejected: dict[str, int] = field(default_factory=dict)  # pages, by reason
    revisits: int = 0  # records that refer to an earlier copy of a page
    others: int = 0  # requests, metadata and other records
    damaged: int = 0  # records that are cut off or make no sense
    bytes_skipped: int = 0  # that belong to no record

    def reject(self, reason: str) -> None:
        """Count a page that is not kept."""
        self.rejected[reason] = self.rejected.get(reason, 0) + 1

    def add(self, other: PageFileStats) -> None:
        """Add the counts of another import."""
        for name in ("records", "pages", "kept", "revisits", "others", "damaged", "bytes_skipped"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, count in other.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + count


class PageFile(Struct, frozen=True):
    """A Parquet file of imported pages."""

    path: Path
    sha256: str  # of the archive, or of the digests of all saved pages
    bytes: int  # of the archive, or of all saved pages
    figures: PageFileStats


def page_paths(directory: Path) -> list[Path]:
    """Return the files of imported pages of a corpus, in the order of importing."""
    named = [
        (int(match[1]), path)
        for path in (directory / FOLDER).glob("*")
        if (match := PAGES_NAMING.fullmatch(path.name))
    ]
    return [path for _, path in sorted(named)]


def described(path: Path) -> PageFile:
    """Return the description that a file of imported pages has in its metadata."""
    try:
        known: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
        described_as = {key.decode().removeprefix("thresher."): value for key, value in known.items()}
        return PageFile(
            path,
            described_as["sha256"].decode(),
            int(described_as["bytes"]),
            decoded_json(described_as["figures"], PageFileStats, path),
        )
    except (pa.ArrowException, OSError, KeyError, ValueError, DataError) as fault:
        raise DataError(
            f"{path} is damaged or not a file of imports ({fault}); restore or delete it"
        ) from fault


def page_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the pages of a file in batches that fit into memory."""
    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield from file.iter_batches(
                    row_groups=[group], columns=None if columns is None else list(columns)
                )
    except (pa.ArrowException, OSError) as fault:
        raise DataError(f"{path} cannot be read: {fault}; restore it") from fault


def rewrite_pages_without(path: Path, gone: Callable[[str], bool]) -> int:
    """Rewrite a file without the pages for whose URL `gone` is true; return their number.

    The new file replaces the old one atomically. A file without pages stays, so that its archive is known.
    """
    count = 0
    known: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    draft = AtomicParquet(path, DOCS)
    try:
        for batch in page_batches(path):
            batch = aligned(batch, DOCS)  # noqa: PLW2901
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
