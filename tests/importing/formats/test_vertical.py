"""Vertical text: many lines at once give the same documents as one line after the other."""

from __future__ import annotations

import re
from itertools import chain, groupby
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.corpora.imports import Records, brought, records, words
from thresher.importing.corpora import import_files
from thresher.importing.formats import body, encoding, source, vertical
from thresher.importing.formats.source import ImportFileError
from thresher.store.imported_files import ImportedDocument, documents
from thresher.store.token_lines import CloseTag, OpenTag, Token, clean, clean_name

DOCUMENT = """<doc id="a" year='2001' title="x > y">
<p>
<s n="1">
On	PR	on
<g/>
.	Z	.
</s>
</p>
</doc>
"""


def vert(text: str | bytes, **options: object) -> list[ImportedDocument]:
    return brought(text, "a.vert", **options)[0]


def remarks(text: str | bytes, **options: object) -> str:
    return "\n".join(brought(text, "a.vert", **options)[1])


def flat(*names: str) -> Records:
    """Return records from signs: `<s`, `>s`, or a word."""
    return [
        OpenTag(name[1:], {}) if name[0] == "<" else CloseTag(name[1:]) if name[0] == ">" else Token((name,))
        for name in names
    ]


def test_a_document_keeps_its_attributes_structures_and_tokens() -> None:
    (document,) = vert(DOCUMENT)
    assert (document.id, document.source, document.number, document.count) == ("a", "a.vert", 1, 2)
    assert document.meta == {"id": "a", "year": "2001", "title": "x > y"}
    assert records(document) == [
        OpenTag("p", {}),
        OpenTag("s", {"n": "1"}),
        Token(("On", "PR", "on")),
        Token((".", "Z", ".")),
        CloseTag("s"),
        CloseTag("p"),
    ]
    assert remarks(DOCUMENT) == "a.vert: not kept: spaces between tokens (<g/>)"


def test_parts_that_are_not_kept_are_reported_once() -> None:
    remark_text = ("spaces between tokens (<g/>)", "empty tags, such as <br/>")
    text = "<s>\na\n<g/>\nb\n<br/>\nc\n</s>\n" * 3
    assert remarks(text) == "\n".join(f"a.vert: not kept: {what}" for what in remark_text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<s>\na\n</s>\n<s>\n</s>\n<p>\n<s>\n</s>\n</p>\nb\n", flat("<s", "a", ">s", "b")),
        ("<s>\na\n<s>\nb\n</s>\nc\n</s>\n", flat("<s", "a", "b", "c", ">s")),
        ("<s>\n<p>\na\n</s>\nb\n</p>\n", flat("<s", "<p", "a", ">s", "b", ">p")),
        ("<s>\n<p>\na\n", flat("<s", "<p", "a", ">p", ">s")),
        ("a\n</s>\nb", flat("a", "b")),
        ("a\r\n<s>\r\nb\r\n</s>\r\n", flat("a", "<s", "b", ">s")),
        ("\n\na\n\n\nb\n\n", flat("a", "b")),
        ("<?xml version='1.0'?>\n<!-- a -->\n<!DOCTYPE x>\na\n", flat("a")),
        ("a\n<br/>\n<g />\n<x y='1'/>\nb\n", flat("a", "b")),
        ("<s>\n<!-- a -->\n<g/>\n</s>\nb\n", flat("b")),
    ],
)
def test_structures_are_complete_after_any_input(text: str, expected: Records) -> None:
    (document,) = vert(text)
    assert records(document) == expected


@pytest.mark.parametrize(
    "token", ["<", "<3", "<-", "<a", "< a>", "<a b>", "<a b=c>", "</a b='c'>", "<a b='c>", "<http://x>", "<>"]
)
def test_a_line_that_is_not_a_whole_tag_is_a_token(token: str) -> None:
    (document,) = vert(f"<s>\n{token}\nx\n</s>\n")
    assert words(document) == [token, "x"]


@pytest.mark.parametrize(
    ("tag", "meta"),
    [
        ('<doc id="2" title="Film "Kolja" dnes">', {"id": "2", "title": 'Film "Kolja" dnes'}),
        ("<doc id=2>", {"id": "2"}),
        ("<doc id=2 url=http://a.cz/>", {"id": "2", "url": "http://a.cz/"}),
        ("<doc title='L'amour a=b' id=\"2\">", {"title": "L'amour", "a": "b'", "id": "2"}),
        ('<doc id="2" title="open> ', {"id": "2", "title": "open"}),
        ('<doc id="2" title="a "b" c" year="1999" />', {"id": "2", "title": 'a "b" c', "year": "1999"}),
        ("<doc no attributes>", {}),
    ],
)
def test_a_malformed_tag_of_a_document_begins_a_document(tag: str, meta: dict[str, str]) -> None:
    remark_text = (
        "a.vert: 1 × a tag of a document that is not well-formed, read as far as possible (first in line "
    )
    text = f"<doc id='1'>\na\n</doc>\n{tag}\nb\n</doc>\n<doc>\nc\n</doc>\n"
    first, second, third = vert(text)
    assert [words(document) for document in (first, second, third)] == [["a"], ["b"], ["c"]]
    assert second.meta == meta
    assert remarks(text) == f"{remark_text}4)"
    text = f"{tag}\nb\n</doc>\n<doc>\nc\n</doc>\n"  # the first tag of a file tells which is that of documents
    assert [document.meta for document in vert(text)] == [meta, {}]
    assert remarks(text) == f"{remark_text}1)"


def test_a_malformed_structure_is_reported_and_stays_a_token() -> None:
    text = "<doc>\na\n<s n=3>\nb\n<http://x>\n<a b>\n</doc>\n"
    (document,) = vert(text)
    assert words(document) == ["a", "<s n=3>", "b", "<http://x>", "<a b>"]
    expected = "1 × a line that looks like a tag but is not well-formed, taken as a token (first in line 3)"
    assert remarks(text) == f"a.vert: {expected}"


def test_a_long_line_that_is_no_tag_takes_no_long_time() -> None:
    for text in ("a " * 30_000, "a=' " * 15_000, 'a=" ' * 15_000, "a" * 60_000, " " * 60_000, "a= " * 20_000):
        assert vertical.lenient(text) is not None
        assert vert(f"<doc {text}>\nx\n")


@pytest.mark.parametrize("blank", ["", " ", "  ", "\u00a0", "\u3000 \u2003"])
def test_a_line_without_a_word_is_left_out_and_reported(blank: str) -> None:
    text = f"<s>\na\tA\ta\n{blank}\tB\tb\n c\tC\tc\n</s>\nd\tD\td\n{blank}\tE\te"
    (document,) = vert(text)
    assert words(document) == ["a", " c", "d"]
    remark_text = "2 × a line without a word, left out (first in line 3)"
    assert remarks(text) == f"a.vert: {remark_text}"
    (single,) = vert(f"a\n{blank}\n b\n{blank}")
    assert words(single) == ["a", " b"]
    assert bool(remarks(f"a\n{blank}\nb")) == bool(blank)


def test_a_tag_with_columns_behind_it_is_a_token() -> None:
    (document,) = vert("a\tb\tc\n<s>\tX\t<s>\n")
    assert records(document)[1] == Token(("<s>", "X", "<s>"))


@pytest.mark.parametrize("tag", ["doc", "text", "article"])
def test_the_usual_tags_of_documents_are_known(tag: str) -> None:
    first, second = vert(f"<{tag} id='1'>\na\n</{tag}>\n<{tag} n='x'>\nb\n</{tag}>\n")
    assert (first.id, second.id) == ("1", "a.vert#2")
    assert second.meta == {"n": "x"}


def test_the_first_of_the_usual_tags_counts_and_the_others_are_structures() -> None:
    (document,) = vert("<text>\n<doc>\na\n</doc>\n<doc>\nb\n</doc>\n</text>\n")
    assert records(document) == flat("<doc", "a", ">doc", "<doc", "b", ">doc")
    assert len(vert("<text>\n<doc>\na\n</doc>\n<doc>\nb\n</doc>\n</text>\n", document="doc")) == 2


def test_tokens_outside_documents_are_documents_of_their_own() -> None:
    found = vert("a\n<doc>\nb\n</doc>\nc\nd\n")
    assert [words(document) for document in found] == [["a"], ["b"], ["c", "d"]]
    assert [document.id for document in found] == ["a.vert#1", "a.vert#2", "a.vert#3"]


def test_a_document_that_is_not_ended_ends_where_the_next_begins() -> None:
    text = "<doc id='1'>\n<s>\na\n<doc id='2'>\nb\n"
    assert [records(document) for document in vert(text)] == [flat("<s", "a", ">s"), flat("b")]
    assert "1 × a document without an end tag, ended at the begin of the next (first in line 4)" in remarks(
        text
    )


def test_oddities_are_counted_and_reported_with_their_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MAX_BAD_LINES", 1.0)
    text = (
        b"<corpus>\n<doc>\na\tb\tc\nd\ne\tf\tg\th\n</s>\n\xff\tx\ty\n<s>\n<s>\ni\tj\tk\n</doc>\n</corpus>\n"
    )
    text += b"<doc>\n</doc>"
    remark_text = remarks(text)
    assert remark_text.startswith("a.vert: ")
    assert (
        "2 × a line with more or fewer columns than attributes, cut or filled up (first in line 4)"
        in remark_text
    )
    assert "1 × a closing tag with nothing to close, ignored (first in line 6)" in remark_text
    assert "1 × a line with bytes that are not UTF-8, replaced by U+FFFD (first in line 7)" in remark_text
    assert "1 × a structure within another of its name, left out (first in line 9)" in remark_text
    assert "1 × a structure around documents, left out (first in line 2)" in remark_text
    assert "1 × a document without tokens, left out (first in line 14)" in remark_text
    (document,) = vert(text)
    assert [record.values for record in records(document) if isinstance(record, Token)] == [
        ("a", "b", "c"),
        ("d", "", ""),
        ("e", "f", "g"),
        ("\ufffd", "x", "y"),
        ("i", "j", "k"),
    ]  # fmt: skip


def test_a_missing_tag_of_documents_is_reported() -> None:
    assert "--document" in remarks("<doc>\na\n</doc>\n", document="chapter")
    assert remarks("<doc>\na\n</doc>\n", document="doc") == ""


def test_entities_are_decoded_only_if_asked_for() -> None:
    text = '<doc title="&lt;&amp;&nbsp;">\n&lt;s&gt;\t&quot;\t&apos;&amp;lt;\n</doc>\n'
    (plain,) = vert(text)
    assert plain.meta == {"title": "&lt;&amp;&nbsp;"}
    assert words(plain) == ["&lt;s&gt;"]
    (decoded,) = vert(text, entities=True)
    assert decoded.meta == {"title": "<&&nbsp;"}
    assert records(decoded) == [Token(("<s>", '"', "'&lt;"))]


def test_columns_have_the_names_they_are_given() -> None:
    (document,) = vert("a\tb\nc\n", attributes=("word", "tag", "extra"))
    assert records(document) == [Token(("a", "b", "")), Token(("c", "", ""))]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("word",), [("a",), ("<",), ("d",), ("g",)]),
        (("word", "tag"), [("a", "b"), ("<", "X"), ("d", "e"), ("g", "")]),
    ],
)
def test_the_first_columns_are_taken_if_there_are_more_than_names(
    names: tuple[str, ...], expected: list[tuple[str, ...]]
) -> None:
    text = "<s>\na\tb\tc\n<\tX\t<\n</s>\nd\te\tf\tmore\ng\n"
    (document,) = vert(text, attributes=names)
    tokens = [record.values for record in records(document) if isinstance(record, Token)]
    assert tokens == expected
    remark_text = remarks(text, attributes=names)
    assert "1 × a file with more columns than --attributes names; the first are taken" in remark_text
    assert ("1 × a line with more or fewer columns" in remark_text) == (len(names) > 1)


@pytest.mark.parametrize("columns", [2, 4, 12])
def test_columns_that_have_no_usual_names_must_be_named(columns: int) -> None:
    with pytest.raises(ImportFileError, match=rf"a.vert, line 3 has {columns} columns.*--attributes word,"):
        vert("<doc>\n<s>\n" + "\t".join("x" * columns) + "\n</s>\n</doc>\n")


def test_the_first_token_decides_even_if_it_begins_like_a_tag() -> None:
    (document,) = vert("<doc>\n<\tX\tlt\na\tb\tc\n</doc>\n")
    assert document.count == 2
    with pytest.raises(ImportFileError, match="line 2 has 2 columns"):
        vert("<doc>\n<\tX\n</doc>\n")


def test_a_byte_order_mark_is_removed_and_utf16_refused() -> None:
    assert vert("\ufeff<doc id='1'>\na\n</doc>\n")[0].id == "1"
    with pytest.raises(ImportFileError, match=r"UTF-16.*iconv"):
        vert("<doc>\na\n</doc>\n".encode("utf-16"))


def test_a_long_document_is_cut_between_structures_and_open_ones_continue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_blocks(monkeypatch, 64)
    for module in (body, vertical):
        monkeypatch.setattr(module, "MAX_DOCUMENT_BYTES", 300)
    sentence = "<s>\n" + "word\n" * 4 + "</s>\n"
    text = "<doc id='x' n='1'>\n<p k='v'>\n" + sentence * 60 + "</p>\n</doc>\n<doc id='y'>\na\n</doc>\n"
    *parts, last = vert(text)
    assert [part.id for part in parts] == ["x", *(f"x#{n}" for n in range(2, len(parts) + 1))]
    assert len(parts) > 2 and last.id == "y"
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    assert sum(len(words(part)) for part in parts) == 240
    for part in parts:
        assert part.meta == {"id": "x", "n": "1"}
        first, *inner, end = records(part)
        assert (first, end) == (OpenTag("p", {"k": "v"}), CloseTag("p"))
        assert inner.count(OpenTag("s", {})) * 4 == part.count, "no sentence is cut"


def test_a_long_document_without_structures_is_cut_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 64)
    for module in (body, vertical):
        monkeypatch.setattr(module, "MAX_DOCUMENT_BYTES", 300)
    parts = vert("word\n" * 400)
    assert len(parts) > 3
    assert sum(part.count or 0 for part in parts) == 400


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_LINE_BYTES", 1 << 19)
    with pytest.raises(ImportFileError, match=r"a.vert, line 3 is longer than .*--format"):
        vert(b"a\nb\n" + b"x" * (1 << 20))


# Against a plain reading, line by line, with blocks so small that every line is at the edge of one.

NAME = r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_.:\x80-\U0010ffff-]*"
TAG = re.compile(
    rf"""<({NAME})((?:[ \t]+{NAME}[ \t]*=[ \t]*(?:"[^"]*"|'[^']*'))*)[ \t]*(/?)> *|</({NAME})[ \t]*> *"""
)
ATTRIBUTE = re.compile(r"""([^\s=]+)[ \t]*=[ \t]*("[^"]*"|'[^']*')""")
ASIDE = re.compile(r"<!--[^\t]*--> *|<\?[^\t]*\?> *|<![A-Z][^\t]*> *")


def small_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for module, name in ((source, "BLOCK_BYTES"), (source, "CHUNK_BYTES"), (vertical, "BLOCK_BYTES")):
        monkeypatch.setattr(module, name, size)


class Plain:
    """Reads vertical text in one column, one line at a time."""

    def __init__(self) -> None:
        self.documents: list[tuple[dict[str, str], Records]] = []
        self.inside = False
        self.begin({})

    def begin(self, meta: dict[str, str]) -> None:
        self.meta, self.records, self.depth = meta, Records(), dict[str, int]()

    def end(self) -> None:
        for name in reversed(list(self.depth)):
            self.close(name)
        if any(isinstance(record, Token) for record in self.records):
            # Between two tokens, ends of structures come before beginnings.
            kinds = groupby(self.records, lambda record: isinstance(record, Token))
            ordered = [sorted(group, key=lambda record: isinstance(record, OpenTag)) for _, group in kinds]
            self.documents.append((self.meta, list(chain.from_iterable(ordered))))

    def close(self, name: str) -> None:
        del self.depth[name]
        start = max(
            n for n, record in enumerate(self.records) if isinstance(record, OpenTag) and record.name == name
        )
        if any(isinstance(record, Token) for record in self.records[start:]):
            self.records.append(CloseTag(name))
        else:
            del self.records[start]

    def read(self, line: str) -> None:
        tag = TAG.fullmatch(line)
        if tag is None:
            if clean(line).strip() and not ASIDE.fullmatch(line):
                self.records.append(Token((clean(line),)))
            return
        name = clean_name(tag[1] or tag[4])
        attributes = {clean_name(k): clean(v[1:-1]) for k, v in ATTRIBUTE.findall(tag[2] or "")}
        if tag[3]:
            return
        if name == "doc":
            if tag[1] or self.inside:
                self.end()
                self.begin(attributes)
            self.inside = bool(tag[1])
        elif tag[1] and name in self.depth:
            self.depth[name] += 1
        elif tag[1]:
            self.depth[name] = 1
            self.records.append(OpenTag(name, attributes))
        elif name in self.depth:
            self.depth[name] -= 1
            if not self.depth[name]:
                self.close(name)


LINES = st.one_of(
    st.sampled_from(
        ["<s>", "</s>", "<p>", "</p>", "<doc>", "</doc>", "<g/>", "<!-- x -->", "", "a", "b", "<"]
    ),
    st.sampled_from(
        ["<doc id='1'>", "<s n=\"1\" m='2'>", "<é>", "</é>", "<s\tx='e\u0301'>", "</s> ", "<a='1'>"]
    ),
    st.text(st.characters(exclude_characters="\0\t\n\r", exclude_categories=["Cs"]), max_size=5),
)


@given(st.lists(LINES, max_size=40), st.sampled_from([1, 7, 40, 1 << 18]))
@example(["<s>", "", "</s>", "a"], 1)
@example(["<s>", "<s>", "a", "</s>", "</s>", "<s>", "b", "</s>"], 1)
@example(["a", "</s>", "<s>", "b", "</s>", "<s>", "c"] * 3, 1 << 18)
@example(["<p>", "<s>", "a", "</p>", "<p>", "b"] * 3, 7)
def test_lines_in_bulk_give_the_same_as_one_by_one(lines: list[str], block: int) -> None:
    plain = Plain()
    for line in lines:
        plain.read(line)
    plain.end()
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch, block)
        found = vert("".join(f"{line}\n" for line in lines), attributes=("word",), document="doc")
    assert [(document.meta, records(document)) for document in found] == plain.documents


VALUES = st.text(st.characters(exclude_characters="\0\t\n\r", exclude_categories=["Cs"]), max_size=6)


@given(st.lists(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=5), min_size=1, max_size=5))
@example([[("\u0338", "\x02", "\x85\u2028")], [("e\u0301", "", "")]])
def test_tokens_are_read_back_clean(sentences: list[list[tuple[str, str, str]]]) -> None:
    plain = [
        [token for token in sentence if not token[0].startswith("<") and clean(token[0]).strip()]
        for sentence in sentences
    ]
    plain = [sentence for sentence in plain if sentence]
    text = "".join("<s>\n" + "".join("\t".join(token) + "\n" for token in each) + "</s>\n" for each in plain)
    found = vert(text)
    expected: Records = []
    for sentence in plain:
        expected += [
            OpenTag("s", {}),
            *(Token(tuple(map(clean, token))) for token in sentence),
            CloseTag("s"),
        ]
    assert [record for document in found for record in records(document)] == expected


@given(st.binary(max_size=200))
@example(b"<\xff>\n\xff\t\xe2\x82\n<s a='\xff'>\nx\ty\tz")
def test_any_bytes_give_lines_or_a_fault_that_says_why(data: bytes) -> None:
    try:
        vert(data)
    except ImportFileError as fault:
        assert "a.vert" in str(fault)


def test_the_sample_corpus_has_its_documented_counts(suites: Path, tmp_path: Path) -> None:
    corpus = suites / "cql" / "corpus.vert.zst"
    found = import_files(tmp_path / "corpus", [corpus], language="en")
    assert (found.documents, found.tokens, found.remarks) == (7_393, 2_946_944, ())
    counts = {b"\x02s\n": 0, b"\x02p\n": 0}
    for document in documents(tmp_path / "corpus"):
        for line in counts:
            counts[line] += (document.tokens or b"").count(line)
    assert counts == {b"\x02s\n": 131_792, b"\x02p\n": 77_935}
