"""The crawl: the way of a page from the frontier to the corpus, as one loop.

    frontier ─► politeness ─► fetch ─► read ─► judge ─► ledger ─► yields ─► frontier

A visit is a coroutine; what it learns is applied without a pause in between, so every commit holds whole
pages. Only this module knows all the others.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from thresher.config import Config
from thresher.crawl.answers import PASSING, REDIRECTS, address_of, fetch_robots, location
from thresher.crawl.answers import received as bytes_of
from thresher.crawl.company import Company
from thresher.crawl.ending import CrawlFault, Ending, Meter, waiting
from thresher.crawl.fetch import Fetcher, user_agent
from thresher.crawl.finds import Finds, candidates
from thresher.crawl.frontier import Frontier
from thresher.crawl.guide import Guide
from thresher.crawl.ledger import Ledger, Outcome
from thresher.crawl.novelty import Novelty
from thresher.crawl.politeness import Politeness
from thresher.crawl.priority import Source
from thresher.crawl.queues import Queues
from thresher.crawl.resolve import Resolver
from thresher.crawl.robots import DISALLOW_ALL, Robots
from thresher.crawl.seen import Seen
from thresher.crawl.status import status
from thresher.crawl.widen import Widening
from thresher.crawl.yields import Yields
from thresher.engine.local import Readers
from thresher.judge import age, judge
from thresher.page import Candidate, Failure, Page, Reply, Verdict
from thresher.store import forgotten
from thresher.url import canonical, key
from thresher.url import host as host_of

MAX_PENDING = 64 << 20  # bytes of raw pages before a commit is made early
MAX_BACKLOG = 256 << 20  # bytes that may wait for readers before fetching pauses
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
        shard = self._company.shard
        self._config = config
        self._progress = progress
        self._connect_to = connect_to
        self.ledger = Ledger(directory, config, clock, shard)
        state = self.ledger.state
        self.seen = Seen(state)
        self.yields = Yields(state)
        self.finds = Finds(config.scope, self.seen, forgotten.load(root or directory), shard)
        self.polite = Politeness(state, config.polite, clock)
        goes_on = self.seen.count > 0
        self.queues = Queues(state, config, self.yields, self.polite, goes_on=goes_on, shard=shard)
        near = config.judge.near_duplicates
        self.novelty = Novelty(state, config.judge) if near else None
        self.widening = Widening(directory, config, state, self.yields, self.polite.robots)
        self.readers = Readers(replace(config.read, runs=near or config.read.runs), config.language)
        self._visits: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._fault: BaseException | None = None
        self._stopping = False
        self._replies = 0
        self._unreachable = 0
        self._uncommitted = 0
        self._meter = Meter(config.budget, self.ledger.figures)
        self._arrived = 0  # links from other shards since this one ran dry
        self._company.join(self.ledger, self.polite, self._receive, self._news.set)

    @property
    def frontier(self) -> Frontier:
        return self.queues.frontier

    @property
    def guide(self) -> Guide:
        return self.queues.guide

    async def __aenter__(self) -> Crawl:
        fetch = self._config.fetch
        self.resolver = Resolver(fetch)
        self.fetcher = Fetcher(
            fetch,
            user_agent(self._config.polite.contact),
            self.resolver,
            connect_to=self._connect_to,
            language=self._config.language,
        )
        await self.readers.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)
        await self.readers.close()
        await self.fetcher.close()
        await self.resolver.close()
        self.ledger.close()

    # the loop

    def seed(self, urls: Iterable[str]) -> None:
        """Queue seeds (canonical URLs) that are new and in scope."""
        self._queue([Candidate(url) for url in urls if self._company.shard.owns(host_of(url))], None)

    def _receive(self, candidates: Sequence[Candidate]) -> None:
        """Links that other shards have found to hosts of this one."""
        fresh = self._queue(candidates, None)
        self._arrived = self._arrived + fresh if self.widening.is_over else 0
        if self._arrived >= NEWS_FROM_ABROAD:
            self.widening.go_on()
        self._news.set()

    async def run(self) -> Ending:
        """Crawl until nothing is left, a budget is spent or `stop` is called. Everything is committed then."""
        self.queues.resume(self.ledger.figures, self.commit)
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
            self.ledger.seal()
        self.commit()
        return ending

    def _much_is_pending(self) -> bool:
        return self._uncommitted >= self._config.store.commit_pages or self.ledger.pending > MAX_PENDING

    def stop(self) -> None:
        """Start nothing more, commit and end. What is under way stays queued."""
        self._stopping = True
        self._news.set()

    def commit(self) -> None:
        """Make everything so far durable."""
        self._company.check()
        self._meter.tell(self.readers.cpu_seconds())
        self.yields.flush()
        self.polite.flush()
        self.queues.flush()
        self.widening.flush()
        self._company.flush()
        status = self.status()
        self.ledger.commit(status)
        self.frontier.committed()
        self._company.committed(status)
        self._uncommitted = 0
        self._progress(status)

    def _ending(self) -> Ending | None:
        if self._fault:
            raise self._fault
        if self._stopping:
            return Ending("interrupted")
        return self._company.ending(self._reason_to_end(), len(self._visits))

    def _reason_to_end(self) -> Ending | None:
        if spent := self._meter.spent():
            return Ending(spent)
        if self.widening.is_over:
            return self.widening.ending(len(self.frontier))
        if self._visits:
            return None
        idle = self._idle()
        if self._config.cycles.pages:
            return self.queues.next_cycle(idle, self.ledger.figures, self.commit)
        return None if idle and self.widening.is_due(idle=True) else idle

    def _idle(self) -> Ending | None:
        """Why the frontier has nothing more to hand out for long, or None."""
        turn = self.frontier.next_turn()
        if turn is None:
            return Ending("done")
        wait = turn - time.monotonic()
        if self._unreachable and not self._replies and wait > 0 and self._company.shard.count == 1:
            raise CrawlFault(
                "no host could be reached: is there a network, and are the names of the seeds right? "
                "The queue is kept; try again later"
            )
        if wait > self._config.polite.max_crawl_delay:
            return waiting(len(self.frontier), wait)
        return None

    def _widen(self) -> float:
        """Where the crawl has run dry, look for URLs elsewhere, a little at a time; returns when to look on."""
        if not self.widening.is_due(idle=not self._visits and self._idle() is not None):
            return math.inf
        self.widening.begin(self.commit)
        if not self.widening.wants_quiet:
            self.widening.found(self._queue(self.widening.guesses(), None))
        elif self._visits:
            return math.inf  # for the last of them to end
        else:
            self.widening.opened(self.queues.ease(self.commit))
        return -math.inf

    def _has_room(self) -> bool:
        is_full = len(self._visits) >= self.fetcher.capacity or self.readers.backlog >= MAX_BACKLOG
        return not is_full and not self.widening.wants_quiet and not self.widening.is_over

    def _is_spent(self, under_way: int) -> bool:
        fetched = self.ledger.figures.fetched + under_way
        if self._meter.spent(under_way) or self.queues.cycles.is_full(fetched):
            return True
        return not self._company.may_fetch(fetched + 1)

    def _start_visits(self) -> float:
        """Start what may be started; returns when there may be more, if nothing happens before."""
        while self._has_room() and not self._is_spent(len(self._visits)):
            candidate = self.frontier.take()
            if candidate is None:
                turn = self.frontier.next_turn()
                return math.inf if turn is None else turn
            visit = asyncio.create_task(self._visit(candidate))
            self._visits.add(visit)
            visit.add_done_callback(self._visited)
        return math.inf

    def _visited(self, visit: asyncio.Task[None]) -> None:
        self._visits.discard(visit)
        self._news.set()
        if not visit.cancelled() and (fault := visit.exception()):
            self._fault = self._fault or fault

    # the way of a page

    async def _visit(self, candidate: Candidate) -> None:
        """One URL's turn, step by step."""
        host = host_of(candidate.url)
        rules = await self._permission(candidate, host)
        if rules is None:
            return
        self._company.check()
        answer = await self.fetcher.fetch(candidate.url)  # a Reply or a Failure: both are values
        self._rest(host, answer)
        if isinstance(answer, Failure):
            self._failed(candidate, host, answer)
        elif answer.status in REDIRECTS:
            self._redirected(candidate, answer)
        elif answer.status != 200 or answer.truncated:
            self._refused(candidate, answer)
        else:
            page = await self.readers.read(answer)
            if isinstance(page, Failure):
                self._finish(candidate, answer, Outcome("quarantined", page.reason, page.detail))
            else:
                page = self.finds.without_forgotten(page)
                self._harvest(candidate, answer, page, rules, await self._twin(candidate, answer, page))

    async def _permission(self, candidate: Candidate, host: str) -> Robots | None:
        """The rules that allow this visit; None if it is not to be, or not now, which is settled here."""
        if self.finds.refuses(
            candidate.url
        ):  # whoever wanted it forgotten was killed before the queues were empty
            self._done(candidate)
            self.frontier.free(host, time.monotonic())
            return None
        if reason := self.queues.closed(host, under_way=self.frontier.under_way(host) - 1):
            self.frontier.close(host, reason)
            self._return(candidate, host, 0.0)
            return None
        rules = self.polite.robots(host)
        if rules is DISALLOW_ALL:  # robots.txt could not be had
            self._return(candidate, host, self.polite.robots_wait(host))
        elif rules and not rules.allows(candidate.url):
            self._finish(candidate, None, Outcome("disallowed", "robots.txt"))
            self.frontier.free(host, time.monotonic())
        # Where all connections go to one place, every host stands for an address of its own.
        elif not self._connect_to and (wait := await self._address_wait(host)):
            self._return(candidate, host, wait)
        elif rules is None:
            await self._visit_robots(candidate, host)
        else:
            return rules
        return None

    async def _address_wait(self, host: str) -> float:
        address = await address_of(self.resolver, host)
        return await self._company.address_wait(address) if address else 0.0

    async def _twin(self, candidate: Candidate, reply: Reply, page: Page) -> str | None:
        """Who of all shards was the first with the text of a page that may be kept; "": it is; None: who knows."""
        if self._company.shard.count == 1 or not self._config.judge.duplicates:
            return None
        if not page.text_hash or not self._judged(reply, page, None).keep:
            return None
        return await self._company.twin(page.text_hash, candidate.url)

    def _judged(self, reply: Reply, page: Page, twin: str | None) -> Verdict:
        """What becomes of a page. If it is the first with its text, others like it were judged as its copies."""
        raw_seen, text_seen = self.ledger.seen_before(page) if twin is None else (False, bool(twin))
        return judge(
            page,
            self._config.language,
            self._config.judge,
            raw_seen=raw_seen,
            text_seen=text_seen,
            age=age(reply),
        )

    def _harvest(
        self, candidate: Candidate, reply: Reply, page: Page, rules: Robots, twin: str | None
    ) -> None:
        """Judge a page, write it down, learn from it and queue its links."""
        verdict = self._judged(reply, page, twin)
        if self.novelty and verdict.keep:
            page, verdict = self.novelty.sift(page, verdict)
        received = len(reply.body)
        text_bytes = len(page.text.encode()) if verdict.keep else 0
        is_ours = verdict.language == self._config.language
        rate = text_bytes / received if received else 0.0
        source = Source(candidate.url, verdict.keep, page.badness, is_ours, rate, self._config.language)
        fresh = self.finds.links(candidate, page)
        links = [page.links[place] for place in fresh]
        found, found_chances = self.guide.found(candidates(candidate, page, links), source, links)
        if rules.opt_outs:
            page = replace(page, opt_out=tuple(dict.fromkeys((*page.opt_out, *rules.opt_outs))))
        weights = self.yields.expected([link.url for link in page.links])
        chances: list[float | None] = [None] * len(weights)
        for place, weight, chance in zip(fresh, self.guide.weights(found), found_chances, strict=True):
            weights[place], chances[place] = weight, chance
        self.ledger.record_page(candidate, reply, page, verdict, text_bytes, weights, chances, twin or "")
        self.yields.learn(host_of(candidate.url), received, text_bytes)
        self.guide.learn(candidate, received, text_bytes, is_ours)
        self.queues.cycles.harvest(page)
        self.queues.add(self._company.post(found))
        self._done(candidate)

    def _queue(self, given: Sequence[Candidate], source: str | None) -> int:
        """Queue URLs that no page led to, if they are new and in scope; returns how many were."""
        fresh = self.finds.fresh([one.url for one in given], source)
        self.queues.add(self._company.post(self.guide.given([given[place] for place in fresh])))
        return len(fresh)

    def _finish(self, candidate: Candidate, answer: Reply | Failure | None, outcome: Outcome) -> None:
        """A URL that gave no page has its outcome."""
        self.ledger.record(candidate, answer, outcome)
        if answer is not None:
            self.yields.learn(host_of(candidate.url), bytes_of(answer), 0)
            if outcome.kind != "redirect":
                self.guide.learn(candidate, bytes_of(answer), 0, False)
        self._done(candidate)

    def _done(self, candidate: Candidate) -> None:
        self.frontier.finish(candidate)
        self._uncommitted += 1
        host = host_of(candidate.url)
        self.frontier.reweigh(host)
        self.queues.close_if_due(host)

    def _return(self, candidate: Candidate, host: str, wait: float) -> None:
        """Not now: the URL goes back to its queue and the host rests."""
        self.frontier.put_back(candidate)
        self.frontier.free(host, time.monotonic() + wait)

    def _rest(self, host: str, answer: Reply | Failure) -> None:
        self._replies += isinstance(answer, Reply)
        wait = self._config.polite.backoff if self._offline(answer) else self.polite.rest(host, answer)
        self.frontier.free(host, time.monotonic() + wait)

    def _offline(self, answer: Reply | Failure) -> bool:
        """While nothing at all was reached, a failure says nothing about its host; nor does a missing name,
        which is what some resolvers answer without a network."""
        if self._replies or isinstance(answer, Reply):
            return False
        offline = answer.transient or answer.reason == "dns"
        self._unreachable += offline
        return offline

    # answers that are no pages

    def _failed(self, candidate: Candidate, host: str, failure: Failure) -> None:
        if self._offline(failure):
            self.frontier.requeue(candidate, candidate)
            return
        if self.polite.give_up(host, failure):
            self.frontier.close(host, failure.reason)
        elif failure.transient and self._try_again(candidate, failure.bytes):
            return
        self._finish(candidate, failure, Outcome("failed", failure.reason, failure.detail))

    def _refused(self, candidate: Candidate, reply: Reply) -> None:
        passing = reply.status in PASSING or reply.truncated == "disconnect"
        if passing and self._try_again(candidate, len(reply.body)):
            return
        cause = f"http {reply.status}" if reply.status != 200 else "truncated"
        self._finish(candidate, reply, Outcome("failed", cause, reply.truncated))

    def _try_again(self, candidate: Candidate, received: int) -> bool:
        """Queue another try of the URL, if it has one left."""
        tries = candidate.tries + 1
        if tries >= self._config.polite.tries:
            return False
        self.frontier.requeue(candidate, replace(candidate, tries=tries, spent=candidate.spent + received))
        return True

    def _redirected(self, candidate: Candidate, reply: Reply) -> None:
        """A redirect is a new URL that goes through everything again."""
        target = location(reply)
        if target is None:
            self._finish(candidate, reply, Outcome("failed", "bad redirect"))
            return
        if candidate.hops >= self._config.fetch.max_redirects or target == candidate.url:
            self._finish(candidate, reply, Outcome("failed", "redirect loop", target))
            return
        hop = replace(candidate, url=target, hops=candidate.hops + 1)
        if key(target) == key(candidate.url):  # only http became https, which is the same URL to us
            self.frontier.requeue(candidate, replace(hop, spent=candidate.spent + len(reply.body)))
            return
        onward = replace(hop, source=candidate.url, via="redirect", weight=1.0, tries=0, spent=0)
        # Where a seed leads is a seed: many front pages only lead on to another host.
        self._queue([onward], None if candidate.depth == 0 else host_of(candidate.url))
        told = "" if self.finds.refuses(target) else target
        self._finish(candidate, reply, Outcome("redirect", f"http {reply.status}", told))

    async def _visit_robots(self, candidate: Candidate, host: str) -> None:
        """Spend the host's turn on robots.txt; the URL waits for the next one."""
        self._company.check()
        url = f"{candidate.url.partition(':')[0]}://{host}/robots.txt"
        answer, spent = await fetch_robots(self.fetcher, url, self._pause)
        self.ledger.figures.robots_bytes += spent
        if self._offline(answer):
            self._return(candidate, host, self._config.polite.backoff)
            return
        if isinstance(answer, Failure) and self.polite.give_up(host, answer):
            self._rest(host, answer)
            self.frontier.close(host, answer.reason)
            self._finish(candidate, answer, Outcome("failed", answer.reason, answer.detail))
            return
        rules = self.polite.learn_robots(host, answer)
        if self._config.scope.sitemaps:
            sitemaps = filter(None, map(canonical, rules.sitemaps))
            self._queue([Candidate(url, "", "sitemap", candidate.depth + 1) for url in sitemaps], host)
        self.frontier.put_back(candidate)
        self._rest(host, answer)

    async def _pause(self, url: str) -> None:
        await asyncio.sleep(self.polite.delay(host_of(url)))

    # figures

    def status(self) -> dict[str, Any]:
        """The figures of `thresher status --json`."""
        figures, connections = self.ledger.figures, len(self._visits)
        return status(self._config, figures, self.queues, self.seen, self.yields, self.widening, connections)
