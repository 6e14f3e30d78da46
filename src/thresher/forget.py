"""Documents taken out of a corpus for good: raw pages, tables, queues, imports, index, and what is to come.

In this order, each step whole or not at all:

1. a line in forgotten.jsonl: from now on crawls and imports refuse what was asked;
2. what waits to be visited;
3. the index: deleted at once, then the segments are written anew;
4. imports, file by file, and seeds; archives that were imported are the user's own;
5. WARC files and tables are written anew beside the old ones; one commit makes the new ones count; status.json
   tells readers; the old ones are deleted; of a crawl in shards, shard by shard, and then epochs that are over;
6. results of `thresher process`, all of them: they can be made again, of what is left.

A kill leaves a corpus that can be read and crawled; the same command finishes what was begun.
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

from thresher.batch.collect import forget_results
from thresher.crawl import forgetting
from thresher.crawl.ledger import committed_files
from thresher.crawl.state import State
from thresher.query import index, manifest
from thresher.query.segment import DOCUMENT
from thresher.store import corpus as corpora
from thresher.store import imports, pages, rewriting, shards, warc
from thresher.store.files import StoreError, adopt, locked, sync_directory
from thresher.store.forgotten import Meant, Wish, names_of_document, write_down
from thresher.store.pages import page_paths
from thresher.store.rewriting import Lengths, Moved
from thresher.store.segments import naming_of
from thresher.store.shards import Shard
from thresher.url import host_in

TABLES = ("outcomes", "docs", "links")
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
    config = corpora.open(directory).config
    meant = Meant(wish)
    with contextlib.ExitStack() as held:
        held.enter_context(locked(directory))
        parts = shards.parts(directory, config)
        for part in parts if config.shards.count else []:
            held.enter_context(locked(part))  # one may have outlived the crawl that it is of
        books = [_Books(part, shards.shard_of(part, config), meant, read_only=dry_run) for part in parts]
        found = Forgot(
            **sum((one.found for one in books), Counter[str]()),
            imports=sum(_in_import(file, meant) for file in imports.files(directory))
            + sum(_in_pages(path, meant) for path in page_paths(directory)),
            index=_in_index(directory, meant),
            seeds=len(_seeds(directory)) - len(_other_seeds(directory, meant)),
        )
        if not dry_run:
            write_down(directory, wish, msgspec.structs.asdict(found), now or datetime.now(UTC))
            for one in books:
                one.clear_queues()
            _forget_in_index(directory, meant)
            for file in imports.files(directory):
                if _in_import(file, meant):
                    imports.rewrite_without(file, meant.covers_document)
            for path in page_paths(directory):
                if _in_pages(path, meant):
                    pages.rewrite_without(path, meant.covers)
            _forget_seeds(directory, meant)
            for one in books:
                one.forget()
            shards.sweep(directory, config)
            forget_results(directory)
    return found


def ids_of_nothing(directory: Path, wish: Wish) -> list[str]:
    """What is asked for by URL, is no URL, and is the id of no imported document either."""
    left = {name for name in wish.urls if not host_in(name)}
    for file in imports.files(directory) if left else ():
        for id, meta in _documents(file):
            left.difference_update([id, *names_of_document(id, meta)])
    return sorted(left)


# the crawl


class _Books:
    """The files and the state of a crawl, or of one of its shards, if there was one."""

    def __init__(self, part: Path, shard: Shard, meant: Meant, *, read_only: bool) -> None:
        self._directory = part
        self._shard = shard
        self._meant = meant
        self._folder = shards.state_folder(part)
        self._files: Lengths = {}
        self._numbers: set[int] = set()  # of outcomes that are meant
        self._raw: dict[str, set[int]] = {}  # records that are meant, by file
        self.found: Counter[str] = Counter()
        if not self._folder.is_dir():
            if any((part / table).is_dir() for table in TABLES):
                raise StoreError(
                    f"{part} has pages but its state is gone ({self._folder}); restore it from a backup"
                )
            return
        with self._state(read_only=read_only) as state:
            self._files = committed_files(state)
            if not read_only:
                self._tidy()  # what one that was killed had begun
            self._look(state)

    @contextlib.contextmanager
    def _state(self, *, read_only: bool = False) -> Iterator[State]:
        """The state, open only while it is needed: there may be many shards."""
        with contextlib.closing(State(self._folder, read_only=read_only)) as state:
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
            yield from rewriting.segment_batches(self._directory / table / name, length)

    def _look(self, state: State) -> None:
        """What there is of what is meant."""
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
        self.found["waiting"] = forgetting.count_waiting(state, self._meant)

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
        if self._folder.is_dir():
            with self._state() as state:
                forgetting.clear_queues(state, self._meant)

    def forget(self) -> None:
        """Raw pages and tables, with one commit."""
        if not self._folder.is_dir():
            return
        raw, moved = rewriting.rewrite_warcs(
            self._directory / "warc", self._of("warc"), self._raw, self._shard
        )
        files: Lengths = {f"warc/{name}": length for name, length in raw.items()}
        for table in TABLES:
            lengths = rewriting.rewrite_table(
                self._directory / table,
                self._of(table),
                lambda batch, table=table: self._edited(table, batch, moved),  # type: ignore[misc]
                self._shard,
            )
            files.update((f"{table}/{name}", length) for name, length in lengths.items())
        with self._state() as state:
            if files != self._files or self._numbers:
                forgetting.commit_files(state, files, self._numbers)
                self._files = files
            self._tidy()
            state.compact()
        with self._state():
            pass  # begins its own books anew, in which first and last keys stand

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


def _documents(file: imports.ImportFile) -> Iterator[tuple[str, dict[Any, Any]]]:
    """Of every document of an import, its id and what is known of it."""
    for batch in file.batches(["id", "meta"]):
        ids, known = (batch.column(name).to_pylist() for name in ("id", "meta"))
        yield from zip(ids, (dict(meta or ()) for meta in known), strict=True)


def _in_import(file: imports.ImportFile, meant: Meant) -> int:
    return sum(meant.covers_document(id, meta) for id, meta in _documents(file))


def _parts(directory: Path, meant: Meant) -> frozenset[str]:
    """Ids of imported documents that are meant, and do not look it: parts of what was asked for by its first."""
    return frozenset(
        id
        for file in imports.files(directory)
        for id, meta in _documents(file)
        if not meta.get("id") and not meant.covers(id) and meant.covers_document(id, meta)
    )


def _in_pages(path: Path, meant: Meant) -> int:
    return sum(
        meant.covers(url) for batch in pages.batches(path, ["url"]) for url in batch.column(0).to_pylist()
    )


def _tests(directory: Path, meant: Meant) -> dict[str, Callable[[str], bool]]:
    """What tells by an attribute that a document of the index is meant."""
    parts = _parts(directory, meant)
    return {
        "id": lambda id: meant.covers(id) or id in parts,
        "url": meant.covers,
        "host": meant.covers_host,
    }


def _in_index(directory: Path, meant: Meant) -> int:
    if manifest.read(directory) is None:
        return 0
    count = 0
    tests = _tests(directory, meant)
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


def _forget_in_index(directory: Path, meant: Meant) -> None:
    if manifest.read(directory) is not None:
        tests = _tests(directory, meant)
        with manifest.writing(directory) as writer:
            for name, is_meant in tests.items():
                index.delete_where(writer, [name], is_meant)
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
