"""Steps that read pages again, or take paragraphs out of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from support.corpora.batch_corpora import Here, made, recipe
from support.samples.archive_files import packed, page, response
from thresher.config import Config, JudgeSettings, ReadSettings
from thresher.importing.run import import_files
from thresher.judge import Judge
from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import ArtifactStore
from thresher.pipeline.reread import rereading
from thresher.pipeline.runs.run import PoisonedTask, process
from thresher.pipeline.runs.run_log import Run
from thresher.pipeline.steps.paragraphs import without_paragraphs
from thresher.reader.extract import read
from thresher.reader.language.train import train
from thresher.reader.quality.fingerprint import text_hash
from thresher.records import ReadResult, Reply
from thresher.store.schemas import DOCS, document_row
from thresher.store.table_segments import TableSegments, seal, segment_path
from thresher.store.warc import WarcWriter
from thresher.workers.fork_server import ForkServer
from thresher.workers.protocol import Call, CallResult
from thresher.workers.reader_pool import ReaderPool

pytestmark = pytest.mark.slow

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


JUDGE = Judge(Config(language="cs", judge=JudgeSettings(min_html_bytes=0)))
NAMES = ("A", "DAWDLE", "STALL", "KILL", "B")
PAGES = {
    "http://a.cz/1": html(*[f"{CZECH} ({n})" for n in range(6)]),
    "http://a.cz/2": html(*[f"{CZECH} [{n}]" for n in range(4)], GERMAN, f"{GERMAN} Und noch mehr davon."),
    "http://b.cz/3": html(*[f"{CZECH} <{n}>" for n in range(5)]),
}


def make(directory: Path, *, old_text: str = "", pages: Mapping[str, bytes] = PAGES) -> list[ReadResult]:
    """Return a corpus of these pages as read today; the last may lack its raw page, or have an old text."""
    warc = WarcWriter(directory / "warc", {}, 1 << 30, "thresher", {})
    work = directory / "work" / "docs"
    docs = TableSegments(work, DOCS, {}, 1 << 40)
    read_so = []
    for seq, (url, body) in enumerate(pages.items()):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        reply = Reply(url, 200, head, body, 1_790_000_000.25 + seq, 0.0, "192.0.2.7")
        page = read(reply, "cs", ReadSettings())
        read_so.append(page)
        raw = warc.add(reply) if url != "http://b.cz/3" else None
        verdict = JUDGE.verdict(page, reply)
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
    return read_so


def result(directory: Path, run: Run) -> pa.Table:
    """Return the documents of the last step that has any."""
    store = ArtifactStore(directory / "runs")
    return pa.Table.from_batches(
        [
            batch
            for artifact in run.steps[-1].artifacts
            for batch in document_shards.batches(store.path(artifact.key))
        ]
    )


def configure(directory: Path, *steps: dict[str, object]) -> None:
    recipe(directory, *steps)
    path = directory / "corpus.toml"
    path.write_text(
        path.read_text() + "[judge]\nmin_html_bytes = 0\nmin_text_chars = 400\nmin_language_share = 0.5\n"
    )


def test_pages_reread_by_the_same_reader_are_the_same(tmp_path: Path) -> None:
    make(tmp_path)
    configure(tmp_path, {"step": "reread"})
    run = process(tmp_path, Here())
    (shard,) = (tmp_path / "docs").glob("*.parquet")
    assert result(tmp_path, run).equals(pa.Table.from_batches(document_shards.batches(shard)))
    assert run.steps[-1].report == {
        "documents": 3,
        "read": 2,
        "without_raw_page": 1,
        "could_not_be_read": 0,
        "dropped": {},
    }


def test_pages_can_be_reread_after_a_step_that_adds_columns(tmp_path: Path) -> None:
    make(tmp_path)
    configure(tmp_path, {"step": "near_duplicates", "share": 1}, {"step": "reread"})
    (shard,) = (tmp_path / "docs").glob("*.parquet")
    expected = pa.Table.from_batches(document_shards.batches(shard))
    assert result(tmp_path, process(tmp_path, Here())).equals(expected)


def test_reread_pages_have_the_text_of_the_current_reader(tmp_path: Path) -> None:
    pages = make(tmp_path, old_text="As it was read by a reader of old.")
    configure(tmp_path, {"step": "reread"})
    table = result(tmp_path, process(tmp_path, Here()))
    assert table["text"].to_pylist() == [pages[0].text, pages[1].text, "As it was read by a reader of old."]
    assert table["opt_out"].to_pylist() == [["noai"]] * 3
    assert (table["seq"].to_pylist(), table["depth"].to_pylist()) == ([0, 1, 2], [3, 3, 3])


def test_pages_that_the_current_judge_rejects_are_counted_by_reason(tmp_path: Path) -> None:
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


# A reader that some pages stall or kill, once or always; it records each page before reading it.
STUBBORN = """
import os, signal, sys
from thresher.workers import reader_worker as worker
from thresher.reader.extract import read
from thresher.reader.language.train import train

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


def test_a_page_that_cannot_be_read_is_retried_alone_and_costs_no_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn(ReaderPool):
        def __init__(self, settings: ReadSettings, language: str) -> None:
            super().__init__(settings, language, ForkServer(("-c", STUBBORN)))

    monkeypatch.setattr(rereading, "ReaderPool", Stubborn)
    monkeypatch.setenv("READ_LOG", str(tmp_path / "log"))
    manners = {f"http://{name}.cz/": html(*[f"{CZECH} {name} {n}" for n in range(6)], name) for name in NAMES}
    now = make(tmp_path, pages=manners, old_text="As it was.")
    configure(tmp_path, {"step": "reread"})
    path = tmp_path / "corpus.toml"
    path.write_text(f"{path.read_text()}[read]\ndeadline = 2.0\n")
    run = process(tmp_path, Here())
    left = [now[0].text, now[1].text, "As it was.", "As it was.", now[4].text]
    assert result(tmp_path, run)["text"].to_pylist() == left
    report = run.steps[-1].report
    assert (report["documents"], report["read"], report["could_not_be_read"]) == (5, 3, 2)
    assert report["dropped"] == {}
    order = (tmp_path / "log").read_text().split()
    assert order[-4:] == [f"http://{name}.cz/" for name in ("DAWDLE", "STALL", "KILL", "KILL")]


class Elsewhere(Here):
    """A machine with other trained languages."""

    def __init__(self, languages: Path) -> None:
        super().__init__()
        self._languages = languages

    def run(self, calls: list[Call]) -> Iterator[CallResult]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("THRESHER_LANGUAGES", str(self._languages))
            yield from super().run(calls)


@pytest.mark.parametrize("step", ["reread", "paragraph_language"])
def test_pages_are_reread_after_a_language_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("THRESHER_LANGUAGES", str(tmp_path / "mine"))
    corpus = tmp_path / "corpus"
    make(corpus)
    configure(corpus, {"step": step})
    assert made(process(corpus, Here())) == {step: 1}
    words = [
        f"{first}{second}ka" for first in ("ma", "lo", "ki", "tu") for second in ("re", "na", "vo", "sy")
    ]
    (tmp_path / "mine" / "qaa.language").write_bytes(
        msgspec.msgpack.encode(
            train("qaa", "\n".join(" ".join(words[n:] + words[:n]) for n in range(16)) * 20)
        )
    )
    with pytest.raises(
        PoisonedTask,
        match=r"would read pages differently from the machine .* another version of trained lang",
    ):
        process(corpus, Elsewhere(tmp_path / "theirs"))
    assert made(process(corpus, Here(), retry_failed=True)) == {step: 1}
    assert made(process(corpus, Here())) == {}


@pytest.mark.parametrize("step", ["reread", "paragraph_language"])
def test_pages_are_reread_with_another_version_of_a_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    make(tmp_path)
    configure(tmp_path, {"step": step})
    process(tmp_path, Here())
    newer = tmp_path / "newer" / "pycld2-9.9.dist-info"
    newer.mkdir(parents=True)
    (newer / "METADATA").write_text("Metadata-Version: 2.1\nName: pycld2\nVersion: 9.9\n")
    monkeypatch.syspath_prepend(newer.parent)
    assert made(process(tmp_path, Here())) == {step: 1}


def test_pages_of_an_archive_are_reread_when_it_is_back(tmp_path: Path) -> None:
    for name in ("a", "b"):
        archive = tmp_path / f"{name}.warc.gz"
        archive.write_bytes(packed(response(f"http://{name}.uk/1", page(ord(name)))))
        import_files(tmp_path / "corpus", [archive], language="en")
    corpus = tmp_path / "corpus"
    path = corpus / "corpus.toml"
    path.write_text(path.read_text() + '[[process]]\nstep = "reread"\n')
    away = (tmp_path / "b.warc.gz").rename(tmp_path / "away")
    assert process(corpus, Here()).steps[-1].report["without_raw_page"] == 1
    (corpus / "archives").mkdir()
    away.rename(corpus / "archives" / "b.warc.gz")
    run = process(corpus, Here())
    assert (made(run), run.steps[-1].report["without_raw_page"]) == ({"reread": 1}, 0)
    assert made(process(corpus, Here())) == {}
    shutil.copy2(corpus / "archives" / "b.warc.gz", tmp_path / "b.warc.gz")
    assert made(process(corpus, Here())) == {}, "wherever it is"


class Removing(Here):
    """A machine that does not see an archive."""

    def __init__(self, archive: Path) -> None:
        super().__init__()
        self._archive = archive

    def run(self, calls: list[Call]) -> Iterator[CallResult]:
        if calls[0].arguments["function"].endswith("rereading:run"):
            self._archive.unlink(missing_ok=True)
        yield from super().run(calls)


def test_a_machine_that_does_not_see_an_archive_reports_it(tmp_path: Path) -> None:
    archive = tmp_path / "a.warc.gz"
    archive.write_bytes(packed(response("http://a.uk/1", page(1))))
    corpus = tmp_path / "corpus"
    import_files(corpus, [archive], language="en")
    path = corpus / "corpus.toml"
    path.write_text(path.read_text() + '[[process]]\nstep = "reread"\n')
    with pytest.raises(
        PoisonedTask, match=r"does not see the archives of imported pages as they were when the run began"
    ):
        process(corpus, Removing(archive))


def test_a_missing_raw_file_is_named(tmp_path: Path) -> None:
    make(tmp_path)
    configure(tmp_path, {"step": "reread"})
    (raw,) = (tmp_path / "warc").iterdir()
    raw.unlink()
    with pytest.raises(PoisonedTask, match=r"warc\.gz is missing; restore it"):
        process(tmp_path, Here())


def test_paragraphs_in_other_languages_are_removed(tmp_path: Path) -> None:
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


def test_a_document_without_remaining_paragraphs_is_dropped(tmp_path: Path) -> None:
    make(tmp_path)
    (shard,) = (tmp_path / "docs").glob("*.parquet")
    (batch,) = document_shards.batches(shard)
    counts = [len(text.split("\n")) for text in batch.column("text").to_pylist()]
    kept = without_paragraphs(
        batch, [[True] * counts[0], [False] * counts[1], [True, *[False] * (counts[2] - 1)]]
    )
    assert kept.column("url").to_pylist() == ["http://a.cz/1", "http://b.cz/3"]
    assert kept.slice(0, 1).equals(batch.slice(0, 1))
