"""What waits to be visited: in the frontier, and in the stash for a later cycle; how cycles follow each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random

import msgspec

from thresher.config import Config
from thresher.crawl.cycles import Cycles
from thresher.crawl.ending import Ending, waiting
from thresher.crawl.frontier import HOSTS, Frontier, decode_host
from thresher.crawl.guide import guided
from thresher.crawl.ledger import Figures
from thresher.crawl.politeness import Politeness
from thresher.crawl.robots import DISALLOW_ALL
from thresher.crawl.stash import Stash
from thresher.crawl.state import State
from thresher.crawl.yields import EASED, LOW_YIELD, SHARES, Closing, Yields, eased
from thresher.page import Candidate
from thresher.store.shards import ALONE, Shard
from thresher.url import domain as domain_of


class Queues:
    """All queues of a crawl. Now and then they are opened anew: `frontier` and `guide` are not for keeping."""

    def __init__(
        self,
        state: State,
        config: Config,
        yields: Yields,
        polite: Politeness,
        *,
        goes_on: bool,
        shard: Shard = ALONE,
    ) -> None:
        """`goes_on`: somebody may have crawled just before, and not have recorded it."""
        self._state = state
        self._config = config
        self._yields = yields
        self._polite = polite
        self._eased = eased(state)
        self._closing = Closing(config.policy, config.budget, self._eased)
        self._goes_on = goes_on
        self._shard = shard
        self._started = time.monotonic()
        self.stash = Stash(state)
        self.cycles = Cycles(state, config.cycles, self.stash)
        self._open()

    def _open(self) -> None:
        """The frontier as it is in the state, with a guide through it."""
        since = time.monotonic() - self._started

        def first_rest(host: str) -> float:
            rest = self._polite.remaining(host)
            return max(rest, self._polite.rest_on_opening(host) - since) if self._goes_on else rest

        config = self._config
        self.guide, turns = guided(
            config.policy, config.language, self._state, self._yields, Random(), self._shard
        )
        self.frontier = Frontier(self._state, time.monotonic, self.guide, turns, first_rest)
        for host in self.frontier.names():  # may be judged otherwise than last time
            self.close_if_due(host)

    def add(self, found: Sequence[Candidate]) -> None:
        """Let URLs wait: for their turn, or for the next cycle."""
        if self.cycles.hold_back:
            self.stash.add(found)
        else:
            self.frontier.add(found)

    def flush(self) -> None:
        """Hand everything to the state's next commit."""
        self.guide.flush()
        self.frontier.flush()
        self.cycles.flush()

    # hosts

    def closed(self, host: str, under_way: int = 0) -> str:
        """Why nothing more is to be downloaded from the host, with so many of its pages still being read, or ""."""
        tallies = self._yields.hosts[host], self._yields.domains[domain_of(host)]
        return self._polite.dead(host) or self._closing.reason(*tallies, under_way)

    def close_if_due(self, host: str) -> None:
        if reason := self.closed(host):
            self.frontier.close(host, reason)

    def ease(self, commit: Callable[[], None]) -> bool:
        """Open hosts again that were closed for their yield, as few as a lower threshold lets; False: none is left.

        No visit may be under way.
        """
        commit()  # what is not on disk would be missing from a frontier that is opened anew
        poor = [
            host for host in self.frontier.names() if self.closed(host) == LOW_YIELD and self._waits(host)
        ]
        for times in range(self._eased + 1, len(SHARES)):
            self._closing = Closing(self._config.policy, self._config.budget, times)
            if any(not self.closed(host) for host in poor):
                self._eased = times
                self._state.put(EASED, msgspec.msgpack.encode(times))
                commit()
                self._open()
                return True
        self._closing = Closing(self._config.policy, self._config.budget, self._eased)
        return False

    def _waits(self, host: str) -> bool:
        """Whether anything is queued with a host, as of the last commit."""
        record = self._state.get(HOSTS + host.encode())
        return record is not None and decode_host(record)[1] > 0

    def _standing(self, host: str) -> str:
        if self.closed(host):
            return "closed"
        refused = self._polite.robots(host) is DISALLOW_ALL
        wait = max(self._polite.remaining(host), self._polite.robots_wait(host) if refused else 0.0)
        return "resting" if wait > self._config.polite.max_crawl_delay else "open"

    # cycles

    def resume(self, figures: Figures, commit: Callable[[], None]) -> None:
        """Before a crawl goes on: where cycles are no longer asked for, what waits for one is queued."""
        if not self._config.cycles.pages:
            self.cycles.end(figures, emptying=False)
        elif self.cycles.hold_back or not self.cycles.under_way:
            return
        for portion in self.stash.entries():
            self.frontier.add(self.guide.given([candidate for _, candidate in portion]))
            self.stash.remove(portion)
            commit()

    def next_cycle(self, idle: Ending | None, figures: Figures, commit: Callable[[], None]) -> Ending | None:
        """Where a cycle is over, begin the next one; why the crawl ends, or None.

        `idle` tells why the frontier has nothing to hand out; no visit may be under way.
        """
        cycles = self.cycles
        is_over = idle if cycles.hold_back else cycles.is_full(figures.fetched)
        if cycles.under_way and not is_over:
            return idle
        if cycles.are_enough and len(self.stash) + len(self.frontier):
            return Ending("cycle budget")
        left = self.frontier.queued + self.frontier.queued_closed > 0
        emptying = left and (cycles.hold_back or cycles.under_way)
        cycles.end(figures, emptying=emptying)
        commit()
        if emptying:
            cycles.empty()
            self._open()
        ending = self._fill()
        if not ending:
            cycles.begin(figures)
        commit()
        return ending

    def _fill(self) -> Ending | None:
        """Fill the frontier with the best of what waits; why that is nothing, or None."""
        terms = self._config.cycles
        count = terms.seeds if terms.selection else terms.pages
        choice = self.stash.choose(count, terms.domain_pages, self._weigh, self._standing)
        if terms.selection:
            self.stash.give_up_all_but(choice.best)
            self.cycles.forget_harvest()
        self.stash.remove(choice.best)
        self.frontier.add(self.guide.given([candidate for _, candidate in choice.best]))
        if len(self.frontier):
            return None
        if choice.resting and not terms.selection:
            return waiting(choice.resting, self._config.polite.max_crawl_delay)
        given_up = self.stash.counts.given_up
        return Ending(
            "done", f"No good URL is left to begin from; {given_up:,} were given up." if given_up else ""
        )

    def _weigh(self, candidates: Sequence[Candidate]) -> list[float]:
        """What URLs promise by now."""
        return self.guide.weights(self.guide.given(candidates))
