"""Small corpora and their exports, for tests."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from thresher.annotate.tokenizer import tokens
from thresher.exporting.registry import export
from thresher.importing.corpora import import_files
from thresher.records import Block, LanguageShare, ReadResult, Reply, Verdict
from thresher.selection import DocumentFilter
from thresher.store import corpus_files as corpora
from thresher.store.corpus_files import CorpusFiles, paragraphs
from thresher.store.schemas import DOCS, document_row
from thresher.store.table_segments import TableSegments
from thresher.store.warc import WarcWriter

REPLY = Reply("http://a.cz/", 200, b"", b"", 1_790_000_000.0, 0.0, "192.0.2.7")
TEXTS = ["Příliš žluťoučký kůň.\nDruhý <b> & odstavec.", "Jen jeden.", "Nechci být v modelu."]
# Characters that could break a format, among all others but lone surrogates, which never get into a corpus.
ODD = "ab .<>&\"'\t\n_#=|-—éй漢。🙂\u00ad\u200b\ufeff\u2028\x85\x00"
TEXT = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])))


def make(
    directory: Path, texts: list[str], title: str = 'A "title" <i>', pages: list[dict[str, Any]] | None = None
) -> CorpusFiles:
    """Make a corpus of these texts, with an opt-out for the last one; `pages` has further fields of each page."""
    (directory / "corpus.toml").write_text('schema = 1\nlanguage = "cs"\n')
    docs = TableSegments(directory / "docs", DOCS, {}, 1 << 40)
    raw = WarcWriter(directory / "warc", {}, 1 << 30, "thresher", {})
    for n, text in enumerate(texts):
        about = {
            "url": f"http://a.cz/{n}?a=1&b=2",
            "opt_out": ("noai",) if n == len(texts) - 1 else (),
            **(pages[n] if pages else {}),
        }
        verdict = Verdict(True, "", about.pop("language", "cs"), about.pop("share", 1.0), 10)
        page = ReadResult(
            kind="html",
            title=title,
            text=text,
            blocks=(Block("Menu", 0.9), Block(text, 0.1)),
            languages=(LanguageShare("cs", 10, 1.0),),
            **about,
        )
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        reply = Reply(page.url, 200, head, text.encode(), REPLY.fetched + n, 0.0, "192.0.2.7")
        docs.append(*document_row(REPLY, page, verdict, seq=n, depth=0, raw=raw.add(reply)))
        docs.flush()  # one batch per document
    for part in (docs, raw):
        part.flush()
        part.close()
    return corpora.open(directory)


def exported(
    corpus: CorpusFiles, name: str, where: DocumentFilter | None = None, processes: int = 1
) -> bytes:
    """Return the bytes of a corpus in an export format."""
    out = io.BytesIO()
    export(corpus, name, out, where, processes=processes)
    return out.getvalue()


def with_imports(tmp_path: Path) -> CorpusFiles:
    """Make a crawled corpus with an imported text and imported tokens."""
    directory = tmp_path / "mixed"
    directory.mkdir()
    make(directory, ["Z webu.", "Nechci."])
    (tmp_path / "letter.jsonl").write_text(
        '{"id": "l1", "text": "Milá babičko!\\nPíšu.", "url": "https://x.sk/l", "date": "1999-01-02"}\n'
    )
    (tmp_path / "old.vert").write_text(
        '<doc id="o1" author="K. Č.">\n<s n="7">\nPsi\tNN\tpes\n</s>\n</doc>\n'
    )
    import_files(directory, [tmp_path / "letter.jsonl", tmp_path / "old.vert"])
    return corpora.open(directory)


def words_of(text: str) -> list[str]:
    """Return the words of a text as the tokenizer divides them."""
    return [word for paragraph in paragraphs(text) for word in tokens(paragraph, "cs")]
