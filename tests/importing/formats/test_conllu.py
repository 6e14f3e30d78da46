"""CoNLL-U: words with their lemmas and features, sentences with their comments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.corpora.imports import brought, records, words
from thresher.importing.formats import body, conllu, encoding
from thresher.importing.formats.source import ImportFileError
from thresher.store.imported_files import ImportedDocument
from thresher.store.token_lines import CloseTag, OpenTag, Token

FILE = """# newdoc id = d1
# newpar id = p1
# sent_id = s1
# text = Vámonos al mar.
# translator = me = you
1-2	Vámonos	_	_	_	_	_	_	_	_
1	Vamos	ir	VERB	V	Mood=Imp|Number=Plur	0	root	_	_
2	nos	nosotros	PRON	_	_	1	obj	_	_
2.1	_	_	_	_	_	_	_	_	_
3	mar	mar	NOUN	N	_	1	obl	_	SpaceAfter=No

# sent_id = s2
1	_	_	PUNCT	_	_	0	root	_	_
2	x	_	X	_	_	1	dep	_	_

# newdoc
# newpar
1	a	a	DET	_	_	0	root	_	_
"""


def conll(text: str | bytes) -> list[ImportedDocument]:
    return brought(text, "a.conllu")[0]


def row(form: str, number: int = 1) -> str:
    return f"{number}\t{form}\t{form}\tNOUN\t_\t_\t_\t_\t_\t_\n"


def test_documents_paragraphs_sentences_and_words_are_kept() -> None:
    first, second = conll(FILE)
    assert (first.id, first.meta, first.count) == ("d1", {"id": "d1"}, 5)
    assert records(first) == [
        OpenTag("p", {"id": "p1"}),
        OpenTag("s", {"id": "s1", "translator": "me = you"}),
        Token(("Vamos", "VERB", "ir", "V", "Mood=Imp|Number=Plur")),
        Token(("nos", "PRON", "nosotros", "", "")),
        Token(("mar", "NOUN", "mar", "N", "")),
        CloseTag("s"),
        OpenTag("s", {"id": "s2"}),
        Token(("_", "PUNCT", "_", "", "")),
        Token(("x", "X", "", "", "")),
        CloseTag("s"),
        CloseTag("p"),
    ]
    assert (second.id, second.meta) == ("a.conllu#2", {})
    assert records(second)[:2] == [OpenTag("p", {}), OpenTag("s", {})]


def test_parts_that_are_not_kept_are_reported_once() -> None:
    _, remarks = brought(FILE + row("a").replace("\t_\n", "\tGloss=the|Ref=1\n"), "a.conllu")
    assert remarks == tuple(
        f"a.conllu: not kept: {what}"
        for what in (conllu.SPACES, conllu.MULTIWORD, conllu.RELATIONS, conllu.EMPTY, conllu.MISC)
    )
    assert brought(row("a"), "a.conllu")[1] == ()


def test_a_file_that_names_no_document_is_one() -> None:
    (document,) = conll("\n\n" + row("a") + "\n" + row("b") + row("c", 2))
    assert words(document) == ["a", "b", "c"]
    assert records(document).count(OpenTag("s", {})) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\ta\ta", "line 3 has 3 columns, but CoNLL-U has 10"),
        ("1" + "\ta" * 10_000, "line 3 has more than 10 columns"),
        ("1 a a NOUN _ _ 0 root _ _", "line 3 has 1 columns"),
        ("one\ta\ta\tNOUN\t_\t_\t0\troot\t_\t_", "line 3 begins with 'one'"),
    ],
)
def test_a_line_that_is_not_conllu_is_named(line: str, message: str) -> None:
    with pytest.raises(ImportFileError, match=message):
        conll("# text = a\n" + row("a") + line + "\n")


@pytest.mark.parametrize("blank", ["", " ", "\u00a0"])
def test_a_line_without_a_word_is_left_out_and_reported(blank: str) -> None:
    (document,), remarks = brought(row("a") + row(blank, 2) + row("b", 3), "a.conllu")
    assert words(document) == ["a", "b"]
    assert "a.conllu: 1 × a line without a word, left out (first in line 2)" in remarks


def test_bytes_that_are_not_utf8_are_replaced_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MAX_BAD_LINES", 1.0)
    (document,), remarks = brought(row("a\udcff", 1).encode("utf-8", "surrogateescape"), "a.conllu")
    assert words(document) == ["a\ufffd"]
    assert remarks == (
        "a.conllu: 1 × a line with bytes that are not UTF-8, replaced by U+FFFD (first in line 1)",
    )


def test_lines_may_end_as_on_windows() -> None:
    (document,) = conll(FILE.partition("# newdoc\n")[0].replace("\n", "\r\n"))
    assert records(document) == records(conll(FILE)[0])


def test_a_long_document_is_cut_between_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "MAX_DOCUMENT_BYTES", 100)
    parts = conll("# newdoc id = d\n" + (row("word") + row("word", 2) + "\n") * 20)
    assert [part.id for part in parts][:2] == ["d", "d#2"]
    assert all((part.count or 0) % 2 == 0 for part in parts)
    assert sum(part.count or 0 for part in parts) == 40


def test_a_sentence_without_end_is_stored_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conllu, "MAX_TOKENS", 7)
    (document,) = conll("# sent_id = long\n" + "".join(row(f"w{n}", n) for n in range(1, 31)))
    assert records(document)[0] == OpenTag("s", {"id": "long"})
    assert records(document).count(CloseTag("s")) == 1
    assert words(document) == [f"w{n}" for n in range(1, 31)]


@given(st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=60))
def test_any_text_gives_lines_or_a_fault_that_says_why(text: str) -> None:
    try:
        conll(text)
    except ImportFileError as fault:
        assert "a.conllu, line" in str(fault)
