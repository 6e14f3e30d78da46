"""Pages of archives are read and judged as in a crawl and become documents like crawled pages."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard

import thresher
from support.corpora.batch_corpora import Here, recipe
from support.corpora.exports import make
from support.corpora.imported_pages import bring_pages, pages, text, texts
from support.corpora.imports import (
    VERTICAL_EXAMPLE,
)
from support.samples.archive_files import arc, http, packed, page, paragraphs, record, response
from thresher.config import ReadSettings
from thresher.exporting.formats.hf_dataset import ARCHIVED
from thresher.exporting.registry import export
from thresher.importing import run as engine_imports
from thresher.importing.corpora import ImportReport
from thresher.importing.formats.source import ImportFileError
from thresher.importing.pages import PageWriter
from thresher.importing.run import import_files
from thresher.importing.sources import page_format
from thresher.pipeline.runs.run import process
from thresher.search.index.update import update
from thresher.selection import DocumentFilter
from thresher.store.corpus_files import CorpusError
from thresher.store.imported_files import PageFileStats, described, page_paths
from thresher.workers.fork_server import ForkServer
from thresher.workers.protocol import processors
from thresher.workers.reader_pool import ReaderPool

pytestmark = pytest.mark.slow

STUBBORN = """
import os, signal, sys
from thresher.workers import reader_worker as worker
from thresher.reader.extract import read

def stubborn(reply, language, settings):
    if b"KILL" in reply.body: os.kill(os.getpid(), 9)
    if b"STALL" in reply.body: signal.pause()
    return read(reply, language, settings)

worker.main(lambda: stubborn, int(sys.argv[1]))
"""


def test_a_page_of_an_archive_becomes_a_document_like_a_crawled_one(tmp_path: Path) -> None:
    licence = (
        "<link rel=license href=https://creativecommons.org/licenses/by/4.0/><meta name=robots content=noai>"
    )
    data = packed(record("warcinfo", "", b"a: b"), response("http://www.a.co.uk/1#top", page(1, licence)))
    done = bring_pages(tmp_path, "a.warc.gz", data)
    assert done.pages == PageFileStats(records=2, pages=1, kept=1, others=1)
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
    done = bring_pages(tmp_path, "a.warc.wet.gz", data)
    assert done.pages == PageFileStats(records=2, pages=2, kept=1, rejected={"language": 1})
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
    bring_pages(tmp_path, "a.warc", response("http://a.uk/3", chunks, *head))
    assert texts(pages(tmp_path)) == [text(3)]


def test_arc_files_are_imported_and_an_archive_is_known_by_its_content(tmp_path: Path) -> None:
    data = b"filedesc://x 0.0.0.0 20260301000000 text/plain 3\n1 0\n" + arc("http://a.uk/4", http(page(4)))
    bring_pages(tmp_path, "a.arc", data)
    bring_pages(tmp_path, "download", packed(response("http://a.uk/5", page(5))))
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
def test_the_format_of_a_file_follows_from_its_name_or_its_content(
    tmp_path: Path, name: str, data: bytes, expected: str
) -> None:
    (tmp_path / name).write_bytes(data)
    assert page_format(tmp_path / name, None) == expected
    assert page_format(tmp_path / name, "html") == "html"
    assert page_format(tmp_path / name, "jsonl") == ""


def test_duplicates_are_left_out_and_counted_within_and_across_archives(tmp_path: Path) -> None:
    same_text = page(1).replace(b"Mill 1", b"Another title, and the same text")
    data = packed(
        response("http://a.uk/1", page(1)),
        response("http://a.uk/1", page(1)),
        response("http://a.uk/copy", same_text),
        record("revisit", "http://a.uk/1", http(b"")),
    )
    done = bring_pages(tmp_path, "a.warc.gz", data)
    expected = {"raw duplicate": 1, "text duplicate": 1}
    assert done.pages == PageFileStats(records=4, pages=3, kept=1, rejected=expected, revisits=1)
    again = bring_pages(
        tmp_path, "b.warc.gz", packed(response("http://b.uk/", same_text), response("http://b.uk/2", page(2)))
    )
    assert again.pages and again.pages.rejected == {"text duplicate": 1}
    assert texts(pages(tmp_path)) == [text(1), text(2)]
    assert (
        "4 records, 3 pages, 1 kept; rejected: 1 × raw duplicate, 1 × text duplicate; 1 revisit"
        in done.remarks[0]
    )


def test_rejected_pages_are_counted_and_readable_records_of_a_damaged_archive_imported(
    tmp_path: Path,
) -> None:
    data = packed(
        response("http://a.uk/1", page(1)),
        response("http://a.uk/2", b"<p>short</p>"),
        response("http://a.uk/3", page(3, "<meta name=robots content=noindex>")),
        response("http://a.uk/4", page(4), status="404 Not Found"),
        record("response", "dns:a.uk", b"a.uk. IN A 1.2.3.4", "text/dns"),
    )
    data += b"junk" + packed(response("http://a.uk/5", page(5)), response("http://a.uk/6", page(6)))[:-60]
    done = bring_pages(tmp_path, "a.warc.gz", data)
    assert done.pages and done.pages.kept == 2 and done.pages.damaged == 1 and done.pages.bytes_skipped > 4
    reasons = {"too little html": 1, "noindex": 1, "http 404": 1, "not http": 1, "truncated": 1}
    assert done.pages.rejected == reasons
    assert texts(pages(tmp_path)) == [text(1), text(5)]
    (path,) = page_paths(tmp_path / "corpus")
    file = described(path)
    assert file.figures == done.pages
    assert (file.sha256, file.bytes) == (hashlib.sha256(data).hexdigest(), len(data))


def test_an_archive_is_imported_once_and_refused_without_records(tmp_path: Path) -> None:
    data = packed(response("http://a.uk/1", page(1)))
    bring_pages(tmp_path, "a.warc.gz", data)
    again = bring_pages(tmp_path, "copy.warc.gz", data)
    assert (again.files, again.skipped) == ((), ("copy.warc.gz",))
    assert "was imported before" in again.remarks[0]
    with pytest.raises(ImportFileError, match=r"no\.warc has no readable record; if it is an archive"):
        bring_pages(tmp_path, "no.warc", b"nothing of the kind")
    assert len(pages(tmp_path)) == 1
    names = sorted(path.name for path in (tmp_path / "corpus" / "imports").iterdir())
    assert names == ["pages-000001.parquet"]


def test_files_imported_before_a_fault_of_the_machine_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        data = packed(response(f"http://a.uk/{number}", page(number)))
        (tmp_path / f"{number}.warc.gz").write_bytes(data)
    (tmp_path / "a.vert").write_bytes(VERTICAL_EXAMPLE)
    seal = PageWriter.seal

    def full(writer: PageWriter, facts: Mapping[str, str]) -> Path:
        if facts["source"] == "2.warc.gz":
            raise OSError(28, "No space left on device")
        return seal(writer, facts)

    monkeypatch.setattr(PageWriter, "seal", full)
    found: list[ImportReport] = []
    with pytest.raises(OSError, match="No space left"):
        import_files(
            *(tmp_path / "corpus", [tmp_path / name for name in ("1.warc.gz", "2.warc.gz", "a.vert")]),
            language="en",
            report=found.append,
        )
    (report,) = found
    assert (report.files, report.documents, report.refused) == (("a.vert", "1.warc.gz"), 2, ())
    assert texts(pages(tmp_path)) == [text(1)]


def test_the_number_of_processes_does_not_change_the_bytes(tmp_path: Path) -> None:
    data = packed(*(response(f"http://a.uk/{n}", page(n % 30)) for n in range(60)))
    (tmp_path / "a.warc.gz").write_bytes(data)
    stored = []
    for processes in (1, 3):
        import_files(tmp_path / str(processes), [tmp_path / "a.warc.gz"], language="en", processes=processes)
        (path,) = page_paths(tmp_path / str(processes))
        stored.append(path.read_bytes())
    assert stored[0] == stored[1]
    assert len(thresher.open(tmp_path / "3")) == 30


def test_an_import_reads_with_all_processors_unless_a_number_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    class Counted(ReaderPool):
        def __init__(self, settings: ReadSettings, language: str) -> None:
            super().__init__(settings, language)
            sizes.append(self.size)

    monkeypatch.setattr(engine_imports, "ReaderPool", Counted)
    for number, options in enumerate(({}, {"processes": 1})):
        bring_pages(tmp_path, f"{number}.warc", response(f"http://a.uk/{number}", page(number)), **options)
    assert sizes == [processors(), 1]


def test_a_page_that_kills_or_stalls_its_reader_does_not_end_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn(ReaderPool):
        def __init__(self, settings: Any, language: str) -> None:
            super().__init__(settings, language, ForkServer(("-c", STUBBORN)))

    monkeypatch.setattr(engine_imports, "ReaderPool", Stubborn)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "corpus.toml").write_text('language = "en"\n[read]\ndeadline = 3.0\n')
    bodies = [page(1), page(2) + b"KILL", page(3), page(4) + b"STALL", page(5)]
    data = packed(*(response(f"http://a.uk/{n}", body) for n, body in enumerate(bodies)))
    done = bring_pages(tmp_path, "a.warc.gz", data)
    assert done.pages and done.pages.rejected == {"reader died": 1, "reader stalled": 1}
    assert any(remark.startswith("http://a.uk/1: reader died") for remark in done.remarks)
    assert texts(pages(tmp_path)) == [text(1), text(3), text(5)]


def test_imported_pages_are_exported_indexed_and_found(tmp_path: Path) -> None:
    bring_pages(
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
    bring_pages(tmp_path, "a.warc.gz", whole)
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
def test_a_page_without_a_valid_date_of_fetching_has_no_date(tmp_path: Path, date: str) -> None:
    bring_pages(
        tmp_path,
        "a.warc",
        response("http://a.com/1", page(1), date=date) + response("http://a.com/2", page(2)),
    )
    first, second = pages(tmp_path)
    corpus = thresher.open(tmp_path / "corpus")
    assert (first.fetched, second.fetched is None) == (None, False)
    assert corpus.raw(first).url == first.url
    for asked, count in (
        (DocumentFilter(until="2000"), 0),
        (DocumentFilter(since="2000"), 1),
        (DocumentFilter(), 2),
    ):
        assert export(corpus, "txt", io.BytesIO(), asked).documents == count
    for name in ("jsonl", "vertical", "conllu", "tei"):
        out = io.BytesIO()
        export(corpus, name, out, processes=1)
        assert b"1970" not in out.getvalue()
    export(corpus, "huggingface", tmp_path / "set")
    card = (tmp_path / "set" / "README.md").read_text()
    assert "\nWritten by" in card and f"{ARCHIVED}: 2." in card and "robots.txt" not in card
    assert "downloaded between 2026-03-01 and 2026-03-01; the time of 1 is unknown." in card
    recipe(tmp_path / "corpus", {"step": "statistics"}, {"step": "index", "annotator": "plain"})
    assert process(tmp_path / "corpus", Here()).state == "done"


def test_a_killed_import_leaves_no_pages(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "thresher.cli", "import", "corpus", "-", "--format", "warc", "--lang", "en"]
    data = packed(*(response(f"http://a.uk/{n}", page(n)) for n in range(20)))
    with subprocess.Popen(line, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin
        imports = tmp_path / "corpus" / "imports"
        process.stdin.write(data)
        process.stdin.flush()
        while not any(imports.glob("pages-000001.parquet.*.tmp")):
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
    assert pages(tmp_path) == []
    assert bring_pages(tmp_path, "a.warc.gz", data).documents == 20
    assert not any(imports.glob("*.tmp"))


def test_pages_that_came_before_are_not_imported_again_after_the_archive_changed(tmp_path: Path) -> None:
    first = [response(f"http://a.uk/{n}", page(n)) for n in range(3)]
    bring_pages(tmp_path, "a.warc.gz", packed(*first))
    path = tmp_path / "a.warc.gz"
    path.write_bytes(packed(*first, response("http://a.uk/3", page(3))))
    done = import_files(tmp_path / "corpus", [path])
    assert done.pages and (done.pages.kept, done.pages.rejected) == (1, {"raw duplicate": 3})
    assert texts(pages(tmp_path)) == [text(n) for n in range(4)]


def test_crawled_pages_come_first_and_can_be_read_alone(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    make(tmp_path / "corpus", ["crawled", text(1), "opted out"])
    (tmp_path / "corpus" / "corpus.toml").write_text('language = "en"\n')
    bring_pages(tmp_path, "a.warc.gz", packed(response("http://a.uk/2", page(2))))
    corpus = thresher.open(tmp_path / "corpus")
    assert texts(list(corpus)) == ["crawled", text(1), "opted out", text(2)]
    assert len(corpus) == corpus.documents(["url"]).num_rows == 4
    alone = corpus.batches("docs", ["seq"], imported=False)
    assert [seq for batch in alone for seq in batch.column("seq").to_pylist()] == [0, 1, 2]
