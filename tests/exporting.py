"""What the tests of exports have in common: small corpora, and what becomes of them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from thresher.export.choice import Choice
from thresher.export.formats import export
from thresher.page import Block, LanguageShare, Page, Reply, Verdict
from thresher.store import corpus as corpora
from thresher.store.corpus import Corpus
from thresher.store.imports import import_files
from thresher.store.segments import Segments
from thresher.store.tables import DOCS, document_row
from thresher.store.warc import WarcWriter

REPLY = Reply("http://a.cz/", 200, b"", b"", 1_790_000_000.0, 0.0, "192.0.2.7")
TEXTS = ["Příliš žluťoučký kůň.\nDruhý <b> & odstavec.", "Jen jeden.", "Nechci být v modelu."]


def make(
    directory: Path, texts: list[str], title: str = 'A "title" <i>', pages: list[dict[str, Any]] | None = None
) -> Corpus:
    """A corpus of these texts; the last of them is opted out. `pages` tells what else each page has."""
    (directory / "corpus.toml").write_text('schema = 1\nlanguage = "cs"\n')
    docs = Segments(directory / "docs", DOCS, {}, 1 << 40)
    raw = WarcWriter(directory / "warc", {}, 1 << 30, "thresher", {})
    for n, text in enumerate(texts):
        about = {
            "url": f"http://a.cz/{n}?a=1&b=2",
            "opt_out": ("noai",) if n == len(texts) - 1 else (),
            **(pages[n] if pages else {}),
        }
        verdict = Verdict(True, "", about.pop("language", "cs"), about.pop("share", 1.0), 10)
        page = Page(
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
        docs.flush()  # a batch for each
    for part in (docs, raw):
        part.flush()
        part.close()
    return corpora.open(directory)


def exported(corpus: Corpus, name: str, choice: Choice | None = None, processes: int = 1) -> bytes:
    out = io.BytesIO()
    export(corpus, name, out, choice, processes=processes)
    return out.getvalue()


def with_imports(tmp_path: Path) -> Corpus:
    """A crawl with a text and tokens beside it."""
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
