"""Anything brought into a corpus: corpora of others as they are, and pages of others read and judged as in a crawl.

Pages are read by several processes and judged in the order of the file, so what comes out is the same however many
there are.
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
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from thresher.config import Config, ConfigError
from thresher.engine.inputs import Archive, Found, Input, SavedPages, page_format, saved_paths
from thresher.engine.local import Readers
from thresher.judge import age, judge
from thresher.page import Failure, Page, Verdict
from thresher.store import corpus as corpora
from thresher.store import forgotten, imports
from thresher.store.archives.replies import OTHER, REVISIT, Refused
from thresher.store.importers.formats import check, format_of
from thresher.store.importers.source import STDIN, ImportFault
from thresher.store.imports import NOT_AGAIN, Imported, Refusal
from thresher.store.pages import Figures, PageWriter, described, page_paths
from thresher.store.tables import document_row

PORTION_BYTES = 4 << 20  # of pages that are taken from a file in one go …
PORTION_EVENTS = 256  # … or so many
WAITING_BYTES = 64 << 20  # of pages that are with readers or wait for their turn …
WAITING_PAGES = 64  # … or so many for each reader
FAULTS_TOLD = 3  # pages of an input that are named because nobody could read them, for each reason
NEW_HASHES = 1 << 20  # that are kept in a set before they join the others

T = TypeVar("T")
Progress = Callable[[int], None]
Report = Callable[[Imported], None]


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
) -> Imported:
    """Import files of any format into a corpus, which is made if it is not there and a language is given.

    Archives (WARC, WET, ARC), folders and files of saved pages become documents beside crawled ones; all others are
    imported by `thresher.store.imports.import_files`, which has the other options. Pages are read by so many
    `processes`, or by one less than the machine has cores. If some files are refused, the others are imported, and
    ImportFault tells why; `report` is told what was imported whenever an exception comes instead of that.
    """
    formats = [page_format(path, format) for path in files]
    pages = [path for path, name in zip(files, formats, strict=True) if name]
    others = [path for path, name in zip(files, formats, strict=True) if not name]
    for path, name in zip(files, formats, strict=True):
        if name and str(path) != STDIN and not path.exists():
            raise ConfigError(f"{path} does not exist; give files to import, or - for standard input")
        if name == "warc" and str(path) != STDIN and path.is_dir():
            raise ConfigError(f"{path} is a directory; give the archives in it: {path}/*")
    asked = imports.choices(**options)
    check(asked, {format_of(path, format) for path in others})
    archives = [path for path, name in zip(files, formats, strict=True) if name == "warc"]
    saved = [path for path, name in zip(files, formats, strict=True) if name == "html"]
    saved_paths(saved)  # so that a folder without pages is told before anything is made
    found = Imported()
    if others or not pages:
        found = imports.bring(
            directory, others, asked, format=format, language=language, progress=progress, report=report
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
            lambda count: progress(read + count),
            lambda harvest: report(before + harvest),
        )
    if found.refused:
        report(found)
    return found.checked()


def import_pages(
    directory: Path,
    archives: Sequence[Path],
    saved: Sequence[Path] = (),
    language: str = "",
    processes: int = 0,
    progress: Progress = lambda _: None,
) -> Imported:
    """Import archives and saved pages. Each archive is there whole or not at all, and so are all saved pages."""
    return _bring(directory, archives, saved, language, processes, progress, lambda _: None).checked()


def _bring(
    directory: Path,
    archives: Sequence[Path],
    saved: Sequence[Path],
    language: str,
    processes: int,
    progress: Progress,
    report: Report,
) -> Imported:
    """What `import_pages` does, but archives that are refused are only told."""
    config = imports.corpus_for(directory, language)
    inputs: list[Input] = [Archive(path, config.fetch) for path in archives]
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
    """An import at work: one input after the other."""

    def __init__(self, folder: Path, config: Config, progress: Progress) -> None:
        self._folder = folder
        self._config = config
        self._progress = progress
        before = [described(path) for path in page_paths(folder.parent)]
        self._known = {file.sha256: file.path for file in before}
        self._sizes = {file.bytes for file in before}
        self._bench = Bench(config)
        self._forgotten = forgotten.load(folder.parent)
        self._files: list[str] = []
        self._refused: list[Refusal] = []
        self._skipped: list[str] = []
        self._remarks: list[str] = []
        self._figures = Figures()
        self._read = 0  # bytes

    async def run(self, inputs: Iterable[Input], processes: int) -> None:
        """Import all that is new."""
        fresh = [each for each in inputs if not self._is_settled(each)]
        if not fresh:
            return
        self._bench.remember(corpora.open(self._folder.parent))
        settings = replace(self._config.read, processes=processes or self._config.read.processes)
        readers = Readers(settings, self._config.language)
        try:
            await readers.start()
            for each in fresh:
                try:
                    await self._take(each, readers)
                except ImportFault as fault:
                    self._refused.append(Refusal(each.name, str(fault)))
        finally:
            await readers.close()

    def _is_settled(self, source: Input) -> bool:
        """Whether an input was imported before, or cannot even be looked at."""
        try:
            digest = source.known(self._sizes, set(self._known))
        except ImportFault as fault:
            self._refused.append(Refusal(source.name, str(fault)))
            return True
        if digest:
            self._skip(source, digest)
        return bool(digest)

    def _skip(self, source: Input, digest: str) -> None:
        self._skipped += source.given
        self._remarks.append(f"{source.name} {NOT_AGAIN} {self._known[digest]}")

    async def _take(self, source: Input, readers: Readers) -> None:
        writer = PageWriter(self._folder)
        try:
            await self._harvest(source, readers, writer)
            if not source.figures.records:
                raise ImportFault(
                    f"{source.name} has no record that could be read; is it an archive? "
                    "If so, get it once more, or else say with --format what it is"
                )
            if source.sha256 in self._known:  # only now is that known of what cannot be read twice
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
                    "figures": msgspec.json.encode(source.figures).decode(),
                }
            )
        except BaseException:
            writer.abandon()
            raise
        self._files += source.given
        self._figures.add(source.figures)
        self._remarks.append(f"{source.name}: {told(source.figures)}")

    async def _harvest(self, source: Input, readers: Readers, writer: PageWriter) -> None:
        """The way of all pages of an input, in their order, from the file to the writer."""
        pending: deque[tuple[Found, asyncio.Task[Page | Failure]]] = deque()
        events = source.events(self._advance)
        waiting = 0

        async def settle() -> int:
            found, answer = pending[0]
            page = await answer
            pending.popleft()
            self._judge(found, page, source.figures, writer)
            return len(found.reply.body)

        try:
            while portion := await _aside(lambda: _portion(events)):
                for event in portion:
                    if isinstance(event, Refused):
                        _count(event, source.figures)
                    else:
                        pending.append((event, asyncio.create_task(readers.read(event.reply))))
                        waiting += len(event.reply.body)
                while pending and (waiting > WAITING_BYTES or len(pending) > WAITING_PAGES * readers.size):
                    waiting -= await settle()
                self._progress(self._read)
            while pending:
                await settle()
        finally:
            for _, answer in pending:
                answer.cancel()
            await asyncio.gather(*(answer for _, answer in pending), return_exceptions=True)

    def _judge(self, found: Found, page: Page | Failure, figures: Figures, writer: PageWriter) -> None:
        figures.pages += 1
        if isinstance(page, Failure):
            figures.reject(page.reason)
            if figures.rejected[page.reason] <= FAULTS_TOLD:
                self._remarks.append(f"{page.url}: {page.reason} {page.detail}".strip())
            return
        if self._forgotten.holds(page.url):
            figures.reject("forgotten")
            return
        verdict = self._bench.verdict(found, page)
        if not verdict.keep:
            figures.reject(verdict.reason)
            return
        figures.kept += 1
        writer.add(document_row(found.reply, page, verdict, seq=-found.number, depth=0, raw=found.raw))

    def _advance(self, count: int) -> None:
        self._read += count

    def imported(self) -> Imported:
        """What came of it."""
        return Imported(
            tuple(self._files),
            self._figures.kept,
            0,
            tuple(self._skipped),
            tuple(self._remarks),
            self._figures,
            tuple(self._refused),
        )


async def _aside(call: Callable[[], T]) -> T:
    """What a call returns, in a thread that nobody has to wait for: it may read a pipe on which nothing comes."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(set_: Callable[[Any], None], value: Any) -> None:
        if not answer.done():
            set_(value)

    def tell(set_: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, set_, value)

    def work() -> None:
        try:
            found = call()
        except BaseException as fault:  # it is raised where the answer is waited for
            tell(answer.set_exception, fault)
        else:
            tell(answer.set_result, found)

    threading.Thread(target=work, name="input", daemon=True).start()
    return await answer


def _portion(events: Iterator[Found | Refused]) -> list[Found | Refused]:
    """Some events, none at the end."""
    portion: list[Found | Refused] = []
    size = 0
    for event in events:
        portion.append(event)
        size += len(event.reply.body) if isinstance(event, Found) else 0
        if size >= PORTION_BYTES or len(portion) >= PORTION_EVENTS:
            break
    return portion


def _count(event: Refused, figures: Figures) -> None:
    if event.kind == REVISIT:
        figures.revisits += 1
    elif event.kind == OTHER:
        figures.others += 1
    else:
        figures.pages += 1
        figures.reject(event.reason)


def told(figures: Figures) -> str:
    """Figures for people, those that are not nothing.

    >>> told(Figures(records=5, pages=3, kept=1, rejected={"language": 2}, damaged=1))
    '5 records, 3 pages, 1 kept; rejected: 2 × language; 1 record damaged'
    """
    reasons = sorted(figures.rejected.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{figures.records:,} records, {figures.pages:,} pages, {figures.kept:,} kept"]
    if reasons:
        parts.append("rejected: " + ", ".join(f"{count:,} × {reason}" for reason, count in reasons))
    if figures.revisits:
        parts.append(f"{figures.revisits:,} revisits")
    if figures.damaged:
        parts.append(f"{figures.damaged:,} record{'s' * (figures.damaged > 1)} damaged")
    if figures.bytes_skipped:
        parts.append(f"{figures.bytes_skipped:,} bytes skipped")
    return "; ".join(parts)


class Bench:
    """The judge with a memory for pages and texts that a corpus has."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._raw = Hashes()
        self._text = Hashes()

    def remember(self, corpus: corpora.Corpus) -> None:
        """What a corpus has, no second time will be kept."""
        if self._config.judge.duplicates:
            for batch in corpus.batches("docs", ["raw_hash", "text_hash"]):
                self._raw.update(batch.column("raw_hash").to_pylist())
                self._text.update(batch.column("text_hash").to_pylist())

    def verdict(self, found: Found, page: Page) -> Verdict:
        """Keep a page or not, as a crawl would. Of a text without its page, nobody knows how long that was."""
        settings = self._config.judge
        verdict = judge(
            page,
            self._config.language,
            settings if found.reply.status else replace(settings, min_html_bytes=0),
            raw_seen=page.raw_hash in self._raw,
            text_seen=page.text_hash in self._text,
            age=age(found.reply),
        )
        self._raw.add(page.raw_hash)
        if verdict.keep:
            self._text.add(page.text_hash)
        return verdict


class Hashes:
    """Digests that were seen: eight bytes of each."""

    def __init__(self) -> None:
        self._old: NDArray[np.uint64] = np.array([], np.uint64)  # in order
        self._new: set[int] = set()

    def __contains__(self, digest: bytes) -> bool:
        if not digest:
            return False
        number = int.from_bytes(digest[:8])
        if number in self._new:
            return True
        place = int(np.searchsorted(self._old, np.uint64(number)))
        return place < len(self._old) and int(self._old[place]) == number

    def add(self, digest: bytes) -> None:
        """One more was seen."""
        if digest:
            self._new.add(int.from_bytes(digest[:8]))
            if len(self._new) >= NEW_HASHES:
                self._merge()

    def update(self, digests: Iterable[str | None]) -> None:
        """These were seen too, written in hexadecimal."""
        for digest in digests:
            if digest:
                self.add(bytes.fromhex(digest))

    def _merge(self) -> None:
        fresh = np.fromiter(self._new, np.uint64, len(self._new))
        self._old = np.union1d(self._old, fresh)
        self._new = set()
