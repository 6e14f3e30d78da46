"""Simulation of crawls: frontier, policy, yields and closing of domains of the crawler on a recorded web.

There is no network, the clock is simulated, and the results of visits come from the record, so tens of thousands of
pages a second are replayed. A policy is measured by its harvest: bytes of text in the corpus after so many bytes
downloaded. The ideal fetches exactly the good pages, the best first, without having to find them. The area under a
harvest up to three times the download of the ideal, as a share of the area of the ideal, sums it up in one number.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from itertools import count
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.config import Config, PolicySettings
from thresher.crawler.frontier.link_pipeline import LinkPipeline
from thresher.crawler.frontier.manager import FrontierManager
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.policy.policy import CrawlPolicy, WeighedLinks
from thresher.crawler.policy.prioritisers import SourcePage
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.storage.kv_state import NullState
from thresher.records import Candidate
from thresher.simulation.record import CrawlRecord

HARVEST_LIMIT = 3  # up to which a harvest is measured, in downloads of the ideal
LATENCY_SIGMA = 0.5  # of the logarithm of latencies: two thirds are from 0.5 to 1.5 times the mean

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]


class SimulationTerms(NamedTuple):
    """Conditions of a simulated crawl."""

    delay: float = 0.0  # seconds between two requests to a host
    connections: int = 1
    latency: float = 0.2  # mean seconds of an answer
    bytes: int = 0  # budget; 0: crawl until no URL is left
    seed: int = 1  # of random numbers


class Harvest(NamedTuple):
    """The visits of one crawl in order, with totals after each."""

    visited: Numbers
    seconds: Reals
    downloaded: Numbers
    text: Numbers
    closed_hosts: int = 0


class Simulation:
    """One simulated crawl, driven by the queues and the link pipeline of the crawler.

    `run` does the steps of `thresher.crawler.engine` and `thresher.crawler.page_visit` in their order: a host is
    asked for before each fetch, whether it is to be closed, and after it. Scope and the limit of depth are missing
    by design, since the record holds only URLs that were in scope. So are retries, which are one visit with the
    bytes of all, and cycles, expansion and the rests that hosts ask for.
    """

    def __init__(
        self,
        record: CrawlRecord,
        settings: PolicySettings,
        terms: SimulationTerms,
        policy: CrawlPolicy | None = None,
    ) -> None:
        self._record = record
        self._terms = terms
        self._now = 0.0
        self._yields = YieldStats(NullState())
        # Latencies have random numbers of their own, so that they do not change the choices of the policy.
        self._answers = Random(f"answers {terms.seed}")
        self._config = Config(language=record.language, policy=settings)
        self._random = Random(terms.seed)
        self._open(policy)
        self._known_hosts: set[str] = set()  # with a known robots.txt
        self._collected = np.zeros(len(record.urls), np.bool_)  # texts, by the first URL with each
        self._visited: list[int] = []
        self._seconds: list[float] = []

    def _open(self, policy: CrawlPolicy | None) -> None:
        """Open empty queues with a policy, that of the settings by default."""
        state = NullState()
        self._queues = FrontierManager(
            state,
            self._config,
            self._yields,
            Politeness(state, self._config.polite, self._clock),
            is_resumed=False,
            clock=self._clock,
            random=self._random,
            policy=policy,
        )
        self._pipeline = LinkPipeline(self._queues, self._yields)
        self._frontier = self._queues.frontier
        self._queued = bytearray(len(self._record.urls))

    def _clock(self) -> float:
        return self._now

    def restart(self) -> None:
        """Empty the frontier; URLs that were queued and not visited may be queued again."""
        self._open(self._queues.policy)
        for number in self._visited:
            self._queued[number] = True

    def run(self, seeds: Iterable[int], limit: int = 0) -> Harvest:
        """Crawl from some URLs until the budget is spent or no URL is left; return the harvest since the first run.

        `limit` is a budget of bytes for this run, instead of that of the terms.
        """
        self._pipeline.queue([Candidate(self._record.urls[number]) for number in self._unqueued(list(seeds))])
        left = limit or self._terms.bytes or math.inf
        # A heap of visits under way, by the arrival of their answers, then by their order.
        under_way: list[tuple[float, int, Candidate]] = []
        asked = count()
        while left > 0:
            while len(under_way) < self._terms.connections and (candidate := self._frontier.take()):
                if self._queues.refuse_if_due(candidate):
                    continue
                arrival = self._now + self._latency()
                heapq.heappush(under_way, (arrival, next(asked), candidate))
            if under_way:
                self._now, _, candidate = heapq.heappop(under_way)
                number = self._record.number(candidate.url)
                host = self._record.hosts[number]
                if host in self._known_hosts:
                    left -= self._visit(candidate, number, host)
                else:
                    self._visit_robots(host, candidate)
            elif (turn := self._frontier.next_turn()) is not None:
                self._now = turn
            else:
                break
        return self._harvest()

    def _latency(self) -> float:
        """Return the seconds that the next answer takes."""
        mean = self._terms.latency
        return mean * self._answers.lognormvariate(-(LATENCY_SIGMA**2) / 2, LATENCY_SIGMA) if mean else 0.0

    def _visit_robots(self, host: str, candidate: Candidate) -> None:
        """Use the first turn of a host for its robots.txt; the URL waits for the next turn."""
        self._known_hosts.add(host)
        sitemaps = self._unqueued(self._record.sitemaps.get(host, []))
        urls = self._record.urls
        self._pipeline.queue(
            [Candidate(urls[number], "", "sitemap", candidate.depth + 1) for number in sitemaps]
        )
        self._frontier.put_back(candidate)
        self._frontier.free(host, self._now + self._terms.delay)

    def _visit(self, candidate: Candidate, number: int, host: str) -> int:
        """Take in the recorded result of a URL; return the bytes received."""
        record = self._record
        self._frontier.free(host, self._now + self._terms.delay)
        self._visited.append(number)
        self._seconds.append(self._now)
        received = record.bytes.item(number)
        unseen = self._unqueued(record.links(number).tolist())
        if record.redirects.item(number):
            self._pipeline.absorb_redirect(candidate, [record.urls[target] for target in unseen], received)
            return received
        original = record.originals.item(number)
        gained = 0 if self._collected[original] else record.worth.item(number)
        self._collected[original] |= gained > 0
        badness = record.badness.item(number)
        source = SourcePage(
            candidate.url,
            gained > 0,
            None if math.isnan(badness) else badness,
            record.languages[number] == record.language,
            gained / received if received else 0.0,
            record.language,
        )
        start = record.starts.item(number)
        links = [record.link(start + place) for place in unseen.values()]
        via, depth = record.via(number), candidate.depth + 1
        found = [Candidate(link.url, candidate.url, via, depth) for link in links]
        self._pipeline.absorb_page(candidate, source, received, gained, found, links, _write_nothing)
        return received

    def _unqueued(self, numbers: list[int]) -> dict[int, int]:
        """Mark URLs as queued; return the ones that were not before, each with its first place in the list."""
        unseen: dict[int, int] = {}
        for place, number in enumerate(numbers):
            if not self._queued[number]:
                self._queued[number] = True
                unseen[number] = place
        return unseen

    def _harvest(self) -> Harvest:
        visited = np.array(self._visited, np.int64)
        return _harvest(self._record, visited, np.array(self._seconds), self._frontier.closed_hosts)


def _write_nothing(found: WeighedLinks) -> None:
    """Do nothing: a simulation has no corpus."""


def _harvest(record: CrawlRecord, visited: Numbers, seconds: Reals, closed_hosts: int = 0) -> Harvest:
    """Return the harvest of a crawl that visited these URLs in this order."""
    gained = record.gains(visited)
    return Harvest(visited, seconds, record.bytes[visited].cumsum(), gained.cumsum(), closed_hosts)


def simulate(
    record: CrawlRecord,
    policy: PolicySettings,
    seeds: Iterable[int],
    terms: SimulationTerms = SimulationTerms(),  # noqa: B008
) -> Harvest:
    """Simulate a crawl under a policy and return its harvest."""
    return Simulation(record, policy, terms).run(seeds)


def ideal(record: CrawlRecord) -> Harvest:
    """Return the harvest of fetching exactly the good pages, the most text per byte first."""
    good = np.flatnonzero((record.worth > 0) & (record.bytes > 0))
    best = good[np.argsort(-record.worth[good] / record.bytes[good], kind="stable")]
    _, firsts = np.unique(record.originals[best], return_index=True)
    chosen = best[np.sort(firsts)]
    return _harvest(record, chosen, np.zeros(len(chosen)))


def oracle(record: CrawlRecord, seeds: Iterable[int], limit: int = 0) -> Harvest:
    """Return the harvest of a planner that knows every page and link, but fetches only URLs it has found."""
    from thresher.simulation.planner import OraclePlanner  # imports numba

    visited = OraclePlanner(record).visit(seeds, limit)
    return _harvest(record, visited, np.zeros(len(visited)))


def area(harvest: Harvest, best: Harvest) -> float:
    """Return the area under a harvest as a share of the area under the ideal; 0 if there is no text on record."""
    if not len(best.text):
        return 0.0
    limit = HARVEST_LIMIT * float(best.downloaded[-1])
    return _area(harvest, limit) / _area(best, limit)


def _area(harvest: Harvest, limit: float) -> float:
    """Return the area under a curve that rises during each download and stays level after the last."""
    downloaded = np.concatenate([[0.0], harvest.downloaded, [max(limit, float(harvest.downloaded[-1]))]])
    text = np.concatenate([[0.0], harvest.text, harvest.text[-1:]])
    inside = downloaded < limit
    return float(
        np.trapezoid(
            np.append(text[inside], np.interp(limit, downloaded, text)), np.append(downloaded[inside], limit)
        )
    )


def downloads_for(harvest: Harvest, text: float) -> int | None:
    """Return the bytes downloaded until there was that much text, or None if it never was."""
    place = int(np.searchsorted(harvest.text, text))
    return int(harvest.downloaded[place]) if place < len(harvest.text) else None
