"""Exports: every format writes the same documents, the same bytes each time."""

import gzip
import html
import io
import json
import os
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from thresher.page import Block, LanguageShare, Page, Reply, Verdict
from thresher.store import corpus as corpora
from thresher.store import segments
from thresher.store.corpus import Corpus, CorpusError
from thresher.store.formats import FORMATS, export, paragraphs, tokens
from thresher.store.segments import Segments
from thresher.store.tables import DOCS, document_row

REPLY = Reply("http://a.cz/", 200, b"", b"", 1_790_000_000.0, 0.0, "192.0.2.7")
TEXTS = ["Příliš žluťoučký kůň.\nDruhý <b> & odstavec.", "Jen jeden.", "Nechci být v modelu."]


def make(directory: Path, texts: list[str], title: str = 'A "title" <i>') -> Corpus:
    """A corpus of these texts; the last of them is opted out."""
    (directory / "corpus.toml").write_text("schema = 1\n")
    docs = Segments(directory / "docs", DOCS, {}, 1 << 40)
    for n, text in enumerate(texts):
        page = Page(
            f"http://a.cz/{n}?a=1&b=2",
            "html",
            title=title,
            text=text,
            blocks=(Block("Menu", 0.9), Block(text, 0.1)),
            languages=(LanguageShare("cs", 10, 1.0),),
            opt_out=("noai",) if n == len(texts) - 1 else (),
        )
        docs.append(*document_row(REPLY, page, Verdict(True, "", "cs", 1.0, 10), seq=n, depth=0, raw=None))
    docs.flush()
    docs.close()
    return corpora.open(directory)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make(tmp_path, TEXTS)


def exported(corpus: Corpus, name: str, **options) -> bytes:
    out = io.BytesIO()
    export(corpus, name, out, **options)
    return out.getvalue()


@pytest.mark.parametrize("name", FORMATS)
def test_a_corpus_of_which_nothing_may_be_exported_gives_no_documents(tmp_path: Path, name: str):
    assert export(make(tmp_path, ["opted out"]), name, io.BytesIO(), tlds=["cz"]) == 0


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_keeps_the_contract(corpus: Corpus, tmp_path: Path, name: str):
    out = io.BytesIO()
    assert export(corpus, name, out) == 2, "opted-out documents stay out"
    assert export(corpus, name, io.BytesIO(), opted_out=True) == 3, "unless they are asked for"
    assert export(corpus, name, io.BytesIO(), tlds=["cz", ".sk"]) == 2
    assert export(corpus, name, io.BytesIO(), tlds=["sk"]) == 0
    assert exported(corpus, name) == out.getvalue(), "the same corpus gives the same bytes"
    assert b"modelu" not in out.getvalue()

    form = FORMATS[name]
    assert form.suffix.startswith(".")
    assert form.summary
    plain, zipped, packed = (tmp_path / f"out{form.suffix}{end}" for end in ("", ".gz", ".zst"))
    for path in (plain, zipped, packed):
        assert export(corpus, name, path) == 2
    assert plain.read_bytes() == out.getvalue()
    assert gzip.decompress(zipped.read_bytes()) == out.getvalue()
    assert zstandard.ZstdDecompressor().stream_reader(packed.read_bytes()).read() == out.getvalue()
    first = zipped.read_bytes()
    export(corpus, name, zipped)
    assert zipped.read_bytes() == first, "no time, no name in the compressed file"
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_a_corpus_without_documents(tmp_path: Path, name: str):
    (tmp_path / "corpus.toml").write_text("schema = 1\n")
    assert export(corpora.open(tmp_path), name, io.BytesIO()) == 0


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_be_written_to_a_pipe(corpus: Corpus, name: str):
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as source:
        with os.fdopen(writer, "wb") as out:
            export(corpus, name, out)
        assert source.read() == exported(corpus, name)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_a_batch_before_it_takes_the_next(corpus: Corpus, monkeypatch, name: str):
    monkeypatch.setattr(segments, "ROW_GROUP_BYTES", 1)
    (batch,) = corpus.batches("docs")
    out = io.BytesIO()
    sizes = []

    def one_at_a_time():
        for _ in range(4):
            yield batch
            sizes.append(out.tell())

    assert FORMATS[name].write(one_at_a_time(), out) == 12
    assert sizes == sorted(set(sizes))


def test_an_unknown_format_is_refused_with_the_known_ones(corpus: Corpus):
    with pytest.raises(CorpusError, match=r"no format 'xml'; there are jsonl, parquet, txt, vertical"):
        export(corpus, "xml", io.BytesIO())


def test_an_export_that_fails_leaves_the_old_file(corpus: Corpus, tmp_path: Path):
    target = tmp_path / "out.txt"
    export(corpus, "txt", target)
    before = target.read_bytes()
    (corpus.directory / "docs" / "docs-00001.arrows").unlink()
    (corpus.directory / "status.json").write_text('{"files": {"docs/docs-00001.arrows": 5}}')
    with pytest.raises(CorpusError):
        export(corpus, "txt", target)
    assert target.read_bytes() == before
    assert not list(tmp_path.glob("*.tmp"))


def test_a_device_is_written_to_as_it_is(corpus: Corpus):
    assert export(corpus, "txt", Path(os.devnull)) == 2
    assert Path(os.devnull).is_char_device()


def test_jsonl_has_every_column_of_every_document(corpus: Corpus):
    rows = [json.loads(line) for line in exported(corpus, "jsonl").splitlines()]
    assert [row["text"] for row in rows] == TEXTS[:2]
    assert list(rows[0]) == DOCS.names
    assert rows[0]["fetched"] == "2026-09-21T14:13:20Z"
    assert rows[0]["languages"] == [{"code": "cs", "bytes": 10, "share": 1.0}]
    assert rows[0]["paragraphs"][0] == {"text": "Menu", "boilerplate": 0.9, "language": ""}
    assert rows[0]["badness"] is None


def test_parquet_is_the_table_of_documents(corpus: Corpus):
    table = pq.read_table(io.BytesIO(exported(corpus, "parquet", opted_out=True)))
    assert table.equals(corpus.docs())


def test_text_has_a_paragraph_per_line_and_a_blank_line_between_documents(corpus: Corpus):
    text = exported(corpus, "txt").decode()
    assert text == "Příliš žluťoučký kůň.\nDruhý <b> & odstavec.\n\nJen jeden.\n"


def test_a_document_without_text_leaves_no_gap(tmp_path: Path):
    corpus = make(tmp_path, ["a", " \n\x00", "b\x0bc\u2028d  e\x85", "opted out"])
    assert exported(corpus, "txt") == b"a\n\nb\nc\nd e\n"


def test_vertical_text_has_a_token_per_line_and_glue(corpus: Corpus):
    lines = exported(corpus, "vertical").decode().splitlines()
    assert lines[0] == (
        '<doc url="http://a.cz/0?a=1&amp;b=2" host="a.cz" domain="a.cz" language="cs"'
        ' title="A &quot;title&quot; &lt;i&gt;" license="" fetched="2026-09-21T14:13:20+00:00">'
    )
    assert lines[1:7] == ["<p>", "Příliš", "žluťoučký", "kůň", "<g/>", "."]
    assert lines[7:18] == [
        "</p>", "<p>", "Druhý", "&lt;", "<g/>", "b", "<g/>", "&gt;", "&amp;", "odstavec", "<g/>",
    ]  # fmt: skip
    assert lines[-1] == "</doc>"


def test_a_title_cannot_break_out_of_its_attribute(tmp_path: Path):
    corpus = make(tmp_path, ["a", "b"], title='x"\n</doc>\r\n<doc url="evil\x00')
    first = exported(corpus, "vertical").decode().splitlines()[0]
    assert 'title="x&quot; &lt;/doc&gt; &lt;doc url=&quot;evil"' in first


def words(text: str) -> list[str]:
    return [token for token, _ in tokens(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't pay 3.50, e-mail us.", ["Don't", "pay", "3.50", ",", "e-mail", "us", "."]),
        ("at 12:30 (2nd)…", ["at", "12:30", "(", "2nd", ")", "…"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("日本語。東京", ["日", "本", "語", "。", "東", "京"]),
        ("ดีครับ", ["ดี", "ค", "รั", "บ"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
        ("e\u0301te\u0301 👩\u200d💻!", ["e\u0301te\u0301", "👩\u200d💻", "!"]),
        ("a--b 'c'", ["a", "-", "-", "b", "'", "c", "'"]),
        ("x_y ½ Ⅻ", ["x_y", "½", "Ⅻ"]),
    ],
)
def test_words_of_many_scripts_stay_whole(text: str, expected: list[str]):
    assert words(text) == expected


@given(st.text())
@example("a\u0301 <\u0338b> \u200d\u200d 1.1.1.x '' ’’")
def test_tokens_and_glue_give_the_text_back(text: str):
    for paragraph in paragraphs(text):
        rebuilt = "".join(token if glued else f" {token}" for token, glued in tokens(paragraph))
        assert rebuilt.removeprefix(" ") == paragraph


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_no_text_can_forge_a_tag_or_a_line(tmp_path_factory: pytest.TempPathFactory, texts: list[str]):
    corpus = make(tmp_path_factory.mktemp("corpus"), [*texts, "opted out"])
    lines = exported(corpus, "vertical").decode().split("\n")
    allowed = re.compile(r"<doc [^<>]*>|</doc>|<p>|</p>|<g/>|[^<>\s\x00-\x1f]+|")
    assert all(allowed.fullmatch(line) for line in lines)
    assert sum(line.startswith("<doc ") for line in lines) == len(texts)
    seen = [html.unescape(line) for line in lines if line and not line.startswith("<")]
    assert "".join(seen) == "".join("".join(p.split()) for text in texts for p in paragraphs(text))


@pytest.mark.parametrize("text", ["1." * 100_000 + "x", "'" * 200_000, "a-" * 100_000, "\u0301" * 200_000])
def test_hostile_text_is_tokenised_in_linear_time(text: str):
    # A tokeniser that starts over at every sign would need hours for these.
    assert "".join(words(text)) == text
