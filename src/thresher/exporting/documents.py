"""The documents of an export in the two forms that formats take: rows of a table, or tokens and structures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from thresher.annotate import pool
from thresher.annotate.characters import clean as visible
from thresher.annotate.registry import LoadedAnnotator, annotator
from thresher.exporting.imported import facts_of, meta_of, row_of
from thresher.selection import DocumentFilter
from thresher.store import imported_files, token_lines
from thresher.store.corpus_files import CorpusError, CorpusFiles, paragraphs
from thresher.store.imported_files import ImportFile
from thresher.store.schemas import DOCS
from thresher.store.token_lines import CloseTag, OpenTag

AS_TOKENS = "imported as tokens, which this format does not have"
NOT_PROCESSED = "imported, and not processed"
META_COLUMNS = (
    "url",
    "host",
    "domain",
    "language",
    "title",
    "author",
    "published",
    "modified",
    "site_name",
    "license",
    "opt_out",
)
REACH = 64  # characters in which a token is searched in its paragraph, since a library may have changed it


class ExportToken(NamedTuple):
    """A token: its word, then its other values."""

    values: tuple[str, ...]
    glued: bool = False  # no space before it


Event = ExportToken | OpenTag | CloseTag


class ExportDocument(Struct, frozen=True):
    """A document for a format of tokens."""

    number: int  # among the exported documents, from 1
    meta: dict[str, str]
    paragraphs: tuple[str, ...] = ()


# Renders a document, its tokens and structures, and the names of the values of tokens, to bytes.
Render = Callable[[ExportDocument, Iterable[Event], tuple[str, ...]], bytes]


class ExportSelection:
    """The selected documents of a corpus, crawled ones first, always in the same order."""

    def __init__(
        self, corpus: CorpusFiles, where: DocumentFilter, *, annotator: str = "", processes: int = 0
    ) -> None:
        self.corpus = corpus
        self.where = where
        self.left_out: Counter[str] = Counter()  # documents, by reason
        self._annotator = annotator
        self._processes = processes

    # rows

    def pages(self) -> Iterator[pa.RecordBatch]:
        """Yield the selected pages of the crawl, as batches of DOCS."""
        for batch in self.corpus.batches("docs"):
            reasons = self.where.reasons(batch)
            self.left_out.update(filter(None, reasons))
            yield batch.filter(pa.array([not reason for reason in reasons])) if any(reasons) else batch

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the selected documents that have text, as batches of DOCS."""
        yield from self.pages()
        for file in self._imports:
            for batch in file.batches(["id", "source", "meta", "text"]):
                chosen = list(self._chosen(batch, file))
                texts = [row_of(values, file) for values in chosen if values["text"] is not None]
                self.left_out[AS_TOKENS] += len(chosen) - len(texts)
                yield pa.RecordBatch.from_pylist(texts, DOCS)

    # tokens

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """All attributes of the tokens of these documents, word, pos and lemma first, as tools expect them."""
        language = self.corpus.config.language
        found = dict.fromkeys(("word",))
        if next(self.corpus.batches("docs", ["seq"]), None) is not None:
            found.update(dict.fromkeys(annotator(language, self._annotator or None).attributes))
        for file in self._imports:
            ready = (
                ()
                if file.attributes
                else annotator(file.language or language, self._annotator or None).attributes
            )
            found.update(dict.fromkeys(file.attributes or ready))
        usual = [name for name in ("word", "pos", "lemma") if name in found]
        return (*usual, *(name for name in found if name not in usual))

    def rendered(self, render: Render) -> Iterator[bytes]:
        """Yield every document as a format renders it; several processes annotate texts."""
        numbers = iter(range(1, 1 << 62))
        language = self.corpus.config.language
        yield from self._annotated(self._page_items(numbers), render, language)
        for file in self._imports:
            if file.attributes:
                yield from self._as_they_are(file, render, numbers)
            else:
                yield from self._annotated(
                    self._import_items(file, numbers), render, file.language or language
                )

    def _annotated(self, items: Iterator[ExportDocument], render: Render, language: str) -> Iterator[bytes]:
        try:
            yield from pool.annotated(
                items,
                partial(_rendered, render),
                _size_of,
                language=language,
                annotator_name=self._annotator,
                processes=self._processes,
            )
        except pool.AnnotationPoolError as fault:
            raise CorpusError(str(fault)) from None

    def _as_they_are(self, file: ImportFile, render: Render, numbers: Iterator[int]) -> Iterator[bytes]:
        for batch in file.batches():
            for values in self._chosen(batch, file):
                item = ExportDocument(next(numbers), meta_of(values, file))
                yield render(item, events_of_lines(values["tokens"] or b""), file.attributes)

    def _page_items(self, numbers: Iterator[int]) -> Iterator[ExportDocument]:
        for batch in self.pages():
            for page in batch.select([*META_COLUMNS, "fetched", "text"]).to_pylist():
                yield ExportDocument(next(numbers), _page_meta(page), tuple(paragraphs(page["text"] or "")))

    def _import_items(self, file: ImportFile, numbers: Iterator[int]) -> Iterator[ExportDocument]:
        for batch in file.batches():
            for values in self._chosen(batch, file):
                text = tuple(paragraphs(values["text"] or ""))
                yield ExportDocument(next(numbers), meta_of(values, file), text)

    # imports

    @cached_property
    def _imports(self) -> list[ImportFile]:
        """Files of imports; a processed corpus has none, and they are only counted."""
        found = imported_files.files(self.corpus.directory)
        if self.corpus.has_imports:
            return found
        for file in found:
            for batch in file.batches(["id", "meta"]):
                self.left_out[NOT_PROCESSED] += sum(1 for _ in self._chosen(batch, file))
        return []

    def _chosen(self, batch: pa.RecordBatch, file: ImportFile) -> Iterator[dict[str, Any]]:
        for values in batch.to_pylist():
            meta = {"id": values["id"], **dict(values["meta"] or ())}
            reason = self.where.reason_against(facts_of(meta, file.language))
            if reason:
                self.left_out[reason] += 1
            else:
                yield values


def _size_of(item: ExportDocument) -> int:
    return sum(map(len, item.paragraphs))


def _rendered(render: Render, item: ExportDocument, ready: LoadedAnnotator) -> bytes:
    return render(item, events_of_text(item.paragraphs, ready), ready.attributes)


def events_of_text(texts: Sequence[str], ready: LoadedAnnotator) -> Iterator[Event]:
    """Yield the tokens and structures of annotated paragraphs; tokens without a space before them are glued."""
    for text in texts:
        paragraph = " ".join(visible(text).split())
        at = 0
        yield OpenTag("p", {})
        for sentence in ready(paragraph):
            yield OpenTag("s", {})
            for values in sentence:
                start = paragraph.find(values[0], at, at + len(values[0]) + REACH)
                if start < 0:
                    yield ExportToken(values)
                else:
                    yield ExportToken(values, at > 0 and " " not in paragraph[at:start])
                    at = start + len(values[0])
            yield CloseTag("s")
        yield CloseTag("p")


def events_of_lines(data: bytes) -> Iterator[Event]:
    """Yield tokens and structures as they were imported; spaces between them are unknown.

    Lines are read in portions, since the lines of a long document take many times their bytes in memory.
    """
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + token_lines.PORTION) + 1 or len(data)
        for line in token_lines.read(data[start:end]):
            yield ExportToken(line.values) if isinstance(line, token_lines.Token) else line
        start = end


def _page_meta(page: Mapping[str, Any]) -> dict[str, str]:
    found = {"id": page["url"], **{name: page[name] for name in META_COLUMNS}}
    found["opt_out"] = " ".join(page["opt_out"] or ())
    for name in ("published", "modified"):
        found[name] = page[name] and page[name].isoformat()
    if page["fetched"] is not None:
        found["fetched"] = page["fetched"].isoformat(timespec="seconds")
    return {name: " ".join(paragraphs(value)) for name, value in found.items() if value}


ROW_BYTES = 1_000  # of a row besides its text, about


def regrouped(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.Table]:
    """Yield rows in tables of about `most_bytes` of text, cut at the same rows for any division into batches."""
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        start = 0
        for row, count in enumerate(_lengths(batch), 1):
            size += (count or 0) + ROW_BYTES
            if size >= most_bytes:
                gathered.append(batch.slice(start, row - start))
                yield pa.Table.from_batches(gathered).combine_chunks()
                gathered, size, start = [], 0, row
        if start < batch.num_rows:
            gathered.append(batch.slice(start))
    if gathered:
        yield pa.Table.from_batches(gathered).combine_chunks()


def _lengths(batch: pa.RecordBatch) -> list[int | None]:
    text: Any = batch.column("text")
    lengths: list[int | None] = pc.binary_length(text).to_pylist()
    return lengths
