"""A corpus as its readers see it: tables, documents and raw pages, also while a crawl is writing them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from thresher import config as configuration
from thresher.page import Block, LanguageShare, Reply
from thresher.store import parts, shards, warc
from thresher.store.archives.replies import stored_reply
from thresher.store.figures import OF_A_SHARD, merged
from thresher.store.interleaving import interleaved
from thresher.store.pages import page_paths
from thresher.store.parts import CorpusError, TableFile
from thresher.store.tables import DOCS, SCHEMAS

__all__ = ["Corpus", "CorpusError", "Document", "documents", "of_part", "open", "paragraphs"]

# Rows of a sealed segment that are in memory at once: documents are long, links and outcomes are short.
BATCH_ROWS = {"docs": 512}
MANY_ROWS = 1 << 16
FEW_ROWS = 1 << 10  # at least, of each of many shards
NUMBER = "seq"  # column of outcomes that tells their order
ARCHIVES = "archives"  # folder of a corpus in which archives are looked for that are not where they were

T = TypeVar("T")

_RECORDS: dict[str, Callable[..., Any]] = {"languages": LanguageShare, "paragraphs": Block}


class Document(Struct, frozen=True):
    """A kept page: one row of the table of documents."""

    url: str
    host: str
    domain: str
    fetched: datetime | None  # None of a page whose archive does not tell
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


def open(directory: str | os.PathLike[str]) -> Corpus:
    """The corpus in a directory.

    >>> open("no-such-corpus")
    Traceback (most recent call last):
    ...
    thresher.store.parts.CorpusError: no-such-corpus is no directory; `thresher crawl` makes a corpus
    """
    path = Path(directory)
    if not path.is_dir():
        raise CorpusError(f"{path} is no directory; `thresher crawl` makes a corpus")
    try:
        return Corpus(path, configuration.load(path))
    except configuration.ConfigError as fault:
        raise CorpusError(str(fault)) from None


def of_part(part: Path, config: configuration.Config) -> Corpus:
    """What one shard of a crawl has in its folder; the folder of a crawl without shards is that of all."""
    return Corpus(part, replace(config, shards=configuration.Shards()))


class Corpus:
    """Everything that was committed to a corpus. Each call sees the newest commit, and only whole ones.

    A corpus of several shards is that of each, as of its newest commit. Rows come in the order of the numbers of
    their files, which is near that of fetching; outcomes in that of their own numbers.
    """

    has_imports = True  # texts and tokens that were imported are documents, too

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
        found = self._segments(table, schema)
        if table == "docs" and imported:
            others = [
                parts.sealed_batches(path, schema.names, _rows(table)) for path in page_paths(self.directory)
            ]
            found = chain(found, chain.from_iterable(others))
        return (aligned(batch, schema) for batch in found)

    def files(self, table: str) -> list[TableFile]:
        """The files of a table as of the newest commit, in order."""
        found = self._looked(
            lambda folders: [file for part in folders for file in parts.table_files(part, table)]
        )
        imported = page_paths(self.directory) if table == "docs" else []
        return [*sorted(found, key=_number), *(TableFile(path, None) for path in imported)]

    def __iter__(self) -> Iterator[Document]:
        for batch in self.batches("docs"):
            yield from documents(batch)

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self.batches("docs", ["seq"]))

    def stats(self) -> dict[str, Any]:
        """The figures of the last commit."""
        told = dict(self._looked(self._told))
        if not any(told.values()):
            raise CorpusError(
                f"{self.directory} has no figures yet; `thresher crawl {self.directory}` makes them"
            )
        count = self.config.shards.count
        status = (
            merged([told.get(number) for number in range(count)], self.config.budget)
            if count
            else told[0] or {}
        )
        return {name: figure for name, figure in status.items() if name not in OF_A_SHARD}

    def _told(self, folders: list[Path]) -> list[tuple[int, dict[str, Any] | None]]:
        """What each shard says of itself, with its number."""
        return [(shards.shard_of(part, self.config).number, parts.status(part)) for part in folders]

    def raw(self, document: Document) -> Reply:
        """The reply that a document was made of, as the server sent it."""
        return self.reply(document.url, document.warc_file, document.warc_offset, document.fetched)

    def reply(self, url: str, file: str | None, offset: int | None, fetched: datetime | None) -> Reply:
        """The reply to the request of a URL, as the server sent it, by where it is said to stand."""
        if file is not None and Path(file).is_absolute():
            return self._archived(url, Path(file), offset, fetched)
        if file is None or offset is None:
            raise CorpusError(f'the raw page of {url} was not kept; crawl with keep_raw = "kept" or "all"')
        path = self.warc_path(file)
        try:
            return shards.followed(path, lambda path: warc.read_record(path, offset))
        except FileNotFoundError:
            raise CorpusError(f"{path} is missing; restore it to read the raw page of {url}") from None

    def warc_path(self, file: str) -> Path:
        """Where a WARC file that a table names is, by now: its number tells whose it is."""
        name = Path(file).name
        count, match = self.config.shards.count, warc.NAMING.fullmatch(name)
        if not count or not match:
            return self.directory / "warc" / name
        home = shards.home(self.directory, (int(match[1]) - 1) % count)
        return (shards.newest(home) or home) / "warc" / name

    def _archived(self, url: str, path: Path, offset: int | None, fetched: datetime | None) -> Reply:
        """The reply of an imported page, from the archive it came with."""
        at_home = self.directory / ARCHIVES / path.name
        limit = self.config.fetch.max_body_bytes
        moment = fetched.timestamp() if fetched else 0.0
        try:
            return stored_reply(path if path.exists() else at_home, offset, url, moment, limit)
        except OSError as fault:
            raise CorpusError(
                f"{path} cannot be read ({fault.strerror}); to read the raw page of {url}, restore it, or put it "
                f"into {at_home.parent}"
            ) from None

    def _table(self, name: str, columns: Sequence[str] | None) -> pa.Table:
        return pa.Table.from_batches(self.batches(name, columns), _selection(name, columns))

    def _segments(self, table: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The batches of a table as of one commit of each part."""
        in_order = table == "outcomes" and self.config.shards.count > 1
        columns = list(dict.fromkeys([*schema.names, NUMBER])) if in_order else schema.names
        rows = max(_rows(table) // self.config.shards.count, FEW_ROWS) if in_order else _rows(table)

        def opened(folders: list[Path]) -> list[list[tuple[TableFile, Iterator[pa.RecordBatch]]]]:
            files = [parts.table_files(part, table) for part in folders]
            return [[(file, parts.segment(file, columns, rows)) for file in of_part] for of_part in files]

        found = self._looked(opened)
        if in_order:
            whole = _selection(table, columns)
            streams = [
                (aligned(batch, whole) for _, segment in of_part for batch in segment) for of_part in found
            ]
            return interleaved(streams, NUMBER)
        everything = sorted(chain.from_iterable(found), key=lambda one: _number(one[0]))
        return (batch for _, segment in everything for batch in segment)

    def _looked(self, look: Callable[[list[Path]], T]) -> T:
        """What is found in all parts; a segment may be sealed, and an epoch be over, while it is looked for."""
        try:
            return shards.looked(self.directory, self.config, look)
        except PermissionError as error:
            raise CorpusError(f"{error.filename or error} may not be read; ask its owner") from None
        except FileNotFoundError as error:
            missing = error.filename or error
        raise CorpusError(f"{missing} is missing, but was committed; restore it")


def _number(file: TableFile) -> int:
    return file.number


def _rows(table: str) -> int:
    return BATCH_ROWS.get(table, MANY_ROWS)


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
