"""How commands that start others begin and end: at any moment, with the same words, and nobody is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import thresher
from batch_corpora import recipe, small_corpus
from invariants import check_books, check_raw, start
from thresher.config import dump, parse
from thresher.lab.toyweb import Server, ToyWeb, serve

WEB = ToyWeb.calm(hosts=12, licensed=0.0, pages_per_host=(20, 30), page_bytes=(4_000, 6_000))
ENOUGH = 40  # pages, after which a crawl is stopped
COMMAND = "print(flush=True)\nfrom thresher.cli import main\nmain()"  # says when Python itself is there


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(WEB, journal=tmp_path_factory.mktemp("web") / "journal") as server:
        yield server


def asked(server: Server) -> int:
    """How many requests there were."""
    assert server.journal
    return len(server.journal.read_bytes().splitlines()) if server.journal.exists() else 0


def prepare(directory: Path, shards: int) -> Path:
    """A corpus that commits nothing unless it has to."""
    tables: dict[str, Any] = {
        "polite": {"delay": 0.2, "load_share": 0.0},
        "store": {"commit_pages": 100_000, "commit_seconds": 1000.0},
        "shards": {"count": shards},
    }
    directory.mkdir()
    (directory / "corpus.toml").write_text(dump(parse({"language": "cs", **tables})))
    (directory / "seeds.txt").write_text("\n".join(start(WEB)))
    return directory


@contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The command in a group of processes of its own, as it has under a shell or a service manager."""
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, start_new_session=True, text=True, env=environment, **pipes) as process:
        try:
            assert process.stdout and process.stdout.readline()
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def ended(process: subprocess.Popen[str]) -> str:
    """What it said, when it and all of its group have ended."""
    said = process.communicate(timeout=60)[1]
    while True:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return said
        time.sleep(0.05)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("shards", "seconds"), [(0, 0.2), (0, 0.8), (3, 0.1), (3, 0.3), (3, 0.5), (3, 0.7), (3, 0.9), (3, 1.2)]
)
def test_a_crawl_that_has_hardly_begun_is_stopped_with_few_words(
    tmp_path: Path, server: Server, shards: int, seconds: float
) -> None:
    corpus = prepare(tmp_path / "corpus", shards)
    with running("crawl", corpus, "--connect-to", server.connect_to) as process:
        time.sleep(seconds)  # what it has come to by then is not to matter
        os.killpg(process.pid, signal.SIGINT)
        said = ended(process)
    assert "Traceback" not in said
    assert process.returncode == 130, said
    assert said.endswith(("interrupted\n", "Go on with the same command.\n")), said


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("shards", [0, 3])
def test_a_signal_to_all_processes_of_a_crawl_loses_nothing(
    tmp_path: Path, server: Server, shards: int, name: str
) -> None:
    corpus, before = prepare(tmp_path / "corpus", shards), asked(server)
    with running("crawl", corpus, "--connect-to", server.connect_to) as process:
        while asked(server) < before + ENOUGH:
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, getattr(signal, name))
        said = ended(process)
    assert process.returncode == 130, said
    assert "everything fetched is safe" in said and "Traceback" not in said
    assert thresher.open(corpus).stats()["pages"]["fetched"] > 0, "nothing was committed before"
    check_books(corpus)
    check_raw(corpus)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_no_process_is_left_behind_by_work_that_is_given_up(tmp_path: Path, name: str) -> None:
    corpus, numbers = small_corpus(tmp_path), tmp_path / "numbers"
    numbers.mkdir()
    recipe(corpus, {"step": "batch_steps:endless", "numbers": str(numbers)})
    with running("process", corpus, "--processes", 2) as process:
        while len(list(numbers.iterdir())) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(getattr(signal, name))
        said = ended(process)
    assert "Traceback" not in said
    assert process.returncode == (-signal.SIGKILL if name == "SIGKILL" else 130)
    for number in numbers.iterdir():
        assert not Path(f"/proc/{number.name}").exists()
