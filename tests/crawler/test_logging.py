"""The log of a crawl: retries, closed hosts, quarantined pages, slow commits and lost shards are reported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.invariants import SETTINGS
from support.webs.toy_webs import all_seeds
from thresher.config import parse
from thresher.crawler.api import crawl
from thresher.crawler.clock import SystemClock
from thresher.crawler.coordination import alone
from thresher.crawler.crawl_state import CrawlState
from thresher.crawler.engine import SLOW_COMMIT_S, Crawl
from thresher.crawler.page_visit import PageVisit
from thresher.crawler.parts import CrawlParts, crawl_parts
from thresher.crawler.shards.coordinator import Coordinator
from thresher.errors import CrawlError
from thresher.records import Candidate, Failure, Reply
from thresher.workers.protocol import Call, CallResult
from thresher_lab.toyweb import Server, ToyWeb, reachable, serve

pytestmark = pytest.mark.slow

WEB = ToyWeb.calm(
    hosts=4, licensed=0.0, pages_per_host=(5, 8), page_bytes=(4_000, 6_000), flaky=0.8, retry_after=0
)
CONFIG = parse({"language": "cs", "shards": {"count": 2}})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(WEB) as server:
        yield server


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == level and record.name.startswith("thresher.")
    ]


def test_closed_hosts_are_logged_as_information_once(
    tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "thresher")
    given = {**SETTINGS, "budget": {"host_pages": 4}}
    crawl(tmp_path, "cs", all_seeds(WEB), settings=given, connect_to=server.connect_to)
    closed = [line for line in lines(caplog, logging.INFO) if line.startswith("closed ")]
    assert closed and len(closed) == len(set(closed))
    assert all(line.endswith(": host budget") for line in closed)
    assert lines(caplog, logging.WARNING) == []


def test_retries_are_logged_as_information_with_their_cause(
    tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "thresher")
    flaky = [url for url, page in reachable(WEB, all_seeds(WEB)) if page.kind == "flaky"]
    crawl(tmp_path, "cs", flaky[:5], settings=SETTINGS, connect_to=server.connect_to)
    retries = [line for line in lines(caplog, logging.INFO) if line.startswith("retry http://")]
    assert retries and all(line.endswith(("later: 503", "later: 429")) for line in retries)


class BrokenReaders:
    """Readers that stall at every page."""

    async def read(self, reply: Reply) -> Failure:
        return Failure(reply.url, "reader stalled", "no answer within 5 s")


def test_a_quarantined_page_is_logged_as_a_warning_with_its_url_and_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = "http://a.cz/stalls"

    async def run() -> None:
        with closing(CrawlState(tmp_path, parse({"language": "cs"}))) as state:
            parts = CrawlParts(None, BrokenReaders())  # type: ignore[arg-type]
            visits = PageVisit(state, parts, alone(state.politeness))
            state.frontier.add([Candidate(url)])
            candidate = state.frontier.take()
            assert candidate
            reply = Reply(url, 200, b"HTTP/1.1 200 OK\r\n", b"<p>", 0.0, 0.1, "")
            assert await visits._read(candidate, reply) is None
            assert state.writer.stats.outcomes == {"quarantined": 1}

    asyncio.run(run())
    (line,) = lines(caplog, logging.WARNING)
    assert url in line and "reader stalled" in line and "no answer within 5 s" in line


class JumpingClock(SystemClock):
    """A clock that jumps with every look at it."""

    def __init__(self, step: float) -> None:
        self._time, self._step = 1_000.0, step

    def now(self) -> float:
        self._time += self._step
        return self._time


@pytest.mark.parametrize(("step", "warnings"), [(SLOW_COMMIT_S, 1), (0.001, 0)])
def test_a_slow_commit_is_logged_as_a_warning_with_its_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, step: float, warnings: int
) -> None:
    config = parse({"language": "cs"})
    with closing(CrawlState(tmp_path, config, clock=JumpingClock(step))) as state:
        Crawl(state, crawl_parts(config)).commit()
    found = lines(caplog, logging.WARNING)
    assert len(found) == warnings
    assert all(line.startswith("a commit of 0 outcomes took ") for line in found)


class DeadlyEngine:
    """An engine with processes that all die."""

    address = "127.0.0.1"

    def start(self, call: Call) -> DeadlyEngine:
        return self

    def poll(self) -> CallResult:
        return CallResult(0, fault="its process died: SIGKILL")

    def is_crowded(self) -> bool:
        return False

    def kill(self) -> None:
        pass


def test_a_lost_shard_is_logged_as_a_warning_with_its_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator = Coordinator(tmp_path, CONFIG, DeadlyEngine())  # type: ignore[arg-type]
    with pytest.raises(CrawlError, match="was lost 4 times without any progress"):
        asyncio.run(coordinator.run())
    assert "shard 0 was lost (its process died: SIGKILL); epoch 2 takes over" in lines(
        caplog, logging.WARNING
    )
