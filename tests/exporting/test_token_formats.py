"""Exports as tokens: vertical text, CoNLL-U and TEI, read by independent parsers."""

from __future__ import annotations

import html
import io
import re
import tempfile
import tracemalloc
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.corpora.exports import TEXT, TEXTS, exported, make, with_imports, words_of
from thresher.exporting.documents import ExportDocument, ExportToken, events_of_lines
from thresher.exporting.formats import conllu, tei, vertical
from thresher.exporting.registry import export
from thresher.records import Metadata
from thresher.store import token_lines
from thresher.store.corpus_files import CorpusFiles

TEI = f"{{{tei.NAMESPACE}}}"


@pytest.fixture
def corpus(tmp_path: Path) -> CorpusFiles:
    return make(tmp_path, TEXTS)


# vertical


def test_vertical_text_has_a_token_per_line_with_its_lemma_and_glue(corpus: CorpusFiles) -> None:
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


def test_an_annotator_can_be_named(corpus: CorpusFiles) -> None:
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
    assert seen == [word for text in texts for word in words_of(text)]


def test_structures_of_imports_keep_to_names_that_are_allowed() -> None:
    data = token_lines.opening("doc", {"a<b": '"'}) + token_lines.token(["x"]) + token_lines.closing("doc")
    found = vertical.render(ExportDocument(1, {}), events_of_lines(data), ("word",), columns=("word",))
    assert found == b'<doc>\n<doc_ a_b="&quot;">\nx\n</doc_>\n</doc>\n'


def test_attributes_whose_names_would_be_the_same_are_numbered() -> None:
    found = vertical.render(
        ExportDocument(1, {"a b": "1", "a/b": "2", "a_b_2": "3"}), (), ("word",), columns=("word",)
    )
    assert found == b'<doc a_b="1" a_b_2="2" a_b_2_2="3">\n</doc>\n'


BLANK = [
    ExportToken(("", "x y", " ")),
    ExportToken((" ", "", "x")),
    ExportToken((" b ", " ", " l "), glued=True),
]


def test_a_blank_word_and_a_tag_with_spaces_break_no_format() -> None:
    attributes = ("word", "pos", "lemma")
    vert = vertical.render(ExportDocument(1, {}), BLANK, attributes, columns=attributes).decode()
    assert [line.partition("\t")[0] for line in vert.splitlines()] == [
        "<doc>",
        "_",
        "_",
        "<g/>",
        "b",
        "</doc>",
    ]
    ((comments, rows),) = sentences(conllu.render(ExportDocument(1, {}), BLANK, attributes).decode())
    assert [row[1:5] for row in rows] == [["_", "_", "_", "x_y"], ["_", "x", "_", "_"], ["b", "l", "_", "_"]]
    assert comments[-1] == "# text = _ _b"
    (root,) = ElementTree.fromstring(tei.render(ExportDocument(1, {}), BLANK, attributes)).iter("body")
    assert [(one.text, dict(one.attrib)) for one in root[0]] == [
        ("_", {"pos": "x_y"}),
        ("_", {"lemma": "x", "join": "right"}),
        ("b", {"lemma": "l"}),
    ]


# CoNLL-U


def sentences(data: str) -> list[tuple[list[str], list[list[str]]]]:
    """Return comments and columns of each sentence, and check the rules of the format."""
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


def test_conllu_has_documents_paragraphs_sentences_and_spaces(corpus: CorpusFiles) -> None:
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
    item, words = ExportDocument(1, {}), [ExportToken(("Psi", "NOUN", "pes", "a b", "Case=Nom|Number=Plur"))]
    ((_, (row,)),) = sentences(conllu.render(item, words, ("word", "pos", "lemma", "xpos", "feats")).decode())
    assert row[1:6] == ["Psi", "pes", "NOUN", "a_b", "Case=Nom|Number=Plur"]


def test_tokens_without_sentences_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conllu, "MOST_TOKENS", 10)
    said = [ExportToken((f"w{n}",), glued=n == 10) for n in range(25)]
    found = sentences(conllu.render(ExportDocument(1, {}), said, ("word",)).decode())
    assert [len(rows) for _, rows in found] == [10, 10, 5]
    assert [row[1] for _, rows in found for row in rows] == [word.values[0] for word in said]
    assert [row[9] for _, rows in found for row in rows].index("SpaceAfter=No") == 9


@pytest.mark.growth
def test_a_long_document_takes_no_more_memory_than_some_times_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(token_lines, "PORTION", 1 << 14)
    data = b"slovo\n" * 300_000
    tracemalloc.start()
    try:
        written = conllu.render(ExportDocument(1, {}), events_of_lines(data), ("word",))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(written)


@pytest.mark.parametrize("portion", [1, 7, 1 << 20])
def test_tokens_are_the_same_for_any_size_of_portions(monkeypatch: pytest.MonkeyPatch, portion: int) -> None:
    data = b"\x02s\tid=7\na\tb\n\nc\td\n\x03s\n"
    whole = list(token_lines.read(data))
    monkeypatch.setattr(token_lines, "PORTION", portion)
    found = [
        token_lines.Token(one.values) if isinstance(one, ExportToken) else one
        for one in events_of_lines(data)
    ]
    assert found == whole


@settings(max_examples=50)
@given(TEXT)
def test_any_text_is_valid_conllu(text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        corpus = make(Path(directory), [text, "opted out"])
        found = sentences(exported(corpus, "conllu").decode())
    assert [row[1] for _, rows in found for row in rows] == words_of(text)


# TEI


def test_tei_has_a_header_for_each_document_with_its_metadata(tmp_path: Path) -> None:
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


# Elements that TEI P5 allows within each exported element, as far as they are exported.
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
    assert found == [re.sub("[\ufffe\uffff]", "\ufffd", word) for word in words_of(text)]


def test_structures_that_overlap_become_a_tree() -> None:
    # <s> a <p> b </s> c </p> d
    data = b"\x02s\na\n\x02p\nb\n\x03s\nc\n\x03p\nd\n"
    found = tei.render(ExportDocument(1, {}), events_of_lines(data), ("word",)).decode()
    body = found[found.index("<body>") + 7 : found.index("</body>")].replace(" ", "").replace("\n", "")
    assert body == "<p><s><w>a</w></s></p><p><s><w>b</w></s><w>c</w></p><p><w>d</w></p>"
    assert (
        len(sentences(conllu.render(ExportDocument(1, {}), events_of_lines(data), ("word",)).decode())) == 4
    )
