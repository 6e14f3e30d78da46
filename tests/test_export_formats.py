"""Formats of an export, each read by somebody else's parser, and all of them by our own import."""

from __future__ import annotations

import html
import io
import json
import re
import tempfile
import tracemalloc
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporting import TEXTS, exported, make, with_imports
from importing import bring, words
from thresher.annotate.tokens import tokens
from thresher.export import conllu, dataset, tables, tei, vertical
from thresher.export.choice import Choice, objections_of
from thresher.export.formats import FORMATS, export
from thresher.export.imported import NOT_SAID
from thresher.export.selection import Item, Word, events_of_lines
from thresher.page import Metadata
from thresher.store import corpus as corpora
from thresher.store import lines as token_lines
from thresher.store.corpus import Corpus, paragraphs
from thresher.store.imports import ImportedDocument, documents
from thresher.store.tables import DOCS

TEI = f"{{{tei.NAMESPACE}}}"
# Texts with all that could break a format, beside any other.
ODD = "ab .<>&\"'\t\n_#=|-—éй漢。🙂\u00ad\u200b\ufeff\u2028\x85\x00"
# Halves of surrogate pairs never get into a corpus.
TEXT = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])))


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make(tmp_path, TEXTS)


def of_words(text: str) -> list[str]:
    return [word for paragraph in paragraphs(text) for word in tokens(paragraph, "cs")]


# rows


def test_jsonl_has_every_column_of_every_document(corpus: Corpus) -> None:
    rows = [json.loads(line) for line in exported(corpus, "jsonl").splitlines()]
    assert [row["text"] for row in rows] == TEXTS[:2]
    assert list(rows[0]) == DOCS.names
    assert rows[0]["fetched"] == "2026-09-21T14:13:20Z"
    assert rows[0]["languages"] == [{"code": "cs", "bytes": 10, "share": 1.0}]
    assert rows[0]["paragraphs"][0] == {"text": "Menu", "boilerplate": 0.9, "language": ""}
    assert rows[0]["badness"] is None


def test_parquet_is_the_table_of_documents_for_everybody(corpus: Corpus, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    export(corpus, "parquet", path, Choice(opted_out=True))
    assert pq.read_table(path).equals(corpus.docs())
    assert pd.read_parquet(path)["text"].tolist() == TEXTS
    assert pl.read_parquet(path)["url"].to_list() == [f"http://a.cz/{n}?a=1&b=2" for n in range(3)]


def test_row_groups_are_of_a_sensible_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROW_GROUP_BYTES", 5_000)
    corpus = make(tmp_path, ["x" * 900] * 20)
    file = pq.ParquetFile(io.BytesIO(exported(corpus, "parquet")))
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [3] * 6 + [1]


def test_text_has_a_paragraph_per_line_and_a_blank_line_between_documents(corpus: Corpus) -> None:
    text = exported(corpus, "txt").decode()
    assert text == "Příliš žluťoučký kůň.\nDruhý <b> & odstavec.\n\nJen jeden.\n"


def test_a_document_without_text_leaves_no_gap(tmp_path: Path) -> None:
    corpus = make(tmp_path, ["a", " \n\x00", "b\x0bc\u2028d  e\x85", "opted out"])
    out = io.BytesIO()
    done = export(corpus, "txt", out)
    assert out.getvalue() == b"a\n\nb\nc\nd e\n"
    assert (done.documents, done.left_out) == (2, {"no text": 1, "opted out": 1})


# vertical


def test_vertical_text_has_a_token_per_line_with_its_lemma_and_glue(corpus: Corpus) -> None:
    lines = exported(corpus, "vertical").decode().splitlines()
    assert lines[0] == (
        '<doc id="http://a.cz/0?a=1&amp;b=2" url="http://a.cz/0?a=1&amp;b=2" host="a.cz" domain="a.cz" '
        'language="cs" title="A &quot;title&quot; &lt;i&gt;" fetched="2026-09-21T14:13:20+00:00">'
    )
    assert lines[1:9] == [
        "<p>",
        "<s>",
        "Příliš\tpříliš",
        "žluťoučký\tžluťoučký",
        "kůň\tkůň",
        "<g/>",
        ".\t.",
        "</s>",
    ]
    assert "&lt;\t&lt;" in lines and "&amp;\t&amp;" in lines
    assert lines[-1] == "</doc>"


def test_an_annotator_can_be_named(corpus: Corpus) -> None:
    out = io.BytesIO()
    assert export(corpus, "vertical", out, annotator="plain", processes=1).attributes == ("word",)
    assert b"\t" not in out.getvalue()


def test_a_title_cannot_break_out_of_its_attribute(tmp_path: Path) -> None:
    corpus = make(tmp_path, ["a", "b"], title='x"\n</doc>\r\n<doc url="evil\x00')
    first = exported(corpus, "vertical").decode().splitlines()[0]
    assert 'title="x&quot; &lt;/doc&gt; &lt;doc url=&quot;evil"' in first


@settings(max_examples=50)
@given(st.lists(TEXT, min_size=1, max_size=4))
def test_no_text_can_forge_a_tag_or_a_line(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        corpus = make(Path(directory), [*texts, "opted out"])
        lines = exported(corpus, "vertical").decode().split("\n")
    allowed = re.compile(r"<doc [^<>]*>|</?(doc|p|s)>|<g/>|[^<>\s\x00-\x1f]+\t[^<>\n\t\x00-\x1f]+|")
    assert all(allowed.fullmatch(line) for line in lines)
    assert sum(line.startswith("<doc ") for line in lines) == len(texts)
    seen = [html.unescape(line.partition("\t")[0]) for line in lines if line and not line.startswith("<")]
    assert seen == [word for text in texts for word in of_words(text)]


def test_structures_of_imports_keep_to_names_that_are_allowed() -> None:
    data = token_lines.opening("doc", {"a<b": '"'}) + token_lines.token(["x"]) + token_lines.closing("doc")
    found = vertical.render(Item(1, {}), events_of_lines(data), ("word",), columns=("word",))
    assert found == b'<doc>\n<doc_ a_b="&quot;">\nx\n</doc_>\n</doc>\n'


def test_attributes_whose_names_would_be_the_same_are_numbered() -> None:
    found = vertical.render(Item(1, {"a b": "1", "a/b": "2", "a_b_2": "3"}), (), ("word",), columns=("word",))
    assert found == b'<doc a_b="1" a_b_2="2" a_b_2_2="3">\n</doc>\n'


BLANK = [Word(("", "x y", " ")), Word((" ", "", "x")), Word((" b ", " ", " l "), glued=True)]


def test_a_blank_word_and_a_tag_with_spaces_break_no_format() -> None:
    attributes = ("word", "pos", "lemma")
    vert = vertical.render(Item(1, {}), BLANK, attributes, columns=attributes).decode()
    assert [line.partition("\t")[0] for line in vert.splitlines()] == [
        "<doc>",
        "_",
        "_",
        "<g/>",
        "b",
        "</doc>",
    ]
    ((comments, rows),) = sentences(conllu.render(Item(1, {}), BLANK, attributes).decode())
    assert [row[1:5] for row in rows] == [["_", "_", "_", "x_y"], ["_", "x", "_", "_"], ["b", "l", "_", "_"]]
    assert comments[-1] == "# text = _ _b"
    (root,) = ElementTree.fromstring(tei.render(Item(1, {}), BLANK, attributes)).iter("body")
    assert [(one.text, dict(one.attrib)) for one in root[0]] == [
        ("_", {"pos": "x_y"}),
        ("_", {"lemma": "x", "join": "right"}),
        ("b", {"lemma": "l"}),
    ]


# CoNLL-U


def sentences(data: str) -> list[tuple[list[str], list[list[str]]]]:
    """A file by the rules of the format, which are asserted: comments and columns of each sentence."""
    found: list[tuple[list[str], list[list[str]]]] = []
    assert not data or data.endswith("\n\n"), "a blank line is after every sentence, the last one too"
    for block in data.split("\n\n")[:-1]:
        rows = block.split("\n")
        comments = [row for row in rows if row.startswith("# ")]
        columns = [row.split("\t") for row in rows[len(comments) :]]
        assert [row[0] for row in columns] == [str(n + 1) for n in range(len(columns))], "words are numbered"
        for row in columns:
            assert len(row) == 10
            assert all(row)
            assert not any(re.search(r"\s", row[place]) for place in (3, 4, 5, 6, 7, 8))
            assert row[3] == "_" or row[3] in conllu.UNIVERSAL
        text = "".join(row[1] + ("" if "SpaceAfter=No" in row[9] else " ") for row in columns).removesuffix(
            " "
        )
        assert [row for row in comments if row.startswith("# text = ")] == [f"# text = {text}"]
        assert sum(row.startswith("# sent_id = ") for row in comments) == 1
        found.append((comments, columns))
    ids = [row for comments, _ in found for row in comments if row.startswith("# sent_id")]
    assert len(ids) == len(set(ids))
    return found


def test_conllu_tells_documents_paragraphs_sentences_and_spaces(corpus: Corpus) -> None:
    first, second, third = sentences(exported(corpus, "conllu").decode())
    assert first[0][:2] == ["# newdoc id = http://a.cz/0?a=1&b=2", "# meta::url = http://a.cz/0?a=1&b=2"]
    assert first[0][-3:] == ["# newpar", "# sent_id = d1-s1", "# text = Příliš žluťoučký kůň."]
    assert first[1][2] == ["3", "kůň", "kůň", "_", "_", "_", "_", "_", "_", "SpaceAfter=No"]
    assert second[0] == ["# newpar", "# sent_id = d1-s2", "# text = Druhý <b> & odstavec."]
    assert third[0][0].startswith("# newdoc id = ")


def test_sentences_without_a_space_between_them_say_so(tmp_path: Path) -> None:
    first, second = sentences(exported(make(tmp_path, ["日本語。東京!", ""]), "conllu").decode())
    assert first[1][-1][9] == "SpaceAfter=No"
    assert second[1][-1][9] == "_"


def test_tags_go_to_the_column_that_they_are_made_for(tmp_path: Path) -> None:
    *_, (_, ((_, *columns),)) = sentences(exported(with_imports(tmp_path), "conllu").decode())
    assert columns == ["Psi", "pes", "_", "NN", "_", "_", "_", "_", "_"]
    item, words = Item(1, {}), [Word(("Psi", "NOUN", "pes", "a b", "Case=Nom|Number=Plur"))]
    ((_, (row,)),) = sentences(conllu.render(item, words, ("word", "pos", "lemma", "xpos", "feats")).decode())
    assert row[1:6] == ["Psi", "pes", "NOUN", "a_b", "Case=Nom|Number=Plur"]


def test_tokens_without_sentences_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conllu, "MOST_TOKENS", 10)
    said = [Word((f"w{n}",), glued=n == 10) for n in range(25)]
    found = sentences(conllu.render(Item(1, {}), said, ("word",)).decode())
    assert [len(rows) for _, rows in found] == [10, 10, 5]
    assert [row[1] for _, rows in found for row in rows] == [word.values[0] for word in said]
    assert [row[9] for _, rows in found for row in rows].index("SpaceAfter=No") == 9


def test_a_long_document_takes_no_more_memory_than_some_times_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(token_lines, "PORTION", 1 << 14)
    data = b"slovo\n" * 300_000
    tracemalloc.start()
    try:
        written = conllu.render(Item(1, {}), events_of_lines(data), ("word",))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(written)


@pytest.mark.parametrize("portion", [1, 7, 1 << 20])
def test_tokens_are_the_same_in_whatever_portions_they_are_read(
    monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    data = b"\x02s\tid=7\na\tb\n\nc\td\n\x03s\n"
    whole = list(token_lines.read(data))
    monkeypatch.setattr(token_lines, "PORTION", portion)
    found = [token_lines.Token(one.values) if isinstance(one, Word) else one for one in events_of_lines(data)]
    assert found == whole


@settings(max_examples=50)
@given(TEXT)
def test_any_text_is_valid_conllu(text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        corpus = make(Path(directory), [text, "opted out"])
        found = sentences(exported(corpus, "conllu").decode())
    assert [row[1] for _, rows in found for row in rows] == of_words(text)


# TEI


def test_tei_has_a_header_for_each_document_and_marks_what_is_known(tmp_path: Path) -> None:
    metadata = Metadata("", "K. Čapek", "1920-01-25", "", "R.U.R.", "")
    licence = "https://creativecommons.org/licenses/by/4.0/"
    about = {"url": "http://a.cz/?a=1&b=2", "metadata": metadata, "license": licence}
    corpus = make(tmp_path, ["Ahoj, světe!\nDva.", ""], pages=[about, {}])
    root = ElementTree.fromstring(exported(corpus, "tei"))
    assert root.tag == f"{TEI}teiCorpus"
    assert [child.tag.removeprefix(TEI) for child in root] == ["teiHeader", "TEI"]
    header, text = root[1]
    assert [child.tag.removeprefix(TEI) for child in header[0]] == [
        "titleStmt",
        "publicationStmt",
        "sourceDesc",
    ]
    assert header.findtext(f".//{TEI}title") == 'A "title" <i>'
    assert header.findtext(f".//{TEI}author") == "K. Čapek"
    assert header.findtext(f".//{TEI}publisher") == "R.U.R."
    assert header.find(f".//{TEI}licence").get("target") == licence
    assert header.find(f".//{TEI}ptr").get("target") == "http://a.cz/?a=1&b=2"
    assert header.find(f".//{TEI}bibl/{TEI}date").get("when") == "2026-09-21T14:13:20+00:00"
    assert header.find(f".//{TEI}creation/{TEI}date").get("when") == "1920-01-25"
    assert header.find(f".//{TEI}language").get("ident") == "cs"
    assert [part.tag.removeprefix(TEI) for part in text[0]] == ["p", "p"]
    (sentence,) = text[0][0]
    assert [(token.tag.removeprefix(TEI), token.text, token.get("join")) for token in sentence] == [
        ("w", "Ahoj", "right"), ("pc", ",", None), ("w", "světe", "right"), ("pc", "!", None),
    ]  # fmt: skip
    assert sentence[2].get("lemma") == "svět"


# What TEI P5 allows within each element that is written here, as far as it is written.
CONTENT = {
    "teiCorpus": "teiHeader (TEI )+",
    "teiHeader": "fileDesc (profileDesc )?",
    "fileDesc": "titleStmt publicationStmt sourceDesc ",
    "titleStmt": "title (author )?",
    "publicationStmt": "publisher idno (availability )?|p ",
    "availability": "(licence (ab )?|ab )",
    "sourceDesc": "bibl |p ",
    "bibl": "(ptr )?(date )?",
    "profileDesc": "(creation )?(langUsage )?",
    "creation": "date ",
    "langUsage": "language ",
    "TEI": "teiHeader text ",
    "text": "body ",
    "body": "(p )+",
    "p": "(s |w |pc )*",
    "s": "(w |pc )+",
    **dict.fromkeys(
        ("title", "author", "publisher", "idno", "licence", "ab", "ptr", "date", "language", "w", "pc"), ""
    ),
}


@settings(max_examples=50)
@given(TEXT, TEXT)
def test_any_text_and_title_is_valid_tei(text: str, title: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        corpus = make(Path(directory), [text, "opted out"], title=title)
        root = ElementTree.fromstring(exported(corpus, "tei"))
    for element in root.iter():
        children = "".join(f"{child.tag.removeprefix(TEI)} " for child in element)
        assert re.fullmatch(CONTENT[element.tag.removeprefix(TEI)], children), element.tag
    found = [token.text for token in root.iter() if token.tag in (f"{TEI}w", f"{TEI}pc")]
    assert found == [re.sub("[\ufffe\uffff]", "\ufffd", word) for word in of_words(text)]


def test_structures_that_overlap_become_a_tree() -> None:
    # <s> a <p> b </s> c </p> d
    data = b"\x02s\na\n\x02p\nb\n\x03s\nc\n\x03p\nd\n"
    found = tei.render(Item(1, {}), events_of_lines(data), ("word",)).decode()
    body = found[found.index("<body>") + 7 : found.index("</body>")].replace(" ", "").replace("\n", "")
    assert body == "<p><s><w>a</w></s></p><p><s><w>b</w></s><w>c</w></p><p><w>d</w></p>"
    assert len(sentences(conllu.render(Item(1, {}), events_of_lines(data), ("word",)).decode())) == 4


# a dataset folder


def test_a_dataset_folder_has_shards_and_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "ROW_GROUP_BYTES", 2_000)
    monkeypatch.setattr(dataset, "SHARD_BYTES", 8_000)
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
    assert table.columns == list(dataset.FIELDS)
    _, front, body = (tmp_path / "set" / "README.md").read_text().split("---\n", 2)
    told = dict(re.findall(r'^(\w+):\n((?:- "[^"]*"\n)+)', front, re.MULTILINE))
    assert told == {
        "language": '- "cs"\n',
        "license": '- "cc-by-sa-4.0"\n- "other"\n',
        "size_categories": '- "n<1K"\n',
        "task_categories": '- "text-generation"\n',
    }
    assert "    path: data/train-*\n" in front
    assert (
        "11 documents with" in body and "- opted out: 1" in body and "- my own # rules: 6 documents" in body
    )
    for field in dataset.FIELDS:
        assert f"| `{field}` |" in body


def test_the_card_says_where_documents_are_from(tmp_path: Path) -> None:
    corpus = with_imports(tmp_path)
    export(corpus, "huggingface", tmp_path / "both")
    told = (tmp_path / "both" / "README.md").read_text()
    assert f"{dataset.CRAWLED}: 1. {dataset.TEXTS}: 1.\n" in told
    assert "; of 1 nobody knows when." in told and dataset.ARCHIVED not in told
    export(corpus, "huggingface", tmp_path / "texts", Choice(tlds=("sk",)))
    told = (tmp_path / "texts" / "README.md").read_text()
    assert "robots" not in told and "downloaded between" not in told


# there and back


@pytest.mark.parametrize("name", ["vertical", "conllu", "tei", "jsonl", "parquet"])
@pytest.mark.parametrize("packed", ["", ".zst"])
def test_what_is_exported_can_be_imported_again(tmp_path: Path, name: str, packed: str) -> None:
    (tmp_path / "crawled").mkdir()
    crawled = make(tmp_path / "crawled", TEXTS)
    found = there_and_back(crawled, name, tmp_path, packed)
    if name in ("jsonl", "parquet"):
        assert [document.text for document in found] == TEXTS[:2]
    else:
        assert [words(document) for document in found] == [of_words(text) for text in TEXTS[:2]]
    assert found[0].meta["title"] == 'A "title" <i>'
    assert found[0].id == "http://a.cz/0?a=1&b=2" or name in ("jsonl", "parquet")
    again = corpora.open(tmp_path / "corpus")
    second = there_and_back(again, name, tmp_path / "again", packed)
    assert [(one.text, one.tokens) for one in second] == [(one.text, one.tokens) for one in found], "stays so"


def there_and_back(
    crawled: Corpus, name: str, directory: Path, packed: str = "", choice: Choice | None = None
) -> list[ImportedDocument]:
    directory.mkdir(exist_ok=True)
    path = directory / f"out{FORMATS[name].suffix}{packed}"
    done = export(crawled, name, path, choice, processes=1)
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
        expected = [unicodedata.normalize("NFC", word) for word in of_words("začátek " + text)]
    if name == "tei":
        expected = [re.sub("[\ufffe\uffff]", "\ufffd", word) for word in expected]
    assert words(found) == expected


OBJECTIONS = ("noai", "tdm-reservation", "content-signal: /a ai-train=no")


@pytest.mark.parametrize("name", ["vertical", "conllu", "tei", "jsonl", "parquet"])
def test_an_objection_holds_however_often_a_document_comes_back(tmp_path: Path, name: str) -> None:
    (tmp_path / "crawled").mkdir()
    found = make(tmp_path / "crawled", TEXTS, pages=[{}, {}, {"opt_out": OBJECTIONS}])
    for turn in ("first", "second", "third"):
        there_and_back(found, name, tmp_path / turn, choice=Choice(opted_out=True))
        found = corpora.open(tmp_path / turn / "corpus")
        done = export(found, name, io.BytesIO(), processes=1)
        assert (done.documents, done.left_out) == (2, {"opted out": 1})
        *_, last = documents(found.directory)
        assert objections_of(last.meta["opt_out"]) == list(OBJECTIONS)


def test_tei_tells_objections_in_an_element_of_their_own(tmp_path: Path) -> None:
    corpus = make(tmp_path, TEXTS, pages=[{}, {"license": "by"}, {"license": "by", "opt_out": OBJECTIONS}])
    out = io.BytesIO()
    export(corpus, "tei", out, Choice(opted_out=True), processes=1)
    told = [one.find(f".//{TEI}availability") for one in ElementTree.fromstring(out.getvalue())[1:]]
    assert told[0] is None
    assert [(child.tag.removeprefix(TEI), child.text) for child in told[1] or ()] == [("licence", "by")]
    assert [(child.tag.removeprefix(TEI), child.text) for child in told[2] or ()] == [
        ("licence", "by"),
        ("ab", " ".join(OBJECTIONS)),
    ]


SAID = (
    *("url", "host", "domain", "title", "author", "published", "modified", "fetched", "site_name", "license"),
    *("opt_out", "language", "language_share", "language_declared", "badness", "suspicion"),
)


def test_what_is_known_of_an_import_has_its_column_and_its_type(tmp_path: Path) -> None:
    (tmp_path / "crawled").mkdir()
    about = {"metadata": Metadata("", "K. Čapek", "1920", "1921", "R.U.R.", "cs"), "badness": 2.5}
    crawled = make(tmp_path / "crawled", ["a", "b"], pages=[{**about, "opt_out": ("noai",)}, {}])
    row = crawled.docs().to_pylist()[0]
    there_and_back(crawled, "parquet", tmp_path, choice=Choice(opted_out=True))
    out = io.BytesIO()
    export(corpora.open(tmp_path / "corpus"), "parquet", out, Choice(opted_out=True))
    table = pq.read_table(out)
    assert table.schema.equals(DOCS)
    again = table.to_pylist()[0]
    for name in SAID:
        assert again[name] == (None if row[name] == "" else row[name]), name
    assert all(again[name] is None for name in NOT_SAID - {"text", "text_bytes"})


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
        ({"date": "1920"}, "published", "1920"),
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
    export(corpora.open(tmp_path / "corpus"), "parquet", out, Choice(opted_out=True))
    assert pq.read_table(out).column(column).to_pylist() == [value]
