"""The public class `Corpus`, and the function `open` that returns one.

A facade over store, search, importing, pipeline and exporting. Everything behind a method is imported when the
method is called, and nothing below imports this module. Parameters have the names of the flags of the command line.
"""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import pyarrow as pa

from thresher.config import duration
from thresher.search.api import CorpusQueries
from thresher.selection import DocumentFilter, document_filter
from thresher.store import corpus_files, imported_files

if TYPE_CHECKING:
    from thresher.crawler.stop_reasons import Ending
    from thresher.exporting.registry import ExportReport
    from thresher.importing.corpora import ImportReport
    from thresher.importing.progress import Progress
    from thresher.pipeline.runs.run import StageProgress
    from thresher.pipeline.runs.run_log import Run
    from thresher.search.analysis.tables import ResultTable
    from thresher.search.index.writer import IndexChanges
    from thresher.search.searcher import Index

Where = DocumentFilter | Mapping[str, Any]


class Corpus(CorpusQueries, corpus_files.CorpusFiles):
    """A corpus: tables of documents, outcomes and links, an index to search, and steps to process it.

    Tables are Arrow tables, which pandas, polars and DuckDB take; iteration yields documents as records. Each call
    sees the newest commit, also while a crawl is writing.

    >>> corpus = thresher.open("czech")
    >>> corpus.documents(["url", "published"], where={"max_badness": 10}).num_columns
    2
    >>> [document.url for document in corpus] == corpus.documents(["url"])["url"].to_pylist()
    True
    >>> corpus.search('[word="a"]').freq("word@node", limit=1).columns
    ('value', 'count', 'share', 'per_million')
    """

    _opened: Index | None = None
    ending: Ending | None = None
    """The end of the crawl that returned this corpus: its `reason` and `detail`; None of a corpus from `open`."""

    def documents(self, columns: Sequence[str] | None = None, where: Where | None = None) -> pa.Table:
        """Return the kept documents as an Arrow table: crawled pages, then pages from imported archives.

        Unknown values are null, dates have a date type, and times are in UTC.

        Parameters
        ----------
        columns
            Columns to return, all if None.
        where
            Conditions with the names of the flags of `thresher export`: {"host": ["example.cz"], "since": "2024"}.
            With conditions, documents with an opt-out from text mining are left out unless `opted_out` is one of
            them. None returns all documents.
        """
        if where is None:
            return super().documents(columns)
        chosen = document_filter(where)
        schema = corpus_files.selected_schema("docs", columns)
        needed = None if columns is None else list(dict.fromkeys([*columns, *chosen.columns]))
        batches = (
            batch.filter(pa.array([not reason for reason in chosen.reasons(batch)], pa.bool_()))
            for batch in self.batches("docs", needed)
        )
        return pa.Table.from_batches((batch.select(schema.names) for batch in batches), schema)

    def import_files(
        self,
        files: str | Path | Iterable[str | Path],
        *,
        format: str | None = None,
        attributes: Sequence[str] | str = (),
        document: str = "",
        entities: bool = False,
        text_column: str = "text",
        split: Literal["", "line"] = "",
        processes: int = 0,
        progress: Progress = lambda _: None,
    ) -> ImportReport:
        """Import archives of other crawlers, saved pages and corpora; skip files that were imported before.

        Parameters
        ----------
        files
            Files, packed or not, and folders of saved pages.
        format
            vertical, text, conllu, tei, jsonl, parquet, warc or html; if None, names and content decide.
        attributes
            vertical: names of the columns, such as "word,tag,lemma".
        document
            vertical: tag of documents.
        entities
            vertical: decode the entities of XML.
        text_column
            jsonl, parquet: field or column that holds the text.
        split
            text: "line" makes every line a document.
        processes
            warc, html: processes that read pages; 0 lets the machine decide.
        progress
            Called with the progress: bytes read, documents taken, the file being read.

        Raises
        ------
        DataError
            Some files could not be imported; all others were.
        """
        from thresher.importing.run import import_files

        names = attributes.split(",") if isinstance(attributes, str) else attributes
        return import_files(
            self.directory,
            [Path(path) for path in several(files)],
            format=format,
            attributes=[name.strip() for name in names if name.strip()] or None,
            document=document,
            entities=entities,
            text_column=text_column,
            split=split,
            processes=processes,
            progress=progress,
        )

    def index(
        self,
        annotator: str | None = None,
        *,
        rebuild: bool = False,
        order: str = "",
        processes: int = 0,
        lowercase: bool = True,
        opted_out: bool = False,
        progress: Callable[[int], None] = lambda _: None,
    ) -> IndexChanges:
        """Make the corpus searchable, or bring its index up to date; return the numbers of changes.

        Parameters
        ----------
        annotator
            plain, simplemma, spacy … or module:function; if None, as before, or the best one for the language.
        rebuild
            Index all documents again; the old index answers meanwhile.
        order
            Order of documents and hits: quality, authority, recency, length or input.
        processes
            Processes that annotate; 0 lets the machine decide.
        lowercase
            Give tokens the attribute lc.
        opted_out
            Include pages with an objection to machine learning or data mining.
        progress
            Called with the number of tokens added.
        """
        from thresher.search.index.update import update

        return update(
            self.directory,
            annotator=annotator or "",
            rebuild=rebuild,
            order=order,
            processes=processes,
            lowercase=lowercase,
            opted_out=opted_out,
            progress=progress,
        )

    def process(
        self,
        *,
        step: str = "",
        engine: str = "local",
        processes: int = 0,
        retry_failed: bool = False,
        deadline: float | str = "6h",
        progress: Callable[[StageProgress], None] = lambda _: None,
    ) -> Run:
        """Run the recipe in corpus.toml; results that exist are not computed again.

        Parameters
        ----------
        step
            Stop after this step.
        engine
            "local", "ray" or "ray:HOST:PORT".
        processes
            Processes on this machine; 0: one for each processor.
        retry_failed
            Try tasks again that failed too often.
        deadline
            Time limit of one task, in seconds or as "6h".
        progress
            Called with the progress of each stage.
        """
        from thresher.pipeline.runs.run import process
        from thresher.workers import registry

        chosen = registry.engine(engine, processes)
        try:
            return process(
                self.directory,
                chosen,
                engine_name=engine,
                last_step=step,
                retry_failed=retry_failed,
                deadline=seconds(deadline),
                progress=progress,
            )
        finally:
            chosen.close()

    def export(
        self,
        path: str | Path | BinaryIO,
        *,
        format: str | None = None,
        lang: Sequence[str] | str = (),
        min_language_share: float = 0.0,
        max_badness: float | None = None,
        max_suspicion: float = 1.0,
        min_chars: int = 0,
        host: Sequence[str] | str = (),
        not_host: Sequence[str] | str = (),
        tld: Sequence[str] | str = (),
        since: str = "",
        until: str = "",
        license: Sequence[str] | str = (),
        opted_out: bool = False,
        keep_unknown: bool = False,
        processed: bool = False,
        run: int | None = None,
        annotator: str = "",
        processes: int = 0,
    ) -> ExportReport:
        """Write documents to a file in another format; the file gets its name when it is whole.

        Parameters
        ----------
        path
            File to write, or a folder for "huggingface"; .gz and .zst compress. Or an open binary file.
        format
            jsonl, parquet, txt, vertical, conllu, tei, huggingface or wacz; if None, the name of the file decides.
        lang, min_language_share, max_badness, max_suspicion, min_chars, host, not_host, tld, since, until, license
            Conditions that documents must meet, as for `thresher export`.
        opted_out
            Include documents with an opt-out from text mining.
        keep_unknown
            Include documents for which a value in a condition is unknown.
        processed, run
            Pages as the last run of `process`, or the run of a number, left them.
        annotator, processes
            vertical, conllu, tei: the annotator, and the number of processes that annotate.

        >>> corpus.export("czech.jsonl.gz", max_badness=10).documents <= len(corpus)
        True
        """
        from thresher.exporting.registry import export, format_of

        source: corpus_files.CorpusFiles = self
        if processed or run is not None:
            from thresher.pipeline.runs.results import processed as result_of

            source = result_of(self.directory, run)
        output = Path(path) if isinstance(path, str | Path) else path
        where = document_filter(
            {
                "lang": lang, "min_language_share": min_language_share, "max_badness": max_badness,
                "max_suspicion": max_suspicion, "min_chars": min_chars, "host": host, "not_host": not_host,
                "tld": tld, "since": since, "until": until, "license": license, "opted_out": opted_out,
                "keep_unknown": keep_unknown,
            }
        )  # fmt: skip
        return export(
            source, format_of(output, format), output, where, annotator=annotator, processes=processes
        )

    @property
    def index_reader(self) -> Index:
        """The index as it is now, for analyses of your own; `index` builds it."""
        from thresher.search.index import manifest
        from thresher.search.searcher import Index

        if self._opened is None or self._opened.manifest != manifest.read(self.directory):
            self._opened = Index(self.directory)
        return self._opened

    def docs(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the kept documents; deprecated, use `documents`."""
        warnings.warn("Corpus.docs() is deprecated; use documents()", DeprecationWarning, stacklevel=2)
        return self.documents(columns)

    def ask(self, function: str, query: str = "", **options: Any) -> ResultTable:
        """Return the table of an analysis; deprecated, use the methods of `search` and of the corpus."""
        warnings.warn(
            "Corpus.ask() is deprecated; use search(cql).freq() and so on, words(), ngrams() …",
            DeprecationWarning,
            stacklevel=2,
        )
        from thresher.search.analysis import FUNCTIONS
        from thresher.search.analysis.tables import one_of

        chosen = FUNCTIONS[one_of(function, FUNCTIONS, "function")]
        index = self.index_reader
        return chosen.run(index, index.search(query) if chosen.needs_query else None, **options)

    def __repr__(self) -> str:
        texts = sum(file.rows for file in imported_files.files(self.directory))
        imported = f", {texts:,} imported texts" if texts else ""
        return f"<Corpus {str(self.directory)!r}, {self.config.language}, {len(self):,} documents{imported}>"

    def _repr_html_(self) -> str:
        """Return the corpus for notebooks: where it is, its language, its size and its newest documents."""
        rows = {"corpus": self.directory, "language": self.config.language, "documents": f"{len(self):,}"}
        cells = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table>{cells}</table>"


def open(directory: str | os.PathLike[str]) -> Corpus:
    """Open a corpus; raise a ThresherError that says how to make one if the directory holds none.

    >>> thresher.open("czech").config.language
    'cs'
    """
    found = corpus_files.open(directory)
    return Corpus(found.directory, found.config)


def several(values: Any) -> list[Any]:
    """Return values as a list; a single text or path is one value."""
    return [values] if isinstance(values, str | Path) else list(values)


def seconds(time: float | str) -> float:
    """Return a duration in seconds, from a number or a text such as "2h"."""
    return duration(time) if isinstance(time, str) else float(time)
