"""A whole crawl on a simulated clock: the order of its requests, and the delay between two to one host."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import thresher
from support.webs.memory_web import MemoryPage, settings, simulated_crawl
from thresher.urls import host

WEB = {
    "http://a.cz/": MemoryPage(links=["http://a.cz/1", "http://b.cz/", "http://a.cz/2"]),
    "http://a.cz/1": MemoryPage(links=["http://a.cz/"]),
    "http://a.cz/2": MemoryPage(sentences=0),
    "http://b.cz/": MemoryPage(links=["http://b.cz/old", "http://a.cz/1"]),
    "http://b.cz/old": MemoryPage(redirect="http://b.cz/new"),
    "http://b.cz/new": MemoryPage(),
}
DELAY = 5.0


def test_a_crawl_on_a_simulated_clock_is_polite_and_takes_no_real_time(tmp_path: Path) -> None:
    config = settings(policy={"name": "bfs"}, fetch={"connections": 4})
    begun = time.monotonic()
    crawl = simulated_crawl(tmp_path, config, WEB, ["http://a.cz/"], latency=0.5)
    took = time.monotonic() - begun
    assert crawl.ending.reason == "done"
    moments = [(url, moment - crawl.started) for url, moment in crawl.web.requests]
    assert moments == [
        ("http://a.cz/robots.txt", 0.0),
        ("http://a.cz/", 5.5),
        ("http://b.cz/robots.txt", 6.0),
        ("http://a.cz/1", 11.0),
        ("http://b.cz/", 11.5),
        ("http://a.cz/2", 16.5),
        ("http://b.cz/old", 17.0),
        ("http://b.cz/new", 22.5),
    ]
    for name in ("a.cz", "b.cz"):
        times = [moment for url, moment in moments if host(url) == name]
        assert all(later - earlier >= DELAY for earlier, later in pairwise(times))
    assert took < moments[-1][1], "it did not wait for the delays"


def test_replies_and_outcomes_have_the_times_of_the_simulated_clock(tmp_path: Path) -> None:
    crawl = simulated_crawl(tmp_path, settings(policy={"name": "bfs"}), WEB, ["http://a.cz/"])
    rows = thresher.open(tmp_path).outcomes(["url", "time"]).to_pylist()
    requested = dict(crawl.web.requests)
    assert len(rows) == len(WEB)
    assert all(row["time"].timestamp() == requested[row["url"]] for row in rows)
