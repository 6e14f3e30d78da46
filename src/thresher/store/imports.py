"""Corpora that others made, brought into a corpus: Parquet files in DIR/imports, a row for each document.

A document has text or tokens; how tokens are written is told in `lines.py`. An input file is there whole or not at
all, and never twice.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from thresher import config as configuration
from thresher._version import __version__
from thresher.config import Config, ConfigError
from thresher.store import forgotten
from thresher.store.corpus import CorpusError
from thresher.store.files import locked, sync_directory
from thresher.store.importers.document import Choices, Remarks
from thresher.store.importers.formats import FORMATS, check, format_of
from thresher.store.importers.source import ImportFault, Source, fingerprint
from thresher.store.importers.writer import NAMING, TEMPORARY, Input, Row, Writer
from thresher.store.pages import FOLDER, Figures
from thresher.store.pages import TEMPORARY as TEMPORARY_PAGES

TO_STAY_FORGOTTEN = "a document that is to stay forgotten, left out"
SHARED_TOLD = 10  # names of files that would have to be imported anew together
NOT_AGAIN = "was imported before and is skipped; to import it anew, delete"


class Refusal(Struct, frozen=True):
    """A file that cannot be imported."""

    file: str
    why: str  # and what helps


class Imported(Struct, frozen=True):
    """What an import brought."""

    files: tuple[str, ...] = ()
    documents: int = 0
    tokens: int = 0
    skipped: tuple[str, ...] = ()  # files that were imported before
    remarks: tuple[str, ...] = ()  # sentences about what was odd
    pages: Figures | None = None  # of archives and saved pages, if there were any
    refused: tuple[Refusal, ...] = ()  # files that cannot be imported

    def __add__(self, other: Imported) -> Imported:
        return Imported(
            self.files + other.files,
            self.documents + other.documents,
            self.tokens + other.tokens,
            self.skipped + other.skipped,
            self.remarks + other.remarks,
            self.pages or other.pages,
            self.refused + other.refused,
        )

    def checked(self) -> Imported:
        """The same; ImportFault if a file was refused."""
        if self.refused:
            raise ImportFault("\n".join(each.why for each in self.refused))
        return self


class ImportFile(Struct, frozen=True):
    """A Parquet file of imported documents."""

    path: Path
    format: str
    attributes: tuple[str, ...]  # of the tokens; none if there is text only
    language: str
    sha256: tuple[str, ...]  # of the input files
    bytes: tuple[int, ...]
    rows: int
    gaps: tuple[int, ...] = ()  # places of documents that were there once, and are forgotten

    def places(self) -> Iterator[int]:
        """For each row, which it was when the file was new: that is what a document is known by."""
        gone = set(self.gaps)
        return (place for place in range(self.rows + len(gone)) if place not in gone)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Its rows in portions that fit into memory; it is opened when the first is asked for."""
        wanted = None if columns is None else list(columns)
        try:
            with pq.ParquetFile(self.path) as file:
                for group in range(file.num_row_groups):
                    yield from file.iter_batches(row_groups=[group], columns=wanted)
        except (pa.ArrowException, OSError) as fault:
            raise CorpusError(f"{self.path} cannot be read: {fault}; restore it") from fault


class ImportedDocument(Struct, frozen=True):
    """A document as it was imported: a row."""

    id: str
    source: str  # file name
    number: int  # in that file
    meta: dict[str, str]
    text: str | None  # paragraphs, separated by line feeds …
    tokens: bytes | None  # … or lines
    count: int | None  # of tokens


def files(directory: Path) -> list[ImportFile]:
    """What was imported into a corpus, in the order of importing."""
    named = [
        (match, path) for path in (directory / FOLDER).glob("*") if (match := NAMING.fullmatch(path.name))
    ]
    return [_described(path) for _, path in sorted(named, key=lambda item: int(item[0][1]))]


def documents(directory: Path) -> Iterator[ImportedDocument]:
    """Every document that was imported into a corpus, one after the other."""
    for file in files(directory):
        for batch in file.batches():
            for row in batch.to_pylist():
                yield ImportedDocument(**{**row, "meta": dict(row["meta"])})


def import_files(
    directory: Path,
    files: Sequence[Path],
    *,
    format: str | None = None,
    attributes: Sequence[str] | None = None,
    language: str = "",
    document: str = "",
    text_column: str = "text",
    split: Literal["", "line"] = "",
    entities: bool = False,
    progress: Callable[[int], None] = lambda _: None,
    report: Callable[[Imported], None] = lambda _: None,
) -> Imported:
    """Import files into a corpus, which is made if it is not there and a language is given.

    Each file is there whole or not at all. If some are refused, the others are imported, and ImportFault tells why.
    `progress` is told how many bytes were read so far; `report`, what was imported, whenever an exception comes
    instead of that. The other options are those of `thresher import`.

    >>> import_files(Path("czech"), [Path("old.vert.xz")], language="cs")  # doctest: +SKIP
    Imported(files=('old.vert.xz',), documents=311, tokens=402811, skipped=(), remarks=())
    """
    asked = choices(attributes, document, text_column, split, entities)
    found = bring(directory, files, asked, format=format, language=language, progress=progress, report=report)
    if found.refused:
        report(found)
    return found.checked()


def bring(
    directory: Path,
    files: Sequence[Path],
    asked: Choices,
    *,
    format: str | None = None,
    language: str = "",
    progress: Callable[[int], None] = lambda _: None,
    report: Callable[[Imported], None] = lambda _: None,
) -> Imported:
    """What `import_files` does, but files that are refused are only told."""
    jobs = [(path, format_of(path, format)) for path in files]
    check(asked, {name for _, name in jobs})
    config = corpus_for(directory, language)
    with folder_of(directory) as folder:
        work = _Import(folder, config, asked, progress)
        try:
            try:
                for path, name in jobs:
                    work.take(path, name)
            finally:
                work.close()
        except BaseException:
            report(work.imported())
            raise
        return work.imported()


def choices(
    attributes: Sequence[str] | None = None,
    document: str = "",
    text_column: str = "text",
    split: Literal["", "line"] = "",
    entities: bool = False,
) -> Choices:
    """What was asked of an import, in one piece."""
    return Choices(tuple(attributes or ()), document, entities, text_column, split)


class _Import:
    """An import at work: one file after the other."""

    def __init__(
        self, folder: Path, config: Config, choices: Choices, progress: Callable[[int], None]
    ) -> None:
        self._choices = choices
        self._progress = progress
        self._folder = folder
        before = files(folder.parent)
        self._known = {sha256: file.path for file in before for sha256 in file.sha256}
        self._sizes = {size for file in before for size in file.bytes}
        self._writer = Writer(self._folder, config.language)
        self._forgotten = forgotten.load(folder.parent)
        self._files: list[tuple[str, Counter[str]]] = []  # names, with what was in them
        self._refused: list[Refusal] = []
        self._skipped: list[str] = []
        self._shared: dict[Path, list[str]] = {}  # names of the input files of a Parquet file
        self._remarks: list[str] = []
        self._read = 0  # bytes

    def take(self, path: Path, format_name: str) -> None:
        """Import a file, or skip or refuse it."""
        source = Source(path, self._folder, self._advance)
        try:
            self._take(source, path, format_name)
        except ImportFault as fault:
            self._refused.append(Refusal(source.name, str(fault)))

    def _take(self, source: Source, path: Path, format_name: str) -> None:
        if not source.standard and path.is_file() and path.stat().st_size in self._sizes:
            sha256 = fingerprint(path)
            if sha256 in self._known:
                self._skip(source.name, sha256)
                self._advance(path.stat().st_size)
                return
        remarks = Remarks()
        figures = self._store(source, format_name, remarks)
        if source.sha256 in self._known:  # only now is that known of what cannot be read twice
            self._writer.drop()
            self._skip(source.name, source.sha256)
            return
        self._remarks += remarks.sentences(source.name)
        if not figures["documents"]:
            self._writer.drop()
            self._remarks.append(f"{source.name}: nothing in it to import")
            return
        self._known[source.sha256] = self._writer.keep(Input(format_name, source.sha256, source.bytes))
        self._sizes.add(source.bytes)
        self._files.append((source.name, figures))

    def _store(self, source: Source, format_name: str, remarks: Remarks) -> Counter[str]:
        """Hand the documents of a file to the writer, and count them."""
        figures: Counter[str] = Counter()
        name = ""
        try:
            for document in FORMATS[format_name](source, self._choices, remarks):
                if self._is_forgotten(document.meta):
                    remarks.add(TO_STAY_FORGOTTEN)
                    continue
                figures["documents"] += 1
                figures["tokens"] += document.tokens or 0
                if document.part == 1:
                    name = document.meta.get("id") or f"{source.name}#{figures['documents']}"
                id = name if document.part == 1 else f"{name}#{document.part}"
                self._writer.add(Row(id, source.name, figures["documents"], document))
                del document  # it may be long, and the next one is made before its name is free
        except BaseException:
            self._writer.drop()
            raise
        return figures

    def _is_forgotten(self, meta: dict[str, str]) -> bool:
        return self._forgotten.holds_document(meta)

    def close(self) -> None:
        """Make durable what is whole."""
        self._writer.close()

    def imported(self) -> Imported:
        """What came of it. Files that are not durable do not count: of these, closing the last one failed."""
        durable = self._files[: self._writer.durable]
        return Imported(
            tuple(name for name, _ in durable),
            sum(figures["documents"] for _, figures in durable),
            sum(figures["tokens"] for _, figures in durable),
            tuple(self._skipped),
            tuple(self._remarks),
            refused=tuple(self._refused),
        )

    def _skip(self, name: str, sha256: str) -> None:
        self._skipped.append(name)
        path = self._known[sha256]
        others = sum(file == path for file in self._known.values()) - 1
        told = f"{name} {NOT_AGAIN} {path}"
        if others:
            told += (
                f", and import the {others:,} other files anew that it has, too: {self._sources(path, name)}"
            )
        self._remarks.append(told)

    def _sources(self, path: Path, name: str) -> str:
        """Names of files that share one with a file of that name."""
        if path not in self._shared and path.exists():
            columns = (batch.column("source").to_pylist() for batch in _described(path).batches(["source"]))
            self._shared[path] = list(dict.fromkeys(str(source) for column in columns for source in column))
        others = [other for other in self._shared.get(path, []) if other != name]
        return ", ".join(others[:SHARED_TOLD]) + (" …" if len(others) > SHARED_TOLD else "")

    def _advance(self, count: int) -> None:
        self._read += count
        self._progress(self._read)


def _described(path: Path) -> ImportFile:
    try:
        with pq.ParquetFile(path) as file:
            known: dict[bytes, bytes] = file.schema_arrow.metadata or {}
            told = {key.decode().removeprefix("thresher."): value.decode() for key, value in known.items()}
            return ImportFile(
                path,
                told["format"],
                tuple(filter(None, told["attributes"].split(","))),
                told["language"],
                tuple(told["sha256"].split(",")),
                tuple(map(int, told["bytes"].split(","))),
                file.metadata.num_rows,
                tuple(map(int, filter(None, told.get("gaps", "").split(",")))),
            )
    except (pa.ArrowException, OSError, KeyError, ValueError) as fault:
        raise CorpusError(
            f"{path} is no import of ours, or damaged ({fault}); restore or delete it"
        ) from fault


def corpus_for(directory: Path, language: str) -> Config:
    """The config of a corpus, which is made if it is new."""
    path = directory / "corpus.toml"
    if path.exists():
        config = configuration.load(directory)
        if language and language != config.language:
            raise ConfigError(
                f"{directory} is a corpus in {config.language!r}, not {language!r}; choose another directory"
            )
        return config
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError(f"{directory} is not a corpus and not empty; choose another directory")
    if not language:
        raise ConfigError("which language? Start a new corpus with --lang CODE, for example --lang cs")
    config = Config(language=language, thresher=__version__)
    directory.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as out:
        out.write(configuration.dump(config))
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(path)
    sync_directory(directory)
    return config


@contextmanager
def folder_of(directory: Path) -> Iterator[Path]:
    """The folder of imports for one process at a time, without what a killed one left there."""
    with locked(directory):
        folder = directory / FOLDER
        folder.mkdir(exist_ok=True)
        sync_directory(directory)
        for path in folder.iterdir():
            if TEMPORARY.fullmatch(path.name) or TEMPORARY_PAGES.fullmatch(path.name):
                path.unlink()
        yield folder


def rewrite_without(file: ImportFile, gone: Callable[[Any, dict[Any, Any]], bool]) -> int:
    """Write a file anew without some documents, told by their ids and what is known of them; how many there were.

    The new file takes the place of the old one at once; one without documents stays, so that its input is known.
    """
    places, gaps = file.places(), list(file.gaps)
    temporary = file.path.with_name(f"{file.path.name}.tmp")
    with pq.ParquetFile(file.path) as old:
        schema = old.schema_arrow
    with temporary.open("wb") as out:
        with pq.ParquetWriter(
            out, schema, compression="zstd", use_dictionary=False, write_statistics=False, store_schema=False
        ) as writer:
            for batch in file.batches():
                ids, known = (batch.column(name).to_pylist() for name in ("id", "meta"))
                leaves = [gone(id, dict(meta or ())) for id, meta in zip(ids, known, strict=True)]
                gaps += [
                    place for place, left in zip(islice(places, len(leaves)), leaves, strict=True) if left
                ]
                kept = batch.filter(pa.array([not left for left in leaves], pa.bool_()))
                if kept.num_rows:
                    writer.write_table(pa.Table.from_batches([kept]), row_group_size=kept.num_rows)
            told = {**(schema.metadata or {}), b"thresher.gaps": ",".join(map(str, sorted(gaps))).encode()}
            stored = b64encode(schema.with_metadata(told).serialize()).decode()
            writer.add_key_value_metadata({"ARROW:schema": stored})
        out.flush()
        os.fsync(out.fileno())
    if len(gaps) == len(file.gaps):
        temporary.unlink()
        return 0
    temporary.replace(file.path)
    sync_directory(file.path.parent)
    return len(gaps) - len(file.gaps)
