"""Corpora are indexed and searched: crawled and imported ones."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

import thresher
from support.command_line import run
from support.corpora.exports import TEXTS, make
from thresher.importing.corpora import import_files
from thresher.records import Block, LanguageShare, Metadata, ReadResult, Reply, Verdict
from thresher.search.index.documents import text_of
from thresher.search.index.update import update
from thresher.store.schemas import DOCS, LINKS, document_row
from thresher.store.table_segments import TableSegments

VERTICAL = """<doc id="a">
<s>
The\tAT0\tthe
cat\tNN1\tcat
</s>
<s>
Cats\tNN2\tcat
sleep\tVVB\tsleep
</s>
</doc>
"""


def crawled(directory: Path, texts: dict[str, str], badness: dict[str, float] | None = None) -> None:
    """Return a corpus of these pages, by URL."""
    (directory / "corpus.toml").write_text('schema = 1\nlanguage = "en"\n')
    docs = TableSegments(directory / "docs", DOCS, {}, 1 << 40)
    for number, (url, text) in enumerate(texts.items()):
        reply = Reply(url, 200, b"", b"", 1_790_000_000.0, 0.0, "192.0.2.7")
        page = ReadResult(
            url, "html", title="A title", text=text, blocks=(Block("Menu", 0.9), Block(text, 0.1)),
            languages=(LanguageShare("en", 10, 1.0),), badness=(badness or {}).get(url, 1.0),
            metadata=Metadata(published="2019-05-01" if number == 0 else ""),
        )  # fmt: skip
        docs.append(
            *document_row(reply, page, Verdict(True, "", "en", 0.9, 10), seq=number, depth=0, raw=None)
        )
    docs.flush()
    docs.close()


PAGES = {
    "http://a.org/1": "The first page. It has two sentences.\nAnd a paragraph.",
    "http://b.org/2": "The second page.",
}


def test_crawled_pages_are_found_by_their_words_and_metadata(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    update(tmp_path, annotator="plain", processes=1)
    corpus = thresher.open(tmp_path)
    assert corpus.search('"page"').count() == 2
    assert corpus.search("<s> []").count() == 4
    assert corpus.search("<p> []").count() == 3
    assert corpus.search('"Menu"').count() == 0
    assert corpus.search('"page" :: match.doc_host = "a.org"').count() == 1
    assert corpus.search('"page" :: match.doc_year = "2019"').count() == 1
    assert corpus.search('"page" :: match.doc_language = "en"').count() == 2
    assert corpus.search('[lc="the"]').count() == 2
    (row, _) = corpus.search('"page"').concordance(meta=("doc_url", "doc_title")).records()
    assert (row["doc_url"], row["doc_title"]) == ("http://a.org/1", "A title")


def test_an_unknown_year_is_not_the_year_of_the_crawl(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    update(tmp_path, annotator="plain", processes=1)
    rows = (
        thresher.open(tmp_path).search("page").concordance(meta=["doc_host", "doc_year", "doc_fetched_year"])
    )
    assert {row["doc_host"]: (row["doc_year"], row["doc_fetched_year"]) for row in rows} == {
        "a.org": ("2019", "2026"),
        "b.org": ("", "2026"),
    }
    update(tmp_path, order="recency", processes=1)
    rows = thresher.open(tmp_path).search("page").concordance(meta=["doc_host"])
    assert [row["doc_host"] for row in rows] == ["a.org", "b.org"], "undated pages come last"


@pytest.mark.parametrize("unknown", ["", None])
@pytest.mark.parametrize("known", ["2019-05-01", date(2019, 5, 1), datetime(2019, 5, 1, tzinfo=UTC)])
def test_dates_are_read_as_texts_as_dates_and_as_nulls(unknown: str | None, known: object) -> None:
    page = {
        "url": "http://a.org/", "host": "a.org", "domain": "a.org", "fetched": None, "title": "", "text": "One.",
        "language": "en", "language_share": 1.0, "badness": 1.0, "suspicion": None, "author": unknown,
        "published": unknown, "modified": known, "site_name": unknown, "license": unknown,
    }  # fmt: skip
    text = text_of(1, page)
    assert text.meta["year"] == "2019"
    assert text.meta["modified"].startswith("2019-05-01")
    assert not {"published", "author", "site_name", "license", "fetched_year"} & text.meta.keys()
    assert text.dimensions["recency"] == pytest.approx(2019.33, abs=0.01)


def test_the_best_pages_come_first(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES, {"http://a.org/1": 9.0})
    update(tmp_path, annotator="plain", processes=1)
    rows = thresher.open(tmp_path).search('"page"').concordance(meta=("doc_host",)).records()
    assert [row["doc_host"] for row in rows] == ["b.org", "a.org"]
    update(tmp_path, order="input", annotator="plain", processes=1)
    rows = thresher.open(tmp_path).search('"page"').concordance(meta=("doc_host",)).records()
    assert [row["doc_host"] for row in rows] == ["a.org", "b.org"]


def test_an_index_follows_its_corpus(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    update(tmp_path, annotator="plain", processes=1)
    corpus = thresher.open(tmp_path)
    assert corpus.search('"page"').count() == 2
    for path in (tmp_path / "docs").iterdir():
        path.unlink()
    crawled(tmp_path, {"http://a.org/1": PAGES["http://a.org/1"], "http://c.org/": "A third page"})
    changes = update(tmp_path, annotator="plain", processes=1)
    assert (changes.added, changes.deleted) == (1, 1)
    assert corpus.search('"page"').count() == 2
    assert corpus.search('"second"').count() == 0
    assert corpus.search('"third"').count() == 1


def test_pages_that_were_opted_out_are_not_found_unless_asked_for(tmp_path: Path) -> None:
    make(tmp_path, TEXTS)
    update(tmp_path, annotator="plain", processes=1)
    corpus = thresher.open(tmp_path)
    assert corpus.search('"modelu"').count() == 0
    update(tmp_path, annotator="plain", processes=1, opted_out=True)
    assert corpus.search('"modelu"').count() == 1
    update(tmp_path, annotator="plain", processes=1)
    assert corpus.search('"modelu"').count() == 0


def test_crawled_and_imported_texts_are_searched_together(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    (tmp_path / "mine.txt").write_text("My own page of text.")
    (tmp_path / "small.vert").write_text(VERTICAL)
    import_files(tmp_path, [tmp_path / "mine.txt", tmp_path / "small.vert"])
    update(tmp_path, annotator="plain", processes=1)
    corpus = thresher.open(tmp_path)
    assert corpus.search('"page"').count() == 3
    assert corpus.search('"page" :: match.doc_source = "web"').count() == 2
    assert corpus.search('"page" :: match.doc_source = "mine.txt"').count() == 1
    assert corpus.search('[lemma="cat"]').count() == 2


def test_processes_annotate_as_one_would(tmp_path: Path) -> None:
    one, several = tmp_path / "one", tmp_path / "several"
    for directory, processes in ((one, 1), (several, 2)):
        directory.mkdir()
        crawled(directory, {f"http://a.org/{n}": f"Page {n} has a word. " * 3 for n in range(40)})
        update(directory, annotator="plain", processes=processes)
    first, second = (thresher.open(directory).index_reader.segments[0].folder for directory in (one, several))
    assert (first / "tokens").read_bytes() == (second / "tokens").read_bytes()


def test_an_unknown_annotator_is_an_error(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    done = run("index", tmp_path, "--annotator", "unknown")
    assert done.returncode == 2
    assert "unknown annotator 'unknown'" in done.stderr


def test_hosts_that_many_domains_link_to_have_authority(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    links = TableSegments(tmp_path / "links", LINKS, {}, 1 << 40)
    for source in ("http://x.org/", "http://y.net/", "http://www.b.org/", "http://x.org/other"):
        links.append(source, "http://b.org/2", "", 0.1, True, "", 0.0, True, 0.0, None)
    links.flush()
    links.close()
    update(tmp_path, annotator="plain", processes=1, order="authority")
    (segment,) = thresher.open(tmp_path).index_reader.segments
    assert segment.dimensions["authority"].tolist() == pytest.approx([1.585, 0.0], abs=1e-3)
