"""A corpus as its readers see it: tables, documents and raw pages, also while a crawl is writing them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from thresher import config as configuration
from thresher.page import Block, LanguageShare, Reply
from thresher.store import warc
from thresher.store.archives.replies import stored_reply
from thresher.store.files import StoreError, numbered
from thresher.store.pages import page_paths
from thresher.store.segments import naming_of, read_stream, segment_path
from thresher.store.tables import DOCS, SCHEMAS

__all__ = ["Corpus", "CorpusError", "Document", "documents", "open", "paragraphs"]

# Rows of a sealed segment that are in memory at once: documents are long, links and outcomes are short.
BATCH_ROWS = {"docs": 512, "pages": 512}
MANY_ROWS = 1 << 16
ARCHIVES = "archives"  # folder of a corpus in which archives are looked for that are not where they were
LOOKS = 10  # a segment may be sealed between the reading of status.json and the opening of its stream


class CorpusError(StoreError):
    """A corpus cannot be opened or read; the message names it and the cure."""


_RECORDS: dict[str, Callable[..., Any]] = {"languages": LanguageShare, "paragraphs": Block}


class Document(Struct, frozen=True):
    """A kept page: one row of the table of documents."""

    url: str
    host: str
    domain: str
    fetched: datetime
    status: int
    charset_declared: str
    charset: str
    language: str
    language_share: float
    language_bytes: int
    languages: tuple[LanguageShare, ...]
    badness: float | None
    title: str
    text: str
    paragraphs: tuple[Block, ...]
    html_bytes: int
    text_bytes: int
    text_hash: str
    license: str
    opt_out: tuple[str, ...]
    warc_file: str | None
    warc_offset: int | None
    raw_hash: str
    depth: int
    seq: int
    author: str | None  # of corpora made before these were read, all are None
    published: str | None
    modified: str | None
    site_name: str | None
    language_declared: str | None
    suspicion: float | None


class TableFile(NamedTuple):
    """A file of a table: a stream of so many bytes, or, without a length, one that is sealed and never changes."""

    path: Path
    length: int | None


def open(directory: str | os.PathLike[str]) -> Corpus:
    """The corpus in a directory.

    >>> open("no-such-corpus")
    Traceback (most recent call last):
    ...
    thresher.store.corpus.CorpusError: no-such-corpus is no directory; `thresher crawl` makes a corpus
    """
    path = Path(directory)
    if not path.is_dir():
        raise CorpusError(f"{path} is no directory; `thresher crawl` makes a corpus")
    try:
        return Corpus(path, configuration.load(path))
    except configuration.ConfigError as fault:
        raise CorpusError(str(fault)) from None


class Corpus:
    """Everything that was committed to a corpus. Each call sees the newest commit, and only whole ones."""

    def __init__(self, directory: Path, config: configuration.Config) -> None:
        self.directory = directory
        self.config = config

    def docs(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The kept documents: crawled pages, then those of archives that were imported."""
        return self._table("docs", columns)

    def outcomes(self, columns: Sequence[str] | None = None) -> pa.Table:
        """What became of each URL, in the order of fetching."""
        return self._table("outcomes", columns)

    def links(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The links between pages."""
        return self._table("links", columns)

    def batches(
        self, table: str, columns: Sequence[str] | None = None, *, imported: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """A table ("docs", "links", "outcomes") as of now, in portions that fit into memory.

        Without `imported`, documents are those that were crawled, each of which has an outcome.
        """
        schema = _selection(table, columns)
        segments = self._segments(table, schema.names)
        if table == "docs" and imported:
            segments += [_read_parquet(path, schema.names) for path in page_paths(self.directory)]
        return (aligned(batch, schema) for segment in segments for batch in segment)

    def files(self, table: str) -> list[TableFile]:
        """The files of a table as of the newest commit, in order."""
        folder = self.directory / table
        status = self._status()
        if status is None:
            naming = naming_of(table)
            there = {path.name: path for path in folder.glob("*") if naming.fullmatch(path.name)}
            found: dict[str, int | None] = {
                name: None if name.endswith(".parquet") else path.stat().st_size
                for name, path in there.items()
                if not name.endswith(".tmp") and f"{path.stem}.parquet" not in there.keys() - {name}
            }
        else:
            known: dict[str, int | None] = status["files"]
            prefix = f"{table}/"
            found = {name[len(prefix) :]: length for name, length in known.items() if name.startswith(prefix)}
        segments = [
            TableFile(segment_path(folder, number, "parquet" if length is None else "arrows"), length)
            for number, length in numbered(found, naming_of(table))
        ]
        imported = page_paths(self.directory) if table == "docs" else []
        return [*segments, *(TableFile(path, None) for path in imported)]

    def __iter__(self) -> Iterator[Document]:
        for batch in self.batches("docs"):
            yield from documents(batch)

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self.batches("docs", ["seq"]))

    def stats(self) -> dict[str, Any]:
        """The figures of the last commit."""
        status = self._status()
        if status is None:
            raise CorpusError(
                f"{self.directory} has no figures yet; `thresher crawl {self.directory}` makes them"
            )
        return {name: figure for name, figure in status.items() if name != "files"}

    def raw(self, document: Document) -> Reply:
        """The reply that a document was made of, as the server sent it."""
        return self.reply(document.url, document.warc_file, document.warc_offset, document.fetched)

    def reply(self, url: str, file: str | None, offset: int | None, fetched: datetime) -> Reply:
        """The reply to the request of a URL, as the server sent it, by where it is said to stand."""
        if file is not None and Path(file).is_absolute():
            return self._archived(url, Path(file), offset, fetched)
        if file is None or offset is None:
            raise CorpusError(f'the raw page of {url} was not kept; crawl with keep_raw = "kept" or "all"')
        path = self.directory / "warc" / Path(file).name
        try:
            return warc.read_record(path, offset)
        except FileNotFoundError:
            raise CorpusError(f"{path} is missing; restore it to read the raw page of {url}") from None

    def _archived(self, url: str, path: Path, offset: int | None, fetched: datetime) -> Reply:
        """The reply of an imported page, from the archive it came with."""
        at_home = self.directory / ARCHIVES / path.name
        limit = self.config.fetch.max_body_bytes
        try:
            return stored_reply(path if path.exists() else at_home, offset, url, fetched.timestamp(), limit)
        except OSError as fault:
            raise CorpusError(
                f"{path} cannot be read ({fault.strerror}); to read the raw page of {url}, restore it, or put it "
                f"into {at_home.parent}"
            ) from None

    def _table(self, name: str, columns: Sequence[str] | None) -> pa.Table:
        return pa.Table.from_batches(self.batches(name, columns), _selection(name, columns))

    def _status(self) -> dict[str, Any] | None:
        """status.json, or None if there is none that can be read."""
        try:
            status = msgspec.json.decode((self.directory / "status.json").read_bytes(), type=dict[str, Any])
            msgspec.convert(status.get("files"), dict[str, int | None])
        except (OSError, msgspec.DecodeError):
            return None
        return status

    def _segments(self, table: str, columns: Sequence[str]) -> list[Iterator[pa.RecordBatch]]:
        """The segments of a table as of one commit, in order."""
        for _ in range(LOOKS):
            status = self._status()
            try:
                if status is None:
                    return _found_segments(self.directory / table, columns)
                return _committed_segments(self.directory / table, status["files"], columns)
            except FileNotFoundError as error:
                missing = error.filename or error
            except PermissionError as error:
                raise CorpusError(f"{error.filename or error} may not be read; ask its owner") from None
        raise CorpusError(f"{missing} is missing, but was committed; restore it")


def _committed_segments(
    directory: Path, files: Mapping[str, int | None], columns: Sequence[str]
) -> list[Iterator[pa.RecordBatch]]:
    """What a commit says there is; streams are opened at once, for the crawl may soon delete them."""
    prefix = f"{directory.name}/"
    ours = {path[len(prefix) :]: length for path, length in files.items() if path.startswith(prefix)}
    segments = []
    for number, length in numbered(ours, naming_of(directory.name)):
        if length is None:
            segments.append(_read_parquet(segment_path(directory, number, "parquet"), columns))
        else:
            segments.append(read_stream(segment_path(directory, number, "arrows"), length, columns))
    return segments


def _found_segments(directory: Path, columns: Sequence[str]) -> list[Iterator[pa.RecordBatch]]:
    """What there is when no commit can tell: sealed segments, and the whole batches of other streams."""
    naming = naming_of(directory.name)
    names = [match for path in directory.glob("*") if (match := naming.fullmatch(path.name))]
    sealed = {int(match[1]) for match in names if match[2] == "parquet"}
    streams = {int(match[1]) for match in names if match[2] == "arrows"} - sealed
    segments = []
    for number in sorted(sealed | streams):
        if number in sealed:
            segments.append(_read_parquet(segment_path(directory, number, "parquet"), columns))
        else:
            path = segment_path(directory, number, "arrows")
            segments.append(_whole(read_stream(path, path.stat().st_size, columns)))
    return segments


def _whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches before the first that is cut off."""
    with contextlib.suppress(StoreError):
        yield from batches


def _read_parquet(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches of a sealed segment. It never changes, so it is opened when its turn comes."""
    path.stat()
    return _parquet_batches(path, columns)


def _parquet_batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path) as file:
            present = [name for name in columns if name in file.schema_arrow.names]
            rows = BATCH_ROWS.get(path.name.partition("-")[0], MANY_ROWS)
            yield from file.iter_batches(rows, columns=present)
    except (pa.ArrowInvalid, OSError) as error:
        raise CorpusError(f"{path} cannot be read: {error}; restore it") from error


def _selection(table: str, columns: Sequence[str] | None) -> pa.Schema:
    """The schema of some columns of a table."""
    if table not in SCHEMAS:
        raise CorpusError(f"there is no table {table!r}; there are {', '.join(SCHEMAS)}")
    schema = SCHEMAS[table]
    if columns is None:
        return schema
    for name in columns:
        if name not in schema.names:
            raise CorpusError(f"{table} has no column {name!r}; it has {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in columns])


def aligned(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with just these columns; one that its segment did not have yet is null, and so is a field of one."""
    if batch.schema.equals(schema):
        return batch
    arrays = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def documents(batch: pa.RecordBatch) -> Iterator[Document]:
    """The rows of a batch of DOCS as records."""
    columns: dict[str, Sequence[Any]] = {}
    for name, column in zip(DOCS.names, batch.columns, strict=True):
        record = _RECORDS.get(name)
        columns[name] = column.to_pylist() if record is None else _record_lists(column, record)
    columns["opt_out"] = [tuple(reasons or ()) for reasons in columns["opt_out"]]
    return map(Document, *columns.values())


# C0 and C1 controls: they would break lines, tables and terminals.
_CONTROLS_TO_SPACE = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")


def paragraphs(text: str) -> list[str]:
    """The lines of a text that are not blank, spaces made single, without control characters.

    >>> paragraphs("One.\\n\\n Two\\x00 words. ")
    ['One.', 'Two words.']
    """
    lines = [line if line.isprintable() else line.translate(_CONTROLS_TO_SPACE) for line in text.splitlines()]
    return [" ".join(words) for line in lines if (words := line.split())]


def _record_lists(column: pa.Array[Any], record: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Lists of structs as tuples of records, field by field."""
    assert isinstance(column, pa.ListArray)
    structs = column.flatten()
    assert isinstance(structs, pa.StructArray)
    items = list(map(record, *(field.to_pylist() for field in structs.flatten())))
    bounds = accumulate(column.value_lengths().fill_null(0).to_pylist(), initial=0)
    return [tuple(items[start:end]) for start, end in pairwise(bounds)]
