"""Running text: plain files, lines of JSON and tables become documents of paragraphs."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.corpora.exports import exported, make
from support.corpora.imports import brought
from thresher.importing.formats import encoding, source, texts
from thresher.importing.formats.source import ImportFileError
from thresher.selection import DocumentFilter
from thresher.store.imported_files import ImportedDocument

NOT_UTF8 = "a.txt: 2 × a line with bytes that are not UTF-8, replaced by U+FFFD (first in line 2)"


def plain(text: str | bytes, **options: Any) -> list[str | None]:
    return [document.text for document in brought(text, "a.txt", **options)[0]]


def table(columns: dict[str, Any], **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One.\nTwo.\n", "One.\nTwo."),
        ("One,\nstill one.\n\nTwo,\n  still two.\n", "One, still one.\nTwo, still two."),
        ("One.\n \t\nTwo.", "One.\nTwo."),
        ("\n\nOne.\nTwo.\n\n\n", "One.\nTwo."),
        ("One.\r\nTwo.\r\n", "One.\nTwo."),
        ("One,\r\nstill one.\r\n\r\nTwo.", "One, still one.\nTwo."),
        ("\ufeffe\u0301\tx\x00", "é x\ufffd"),
        ("One.\x0cTwo.\u2028Three.", "One.\nTwo.\nThree."),
    ],
)
def test_paragraphs_are_separated_by_blank_lines_or_else_by_lines(text: str, expected: str) -> None:
    assert plain(text) == [expected]


def test_a_file_is_a_document_and_with_split_every_line_is() -> None:
    (document,) = brought("a\n\nb\n", "a.txt")[0]
    assert (document.id, document.meta, document.number) == ("a.txt#1", {}, 1)
    found = brought("a\n\nb\n", "a.txt", split="line")[0]
    assert [(document.id, document.text) for document in found] == [("a.txt#1", "a"), ("a.txt#2", "b")]


LETTER = "Milá babičko,\nžluťoučký kůň je už zdráv.\nA píšu Ti, že přijedu.\n" * 50


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (LETTER.encode("cp1250"), "is not UTF-8: 150 of 150 .* line 1; .*iconv -f CP1250"),
        (
            (LETTER + "x" * 2_000_000 + "\n").encode() + LETTER.encode("cp1250"),
            "is not UTF-8: 150 of 300 lines.* line 152;",
        ),
        (LETTER.encode("utf-16-le"), "seems to be in UTF-16LE; convert it: iconv -f UTF-16LE -t UTF-8 a"),
        (LETTER.encode("utf-16-be"), "seems to be in UTF-16BE"),
        ("Ещё не конец.\n".encode("utf-16-be") * 100, "seems to be in UTF-16BE"),
    ],
)
def test_a_file_in_another_encoding_is_refused_with_the_fix(data: bytes, message: str) -> None:
    for name in ("a.txt", "a.vert"):
        with pytest.raises(ImportFileError, match=rf"^{name} {message}"):
            brought(data, name)


@pytest.mark.parametrize("name", ["a.vert", "a.jsonl", "a.conllu"])
@pytest.mark.parametrize("code", ["cp1250", "utf-16-le"])
def test_another_encoding_is_reported_before_its_consequences(name: str, code: str) -> None:
    with pytest.raises(ImportFileError, match=f"^{name} (is not UTF-8|seems to be in UTF-16LE)"):
        brought(LETTER.encode(code), name)


@given(st.text(st.sampled_from("aé☃😀 \n"), max_size=200), st.integers(1, 30))
def test_utf8_in_any_chunks_is_recognised(text: str, size: int) -> None:
    data = text.encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "MAX_LINE_BYTES", 10)
        verdict = encoding.EncodingCheck()
        for at in range(0, len(data), size):
            verdict.take(data[at : at + size])
        verdict.end()
    assert verdict.fault == ""


def test_a_few_damaged_lines_are_replaced_and_reported() -> None:
    (document,), remarks = brought((LETTER * 2).encode() + b"b\xff\n", "a.txt")
    assert document.text and document.text.endswith("b\ufffd")
    assert remarks == (
        "a.txt: 1 × a line with bytes that are not UTF-8, replaced by U+FFFD (first in line 301)",
    )


@pytest.fixture
def _however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MAX_BAD_LINES", 1.0)


@pytest.mark.usefixtures("_however_many")
def test_bytes_that_are_not_utf8_are_replaced_and_their_lines_counted() -> None:
    for options in ({}, {"split": "line"}):
        _, remarks = brought(b"a\nb\xff\xfe\n\xe2\x82c\n", "a.txt", **options)
        assert remarks == (NOT_UTF8,)
    assert plain(b"a\nb\xff\xfe\n\xe2\x82c\n") == ["a\nb\ufffd\ufffd\n\ufffdc"]


def test_a_long_text_is_cut_between_paragraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MAX_DOCUMENT_BYTES", 100)
    monkeypatch.setattr(source, "CHUNK_BYTES", 16)
    text = "\n\n".join(f"Paragraph {n},\nin two lines." for n in range(20))
    found = brought(text, "a.txt")[0]
    assert [document.id for document in found][:2] == ["a.txt#1", "a.txt#1#2"]
    assert len(found) > 4
    assert "\n".join(document.text or "" for document in found) == "\n".join(
        f"Paragraph {n}, in two lines." for n in range(20)
    )


@given(st.text(st.sampled_from("aé☃😀 \n"), max_size=300))
@example("😀" * 100)
def test_cutting_loses_no_letter_and_breaks_none(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "MAX_DOCUMENT_BYTES", 50)
        patch.setattr(source, "CHUNK_BYTES", 7)
        found = plain(text)
    assert all(len((part or "").encode()) <= 50 for part in found)
    assert "".join("".join(found).split()) == "".join(text.split())  # type: ignore[arg-type]


def test_a_file_without_text_adds_no_document_and_is_reported() -> None:
    assert brought(" \n\n", "a.txt") == ([], ("a.txt: no documents found",))


def test_fields_of_json_become_metadata() -> None:
    fields = {
        "text": "One.\n\nTwo.",
        "id": 7,
        "title": "A\tB",
        "date of": "2001",
        "ok": True,
        "score": 0.5,
        "tags": ["a", {"b": 1}],
        "none": None,
    }
    (document,) = brought("\n" + json.dumps(fields) + "\n\n", "a.jsonl")[0]
    assert (document.id, document.text) == ("7", "One.\nTwo.")
    assert document.meta == {
        "id": "7",
        "title": "A B",
        "date_of": "2001",
        "ok": "true",
        "score": "0.5",
        "tags": '["a",{"b":1}]',
    }


def test_documents_without_text_are_left_out_and_counted() -> None:
    lines = '{"text": null}\n{"text": " "}\n{"text": "a"}\n'
    (document,), remarks = brought(lines, "a.ndjson")
    assert (document.id, document.number) == ("a.ndjson#1", 1)
    assert remarks == ("a.ndjson: 2 × a document without text, left out (first in line 1)",)


def test_the_column_of_the_text_can_be_named() -> None:
    (document,) = brought('{"body": "a", "text": "b"}', "a.jsonl", text_column="body")[0]
    assert (document.text, document.meta) == ("a", {"text": "b"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"', r"a\.jsonl, line 2 is not a JSON object.*repair"),
        ('["a"]', "line 2 is not a JSON object"),
        ('{"text": ' + "[" * 100_000, "line 2 is not a JSON object"),
        (
            '{"body": "a", "title": "b"}',
            r"line 2 has no field 'text'.*--text-column \(other fields: body, title\)",
        ),
        ('{"text": 5}', "line 2 has a 'text' that is not a string"),
        ('{"text": "\\ud800"}', "line 2 is not a JSON object"),
    ],
)
def test_a_bad_line_of_json_is_named_with_the_fix(line: str, message: str) -> None:
    with pytest.raises(ImportFileError, match=message):
        brought('{"text": "fine"}\n' + line + "\n", "a.jsonl")


@pytest.mark.usefixtures("_however_many")
def test_bad_bytes_in_json_are_replaced_and_reported() -> None:
    (document,), remarks = brought(b'{"text": "a\xff"}', "a.jsonl")
    assert document.text == "a\ufffd"
    assert "1 × a line with bytes that are not UTF-8" in remarks[0]


def test_columns_of_a_table_become_metadata() -> None:
    data = table(
        {
            "id": ["x", "y"],
            "text": ["One.\nTwo.", "Three."],
            "year": [2001, None],
            "when": [datetime(2001, 2, 3, tzinfo=UTC), None],
            "tags": [["a"], []],
        }
    )
    first, second = brought(data, "a.parquet")[0]
    assert (first.id, first.text) == ("x", "One.\nTwo.")
    assert first.meta == {"id": "x", "year": "2001", "when": "2001-02-03T00:00:00Z", "tags": '["a"]'}
    assert (second.meta, second.number) == ({"id": "y", "tags": "[]"}, 2)


@pytest.mark.parametrize("name", ["jsonl", "parquet"])
def test_exported_pages_keep_their_metadata_without_bookkeeping(tmp_path: Path, name: str) -> None:
    corpus = make(tmp_path, ["Jen jeden.", "Nechci být v modelu."], pages=[{"badness": 7.5}, {}])
    first, second = brought(exported(corpus, name, DocumentFilter(opted_out=True)), f"a.{name}")[0]
    assert (first.text, second.text) == ("Jen jeden.", "Nechci být v modelu.")
    remark_text = {
        "url": "http://a.cz/0?a=1&b=2",
        "host": "a.cz",
        "domain": "a.cz",
        "fetched": "2026-09-21T14:13:20Z",
        "language": "cs",
        "language_share": "1.0",
        "badness": "7.5",
        "title": 'A "title" <i>',
    }
    assert {key: value for key, value in first.meta.items() if key in remark_text} == remark_text
    assert "opt_out" not in first.meta and second.meta["opt_out"] == "noai"
    assert set(first.meta) <= set(texts.OUR_METADATA)
    assert "Menu" not in str(first.meta)


def test_columns_of_other_tables_stay() -> None:
    line = json.dumps({"text": "a", "paragraphs": 3, "languages": ["cs"], "depth": 1})
    (document,) = brought(line, "a.jsonl")[0]
    assert document.meta == {"paragraphs": "3", "languages": '["cs"]', "depth": "1"}


def test_many_rows_in_many_groups_keep_their_order() -> None:
    data = table(
        {"text": pa.array([f"Text {n}." for n in range(5_000)]).dictionary_encode()}, row_group_size=1_700
    )
    found = brought(data, "a.parquet")[0]
    assert [document.text for document in found] == [f"Text {n}." for n in range(5_000)]
    assert found[-1].number == 5_000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PAR1 no", r"a\.parquet is not a complete Parquet file"),
        (table({"text": ["a"]})[:-20], r"a\.parquet is not a complete Parquet file"),
        (table({"body": ["a"], "n": [1]}), r"has no column 'text' but body, n.*--text-column"),
        (table({"text": [1]}), r"column 'text' is int64, not text.*--text-column"),
    ],
)
def test_a_table_that_cannot_be_used_is_named_with_the_fix(data: bytes, message: str) -> None:
    with pytest.raises(ImportFileError, match=message):
        brought(data, "a.parquet")


def test_a_long_row_is_cut_as_a_long_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MAX_DOCUMENT_BYTES", 30)
    lines = json.dumps({"id": "x", "text": "\n".join(f"Paragraph {n}." for n in range(9))})
    found: list[ImportedDocument] = brought(lines, "a.jsonl")[0]
    assert [document.id for document in found] == ["x", "x#2", "x#3", "x#4", "x#5"]
    assert found[0].text == "Paragraph 0.\nParagraph 1."
