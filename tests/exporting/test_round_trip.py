"""Exports are imported again with the same tokens, texts and metadata."""

from __future__ import annotations

import io
import json
import re
import tempfile
import unicodedata
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.corpora.exports import TEXT, TEXTS, make, words_of
from support.corpora.imports import bring, words
from thresher.exporting.formats import tei
from thresher.exporting.imported import NOT_IMPORTED, opt_outs_of
from thresher.exporting.registry import FORMATS, export
from thresher.records import Metadata
from thresher.selection import DocumentFilter
from thresher.store import corpus_files as corpora
from thresher.store.corpus_files import CorpusFiles
from thresher.store.imported_files import ImportedDocument, documents
from thresher.store.schemas import DOCS

TEI = f"{{{tei.NAMESPACE}}}"


@pytest.mark.parametrize("name", ["vertical", "conllu", "tei", "jsonl", "parquet"])
@pytest.mark.parametrize("packed", ["", ".zst"])
def test_exported_documents_can_be_imported_again(tmp_path: Path, name: str, packed: str) -> None:
    (tmp_path / "crawled").mkdir()
    crawled = make(tmp_path / "crawled", TEXTS)
    found = there_and_back(crawled, name, tmp_path, packed)
    if name in ("jsonl", "parquet"):
        assert [document.text for document in found] == TEXTS[:2]
    else:
        assert [words(document) for document in found] == [words_of(text) for text in TEXTS[:2]]
    assert found[0].meta["title"] == 'A "title" <i>'
    assert found[0].id == "http://a.cz/0?a=1&b=2" or name in ("jsonl", "parquet")
    again = corpora.open(tmp_path / "corpus")
    second = there_and_back(again, name, tmp_path / "again", packed)
    assert [(one.text, one.tokens) for one in second] == [(one.text, one.tokens) for one in found], "stays so"


def there_and_back(
    crawled: CorpusFiles, name: str, directory: Path, packed: str = "", where: DocumentFilter | None = None
) -> list[ImportedDocument]:
    directory.mkdir(exist_ok=True)
    path = directory / f"out{FORMATS[name].suffix}{packed}"
    done = export(crawled, name, path, where, processes=1)
    options: dict[str, Any] = {}
    if name == "vertical":
        options = {"entities": True, "attributes": done.attributes}
    brought = bring(directory, path.name, path.read_bytes(), **options)
    odd = [remark for remark in brought.remarks if ": not kept: " not in remark]
    assert (brought.documents, odd) == (done.documents, [])
    return list(documents(directory / "corpus"))


@settings(max_examples=30)
@given(st.sampled_from(["vertical", "conllu", "tei"]), TEXT)
def test_any_tokens_come_back(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "crawled").mkdir()
        crawled = make(Path(directory) / "crawled", ["začátek " + text, "opted out"])
        (found,) = there_and_back(crawled, name, Path(directory) / "there")
        expected = [unicodedata.normalize("NFC", word) for word in words_of("začátek " + text)]
    if name == "tei":
        expected = [re.sub("[\ufffe\uffff]", "\ufffd", word) for word in expected]
    assert words(found) == expected


OBJECTIONS = ("noai", "tdm-reservation", "content-signal: /a ai-train=no")


@pytest.mark.parametrize("name", ["vertical", "conllu", "tei", "jsonl", "parquet"])
def test_an_objection_holds_however_often_a_document_comes_back(tmp_path: Path, name: str) -> None:
    (tmp_path / "crawled").mkdir()
    found = make(tmp_path / "crawled", TEXTS, pages=[{}, {}, {"opt_out": OBJECTIONS}])
    for turn in ("first", "second", "third"):
        there_and_back(found, name, tmp_path / turn, where=DocumentFilter(opted_out=True))
        found = corpora.open(tmp_path / turn / "corpus")
        done = export(found, name, io.BytesIO(), processes=1)
        assert (done.documents, done.left_out) == (2, {"opted out": 1})
        *_, last = documents(found.directory)
        assert opt_outs_of(last.meta["opt_out"]) == list(OBJECTIONS)


def test_tei_has_objections_in_an_element_of_their_own(tmp_path: Path) -> None:
    corpus = make(tmp_path, TEXTS, pages=[{}, {"license": "by"}, {"license": "by", "opt_out": OBJECTIONS}])
    out = io.BytesIO()
    export(corpus, "tei", out, DocumentFilter(opted_out=True), processes=1)
    reported = [one.find(f".//{TEI}availability") for one in ElementTree.fromstring(out.getvalue())[1:]]
    assert reported[0] is None
    assert [(child.tag.removeprefix(TEI), child.text) for child in reported[1] or ()] == [("licence", "by")]
    assert [(child.tag.removeprefix(TEI), child.text) for child in reported[2] or ()] == [
        ("licence", "by"),
        ("ab", " ".join(OBJECTIONS)),
    ]


SAID = (
    *("url", "host", "domain", "title", "author", "published", "modified", "fetched", "site_name", "license"),
    *("opt_out", "language", "language_share", "language_declared", "badness", "suspicion"),
)


def test_metadata_of_imports_have_their_columns_and_types(tmp_path: Path) -> None:
    (tmp_path / "crawled").mkdir()
    about = {"metadata": Metadata("", "K. Čapek", "1920-05-31", "1921-01-25", "R.U.R.", "cs"), "badness": 2.5}
    crawled = make(tmp_path / "crawled", ["a", "b"], pages=[{**about, "opt_out": ("noai",)}, {}])
    row = crawled.documents().to_pylist()[0]
    there_and_back(crawled, "parquet", tmp_path, where=DocumentFilter(opted_out=True))
    out = io.BytesIO()
    export(corpora.open(tmp_path / "corpus"), "parquet", out, DocumentFilter(opted_out=True))
    table = pq.read_table(out)
    assert table.schema.equals(DOCS)
    again = table.to_pylist()[0]
    for name in SAID:
        assert again[name] == (None if row[name] == "" else row[name]), name
    assert all(again[name] is None for name in NOT_IMPORTED - {"text", "text_bytes"})


@pytest.mark.parametrize(
    ("said", "column", "value"),
    [
        ({"badness": "3.5"}, "badness", 3.5),
        ({"badness": "nan"}, "badness", None),
        ({"badness": "low"}, "badness", None),
        ({"status": 200}, "status", 200),
        ({"status": 1 << 40}, "status", None),
        ({"status": "1" * 5_000}, "status", None),
        ({"fetched": "2024-05-31T10:00:00+02:00"}, "fetched", datetime(2024, 5, 31, 8, tzinfo=UTC)),
        ({"fetched": "2024-05-31"}, "fetched", datetime(2024, 5, 31, tzinfo=UTC)),
        ({"fetched": "0001-01-01T00:00:00+02:00"}, "fetched", None),
        ({"fetched": "yesterday"}, "fetched", None),
        ({"languages": [{"code": "cs", "bytes": 3, "share": 1}]}, "languages",
         [{"code": "cs", "bytes": 3, "share": 1.0}]),
        ({"languages": ["cs"]}, "languages", None),
        ({"languages": {"cs": 1}}, "languages", None),
        ({"opt_out": ["noai", ""]}, "opt_out", ["noai"]),
        ({"opt_out": []}, "opt_out", None),
        ({"author": "K. Č."}, "author", "K. Č."),
        ({"date": "1920-05-31"}, "published", date(1920, 5, 31)),
        ({"date": "1920"}, "published", None),
        ({"licence": "by"}, "license", "by"),
        ({"host": "Žlu.CZ."}, "host", "xn--lu-1va.cz"),
        ({"url": "HTTP://Blog.a.cz?p=1"}, "domain", "a.cz"),
        ({"seq": 7, "warc_file": "x.warc.gz"}, "seq", None),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_its_column_is_null(
    tmp_path: Path, said: dict[str, Any], column: str, value: Any
) -> None:
    bring(tmp_path, "a.jsonl", json.dumps({**said, "text": "a"}))
    out = io.BytesIO()
    export(corpora.open(tmp_path / "corpus"), "parquet", out, DocumentFilter(opted_out=True))
    assert pq.read_table(out).column(column).to_pylist() == [value]
