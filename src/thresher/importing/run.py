"""Imports of files of any format: corpora as they are, pages read and judged as in a crawl.

Pages are read by several processes and judged in the order of the file, so the result does not depend on the number
of processes.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from thresher.config import Config
from thresher.errors import UsageError
from thresher.importing import corpora as imports
from thresher.importing.corpora import NOT_AGAIN, ImportReport, RefusedFile
from thresher.importing.formats.registry import check, format_of
from thresher.importing.formats.source import STDIN, ImportFileError
from thresher.importing.pages import PageWriter
from thresher.importing.progress import ImportProgress, Progress
from thresher.importing.sources import Archive, FoundPage, PageInput, SavedPages, page_format, saved_paths
from thresher.judge import Judge
from thresher.reasons import FORGOTTEN
from thresher.records import Failure, ReadResult
from thresher.store import corpus_files as corpora
from thresher.store import erasure_log
from thresher.store.archives.replies import OTHER, REVISIT, RefusedRecord
from thresher.store.imported_files import PageFileStats, described, page_paths
from thresher.store.known_pages import DocumentHashes
from thresher.store.schemas import document_row
from thresher.wording import counted
from thresher.workers.protocol import processors
from thresher.workers.reader_pool import ReaderPool

# The limits of a portion that is taken from a file at once: bytes of pages, and records.
PORTION_BYTES = 4 << 20
PORTION_RECORDS = 256
# The limits of the pages that are with readers or wait for them: bytes, and pages for each reader.
WAITING_BYTES = 64 << 20
WAITING_PAGES = 64
MAX_NAMED_FAULTS = 3  # pages of an input that could not be read and are named, for each reason

T = TypeVar("T")
Report = Callable[[ImportReport], None]


def import_files(
    directory: Path,
    files: Sequence[Path],
    *,
    format: str | None = None,
    language: str = "",
    processes: int = 0,
    progress: Progress = lambda _: None,
    report: Report = lambda _: None,
    **options: Any,
) -> ImportReport:
    """Import files of any format into a corpus, which is created if it does not exist and a language is given.

    Archives (WARC, WET, ARC), folders and files of saved pages become documents like crawled pages; all others are
    imported by `thresher.importing.corpora.import_files`, which has the other options.

    Pages are read by `processes` processes, 0 standing for the number of processors. If some files are refused, the
    others are imported before ImportFileError is raised with the reasons. `report` is called with the results so
    far if an exception is raised.
    """
    formats = [page_format(path, format) for path in files]
    pages = [path for path, name in zip(files, formats, strict=True) if name]
    others = [path for path, name in zip(files, formats, strict=True) if not name]
    for path, name in zip(files, formats, strict=True):
        if name and str(path) != STDIN and not path.exists():
            raise UsageError(f"{path} does not exist; give files to import, or - for standard input")
        if name == "warc" and str(path) != STDIN and path.is_dir():
            raise UsageError(f"{path} is a directory; give the archives in it: {path}/*")
    chosen = imports.options_of(**options)
    check(chosen, {format_of(path, format) for path in others})
    archives = [path for path, name in zip(files, formats, strict=True) if name == "warc"]
    saved = [path for path, name in zip(files, formats, strict=True) if name == "html"]
    saved_paths(saved)  # raises UsageError for a folder without pages before anything is created
    found = ImportReport()
    if others or not pages:
        found = imports.bring(
            directory, others, chosen, format=format, language=language, progress=progress, report=report
        )
    if pages:
        read = sum(path.stat().st_size for path in others if path.is_file())
        before = found
        found += _bring(
            directory,
            archives,
            saved,
            language,
            processes,
            lambda now: progress(
                replace(now, bytes=read + now.bytes, documents=before.documents + now.documents)
            ),
            lambda found_pages: report(before + found_pages),
        )
    if found.refused:
        report(found)
    return found.checked()


def _bring(
    directory: Path,
    archives: Sequence[Path],
    saved: Sequence[Path],
    language: str,
    processes: int,
    progress: Progress,
    report: Report,
) -> ImportReport:
    """Import pages and return a report, also of refused archives.

    Each archive is imported whole or not at all, and so are all saved pages together.
    """
    config = imports.corpus_for(directory, language)
    inputs: list[PageInput] = [Archive(path, config.fetch) for path in archives]
    if saved:
        inputs.append(SavedPages(saved, config.fetch))
    with imports.folder_of(directory) as folder:
        work = _Import(folder, config, progress)
        try:
            asyncio.run(work.run(inputs, processes))
        except BaseException:
            report(work.imported())
            raise
        return work.imported()


class _Import:
    """An import of pages, one input after the other."""

    def __init__(self, folder: Path, config: Config, progress: Progress) -> None:
        self._folder = folder
        self._config = config
        self._progress = progress
        before = [described(path) for path in page_paths(folder.parent)]
        self._known = {file.sha256: file.path for file in before}
        self._sizes = {file.bytes for file in before}
        self._known_pages = DocumentHashes()
        self._judge = Judge(config, self._known_pages)
        self._erased = erasure_log.load(folder.parent)
        self._files: list[str] = []
        self._refused: list[RefusedFile] = []
        self._skipped: list[str] = []
        self._remarks: list[str] = []
        self._stats = PageFileStats()
        self._read = 0  # bytes
        self._kept = 0  # pages

    async def run(self, inputs: Iterable[PageInput], processes: int) -> None:
        """Import all inputs that were not imported before."""
        new = [each for each in inputs if not self._is_settled(each)]
        if not new:
            return
        if self._config.judge.duplicates:
            documents = corpora.open(self._folder.parent)
            self._known_pages.add_documents(documents.batches("docs", ["raw_hash", "text_hash"]))
        # A crawl leaves a processor to its loop; an import only waits for readers, so it gives them all.
        count = processes or self._config.read.processes or processors()
        settings = replace(self._config.read, processes=count)
        readers = ReaderPool(settings, self._config.language)
        try:
            await readers.start()
            for each in new:
                try:
                    await self._take(each, readers)
                except ImportFileError as fault:
                    self._refused.append(RefusedFile(each.name, str(fault)))
        finally:
            await readers.close()

    def _is_settled(self, source: PageInput) -> bool:
        """Return whether an input was imported before, or cannot be opened; record either."""
        try:
            digest = source.known(self._sizes, set(self._known))
        except ImportFileError as fault:
            self._refused.append(RefusedFile(source.name, str(fault)))
            return True
        if digest:
            self._skip(source, digest)
        return bool(digest)

    def _skip(self, source: PageInput, digest: str) -> None:
        self._skipped += source.given
        self._remarks.append(f"{source.name} {NOT_AGAIN} {self._known[digest]}")

    async def _take(self, source: PageInput, readers: ReaderPool) -> None:
        writer = PageWriter(self._folder)
        try:
            await self._process(source, readers, writer)
            if not source.stats.records:
                raise ImportFileError(
                    f"{source.name} has no readable record; if it is an archive, get it once more, "
                    "or else name its format with --format"
                )
            if source.sha256 in self._known:  # the digest of a pipe is known only now
                writer.abandon()
                self._skip(source, source.sha256)
                return
            self._known[source.sha256] = writer.seal(
                {
                    "format": source.format,
                    "source": source.name,
                    "language": self._config.language,
                    "sha256": source.sha256,
                    "bytes": str(source.bytes),
                    "figures": msgspec.json.encode(source.stats).decode(),
                }
            )
        except BaseException:
            writer.abandon()
            raise
        self._files += source.given
        self._stats.add(source.stats)
        self._remarks.append(f"{source.name}: {described_stats(source.stats)}")

    async def _process(self, source: PageInput, readers: ReaderPool, writer: PageWriter) -> None:
        """Read and judge all pages of an input and pass them to the writer, in their order.

        This is not `ReaderPool.read_in_order`: the pages that wait are bounded by bytes too, records come from a
        thread in portions, and the number of waiting pages is part of the progress.
        """
        pending: deque[tuple[FoundPage, asyncio.Task[ReadResult | Failure]]] = deque()
        events = source.events(self._advance)
        waiting = 0

        async def finish_oldest() -> int:
            found, answer = pending[0]
            page = await answer
            pending.popleft()
            self._take_page(found, page, source.stats, writer)
            return len(found.reply.body)

        def report() -> None:
            self._progress(ImportProgress(self._read, self._kept, source.name, len(pending)))

        try:
            report()
            while portion := await _in_thread(lambda: _portion(events)):
                for event in portion:
                    if isinstance(event, RefusedRecord):
                        _count(event, source.stats)
                    else:
                        pending.append((event, asyncio.create_task(readers.read(event.reply))))
                        waiting += len(event.reply.body)
                while pending and (waiting > WAITING_BYTES or len(pending) > WAITING_PAGES * readers.size):
                    waiting -= await finish_oldest()
                    report()
                report()
            while pending:
                await finish_oldest()
                report()
        finally:
            for _, answer in pending:
                answer.cancel()
            await asyncio.gather(*(answer for _, answer in pending), return_exceptions=True)

    def _take_page(
        self, found: FoundPage, page: ReadResult | Failure, stats: PageFileStats, writer: PageWriter
    ) -> None:
        stats.pages += 1
        if isinstance(page, Failure):
            stats.reject(page.reason)
            if stats.rejected[page.reason] <= MAX_NAMED_FAULTS:
                self._remarks.append(f"{page.url}: {page.reason} {page.detail}".strip())
            return
        if self._erased.holds(page.url):
            stats.reject(FORGOTTEN)
            return
        verdict = self._judge.verdict(page, found.reply)
        self._known_pages.add(page.raw_hash, page.text_hash if verdict.keep else b"")
        if not verdict.keep:
            stats.reject(verdict.reason)
            return
        stats.kept += 1
        self._kept += 1
        writer.add(document_row(found.reply, page, verdict, seq=-found.number, depth=0, raw=found.raw))

    def _advance(self, count: int) -> None:
        self._read += count

    def imported(self) -> ImportReport:
        """Return the results so far."""
        return ImportReport(
            tuple(self._files),
            self._stats.kept,
            0,
            tuple(self._skipped),
            tuple(self._remarks),
            self._stats,
            tuple(self._refused),
        )


async def _in_thread(call: Callable[[], T]) -> T:
    """Return the result of a call in a daemon thread, which cannot keep the process from ending.

    The call may read from a pipe that delivers nothing.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def set_if_awaited(set_: Callable[[Any], None], value: Any) -> None:
        if not answer.done():
            set_(value)

    def pass_on(set_: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed, so the result is not awaited any more
            loop.call_soon_threadsafe(set_if_awaited, set_, value)

    def work() -> None:
        try:
            found = call()
        except BaseException as fault:  # it is raised where the result is awaited
            pass_on(answer.set_exception, fault)
        else:
            pass_on(answer.set_result, found)

    threading.Thread(target=work, name="input", daemon=True).start()
    return await answer


def _portion(events: Iterator[FoundPage | RefusedRecord]) -> list[FoundPage | RefusedRecord]:
    """Return the next records of an input, up to the limits of a portion; none at its end."""
    portion: list[FoundPage | RefusedRecord] = []
    size = 0
    for event in events:
        portion.append(event)
        size += len(event.reply.body) if isinstance(event, FoundPage) else 0
        if size >= PORTION_BYTES or len(portion) >= PORTION_RECORDS:
            break
    return portion


def _count(event: RefusedRecord, stats: PageFileStats) -> None:
    if event.kind == REVISIT:
        stats.revisits += 1
    elif event.kind == OTHER:
        stats.others += 1
    else:
        stats.pages += 1
        stats.reject(event.reason)


def described_stats(stats: PageFileStats) -> str:
    """Return the counts that are not zero on one line.

    >>> described_stats(PageFileStats(records=5, pages=1, kept=1, rejected={"language": 2}, damaged=1))
    '5 records, 1 page, 1 kept; rejected: 2 × language; 1 damaged record'
    """
    reasons = sorted(stats.rejected.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{counted(stats.records, 'record')}, {counted(stats.pages, 'page')}, {stats.kept:,} kept"]
    if reasons:
        parts.append("rejected: " + ", ".join(f"{count:,} × {reason}" for reason, count in reasons))
    if stats.revisits:
        parts.append(counted(stats.revisits, "revisit"))
    if stats.damaged:
        parts.append(counted(stats.damaged, "damaged record"))
    if stats.bytes_skipped:
        parts.append(counted(stats.bytes_skipped, "byte") + " skipped")
    return "; ".join(parts)
