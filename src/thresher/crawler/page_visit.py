"""The way of a page, from the frontier to the corpus.

The steps, as in ARCHITECTURE.md:

    1 schedule   a candidate comes from the frontier, its host is busy
    2 permit     robots.txt, closed hosts, turns of addresses
    3 fetch      a reply, or its redirect, retry or failure
    4 read       a reader process turns the reply into a page
    5 judge      keep the page or not
    6 weigh      unseen links get their weights
    7 write      raw page, document, links, outcome
    8 learn      yields and policy
    9 queue      links enter the frontier, or the outbox of their shard

A visit is a coroutine. Steps 5 to 9 run without an `await`, so a commit always contains whole pages.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec.structs import replace

from thresher.crawler.crawl_state import CrawlState
from thresher.crawler.fetching.dns import Resolver
from thresher.crawler.fetching.fetcher import Fetcher
from thresher.crawler.fetching.page_fetcher import (
    Allowed,
    Disallowed,
    FetchedPage,
    FetchFailure,
    HostLost,
    PageFetcher,
    Redirect,
    Retry,
    RobotsFetched,
    Wait,
)
from thresher.crawler.fetching.responses import received
from thresher.crawler.frontier.frontier import Frontier
from thresher.crawler.frontier.link_filter import candidates
from thresher.crawler.manners.robots import Robots
from thresher.crawler.policy.prioritisers import SourcePage
from thresher.crawler.shards.coordination import Coordination
from thresher.crawler.storage.crawl_writer import LinkScores, Outcome
from thresher.judge import Judgement, TextClaim
from thresher.records import Candidate, Failure, ReadResult, Reply, with_opt_outs
from thresher.urls import canonical, key
from thresher.urls import host as host_of
from thresher.workers.reader_pool import ReaderPool

MAX_READER_BACKLOG = 256 << 20  # bytes that may wait for readers before fetching pauses

_log = logging.getLogger(__name__)


class PageVisit:
    """The visits of one crawl process."""

    def __init__(
        self, state: CrawlState, coordination: Coordination, connect_to: tuple[str, int] | None = None
    ) -> None:
        config = state.config
        self._config = config
        self._state = state
        self._coordination = coordination
        self._clock = state.clock
        self._links = state.link_filter
        self._resolver = Resolver(config.fetch)
        self._fetcher = Fetcher.of(config, self._resolver, connect_to)
        self._pages = PageFetcher(
            config,
            self._fetcher,
            state.politeness,
            coordination.addresses,
            resolver=None if connect_to else self._resolver,
            network=coordination.network,
            check=coordination.lifecycle.check,
        )
        shingles = config.judge.near_duplicates or config.read.shingles
        self._readers = ReaderPool(replace(config.read, shingles=shingles), config.language)
        self._claiming = 0  # visits that only wait for the answer to a text claim
        self.uncommitted = 0  # outcomes since the last commit

    async def open(self) -> None:
        """Start the reader processes."""
        await self._readers.start()

    async def close(self) -> None:
        """End readers and connections."""
        await self._readers.close()
        await self._fetcher.close()
        await self._resolver.close()

    @property
    def _frontier(self) -> Frontier:
        return self._state.frontier

    def has_room(self, under_way: int) -> bool:
        """Return whether a connection is free and the readers are not too far behind."""
        connections = self._fetcher.capacity
        busy = under_way - min(self._claiming, connections)
        return busy < connections and self._readers.backlog < MAX_READER_BACKLOG

    def readers_cpu_seconds(self) -> float:
        """Return the processor time of the running readers."""
        return self._readers.cpu_seconds()

    def queue(self, urls: Sequence[Candidate], source: str | None = None) -> int:
        """Queue URLs that are unseen and in scope, and return their number; `source` is the host with the links."""
        unseen = self._links.unseen([one.url for one in urls], source)
        self._queue(self._state.policy.weigh_urls([urls[place] for place in unseen]))
        return len(unseen)

    async def visit(self, candidate: Candidate) -> None:
        """Take a candidate that was handed out by the frontier through all steps."""
        robots = await self._permit(candidate)
        if robots is None:
            return
        reply = await self._fetch(candidate)
        if reply is None:
            return
        page = await self._read(candidate, reply)
        if page is None:
            return
        claim = await self._claim_text(candidate, reply, page)
        self.process(candidate, reply, page, robots, claim)

    def process(
        self, candidate: Candidate, reply: Reply, page: ReadResult, robots: Robots, claim: TextClaim | None
    ) -> None:
        """Judge a page, write it, learn from it and queue its links."""
        judgement = self._judge(reply, page, robots, claim)
        text_bytes = len(judgement.page.text.encode()) if judgement.verdict.keep else 0
        unseen, scores = self._weigh(candidate, reply, judgement, text_bytes)
        self._state.writer.record_page(candidate, reply, judgement, text_bytes, scores)
        self._learn(candidate, reply, judgement, text_bytes)
        self._queue(unseen)
        self._finish(candidate)

    # 2 permit

    async def _permit(self, candidate: Candidate) -> Robots | None:
        """Return the rules under which the URL may be requested now; otherwise settle the URL and return None."""
        host = host_of(candidate.url)
        if self._links.is_erased(candidate.url):
            # The erasure was killed before it had cleared the queues.
            self._finish(candidate)
            self._free(host)
            return None
        if reason := self._state.queues.closing_reason(host, under_way=self._frontier.under_way(host) - 1):
            self._state.queues.close_host(host, reason)
            self._put_back(candidate, host)
            return None
        permission = await self._pages.permission(candidate.url)
        match permission:
            case Allowed():
                return permission.robots
            case Disallowed():
                self._record(candidate, None, Outcome("disallowed", "robots.txt"))
                self._free(host)
            case Wait():
                self._state.writer.stats.robots_bytes += permission.received
                self._put_back(candidate, host, permission.seconds)
            case RobotsFetched():
                self._state.writer.stats.robots_bytes += permission.received
                self._queue_sitemaps(candidate, host, permission.robots)
                self._put_back(candidate, host, permission.rest_s)
            case HostLost(failure):
                self._state.writer.stats.robots_bytes += permission.received
                self._free(host, permission.rest_s)
                self._state.queues.close_host(host, failure.reason)
                self._record(candidate, failure, Outcome("failed", failure.reason, failure.detail))
        return None

    def _queue_sitemaps(self, candidate: Candidate, host: str, robots: Robots) -> None:
        if self._config.scope.sitemaps:
            sitemaps = filter(None, map(canonical, robots.sitemaps))
            self.queue([Candidate(url, "", "sitemap", candidate.depth + 1) for url in sitemaps], host)

    # 3 fetch

    async def _fetch(self, candidate: Candidate) -> Reply | None:
        """Return the reply that is to be read; queue a redirect or retry, or record a failure, and return None."""
        result = await self._pages.fetch_page(candidate.url, hops=candidate.hops, tries=candidate.tries)
        host = host_of(candidate.url)
        self._free(host, result.rest_s)
        match result:
            case FetchedPage():
                return result.answer
            case Redirect():
                self._redirect(candidate, host, result)
            case Retry():
                self._retry(candidate, result)
            case FetchFailure():
                if result.host_lost:
                    self._state.queues.close_host(host, result.reason)
                self._record(candidate, result.answer, Outcome("failed", result.reason, result.detail))
        return None

    def _redirect(self, candidate: Candidate, host: str, redirect: Redirect) -> None:
        """Queue the target of a redirect as a new URL that goes through all steps."""
        reply, target = redirect.answer, redirect.target
        hop = replace(candidate, url=target, hops=candidate.hops + 1)
        if key(target) == key(candidate.url):  # only http became https, which is the same URL to us
            self._frontier.requeue(candidate, replace(hop, spent=candidate.spent + len(reply.body)))
            return
        onward = replace(hop, source=candidate.url, via="redirect", weight=1.0, tries=0, spent=0)
        # The target of a seed is a seed: many front pages only lead on to another host.
        self.queue([onward], None if candidate.depth == 0 else host)
        detail = "" if self._links.is_erased(target) else target
        self._record(candidate, reply, Outcome("redirect", f"http {reply.status}", detail))

    def _retry(self, candidate: Candidate, retry: Retry) -> None:
        again = candidate
        if retry.counts:
            spent = candidate.spent + received(retry.answer)
            again = replace(candidate, tries=candidate.tries + 1, spent=spent)
        self._frontier.requeue(candidate, again)
        cause = retry.answer.reason if isinstance(retry.answer, Failure) else retry.answer.status
        _log.info("retry %s later: %s", candidate.url, cause)

    # 4 read

    async def _read(self, candidate: Candidate, reply: Reply) -> ReadResult | None:
        """Return the page, without links to erased URLs; record a quarantined reply and return None."""
        page = await self._readers.read(reply)
        if isinstance(page, Failure):
            _log.warning("quarantined %s: %s\n%s", candidate.url, page.reason, page.detail)
            self._record(candidate, reply, Outcome("quarantined", page.reason, page.detail))
            return None
        return self._links.without_erased_links(page)

    # 5 judge

    async def _claim_text(self, candidate: Candidate, reply: Reply, page: ReadResult) -> TextClaim | None:
        """Claim the text of a page that may be kept across shards; None if no other shard can have it."""
        if self._coordination.shard.count == 1 or not self._config.judge.duplicates:
            return None
        if not page.text_hash or not self._state.judge.verdict(page, reply).keep:
            return None
        self._claiming += 1
        try:
            return await self._coordination.texts.claim(page.text_hash, candidate.url)
        finally:
            self._claiming -= 1

    def _judge(self, reply: Reply, page: ReadResult, robots: Robots, claim: TextClaim | None) -> Judgement:
        judgement = self._state.judge.judge(page, reply, claim)
        return replace(judgement, page=with_opt_outs(judgement.page, robots.opt_outs))

    # 6 weigh

    def _weigh(
        self, candidate: Candidate, reply: Reply, judgement: Judgement, text_bytes: int
    ) -> tuple[Sequence[Candidate], LinkScores]:
        """Return the unseen links of a page with their weights, and the scores of all its links."""
        page, verdict = judgement.page, judgement.verdict
        policy = self._state.policy
        cost = len(reply.body)
        source = SourcePage(
            candidate.url,
            verdict.keep,
            page.badness,
            verdict.language == self._config.language,
            text_bytes / cost if cost else 0.0,
            self._config.language,
        )
        places = self._links.unseen_links(candidate, page)
        links = [page.links[place] for place in places]
        unseen, unseen_chances = policy.weigh_links(candidates(candidate, page, links), source, links)
        weights = self._state.yields.expected([link.url for link in page.links])
        chances: list[float | None] = [None] * len(weights)
        for place, weight, chance in zip(places, policy.expected_yields(unseen), unseen_chances, strict=True):
            weights[place], chances[place] = weight, chance
        return unseen, LinkScores(weights, chances)

    # 8 learn

    def _learn(self, candidate: Candidate, reply: Reply, judgement: Judgement, text_bytes: int) -> None:
        cost = len(reply.body)
        self._state.yields.learn(host_of(candidate.url), cost, text_bytes)
        is_ours = judgement.verdict.language == self._config.language
        self._state.policy.learn(candidate, cost, text_bytes, is_ours)
        self._state.queues.cycles.note_good_links(judgement.page)

    # 9 queue

    def _queue(self, unseen: Sequence[Candidate]) -> None:
        """Queue weighed candidates here, or with the shards that own their hosts."""
        self._state.queues.add(self._coordination.links.route(unseen))

    # the end of a turn

    def _record(self, candidate: Candidate, answer: Reply | Failure | None, outcome: Outcome) -> None:
        """Record the outcome of a URL that gave no page, and learn from its cost."""
        self._state.writer.record(candidate, answer, outcome)
        if answer is not None:
            self._state.yields.learn(host_of(candidate.url), received(answer), 0)
            if outcome.kind != "redirect":
                self._state.policy.learn(candidate, received(answer), 0, False)
        self._finish(candidate)

    def _finish(self, candidate: Candidate) -> None:
        """Take a URL that has its outcome off the frontier, and weigh its host again."""
        self._frontier.finish(candidate)
        self.uncommitted += 1
        host = host_of(candidate.url)
        self._frontier.reweigh(host)
        self._state.queues.close_if_due(host)

    def _put_back(self, candidate: Candidate, host: str, wait_s: float = 0.0) -> None:
        """Return a URL to its queue, and let its host rest."""
        self._frontier.put_back(candidate)
        self._free(host, wait_s)

    def _free(self, host: str, rest_s: float = 0.0) -> None:
        self._frontier.free(host, self._clock() + rest_s)
