"""Crawl a recorded web again on paper, under other policies: same frontier, same yields, no network, its own clock.

How good a policy is shows in its harvest: bytes of text in the corpus after so many bytes downloaded. The ideal
knows every page beforehand and need not find it: it fetches the good ones alone, the best first. The area under the
harvest, as a share of the ideal's, is one number for it, taken up to three times what the ideal downloads.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from itertools import count
from random import Random
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from thresher.config import Budget, Policy
from thresher.crawl.frontier import Frontier
from thresher.crawl.guide import Guide, guided
from thresher.crawl.priority import Source
from thresher.crawl.state import Nowhere
from thresher.crawl.yields import Closing, Yields
from thresher.lab.record import Record
from thresher.page import Candidate
from thresher.url import domain

FURTHER = 3  # times the download of the ideal that a harvest is looked at
SCATTER = 0.5  # of the logarithm of latencies: two thirds are from 0.5 to 1.5 times the mean

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]


class Terms(NamedTuple):
    """Under what terms a web is crawled."""

    delay: float = 0.0  # seconds between two requests to a host
    connections: int = 1
    latency: float = 0.2  # seconds that an answer takes, on average
    bytes: int = 0  # when to stop; 0: when nothing is left
    seed: int = 1  # of chance


class Harvest(NamedTuple):
    """What one crawl visited, in order, and what it had after each visit."""

    visited: Numbers
    seconds: Reals
    downloaded: Numbers
    text: Numbers
    closed_hosts: int = 0


class Simulation:
    """One crawl of a recorded web. `run` is the loop of `thresher.crawl.loop` with all that costs time left out."""

    def __init__(self, record: Record, policy: Policy, terms: Terms, guide: Guide | None = None) -> None:
        self._record = record
        self._terms = terms
        self._now = 0.0
        self._yields = Yields(Nowhere())
        # Apart from the chance of the policy: how long answers take has no say in what that draws.
        self._answers = Random(f"answers {terms.seed}")
        usual, turns = guided(policy, record.language, Nowhere(), self._yields, Random(terms.seed))
        self._guide = guide or usual
        self._frontier = Frontier(Nowhere(), lambda: self._now, self._guide, turns)
        self._closing = Closing(policy, Budget())
        self._queued = bytearray(len(record.urls))
        self._met: set[str] = set()  # hosts whose robots.txt is known
        self._gathered = np.zeros(len(record.urls), np.bool_)  # texts, by the first URL that has each
        self._visited: list[int] = []
        self._seconds: list[float] = []

    def run(self, seeds: Iterable[int]) -> Harvest:
        """Crawl from these URLs until the terms say so, or nothing is left."""
        given = [Candidate(self._record.urls[number]) for number in self._unqueued(list(seeds))]
        self._frontier.add(self._guide.given(given))
        left = self._terms.bytes or math.inf
        # Visits in the order in which answers arrive, or were asked for.
        under_way: list[tuple[float, int, Candidate]] = []
        asked = count()
        while left > 0:
            while len(under_way) < self._terms.connections and (candidate := self._frontier.take()):
                arrival = self._now + self._latency()
                heapq.heappush(under_way, (arrival, next(asked), candidate))
            if under_way:
                self._now, _, candidate = heapq.heappop(under_way)
                number = self._record.number(candidate.url)
                host = self._record.hosts[number]
                if host in self._met:
                    left -= self._visit(candidate, number, host)
                else:
                    self._meet(host, candidate)
            elif (turn := self._frontier.next_turn()) is not None:
                self._now = turn
            else:
                break
        return self._harvest()

    def _latency(self) -> float:
        """How long the next answer takes."""
        mean = self._terms.latency
        return mean * self._answers.lognormvariate(-(SCATTER**2) / 2, SCATTER) if mean else 0.0

    def _meet(self, host: str, candidate: Candidate) -> None:
        """The first turn of a host goes to its robots.txt; the URL waits for the next one."""
        self._met.add(host)
        self._frontier.add(self._sitemaps(host, candidate.depth + 1))
        self._frontier.put_back(candidate)
        self._frontier.free(host, self._now + self._terms.delay)

    def _visit(self, candidate: Candidate, number: int, host: str) -> int:
        """A page arrives: what it gives is learnt, and its links are queued. Returns the bytes received."""
        record = self._record
        self._frontier.free(host, self._now + self._terms.delay)
        twin = record.twins.item(number)
        gained = 0 if self._gathered[twin] else record.worth.item(number)
        self._gathered[twin] |= gained > 0
        received = record.bytes.item(number)
        self._yields.learn(host, received, gained)
        bad = record.badness.item(number)
        source = Source(
            candidate.url,
            gained > 0,
            None if math.isnan(bad) else bad,
            record.languages[number] == record.language,
            gained / received if received else 0.0,
            record.language,
        )
        found = self._links(number, candidate, source)
        if not record.redirects.item(number):
            self._guide.learn(candidate, received, gained, source.ours)
        self._frontier.add(found)
        self._frontier.finish(candidate)
        self._frontier.reweigh(host)
        tallies = self._yields.hosts[host], self._yields.domains[domain(host)]
        if reason := self._closing.reason(*tallies):
            self._frontier.close(host, reason)
        self._visited.append(number)
        self._seconds.append(self._now)
        return received

    def _links(self, number: int, candidate: Candidate, source: Source) -> list[Candidate]:
        """The links of a page that nobody has seen before, weighed as in a crawl."""
        record = self._record
        fresh = self._unqueued(record.links(number).tolist())
        if not fresh:
            return []
        links = [record.link(int(record.starts[number]) + place) for place in fresh.values()]
        via = record.via(number)
        if via == "redirect":
            onward = [replace(candidate, url=link.url, source=candidate.url, via=via) for link in links]
            return self._guide.given(onward)
        found = [Candidate(link.url, candidate.url, via, candidate.depth + 1) for link in links]
        return self._guide.found(found, source, links).queued

    def _sitemaps(self, host: str, depth: int) -> list[Candidate]:
        """What a host's robots.txt leads to."""
        fresh = self._unqueued(self._record.sitemaps.get(host, []))
        return self._guide.given(
            [Candidate(self._record.urls[number], "", "sitemap", depth) for number in fresh]
        )

    def _unqueued(self, numbers: list[int]) -> dict[int, int]:
        """Those URLs that were never queued, from now on queued; and where in the list each stands first."""
        fresh: dict[int, int] = {}
        for place, number in enumerate(numbers):
            if not self._queued[number]:
                self._queued[number] = True
                fresh[number] = place
        return fresh

    def _harvest(self) -> Harvest:
        visited = np.array(self._visited, np.int64)
        return _harvest(self._record, visited, np.array(self._seconds), self._frontier.closed_hosts)


def _harvest(record: Record, visited: Numbers, seconds: Reals, closed_hosts: int = 0) -> Harvest:
    """What a crawl that visited these URLs in this order had after each: of equal texts, the first counts."""
    _, firsts = np.unique(record.twins[visited], return_index=True)
    gained = np.zeros(len(visited), np.int64)
    gained[firsts] = record.worth[visited[firsts]]
    return Harvest(visited, seconds, record.bytes[visited].cumsum(), gained.cumsum(), closed_hosts)


def simulate(record: Record, policy: Policy, seeds: Iterable[int], terms: Terms = Terms()) -> Harvest:  # noqa: B008
    """The harvest of a policy."""
    return Simulation(record, policy, terms).run(seeds)


def ideal(record: Record) -> Harvest:
    """The harvest of one who fetches exactly the good pages, the most text per byte first."""
    good = np.flatnonzero((record.worth > 0) & (record.bytes > 0))
    best = good[np.argsort(-record.worth[good] / record.bytes[good], kind="stable")]
    _, firsts = np.unique(record.twins[best], return_index=True)
    chosen = best[np.sort(firsts)]
    return _harvest(record, chosen, np.zeros(len(chosen)))


def oracle(record: Record, seeds: Iterable[int], limit: int = 0) -> Harvest:
    """The harvest of one who knows every page and link, but may fetch only what it has found."""
    from thresher.lab.planner import Planner  # with numba, that the others do without

    visited = Planner(record).visit(seeds, limit)
    return _harvest(record, visited, np.zeros(len(visited)))


def area(harvest: Harvest, best: Harvest) -> float:
    """The area under a harvest as a share of that under the ideal one; 0 where there is nothing to harvest."""
    if not len(best.text):
        return 0.0
    limit = FURTHER * float(best.downloaded[-1])
    return _area(harvest, limit) / _area(best, limit)


def _area(harvest: Harvest, limit: float) -> float:
    """Under a curve that rises while a page is downloaded, and stays where it is after the last one."""
    downloaded = np.concatenate([[0.0], harvest.downloaded, [max(limit, float(harvest.downloaded[-1]))]])
    text = np.concatenate([[0.0], harvest.text, harvest.text[-1:]])
    inside = downloaded < limit
    return float(
        np.trapezoid(
            np.append(text[inside], np.interp(limit, downloaded, text)), np.append(downloaded[inside], limit)
        )
    )


def downloads_for(harvest: Harvest, text: float) -> int | None:
    """Bytes downloaded until there was that much text; None if there never was."""
    place = int(np.searchsorted(harvest.text, text))
    return int(harvest.downloaded[place]) if place < len(harvest.text) else None
