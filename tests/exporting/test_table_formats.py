"""Exports as rows: JSON lines, Parquet, plain text, and a dataset folder."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from support.corpora.exports import TEXTS, exported, make, with_imports
from thresher.exporting.formats import hf_dataset, tables
from thresher.exporting.registry import export
from thresher.selection import DocumentFilter
from thresher.store.corpus_files import CorpusFiles
from thresher.store.schemas import DOCS


@pytest.fixture
def corpus(tmp_path: Path) -> CorpusFiles:
    return make(tmp_path, TEXTS)


def test_jsonl_has_every_column_of_every_document(corpus: CorpusFiles) -> None:
    rows = [json.loads(line) for line in exported(corpus, "jsonl").splitlines()]
    assert [row["text"] for row in rows] == TEXTS[:2]
    assert list(rows[0]) == DOCS.names
    assert rows[0]["fetched"] == "2026-09-21T14:13:20Z"
    assert rows[0]["languages"] == [{"code": "cs", "bytes": 10, "share": 1.0}]
    assert rows[0]["paragraphs"][0] == {"text": "Menu", "boilerplate": 0.9, "language": ""}
    assert rows[0]["badness"] is None


def test_parquet_is_the_table_of_documents_for_everybody(corpus: CorpusFiles, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    export(corpus, "parquet", path, DocumentFilter(opted_out=True))
    assert pq.read_table(path).equals(corpus.documents())
    assert pd.read_parquet(path)["text"].tolist() == TEXTS
    assert pl.read_parquet(path)["url"].to_list() == [f"http://a.cz/{n}?a=1&b=2" for n in range(3)]


def test_row_groups_are_of_a_sensible_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROW_GROUP_BYTES", 5_000)
    corpus = make(tmp_path, ["x" * 900] * 20)
    file = pq.ParquetFile(io.BytesIO(exported(corpus, "parquet")))
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [3] * 6 + [1]


def test_text_has_title_url_and_a_paragraph_per_line_and_a_blank_line_between_documents(
    corpus: CorpusFiles,
) -> None:
    heads = [f'# title: A "title" <i>\n# url: http://a.cz/{n}?a=1&b=2\n' for n in range(2)]
    text = exported(corpus, "txt").decode()
    assert text == f"{heads[0]}Příliš žluťoučký kůň.\nDruhý <b> & odstavec.\n\n{heads[1]}Jen jeden.\n"


def test_a_document_without_text_leaves_no_gap(tmp_path: Path) -> None:
    corpus = make(tmp_path, ["a", " \n\x00", "b\x0bc\u2028d  e\x85", "opted out"], title="A\n\nB")
    out = io.BytesIO()
    done = export(corpus, "txt", out)
    head = b"# title: A B\n# url: http://a.cz/%d?a=1&b=2\n"
    assert out.getvalue() == head % 0 + b"a\n\n" + head % 2 + b"b\nc\nd e\n"
    assert (done.documents, done.left_out) == (2, {"no text": 1, "opted out": 1})


# a dataset folder


def test_a_dataset_folder_has_shards_and_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf_dataset, "ROW_GROUP_BYTES", 2_000)
    monkeypatch.setattr(hf_dataset, "SHARD_BYTES", 8_000)
    (tmp_path / "corpus").mkdir()
    licence = {"license": "https://creativecommons.org/licenses/by-sa/4.0/"}
    texts = [f"Text {n}." for n in range(12)]
    pages = [licence if n % 2 else {"license": "my own\n# rules"} for n in range(12)]
    corpus = make(tmp_path / "corpus", texts, pages=pages)
    done = export(corpus, "huggingface", tmp_path / "set")
    files = sorted((tmp_path / "set" / "data").iterdir())
    assert len(files) > 1
    assert [path.name for path in files] == [
        f"train-{n:05d}-of-{len(files):05d}.parquet" for n in range(len(files))
    ]
    assert done.documents == 11
    table = pl.read_parquet(tmp_path / "set" / "data" / "*.parquet")
    assert table["text"].to_list() == texts[:11]
    assert table.columns == list(hf_dataset.FIELDS)
    _, front, body = (tmp_path / "set" / "README.md").read_text().split("---\n", 2)
    reported = dict(re.findall(r'^(\w+):\n((?:- "[^"]*"\n)+)', front, re.MULTILINE))
    assert reported == {
        "language": '- "cs"\n',
        "license": '- "cc-by-sa-4.0"\n- "other"\n',
        "size_categories": '- "n<1K"\n',
        "task_categories": '- "text-generation"\n',
    }
    assert "    path: data/train-*\n" in front
    assert (
        "11 documents with" in body and "- opted out: 1" in body and "- my own # rules: 6 documents" in body
    )
    for field in hf_dataset.FIELDS:
        assert f"| `{field}` |" in body


def test_the_card_says_where_documents_are_from(tmp_path: Path) -> None:
    corpus = with_imports(tmp_path)
    export(corpus, "huggingface", tmp_path / "both")
    reported = (tmp_path / "both" / "README.md").read_text()
    assert f"{hf_dataset.CRAWLED}: 1. {hf_dataset.TEXTS}: 1.\n" in reported
    assert "; the time of 1 is unknown." in reported and hf_dataset.ARCHIVED not in reported
    export(corpus, "huggingface", tmp_path / "texts", DocumentFilter(tlds=("sk",)))
    reported = (tmp_path / "texts" / "README.md").read_text()
    assert "robots" not in reported and "downloaded between" not in reported
