"""The line of progress of long work: written while nothing is reported, with the time it has been waiting."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from support.corpora.batch_corpora import recipe, small_corpus
from support.samples.archive_files import packed, page, response
from thresher.cli.commands.importing import import_line
from thresher.cli.commands.processing import stage_line
from thresher.cli.views import progress_line as progress
from thresher.cli.views.progress_line import WAITED_S, progress_line
from thresher.importing.progress import ImportProgress
from thresher.importing.run import import_files
from thresher.pipeline.runs.run import StageProgress, process
from thresher.workers.local_engine import LocalEngine


class Lines(io.StringIO):
    """A stream that signals when a text was written to it."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self._awaited = awaited
        self.seen = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self._awaited in self.getvalue():
            self.seen.set()
        return written


def test_a_line_is_repeated_with_the_time_since_it_was_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines(f"3 of 9; waiting for 2 readers for {WAITED_S:.0f} s\n")
    monkeypatch.setattr("sys.stderr", lines)
    now = [0.0]
    with progress_line(every=0.001, clock=lambda: now[0]) as line:
        line("3 of 9; waiting for 2 readers")
        now[0] = WAITED_S
        line("3 of 9; waiting for 2 readers")
        assert lines.seen.wait(60)
    assert not any(thread.name == "progress" for thread in threading.enumerate())


def test_nothing_is_written_before_the_first_report(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def clock() -> float:
        if threading.current_thread().name == "progress":
            asked.set()
        return 1e9

    lines = Lines("")
    monkeypatch.setattr("sys.stderr", lines)
    with progress_line(every=0.001, clock=clock):
        assert asked.wait(60)
    assert lines.getvalue() == ""


def test_a_stage_is_reported_when_it_begins_and_after_each_of_its_tasks(tmp_path: Path) -> None:
    corpus = small_corpus(tmp_path)
    recipe(corpus, {"step": "filter"})
    stages: list[StageProgress] = []
    engine = LocalEngine(2)
    try:
        process(corpus, engine, progress=stages.append)
    finally:
        engine.close()
    assert [(one.step, one.done, one.total) for one in stages] == [("filter", done, 3) for done in range(4)]
    assert stage_line(stages[0]) == "filter: artifacts made 0 of 3; waiting for 3 × run"
    assert stage_line(stages[-1]) == "filter: artifacts made 3 of 3, 0 s left"


def test_an_import_reports_its_file_and_the_pages_that_wait_for_readers(tmp_path: Path) -> None:
    archive, table = tmp_path / "a.warc.gz", tmp_path / "b.jsonl"
    archive.write_bytes(packed(*(response(f"http://a.uk/{n}", page(n)) for n in range(3))))
    table.write_text('{"text": "One."}\n')
    found: list[ImportProgress] = []
    import_files(tmp_path / "corpus", [archive, table], language="en", progress=found.append)
    size = archive.stat().st_size + table.stat().st_size
    assert [one.bytes for one in found] == sorted(one.bytes for one in found)
    assert found[0] == ImportProgress(table.stat().st_size, 0, "b.jsonl")
    assert found[-1] == ImportProgress(size, 4, "a.warc.gz")
    assert max(one.pages_waiting for one in found) == 3
    first = ImportProgress(2_500, 1, "a.warc.gz")
    assert import_line(first, 9_000) == (
        "a.warc.gz: 2.5 kB of 9.0 kB read, 1 document taken; waiting for input"
    )
    assert import_line(ImportProgress(0, 2, "stdin", 8), None) == (
        "stdin: 0 bytes read, 2 documents taken; waiting for readers, with 8 pages"
    )


def test_the_line_is_shown_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(Lines):
        def isatty(self) -> bool:
            return True

    lines = Terminal("waiting for 1 × run")
    monkeypatch.setattr("sys.stderr", lines)
    monkeypatch.setattr(progress, "LIVE_EVERY", 0.001)
    monkeypatch.setenv("TERM", "xterm")
    with progress_line() as line:
        line("waiting for 1 × run")
        assert lines.seen.wait(60)
