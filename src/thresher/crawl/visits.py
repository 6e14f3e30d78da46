"""The way of a page, from the frontier to the corpus:

    permission ─► fetch ─► read ─► judge ─► ledger ─► yields ─► frontier

A visit is a coroutine; what it learns is applied without a pause in between, so every commit holds whole
pages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from msgspec.structs import replace

from thresher.config import Config
from thresher.crawl.answers import PASSING, REDIRECTS, address_of, fetch_robots, location
from thresher.crawl.answers import received as bytes_of
from thresher.crawl.books import Books
from thresher.crawl.company import Company
from thresher.crawl.fetch import Fetcher
from thresher.crawl.finds import Finds, candidates
from thresher.crawl.frontier import Frontier
from thresher.crawl.ledger import Outcome
from thresher.crawl.priority import Source
from thresher.crawl.resolve import Resolver
from thresher.crawl.robots import DISALLOW_ALL, Robots
from thresher.engine.local import Readers
from thresher.judge import age, judge
from thresher.page import Candidate, Failure, Page, Reply, Verdict
from thresher.store.forgotten import Forgotten
from thresher.url import canonical, key
from thresher.url import host as host_of

MAX_BACKLOG = 256 << 20  # bytes that may wait for readers before fetching pauses


class Visits:
    """Takes URLs that were taken from the frontier to their outcomes."""

    def __init__(
        self,
        config: Config,
        books: Books,
        company: Company,
        forgotten: Forgotten,
        connect_to: tuple[str, int] | None,
    ) -> None:
        self._config = config
        self._books = books
        self._company = company
        self._connect_to = connect_to
        self._finds = Finds(config.scope, books.seen, forgotten, company.shard)
        runs = config.judge.near_duplicates or config.read.runs
        self._readers = Readers(replace(config.read, runs=runs), config.language)
        self._unreachable = 0
        self._asking = 0  # visits that are done but for what another shard says
        self.uncommitted = 0  # URLs that have got their outcome since the last commit

    async def open(self) -> None:
        config = self._config
        self._resolver = Resolver(config.fetch)
        self._fetcher = Fetcher.of(config, self._resolver, self._connect_to)
        await self._readers.start()

    async def close(self) -> None:
        await self._readers.close()
        await self._fetcher.close()
        await self._resolver.close()

    @property
    def _frontier(self) -> Frontier:
        return self._books.frontier

    @property
    def reached_nobody(self) -> bool:
        """Whether hosts were tried, and not one has answered."""
        return self._unreachable > 0 and not self._company.somebody_answers

    def has_room(self, under_way: int) -> bool:
        """Whether there is a connection for one visit more, and its page would not wait for readers too long."""
        connections = self._fetcher.capacity
        return (
            under_way - min(self._asking, connections) < connections and self._readers.backlog < MAX_BACKLOG
        )

    def readers_cpu_seconds(self) -> float:
        return self._readers.cpu_seconds()

    def queue(self, given: Sequence[Candidate], source: str | None = None) -> int:
        """Queue URLs that are new and in scope; returns how many were. `source`: the host that led to them."""
        fresh = self._finds.fresh([one.url for one in given], source)
        found = self._books.guide.given([given[place] for place in fresh])
        self._books.queues.add(self._company.post(found))
        return len(fresh)

    async def visit(self, candidate: Candidate) -> None:
        """One URL's turn, step by step."""
        host = host_of(candidate.url)
        rules = await self._permission(candidate, host)
        if rules is None:
            return
        self._company.check()
        answer = await self._fetcher.fetch(candidate.url)  # a Reply or a Failure: both are values
        self._rest(host, answer)
        if isinstance(answer, Failure):
            self._failed(candidate, host, answer)
        elif answer.status in REDIRECTS:
            self._redirected(candidate, answer)
        elif answer.status != 200 or answer.truncated:
            self._refused(candidate, answer)
        else:
            page = await self._readers.read(answer)
            if isinstance(page, Failure):
                self._finish(candidate, answer, Outcome("quarantined", page.reason, page.detail))
            else:
                page = self._finds.without_forgotten(page)
                self.harvest(candidate, answer, page, rules, await self._twin(candidate, answer, page))

    async def _permission(self, candidate: Candidate, host: str) -> Robots | None:
        """The rules that allow this visit; None if it is not to be, or not now, which is settled here."""
        if self._finds.refuses(candidate.url):
            # Whoever wanted it forgotten was killed before the queues were empty.
            self._done(candidate)
            self._frontier.free(host, time.monotonic())
            return None
        if reason := self._books.queues.closed(host, under_way=self._frontier.under_way(host) - 1):
            self._frontier.close(host, reason)
            self._return(candidate, host, 0.0)
            return None
        rules = self._books.polite.robots(host)
        if rules is DISALLOW_ALL:  # robots.txt could not be had
            self._return(candidate, host, self._books.polite.robots_wait(host))
        elif rules and not rules.allows(candidate.url):
            self._finish(candidate, None, Outcome("disallowed", "robots.txt"))
            self._frontier.free(host, time.monotonic())
        # Where all connections go to one place, every host stands for an address of its own.
        elif not self._connect_to and (wait := await self._address_wait(host)):
            self._return(candidate, host, wait)
        elif rules is None:
            await self._visit_robots(candidate, host)
        else:
            return rules
        return None

    async def _address_wait(self, host: str) -> float:
        address = await address_of(self._resolver, host)
        return await self._company.address_wait(address) if address else 0.0

    async def _twin(self, candidate: Candidate, reply: Reply, page: Page) -> str | None:
        """Who of all shards was the first with the text of a page that may be kept; "": it is; None: who knows."""
        if self._company.shard.count == 1 or not self._config.judge.duplicates:
            return None
        if not page.text_hash or not self._judged(reply, page, None).keep:
            return None
        self._asking += 1
        try:
            return await self._company.twin(page.text_hash, candidate.url)
        finally:
            self._asking -= 1

    def _judged(self, reply: Reply, page: Page, twin: str | None) -> Verdict:
        """What becomes of a page. If it is the first with its text, others like it were judged as its copies."""
        raw_seen, text_seen = self._books.ledger.seen_before(page) if twin is None else (False, bool(twin))
        return judge(
            page,
            self._config.language,
            self._config.judge,
            raw_seen=raw_seen,
            text_seen=text_seen,
            age=age(reply),
        )

    def harvest(
        self, candidate: Candidate, reply: Reply, page: Page, rules: Robots, twin: str | None
    ) -> None:
        """Judge a page, write it down, learn from it and queue its links."""
        books = self._books
        verdict = self._judged(reply, page, twin)
        if books.novelty and verdict.keep:
            page, verdict = books.novelty.sift(page, verdict)
        received = len(reply.body)
        text_bytes = len(page.text.encode()) if verdict.keep else 0
        is_ours = verdict.language == self._config.language
        rate = text_bytes / received if received else 0.0
        source = Source(candidate.url, verdict.keep, page.badness, is_ours, rate, self._config.language)
        fresh = self._finds.links(candidate, page)
        links = [page.links[place] for place in fresh]
        found, found_chances = books.guide.found(candidates(candidate, page, links), source, links)
        if rules.opt_outs:
            page = replace(page, opt_out=tuple(dict.fromkeys((*page.opt_out, *rules.opt_outs))))
        weights = books.yields.expected([link.url for link in page.links])
        chances: list[float | None] = [None] * len(weights)
        for place, weight, chance in zip(fresh, books.guide.weights(found), found_chances, strict=True):
            weights[place], chances[place] = weight, chance
        books.ledger.record_page(candidate, reply, page, verdict, text_bytes, weights, chances, twin or "")
        books.yields.learn(host_of(candidate.url), received, text_bytes)
        books.guide.learn(candidate, received, text_bytes, is_ours)
        books.queues.cycles.harvest(page)
        books.queues.add(self._company.post(found))
        self._done(candidate)

    def _finish(self, candidate: Candidate, answer: Reply | Failure | None, outcome: Outcome) -> None:
        """A URL that gave no page has its outcome."""
        self._books.ledger.record(candidate, answer, outcome)
        if answer is not None:
            self._books.yields.learn(host_of(candidate.url), bytes_of(answer), 0)
            if outcome.kind != "redirect":
                self._books.guide.learn(candidate, bytes_of(answer), 0, False)
        self._done(candidate)

    def _done(self, candidate: Candidate) -> None:
        self._frontier.finish(candidate)
        self.uncommitted += 1
        host = host_of(candidate.url)
        self._frontier.reweigh(host)
        self._books.queues.close_if_due(host)

    def _return(self, candidate: Candidate, host: str, wait: float) -> None:
        """Not now: the URL goes back to its queue and the host rests."""
        self._frontier.put_back(candidate)
        self._frontier.free(host, time.monotonic() + wait)

    def _rest(self, host: str, answer: Reply | Failure) -> None:
        if isinstance(answer, Reply):
            self._company.somebody_answers = True
        wait = self._config.polite.backoff if self._offline(answer) else self._books.polite.rest(host, answer)
        self._frontier.free(host, time.monotonic() + wait)

    def _offline(self, answer: Reply | Failure) -> bool:
        """While nothing at all was reached, a failure says nothing about its host; nor does a missing name,
        which is what some resolvers answer without a network."""
        if self._company.somebody_answers or isinstance(answer, Reply):
            return False
        offline = answer.transient or answer.reason == "dns"
        self._unreachable += offline
        return offline

    # answers that are no pages

    def _failed(self, candidate: Candidate, host: str, failure: Failure) -> None:
        if self._offline(failure):
            self._frontier.requeue(candidate, candidate)
            return
        if self._books.polite.give_up(host, failure):
            self._frontier.close(host, failure.reason)
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
        self._frontier.requeue(candidate, replace(candidate, tries=tries, spent=candidate.spent + received))
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
            self._frontier.requeue(candidate, replace(hop, spent=candidate.spent + len(reply.body)))
            return
        onward = replace(hop, source=candidate.url, via="redirect", weight=1.0, tries=0, spent=0)
        # Where a seed leads is a seed: many front pages only lead on to another host.
        self.queue([onward], None if candidate.depth == 0 else host_of(candidate.url))
        told = "" if self._finds.refuses(target) else target
        self._finish(candidate, reply, Outcome("redirect", f"http {reply.status}", told))

    async def _visit_robots(self, candidate: Candidate, host: str) -> None:
        """Spend the host's turn on robots.txt; the URL waits for the next one."""
        self._company.check()
        url = f"{candidate.url.partition(':')[0]}://{host}/robots.txt"
        answer, spent = await fetch_robots(self._fetcher, url, self._pause)
        self._books.ledger.figures.robots_bytes += spent
        if self._offline(answer):
            self._return(candidate, host, self._config.polite.backoff)
            return
        if isinstance(answer, Failure) and self._books.polite.give_up(host, answer):
            self._rest(host, answer)
            self._frontier.close(host, answer.reason)
            self._finish(candidate, answer, Outcome("failed", answer.reason, answer.detail))
            return
        rules = self._books.polite.learn_robots(host, answer)
        if self._config.scope.sitemaps:
            sitemaps = filter(None, map(canonical, rules.sitemaps))
            self.queue([Candidate(url, "", "sitemap", candidate.depth + 1) for url in sitemaps], host)
        self._frontier.put_back(candidate)
        self._rest(host, answer)

    async def _pause(self, url: str) -> None:
        """Before a robots.txt is looked for elsewhere: rest, and wait for the address of that host."""
        host = host_of(url)
        await asyncio.sleep(self._books.polite.delay(host))
        while not self._connect_to and (wait := await self._address_wait(host)):  # noqa: ASYNC110 - as long as told
            await asyncio.sleep(wait)
        self._company.check()
