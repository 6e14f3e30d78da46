"""The crawl: visits are started while there is room, what they found is committed, until there is an end.

The way of a page is in `visits`, all that is remembered in `books`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from thresher.config import Config
from thresher.crawl.books import Books
from thresher.crawl.company import Company
from thresher.crawl.ending import NOBODY_REACHED, CrawlFault, Ending, Meter, waiting
from thresher.crawl.status import status
from thresher.crawl.visits import Visits
from thresher.page import Candidate
from thresher.store import forgotten
from thresher.url import host as host_of

MAX_PENDING = 64 << 20  # bytes of raw pages before a commit is made early
NEWS_FROM_ABROAD = 1_000  # new links from other shards after which one that has run dry goes on


class Crawl:
    """One crawler at work on a corpus directory. `async with` opens it, `run` crawls until it ends."""

    def __init__(
        self,
        directory: Path,
        config: Config,
        *,
        connect_to: tuple[str, int] | None = None,
        progress: Callable[[dict[str, Any]], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
        company: Company | None = None,
        root: Path | None = None,
    ) -> None:
        """`company`: the other shards of the crawl; then `root` is the corpus, and the directory this shard's."""
        self._company = company or Company()
        self._config = config
        self._progress = progress
        self.books = Books(directory, config, clock, self._company.shard, root or directory)
        self.visits = Visits(config, self.books, self._company, forgotten.load(root or directory), connect_to)
        self._meter = Meter(config.budget, self.books.ledger.figures)
        self._under_way: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._fault: BaseException | None = None
        self._stopping = False
        self._arrived = 0  # links from other shards since this one ran dry
        self._company.join(self.books.ledger, self.books.polite, self._receive, self._news.set, self._fail)

    async def __aenter__(self) -> Crawl:
        await self.visits.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        for visit in self._under_way:
            visit.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await self.visits.close()
        self.books.close()

    # the loop

    def seed(self, urls: Iterable[str]) -> None:
        """Queue seeds (canonical URLs) that are new and in scope."""
        self.visits.queue([Candidate(url) for url in urls if self._company.shard.owns(host_of(url))])

    def _receive(self, candidates: Sequence[Candidate]) -> None:
        """Links that other shards have found to hosts of this one."""
        fresh = self.visits.queue(candidates)
        self._arrived = self._arrived + fresh if self.books.widening.is_over else 0
        if self._arrived >= NEWS_FROM_ABROAD:
            self.books.widening.go_on()
        self._news.set()

    async def run(self) -> Ending:
        """Crawl until nothing is left, a budget is spent or `stop` is called. Everything is committed then."""
        self.books.queues.resume(self.books.ledger.figures, self.commit)
        due = time.monotonic() + self._config.store.commit_seconds
        while not (ending := self._ending()):
            self._news.clear()
            turn = min(self._start_visits(), self._widen())
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(due, turn)):
                    await self._news.wait()
            if time.monotonic() >= due or self._much_is_pending():
                self.commit()
                due = time.monotonic() + self._config.store.commit_seconds
        if ending.reason != "interrupted":
            self.books.ledger.seal()
        self.commit()
        return ending

    def _much_is_pending(self) -> bool:
        return (
            self.visits.uncommitted >= self._config.store.commit_pages
            or self.books.ledger.pending > MAX_PENDING
        )

    def stop(self) -> None:
        """Start nothing more, commit and end. What is under way stays queued."""
        self._stopping = True
        self._news.set()

    def commit(self) -> None:
        """Make everything so far durable."""
        self._company.check()
        self._meter.tell(self.visits.readers_cpu_seconds())
        self.books.flush()
        self._company.flush()
        figures = self.status()
        self.books.commit(figures)
        self.visits.uncommitted = 0
        self._company.committed(figures)
        self._progress(figures)

    def _ending(self) -> Ending | None:
        if self._fault:
            raise self._fault
        if self._stopping:
            return Ending("interrupted")
        ending = self._company.ending(self._reason_to_end(), len(self._under_way))
        if ending == NOBODY_REACHED:
            raise CrawlFault(ending.detail)
        return ending

    def _reason_to_end(self) -> Ending | None:
        if spent := self._meter.spent():
            return Ending(spent)
        if self.books.widening.is_over:
            return self.books.widening.ending(len(self.books.frontier))
        if self._under_way:
            return None
        idle = self._idle()
        if idle == NOBODY_REACHED:
            return idle
        if self._config.cycles.pages:
            return self.books.queues.next_cycle(idle, self.books.ledger.figures, self.commit)
        return None if idle and self.books.widening.is_due(idle=True) else idle

    def _idle(self) -> Ending | None:
        """Why the frontier has nothing more to hand out for long, or None."""
        turn = self.books.frontier.next_turn()
        if turn is None:
            return Ending("done")
        wait = turn - time.monotonic()
        if self.visits.reached_nobody and wait > 0:
            return NOBODY_REACHED
        if wait > self._config.polite.max_crawl_delay:
            return waiting(len(self.books.frontier), wait)
        return None

    def _widen(self) -> float:
        """Where the crawl has run dry, look for URLs elsewhere, a little at a time; returns when to look on."""
        widening = self.books.widening
        if not widening.is_due(idle=not self._under_way and self._idle() not in (None, NOBODY_REACHED)):
            return math.inf
        widening.begin(self.commit)
        if not widening.wants_quiet:
            widening.found(self.visits.queue(widening.guesses()))
        elif self._under_way:
            return math.inf  # for the last of them to end
        else:
            widening.opened(self.books.queues.ease(self.commit))
        return -math.inf

    def _has_room(self) -> bool:
        is_quiet = self.books.widening.wants_quiet or self.books.widening.is_over
        return not is_quiet and self.visits.has_room(len(self._under_way))

    def _is_spent(self, under_way: int) -> bool:
        fetched = self.books.ledger.figures.fetched + under_way
        if self._meter.spent(under_way) or self.books.queues.cycles.is_full(fetched):
            return True
        turn = self.books.frontier.next_turn()
        return not self._company.may_fetch(fetched + 1, turn is not None and turn <= time.monotonic())

    def _start_visits(self) -> float:
        """Start what may be started; returns when there may be more, if nothing happens before."""
        while self._has_room() and not self._is_spent(len(self._under_way)):
            candidate = self.books.frontier.take()
            if candidate is None:
                turn = self.books.frontier.next_turn()
                return math.inf if turn is None else turn
            visit = asyncio.create_task(self.visits.visit(candidate))
            self._under_way.add(visit)
            visit.add_done_callback(self._visited)
        return math.inf

    def _visited(self, visit: asyncio.Task[None]) -> None:
        self._under_way.discard(visit)
        self._news.set()
        if not visit.cancelled() and (fault := visit.exception()):
            self._fail(fault)

    def _fail(self, fault: BaseException) -> None:
        self._fault = self._fault or fault
        self._news.set()

    def status(self) -> dict[str, Any]:
        """The figures of `thresher status --json`."""
        return status(self._config, self.books, len(self._under_way))
