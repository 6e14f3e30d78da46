"""The beginning and the end of commands: interrupted at any moment, with one message and no process left over."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import thresher
from support import TESTS
from support.corpora.batch_corpora import recipe, small_corpus
from support.invariants import check_raw, check_stats
from support.webs.toy_webs import all_seeds
from thresher.cli import app
from thresher.config import ShardSettings, dump, load, parse
from thresher.crawler.api import crawl
from thresher.crawler.process_limits import fault_of_disk
from thresher.crawler.shards.coordinator import Coordinator
from thresher.crawler.stop_reasons import Ending
from thresher.errors import UsageError
from thresher.workers.local_engine import LocalEngine
from thresher_lab.toyweb import Server, ToyWeb, serve

pytestmark = pytest.mark.faults  # every test kills or stops a crawl

WEB = ToyWeb.calm(hosts=12, licensed=0.0, pages_per_host=(20, 30), page_bytes=(4_000, 6_000))
MANY_REQUESTS = 40  # after which a crawl is stopped
# The empty line says that Python itself has started, which cannot be interrupted without a traceback.
COMMAND = "import thresher\nprint(flush=True)\nfrom thresher.cli import main\nmain()"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(WEB, journal=tmp_path_factory.mktemp("web") / "journal") as server:
        yield server


def requests(server: Server) -> int:
    """Return the number of requests so far."""
    assert server.journal
    return len(server.journal.read_bytes().splitlines()) if server.journal.exists() else 0


def prepare(directory: Path, shards: int) -> Path:
    """Make a corpus that commits only at its end."""
    tables: dict[str, Any] = {
        "polite": {"delay": 0.2, "load_share": 0.0},
        "store": {"commit_pages": 100_000, "commit_seconds": 1000.0},
        "shards": {"count": shards},
    }
    directory.mkdir()
    (directory / "corpus.toml").write_text(dump(parse({"language": "cs", **tables})))
    (directory / "seeds.txt").write_text("\n".join(all_seeds(WEB)))
    return directory


def catches(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


@contextmanager
def running(*arguments: object, cwd: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a process group of its own, as a shell or a service manager does."""
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        env=environment,
        cwd=cwd,
    ) as process:
        try:
            assert process.stdout and process.stdout.readline()
            while not catches(process.pid, signal.SIGTERM):  # our handlers are set first of all
                assert process.poll() is None
                time.sleep(0.002)
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_for_end(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a process and its group, and return its stderr."""
    errors = process.communicate(timeout=60)[1]
    while True:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return errors
        time.sleep(0.05)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("shards", "seconds"), [(0, 0.2), (0, 0.8), (3, 0.1), (3, 0.3), (3, 0.5), (3, 0.7), (3, 0.9), (3, 1.2)]
)
def test_a_crawl_that_is_just_starting_is_stopped_with_one_message(
    tmp_path: Path, server: Server, shards: int, seconds: float
) -> None:
    corpus = prepare(tmp_path / "corpus", shards)
    with running("crawl", corpus, "--connect-to", server.connect_to) as process:
        time.sleep(seconds)  # at any point of its start
        os.killpg(process.pid, signal.SIGINT)
        errors = wait_for_end(process)
    assert "Traceback" not in errors
    assert process.returncode == 130, errors
    assert errors.endswith(("interrupted\n", "Run the same command to resume.\n")), errors


@pytest.mark.parametrize("command", ["search", "status"])
@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.3, 0.45, 0.6, 0.9])
def test_a_command_is_interrupted_at_any_moment_without_a_traceback(
    tmp_path: Path, command: str, seconds: float
) -> None:
    (tmp_path / "corpus.toml").write_text('language = "cs"\n')
    arguments = ["jazyk"] if command == "search" else []
    with running(command, tmp_path, *arguments) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        errors = wait_for_end(process)
    assert "Traceback" not in errors
    # At last, Python restores the default action of signals, and the signal ends the process: 130 in a shell.
    assert process.returncode in (130, 1, -signal.SIGINT), errors


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_crawl_is_stopped_while_its_shards_are_loading(tmp_path: Path, server: Server, name: str) -> None:
    corpus = prepare(tmp_path / "corpus", 3)
    with running("crawl", corpus, "--connect-to", server.connect_to) as process:
        while not (corpus / "shards" / "at-work").exists():  # they have all been started
            assert process.poll() is None
            time.sleep(0.005)
        os.killpg(process.pid, getattr(signal, name))
        errors = wait_for_end(process)
    assert process.returncode == 130, errors
    assert errors.endswith("Run the same command to resume.\n") and "Traceback" not in errors


def test_a_coordinator_that_is_stopped_before_its_start_starts_no_shard(tmp_path: Path) -> None:
    corpus = prepare(tmp_path / "corpus", 2)
    with closing(LocalEngine()) as engine:
        coordinator = Coordinator(corpus, load(corpus), engine)
        coordinator.stop()
        assert asyncio.run(coordinator.run()) == Ending("interrupted")


def test_a_crawl_stopped_before_its_first_commit_ends_with_the_usual_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = prepare(tmp_path / "corpus", 2)
    monkeypatch.setattr("thresher.crawler.api.crawl", lambda *_, **__: Ending("interrupted"))
    with pytest.raises(SystemExit) as left:
        app(["crawl", str(corpus), "--connect-to", "127.0.0.1:1", "--json"])
    printed = capsys.readouterr()
    assert (left.value.code, printed.out) == (130, '{"ending":"interrupted"}\n')
    assert printed.err.endswith("Run the same command to resume.\n")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("shards", [0, 3])
def test_a_signal_to_all_processes_of_a_crawl_loses_nothing(
    tmp_path: Path, server: Server, shards: int, name: str
) -> None:
    corpus, before = prepare(tmp_path / "corpus", shards), requests(server)
    with running("crawl", corpus, "--connect-to", server.connect_to) as process:
        while requests(server) < before + MANY_REQUESTS:
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, getattr(signal, name))
        errors = wait_for_end(process)
    assert process.returncode == 130, errors
    assert "everything fetched is safe" in errors and "Traceback" not in errors
    assert thresher.open(corpus).stats()["pages"]["fetched"] > 0, "nothing was committed before"
    check_stats(corpus)
    check_raw(corpus)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_no_process_is_left_over_from_a_run_that_is_stopped(tmp_path: Path, name: str) -> None:
    corpus, numbers = small_corpus(tmp_path), tmp_path / "numbers"
    numbers.mkdir()
    recipe(corpus, {"step": "support.batch_steps:endless", "numbers": str(numbers)})
    with running("process", corpus, "--processes", 2) as process:
        while len(list(numbers.iterdir())) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(getattr(signal, name))
        errors = wait_for_end(process)
    assert "Traceback" not in errors
    assert process.returncode == (-signal.SIGKILL if name == "SIGKILL" else 130)
    for number in numbers.iterdir():
        assert not Path(f"/proc/{number.name}").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "ray"], "give --shards N, too, for example --shards 4"),
        (["--engine", "rya", "--shards", "2"], "unknown engine 'rya'"),
        (["--engine", "ray:head", "--shards", "2"], "'head' is not HOST:PORT"),
        (["--engine", "ray", "--shards", "2", "--scratch", "fast"], 'for example scratch = "/scratch/fast"'),
    ],
)
def test_settings_that_exclude_each_other_are_refused_before_anything_is_written(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    given = ["--lang", "cs", "--seeds", "http://a.cz/", "--connect-to", "127.0.0.1:1", *arguments]
    with running("crawl", tmp_path / "corpus", *given) as process:
        errors = wait_for_end(process)
    assert message in errors and process.returncode == 2
    assert not (tmp_path / "corpus").exists()


def test_a_corpus_without_shards_is_not_crawled_on_a_cluster(tmp_path: Path) -> None:
    corpus = prepare(tmp_path / "corpus", 0)
    with pytest.raises(UsageError, match="a new corpus in another directory with --shards N"):
        crawl(corpus, engine="ray", connect_to="127.0.0.1:1")


def test_a_scratch_folder_is_stored_with_its_whole_path(tmp_path: Path) -> None:
    corpus = prepare(tmp_path / "corpus", 2)
    (tmp_path / "full").touch()
    with running(
        "crawl", corpus, "--scratch", "full", "--connect-to", "127.0.0.1:1", cwd=tmp_path
    ) as process:
        errors = wait_for_end(process)
    assert load(corpus).shards.scratch == str(tmp_path / "full")
    assert process.returncode == 1
    assert f"the folder {tmp_path / 'full'} on {socket.gethostname()}," in errors
    assert "Not a directory. Give one that can be written to on every machine with --scratch" in errors


def test_an_error_of_the_corpus_is_not_blamed_on_the_scratch_folder(tmp_path: Path) -> None:
    corpus, scratch = prepare(tmp_path / "corpus", 2), tmp_path / "disk" / "scratch"
    configured = replace(load(corpus), shards=ShardSettings(count=2, scratch=str(scratch)))
    (corpus / "corpus.toml").write_text(dump(configured))
    for place, is_scratch in [
        (scratch / "corpus-00" / "e000001", True),
        (tmp_path / "disk", True),
        (tmp_path, False),
        (corpus / "shards" / "00", False),
    ]:
        fault = fault_of_disk(corpus, PermissionError(errno.EACCES, "Permission denied", str(place)))
        assert (f"the folder {scratch} on" in str(fault)) is is_scratch
