"""Erasure: documents are removed from a corpus for good, from raw pages, tables, queues, imports and the index.

The steps come in this order, and each is atomic:

1. The request is logged in forgotten.jsonl; from now on crawls and imports refuse the documents.
2. URLs are removed from the queues.
3. Documents of the index are marked as deleted, then the segments are rewritten.
4. Imports are rewritten file by file, and seeds; the archives that were imported belong to the user and stay.
5. WARC files and tables are rewritten beside the old ones. One commit makes the new ones valid, status.json names
   them for readers, and the old ones are deleted. Shards are done one by one, and old epochs are deleted last.
6. All results of `thresher process` are deleted: they can be computed again from the remaining documents.

A kill leaves a corpus that can be read and crawled; the same command, given again, finishes the erasure.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from thresher.crawler import erase
from thresher.crawler.storage.crawl_writer import commit_files, committed_files
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.errors import DataError
from thresher.files.durable_files import adopt, locked, replace
from thresher.pipeline.runs.collect import forget_results
from thresher.search.index import manifest
from thresher.search.index import writer as index
from thresher.search.index.segment import DOCUMENT
from thresher.store import corpus_files as corpora
from thresher.store import imported_files, rewrite, shard_layout, warc
from thresher.store.checked_files import json_file
from thresher.store.erasure_log import ErasureMatcher, ErasureRequest, log_request, names_of_document
from thresher.store.imported_files import page_paths
from thresher.store.rewrite import Lengths, MovedRecords
from thresher.store.shard_layout import Shard
from thresher.store.table_segments import naming_of
from thresher.urls import host_in

TABLES = ("outcomes", "docs", "links")
_json = msgspec.json.Encoder(order="deterministic")


class ErasureReport(Struct, frozen=True):
    """Numbers of records that were found, and removed unless it was a dry run."""

    documents: int = 0
    raw: int = 0  # records of WARC files
    outcomes: int = 0
    links: int = 0
    waiting: int = 0  # URLs in queues
    imports: int = 0
    index: int = 0  # documents
    seeds: int = 0


def forget(
    directory: Path, request: ErasureRequest, *, dry_run: bool = False, now: datetime | None = None
) -> ErasureReport:
    """Remove documents for good, and refuse them from now on.

    >>> forget(Path("czech"), erasure_request(hosts=["blog.example.cz"]), dry_run=True)  # doctest: +SKIP
    ErasureReport(documents=12, raw=14, outcomes=14, links=310, waiting=3, imports=0, index=12, seeds=0)
    """
    config = corpora.open(directory).config
    matcher = ErasureMatcher(request)
    with contextlib.ExitStack() as held:
        held.enter_context(locked(directory))
        parts = shard_layout.parts(directory, config)
        for part in parts if config.shards.count else []:
            held.enter_context(locked(part))  # a shard may have outlived its crawl
        crawls = [
            _CrawlFiles(part, shard_layout.shard_of(part, config), matcher, read_only=dry_run)
            for part in parts
        ]
        report = ErasureReport(
            **sum((crawl.found for crawl in crawls), Counter[str]()),
            imports=sum(_in_import(file, matcher) for file in imported_files.files(directory))
            + sum(_in_pages(path, matcher) for path in page_paths(directory)),
            index=_in_index(directory, matcher),
            seeds=len(_seeds(directory)) - len(_other_seeds(directory, matcher)),
        )
        if not dry_run:
            corpora.upgrade(directory)
            log_request(directory, request, msgspec.structs.asdict(report), now or datetime.now(UTC))
            for crawl in crawls:
                crawl.clear_queues()
            _forget_in_index(directory, matcher)
            for file in imported_files.files(directory):
                if _in_import(file, matcher):
                    imported_files.rewrite_without(file, matcher.covers_document)
            for path in page_paths(directory):
                if _in_pages(path, matcher):
                    imported_files.rewrite_pages_without(path, matcher.covers)
            _forget_seeds(directory, matcher)
            for crawl in crawls:
                crawl.forget()
            shard_layout.sweep(directory, config)
            forget_results(directory)
    return report


def ids_of_nothing(directory: Path, request: ErasureRequest) -> list[str]:
    """Return the names among the URLs of a request that are neither URLs nor ids of imported documents."""
    left = {name for name in request.urls if not host_in(name)}
    for file in imported_files.files(directory) if left else ():
        for id, meta in _documents(file):
            left.difference_update([id, *names_of_document(id, meta)])
    return sorted(left)


# the crawl


class _CrawlFiles:
    """The files and the state of a crawl, or of one of its shards; there may be none."""

    def __init__(self, part: Path, shard: Shard, matcher: ErasureMatcher, *, read_only: bool) -> None:
        self._directory = part
        self._shard = shard
        self._matcher = matcher
        self._folder = shard_layout.state_folder(part)
        self._files: Lengths = {}
        self._numbers: set[int] = set()  # of outcomes to remove
        self._raw: dict[str, set[int]] = {}  # offsets of records to remove, by file
        self.found: Counter[str] = Counter()
        if not self._folder.is_dir():
            if any((part / table).is_dir() for table in TABLES):
                raise DataError(
                    f"{part} has pages but its state is gone ({self._folder}); restore it from a backup"
                )
            return
        with self._state(read_only=read_only) as state:
            self._files = committed_files(state)
            if not read_only:
                self._tidy()  # an erasure that was killed may have left files
            self._look(state)

    @contextlib.contextmanager
    def _state(self, *, read_only: bool = False) -> Iterator[KeyValueState]:
        """Open the state; it is open only while it is needed, since there may be many shards."""
        with contextlib.closing(KeyValueState(self._folder, read_only=read_only)) as state:
            yield state

    def _of(self, part: str) -> Lengths:
        prefix = f"{part}/"
        return {
            name.removeprefix(prefix): length
            for name, length in self._files.items()
            if name.startswith(prefix)
        }

    def _batches(self, table: str) -> Iterator[pa.RecordBatch]:
        for name, length in self._of(table).items():
            yield from rewrite.segment_batches(self._directory / table / name, length)

    def _look(self, state: KeyValueState) -> None:
        """Find the records to remove, and count them."""
        for table in TABLES:
            for batch in self._batches(table):
                rows = batch.filter(self._meant_rows(table, batch))
                self.found["documents" if table == "docs" else table] += rows.num_rows
                if table == "outcomes":
                    numbers: list[Any] = rows.column("seq").to_pylist()
                    self._numbers.update(numbers)
                if table != "links":
                    places = (rows.column(name).to_pylist() for name in ("warc_file", "warc_offset"))
                    for file, offset in zip(*places, strict=True):
                        if file is not None and f"warc/{file}" in self._files:
                            self._raw.setdefault(file, set()).add(offset)
        self.found["raw"] = sum(map(len, self._raw.values()))
        self.found["waiting"] = erase.count_waiting(state, self._matcher)

    def _meant_rows(self, table: str, batch: pa.RecordBatch) -> pa.Array[Any]:
        if table == "links":
            either: pa.Array[Any] = pc.or_(self._covered(batch, "source"), self._covered(batch, "target"))
            return either
        return self._covered(batch, "url")

    def _covered(self, batch: pa.RecordBatch, column: str) -> pa.Array[Any]:
        """Return a mask of the rows with a covered value; every distinct value is tested once."""
        if column not in batch.schema.names:  # the segment is older than the column
            return pa.array([False] * batch.num_rows, pa.bool_())
        values: Any = batch.column(column)
        meant = [value for value in pc.unique(values).to_pylist() if self._matcher.covers(value)]
        covered: pa.Array[Any] = pc.is_in(values, value_set=pa.array(meant, values.type))
        return covered

    def clear_queues(self) -> None:
        """Remove URLs from the queues, and hosts from the state."""
        if self._folder.is_dir():
            with self._state() as state:
                erase.clear_queues(state, self._matcher)

    def forget(self) -> None:
        """Remove raw pages and rows of tables with one commit."""
        if not self._folder.is_dir():
            return
        raw, moved = rewrite.rewrite_warcs(self._directory / "warc", self._of("warc"), self._raw, self._shard)
        files: Lengths = {f"warc/{name}": length for name, length in raw.items()}
        for table in TABLES:
            lengths = rewrite.rewrite_table(
                self._directory / table,
                self._of(table),
                lambda batch, table=table: self._edited(table, batch, moved),  # type: ignore[misc]
                self._shard,
            )
            files.update((f"{table}/{name}", length) for name, length in lengths.items())
        with self._state() as state:
            if files != self._files or self._numbers:
                commit_files(state, files, self._numbers)
                self._files = files
            self._tidy()
            state.compact()
        with self._state():
            pass  # opening writes a new manifest; the old one held the first and last keys of its files

    def _edited(self, table: str, batch: pa.RecordBatch, moved: Mapping[str, MovedRecords]) -> pa.RecordBatch:
        """Return a batch without covered rows; the same object if there are none."""
        gone = self._meant_rows(table, batch)
        if pc.any(gone).as_py():
            batch = batch.filter(pc.invert(gone))
        if table == "outcomes":
            for column in ("source", "detail"):
                named = self._covered(batch, column)
                if pc.any(named).as_py():
                    batch = rewrite.blanked(batch, column, named)
        return rewrite.relocated(batch, moved)

    def _tidy(self) -> None:
        """Name the valid files for readers, and delete the others."""
        if not self._files:
            return
        self._publish()
        adopt(self._directory / "warc", self._of("warc"), warc.NAMING)
        for table in TABLES:
            adopt(self._directory / table, self._of(table), naming_of(table))

    def _publish(self) -> None:
        """Write status.json with the valid files and without covered hosts."""
        path = self._directory / "status.json"
        try:
            before = json_file(path, dict[str, Any])
        except (OSError, DataError):
            return  # there was no commit yet
        hosts = {
            name: [row for row in shown if not self._matcher.covers_host(row["host"])]
            if isinstance(shown, list)
            else shown
            for name, shown in before.get("hosts", {}).items()
        }
        status = {**before, "hosts": hosts, "files": self._files}
        if status != before:
            replace(path, _json.encode(status))


# imports, index and seeds


def _documents(file: imported_files.ImportFile) -> Iterator[tuple[str, dict[Any, Any]]]:
    """Yield id and metadata of every document of an import."""
    for batch in file.batches(["id", "meta"]):
        ids, known = (batch.column(name).to_pylist() for name in ("id", "meta"))
        yield from zip(ids, (dict(meta or ()) for meta in known), strict=True)


def _in_import(file: imported_files.ImportFile, matcher: ErasureMatcher) -> int:
    return sum(matcher.covers_document(id, meta) for id, meta in _documents(file))


def _parts(directory: Path, matcher: ErasureMatcher) -> frozenset[str]:
    """Return ids of imported documents that are covered only through the id of their first part."""
    return frozenset(
        id
        for file in imported_files.files(directory)
        for id, meta in _documents(file)
        if not meta.get("id") and not matcher.covers(id) and matcher.covers_document(id, meta)
    )


def _in_pages(path: Path, matcher: ErasureMatcher) -> int:
    return sum(
        matcher.covers(url)
        for batch in imported_files.page_batches(path, ["url"])
        for url in batch.column(0).to_pylist()
    )


def _tests(directory: Path, matcher: ErasureMatcher) -> dict[str, Callable[[str], bool]]:
    """Return a test for each attribute by which a document of the index may be covered."""
    parts = _parts(directory, matcher)
    return {
        "id": lambda id: matcher.covers(id) or id in parts,
        "url": matcher.covers,
        "host": matcher.covers_host,
    }


def _in_index(directory: Path, matcher: ErasureMatcher) -> int:
    if manifest.read(directory) is None:
        return 0
    count = 0
    tests = _tests(directory, matcher)
    _, segments = manifest.open_segments(directory)
    for segment in segments:
        table = segment.table(DOCUMENT)
        meant_rows = {
            row
            for name, is_meant in tests.items()
            if name in table.column_names
            for row, value in enumerate(table.column(name).to_pylist())
            if is_meant(value or "")
        }
        count += len(meant_rows.difference(segment.deleted.tolist()))
    return count


def _forget_in_index(directory: Path, matcher: ErasureMatcher) -> None:
    if manifest.read(directory) is not None:
        tests = _tests(directory, matcher)
        with manifest.writing(directory) as writer:
            for name, is_meant in tests.items():
                index.delete_where(writer, [name], is_meant)
            index.purge(writer)


def _seeds(directory: Path) -> list[str]:
    path = directory / "seeds.txt"
    return path.read_text("utf-8").splitlines() if path.exists() else []


def _other_seeds(directory: Path, matcher: ErasureMatcher) -> list[str]:
    return [url for url in _seeds(directory) if not matcher.covers(url)]


def _forget_seeds(directory: Path, matcher: ErasureMatcher) -> None:
    others = _other_seeds(directory, matcher)
    if others != _seeds(directory):
        replace(directory / "seeds.txt", "".join(f"{url}\n" for url in others).encode())
