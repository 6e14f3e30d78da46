"""Imports of corpora: their documents become rows of Parquet files in DIR/imports.

A document has text or tokens; `store.token_lines` describes the format of tokens. An input file is imported whole
or not at all, and never twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

from thresher import config as configuration
from thresher._version import __version__
from thresher.config import Config
from thresher.errors import UsageError
from thresher.files.durable_files import locked, replace, sync_directory
from thresher.importing.formats.document import ImportOptions, ImportRemarks
from thresher.importing.formats.registry import FORMATS, check, format_of
from thresher.importing.formats.source import ImportFileError, SourceFile, fingerprint
from thresher.importing.formats.writer import DocumentRow, DocumentWriter, FinishedInput
from thresher.importing.progress import ImportProgress, Progress
from thresher.store import erasure_log
from thresher.store.corpus_files import upgrade
from thresher.store.imported_files import FOLDER, UNFINISHED, PageFileStats, describe_file
from thresher.store.imported_files import files as imported_files
from thresher.wording import ReportView

ERASED = "a document that was erased with `thresher forget`, left out"
MAX_NAMED = 10  # input files that a remark names
NOT_AGAIN = "was imported before and is skipped; to import it again, delete"


class RefusedFile(Struct, frozen=True):
    """A file that cannot be imported."""

    file: str
    why: str  # with the fix


class ImportReport(ReportView, Struct, frozen=True):
    """The results of an import."""

    files: tuple[str, ...] = ()
    documents: int = 0
    tokens: int = 0
    skipped: tuple[str, ...] = ()  # files that were imported before
    remarks: tuple[str, ...] = ()  # sentences about oddities in the files
    pages: PageFileStats | None = None  # of archives and saved pages, if there were any
    refused: tuple[RefusedFile, ...] = ()  # files that cannot be imported

    def __add__(self, other: ImportReport) -> ImportReport:
        return ImportReport(
            self.files + other.files,
            self.documents + other.documents,
            self.tokens + other.tokens,
            self.skipped + other.skipped,
            self.remarks + other.remarks,
            self.pages or other.pages,
            self.refused + other.refused,
        )

    def checked(self) -> ImportReport:
        """Return the report itself; raise ImportFileError if a file was refused."""
        if self.refused:
            raise ImportFileError("\n".join(each.why for each in self.refused))
        return self


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
    progress: Progress = lambda _: None,
    report: Callable[[ImportReport], None] = lambda _: None,
) -> ImportReport:
    """Import files into a corpus, which is created if it does not exist and a language is given.

    Each file is imported whole or not at all. If some are refused, the others are imported before ImportFileError
    is raised with the reasons. `progress` is called while files are read; `report` is called with the results so
    far if an exception is raised. The other options are as for `thresher import`.

    >>> import_files(Path("czech"), [Path("old.vert.xz")], language="cs")  # doctest: +SKIP
    ImportReport(files=('old.vert.xz',), documents=311, tokens=402811, skipped=(), remarks=())
    """
    options = options_of(attributes, document, text_column, split, entities)
    found = bring(
        directory, files, options, format=format, language=language, progress=progress, report=report
    )
    if found.refused:
        report(found)
    return found.checked()


def bring(
    directory: Path,
    files: Sequence[Path],
    options: ImportOptions,
    *,
    format: str | None = None,
    language: str = "",
    progress: Progress = lambda _: None,
    report: Callable[[ImportReport], None] = lambda _: None,
) -> ImportReport:
    """Import files as `import_files` does, but return refused files in the report."""
    jobs = [(path, format_of(path, format)) for path in files]
    check(options, {name for _, name in jobs})
    config = corpus_for(directory, language)
    with folder_of(directory) as folder:
        work = _Import(folder, config, options, progress)
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


def options_of(
    attributes: Sequence[str] | None = None,
    document: str = "",
    text_column: str = "text",
    split: Literal["", "line"] = "",
    entities: bool = False,
) -> ImportOptions:
    """Return options of an import as one object."""
    return ImportOptions(tuple(attributes or ()), document, entities, text_column, split)


class _Import:
    """An import of files, one after the other."""

    def __init__(self, folder: Path, config: Config, options: ImportOptions, progress: Progress) -> None:
        self._options = options
        self._progress = progress
        self._folder = folder
        before = imported_files(folder.parent)
        self._known = {sha256: file.path for file in before for sha256 in file.sha256}
        self._sizes = {size for file in before for size in file.bytes}
        self._writer = DocumentWriter(self._folder, config.language)
        self._erased = erasure_log.load(folder.parent)
        self._files: list[tuple[str, Counter[str]]] = []  # names, with counts of documents and tokens
        self._refused: list[RefusedFile] = []
        self._skipped: list[str] = []
        self._shared: dict[Path, list[str]] = {}  # names of the input files of a Parquet file
        self._remarks: list[str] = []
        self._read = 0  # bytes
        self._documents = 0
        self._file = ""  # that is being read

    def take(self, path: Path, format_name: str) -> None:
        """Import a file, or skip or refuse it."""
        source = SourceFile(path, self._folder, self._advance)
        self._file = source.name
        try:
            self._take(source, path, format_name)
        except ImportFileError as fault:
            self._refused.append(RefusedFile(source.name, str(fault)))

    def _take(self, source: SourceFile, path: Path, format_name: str) -> None:
        if not source.standard and path.is_file() and path.stat().st_size in self._sizes:
            sha256 = fingerprint(path)
            if sha256 in self._known:
                self._skip(source.name, sha256)
                self._advance(path.stat().st_size)
                return
        remarks = ImportRemarks()
        counts = self._store(source, format_name, remarks)
        if source.sha256 in self._known:  # the digest of a pipe is known only now
            self._writer.drop()
            self._skip(source.name, source.sha256)
            return
        self._remarks += remarks.sentences(source.name)
        if not counts["documents"]:
            self._writer.drop()
            self._remarks.append(f"{source.name}: no documents found")
            return
        self._known[source.sha256] = self._writer.keep(
            FinishedInput(format_name, source.sha256, source.bytes)
        )
        self._sizes.add(source.bytes)
        self._files.append((source.name, counts))

    def _store(self, source: SourceFile, format_name: str, remarks: ImportRemarks) -> Counter[str]:
        """Pass the documents of a file to the writer, and return their counts."""
        counts: Counter[str] = Counter()
        name = ""
        try:
            for document in FORMATS[format_name](source, self._options, remarks):
                if self._erased.holds_document(document.meta):
                    remarks.add(ERASED)
                    continue
                counts["documents"] += 1
                counts["tokens"] += document.tokens or 0
                self._documents += 1
                if document.part == 1:
                    name = document.meta.get("id") or f"{source.name}#{counts['documents']}"
                id = name if document.part == 1 else f"{name}#{document.part}"
                self._writer.add(DocumentRow(id, source.name, counts["documents"], document))
                del document  # it may be long, and the next one is read before the name is bound again
        except BaseException:
            self._writer.drop()
            raise
        return counts

    def close(self) -> None:
        """Make all files durable that were read to their end."""
        self._writer.close()

    def imported(self) -> ImportReport:
        """Return the results. Files that are not durable do not count: closing the file that holds them failed."""
        durable = self._files[: self._writer.durable]
        return ImportReport(
            tuple(name for name, _ in durable),
            sum(counts["documents"] for _, counts in durable),
            sum(counts["tokens"] for _, counts in durable),
            tuple(self._skipped),
            tuple(self._remarks),
            refused=tuple(self._refused),
        )

    def _skip(self, name: str, sha256: str) -> None:
        self._skipped.append(name)
        path = self._known[sha256]
        others = sum(file == path for file in self._known.values()) - 1
        remark = f"{name} {NOT_AGAIN} {path}"
        if others:
            remark += f", and import its {others:,} other files again as well: {self._sources(path, name)}"
        self._remarks.append(remark)

    def _sources(self, path: Path, name: str) -> str:
        """Return the names of the other input files of a Parquet file, for a remark."""
        if path not in self._shared and path.exists():
            columns = (
                batch.column("source").to_pylist() for batch in describe_file(path).batches(["source"])
            )
            self._shared[path] = list(dict.fromkeys(str(source) for column in columns for source in column))
        others = [other for other in self._shared.get(path, []) if other != name]
        return ", ".join(others[:MAX_NAMED]) + (" …" if len(others) > MAX_NAMED else "")

    def _advance(self, count: int) -> None:
        self._read += count
        self._progress(ImportProgress(self._read, self._documents, self._file))


def corpus_for(directory: Path, language: str) -> Config:
    """Return the configuration of a corpus, which is created if it does not exist."""
    path = directory / "corpus.toml"
    if path.exists():
        config = configuration.load(directory)
        if language and language != config.language:
            raise UsageError(
                f"{directory} is a corpus in {config.language!r}, not {language!r}; choose another directory"
            )
        return config
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is not a corpus and not empty; choose another directory")
    if not language:
        raise UsageError("a new corpus needs a language; add --lang CODE, for example --lang cs")
    config = Config(language=language, thresher=__version__)
    directory.mkdir(parents=True, exist_ok=True)
    replace(path, configuration.dump(config).encode())
    return config


@contextmanager
def folder_of(directory: Path) -> Iterator[Path]:
    """Lock a corpus, remove unfinished files of killed imports, and return its folder of imports."""
    with locked(directory):
        upgrade(directory)
        folder = directory / FOLDER
        folder.mkdir(exist_ok=True)
        sync_directory(directory)
        for path in folder.iterdir():
            if UNFINISHED.fullmatch(path.name):
                path.unlink()
        yield folder
