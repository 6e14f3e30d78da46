"""How commands that start others begin and end: at any moment, with the same words, and nobody is left behind."""

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
from batch_corpora import recipe, small_corpus
from invariants import check_books, check_raw, start
from thresher.cli import app
from thresher.config import ConfigError, Shards, dump, load, parse
from thresher.crawl.ending import Ending
from thresher.crawl.shards.coordinator import Coordinator
from thresher.crawl.start import crawl, fault_of_disk
from thresher.engine.processes import Processes
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
def running(*arguments: object, cwd: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """The command in a group of processes of its own, as it has under a shell or a service manager."""
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
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


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_shards_that_are_still_loading_are_no_matter(tmp_path: Path, server: Server, name: str) -> None:
    corpus = prepare(tmp_path / "corpus", 3)
    with running("crawl", corpus, "--connect-to", server.connect_to) as process:
        while not (corpus / "shards" / "at-work").exists():  # they have all been started
            assert process.poll() is None
            time.sleep(0.005)
        os.killpg(process.pid, getattr(signal, name))
        said = ended(process)
    assert process.returncode == 130, said
    assert said.endswith("Go on with the same command.\n") and "Traceback" not in said


def test_shards_that_are_not_even_called_have_ended(tmp_path: Path) -> None:
    corpus = prepare(tmp_path / "corpus", 2)
    with closing(Processes()) as engine:
        led = Coordinator(corpus, load(corpus), engine)
        led.stop()
        assert asyncio.run(led.run()) == Ending("interrupted")


def test_without_figures_there_are_the_usual_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = prepare(tmp_path / "corpus", 2)
    monkeypatch.setattr("thresher.crawl.start.crawl", lambda *_, **__: Ending("interrupted"))
    with pytest.raises(SystemExit) as left:
        app(["crawl", str(corpus), "--connect-to", "127.0.0.1:1", "--json"])
    told = capsys.readouterr()
    assert (left.value.code, told.out) == (130, '{"ending":"interrupted"}\n')
    assert told.err.endswith("Go on with the same command.\n")


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "ray"], "give --shards N, too, for example --shards 4"),
        (["--engine", "rya", "--shards", "2"], "there is no engine 'rya'"),
        (["--engine", "ray:head", "--shards", "2"], "'head' is not HOST:PORT"),
        (["--engine", "ray", "--shards", "2", "--scratch", "fast"], 'try scratch = "/scratch/fast"'),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_written(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    given = ["--lang", "cs", "--seeds", "http://a.cz/", "--connect-to", "127.0.0.1:1", *arguments]
    with running("crawl", tmp_path / "corpus", *given) as process:
        said = ended(process)
    assert message in said and process.returncode == 2
    assert not (tmp_path / "corpus").exists()


def test_a_corpus_without_shards_is_crawled_on_no_cluster(tmp_path: Path) -> None:
    corpus = prepare(tmp_path / "corpus", 0)
    with pytest.raises(ConfigError, match="a new corpus in another directory with --shards N"):
        crawl(corpus, engine="ray", connect_to="127.0.0.1:1")


def test_scratch_is_known_by_its_whole_path(tmp_path: Path) -> None:
    """Or a command given in another directory would have another."""
    corpus = prepare(tmp_path / "corpus", 2)
    (tmp_path / "full").touch()
    with running(
        "crawl", corpus, "--scratch", "full", "--connect-to", "127.0.0.1:1", cwd=tmp_path
    ) as process:
        said = ended(process)
    assert load(corpus).shards.scratch == str(tmp_path / "full")
    assert process.returncode == 1
    assert f"the folder {tmp_path / 'full'} on {socket.gethostname()}," in said
    assert "Not a directory. Give one that can be written to on every machine with --scratch" in said


def test_a_fault_of_the_corpus_is_not_put_on_scratch(tmp_path: Path) -> None:
    corpus, scratch = prepare(tmp_path / "corpus", 2), tmp_path / "disk" / "scratch"
    configured = replace(load(corpus), shards=Shards(count=2, scratch=str(scratch)))
    (corpus / "corpus.toml").write_text(dump(configured))
    for place, is_scratch in [
        (scratch / "corpus-00" / "e000001", True),
        (tmp_path / "disk", True),
        (tmp_path, False),
        (corpus / "shards" / "00", False),
    ]:
        fault = fault_of_disk(corpus, PermissionError(errno.EACCES, "Permission denied", str(place)))
        assert (f"the folder {scratch} on" in str(fault)) is is_scratch
