"""TEI: tokens if there are any, or else paragraphs; XML that would exhaust the machine is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.corpora.imports import brought, records, words
from thresher.importing.formats import body, tei, tei_content, texts
from thresher.importing.formats.source import ImportFileError
from thresher.store.imported_files import ImportedDocument
from thresher.store.token_lines import CloseTag, OpenTag, Token

HEADER = """<teiHeader><fileDesc>
<titleStmt><title>The <hi>first</hi>
 title</title><title>Another</title><author>A. One</author><author>B. Two</author></titleStmt>
<publicationStmt><date>2020</date><idno type="URN">urn:7</idno></publicationStmt>
<sourceDesc><bibl><title>Source</title><author>No one</author>
<date when="1895-05">May 1895</date></bibl></sourceDesc>
</fileDesc></teiHeader>"""


def xml(text: str, header: str = "", attributes: str = "") -> str:
    return (
        f'<?xml version="1.0"?>\n<TEI xmlns="http://www.tei-c.org/ns/1.0"{attributes}>{header}'
        f"<text><body>{text}</body></text></TEI>"
    )


def teis(text: str | bytes) -> list[ImportedDocument]:
    return brought(text, "a.xml")[0]


def text_of(text: str) -> str | None:
    (document,) = teis(xml(text))
    return document.text


def test_the_header_has_title_author_date_and_id() -> None:
    (document,) = teis(xml("<p>a</p>", HEADER))
    assert document.id == "urn:7"
    assert document.meta == {
        "title": "The first title",
        "author": "A. One; B. Two",
        "date": "1895-05",
        "id": "urn:7",
    }
    (named,) = teis(xml("<p>a</p>", HEADER, ' xml:id="T1"'))
    assert (named.id, named.meta["id"]) == ("T1", "T1")
    assert teis(xml("<p>a</p>"))[0].id == "a.xml#1"


def test_tokens_keep_their_tags_and_lemmas_sentences_and_paragraphs() -> None:
    (document,) = teis(
        xml(
            '<head><s><w>Title</w></s></head><p xml:id="p1" n="2"><s xml:id="s1">'
            '<w pos="DT" lemma="the">The</w> <w ana="#NN" msd="x">dogs</w><pc msd="Z">,</pc> <w/>'
            "<name><w>Rex</w></name></s></p>"
        )
    )
    assert records(document) == [
        OpenTag("p", {}),
        OpenTag("s", {}),
        Token(("Title", "", "")),
        CloseTag("s"),
        CloseTag("p"),
        OpenTag("p", {"id": "p1", "n": "2"}),
        OpenTag("s", {"id": "s1"}),
        Token(("The", "DT", "the")),
        Token(("dogs", "NN", "")),
        Token((",", "Z", "")),
        Token(("Rex", "", "")),
        CloseTag("s"),
        CloseTag("p"),
    ]


@pytest.mark.parametrize(
    ("inside", "word"),
    [
        ("<hi>w</hi>ord", "word"),
        ("wo<lb break='no'/>rd", "word"),
        ("<choice><orig>vvord</orig><reg>word</reg></choice>s", "vvords"),
        ("\n  word &amp; &#x161;\n", "word & š"),
        ("<w>a</w><w>b</w>", "ab"),
    ],
)
def test_a_word_is_the_text_within_it(inside: str, word: str) -> None:
    (document,) = teis(xml(f"<p><w>{inside}</w><w>next</w></p>"))
    assert words(document) == [word, "next"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<head>One</head><p>Two\n  lines</p><lg><l>verse</l><l>verse</l></lg>", "One\nTwo lines\nverse\nverse"),
        ("<p>a<lb/>b<pb break='no'/>c <hi>d</hi>e</p>", "a bc de"),
        ("<p>Before<note>A note.<p>Its second part.</p></note> after.</p><p>Next.</p>",
         "Before after.\nA note.\nIts second part.\nNext."),
        ("<list><item>a</item><item>b</item></list>loose", "a\nb\nloose"),
        ("<p><choice><sic>teh</sic><corr>the</corr></choice> <choice><abbr>a</abbr></choice></p>", "teh a"),
        ("<p><s>One.</s><s>Two.</s></p>", "One. Two."),
        ("<p>e\u0301 &lt;b&gt; <![CDATA[<raw>]]></p>", "é <b> <raw>"),
    ],
)  # fmt: skip
def test_without_tokens_paragraphs_are_text(text: str, expected: str) -> None:
    assert text_of(text) == expected


def test_every_tei_element_is_a_document_with_any_namespace() -> None:
    inner = "<t:TEI><t:text><t:p>{}</t:p></t:text></t:TEI>"
    prefixed = f"<t:teiCorpus xmlns:t='x'><t:teiHeader/>{inner.format('a')}{inner.format('b')}</t:teiCorpus>"
    assert [document.text for document in teis(prefixed)] == ["a", "b"]
    assert [document.text for document in teis("<TEI.2><text><p>old</p></text></TEI.2>")] == ["old"]


def test_msd_besides_a_part_of_speech_becomes_features_and_other_parts_are_reported() -> None:
    with_both = '<w pos="NOUN" msd="Case=Nom" lemma="pes" join="right">psi</w>'
    without = '<pc pos="PUNCT">.</pc>'
    (document,), remarks = brought(f"<TEI><text><p>{with_both}{without}</p></text></TEI>", "a.xml")
    assert [token.values for token in records(document) if isinstance(token, Token)] == [
        ("psi", "NOUN", "pes", "Case=Nom"),
        (".", "PUNCT", "", ""),
    ]
    assert remarks == ("a.xml: not kept: spaces between tokens (@join)",)
    (document,), remarks = brought(f"<TEI><text><p>{without}{with_both}</p></text></TEI>", "a.xml")
    assert [token.values for token in records(document) if isinstance(token, Token)] == [
        (".", "PUNCT", ""),
        ("psi", "NOUN", "pes"),
    ]
    assert any(
        remark.startswith("a.xml: not kept: @msd, which the first token does not have") for remark in remarks
    )


def test_text_outside_tokens_is_reported() -> None:
    text = xml("<p>Lost.</p><p>\n<w>kept</w> <w>too</w></p><p>Lost</p>")
    (document,), remarks = brought(text, "a.xml")
    assert words(document) == ["kept", "too"]
    assert remarks == ("a.xml: 2 × a text outside <w> and <pc>, left out (first in line 3)",)


def test_a_document_without_text_is_left_out_and_reported() -> None:
    found, remarks = brought(f"<teiCorpus>{xml('')[22:]}{xml('<p>a</p>')[22:]}</teiCorpus>", "a.xml")
    assert [document.text for document in found] == ["a"]
    assert "1 × a document without text, left out" in remarks[0]


def test_other_encodings_are_read_as_they_are_declared() -> None:
    for encoding in ("utf-16", "iso-8859-2", "windows-1250"):
        data = f'<?xml version="1.0" encoding="{encoding}"?><TEI><text><p>žluť</p></text></TEI>'
        assert teis(data.encode(encoding))[0].text == "žluť"


BOMB = (
    '<!DOCTYPE TEI [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>\n<TEI><text><p>&b;</p></text></TEI>'
)
FILE_ENTITY = '<!DOCTYPE TEI [<!ENTITY x SYSTEM "file:///etc/passwd">]><TEI><text><p>&x;</p></text></TEI>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<TEI>\n<text>\n<p>a</text></TEI>", r"a\.xml, line 3 is not well-formed XML: mismatched tag"),
        (xml("<p>a</p>")[:-10], r"a\.xml, line 2 is not well-formed XML: "),
        ("", r"is not well-formed XML: no element found"),
        ("<html><body>a</body></html>", r"a\.xml has no <TEI> element.*--format"),
        (BOMB, r"line 1 declares the entity 'a'.*xmllint --noent"),
        (FILE_ENTITY, r"declares the entity 'x'"),
        ('<!DOCTYPE TEI [<!ENTITY % p "x">]><TEI><text/></TEI>', r"declares the entity 'p'"),
        ("<!DOCTYPE TEI SYSTEM 'tei.dtd'>\n<TEI><text><p>&nbsp;</p></text></TEI>", r"line 2 has the entity &nbsp;"),
        ('<?xml version="1.0" encoding="shift-jis"?><TEI/>', r"cannot be decoded|not well-formed XML"),
        ('<?xml version="1.0" encoding="none-such"?><TEI/>', r"cannot be decoded|not well-formed XML"),
        ("<a>" * 20_000, r"more than 10,000 nested elements"),
    ],
)  # fmt: skip
def test_xml_that_cannot_be_used_is_named_with_line_and_fix(text: str, message: str) -> None:
    with pytest.raises(ImportFileError, match=message):
        teis(text)


def test_a_tag_that_never_ends_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tei, "MAX_MARKUP_BYTES", 1 << 19)
    with pytest.raises(ImportFileError, match="begins a tag or comment of more than"):
        teis("<TEI><text><p>a</p><!--" + "x" * (1 << 20))


def test_long_documents_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (body, texts, tei_content):
        monkeypatch.setattr(module, "MAX_DOCUMENT_BYTES", 100)
    parts = teis(xml("<p>" + "<s><w>one</w><w>two</w></s>" * 40 + "</p>", HEADER))
    assert [part.id for part in parts][:3] == ["urn:7", "urn:7#2", "urn:7#3"]
    assert sum(part.count or 0 for part in parts) == 80
    assert all((part.count or 0) % 2 == 0 and part.meta["date"] == "1895-05" for part in parts)

    parts = teis(xml("".join(f"<p>Paragraph {n}.</p>" for n in range(30))))
    assert len(parts) > 3
    assert "\n".join(part.text or "" for part in parts) == "\n".join(f"Paragraph {n}." for n in range(30))


def test_a_paragraph_without_end_is_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (body, texts, tei_content):
        monkeypatch.setattr(module, "MAX_DOCUMENT_BYTES", 1_000)
    parts = teis(xml("<p>" + "word and <lb/> " * 1_000 + "</p>"))
    assert len(parts) > 5
    assert " ".join(part.text or "" for part in parts).split() == ["word", "and"] * 1_000


NAMES = st.sampled_from(
    ["p", "s", "w", "pc", "note", "head", "div", "choice", "hi", "lb", "text", "TEI", "teiHeader"]
)
TREES = st.recursive(
    st.sampled_from(["a", "b c", " ", "\n"]),
    lambda inner: st.builds(
        lambda name, parts: f"<{name}>{''.join(parts)}</{name}>", NAMES, st.lists(inner, max_size=4)
    ),
    max_leaves=20,
)


@given(TREES)
def test_any_tree_gives_whole_documents(tree: str) -> None:
    teis(f"<TEI><text><body>{tree}</body></text></TEI>")
