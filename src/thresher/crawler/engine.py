"""The loop of a crawl: it starts visits while there is room, commits about once a second, and knows when to end.

The way of a single page is in `page_visit`, everything that is remembered in `crawl_state`.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from thresher.crawler.coordination import Coordination, alone
from thresher.crawler.crawl_state import CrawlState
from thresher.crawler.page_visit import PageVisit
from thresher.crawler.parts import CrawlParts
from thresher.crawler.status import status
from thresher.crawler.stop_reasons import NO_HOST_REACHED, BudgetMeter, Ending, waiting
from thresher.errors import CrawlError
from thresher.records import Candidate
from thresher.urls import host as host_of

MAX_PENDING_BYTES = 64 << 20  # of raw pages, before a commit is made early
MIN_LINKS_TO_RESUME = 1_000  # unseen links from other shards that let a dry shard continue
SLOW_COMMIT_S = 5.0  # a commit that takes longer is logged

_log = logging.getLogger(__name__)


class Crawl:
    """One crawl process at work on an open state. `async with` starts its readers, `run` crawls until it ends."""

    def __init__(
        self,
        state: CrawlState,
        parts: CrawlParts,
        *,
        coordination: Coordination | None = None,
        progress: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> None:
        """Connect a state with a fetcher and readers, which the crawl starts and closes.

        `progress` is called with the statistics after each commit. `coordination` connects a shard with the others.
        """
        self.state = state
        self._parts = parts
        self._coordination = coordination or alone(state.politeness)
        self._lifecycle = self._coordination.lifecycle
        self._config = state.config
        self._clock = state.clock
        self._progress = progress
        self.page_visit = PageVisit(state, parts, self._coordination)
        self._meter = BudgetMeter(state.config.budget, state.writer.stats, state.clock.now)
        self._under_way: set[asyncio.Task[None]] = set()
        self._wakeup = asyncio.Event()
        self._fault: BaseException | None = None
        self._stopping = False
        self._is_open = False  # connections and readers are there
        self._arrived = 0  # links from other shards since this one ran dry

    async def __aenter__(self) -> Crawl:
        await self._parts.readers.start()
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        for visit in self._under_way:
            visit.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self._parts.close()

    # called from outside

    def seed(self, urls: Iterable[str]) -> None:
        """Queue seeds (canonical URLs) that are unseen and in scope."""
        self.page_visit.queue([Candidate(url) for url in urls if self.state.shard.owns(host_of(url))])

    def receive(self, links: Sequence[Candidate]) -> None:
        """Queue links that other shards have found to hosts of this one."""
        unseen = self.page_visit.queue(links)
        self._arrived = self._arrived + unseen if self.state.expansion.is_over else 0
        if self._arrived >= MIN_LINKS_TO_RESUME:
            self.state.expansion.resume()
        self._wakeup.set()

    def wake(self) -> None:
        """Let the loop look whether there is something to do."""
        self._wakeup.set()

    def fail(self, fault: BaseException) -> None:
        """End the crawl with a fault; the first one counts."""
        self._fault = self._fault or fault
        self._wakeup.set()

    def stop(self) -> None:
        """Start nothing more, commit and end; URLs under way stay queued."""
        self._stopping = True
        self._wakeup.set()

    # the loop

    async def run(self) -> Ending:
        """Crawl until nothing is left, a budget is spent or `stop` is called; then everything is committed."""
        self.state.queues.resume(self.state.writer.stats, self.commit)
        due = self._clock.now() + self._config.store.commit_seconds
        while not (ending := self._ending()):
            self._wakeup.clear()
            await self._clock.wait(self._wakeup, min(due, self._start_visits(), self._expand()))
            if self._clock.now() >= due or self._much_is_pending():
                self.commit()
                due = self._clock.now() + self._config.store.commit_seconds
        if ending.reason != "interrupted":
            self.state.writer.seal()
        self.commit()
        return ending

    def _much_is_pending(self) -> bool:
        return (
            self.page_visit.uncommitted >= self._config.store.commit_pages
            or self.state.writer.pending > MAX_PENDING_BYTES
        )

    def commit(self) -> None:
        """Make everything so far durable."""
        self._lifecycle.check()
        begun = self._clock.now()
        self._meter.record(self._parts.readers.cpu_seconds())
        self.state.flush()
        self._lifecycle.flush()
        stats = status(self._config, self.state, len(self._under_way), self._limit())
        self.state.commit(stats)
        if (seconds := self._clock.now() - begun) > SLOW_COMMIT_S:
            _log.warning("a commit of %d outcomes took %.1f s", self.page_visit.uncommitted, seconds)
        self.page_visit.uncommitted = 0
        self._lifecycle.committed(stats)
        self._progress(stats)

    # visits

    def _start_visits(self) -> float:
        """Start all visits that may start; return when there may be more if nothing else happens."""
        while self._has_room() and not self._is_spent(len(self._under_way)):
            candidate = self.state.frontier.take()
            if candidate is None:
                turn = self.state.frontier.next_turn()
                return math.inf if turn is None else turn
            visit = asyncio.create_task(self.page_visit.visit(candidate))
            self._under_way.add(visit)
            visit.add_done_callback(self._visited)
        return math.inf

    def _has_room(self) -> bool:
        is_quiet = self.state.expansion.wants_quiet or self.state.expansion.is_over
        return not is_quiet and self.page_visit.has_room(len(self._under_way))

    def _is_spent(self, under_way: int) -> bool:
        fetched = self.state.writer.stats.fetched + under_way
        if self._meter.spent(under_way) or self.state.queues.cycles.is_full(fetched):
            return True
        turn = self.state.frontier.next_turn()
        return not self._lifecycle.may_fetch(fetched + 1, turn is not None and turn <= self._clock.now())

    def _limit(self) -> str:
        """Return the limit that keeps the next visit from starting, "" if only the frontier does."""
        if not self._is_open:
            return "connections"
        under_way = len(self._under_way)
        fetched = self.state.writer.stats.fetched + under_way
        if self._coordination.network.is_unreachable:
            return "network"
        if self.state.expansion.wants_quiet:
            return "expansion"
        if under_way >= self._config.fetch.connections:
            return "connections"
        if not self.page_visit.has_room(under_way):
            return "readers"
        if self._meter.spent(under_way) or self.state.queues.cycles.is_full(fetched):
            return "budget"
        return "" if self._lifecycle.may_fetch(fetched + 1, wanted=False) else "shards"

    def _visited(self, visit: asyncio.Task[None]) -> None:
        self._under_way.discard(visit)
        self._wakeup.set()
        if not visit.cancelled() and (fault := visit.exception()):
            self.fail(fault)

    def _expand(self) -> float:
        """Look for more URLs where the crawl has run dry, a portion at a time; return when to look again."""
        expansion = self.state.expansion
        if not expansion.is_due(idle=not self._under_way and self._idle() not in (None, NO_HOST_REACHED)):
            return math.inf
        expansion.begin(self.commit)
        if not expansion.wants_quiet:
            expansion.found(self.page_visit.queue(expansion.guesses()))
        elif self._under_way:
            return math.inf  # until the last of them has ended
        else:
            expansion.opened(self.state.queues.relax_closing(self.commit))
        return -math.inf

    # the end

    def _ending(self) -> Ending | None:
        if self._fault:
            raise self._fault
        if self._stopping:
            return Ending("interrupted")
        ending = self._lifecycle.ending(self._reason_to_end(), len(self._under_way))
        if ending == NO_HOST_REACHED:
            raise CrawlError(ending.detail)
        return ending

    def _reason_to_end(self) -> Ending | None:
        """Return why this process has nothing more to do, None if it has."""
        if spent := self._meter.spent():
            return Ending(spent)
        if self.state.expansion.is_over:
            return self.state.expansion.ending(len(self.state.frontier))
        if self._under_way:
            return None
        idle = self._idle()
        if idle == NO_HOST_REACHED:
            return idle
        if self._config.cycles.pages:
            return self.state.queues.next_cycle(idle, self.state.writer.stats, self.commit)
        return None if idle and self.state.expansion.is_due(idle=True) else idle

    def _idle(self) -> Ending | None:
        """Return why the frontier hands out nothing for long, None if it will soon."""
        turn = self.state.frontier.next_turn()
        if turn is None:
            return Ending("done")
        wait = turn - self._clock.now()
        if self._coordination.network.is_unreachable and wait > 0:
            return NO_HOST_REACHED
        if wait > self._config.polite.max_crawl_delay:
            return waiting(len(self.state.frontier), wait)
        return None
