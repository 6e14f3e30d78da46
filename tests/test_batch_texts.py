"""Steps that read pages again, or take paragraphs out of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from batch_corpora import Here, recipe
from thresher.batch import rereading, shards
from thresher.batch.paragraphs import left
from thresher.batch.pieces import Pieces
from thresher.batch.records import Run
from thresher.batch.run import Poisoned, process
from thresher.config import Judging, Reading
from thresher.engine.local import Readers
from thresher.engine.nursery import Nursery
from thresher.judge import judge
from thresher.page import Page, Reply
from thresher.read.fingerprint import text_hash
from thresher.read.reader import read
from thresher.store.segments import Segments, seal, segment_path
from thresher.store.tables import DOCS, document_row
from thresher.store.warc import WarcWriter

CZECH = (
    "Nejstarší písemná zmínka o vesnici pochází z roku 1352, kdy zde stával malý kostel a několik dvorů. "
    "V průběhu staletí se obec rozrůstala a na konci devatenáctého století v ní žilo přes osm set obyvatel."
)
GERMAN = (
    "Die älteste schriftliche Erwähnung des Dorfes stammt aus dem vierzehnten Jahrhundert, als hier nur eine "
    "kleine Kirche und einige Höfe standen, die später während des Krieges vollständig zerstört wurden."
)


def html(*paragraphs: str) -> bytes:
    inner = "".join(f"<p>{one}</p>" for one in paragraphs)
    return f"<html><head><title>Obec</title></head><body><article>{inner}</article></body></html>".encode()


NAMES = ("A", "DAWDLE", "STALL", "KILL", "B")
PAGES = {
    "http://a.cz/1": html(*[f"{CZECH} ({n})" for n in range(6)]),
    "http://a.cz/2": html(*[f"{CZECH} [{n}]" for n in range(4)], GERMAN, f"{GERMAN} Und noch mehr davon."),
    "http://b.cz/3": html(*[f"{CZECH} <{n}>" for n in range(5)]),
}


def make(directory: Path, *, old_text: str = "", pages: Mapping[str, bytes] = PAGES) -> list[Page]:
    """A corpus of these pages as they are read today, the last without its raw page, or with an old text."""
    warc = WarcWriter(directory / "warc", {}, 1 << 30, "thresher", {})
    work = directory / "work" / "docs"
    docs = Segments(work, DOCS, {}, 1 << 40)
    made = []
    for seq, (url, body) in enumerate(pages.items()):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        reply = Reply(url, 200, head, body, 1_790_000_000.25 + seq, 0.0, "192.0.2.7")
        page = read(reply, "cs", Reading())
        made.append(page)
        raw = warc.add(reply) if url != "http://b.cz/3" else None
        verdict = judge(page, "cs", Judging(min_html_bytes=0))
        row = list(document_row(reply, page, verdict, seq=seq, depth=3, raw=raw))
        if old_text:
            row[DOCS.names.index("text")] = old_text
        row[DOCS.names.index("opt_out")] = ("noai",)  # as a robots.txt may have said
        docs.append(*row)
    warc.flush()
    warc.close()
    docs.flush()
    docs.close()
    (stream,) = work.glob("*.arrows")
    (directory / "docs").mkdir()
    seal(stream, stream.stat().st_size, segment_path(directory / "docs", 0, "parquet"))
    return made


def result(directory: Path, run: Run) -> pa.Table:
    """What came of the last step that gave documents."""
    pieces = Pieces(directory / "runs")
    return pa.Table.from_batches(
        [batch for piece in run.steps[-1].pieces for batch in shards.batches(pieces.path(piece.key))]
    )


def configure(directory: Path, *steps: dict[str, object]) -> None:
    recipe(directory, *steps)
    path = directory / "corpus.toml"
    path.write_text(
        path.read_text() + "[judge]\nmin_html_bytes = 0\nmin_text_chars = 400\nmin_language_share = 0.5\n"
    )


def test_pages_read_again_by_the_same_reader_are_the_same(tmp_path: Path) -> None:
    make(tmp_path)
    configure(tmp_path, {"step": "reread"})
    run = process(tmp_path, Here())
    (shard,) = (tmp_path / "docs").glob("*.parquet")
    assert result(tmp_path, run).equals(pa.Table.from_batches(shards.batches(shard)))
    assert run.steps[-1].report == {
        "documents": 3,
        "read": 2,
        "without_raw_page": 1,
        "could_not_be_read": 0,
        "dropped": {},
    }


def test_pages_can_be_read_again_behind_a_step_that_tells_more_of_them(tmp_path: Path) -> None:
    make(tmp_path)
    configure(tmp_path, {"step": "near_duplicates", "share": 1}, {"step": "reread"})
    (shard,) = (tmp_path / "docs").glob("*.parquet")
    expected = pa.Table.from_batches(shards.batches(shard))
    assert result(tmp_path, process(tmp_path, Here())).equals(expected)


def test_pages_read_again_have_the_text_that_is_read_today(tmp_path: Path) -> None:
    pages = make(tmp_path, old_text="As it was read by a reader of old.")
    configure(tmp_path, {"step": "reread"})
    table = result(tmp_path, process(tmp_path, Here()))
    assert table["text"].to_pylist() == [pages[0].text, pages[1].text, "As it was read by a reader of old."]
    assert table["opt_out"].to_pylist() == [["noai"]] * 3
    assert (table["seq"].to_pylist(), table["depth"].to_pylist()) == ([0, 1, 2], [3, 3, 3])


def test_pages_that_are_not_kept_today_are_counted_by_reason(tmp_path: Path) -> None:
    make(tmp_path)
    configure(tmp_path, {"step": "reread"})
    path = tmp_path / "corpus.toml"
    path.write_text(path.read_text().replace("min_text_chars = 400", "min_text_chars = 1000"))
    run = process(tmp_path, Here())
    assert run.steps[-1].report["dropped"] == {}
    path.write_text(path.read_text().replace("min_text_chars = 1000", "min_text_chars = 100000"))
    run = process(tmp_path, Here())
    assert run.steps[-1].report["dropped"] == {"too short": 2}
    assert result(tmp_path, run)["url"].to_pylist() == ["http://b.cz/3"], "of which there is no raw page"


# A reader that is stalled or killed by some pages, once or always, and writes down what it begins to read.
STUBBORN = """
import os, signal, sys
from thresher.engine import worker
from thresher.read.reader import read

def stubborn(reply, language, settings):
    log = os.environ["READ_LOG"]
    is_first = not os.path.exists(log) or reply.url not in open(log).read()
    print(reply.url, file=open(log, "a"))
    if b"STALL" in reply.body or (is_first and b"DAWDLE" in reply.body):
        signal.pause()
    if b"KILL" in reply.body:
        os.kill(os.getpid(), 9)
    return read(reply, language, settings)

worker.main(lambda: stubborn, int(sys.argv[1]))
"""


def test_a_page_that_cannot_be_read_is_tried_alone_and_costs_no_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn(Readers):
        def __init__(self, settings: Reading, language: str) -> None:
            super().__init__(settings, language, Nursery(("-c", STUBBORN)))

    monkeypatch.setattr(rereading, "Readers", Stubborn)
    monkeypatch.setenv("READ_LOG", str(tmp_path / "log"))
    manners = {f"http://{name}.cz/": html(*[f"{CZECH} {name} {n}" for n in range(6)], name) for name in NAMES}
    made = make(tmp_path, pages=manners, old_text="As it was.")
    configure(tmp_path, {"step": "reread"})
    path = tmp_path / "corpus.toml"
    path.write_text(f"{path.read_text()}[read]\ndeadline = 2.0\n")
    run = process(tmp_path, Here())
    left = [made[0].text, made[1].text, "As it was.", "As it was.", made[4].text]
    assert result(tmp_path, run)["text"].to_pylist() == left
    report = run.steps[-1].report
    assert (report["documents"], report["read"], report["could_not_be_read"]) == (5, 3, 2)
    assert report["dropped"] == {}
    order = (tmp_path / "log").read_text().split()
    assert order[-4:] == [f"http://{name}.cz/" for name in ("DAWDLE", "STALL", "KILL", "KILL")]


def test_a_raw_file_that_is_missing_is_told(tmp_path: Path) -> None:
    make(tmp_path)
    configure(tmp_path, {"step": "reread"})
    (raw,) = (tmp_path / "warc").iterdir()
    raw.unlink()
    with pytest.raises(Poisoned, match=r"warc\.gz is missing; restore it"):
        process(tmp_path, Here())


def test_paragraphs_in_other_languages_are_taken_out(tmp_path: Path) -> None:
    make(tmp_path)
    configure(tmp_path, {"step": "paragraph_language"})
    run = process(tmp_path, Here())
    table = result(tmp_path, run)
    assert run.steps[-1].report == {"documents": 3, "paragraphs": {"de": 2}}
    second = table["text"].to_pylist()[1]
    assert second == "\n".join(f"{CZECH} [{n}]" for n in range(4))
    assert table["text_bytes"].to_pylist()[1] == len(second.encode())
    assert table["text_hash"].to_pylist()[1] == text_hash(second.split("\n")).hex()
    assert [block["text"] for block in table["paragraphs"].to_pylist()[1]] == second.split("\n")
    configure(tmp_path, {"step": "paragraph_language", "languages": ["cs", "de"]})
    assert process(tmp_path, Here()).steps[-1].report == {"documents": 3, "paragraphs": {}}


def test_a_document_without_paragraphs_is_gone(tmp_path: Path) -> None:
    make(tmp_path)
    (shard,) = (tmp_path / "docs").glob("*.parquet")
    (batch,) = shards.batches(shard)
    counts = [len(text.split("\n")) for text in batch.column("text").to_pylist()]
    kept = left(batch, [[True] * counts[0], [False] * counts[1], [True, *[False] * (counts[2] - 1)]])
    assert kept.column("url").to_pylist() == ["http://a.cz/1", "http://b.cz/3"]
    assert kept.slice(0, 1).equals(batch.slice(0, 1))
