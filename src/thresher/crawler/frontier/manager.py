"""All queues of a crawl: the frontier, the backlog for a later cycle, and the turns from one cycle to the next."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from random import Random

from thresher.config import Config
from thresher.crawler.frontier import stored_queue
from thresher.crawler.frontier.backlog import Backlog
from thresher.crawler.frontier.cycles import CycleScheduler
from thresher.crawler.frontier.frontier import Frontier
from thresher.crawler.frontier.host_scheduler import make_scheduler
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.manners.robots import DISALLOW_ALL
from thresher.crawler.policy.policy import CrawlPolicy, make_policy
from thresher.crawler.policy.yield_stats import (
    LOW_YIELD,
    THRESHOLD_SHARES,
    DomainClosing,
    YieldStats,
    relaxations,
    store_relaxations,
)
from thresher.crawler.stop_reasons import Ending, waiting
from thresher.crawler.storage.crawl_writer import CrawlStats
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate
from thresher.store.shard_layout import ALONE, Shard
from thresher.urls import domain as domain_of
from thresher.urls import host as host_of

_log = logging.getLogger(__name__)


class FrontierManager:
    """The owner of frontier and backlog.

    Between cycles, and when closed hosts are opened again, `frontier` and `policy` are replaced by new objects on
    the same state: read the attributes at each use.
    """

    def __init__(
        self,
        state: KeyValueState,
        config: Config,
        yields: YieldStats,
        politeness: Politeness,
        *,
        is_resumed: bool,
        clock: Callable[[], float] = time.monotonic,
        shard: Shard = ALONE,
        random: Random | None = None,
        policy: CrawlPolicy | None = None,
    ) -> None:
        """Open the queues.

        Parameters
        ----------
        state
            Holds the queues from one run to the next.
        config
            Policy, budgets and cycles.
        yields
            Yields of hosts and domains so far.
        politeness
            Rests of hosts, and hosts that were given up.
        is_resumed
            A process may have visited hosts just before without recording it.
        clock
            Gives the time of turns.
        shard
            The shard whose hosts are queued.
        random
            Makes the random choices of policies, reproducible if it is seeded.
        policy
            Takes the place of the policy of the settings, for measurements and training.
        """
        self._state = state
        self._config = config
        self._yields = yields
        self._politeness = politeness
        self._relaxations = relaxations(state)
        self._closing = DomainClosing(config.policy, config.budget, self._relaxations)
        self._is_resumed = is_resumed
        self._clock = clock
        self._shard = shard
        self._random = random or Random()
        self._given_policy = policy
        self._started = clock()
        self.backlog = Backlog(state)
        self.cycles = CycleScheduler(state, config.cycles, self.backlog)
        self._open()

    def _open(self) -> None:
        """Open the frontier as it is in the state, with a new policy."""
        since = self._clock() - self._started

        def first_rest(host: str) -> float:
            rest = self._politeness.remaining(host)
            return max(rest, self._politeness.rest_on_opening(host) - since) if self._is_resumed else rest

        config = self._config
        self.policy: CrawlPolicy = self._given_policy or make_policy(
            config.policy, config.language, self._state, self._yields, self._random, self._shard
        )
        scheduler = make_scheduler(config.policy, self._random)
        self.frontier = Frontier(self._state, self._clock, self.policy, scheduler, first_rest)
        for host in self.frontier.names():  # the rules may have changed since the last run
            if reason := self.closing_reason(host):
                self.frontier.close(host, reason)

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Queue candidates in the frontier, or in the backlog if they belong to the next cycle."""
        if self.cycles.hold_back:
            self.backlog.add(candidates)
        else:
            self.frontier.add(candidates)

    def flush(self) -> None:
        """Put everything into the state's next commit."""
        self.policy.flush()
        self.frontier.flush()
        self.cycles.flush()

    # hosts

    def closing_reason(self, host: str, under_way: int = 0) -> str:
        """Return why a host is not visited any more, "" if it is; `under_way` of its pages are being read."""
        yields = self._yields
        return self._politeness.dead_reason(host) or self._closing.reason(
            yields.hosts[host], yields.domains[domain_of(host)], under_way
        )

    def refuse_if_due(self, candidate: Candidate) -> bool:
        """Ask whether a taken URL is still to be visited, since its domain may have turned out poor meanwhile.

        If its host is to be closed, close it, return the URL to its queue, and return True.
        """
        host = host_of(candidate.url)
        reason = self.closing_reason(host, self.frontier.under_way(host) - 1)
        if not reason:
            return False
        self.close_host(host, reason)
        self.frontier.put_back(candidate)
        self.frontier.free(host, self._clock())
        return True

    def close_if_due(self, host: str) -> None:
        """Close a host if there is a reason to."""
        if reason := self.closing_reason(host):
            self.close_host(host, reason)

    def close_host(self, host: str, reason: str) -> None:
        """Hand out nothing more of a host; its queue stays on disk."""
        if self.frontier.close(host, reason):
            _log.info("closed %s: %s", host, reason)

    def relax_closing(self, commit: Callable[[], None]) -> bool:
        """Open some hosts that were closed for their yield; return False if none can be opened.

        The threshold is lowered until at least one host with a queue passes. No visit may be under way.
        """
        commit()  # the new frontier reads its queues from disk
        poor = [
            host
            for host in self.frontier.names()
            if self.closing_reason(host) == LOW_YIELD and self._has_queue(host)
        ]
        for times in range(self._relaxations + 1, len(THRESHOLD_SHARES)):
            self._closing = DomainClosing(self._config.policy, self._config.budget, times)
            if any(not self.closing_reason(host) for host in poor):
                self._relaxations = times
                store_relaxations(self._state, times)
                commit()
                self._open()
                return True
        self._closing = DomainClosing(self._config.policy, self._config.budget, self._relaxations)
        return False

    def _has_queue(self, host: str) -> bool:
        """Return whether candidates of a host were queued as of the last commit."""
        stored = stored_queue.read_host(self._state, host)
        return stored is not None and stored.queued > 0

    def _standing(self, host: str) -> str:
        """Return "closed", "resting" or "open"."""
        if self.closing_reason(host):
            return "closed"
        refused = self._politeness.robots(host) is DISALLOW_ALL
        wait = max(self._politeness.remaining(host), self._politeness.robots_wait(host) if refused else 0.0)
        return "resting" if wait > self._config.polite.max_crawl_delay else "open"

    # cycles

    def resume(self, stats: CrawlStats, commit: Callable[[], None]) -> None:
        """Queue the backlog of a crawl that was in cycles and is continued without."""
        if not self._config.cycles.pages:
            self.cycles.end(stats, emptying=False)
        elif self.cycles.hold_back or not self.cycles.under_way:
            return
        for portion in self.backlog.entries():
            self.frontier.add(self.policy.weigh_urls([candidate for _, candidate in portion]))
            self.backlog.take_out(portion)
            commit()

    def next_cycle(self, idle: Ending | None, stats: CrawlStats, commit: Callable[[], None]) -> Ending | None:
        """Begin the next cycle if the present one is over; return why the crawl ends, None if it continues.

        `idle` is why the frontier hands out nothing, None if it does. No visit may be under way.
        """
        cycles = self.cycles
        is_over = idle if cycles.hold_back else cycles.is_full(stats.fetched)
        if cycles.under_way and not is_over:
            return idle
        if cycles.are_enough and len(self.backlog) + len(self.frontier):
            return Ending("cycle budget")
        left = self.frontier.queued + self.frontier.queued_closed > 0
        emptying = left and (cycles.hold_back or cycles.under_way)
        cycles.end(stats, emptying=emptying)
        commit()
        if emptying:
            cycles.empty()
            self._open()
        ending = self._fill()
        if not ending:
            cycles.begin(stats)
        commit()
        return ending

    def _fill(self) -> Ending | None:
        """Fill the frontier with the best of the backlog; return why nothing was found, None if it was."""
        terms = self._config.cycles
        count = terms.seeds if terms.selection else terms.pages
        choice = self.backlog.choose(count, terms.domain_pages, self._weigh, self._standing)
        if terms.selection:
            self.backlog.discard_all_but(choice.best)
            self.cycles.forget_good_links()
        self.backlog.take_out(choice.best)
        self.frontier.add(self.policy.weigh_urls([candidate for _, candidate in choice.best]))
        if len(self.frontier):
            return None
        if choice.resting and not terms.selection:
            return waiting(choice.resting, self._config.polite.max_crawl_delay)
        given_up = self.backlog.counts.given_up
        return Ending(
            "done", f"No good URL is left to begin from; {given_up:,} were given up." if given_up else ""
        )

    def _weigh(self, candidates: Sequence[Candidate]) -> list[float]:
        """Return the weights that candidates have by now."""
        return self.policy.expected_yields(self.policy.weigh_urls(candidates))
