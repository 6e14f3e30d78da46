"""The documents of an export as formats take them: as rows of a table, or as tokens, some of them annotated now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from thresher.annotate import crowd
from thresher.annotate.annotators import Ready, annotator
from thresher.annotate.characters import clean as visible
from thresher.export.choice import Choice, of_import, of_pages
from thresher.export.imported import meta_of, row_of
from thresher.store import imports, lines
from thresher.store.corpus import Corpus, CorpusError, paragraphs
from thresher.store.imports import ImportFile
from thresher.store.lines import Close, Open
from thresher.store.tables import DOCS

AS_TOKENS = "imported as tokens, which this format does not have"
NOT_PROCESSED = "imported, and not processed"
TOLD = (
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
REACH = 64  # characters beyond which a word that a library changed is not looked for


class Word(NamedTuple):
    """A token: its word, then its other values."""

    values: tuple[str, ...]
    glued: bool = False  # no space is between it and the one before


Event = Word | Open | Close


class Item(Struct, frozen=True):
    """A document on its way to a format of tokens."""

    number: int  # among those exported, from 1
    meta: dict[str, str]
    paragraphs: tuple[str, ...] = ()


# Makes bytes of a document, of its tokens and structures, and of the names of the tokens' values.
Render = Callable[[Item, Iterable[Event], tuple[str, ...]], bytes]


class Selection:
    """The chosen documents of a corpus, crawled ones first, each time in the same order."""

    def __init__(self, corpus: Corpus, choice: Choice, *, annotator: str = "", processes: int = 0) -> None:
        self.corpus = corpus
        self.choice = choice
        self.left_out: Counter[str] = Counter()  # documents, by reason
        self._annotator = annotator
        self._processes = processes

    # rows

    def pages(self) -> Iterator[pa.RecordBatch]:
        """The chosen pages of the crawl, as batches of DOCS."""
        for batch in map(_dated, self.corpus.batches("docs")):
            objections = [self.choice.objection(about) for about in of_pages(batch)]
            self.left_out.update(filter(None, objections))
            kept = pa.array([not objection for objection in objections], pa.bool_())
            yield batch if all(kept.to_pylist()) else batch.filter(kept)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The chosen documents that have text, as batches of DOCS."""
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
        """All that tokens of these documents have; the usual ones first, in the order that tools expect."""
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
        """What a format makes of every document; text is annotated on the way, by several processes."""
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

    def _annotated(self, items: Iterator[Item], render: Render, language: str) -> Iterator[bytes]:
        try:
            yield from crowd.annotated(
                items,
                partial(_rendered, render),
                _letters,
                language=language,
                annotator_name=self._annotator,
                processes=self._processes,
            )
        except crowd.CrowdFault as fault:
            raise CorpusError(str(fault)) from None

    def _as_they_are(self, file: ImportFile, render: Render, numbers: Iterator[int]) -> Iterator[bytes]:
        for batch in file.batches():
            for values in self._chosen(batch, file):
                item = Item(next(numbers), meta_of(values, file))
                yield render(item, events_of_lines(values["tokens"] or b""), file.attributes)

    def _page_items(self, numbers: Iterator[int]) -> Iterator[Item]:
        for batch in self.pages():
            for page in batch.select([*TOLD, "fetched", "text"]).to_pylist():
                yield Item(next(numbers), _page_meta(page), tuple(paragraphs(page["text"] or "")))

    def _import_items(self, file: ImportFile, numbers: Iterator[int]) -> Iterator[Item]:
        for batch in file.batches():
            for values in self._chosen(batch, file):
                text = tuple(paragraphs(values["text"] or ""))
                yield Item(next(numbers), meta_of(values, file), text)

    # imports

    @cached_property
    def _imports(self) -> list[ImportFile]:
        """Files of imports; none of a corpus that was processed, in which they are only counted."""
        found = imports.files(self.corpus.directory)
        if self.corpus.has_imports:
            return found
        for file in found:
            for batch in file.batches(["id", "meta"]):
                self.left_out[NOT_PROCESSED] += sum(1 for _ in self._chosen(batch, file))
        return []

    def _chosen(self, batch: pa.RecordBatch, file: ImportFile) -> Iterator[dict[str, Any]]:
        for values in batch.to_pylist():
            meta = {"id": values["id"], **dict(values["meta"] or ())}
            objection = self.choice.objection(of_import(meta, file.language))
            if objection:
                self.left_out[objection] += 1
            else:
                yield values


def _dated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Pages without a moment that nobody knows: it was written as 1970 before it could be null."""
    moments: Any = batch.column("fetched")
    unknown = pc.equal(moments, pa.scalar(0, moments.type))
    if not pc.any(unknown).as_py():
        return batch
    known: Any = pc.if_else(unknown, pa.scalar(None, moments.type), moments)
    return batch.set_column(batch.schema.get_field_index("fetched"), batch.schema.field("fetched"), known)


def _letters(item: Item) -> int:
    return sum(map(len, item.paragraphs))


def _rendered(render: Render, item: Item, ready: Ready) -> bytes:
    return render(item, events_of_text(item.paragraphs, ready), ready.attributes)


def events_of_text(texts: Sequence[str], ready: Ready) -> Iterator[Event]:
    """Paragraphs annotated: sentences of words, each with the knowledge of whether a space is before it."""
    for text in texts:
        paragraph = " ".join(visible(text).split())
        at = 0
        yield Open("p", {})
        for sentence in ready(paragraph):
            yield Open("s", {})
            for values in sentence:
                start = paragraph.find(values[0], at, at + len(values[0]) + REACH)
                if start < 0:
                    yield Word(values)
                else:
                    yield Word(values, at > 0 and " " not in paragraph[at:start])
                    at = start + len(values[0])
            yield Close("s")
        yield Close("p")


def events_of_lines(data: bytes) -> Iterator[Event]:
    """Tokens as they were imported; where there were spaces, nobody knows any more.

    They are read in portions: the lines of a long document take many times their bytes.
    """
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + lines.PORTION) + 1 or len(data)
        for line in lines.read(data[start:end]):
            yield Word(line.values) if isinstance(line, lines.Token) else line
        start = end


def _page_meta(page: Mapping[str, Any]) -> dict[str, str]:
    found = {"id": page["url"], **{name: page[name] for name in TOLD}}
    found["opt_out"] = " ".join(page["opt_out"] or ())
    if page["fetched"] is not None:
        found["fetched"] = page["fetched"].isoformat(timespec="seconds")
    return {name: " ".join(paragraphs(value)) for name, value in found.items() if value}


ROW_BYTES = 1_000  # that a row has besides its text, about


def regrouped(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.Table]:
    """Rows in tables of about so many bytes of text, cut at the same rows however the batches come."""
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
