"""Rewriting of tables and WARC files: other rows keep their order, and a crawl continues with them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.files.durable_files import adopt
from thresher.records import Reply
from thresher.store import rewrite, warc
from thresher.store.rewrite import Lengths, rewrite_table, rewrite_warcs, segment_batches
from thresher.store.table_segments import TableSegments, naming_of
from thresher.store.warc import WarcWriter

SCHEMA = pa.schema(
    {"number": pa.int64(), "name": pa.string(), "warc_file": pa.string(), "warc_offset": pa.int64()}
)


def numbers(directory: Path, lengths: Lengths) -> list[int]:
    return [
        number
        for name, length in sorted(lengths.items())
        for batch in segment_batches(directory / name, length)
        for number in batch.column("number").to_pylist()
    ]


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=8),
    st.sets(st.integers(0, 30)),
    st.booleans(),
    st.booleans(),
)
def test_rows_are_dropped_and_the_table_can_continue(
    portions: list[int], gone: set[int], small: bool, seal: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "table"
        table = TableSegments(directory, SCHEMA, {}, 1 if small else 1 << 20)
        count = 0
        for portion in portions:
            for _ in range(portion):
                table.append(count, "x", None, None)
                count += 1
            table.flush()
        if seal:
            table.seal()
        before = table.lengths()
        table.close()

        def edit(batch: pa.RecordBatch) -> pa.RecordBatch:
            drop = pc.is_in(batch.column("number"), value_set=pa.array(sorted(gone), pa.int64()))
            return batch.filter(pc.invert(drop)) if pc.any(drop).as_py() else batch

        after = rewrite_table(directory, before, edit)
        left = [number for number in range(count) if number not in gone]
        assert numbers(directory, before) == list(range(count)), "committed files are not changed"
        assert numbers(directory, after) == left
        assert rewrite_table(directory, before, edit) == after, "an interrupted rewrite can be repeated"
        adopt(directory, after, naming_of("table"))
        again = TableSegments(directory, SCHEMA, after, 1 << 20)
        assert again.rows == len(left)
        again.append(1_000, "y", None, None)
        again.flush()
        assert numbers(directory, again.lengths()) == [*left, 1_000]
        again.close()


def reply(number: int) -> Reply:
    return Reply(
        f"http://a.cz/{number}", 200, b"HTTP/1.1 200 OK\r\n", b"x" * number * 50, 1e9, 0.0, "192.0.2.1"
    )


@settings(max_examples=30)
@given(st.integers(1, 12), st.sets(st.integers(0, 11)), st.integers(1, 2_000))
def test_records_are_dropped_and_rows_lead_to_the_others(count: int, gone: set[int], most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "warc"
        writer = WarcWriter(directory, {}, most, "thresher", {})
        places = [writer.add(reply(number)) for number in range(count)]
        writer.flush()
        before = writer.lengths()
        writer.close()
        dropped: dict[str, set[int]] = {}
        for number in gone & set(range(count)):
            dropped.setdefault(places[number][0], set()).add(places[number][1])
        after, moved = rewrite_warcs(directory, before, dropped)
        rows: Any = {"number": range(count), "name": ["x"] * count}
        rows["warc_file"], rows["warc_offset"] = zip(*places, strict=True)
        batch = rewrite.relocated(pa.RecordBatch.from_pydict(rows, SCHEMA), moved)
        adopt(directory, after, warc.NAMING)
        for row in batch.to_pylist():
            if row["number"] in gone:
                assert row["warc_file"] is None
            else:
                found = warc.read_record(directory / row["warc_file"], row["warc_offset"])
                assert found.url == f"http://a.cz/{row['number']}"
        again = WarcWriter(directory, after, most, "thresher", {})
        name, offset = again.add(reply(99))
        again.flush()
        assert warc.read_record(directory / name, offset).url == "http://a.cz/99"
        lengths = again.lengths()
        again.close()
        urls = [record.url for path in lengths for record in warc.records(directory / path) if record.url]
        expected = [f"http://a.cz/{number}" for number in range(count) if number not in gone]
        assert sorted(urls) == sorted([*expected, "http://a.cz/99"])
