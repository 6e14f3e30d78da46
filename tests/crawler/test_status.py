"""The status of a crawl: reasons for which free connections wait."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from thresher.cli.views.terminal import CrawlPace, line
from thresher.config import BudgetSettings, PoliteSettings
from thresher.crawler.frontier.frontier import Frontier
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.status import LIMITS, Waiting, waiting
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate, Failure, Reply
from thresher.store.status_totals import merged
from thresher.urls import host as host_of


class Crawl:
    """A frontier and the manners of its hosts, by a clock that stands still unless it is moved."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_000.0
        self.state = KeyValueState(folder)
        self.frontier = Frontier(self.state, lambda: self.now)
        self.politeness = Politeness(self.state, PoliteSettings(), lambda: self.now)
        self.now += 100.0

    def visit(self, answer: Reply | Failure, *, robots: bool = False) -> None:
        """Visit the next host and let it rest as its answer asks."""
        candidate = self.frontier.take()
        assert candidate
        host = host_of(candidate.url)
        if robots:
            self.politeness.learn_robots(host, answer)
            rest = self.politeness.robots_wait(host)
        else:
            rest = self.politeness.rest(host, answer)
        self.frontier.put_back(candidate)
        self.frontier.free(host, self.now + rest)

    def waiting(self, connections: int = 0, limit: str = "") -> Waiting | None:
        state: Any = SimpleNamespace(frontier=self.frontier, politeness=self.politeness)
        return waiting(state, connections, limit)


def reply(status: int = 200) -> Reply:
    return Reply("http://a.cz/", status, b"HTTP/1.1 %d x\r\n" % status, b"", 1_100.0, 0.1, "127.0.0.1")


@pytest.fixture
def crawl(tmp_path: Path) -> Crawl:
    made = Crawl(tmp_path)
    made.frontier.add([Candidate(f"http://host{number}.cz/") for number in range(3)])
    return made


def test_hosts_between_two_requests_are_waited_for(crawl: Crawl) -> None:
    for _ in range(3):
        crawl.visit(reply())
    crawl.now += 2.0
    found = crawl.waiting()
    assert found == Waiting(
        "delay", 3, 3.0, "3 hosts that rest between two requests, the first for another 3 s"
    )


@pytest.mark.parametrize(
    ("answer", "robots", "reason", "words"),
    [
        (reply(503), False, "backoff", "after failures or answers 429 and 503"),
        (Failure("http://a.cz/", "timeout", transient=True), False, "backoff", "after failures"),
        (
            Failure("http://a.cz/", "timeout", transient=True),
            True,
            "robots",
            "until robots.txt is asked for again",
        ),
    ],
)
def test_the_reason_of_a_longer_rest_is_named(
    crawl: Crawl, answer: Reply | Failure, robots: bool, reason: str, words: str
) -> None:
    for _ in range(3):
        crawl.visit(answer, robots=robots)
    found = crawl.waiting()
    assert found and found.reason == reason and words in found.text and "3 hosts" in found.text


def test_a_host_that_rests_for_its_address_alone_is_named_so(crawl: Crawl) -> None:
    for _ in range(3):
        candidate = crawl.frontier.take()
        assert candidate
        crawl.frontier.put_back(candidate)
        crawl.frontier.free(host_of(candidate.url), crawl.now + 0.4)
    found = crawl.waiting()
    assert found and found.reason == "address"


def test_answers_are_waited_for_when_no_host_rests(crawl: Crawl) -> None:
    for _ in range(3):
        assert crawl.frontier.take()
    found = crawl.waiting(connections=3)
    assert found and (found.reason, found.text) == ("answers", "answers to 3 requests")


@pytest.mark.parametrize("limit", sorted(LIMITS))
def test_a_limit_comes_before_the_frontier(crawl: Crawl, limit: str) -> None:
    found = crawl.waiting(limit=limit)
    assert (found is None) == (limit == "connections")
    assert found is None or found.reason == limit


def test_a_crawl_with_nothing_to_fetch_waits_for_nothing(tmp_path: Path) -> None:
    assert Crawl(tmp_path).waiting() is None


def figures(reason: str, hosts: int) -> dict[str, Any]:
    found = {"reason": reason, "hosts": hosts, "seconds": 1.0, "text": f"{hosts} hosts"} if reason else None
    return {
        "pages": {"fetched": 1, "kept": 0, "rejected": {}},
        "bytes": {"downloaded": 0, "text": 0},
        "yield": {"bytes": 0.0, "documents": 0.0},
        "hosts": {"seen": 1, "open": 1, "closed": 0, "best": [], "worst": []},
        "queue": 0,
        "queue_closed": 0,
        "given_up": 0,
        "seen_urls": 0,
        "connections": 0,
        "waiting_for": 0.0,
        "waiting": found,
        "budget": {"pages": 0, "bytes": 0, "seconds": 0.0},
        "widening": {"stage": 0, "found": 0, "kept": 0, "lately": 0.0},
        "cycles": [],
        "time": {"wall_s": 0.0, "cpu_s": 0.0},
    }


def test_a_sharded_crawl_reports_the_most_frequent_reason_for_waiting_of_its_shards() -> None:
    statuses = [figures("delay", 3), figures("patience", 9), figures("delay", 4), figures("", 0)]
    assert merged(statuses, BudgetSettings())["waiting"] == {
        "reason": "delay",
        "hosts": 7,
        "seconds": 1.0,
        "text": "4 hosts (2 of 4 shards wait like this)",
    }
    assert merged([figures("", 0)], BudgetSettings())["waiting"] is None


def test_each_line_of_progress_names_the_reason_for_waiting() -> None:
    assert line(figures("delay", 3), CrawlPace()).endswith("; waiting for 3 hosts")
    assert "waiting" not in line(figures("", 0), CrawlPace())
