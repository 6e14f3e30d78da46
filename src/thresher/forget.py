"""Documents taken out of a corpus for good: raw pages, tables, queues, imports, index, and what is to come.

In this order, each step whole or not at all:

1. a line in forgotten.jsonl: from now on crawls and imports refuse what was asked;
2. what waits to be visited;
3. the index: deleted at once, then the segments are written anew;
4. imports, file by file, and seeds; archives that were imported are the user's own;
5. WARC files and tables are written anew beside the old ones; one commit makes the new ones count; status.json
   tells readers; the old ones are deleted;
6. results of `thresher process`, all of them: they can be made again, of what is left.

A kill leaves a corpus that can be read and crawled; the same command finishes what was begun.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from thresher.batch.collect import forget_results
from thresher.crawl import forgetting
from thresher.crawl.state import State
from thresher.query import index, manifest
from thresher.query.segment import DOCUMENT
from thresher.store import corpus as corpora
from thresher.store import imports, pages, rewriting, warc
from thresher.store.files import StoreError, adopt, locked, sync_directory
from thresher.store.forgotten import Meant, Wish, write_down
from thresher.store.pages import page_paths
from thresher.store.rewriting import Lengths, Moved
from thresher.store.segments import naming_of

TABLES = ("outcomes", "docs", "links")
NAMES = ("id", "url")  # attributes that a document is known by
_json = msgspec.json.Encoder(order="deterministic")


class Forgot(Struct, frozen=True):
    """How much of what was found, and removed unless it was only asked how much there is."""

    documents: int = 0
    raw: int = 0  # records of WARC files
    outcomes: int = 0
    links: int = 0
    waiting: int = 0  # URLs in queues
    imports: int = 0
    index: int = 0  # documents
    seeds: int = 0


def forget(directory: Path, wish: Wish, *, dry_run: bool = False, now: datetime | None = None) -> Forgot:
    """Remove documents for good, and refuse them from now on.

    >>> forget(Path("czech"), wish(hosts=["blog.example.cz"]), dry_run=True)  # doctest: +SKIP
    Forgot(documents=12, raw=14, outcomes=14, links=310, waiting=3, imports=0, index=12, seeds=0)
    """
    corpora.open(directory)  # that it is one
    meant = Meant(wish)
    with locked(directory):
        books = _Books(directory, meant, read_only=dry_run)
        try:
            found = Forgot(
                **books.found,
                imports=sum(_in_import(file, meant) for file in imports.files(directory))
                + sum(_in_pages(path, meant) for path in page_paths(directory)),
                index=_in_index(directory, meant),
                seeds=len(_seeds(directory)) - len(_other_seeds(directory, meant)),
            )
            if not dry_run:
                write_down(directory, wish, msgspec.structs.asdict(found), now or datetime.now(UTC))
                books.clear_queues()
                _forget_in_index(directory, meant)
                for file in imports.files(directory):
                    if _in_import(file, meant):
                        imports.rewrite_without(file, lambda id, meta: _is_meant(id, meta, meant))
                for path in page_paths(directory):
                    if _in_pages(path, meant):
                        pages.rewrite_without(path, meant.covers)
                _forget_seeds(directory, meant)
                books.forget()
                forget_results(directory)
        finally:
            books.close()
    return found


# the crawl


class _Books:
    """The files and the state of a crawl, if there was one."""

    def __init__(self, directory: Path, meant: Meant, *, read_only: bool) -> None:
        self._directory = directory
        self._meant = meant
        self._state: State | None = None
        self._files: Lengths = {}
        self._numbers: set[int] = set()  # of outcomes that are meant
        self._raw: dict[str, set[int]] = {}  # records that are meant, by file
        self.found: Counter[str] = Counter()
        if not (directory / "state").is_dir():
            if any((directory / table).is_dir() for table in TABLES):
                raise StoreError(
                    f"{directory} has pages but its state is gone ({directory / 'state'}); restore it from a backup"
                )
            return
        self._state = State(directory / "state", read_only=read_only)
        try:
            self._files = forgetting.committed_files(self._state)
            if not read_only:
                self._tidy()  # what one that was killed had begun
            self._look()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._state:
            self._state.close()

    def _of(self, part: str) -> Lengths:
        prefix = f"{part}/"
        return {
            name.removeprefix(prefix): length
            for name, length in self._files.items()
            if name.startswith(prefix)
        }

    def _batches(self, table: str) -> Iterator[pa.RecordBatch]:
        for name, length in self._of(table).items():
            yield from rewriting.segment_batches(self._directory / table / name, length)

    def _look(self) -> None:
        """What there is of what is meant."""
        assert self._state
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
        self.found["waiting"] = forgetting.count_waiting(self._state, self._meant)

    def _meant_rows(self, table: str, batch: pa.RecordBatch) -> pa.Array[Any]:
        if table == "links":
            either: pa.Array[Any] = pc.or_(self._covered(batch, "source"), self._covered(batch, "target"))
            return either
        return self._covered(batch, "url")

    def _covered(self, batch: pa.RecordBatch, column: str) -> pa.Array[Any]:
        """Which rows are meant; every value is looked at once."""
        if column not in batch.schema.names:  # of a segment that was made before there was one
            return pa.array([False] * batch.num_rows, pa.bool_())
        values: Any = batch.column(column)
        meant = [value for value in pc.unique(values).to_pylist() if self._meant.covers(value)]
        covered: pa.Array[Any] = pc.is_in(values, value_set=pa.array(meant, values.type))
        return covered

    def clear_queues(self) -> None:
        """What waits to be visited, and what is known of hosts."""
        if self._state:
            forgetting.clear_queues(self._state, self._meant)

    def forget(self) -> None:
        """Raw pages and tables, with one commit."""
        if self._state is None:
            return
        raw, moved = rewriting.rewrite_warcs(self._directory / "warc", self._of("warc"), self._raw)
        files: Lengths = {f"warc/{name}": length for name, length in raw.items()}
        for table in TABLES:
            lengths = rewriting.rewrite_table(
                self._directory / table,
                self._of(table),
                lambda batch, table=table: self._edited(table, batch, moved),  # type: ignore[misc]
            )
            files.update((f"{table}/{name}", length) for name, length in lengths.items())
        if files != self._files or self._numbers:
            forgetting.commit_files(self._state, files, self._numbers)
            self._files = files
        self._tidy()
        self._state.compact()
        self._state.close()
        State(
            self._directory / "state"
        ).close()  # begins its own books anew, in which first and last keys stand
        self._state = None

    def _edited(self, table: str, batch: pa.RecordBatch, moved: Mapping[str, Moved]) -> pa.RecordBatch:
        """A batch without what is meant; the same one if there is nothing of it."""
        gone = self._meant_rows(table, batch)
        if pc.any(gone).as_py():
            batch = batch.filter(pc.invert(gone))
        if table == "outcomes":
            for column in ("source", "detail"):
                named = self._covered(batch, column)
                if pc.any(named).as_py():
                    batch = rewriting.blanked(batch, column, named)
        return rewriting.relocated(batch, moved)

    def _tidy(self) -> None:
        """Tell readers which files count, and delete the others."""
        if not self._files:
            return
        self._publish()
        adopt(self._directory / "warc", self._of("warc"), warc.NAMING)
        for table in TABLES:
            adopt(self._directory / table, self._of(table), naming_of(table))

    def _publish(self) -> None:
        """status.json with the files that count, and without hosts that are meant."""
        path = self._directory / "status.json"
        try:
            before = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError):
            return  # there was no commit yet that told the world
        hosts = {
            name: [row for row in shown if not self._meant.covers_host(row["host"])]
            if isinstance(shown, list)
            else shown
            for name, shown in before.get("hosts", {}).items()
        }
        status = {**before, "hosts": hosts, "files": self._files}
        if status != before:
            temporary = path.with_name(f"{path.name}.tmp")
            temporary.write_bytes(_json.encode(status))
            temporary.replace(path)
            sync_directory(self._directory)


# all else


def _is_meant(id: str | None, meta: Mapping[Any, Any], meant: Meant) -> bool:
    return meant.covers(id) or meant.covers(meta.get("id")) or meant.covers(meta.get("url"))


def _in_import(file: imports.ImportFile, meant: Meant) -> int:
    return sum(
        _is_meant(id, dict(meta or ()), meant)
        for batch in file.batches(["id", "meta"])
        for id, meta in zip(batch.column("id").to_pylist(), batch.column("meta").to_pylist(), strict=True)
    )


def _in_pages(path: Path, meant: Meant) -> int:
    return sum(
        meant.covers(url) for batch in pages.batches(path, ["url"]) for url in batch.column(0).to_pylist()
    )


def _in_index(directory: Path, meant: Meant) -> int:
    if manifest.read(directory) is None:
        return 0
    count = 0
    _, segments = manifest.open_segments(directory)
    for segment in segments:
        table = segment.table(DOCUMENT)
        columns = [table.column(name).to_pylist() for name in NAMES if name in table.column_names]
        meant_rows = {row for column in columns for row, value in enumerate(column) if meant.covers(value)}
        count += len(meant_rows.difference(segment.deleted.tolist()))
    return count


def _forget_in_index(directory: Path, meant: Meant) -> None:
    if manifest.read(directory) is not None:
        with manifest.writing(directory) as writer:
            index.delete_where(writer, NAMES, meant.covers)
            index.purge(writer)


def _seeds(directory: Path) -> list[str]:
    path = directory / "seeds.txt"
    return path.read_text("utf-8").splitlines() if path.exists() else []


def _other_seeds(directory: Path, meant: Meant) -> list[str]:
    return [url for url in _seeds(directory) if not meant.covers(url)]


def _forget_seeds(directory: Path, meant: Meant) -> None:
    others = _other_seeds(directory, meant)
    if others != _seeds(directory):
        path = directory / "seeds.txt"
        temporary = path.with_name(f"{path.name}.tmp")
        temporary.write_text("".join(f"{url}\n" for url in others), "utf-8")
        temporary.replace(path)
        sync_directory(directory)
