"""Crawls in shards on each engine find the same pages as one process, even if processes die or are suspended."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

import pytest

import thresher
from support.invariants import check_crawl, check_journal, check_raw, check_stats, fetched_again
from support.webs.toy_webs import all_seeds
from thresher.config import Config, dump, parse
from thresher.crawler.api import crawl
from thresher.crawler.shards import coordinator
from thresher.errors import CrawlError, UsageError
from thresher.store.shard_layout import home, newest, owner
from thresher.workers.local_engine import LocalEngine
from thresher.workers.protocol import Call
from thresher_lab.toyweb import ToyWeb, serve

# Ray leaves pipes of its processes open
pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.faults]

SHARDS = 3
DELAY = 0.2
CONNECTIONS = 12
COMMIT_PAGES = 20
ENDLESS = {"calendar": 0.0, "session": 0.0, "deeper": 0.0}  # no endless hosts, so that pages can be counted
WEB = ToyWeb(
    hosts=36,
    pages_per_host=(30, 40),
    page_bytes=(4_000, 8_000),
    slow_seconds=0.1,
    drip_seconds=0.2,
    crawl_delay=0.05,
    **ENDLESS,
)
SMALL = ToyWeb.calm(hosts=12, licensed=0.0, pages_per_host=(5, 10), page_bytes=(4_000, 6_000))


def config(**sections: dict[str, Any]) -> Config:
    tables: dict[str, dict[str, Any]] = {
        "polite": {"delay": DELAY, "load_share": 0.0, "contact": "x@example.org", "backoff": 0.05},
        "policy": {"name": "bfs"},
        "fetch": {"connections": CONNECTIONS},
        "store": {
            "commit_pages": COMMIT_PAGES,
            "commit_seconds": 0.2,
            "segment_bytes": 60_000,
            "warc_bytes": 300_000,
        },
        "shards": {"count": SHARDS, "lease": 2.0},
    }
    tables["polite"]["robots_retry"] = 600.0
    for name, section in sections.items():
        tables[name] = {**tables.get(name, {}), **section}
    return parse({"language": "cs", **tables})


class Place(Protocol):
    """Processes and networks in which shards run."""

    engine: str

    def kill_node_of(self, process: int) -> None:
        """Kill all processes on the machine of a process."""

    def pause_node_of(self, process: int) -> list[int]:
        """Suspend all processes on the machine of a process; return them."""

    def start_again(self) -> None:
        """Prepare for a new start after all processes were killed."""


class Here:
    """This machine, on which a shard is its own node."""

    engine = "local"

    def kill_node_of(self, process: int) -> None:
        os.kill(process, signal.SIGKILL)

    def pause_node_of(self, process: int) -> list[int]:
        os.kill(process, signal.SIGSTOP)
        return [process]

    def start_again(self) -> None:
        pass


class Nodes:
    """A Ray cluster of several nodes on this machine, of which the first does no work."""

    def __init__(self) -> None:
        self._make()

    def _make(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        for _ in range(SHARDS + 1):
            self._cluster.add_node(num_cpus=1)
        self.engine = f"ray:{self._cluster.address}"

    def kill_node_of(self, process: int) -> None:
        for node in list(self._cluster.worker_nodes):
            if node.all_processes["raylet"][0].process.pid == parent(process):
                self._cluster.remove_node(node, allow_graceful=False)

    def pause_node_of(self, process: int) -> list[int]:
        raylet = parent(process)
        everyone = [raylet, *below(raylet)]
        for each in everyone:
            os.kill(each, signal.SIGSTOP)
        return everyone

    def start_again(self) -> None:
        self._cluster.shutdown()
        self._make()

    def close(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.ray)])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    if request.param == "local":
        yield Here()
        return
    pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    nodes = Nodes()
    yield nodes
    nodes.close()


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[1])


def below(process: int) -> list[int]:
    children = [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return [each for child in children for each in (child, *below(child))]


@contextmanager
def crawling(directory: Path, connect_to: str, engine: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command in a process of its own."""
    seeds = directory.parent / "seeds.txt"
    seeds.write_text("\n".join(all_seeds(WEB)))
    command = [sys.executable, "-m", "thresher.cli", "crawl", str(directory), "--engine", engine]
    command += ["--shards", str(SHARDS)]
    command += ["--connect-to", connect_to, "--seeds", str(seeds)]
    with errors_of(directory).open("wb") as errors:
        crawler = subprocess.Popen(command, stderr=errors, start_new_session=True)
    try:
        yield crawler
    finally:
        with suppress(ProcessLookupError):
            os.killpg(crawler.pid, signal.SIGKILL)
        crawler.wait()


def errors_of(directory: Path) -> Path:
    return directory.parent / "errors"


def until(condition: Callable[[], bool], crawler: subprocess.Popen[bytes]) -> None:
    """Wait for a condition while the crawl runs."""
    while not condition():
        if crawler.poll() is not None:
            pytest.fail(f"the crawl ended before, with {crawler.returncode}")
        time.sleep(0.02)


def fetched(directory: Path) -> int:
    try:
        return int(thresher.open(directory).stats()["pages"]["fetched"])
    except thresher.store.corpus_files.CorpusError:
        return 0


def process_of(directory: Path, shard: int) -> int:
    folder = newest(home(directory, shard))
    assert folder
    return int((folder / "lock").read_text())


def check_all(directory: Path, journal: Path, lost: int) -> None:
    """Check that no page is missing or duplicated, no host was hurried, and few pages were fetched again."""
    check_crawl(directory, WEB)
    check_raw(directory)
    check_stats(directory)
    requests = check_journal(journal, WEB, DELAY)
    again = fetched_again(requests, WEB)
    print(f"{again} pages fetched again, {lost} shards were hit")
    assert again <= lost * (CONNECTIONS + COMMIT_PAGES)


@pytest.mark.timeout(300)
def test_no_page_is_lost_or_duplicated_when_processes_die_or_sleep(tmp_path: Path, place: Place) -> None:
    directory, journal = tmp_path / "corpus", tmp_path / "journal"
    directory.mkdir()
    (directory / "corpus.toml").write_text(dump(config()))
    lost = 0

    def replaced(shard: int, crawler: subprocess.Popen[bytes]) -> None:
        """Return whether another process has taken over and reported its work."""
        nonlocal lost
        lost += 1
        before = newest(home(directory, shard))
        until(lambda: newest(home(directory, shard)) != before, crawler)
        pages = fetched(directory)
        until(lambda: fetched(directory) > pages + 5, crawler)

    with serve(WEB, journal=journal) as server:
        with crawling(directory, server.connect_to, place.engine) as crawler:
            until(lambda: fetched(directory) > 60, crawler)
            os.kill(process_of(directory, 0), signal.SIGKILL)
            replaced(0, crawler)
            place.kill_node_of(process_of(directory, 1))
            replaced(1, crawler)
            asleep = place.pause_node_of(process_of(directory, 2))
            replaced(2, crawler)
            for process in asleep:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)
            pages = fetched(directory)
            until(lambda: fetched(directory) > pages + 5, crawler)
        lost += SHARDS  # everything is dead now
        place.start_again()
        reported = fetched(directory)
        with crawling(directory, server.connect_to, place.engine) as crawler:
            assert crawler.wait() == 0, errors_of(directory).read_text()
        assert fetched(directory) >= reported, "reported pages are not taken back"
    check_all(directory, journal, lost)


@pytest.mark.timeout(120)
def test_budgets_and_stopping_apply_to_the_whole_crawl(tmp_path: Path, place: Place) -> None:
    directory = tmp_path / "corpus"
    directory.mkdir()
    (directory / "corpus.toml").write_text(dump(config(polite={"delay": 0.0})))
    with serve(SMALL) as server:
        given = {"connect_to": server.connect_to, "engine": place.engine}
        ending = crawl(directory, "cs", all_seeds(SMALL), settings={"budget": {"max_pages": 37}}, **given)
        assert (ending.reason, fetched(directory)) == ("page budget", 37)
        assert (
            crawl(directory, settings={"budget": {"max_pages": 0, "max_bytes": 1}}, **given).reason
            == "byte budget"
        )
        reports: list[dict[str, Any]] = []
        ending = crawl(directory, settings={"budget": {"max_bytes": 0}}, progress=reports.append, **given)
        assert ending.reason == "done"
    assert reports[-1] == thresher.open(directory).stats()
    assert sum(row["fetched"] for row in reports[-1]["shards"]) == reports[-1]["pages"]["fetched"]
    check_crawl(directory, SMALL)
    check_raw(directory)
    check_stats(directory)


@pytest.mark.timeout(120)
def test_shards_that_work_on_disks_of_their_own_lose_no_more_than_since_their_last_copy(
    tmp_path: Path,
) -> None:
    directory, journal, scratch = tmp_path / "corpus", tmp_path / "journal", tmp_path / "scratch"
    directory.mkdir()
    (directory / "corpus.toml").write_text(dump(config(shards={"scratch": str(scratch), "snapshot": 0.5})))
    with serve(WEB, journal=journal) as server:
        with crawling(directory, server.connect_to, "local") as crawler:
            until(lambda: fetched(directory) > 100, crawler)
            for shard in (0, 1):
                folders = sorted(scratch.glob(f"*-{shard:02d}/e*"))
                os.kill(int((folders[-1] / "lock").read_text()), signal.SIGKILL)
            before = [newest(home(directory, shard)) for shard in range(SHARDS)]
            until(lambda: newest(home(directory, 0)) != before[0], crawler)
        # All are dead, and so are their machines.
        for folder in scratch.iterdir():
            subprocess.run(["rm", "-r", str(folder)], check=True)
        with crawling(directory, server.connect_to, "local") as crawler:
            assert crawler.wait() == 0, errors_of(directory).read_text()
    assert list(scratch.iterdir()) == [], "nothing is left there"
    check_crawl(directory, WEB)
    check_raw(directory)
    check_stats(directory)
    check_journal(journal, WEB, DELAY)


def test_shards_on_scratch_disks_copy_their_commits_when_the_coordinator_is_gone(
    tmp_path: Path,
) -> None:
    directory, scratch, journal = tmp_path / "corpus", tmp_path / "scratch", tmp_path / "journal"
    directory.mkdir()
    (directory / "corpus.toml").write_text(dump(config(shards={"scratch": str(scratch), "snapshot": 300.0})))
    with serve(WEB, journal=journal) as server, crawling(directory, server.connect_to, "local") as crawler:
        until(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 200, crawler)
        crawler.kill()
        crawler.wait()
        deadline = time.monotonic() + 60
        while list(scratch.iterdir()):
            assert time.monotonic() < deadline, "the shards have not ended"
            time.sleep(0.05)
    assert fetched(directory) > 60
    check_stats(directory)
    check_raw(directory)


class Undead(LocalEngine):
    """An engine that kills no process."""

    def start(self, call: Call) -> Any:
        started = super().start(call)
        started.kill = lambda: None  # type: ignore[method-assign]
        return started


def test_a_superseded_process_that_wakes_visits_no_host_and_changes_nothing(
    tmp_path: Path,
) -> None:
    directory, journal = tmp_path / "corpus", tmp_path / "journal"
    directory.mkdir()
    (directory / "corpus.toml").write_text(dump(config()))
    (directory / "seeds.txt").write_text("\n".join(all_seeds(WEB)))

    async def led(connect_to: str, engine: Undead) -> None:
        lead = coordinator.Coordinator(directory, config(), engine, connect_to=connect_to)
        running = asyncio.create_task(lead.run())

        async def once(condition: Callable[[], bool]) -> None:
            while not condition():
                assert not running.done(), running.exception()
                await asyncio.sleep(0.02)

        await once(lambda: fetched(directory) > 100)
        asleep, before = process_of(directory, 0), newest(home(directory, 0))
        os.kill(asleep, signal.SIGSTOP)
        await once(lambda: newest(home(directory, 0)) != before)
        os.kill(asleep, signal.SIGCONT)
        await once(lambda: not Path(f"/proc/{asleep}").exists() or zombie(asleep))
        lead.stop()
        await running

    with serve(WEB, journal=journal) as server, closing(Undead()) as engine:
        asyncio.run(led(server.connect_to, engine))
    check_raw(directory)
    check_stats(directory)
    check_journal(journal, WEB, DELAY)


def zombie(process: int) -> bool:
    """Return whether a process has ended without being waited for."""
    return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"


def test_a_fault_that_would_be_the_same_each_time_ends_the_crawl(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text(
        dump(
            config(policy={"name": "host-yield", "priorities": {"support.engine_calls:refuse_to_weigh": 1.0}})
        )
    )
    with (
        serve(SMALL) as server,
        pytest.raises(CrawlError, match=r"(?s)shard .: it cannot be weighed.*Traceback"),
    ):
        crawl(tmp_path, "cs", all_seeds(SMALL), connect_to=server.connect_to)


def test_when_no_host_can_be_reached_all_shards_end_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text(dump(config()))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        unused = f"127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(CrawlError, match="no host could be reached"):
        crawl(tmp_path, "cs", all_seeds(SMALL), connect_to=unused)


class HalfDead(BaseHTTPRequestHandler):
    """Hosts that close the connection if their name says dead."""

    def do_GET(self) -> None:
        if "dead" not in self.headers["Host"]:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_hosts_of_a_shard_that_are_all_dead_are_given_up_where_others_have_answers(tmp_path: Path) -> None:
    alive, dead = (
        next(name for n in range(99) if owner(name := f"{kind}{n}.cz", 2) == shard)
        for shard, kind in enumerate(("alive", "dead"))
    )
    (tmp_path / "corpus.toml").write_text(dump(config(shards={"count": 2}, polite={"host_failures": 3})))
    with ThreadingHTTPServer(("127.0.0.1", 0), HalfDead) as server:
        Thread(target=server.serve_forever).start()
        try:
            place = f"127.0.0.1:{server.server_address[1]}"
            ending = crawl(tmp_path, "cs", [f"http://{alive}/", f"http://{dead}/"], connect_to=place)
        finally:
            server.shutdown()
    assert ending.reason == "waiting", "for the robots.txt of the dead one, as without shards"
    assert thresher.open(tmp_path).outcomes()["host"].to_pylist() == [alive]


class Crowded(LocalEngine):
    """An engine that has more room elsewhere for the first that asks, once."""

    def start(self, call: Call) -> Any:
        started = super().start(call)
        asked = call.arguments["number"] == 1 and call.arguments["epoch"] == 1
        started.is_crowded = lambda: asked  # type: ignore[method-assign]
        return started


def test_a_shard_can_be_moved_while_the_others_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "BALANCE_S", 0.1)
    (tmp_path / "corpus.toml").write_text(dump(config()))
    (tmp_path / "seeds.txt").write_text("\n".join(all_seeds(SMALL)))
    with serve(SMALL) as server, closing(Crowded()) as engine:
        led = coordinator.Coordinator(tmp_path, config(), engine, connect_to=server.connect_to)
        assert asyncio.run(led.run()).reason == "done"
    assert [newest(home(tmp_path, shard)).name for shard in range(SHARDS)] == [
        "e000001",
        "e000002",
        "e000001",
    ]
    check_crawl(tmp_path, SMALL)
    check_raw(tmp_path)
    check_stats(tmp_path)


def test_a_fault_of_one_shard_ends_the_crawl_with_its_message_and_the_others_commit(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text(dump(config()))
    state = home(tmp_path, 1) / "e000009" / "state"
    state.mkdir(parents=True)
    (state / "CURRENT").write_text("no such manifest")
    with serve(SMALL) as server, pytest.raises(CrawlError, match="e000009"):
        crawl(tmp_path, "cs", all_seeds(SMALL), connect_to=server.connect_to)
    assert not (tmp_path / "shards" / "at-work").exists(), "all have ended"


def test_interrupting_once_commits_in_all_shards(tmp_path: Path) -> None:
    directory = tmp_path / "corpus"
    directory.mkdir()
    (directory / "corpus.toml").write_text(dump(config()))
    with serve(WEB) as server, crawling(directory, server.connect_to, "local") as crawler:
        until(lambda: fetched(directory) > 50, crawler)
        crawler.send_signal(signal.SIGINT)
        assert crawler.wait() == 130, errors_of(directory).read_text()
    errors = errors_of(directory).read_text()
    assert "everything fetched is safe" in errors and "Traceback" not in errors
    check_stats(directory)
    check_raw(directory)


def test_the_number_of_shards_is_fixed(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text(dump(config()))
    with pytest.raises(UsageError, match="was made with 3 shards"):
        crawl(tmp_path, settings={"shards": {"count": 4}}, connect_to="127.0.0.1:1")
    with pytest.raises(UsageError, match="cycles"):
        crawl(tmp_path, settings={"cycles": {"pages": 100}}, connect_to="127.0.0.1:1")


def test_a_crawl_without_shards_refuses_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text(dump(config(shards={"count": 0})))
    with pytest.raises(UsageError, match="--shards N"):
        crawl(tmp_path, engine="ray", connect_to="127.0.0.1:1")
