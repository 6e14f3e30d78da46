"""Bring the index of a corpus up to date."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from thresher.annotate import registry
from thresher.annotate.user_modules import folders_of
from thresher.errors import UsageError
from thresher.search.cql.lexer import unknown
from thresher.search.index import coverage
from thresher.search.index import writer as index
from thresher.search.index.documents import IndexableDocuments
from thresher.search.index.manifest import IndexOrigin, ManifestWriter, writing
from thresher.search.index.segment_builder import LOWERCASE, IndexDocument
from thresher.search.index.writer import IndexChanges
from thresher.store import corpus_files as corpora
from thresher.store.corpus_files import CorpusFiles

DEFAULT_ORDER = "quality"  # the best documents first
ORDERS = ("quality", "authority", "recency", "length", "input")


class DocumentSource(Protocol):
    """The documents that an index is to hold."""

    def keys(self) -> set[int]:
        """Return the keys of all documents."""

    def new(self, known: Container[int]) -> Iterator[IndexDocument]:
        """Yield the documents with unknown keys."""


def update(
    directory: Path,
    *,
    order: str = "",
    annotator: str = "",
    processes: int = 0,
    opted_out: bool = False,
    lowercase: bool = True,
    rebuild: bool = False,
    documents: DocumentSource | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> IndexChanges:
    """Bring the index of a corpus up to date: add new documents and delete documents that left the corpus.

    Parameters
    ----------
    directory
        Directory of the corpus.
    order
        Dimension by which documents are ordered, largest value first: quality, authority, recency or length; or
        input, as they came. If empty, as before, or by quality.
    annotator
        Name of the annotator; if empty, the one that the index was made with, or the best one installed.
    processes
        Number of processes that annotate; 0 for all processors but one.
    opted_out
        Include pages with an objection of their publishers to text and data mining.
    lowercase
        Give tokens the attribute `lc`, the word in lower case.
    rebuild
        Make a new index of all documents, which replaces the old one when it is complete.
    documents
        Documents to index instead of all of the corpus.
    progress
        Called with the number of tokens added so far.

    Raises
    ------
    AnnotatorError
        The annotator is unknown or not installed.
    UsageError
        The order is unknown; or the index was made with another annotator, and `rebuild` is not given.
    """
    if order and order not in ORDERS:
        raise UsageError(unknown("order", order, ORDERS))
    corpus = corpora.open(directory)
    with writing(directory, rebuild=rebuild) as writer:
        _start(writer, order, annotator, corpus)
        source = documents or _documents_of(corpus, writer, annotator, processes, opted_out)
        rows, keys = coverage.rows(corpus), source.keys()
        origin = IndexOrigin("process" if documents else "index", len(keys), rows)
        writer.describe(origin=origin, annotators={} if documents else None)
        known = index.known_keys(writer)
        deleted = index.delete(writer, known - keys)
        added = index.add(writer, source.new(known), lowercase=lowercase, progress=progress)
        index.tidy(writer, order=order or None)
        # Documents without a token are not in the index, and are not missing.
        writer.describe(origin=replace(origin, documents=writer.manifest.documents))
        better = "" if documents else _better_annotator(writer, corpus)
        return IndexChanges(added.added, deleted, added.tokens, len(writer.manifest.segments), better)


def _start(writer: ManifestWriter, order: str, annotator: str, corpus: CorpusFiles) -> None:
    """Start an index that has no segments; refuse to add to one that was made with another annotator."""
    if not writer.manifest.segments:
        writer.start(order or writer.manifest.order or DEFAULT_ORDER)
    elif annotator and (other := _other_annotator(writer, annotator, corpus)):
        if ":" not in annotator:  # One that cannot be used is reported before a rebuild is recommended.
            registry.attributes_of(corpus.config.language, annotator)
        raise UsageError(
            f"the index of {corpus.directory} was made with {other}; to annotate all documents with {annotator}: "
            f"thresher index {corpus.directory} --annotator {annotator} --rebuild"
        )


def _other_annotator(writer: ManifestWriter, annotator: str, corpus: CorpusFiles) -> str:
    """Return the annotator that an index was made with if it is another one, or ""."""
    manifest = writer.manifest
    if manifest.annotators is not None:
        return next((name for name in manifest.annotators.values() if name != annotator), "")
    folders = folders_of(corpus.directory)
    expected = set(registry.attributes_of(corpus.config.language, annotator, folders=folders))
    indexed = [set(writer.segment(entry).attributes) - {LOWERCASE} for entry in manifest.segments]
    return "" if expected in indexed else f"an annotator of {', '.join(sorted(indexed[0]))}"


def _documents_of(
    corpus: CorpusFiles, writer: ManifestWriter, annotator: str, processes: int, opted_out: bool
) -> IndexableDocuments:
    """Return the documents of a corpus; the index records their annotators before it gets the first one."""

    def record(language: str, name: str) -> None:
        writer.describe(annotators={**(writer.manifest.annotators or {}), language: name})

    recorded = writer.manifest.annotators
    return IndexableDocuments(
        corpus, annotator=annotator, processes=processes, opted_out=opted_out, annotators=recorded,
        on_annotator=record,
    )  # fmt: skip


def _better_annotator(writer: ManifestWriter, corpus: CorpusFiles) -> str:
    """Return an installed annotator that is better than the one of the index, or ""."""
    language, manifest = corpus.config.language, writer.manifest
    if manifest.annotators is not None:
        return registry.better_than(manifest.annotators.get(language, ""), language)
    indexed = {name for entry in manifest.segments for name in writer.segment(entry).attributes}
    return "" if indexed.issuperset(registry.attributes_of(language)) else registry.name_of(language)
