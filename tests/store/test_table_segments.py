"""Segments: every committed row once, through crashes, full disks and sealing."""

import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from thresher.errors import DataError
from thresher.files import durable_files
from thresher.records import Block, LanguageShare, Link, ReadResult, Reply, Verdict
from thresher.store import table_segments
from thresher.store.schemas import DOCS, LINKS, OUTCOMES, document_row, link_columns
from thresher.store.table_segments import TableSegments, read_stream, seal

SMALL = pa.schema({"n": pa.int64(), "text": pa.string()})
NEVER = 1 << 40


def small(
    directory: Path, committed: Mapping[str, int | None] | None = None, seal_bytes: int = NEVER
) -> TableSegments:
    return TableSegments(directory / "docs", SMALL, committed or {}, seal_bytes)


def numbers(directory: Path, committed: Mapping[str, int | None]) -> list[int]:
    """Return the first column of the committed rows, in order."""
    found = []
    for name, length in sorted(committed.items()):
        path = directory / "docs" / name
        if length is None:
            found += pq.read_table(path).column("n").to_pylist()
        else:
            found += [n for batch in read_stream(path, length) for n in batch.column("n").to_pylist()]
    return found


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "docs").iterdir())


def filled(directory: Path, *portions: range) -> TableSegments:
    """Return a table with one flush for each portion of numbers."""
    table = small(directory)
    for portion in portions:
        for n in portion:
            table.append(n, f"text {n}")
        table.flush()
    return table


def test_an_open_segment_is_an_arrow_stream_that_anyone_reads(tmp_path: Path):
    table = filled(tmp_path, range(3), range(3, 5))
    with pa.ipc.open_stream(str(tmp_path / "docs" / "docs-00001.arrows")) as stream:
        assert stream.schema == SMALL
        assert stream.read_all().column("n").to_pylist() == [0, 1, 2, 3, 4]
    assert table.lengths() == {"docs-00001.arrows": (tmp_path / "docs" / "docs-00001.arrows").stat().st_size}


def test_single_rows_and_columns_of_rows_keep_their_order(tmp_path: Path):
    table = small(tmp_path)
    table.append(1, "a")
    table.extend([[2, 3], ["b", "c"]])
    table.append(4, "d")
    assert table.rows == 4
    table.flush()
    assert table.rows == 4
    assert numbers(tmp_path, table.lengths()) == [1, 2, 3, 4]


def test_rows_of_the_wrong_width_are_refused_at_once(tmp_path: Path):
    table = small(tmp_path)
    with pytest.raises(TypeError, match="docs has 2 columns, not 1"):
        table.append(1)
    with pytest.raises(TypeError, match="2 columns of one length"):
        table.extend([[1, 2], ["a"]])
    assert table.rows == 0


def test_a_flush_without_rows_writes_nothing(tmp_path: Path):
    table = small(tmp_path)
    table.flush()
    assert table.lengths() == {}
    assert names(tmp_path) == []


def test_a_stream_continues_after_its_last_commit(tmp_path: Path):
    table = filled(tmp_path, range(3))
    committed = table.lengths()
    table.append(99, "lost")
    table.flush()
    table.close()

    table = small(tmp_path, committed)
    assert table.rows == 3
    table.append(3, "text 3")
    table.flush()
    assert numbers(tmp_path, table.lengths()) == [0, 1, 2, 3]


def test_a_stream_torn_at_any_byte_is_cut_back_to_the_commit(tmp_path: Path):
    table = filled(tmp_path, range(3))
    committed = table.lengths()
    (length,) = committed.values()
    table.append(99, "lost")
    table.flush()
    table.close()
    path = tmp_path / "docs" / "docs-00001.arrows"
    whole = path.read_bytes()
    for size in range(length, len(whole) + 1):
        path.write_bytes(whole[:size])
        table = small(tmp_path, committed)
        table.append(3, "x")
        table.flush()
        assert numbers(tmp_path, table.lengths()) == [0, 1, 2, 3]
        table.close()


def test_a_damaged_stream_is_named(tmp_path: Path):
    table = filled(tmp_path, range(3))
    (length,) = table.lengths().values()
    path = tmp_path / "docs" / "docs-00001.arrows"
    with pytest.raises(DataError, match=r"docs-00001\.arrows is damaged"):
        list(read_stream(path, length - 1))


def test_a_full_stream_is_sealed_into_parquet_and_retired_after_the_commit(tmp_path: Path):
    table = small(tmp_path, seal_bytes=1)
    table.append(0, "a")
    table.seal()
    assert table.lengths() == {"docs-00001.parquet": None}
    assert names(tmp_path) == ["docs-00001.arrows", "docs-00001.parquet"]
    table.retire()
    assert names(tmp_path) == ["docs-00001.parquet"]
    table.append(1, "b")
    table.flush()
    assert numbers(tmp_path, table.lengths()) == [0, 1]


def test_a_stream_is_sealed_once_it_is_full(tmp_path: Path):
    table = filled(tmp_path, range(100))
    (length,) = table.lengths().values()
    table.close()

    full = small(tmp_path, {"docs-00001.arrows": length}, seal_bytes=length)
    full.append(100, "z")
    full.flush()  # full: the next stream is opened, and the first is being sealed
    assert full.lengths().keys() == {"docs-00001.arrows"}
    full.append(101, "next")
    full.seal()
    assert full.lengths() == {"docs-00001.parquet": None, "docs-00002.parquet": None}
    assert numbers(tmp_path, full.lengths()) == list(range(102))


def test_sealing_starts_again_after_a_restart(tmp_path: Path):
    table = small(tmp_path, seal_bytes=1)
    table.append(0, "a")
    table.flush()
    committed = table.lengths()
    table.append(1, "b")
    table.flush()
    table.close()

    table = small(tmp_path, committed, seal_bytes=1)
    table.append(2, "c")
    table.seal()
    table.retire()
    assert numbers(tmp_path, table.lengths()) == [0, 2]
    assert all(length is None for length in table.lengths().values())


@pytest.mark.parametrize(
    "leftover",
    [
        "docs-00001.parquet",
        "docs-00001.parquet.tmp",
        "docs-00001.parquet.0123456789abcdef.tmp",
        "docs-00002.arrows",
    ],
)
def test_uncommitted_files_of_a_crashed_process_are_deleted(tmp_path: Path, leftover: str):
    table = filled(tmp_path, range(3))
    committed = table.lengths()
    table.close()
    (tmp_path / "docs" / leftover).write_bytes(b"half a file")
    table = small(tmp_path, committed)
    assert names(tmp_path) == ["docs-00001.arrows"]
    table.seal()
    assert numbers(tmp_path, table.lengths()) == [0, 1, 2]


def test_a_stream_that_was_sealed_but_not_retired_is_deleted(tmp_path: Path):
    table = filled(tmp_path, range(3))
    table.seal()
    committed = table.lengths()
    table.close()
    assert "docs-00001.arrows" in names(tmp_path)
    table = small(tmp_path, committed)
    assert names(tmp_path) == ["docs-00001.parquet"]
    assert table.rows == 3
    table.append(3, "d")
    table.flush()
    assert numbers(tmp_path, table.lengths()) == [0, 1, 2, 3]


def test_a_failed_sealing_leaves_no_file_and_the_stream_still_counts(tmp_path: Path, monkeypatch):
    table = filled(tmp_path, range(3))

    def full(self, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(table_segments.pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match="No space"):
        table.seal()
    assert names(tmp_path) == ["docs-00001.arrows"]
    assert numbers(tmp_path, table.lengths()) == [0, 1, 2]
    monkeypatch.undo()
    table.append(3, "d")
    table.seal()
    table.retire()
    assert numbers(tmp_path, table.lengths()) == [0, 1, 2, 3]


def test_a_full_disk_loses_no_row_and_doubles_none(tmp_path: Path, monkeypatch):
    table = filled(tmp_path, range(3))
    before = table.lengths()
    table.append(3, "d")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(durable_files.os, "pwrite", full)
    for n in (4, 5):
        with pytest.raises(OSError, match="No space"):
            table.flush()
        assert table.lengths() == before
        table.append(n, "e")
    monkeypatch.undo()
    table.flush()
    assert table.rows == 6
    assert numbers(tmp_path, table.lengths()) == [0, 1, 2, 3, 4, 5]


def test_sealing_holds_a_row_group_at_a_time(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(table_segments, "ROW_GROUP_BYTES", 500)
    table = filled(tmp_path, *(range(n * 50, n * 50 + 50) for n in range(4)))
    table.seal()
    parquet = pq.ParquetFile(tmp_path / "docs" / "docs-00001.parquet")
    assert parquet.num_row_groups == 4
    assert parquet.metadata.row_group(1).column(0).statistics.min == 50
    assert parquet.metadata.row_group(0).column(1).compression == "ZSTD"


def test_a_table_with_more_columns_than_before_begins_a_new_segment(tmp_path: Path):
    table = filled(tmp_path, range(3))
    committed = table.lengths()
    table.close()
    wider = TableSegments(tmp_path / "docs", SMALL.append(pa.field("new", pa.string())), committed, NEVER)
    wider.append(3, "d", "e")
    wider.flush()
    assert numbers(tmp_path, wider.lengths()) == [0, 1, 2, 3]
    assert "docs-00002.arrows" in wider.lengths()
    wider.close()


def test_sealing_that_is_stopped_leaves_no_file(tmp_path: Path):
    table = filled(tmp_path, range(3))
    (length,) = table.lengths().values()
    stop = threading.Event()
    stop.set()
    with pytest.raises(InterruptedError):
        seal(tmp_path / "docs" / "docs-00001.arrows", length, tmp_path / "docs" / "docs-00001.parquet", stop)
    assert names(tmp_path) == ["docs-00001.arrows"]


def page(**changes) -> ReadResult:
    fields = {
        "url": "http://www.a.cz/x",
        "kind": "html",
        "html_bytes": 100,
        "charset_declared": "utf-8",
        "charset": "utf-8",
        "title": "Titulek",
        "text": "Žluťoučký kůň.",
        "blocks": (Block("Menu", 0.9), Block("Žluťoučký kůň.", 0.25)),
        "languages": (LanguageShare("cs", 18, 0.9), LanguageShare("sk", 2, 0.1)),
        "badness": 2.5,
        "links": (Link("http://b.cz/", "B", 0.5, True), Link("http://c.cz/", "", 0.75, False, "nofollow")),
        "raw_hash": b"\x01" * 16,
        "text_hash": b"\xff" * 16,
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "opt_out": ("noai",),
    }
    return ReadResult(**{**fields, **changes})


REPLY = Reply("http://www.a.cz/x", 200, b"", b"", 1_790_000_000.25, 0.1, "192.0.2.7")
VERDICT = Verdict(True, "", "cs", 0.9, 18)


def docs_of(directory: Path, *rows: tuple) -> list[dict]:
    table = TableSegments(directory / "docs", DOCS, {}, NEVER)
    for row in rows:
        table.append(*row)
    table.seal()
    return pq.read_table(directory / "docs" / "docs-00001.parquet").to_pylist()


def test_a_page_becomes_a_row_with_a_value_in_every_column(tmp_path: Path):
    raw = ("thresher-00001.warc.gz", 7)
    (row,) = docs_of(tmp_path, document_row(REPLY, page(), VERDICT, seq=5, depth=2, raw=raw))
    assert list(row) == DOCS.names
    assert row["fetched"].timestamp() == REPLY.fetched
    assert (row["host"], row["domain"]) == ("www.a.cz", "a.cz")
    assert row["text_bytes"] == len("Žluťoučký kůň.".encode())
    assert row["languages"][1] == {"code": "sk", "bytes": 2, "share": 0.1}
    assert row["paragraphs"][1] == {"text": "Žluťoučký kůň.", "boilerplate": 0.25, "language": ""}
    assert (row["text_hash"], row["raw_hash"]) == ("ff" * 16, "01" * 16)
    assert (row["opt_out"], row["warc_file"], row["warc_offset"]) == (["noai"], *raw)
    assert (row["depth"], row["seq"], row["badness"]) == (2, 5, 2.5)


def test_unknown_values_are_null(tmp_path: Path):
    bare = page(badness=None, languages=(), blocks=(), opt_out=())
    (row,) = docs_of(tmp_path, document_row(REPLY, bare, VERDICT, seq=0, depth=0, raw=None))
    assert (row["badness"], row["warc_file"], row["warc_offset"]) == (None, None, None)
    assert (row["languages"], row["paragraphs"], row["opt_out"]) == ([], [], [])


def test_text_that_no_utf8_can_hold_is_replaced_not_refused(tmp_path: Path):
    broken = page(title="a\ud800b", blocks=(Block("c\udfff", 0.5),), opt_out=("\ud800",), text="d\udc00")
    row, other = docs_of(
        tmp_path,
        document_row(REPLY, broken, VERDICT, seq=0, depth=0, raw=None),
        document_row(REPLY, page(), VERDICT, seq=1, depth=0, raw=None),
    )
    assert (row["title"], row["text"], row["opt_out"]) == ("a?b", "d?", ["?"])
    assert row["paragraphs"][0]["text"] == "c?"
    assert other["title"] == "Titulek"


@settings(max_examples=30)
@given(
    texts=st.lists(
        st.tuples(st.text(), st.lists(st.tuples(st.text(), st.floats(0, 1)), max_size=4)),
        min_size=1,
        max_size=5,
    )
)
def test_any_text_comes_back_from_stream_and_parquet(texts):
    with tempfile.TemporaryDirectory() as directory:
        pages = [page(text=text, blocks=tuple(Block(*block) for block in blocks)) for text, blocks in texts]
        rows = [document_row(REPLY, each, VERDICT, seq=n, depth=0, raw=None) for n, each in enumerate(pages)]
        found = docs_of(Path(directory), *rows)
        assert [row["text"] for row in found] == [text for text, _ in texts]
        assert [[(p["text"], p["boilerplate"]) for p in row["paragraphs"]] for row in found] == [
            blocks for _, blocks in texts
        ]


def test_a_table_is_of_one_type_before_and_after_it_is_sealed(tmp_path: Path):
    docs_of(tmp_path, document_row(REPLY, page(), VERDICT, seq=0, depth=0, raw=None))
    assert pq.read_schema(tmp_path / "docs" / "docs-00001.parquet") == DOCS


def test_the_links_of_a_page_become_rows(tmp_path: Path):
    table = TableSegments(tmp_path / "links", LINKS, {}, NEVER)
    table.extend(link_columns(page(), VERDICT, [0.5, 0.25], [0.75, None]))
    table.extend(link_columns(page(links=(), badness=None), VERDICT, [], []))
    table.seal()
    rows = pq.read_table(tmp_path / "links" / "links-00001.parquet").to_pylist()
    assert list(rows[0]) == LINKS.names
    assert [row["target"] for row in rows] == ["http://b.cz/", "http://c.cz/"]
    assert [(row["in_text"], row["rel"], row["weight"], row["chance"]) for row in rows] == [
        (True, "", 0.5, 0.75),
        (False, "nofollow", 0.25, None),
    ]
    assert {(row["source"], row["source_badness"], row["source_kept"]) for row in rows} == {
        ("http://www.a.cz/x", 2.5, True)
    }


def test_the_columns_that_scripts_depend_on_are_there():
    outcomes = "seq url host domain time status outcome reason bytes text_bytes language weight depth source"
    assert OUTCOMES.names[:14] == outcomes.split()
    links = "source target anchor boilerplate in_text rel source_badness source_kept weight"
    assert links.split() == LINKS.names[:9]
    docs = (
        "url host domain fetched status charset_declared charset language language_share language_bytes "
        "languages badness title text paragraphs html_bytes text_bytes text_hash license opt_out warc_file "
        "warc_offset"
    )
    assert DOCS.names[:22] == docs.split()


class SegmentsLife(RuleBasedStateMachine):
    """Every committed row is there exactly once, in order, after any number of crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.committed: dict[str, int | None] = {}
        self.saved: list[int] = []
        self.added: list[int] = []
        self.count = 0
        self.open()

    def open(self) -> None:
        self.table = small(self.directory, self.committed, seal_bytes=2_500)

    def take(self, count: int) -> list[int]:
        fresh = list(range(self.count, self.count + count))
        self.count += count
        self.added += fresh
        return fresh

    @rule()
    def append(self) -> None:
        (n,) = self.take(1)
        self.table.append(n, str(n))

    @rule(count=st.integers(0, 40))
    def extend(self, count: int) -> None:
        fresh = self.take(count)
        self.table.extend([fresh, [os.urandom(9).hex() for _ in fresh]])

    @rule()
    def flush_without_commit(self) -> None:
        self.table.flush()

    @rule()
    def seal_without_commit(self) -> None:
        self.table.seal()

    @rule(seal=st.booleans(), retire=st.booleans())
    def commit(self, seal: bool, retire: bool) -> None:
        if seal:
            self.table.seal()
        else:
            self.table.flush()
        self.committed = self.table.lengths()
        self.saved, self.added = self.saved + self.added, []
        if retire:
            self.table.retire()

    @rule()
    def flush_onto_a_full_disk(self) -> None:
        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(durable_files.os, "pwrite", full)
            try:
                self.table.flush()
            except OSError as error:
                assert error.errno == errno.ENOSPC

    @rule()
    def crash(self) -> None:
        self.table.close()
        self.added = []
        self.open()
        assert set(names(self.directory)) == set(self.committed)

    @invariant()
    def what_was_committed_is_there_once(self) -> None:
        assert numbers(self.directory, self.committed) == self.saved
        assert self.table.rows == len(self.saved) + len(self.added)

    def teardown(self) -> None:
        self.table.close()
        shutil.rmtree(self.directory)


TestSegmentsLife = pytest.mark.slow(SegmentsLife.TestCase)
TestSegmentsLife.settings = settings(max_examples=30, stateful_step_count=25)
