"""Every function runs, says whether its result is whole, and can be written to files and read again."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.corpora.query_corpora import Corpus, random_corpus
from thresher.search.analysis import FUNCTIONS, AnalysisError, ResultTable
from thresher.search.analysis.export import write
from thresher.search.analysis.subcorpora import define
from thresher.search.cql.parser import parse
from thresher.search.index.manifest import writing
from thresher.search.index.segment_builder import IndexDocument
from thresher.search.index.writer import add
from thresher.search.searcher import Index

COLUMNS = {
    "kwic": "number first last document left match right",
    "count": "hits per_million documents tokens",
    "freq": "value count share per_million",
    "table": "value1 value2 count",
    "collocates": "value joint count expected logdice mi mi3 t_score log_likelihood",
    "distribution": "value hits tokens per_million",
    "dispersion": "hits documents arf parts parts_with_hits juilland_d dp dp_norm",
    "words": "value count per_million documents arf",
    "ngrams": "value count per_million",
    "keywords": "value count reference_count per_million reference_per_million keyness log_likelihood log_ratio "
    "percent_difference",
    "retrieve": "score rarity found document first text",
    "subcorpora": "name documents tokens where query",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "distribution": {"by": "doc_year"},
    "keywords": {"within": "late"},
    "retrieve": {"words": ["a"]},
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = random_corpus(tmp_path_factory.mktemp("corpus"), 4)
    define(made.index, "late", where={"doc_year": ">=2005"})
    return made


@pytest.fixture(params=FUNCTIONS)
def result(request: pytest.FixtureRequest, corpus: Corpus) -> ResultTable:
    function = FUNCTIONS[request.param]
    search = corpus.index.search('[lemma="a"] []') if function.needs_query else None
    return function.run(corpus.index, search, **OPTIONS.get(function.name, {}))


def test_every_function_has_a_row_with_a_summary() -> None:
    assert FUNCTIONS.keys() == COLUMNS.keys()
    for name, function in FUNCTIONS.items():
        assert function.name == name
        assert function.summary
        assert function.run.__doc__
        assert bool(function.example) == function.needs_query
        if function.example:
            parse(function.example)


def test_every_function_gives_its_columns_and_says_whether_it_is_whole(
    result: ResultTable, request: Any
) -> None:
    name = request.node.callspec.params["result"]
    assert list(result.columns) == COLUMNS[name].split()
    assert result.records()
    assert result.is_whole == (not result.stopped)


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.needs_query])
def test_a_function_of_hits_that_were_not_all_found_is_not_whole(corpus: Corpus, name: str) -> None:
    search = corpus.index.search("[]", is_cancelled=lambda: True)
    table = FUNCTIONS[name].run(corpus.index, search, **OPTIONS.get(name, {}))
    assert "the search was cancelled" in table.stopped


def test_every_table_is_the_same_after_it_was_written_and_read(result: ResultTable, tmp_path: Path) -> None:
    rows = result.records()
    for name in ("csv", "jsonl", "parquet"):
        write(result, tmp_path / f"table.{name}", name)
    assert [json.loads(line) for line in (tmp_path / "table.jsonl").read_text("utf-8").splitlines()] == rows
    stored = pq.read_table(tmp_path / "table.parquet")
    assert stored.to_pylist() == rows
    assert stored.schema.metadata[b"stopped"].decode() == result.stopped
    assert (stored.schema.metadata[b"is_whole"] == b"true") == result.is_whole
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    assert tuple(header) == result.columns
    assert lines == [["" if cell is None else str(cell) for cell in row.values()] for row in rows]


def test_segments_may_know_different_things(tmp_path: Path) -> None:
    plain = IndexDocument(1, b"a\nb\na\n", ("word",), {"site": "x"}, {})
    rich = IndexDocument(
        2,
        b"\x02s\tid=7\na\tN\tA\n\x03s\n\x02s\nb\tV\tB\na\tN\tA\n\x03s\n",
        ("word", "pos", "lemma"),
        {"year": "1"},
        {"quality": 1},
    )
    with writing(tmp_path) as writer:
        add(writer, [plain, rich])
    index = Index(tmp_path)
    assert len(index.segments) == 2

    def rows(name: str, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
        search = index.search('"a"') if FUNCTIONS[name].needs_query else None
        found = FUNCTIONS[name].run(index, search, **options).records()
        return [tuple(record[column] for column in columns) for record in found]

    lines = rows(
        "kwic", "left", "right", "doc_year", "match_pos", context="s", meta=["doc_year"], attributes=["pos"]
    )
    assert lines == [("", "", "", "")] * 2 + [("", "", "1", "N"), ("b", "", "1", "N")]
    assert rows("kwic", "number", distinct="s") == [(1,), (2,), (3,), (4,)]
    assert rows("freq", "value", "count", by="lemma@match") == [("", 2), ("A", 2)]
    assert rows("freq", "value", "count", by="s_id") == [("", 3), ("7", 1)]
    assert rows("freq", "value", "count", by="doc_year") == [("", 2), ("1", 2)]
    assert rows("distribution", "value", "hits", "tokens", by="doc_year") == [("", 2, 3), ("1", 2, 3)]
    assert rows("words", "value", "count", attribute="lemma") == [("", 3), ("A", 2), ("B", 1)]
    assert rows("ngrams", "value", "count", minimum=1) == [("b a", 2), ("a b", 1)]
    assert rows("collocates", "value", "joint", attribute="lemma", window="s", minimum=1) == [("B", 1)]
    found = rows("retrieve", "text", "quality_rank", words=["a"], unit="s", weights={"quality": 1})
    assert found == [("a", 1), ("b a", 1)]


def as_csv(values: list[Any], **options: bool) -> bytes:
    stream = io.BytesIO()
    write(ResultTable(pa.table({"value": values, "n": [1] * len(values)})), stream, "csv", **options)
    return stream.getvalue()


def test_csv_has_quotes_where_they_must_be_and_ends_lines_as_the_standard_says() -> None:
    assert as_csv(["a", 'b"', "c,", "d\ne", "ř", ""]) == (
        'value,n\r\na,1\r\n"b""",1\r\n"c,",1\r\n"d\ne",1\r\nř,1\r\n,1\r\n'.encode()
    )


def test_a_spreadsheet_is_given_no_formulas_if_asked_for() -> None:
    risky = ["=1+1", "+1", "-1", "@a", "\ta", "\ra", "a="]
    assert as_csv(risky[:1]) == b"value,n\r\n=1+1,1\r\n"
    text = as_csv(risky, spreadsheet=True).decode()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert [row[0] for row in rows[1:]] == [f"'{cell}" for cell in risky[:-1]] + ["a="]
    negative = ResultTable(pa.table({"value": [-1.5]}))
    stream = io.BytesIO()
    write(negative, stream, "csv", spreadsheet=True)
    assert stream.getvalue() == b"value\r\n-1.5\r\n"


def test_an_unknown_format_is_an_error(corpus: Corpus) -> None:
    with pytest.raises(AnalysisError, match="unknown format 'xls'; choose one of csv, tsv, jsonl, parquet"):
        write(ResultTable(pa.table({})), io.BytesIO(), "xls")


def test_a_table_that_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(b"value\r\nold\r\n")
    damaged = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(UnicodeDecodeError):
        write(ResultTable(pa.table({"value": damaged})), file)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [
        ("table.csv", b"value\r\nold\r\n")
    ]
