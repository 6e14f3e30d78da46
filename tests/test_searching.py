"""Corpora are indexed and searched: crawled and imported ones, on the command line and in Python."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

import thresher
from exporting import TEXTS, make
from thresher.cli import main
from thresher.page import Block, LanguageShare, Metadata, Page, Reply, Verdict
from thresher.query.update import update
from thresher.store.imports import import_files
from thresher.store.segments import Segments
from thresher.store.tables import DOCS, LINKS, document_row

VERTICAL = """<doc id="a" year="2001" site="x.org">
<p>
<s>
The\tAT0\tthe
old\tAJ0\told
cat\tNN1\tcat
sleeps\tVVZ\tsleep
.\tPUN\t.
</s>
<s>
Cats\tNN2\tcat
sleep\tVVB\tsleep
</s>
</p>
</doc>
<doc id="b" year="2010" site="y.org">
<s>
An\tAT0\ta
old\tAJ0\told
dog\tNN1\tdog
sleeps\tVVZ\tsleep
</s>
</doc>
"""


class Told(NamedTuple):
    """What a command said."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str | Path, cwd: Path | None = None) -> Told:
    """A command, in this process: loading all that it needs takes longer than its work."""
    out, complaints = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    code = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(complaints),
        contextlib.chdir(cwd or Path.cwd()),
    ):
        patch.setattr(sys, "argv", ["thresher", *map(str, arguments)])
        try:
            main()
        except SystemExit as ending:
            code = int(ending.code or 0)
    out.flush()
    return Told(code, out.buffer.getvalue().decode(), complaints.getvalue())  # type: ignore[attr-defined]


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """A corpus of two imported documents, indexed in their order."""
    (tmp_path / "small.vert").write_text(VERTICAL)
    directory = tmp_path / "corpus"
    import_files(directory, [tmp_path / "small.vert"], language="en")
    update(directory, order="input")
    return directory


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


# the command line


def test_a_vertical_file_is_imported_indexed_and_counted(tmp_path: Path) -> None:
    (tmp_path / "small.vert").write_text(VERTICAL)
    given = (
        "import",
        "c",
        "small.vert",
        "--lang",
        "en",
        "--format",
        "vertical",
        "--attributes",
        "word,pos,lemma",
    )
    assert run(*given, cwd=tmp_path).returncode == 0
    made = json.loads(run("index", "c", "--order", "input", "--json", cwd=tmp_path).stdout)
    assert (made["documents"], made["tokens"], made["order"]) == (2, 11, "input")
    assert made["attributes"] == ["word", "pos", "lemma", "lc"]
    query = '[lemma="old"] [pos="NN."]'
    assert json.loads(run("search", "c", query, "--count", "--json", cwd=tmp_path).stdout) == {"hits": 2}
    told = json.loads(run("search", "c", query, "--spans", "--json", cwd=tmp_path).stdout)
    assert told == {"hits": 2, "spans": [[1, 2], [8, 9]]}
    longest = run(
        "search", "c", '[pos="A.*"]+ []', "--strategy", "longest", "--spans", "--json", cwd=tmp_path
    )
    assert json.loads(longest.stdout)["spans"] == [[0, 2], [7, 9]]
    again = json.loads(run("index", "c", "--json", cwd=tmp_path).stdout)
    assert (again["added"], again["deleted"], again["order"]) == (0, 0, "input")


def test_hits_are_lines_of_json_and_of_context_for_people(imported: Path) -> None:
    hits = lines(run("search", imported, '[lemma="cat"]', "--json", "--meta", "doc_id").stdout)
    assert [(hit["first"], hit["match"], hit["doc_id"]) for hit in hits] == [
        (2, "cat", "a"),
        (5, "Cats", "a"),
    ]
    assert hits[0]["left"] == "The old"
    shown = run("search", imported, '[lemma="cat"]')
    assert "The old  cat " in shown.stderr
    assert "2 hits" in shown.stderr


@pytest.mark.parametrize(
    ("options", "first"),
    [
        (("[]", "--freq", "lemma@match"), {"value": "sleep", "count": 3}),
        (('[pos="V.*"]', "--freq", "pos@match", "--by", "doc_year"), {"count": 1}),
        (('"old"', "--collocates", "--minimum", "2", "--attribute", "lemma"), {"value": "sleep", "joint": 3}),
        (("[]", "--distribution", "doc_site"), {"value": "x.org", "hits": 7}),
        (('"old"', "--dispersion"), {"hits": 2}),
        (("--words", "--attribute", "lc", "--matching", "s.*"), {"value": "sleeps", "count": 2}),
        (("--ngrams", "2", "--attribute", "pos"), {"value": "AJ0 NN1", "count": 2}),
        (("--retrieve", "old dog", "--unit", "s", "--rank", "rarity=2"), {"text": "An old dog sleeps"}),
    ],
)
def test_functions_are_options(imported: Path, options: tuple[str, ...], first: dict[str, object]) -> None:
    rows = lines(run("search", imported, *options, "--json").stdout)
    assert rows[0].items() >= first.items()


def test_tables_are_shown_to_people(imported: Path) -> None:
    shown = run("search", imported, '"old"', "--collocates", "--minimum", "1", "--limit", "3")
    assert "logdice" in shown.stderr
    assert "the first 3 of" in shown.stderr


def test_results_are_written_as_files(imported: Path, tmp_path: Path) -> None:
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        assert run("search", imported, "[]", "--freq", "word@match", "-o", tmp_path / name).returncode == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        from_csv = [row["value"] for row in csv.DictReader(file)]
    assert from_csv == [row["value"] for row in lines((tmp_path / "out.jsonl").read_text())]
    assert from_csv == pq.read_table(tmp_path / "out.parquet").column("value").to_pylist()


def test_a_subcorpus_has_a_name_and_is_searched_alone(imported: Path) -> None:
    made = run("subcorpora", imported, "new", "--where", "doc_year=>=2005")
    assert "new has 1 documents" in made.stderr
    rows = lines(run("search", imported, '[lemma="sleep"]', "--count", "--within", "new", "--json").stdout)
    assert rows[0]["hits"] == 1
    assert lines(run("subcorpora", imported, "--json").stdout)[0]["name"] == "new"
    keywords = lines(run("search", imported, "--keywords", "--within", "new", "--json").stdout)
    assert {row["value"] for row in keywords[:2]} <= {"a", "dog", "An"}
    assert run("subcorpora", imported, "new", "--delete").returncode == 0
    assert run("search", imported, "[]", "--count", "--within", "new").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (('[lemma="cat"',), "expected ]"),
        (('[lema="cat"]',), "no attribute lema"),
        ((), "what to search for"),
        (("[]", "--freq", "word@nowhere"), "is no place"),
        (("[]", "--freq", "word@match", "--collocates"), "cannot be had at once"),
        (("--retrieve", "cat", "--rank", "quality=x"), "has no numbers"),
        (("[]*",), "can match nothing"),
        (("[]", "--sort", "up"), "is no order"),
    ],
)
def test_what_cannot_be_asked_is_told_with_the_cure(
    imported: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    told = run("search", imported, *arguments)
    assert told.returncode == 2
    assert complaint in told.stderr


def test_a_corpus_without_an_index_says_how_to_make_one(tmp_path: Path) -> None:
    make(tmp_path, TEXTS)
    told = run("search", tmp_path, '"a"')
    assert told.returncode == 1
    assert f"thresher index {tmp_path}" in told.stderr


def test_a_search_that_takes_too_long_says_so(imported: Path) -> None:
    told = run("search", imported, "[]", "--spans", "--seconds", "-1", "--json")
    assert told.returncode == 1
    assert json.loads(told.stdout)["stopped"] == "the search took too long"


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("manifest.json", b"{"),
        ("000001/tokens", b"{"),
        ("000001/tokens", None),
        ("000001/doc.parquet", b"{"),
        ("000001/doc.parquet", None),
        ("000001", None),
    ],
)
def test_a_damaged_index_says_how_to_build_it_anew_and_that_works(
    imported: Path, name: str, left: bytes | None
) -> None:
    path = imported / "index" / name
    if left is not None:
        path.write_bytes(left)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    for command in (("search", imported, "[]"), ("index", imported)):
        told = run(*command)
        assert told.returncode == 1
        assert "--rebuild" in told.stderr
    assert run("index", imported, "--order", "input", "--rebuild").returncode == 0
    assert json.loads(run("search", imported, "[]", "--count", "--json").stdout) == {"hits": 11}


# crawled pages


def crawled(directory: Path, texts: dict[str, str], badness: dict[str, float] | None = None) -> None:
    """A corpus of these pages, by URL."""
    (directory / "corpus.toml").write_text('schema = 1\nlanguage = "en"\n')
    docs = Segments(directory / "docs", DOCS, {}, 1 << 40)
    for number, (url, text) in enumerate(texts.items()):
        reply = Reply(url, 200, b"", b"", 1_790_000_000.0, 0.0, "192.0.2.7")
        page = Page(
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


def test_crawled_pages_are_found_by_their_words_and_what_is_known_of_them(tmp_path: Path) -> None:
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
    (row, _) = corpus.ask("kwic", '"page"', meta=("doc_url", "doc_title")).records()
    assert (row["doc_url"], row["doc_title"]) == ("http://a.org/1", "A title")


def test_the_best_pages_come_first(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES, {"http://a.org/1": 9.0})
    update(tmp_path, annotator="plain", processes=1)
    rows = thresher.open(tmp_path).ask("kwic", '"page"', meta=("doc_host",)).records()
    assert [row["doc_host"] for row in rows] == ["b.org", "a.org"]
    update(tmp_path, order="input", annotator="plain", processes=1)
    rows = thresher.open(tmp_path).ask("kwic", '"page"', meta=("doc_host",)).records()
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
    first, second = (thresher.open(directory).index.segments[0].folder for directory in (one, several))
    assert (first / "tokens").read_bytes() == (second / "tokens").read_bytes()


def test_an_annotator_that_is_not_there_is_told(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    told = run("index", tmp_path, "--annotator", "nobody")
    assert told.returncode == 2
    assert "nobody" in told.stderr


def test_hosts_that_many_domains_link_to_have_authority(tmp_path: Path) -> None:
    crawled(tmp_path, PAGES)
    links = Segments(tmp_path / "links", LINKS, {}, 1 << 40)
    for source in ("http://x.org/", "http://y.net/", "http://www.b.org/", "http://x.org/other"):
        links.append(source, "http://b.org/2", "", 0.1, True, "", 0.0, True, 0.0, None)
    links.flush()
    links.close()
    update(tmp_path, annotator="plain", processes=1, order="authority")
    (segment,) = thresher.open(tmp_path).index.segments
    assert segment.dimensions["authority"].tolist() == pytest.approx([1.585, 0.0], abs=1e-3)
