"""Reading a corpus: tables, documents and raw pages, also while a crawl is writing them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from msgspec import Struct

from thresher import config as configuration
from thresher.errors import DataError, UsageError
from thresher.files.durable_files import replace
from thresher.records import Block, LanguageShare, Reply
from thresher.store import partition, shard_layout, warc
from thresher.store.archives.replies import stored_reply
from thresher.store.imported_files import page_paths
from thresher.store.partition import CorpusError, TableFile, interleaved
from thresher.store.schemas import DOCS, SCHEMAS, aligned
from thresher.store.status_totals import OF_A_SHARD, merged

__all__ = [
    "CorpusError",
    "CorpusFiles",
    "Document",
    "check_output",
    "check_output_file",
    "documents",
    "of_part",
    "open",
    "paragraphs",
    "selected_schema",
    "upgrade",
]

# Rows of a sealed segment in memory at once: documents are long, links and outcomes are short.
BATCH_ROWS = {"docs": 512}
MANY_ROWS = 1 << 16
FEW_ROWS = 1 << 10  # at least, for each of many shards
NUMBER = "seq"  # column by which outcomes are ordered
ARCHIVES = "archives"  # folder of a corpus for imported archives that were moved

# Files and folders in the directory of a corpus, which are Thresher's own.
OWN_NAMES = frozenset(
    [
        *("corpus.toml", "seeds.txt", "forgotten.jsonl", "status.json", "lock", "warc", "docs", "links"),
        *("outcomes", "state", "imports", "archives", "index", "runs", "logs", "shards", "subcorpora"),
    ]
)

_SCHEMA_LINE = re.compile(rb"^([ \t]*schema[ \t]*=[ \t]*)\d+", re.MULTILINE)

T = TypeVar("T")

_RECORDS: dict[str, Callable[..., Any]] = {"languages": LanguageShare, "paragraphs": Block}


class Document(Struct, frozen=True):
    """A kept page: one row of the table of documents."""

    url: str
    host: str
    domain: str
    fetched: datetime | None  # None: the archive of the page does not say
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
    license: str | None
    opt_out: tuple[str, ...]
    warc_file: str | None
    warc_offset: int | None
    raw_hash: str
    depth: int
    seq: int
    author: str | None  # None: unknown, as for the fields below
    published: date | None
    modified: date | None
    site_name: str | None
    language_declared: str | None
    suspicion: float | None


def open(directory: str | os.PathLike[str]) -> CorpusFiles:
    """Open the corpus in a directory.

    >>> open("no-such-corpus")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    thresher.errors.NoCorpusError: no-such-corpus does not exist; make a corpus: thresher crawl no-such-corpus ...
    """
    path = Path(directory)
    return CorpusFiles(path, configuration.load(path))


def upgrade(directory: Path) -> None:
    """Write the current schema into corpus.toml, before data of that schema are written; keep all other bytes.

    Older versions, which could not read such data, refuse the corpus from then on.
    """
    if configuration.load(directory).schema < configuration.SCHEMA:
        path = directory / "corpus.toml"
        replace(path, _SCHEMA_LINE.sub(rb"\g<1>%d" % configuration.SCHEMA, path.read_bytes(), count=1))


def of_part(part: Path, config: configuration.Config) -> CorpusFiles:
    """Return the corpus of one shard, which is in its folder; a crawl without shards has one folder."""
    return CorpusFiles(part, msgspec.structs.replace(config, shards=configuration.ShardSettings()))


def check_output(path: Path) -> None:
    """Raise UsageError if a file or folder that a user names for output is a file or folder of a corpus itself."""
    if str(path) == "-":
        raise UsageError("'-' is not a file; name one, or /dev/stdout for standard output")
    # With and without links: a folder of a corpus may be a link to another disk.
    for place in (Path(os.path.abspath(path)), path.resolve()):  # noqa: PTH100 - absolute() keeps ".."
        for directory in place.parents:
            own = place.relative_to(directory).parts[0]
            if own in OWN_NAMES and (directory / "corpus.toml").exists():
                raise UsageError(
                    f"{path} cannot be written: {own} of the corpus {directory} would be damaged; "
                    "choose another name or folder for the output"
                )


def check_output_file(path: Path) -> None:
    """Raise UsageError if a file that a user names for output cannot be one, or is a file of a corpus itself."""
    check_output(path)
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file in it: {path}/NAME")
    if not path.parent.is_dir():
        raise UsageError(f"{path} cannot be written: {path.parent} is not a directory; create it first")


class CorpusFiles:
    """Everything that was committed to a corpus; each call sees the newest commit as a whole.

    A corpus in shards is the union of its shards, each as of its newest commit. Rows come in the order of the
    numbers of their files, which is close to the order of fetching, and outcomes in the order of their own numbers.
    """

    has_imports = True  # imported texts and tokens are documents of this corpus

    def __init__(self, directory: Path, config: configuration.Config) -> None:
        self.directory = directory
        self.config = config

    def documents(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the kept documents: crawled pages, then pages from imported archives."""
        return self._table("docs", columns)

    def outcomes(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the outcome of each URL, in the order of fetching."""
        return self._table("outcomes", columns)

    def links(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the links between pages."""
        return self._table("links", columns)

    def batches(
        self, table: str, columns: Sequence[str] | None = None, *, imported: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """Yield a table ("docs", "links", "outcomes") as of now, in batches that fit into memory.

        Without `imported`, only documents that were crawled, which have outcomes, are among them.
        """
        schema = selected_schema(table, columns)
        found = self._segments(table, schema)
        if table == "docs" and imported:
            others = [
                partition.sealed_batches(path, schema.names, _rows(table))
                for path in page_paths(self.directory)
            ]
            found = chain(found, chain.from_iterable(others))
        return (aligned(batch, schema) for batch in found)

    def files(self, table: str) -> list[TableFile]:
        """Return the files of a table as of the newest commit, in order."""
        found = self._looked(
            lambda folders: [file for part in folders for file in partition.table_files(part, table)]
        )
        imported = page_paths(self.directory) if table == "docs" else []
        return [*sorted(found, key=_number), *(TableFile(path, None) for path in imported)]

    def __iter__(self) -> Iterator[Document]:
        for batch in self.batches("docs"):
            yield from documents(batch)

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self.batches("docs", ["seq"]))

    def stats(self) -> dict[str, Any]:
        """Return the statistics of the crawl as of the last commit, as `thresher status --json` prints them."""
        statuses = dict(self._looked(self._statuses))
        if not any(statuses.values()):
            for part in shard_layout.parts(self.directory, self.config):
                if (path := part / "status.json").exists():
                    raise DataError(
                        f"{path} is damaged; restore it, or continue the crawl, which writes it again"
                    )
            raise CorpusError(
                f"{self.directory} has no statistics yet; a crawl makes them: thresher crawl {self.directory}"
            )
        count = self.config.shards.count
        status = (
            merged([statuses.get(number) for number in range(count)], self.config.budget)
            if count
            else statuses[0] or {}
        )
        return {name: value for name, value in status.items() if name not in OF_A_SHARD}

    def _statuses(self, folders: list[Path]) -> list[tuple[int, dict[str, Any] | None]]:
        """Return the status of each shard with its number."""
        return [(shard_layout.shard_of(part, self.config).number, partition.status(part)) for part in folders]

    def raw(self, document: Document) -> Reply:
        """Return the reply that a document was read from, as the server sent it."""
        return self.reply(document.url, document.warc_file, document.warc_offset, document.fetched)

    def reply(self, url: str, file: str | None, offset: int | None, fetched: datetime | None) -> Reply:
        """Return the reply for a URL, as the server sent it, from its place in a WARC file or an archive."""
        if file is not None and Path(file).is_absolute():
            return self._archived(url, Path(file), offset, fetched)
        if file is None or offset is None:
            raise CorpusError(f'the raw page of {url} was not kept; crawl with keep_raw = "kept" or "all"')
        path = self.warc_path(file)
        try:
            return shard_layout.followed(path, lambda path: warc.read_record(path, offset))
        except FileNotFoundError:
            raise CorpusError(f"{path} is missing; restore it to read the raw page of {url}") from None

    def warc_path(self, file: str) -> Path:
        """Return the present path of a WARC file that a table names; its number says which shard owns it."""
        name = Path(file).name
        count, match = self.config.shards.count, warc.NAMING.fullmatch(name)
        if not count or not match:
            return self.directory / "warc" / name
        home = shard_layout.home(self.directory, (int(match[1]) - 1) % count)
        return (shard_layout.newest(home) or home) / "warc" / name

    def _archived(self, url: str, path: Path, offset: int | None, fetched: datetime | None) -> Reply:
        """Return the reply of an imported page from its archive."""
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
        return pa.Table.from_batches(self.batches(name, columns), selected_schema(name, columns))

    def _segments(self, table: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Return the batches of a table as of one commit of each part."""
        in_order = table == "outcomes" and self.config.shards.count > 1
        columns = list(dict.fromkeys([*schema.names, NUMBER])) if in_order else schema.names
        rows = max(_rows(table) // self.config.shards.count, FEW_ROWS) if in_order else _rows(table)

        def opened(folders: list[Path]) -> list[list[tuple[TableFile, Iterator[pa.RecordBatch]]]]:
            files = [partition.table_files(part, table) for part in folders]
            return [[(file, partition.segment(file, columns, rows)) for file in of_part] for of_part in files]

        found = self._looked(opened)
        if in_order:
            whole = selected_schema(table, columns)
            streams = [
                (aligned(batch, whole) for _, segment in of_part for batch in segment) for of_part in found
            ]
            return interleaved(streams, NUMBER)
        everything = sorted(chain.from_iterable(found), key=lambda one: _number(one[0]))
        return (batch for _, segment in everything for batch in segment)

    def _looked(self, look: Callable[[list[Path]], T]) -> T:
        """Apply `look` to the folders of all parts; repeat it if a segment or an epoch is replaced meanwhile."""
        try:
            return shard_layout.looked(self.directory, self.config, look)
        except PermissionError as error:
            raise CorpusError(f"{error.filename or error} may not be read; ask its owner") from None
        except FileNotFoundError as error:
            missing = error.filename or error
        raise CorpusError(f"{missing} is missing, but was committed; restore it")


def _number(file: TableFile) -> int:
    return file.number


def _rows(table: str) -> int:
    return BATCH_ROWS.get(table, MANY_ROWS)


def selected_schema(table: str, columns: Sequence[str] | None) -> pa.Schema:
    """Return the schema of some columns of a table, of all if None; raise CorpusError for unknown names."""
    if table not in SCHEMAS:
        raise CorpusError(f"unknown table {table!r}; choose one of {', '.join(SCHEMAS)}")
    schema = SCHEMAS[table]
    if columns is None:
        return schema
    if isinstance(columns, str):  # it is a sequence, too: of characters
        raise CorpusError(f"columns must be a list of names, got {columns!r}; for example [{columns!r}]")
    for name in columns:
        if name not in schema.names:
            raise CorpusError(f"{table} has no column {name!r}; it has {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in columns])


def documents(batch: pa.RecordBatch) -> Iterator[Document]:
    """Yield the rows of a batch of DOCS as records."""
    columns: dict[str, Sequence[Any]] = {}
    for name, column in zip(DOCS.names, batch.columns, strict=True):
        record = _RECORDS.get(name)
        columns[name] = column.to_pylist() if record is None else _record_lists(column, record)
    columns["opt_out"] = [tuple(reasons or ()) for reasons in columns["opt_out"]]
    return map(Document, *columns.values())


# C0 and C1 controls would break lines, tables and terminals.
_CONTROLS_TO_SPACE = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")


def paragraphs(text: str) -> list[str]:
    r"""Return the lines of a text that are not blank, with single spaces and without control characters.

    >>> paragraphs("One.\n\n Two\x00 words. ")
    ['One.', 'Two words.']
    """
    lines = [line if line.isprintable() else line.translate(_CONTROLS_TO_SPACE) for line in text.splitlines()]
    return [" ".join(words) for line in lines if (words := line.split())]


def _record_lists(column: pa.Array[Any], record: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Return lists of structs as tuples of records, built field by field."""
    assert isinstance(column, pa.ListArray)
    structs = column.flatten()
    assert isinstance(structs, pa.StructArray)
    items = list(map(record, *(field.to_pylist() for field in structs.flatten())))
    bounds = accumulate(column.value_lengths().fill_null(0).to_pylist(), initial=0)
    return [tuple(items[start:end]) for start, end in pairwise(bounds)]
