"""Log files: where they are, whole lines, escaped text, rotation."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

import pytest

from thresher.files import log_files
from thresher.files.log_files import LOGGER, LogFile, TextFormatter, format_in_use, log_to_files

log = logging.getLogger("thresher.crawler.test")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "corpus.toml").touch()
    return tmp_path


def lines(corpus: Path, name: str = "crawl.log") -> list[str]:
    return (corpus / "logs" / name).read_text("utf-8").splitlines()


def test_a_record_is_a_line_with_time_level_logger_and_message(corpus: Path) -> None:
    with log_to_files(corpus, "crawl"):
        log.warning("%s is closed: %s", "a.cz", "low yield")
    (line,) = lines(corpus)
    time, level, logger, message = line.split(" ", 3)
    assert time.endswith("Z") and (level, logger) == ("WARNING", "thresher.crawler.test:")
    assert message == "a.cz is closed: low yield"


def test_text_of_a_server_cannot_forge_a_record_or_drive_a_terminal(corpus: Path) -> None:
    try:
        raise ValueError("first\n2026-01-01T00:00:00.000Z ERROR forged: too \x1b[31m")
    except ValueError:
        with log_to_files(corpus, "crawl"):
            log.exception(
                "http://a.cz/\n2026-01-01T00:00:00.000Z ERROR forged: one \x1b]52;c;cm0=\x07 \u202e"
            )
    first, *traceback = lines(corpus)
    assert r"http://a.cz/\n2026" in first and r"\x1b]52" in first and r"\u202e" in first
    assert all(line.startswith("    ") for line in traceback) and len(traceback) > 3
    assert "\x1b" not in "".join(traceback)


def test_a_json_log_has_an_object_on_each_line(corpus: Path) -> None:
    with log_to_files(corpus, "crawl", log_format="json"):
        assert format_in_use() == "json"
        log.info("ticket %d\n", 7)
        try:
            raise KeyError("x")
        except KeyError:
            log.exception("quarantined")
    first, second = map(json.loads, lines(corpus))
    assert {**first, "time": ""} == {
        "time": "",
        "level": "INFO",
        "logger": "thresher.crawler.test",
        "message": r"ticket 7\n",
    }
    assert second["traceback"][0].startswith("Traceback") and second["traceback"][-1] == "KeyError: 'x'"


def test_a_verbose_log_goes_to_stderr_as_well(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with log_to_files(corpus, "crawl", verbose=True):
        log.info("seen")
    assert capsys.readouterr().err.splitlines() == lines(corpus)


def test_nothing_is_configured_once_a_command_has_ended(corpus: Path) -> None:
    before = [*LOGGER.handlers], LOGGER.level
    with log_to_files(corpus, "crawl", verbose=True):
        assert format_in_use() == "text"
    assert ([*LOGGER.handlers], LOGGER.level) == before
    assert format_in_use() is None


def test_a_log_begins_when_there_is_a_corpus(tmp_path: Path) -> None:
    with log_to_files(tmp_path, "crawl"):
        log.info("early")
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "corpus.toml").touch()
        log.info("late")
    assert [line.split(": ")[1] for line in lines(tmp_path)] == ["late"]


def test_a_log_that_cannot_be_written_stops_nothing(corpus: Path) -> None:
    (corpus / "logs").write_text("a file, no folder")
    with log_to_files(corpus, "crawl"):
        log.info("lost")
    assert (corpus / "logs").read_text() == "a file, no folder"


def test_a_log_is_rotated_at_its_size_and_old_files_are_dropped(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "MAX_BYTES", 1_000)
    with log_to_files(corpus, "crawl"):
        for number in range(200):
            log.info("record %d", number)
    files = sorted(path.name for path in (corpus / "logs").iterdir())
    assert files == ["crawl.log", "crawl.log.1", "crawl.log.2", "crawl.log.3"]
    assert all((corpus / "logs" / name).stat().st_size <= 1_100 for name in files)
    kept = [line for name in reversed(files) for line in lines(corpus, name)]
    assert [int(line.rpartition(" ")[2]) for line in kept] == list(range(200 - len(kept), 200))


def test_writers_that_share_a_file_lose_and_mix_no_lines(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each writer has a descriptor of its own, as processes have."""
    monkeypatch.setattr(log_files, "MAX_BYTES", 20_000)
    monkeypatch.setattr(log_files, "KEPT_FILES", 50)
    path = corpus / "logs" / "crawl.log"

    def write(writer: int) -> None:
        handler = LogFile(path)
        handler.setFormatter(TextFormatter())
        for number in range(300):
            record = logging.LogRecord(
                "thresher", logging.INFO, "", 0, f"{writer} {number} {'x' * 200}", (), None
            )
            handler.emit(record)
        handler.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    written = [line for each in (corpus / "logs").iterdir() for line in each.read_text().splitlines()]
    found = {(int(parts[3]), int(parts[4])) for parts in map(str.split, written) if parts[5] == "x" * 200}
    assert len(written) == len(found) == 4 * 300
