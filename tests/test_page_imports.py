"""Pages of archives and saved pages: read and judged as in a crawl, and documents beside crawled ones."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard

import thresher
from archives import arc, http, packed, page, paragraphs, record, response
from batch_corpora import Here, recipe
from exporting import make
from importing import VERTICAL_EXAMPLE
from thresher.batch.run import process
from thresher.config import ConfigError
from thresher.engine import imports as engine_imports
from thresher.engine.imports import Hashes, import_files, import_pages
from thresher.engine.inputs import address, page_format
from thresher.engine.local import Readers
from thresher.engine.nursery import Nursery
from thresher.export.choice import choice
from thresher.export.dataset import ARCHIVED
from thresher.export.formats import export
from thresher.query.update import update
from thresher.store.corpus import CorpusError, Document
from thresher.store.importers.source import ImportFault
from thresher.store.imports import Imported
from thresher.store.pages import Figures, PageWriter, described, page_paths

STUBBORN = """
import os, signal, sys
from thresher.engine import worker
from thresher.read.reader import read

def stubborn(reply, language, settings):
    if b"KILL" in reply.body: os.kill(os.getpid(), 9)
    if b"STALL" in reply.body: signal.pause()
    return read(reply, language, settings)

worker.main(lambda: stubborn, int(sys.argv[1]))
"""


def bring(directory: Path, name: str, data: bytes, **options: Any) -> Imported:
    path = directory / name
    path.write_bytes(data)
    return import_files(directory / "corpus", [path], language="en", **options)


def pages(directory: Path) -> list[Document]:
    return list(thresher.open(directory / "corpus"))


def texts(found: Sequence[Document]) -> list[str]:
    return [document.text for document in found]


def text(number: int) -> str:
    return "\n".join(paragraphs(number))


# archives


def test_a_page_of_an_archive_is_a_document_like_one_that_was_crawled(tmp_path: Path) -> None:
    licence = (
        "<link rel=license href=https://creativecommons.org/licenses/by/4.0/><meta name=robots content=noai>"
    )
    data = packed(record("warcinfo", "", b"a: b"), response("http://www.a.co.uk/1#top", page(1, licence)))
    done = bring(tmp_path, "a.warc.gz", data)
    assert done.pages == Figures(records=2, pages=1, kept=1, others=1)
    assert (done.files, done.documents) == (("a.warc.gz",), 1)
    (found,) = pages(tmp_path)
    assert (found.url, found.host, found.domain) == ("http://www.a.co.uk/1", "www.a.co.uk", "a.co.uk")
    assert (found.status, found.language, found.charset, found.depth, found.seq) == (
        200,
        "en",
        "utf-8",
        0,
        -2,
    )
    assert (found.fetched.isoformat(), found.title) == ("2026-03-01T09:30:00+00:00", "Mill 1")
    assert found.text == text(1) and [block.text for block in found.paragraphs] == paragraphs(1)
    assert found.badness is not None and found.badness < 10 and found.language_share > 0.9
    assert found.opt_out == ("noai",) and "creativecommons" in found.license
    corpus = thresher.open(tmp_path / "corpus")
    assert len(corpus) == 1
    assert corpus.raw(found).body == page(1, licence)


def test_wet_records_are_judged_by_their_text_and_their_lines_are_paragraphs(tmp_path: Path) -> None:
    english = "\n".join(["Menu", *paragraphs(2)])
    czech = (
        "Příliš žluťoučký kůň úpěl ďábelské ódy, a proto jsme se rozhodli jít domů dřív než obvykle.\n" * 20
    )
    data = packed(
        record("conversion", "http://a.uk/2", english.encode(), "text/plain"),
        record("conversion", "http://a.cz/3", czech.encode(), "text/plain"),
    )
    done = bring(tmp_path, "a.warc.wet.gz", data)
    assert done.pages == Figures(records=2, pages=2, kept=1, rejected={"language": 1})
    (found,) = pages(tmp_path)
    assert (found.text, found.status, found.charset) == (english, 0, "utf-8")
    assert [block.text for block in found.paragraphs] == english.split("\n")
    assert thresher.open(tmp_path / "corpus").raw(found).body == english.encode()


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("br", brotli.compress),
        ("zstd", zstandard.ZstdCompressor().compress),
        ("identity", bytes),
    ],
)
def test_content_encodings_and_chunks_are_undone(tmp_path: Path, coding: str, pack) -> None:
    body = pack(page(3))
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    head = (f"Content-Encoding: {coding}", "Transfer-Encoding: chunked")
    bring(tmp_path, "a.warc", response("http://a.uk/3", chunks, *head))
    assert texts(pages(tmp_path)) == [text(3)]


def test_arc_files_are_imported_and_an_archive_is_known_by_its_content(tmp_path: Path) -> None:
    data = b"filedesc://x 0.0.0.0 20260301000000 text/plain 3\n1 0\n" + arc("http://a.uk/4", http(page(4)))
    bring(tmp_path, "a.arc", data)
    bring(tmp_path, "download", packed(response("http://a.uk/5", page(5))))
    assert texts(pages(tmp_path)) == [text(4), text(5)]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.warc", b"", "warc"),
        ("CC-MAIN-20260101.warc.wet.gz", b"", "warc"),
        ("A.ARC.GZ", b"", "warc"),
        ("a.warc.zst", b"", "warc"),
        ("a.html", b"", "html"),
        ("a", packed(b"WARC/1.0\r\n"), "warc"),
        ("a.gz", packed(b"filedesc://"), "warc"),
        ("a", b"<!-- saved --> <!DOCTYPE html>", "html"),
        ("a.txt", b"WARC/1.0\r\n", ""),
        ("a.bin", b"\0\1\2", ""),
        ("a.bin", b"", ""),
    ],
)
def test_what_a_file_is_its_name_tells_or_its_content(
    tmp_path: Path, name: str, data: bytes, expected: str
) -> None:
    (tmp_path / name).write_bytes(data)
    assert page_format(tmp_path / name, None) == expected
    assert page_format(tmp_path / name, "html") == "html"
    assert page_format(tmp_path / name, "jsonl") == ""


def test_duplicates_are_left_out_and_counted_within_and_across_archives(tmp_path: Path) -> None:
    twin = page(1).replace(b"Mill 1", b"Another title, and the same text")
    data = packed(
        response("http://a.uk/1", page(1)),
        response("http://a.uk/1", page(1)),
        response("http://a.uk/twin", twin),
        record("revisit", "http://a.uk/1", http(b"")),
    )
    done = bring(tmp_path, "a.warc.gz", data)
    expected = {"raw duplicate": 1, "text duplicate": 1}
    assert done.pages == Figures(records=4, pages=3, kept=1, rejected=expected, revisits=1)
    again = bring(
        tmp_path, "b.warc.gz", packed(response("http://b.uk/", twin), response("http://b.uk/2", page(2)))
    )
    assert again.pages and again.pages.rejected == {"text duplicate": 1}
    assert texts(pages(tmp_path)) == [text(1), text(2)]
    assert (
        "4 records, 3 pages, 1 kept; rejected: 1 × raw duplicate, 1 × text duplicate; 1 revisits"
        in done.remarks[0]
    )


def test_rejected_pages_are_counted_by_reason_and_a_damaged_archive_gives_what_it_can(tmp_path: Path) -> None:
    data = packed(
        response("http://a.uk/1", page(1)),
        response("http://a.uk/2", b"<p>short</p>"),
        response("http://a.uk/3", page(3, "<meta name=robots content=noindex>")),
        response("http://a.uk/4", page(4), status="404 Not Found"),
        record("response", "dns:a.uk", b"a.uk. IN A 1.2.3.4", "text/dns"),
    )
    data += b"junk" + packed(response("http://a.uk/5", page(5)), response("http://a.uk/6", page(6)))[:-60]
    done = bring(tmp_path, "a.warc.gz", data)
    assert done.pages and done.pages.kept == 2 and done.pages.damaged == 1 and done.pages.bytes_skipped > 4
    reasons = {"too little html": 1, "noindex": 1, "http 404": 1, "not http": 1, "truncated": 1}
    assert done.pages.rejected == reasons
    assert texts(pages(tmp_path)) == [text(1), text(5)]
    (path,) = page_paths(tmp_path / "corpus")
    told = described(path)
    assert told.figures == done.pages
    assert (told.sha256, told.bytes) == (hashlib.sha256(data).hexdigest(), len(data))


def test_an_archive_is_imported_once_and_one_without_records_not_at_all(tmp_path: Path) -> None:
    data = packed(response("http://a.uk/1", page(1)))
    bring(tmp_path, "a.warc.gz", data)
    again = bring(tmp_path, "copy.warc.gz", data)
    assert (again.files, again.skipped) == ((), ("copy.warc.gz",))
    assert "was imported before" in again.remarks[0]
    with pytest.raises(ImportFault, match=r"no\.warc has no record that could be read; is it an archive"):
        bring(tmp_path, "no.warc", b"nothing of the kind")
    assert len(pages(tmp_path)) == 1
    names = sorted(path.name for path in (tmp_path / "corpus" / "imports").iterdir())
    assert names == ["pages-000001.parquet"]


def test_an_archive_that_is_refused_does_not_stand_in_the_way_of_others(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(packed(response("http://a.uk/1", page(1))))
    (tmp_path / "empty.warc.gz").write_bytes(b"")
    (tmp_path / "b.warc.gz").write_bytes(packed(response("http://a.uk/2", page(2))))
    (tmp_path / "bad.vert").write_text("a\tb\n")
    (tmp_path / "c.vert").write_bytes(VERTICAL_EXAMPLE)
    names = ["a.warc.gz", "empty.warc.gz", "bad.vert", "b.warc.gz", "c.vert"]
    done = command("corpus", *names, "--lang", "en", "--json", cwd=tmp_path)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert sorted(told["files"]) == ["a.warc.gz", "b.warc.gz", "c.vert"]
    assert [each["file"] for each in told["refused"]] == ["bad.vert", "empty.warc.gz"]
    assert told["pages"]["kept"] == 2
    assert b"a.warc.gz: 1 records, 1 pages, 1 kept" in done.stderr
    assert b"3 documents with 2 tokens imported from 3 of 5 files; 2 refused" in done.stderr
    assert b"empty.warc.gz has no record that could be read; is it an archive?" in done.stderr
    assert texts(pages(tmp_path)) == [text(1), text(2)]
    again = command("corpus", *names, cwd=tmp_path)
    assert again.returncode == 1 and again.stderr.count(b"was imported before") == 3


def test_what_was_imported_before_a_fault_of_the_machine_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        data = packed(response(f"http://a.uk/{number}", page(number)))
        (tmp_path / f"{number}.warc.gz").write_bytes(data)
    (tmp_path / "a.vert").write_bytes(VERTICAL_EXAMPLE)
    seal = PageWriter.seal

    def full(writer: PageWriter, told: Mapping[str, str]) -> Path:
        if told["source"] == "2.warc.gz":
            raise OSError(28, "No space left on device")
        return seal(writer, told)

    monkeypatch.setattr(PageWriter, "seal", full)
    found: list[Imported] = []
    with pytest.raises(OSError, match="No space left"):
        import_files(
            *(tmp_path / "corpus", [tmp_path / name for name in ("1.warc.gz", "2.warc.gz", "a.vert")]),
            language="en",
            report=found.append,
        )
    (told,) = found
    assert (told.files, told.documents, told.refused) == (("a.vert", "1.warc.gz"), 2, ())
    assert texts(pages(tmp_path)) == [text(1)]


def test_the_bytes_are_the_same_however_many_processes_read(tmp_path: Path) -> None:
    data = packed(*(response(f"http://a.uk/{n}", page(n % 30)) for n in range(60)))
    (tmp_path / "a.warc.gz").write_bytes(data)
    stored = []
    for processes in (1, 3):
        import_files(tmp_path / str(processes), [tmp_path / "a.warc.gz"], language="en", processes=processes)
        (path,) = page_paths(tmp_path / str(processes))
        stored.append(path.read_bytes())
    assert stored[0] == stored[1]
    assert len(thresher.open(tmp_path / "3")) == 30


def test_a_page_that_kills_or_stalls_its_reader_does_not_end_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn(Readers):
        def __init__(self, settings: Any, language: str) -> None:
            super().__init__(settings, language, Nursery(("-c", STUBBORN)))

    monkeypatch.setattr(engine_imports, "Readers", Stubborn)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "corpus.toml").write_text('language = "en"\n[read]\ndeadline = 3.0\n')
    bodies = [page(1), page(2) + b"KILL", page(3), page(4) + b"STALL", page(5)]
    data = packed(*(response(f"http://a.uk/{n}", body) for n, body in enumerate(bodies)))
    done = bring(tmp_path, "a.warc.gz", data)
    assert done.pages and done.pages.rejected == {"reader died": 1, "reader stalled": 1}
    assert any(remark.startswith("http://a.uk/1: reader died") for remark in done.remarks)
    assert texts(pages(tmp_path)) == [text(1), text(3), text(5)]


def test_imported_pages_are_exported_indexed_and_found(tmp_path: Path) -> None:
    bring(
        tmp_path, "a.warc.gz", packed(response("http://a.uk/7", page(7)), response("http://a.uk/8", page(8)))
    )
    corpus = thresher.open(tmp_path / "corpus")
    assert export(corpus, "jsonl", tmp_path / "out.jsonl").documents == 2
    raw = export(corpus, "wacz", tmp_path / "out.wacz")
    assert raw.documents == 0 and raw.left_out["raw page is in an archive that was imported"] == 2
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["url"] for line in lines] == ["http://a.uk/7", "http://a.uk/8"]
    assert update(tmp_path / "corpus", processes=1).added == 2
    assert corpus.search('"1007" :: match.doc_host = "a.uk"').count() == 1
    page_paths(tmp_path / "corpus")[0].unlink()
    assert update(tmp_path / "corpus", processes=1).deleted == 2


def test_a_raw_page_is_found_where_its_archive_was_or_in_the_corpus(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(response(f"http://a.uk/{n}", page(n)) for n in range(3)))
    bring(tmp_path, "a.warc.gz", whole)
    corpus = thresher.open(tmp_path / "corpus")
    found = list(corpus)
    assert [corpus.raw(each).body for each in found] == [page(n) for n in range(3)]
    (tmp_path / "corpus" / "archives").mkdir()
    moved = (tmp_path / "a.warc.gz").rename(tmp_path / "corpus" / "archives" / "a.warc.gz")
    assert corpus.raw(found[2]).body == page(2)
    moved.unlink()
    with pytest.raises(
        CorpusError, match=r"a\.warc\.gz cannot be read .*restore it, or put it into .*archives"
    ):
        corpus.raw(found[2])


@pytest.mark.parametrize("date", ["", "long ago", "0001-01-01T00:00:00Z"])
def test_a_page_of_which_nobody_knows_when_it_was_fetched_has_no_date(tmp_path: Path, date: str) -> None:
    bring(
        tmp_path,
        "a.warc",
        response("http://a.com/1", page(1), date=date) + response("http://a.com/2", page(2)),
    )
    first, second = pages(tmp_path)
    corpus = thresher.open(tmp_path / "corpus")
    assert (first.fetched, second.fetched is None) == (None, False)
    assert corpus.raw(first).url == first.url
    for asked, count in ((choice(until="2000"), 0), (choice(since="2000"), 1), (choice(), 2)):
        assert export(corpus, "txt", io.BytesIO(), asked).documents == count
    for name in ("jsonl", "vertical", "conllu", "tei"):
        out = io.BytesIO()
        export(corpus, name, out, processes=1)
        assert b"1970" not in out.getvalue()
    export(corpus, "huggingface", tmp_path / "set")
    card = (tmp_path / "set" / "README.md").read_text()
    assert "\nWritten by" in card and f"{ARCHIVED}: 2." in card and "robots.txt" not in card
    assert "downloaded between 2026-03-01 and 2026-03-01; of 1 nobody knows when." in card
    recipe(tmp_path / "corpus", {"step": "statistics"}, {"step": "index", "annotator": "plain"})
    assert process(tmp_path / "corpus", Here()).state == "done"


# saved pages


def test_a_folder_of_saved_pages_is_imported_with_the_addresses_that_they_tell(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    (folder / "deep").mkdir(parents=True)
    (folder / "1.html").write_bytes(page(1, '<link href="https://a.uk/one?a=1&amp;b=2" rel="canonical">'))
    (folder / "2.HTM").write_bytes(page(2, "<meta property='og:url' content=https://a.uk/two>"))
    (folder / "3.html").write_bytes(b"<!-- saved from url=(0020)https://a.uk/three -->" + page(3))
    (folder / "deep" / "4.xhtml").write_bytes(page(4).decode().encode("utf-16"))
    (folder / "picture.png").write_bytes(b"\x89PNG")
    done = import_files(tmp_path / "corpus", [folder], language="en")
    assert done.pages == Figures(records=4, pages=4, kept=4)
    found = pages(tmp_path)
    here = (folder / "deep" / "4.xhtml").as_uri()
    assert [each.url for each in found] == [
        "https://a.uk/one?a=1&b=2",
        "https://a.uk/two",
        "https://a.uk/three",
        here,
    ]
    assert texts(found) == [text(n) for n in range(1, 5)]
    assert [each.charset for each in found] == ["utf-8", "utf-8", "utf-8", "utf-16le"]
    assert thresher.open(tmp_path / "corpus").raw(found[0]).body == (folder / "1.html").read_bytes()
    assert import_files(tmp_path / "corpus", [folder]).skipped == ("saved",)
    more = import_files(tmp_path / "corpus", [folder / "1.html", folder / "2.HTM"])
    assert more.pages and more.pages.rejected == {"raw duplicate": 2}
    assert more.files == ("1.html", "2.HTM")


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (b"<link rel=canonical href=https://a.cz/x>", "https://a.cz/x"),
        (b"<link rel='alternate canonical' href='/x'>", None),
        (b"<link rel=alternate href=https://a.cz/x>", None),
        (
            b"<meta name=og:url content='https://a.cz/y'><link rel=canonical href=https://a.cz/x>",
            "https://a.cz/x",
        ),
        (
            b"<link rel=canonical href=ftp://a.cz/><meta property=og:url content=https://a.cz/y>",
            "https://a.cz/y",
        ),
        (b"<link " * 100_000, None),
        (b"", None),
    ],
)
def test_a_page_is_where_it_says_if_that_is_on_the_web(markup: bytes, expected: str | None) -> None:
    assert address(markup) == expected


def test_a_folder_without_pages_and_a_file_that_is_not_there_are_mistakes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One.")
    with pytest.raises(ConfigError, match=r"is a directory without saved pages .*give them: .*/\*"):
        import_files(tmp_path / "corpus", [tmp_path], language="en")
    with pytest.raises(ConfigError, match=r"none\.warc does not exist"):
        import_files(tmp_path / "corpus", [tmp_path / "a.txt", tmp_path / "none.warc"], language="en")
    (tmp_path / "a.html").write_bytes(page(1))
    with pytest.raises(ConfigError, match="--attributes is for vertical"):
        import_files(tmp_path / "corpus", [tmp_path / "a.html"], language="en", attributes=["word"])
    assert not (tmp_path / "corpus").exists()


# the command


def command(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, "-m", "thresher.cli", "import", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, check=False, timeout=120, **options)
    assert b"Traceback" not in done.stderr, done.stderr
    return done


def test_the_command_takes_all_kinds_at_once_and_tells_machines_the_figures(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(
        packed(response("http://a.uk/1", page(1)), response("http://a.uk/2", b"-"))
    )
    (tmp_path / "b.html").write_bytes(page(2))
    (tmp_path / "c.vert").write_bytes(VERTICAL_EXAMPLE)
    names = ["a.warc.gz", "b.html", "c.vert"]
    done = command("corpus", *names, "--lang", "en", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["documents"], sorted(told["files"])) == (3, names)
    assert told["pages"]["kept"] == 2 and told["pages"]["rejected"] == {"too little html": 1}
    assert b"rejected: 1 \xc3\x97 too little html" in done.stderr
    assert b"3 documents with 2 tokens imported from 3 of 3 files" in done.stderr


def test_an_archive_may_come_through_a_pipe(tmp_path: Path) -> None:
    data = packed(response("http://a.uk/1", page(1)))
    done = command("corpus", "-", "--format", "warc", "--lang", "en", cwd=tmp_path, input=data)
    assert done.returncode == 0, done.stderr
    (found,) = pages(tmp_path)
    assert (found.text, found.warc_file) == (text(1), None)
    again = command("corpus", "-", "--format", "warc", cwd=tmp_path, input=data)
    assert b"was imported before" in again.stderr


def test_a_saved_page_may_come_through_a_pipe(tmp_path: Path) -> None:
    told = page(1, '<link rel="canonical" href="http://a.uk/told">')
    for body, url in ((told, "http://a.uk/told"), (page(2), "file:///dev/stdin")):
        done = command("corpus", "-", "--format", "html", "--lang", "en", "--json", cwd=tmp_path, input=body)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["files"] == ["stdin"]
        found = pages(tmp_path)[-1]
        assert (found.url, found.warc_file) == (url, None)
    assert texts(pages(tmp_path)) == [text(1), text(2)]
    again = command("corpus", "-", "--format", "html", cwd=tmp_path, input=told)
    assert b"stdin was imported before" in again.stderr and len(pages(tmp_path)) == 2


def test_a_saved_page_that_is_too_long_is_rejected_and_known_again(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "corpus.toml").write_text('language = "en"\n[fetch]\nmax_body_bytes = 70000\n')
    done = bring(tmp_path, "a.html", page(1) + b" " * 140_000)
    assert done.pages and done.pages.rejected == {"truncated": 1}
    assert import_files(tmp_path / "corpus", [tmp_path / "a.html"]).skipped == ("a.html",)


def test_a_directory_of_archives_is_refused_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "warcs").mkdir()
    done = command("corpus", "warcs", "--format", "warc", "--lang", "en", cwd=tmp_path)
    assert done.returncode == 2
    assert b"warcs is a directory; give the archives in it: warcs/*" in done.stderr
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize("format", ["warc", "html"])
def test_an_import_that_waits_for_its_input_can_be_interrupted(tmp_path: Path, format: str) -> None:
    line = [sys.executable, "-m", "thresher.cli", "import", "corpus", "-", "--format", format, "--lang", "en"]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, cwd=tmp_path, stdin=pipe, stderr=pipe) as process:
        assert process.stdin and process.stderr
        temporary = tmp_path / "corpus" / "imports" / "pages-000001.parquet.tmp"
        while not temporary.exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=60) == 130
        finally:
            process.kill()
        told = process.stderr.read()
    assert b"Fatal" not in told and b"Traceback" not in told
    assert b"0 documents imported from 0 of 1 files" in told
    assert not temporary.exists()


def test_an_import_that_is_killed_leaves_nothing_that_counts(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "thresher.cli", "import", "corpus", "-", "--format", "warc", "--lang", "en"]
    data = packed(*(response(f"http://a.uk/{n}", page(n)) for n in range(20)))
    with subprocess.Popen(line, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin
        temporary = tmp_path / "corpus" / "imports" / "pages-000001.parquet.tmp"
        process.stdin.write(data)
        process.stdin.flush()
        while not temporary.exists():
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
    assert pages(tmp_path) == []
    assert bring(tmp_path, "a.warc.gz", data).documents == 20
    assert not temporary.exists()


# what was seen


def test_hashes_remember_all_they_were_told_also_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_imports, "NEW_HASHES", 10)
    digests = [hashlib.md5(bytes([n])).digest() for n in range(100)]
    seen = Hashes()
    for digest in digests[:50]:
        assert digest not in seen
        seen.add(digest)
    seen.update([digest.hex() for digest in digests[50:75]])
    assert [digest in seen for digest in digests] == [True] * 75 + [False] * 25
    seen.add(b"")
    assert b"" not in seen


def test_pages_that_came_before_are_not_imported_again_after_the_archive_changed(tmp_path: Path) -> None:
    first = [response(f"http://a.uk/{n}", page(n)) for n in range(3)]
    bring(tmp_path, "a.warc.gz", packed(*first))
    path = tmp_path / "a.warc.gz"
    path.write_bytes(packed(*first, response("http://a.uk/3", page(3))))
    done = import_pages(tmp_path / "corpus", [path])
    assert done.pages and (done.pages.kept, done.pages.rejected) == (1, {"raw duplicate": 3})
    assert texts(pages(tmp_path)) == [text(n) for n in range(4)]


def test_crawled_pages_come_first_and_can_be_asked_for_alone(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    make(tmp_path / "corpus", ["crawled", text(1), "opted out"])
    (tmp_path / "corpus" / "corpus.toml").write_text('language = "en"\n')
    bring(tmp_path, "a.warc.gz", packed(response("http://a.uk/2", page(2))))
    corpus = thresher.open(tmp_path / "corpus")
    assert texts(list(corpus)) == ["crawled", text(1), "opted out", text(2)]
    assert len(corpus) == corpus.docs(["url"]).num_rows == 4
    alone = corpus.batches("docs", ["seq"], imported=False)
    assert [seq for batch in alone for seq in batch.column("seq").to_pylist()] == [0, 1, 2]


def test_a_name_that_is_no_unicode_stops_nothing(tmp_path: Path) -> None:
    name = os.fsdecode(b"p\xff.html")
    (tmp_path / name).write_bytes(page(1))
    assert import_files(tmp_path / "corpus", [tmp_path / name], language="en").documents == 1
    (found,) = pages(tmp_path)
    assert found.url.endswith("/p%FF.html")
