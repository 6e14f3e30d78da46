"""The way of a page, from the frontier to the corpus.

The steps, as in ARCHITECTURE.md, each with the object that owns it:

    1 schedule     Frontier       a candidate is handed out, its host is busy
    2 permit       PageFetcher    robots.txt, turns of addresses; FrontierManager: closed hosts
    3 fetch        PageFetcher    a reply, or its redirect, retry or failure
    4 read         PageReaders    a reader process turns the reply into a page
    5 claim text   TextClaims     in a crawl in shards, one of them may keep a text
    6 judge        Judge          keep the page or not
    7 weigh        LinkPipeline   unseen links (LinkFilter) get their weights
    8 write        CrawlWriter    raw page, document, links, outcome
    9 learn        LinkPipeline   yields and policy
    10 queue       LinkPipeline   links enter the frontier, or the outbox of their shard

A visit is a coroutine that awaits in steps 2 to 5. Steps 6 to 10 are one call, `PageVisit.process`, without an
`await`, so a commit always contains whole pages.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from thresher.crawler.coordination import Coordination
from thresher.crawler.crawl_state import CrawlState
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
from thresher.crawler.frontier.link_pipeline import LinkPipeline
from thresher.crawler.manners.robots import Robots
from thresher.crawler.parts import CrawlParts
from thresher.crawler.policy.policy import WeighedLinks
from thresher.crawler.policy.prioritisers import SourcePage
from thresher.crawler.storage.crawl_writer import LinkScores, Outcome
from thresher.judge import CLAIM_NOT_NEEDED, Judgement, TextClaim
from thresher.records import Candidate, Failure, ReadResult, Reply, with_opt_outs
from thresher.urls import canonical, key
from thresher.urls import host as host_of

MAX_READER_BACKLOG = 256 << 20  # bytes that may wait for readers before fetching pauses

_log = logging.getLogger(__name__)


class ReadPage(Struct, frozen=True):
    """A page that was read, and everything that the judge needs to know of its visit."""

    candidate: Candidate
    reply: Reply
    page: ReadResult
    robots: Robots
    claim: TextClaim


class PageVisit:
    """The way of a page, step by step: it takes each candidate of a crawl process through its visit.

    One object serves all visits of the process. They share its parts, and each is a coroutine of its own (`visit`).
    """

    def __init__(self, state: CrawlState, parts: CrawlParts, coordination: Coordination) -> None:
        self._config = state.config
        self._state = state
        self._coordination = coordination
        self._clock = state.clock
        self._links = state.link_filter
        self._pipeline = LinkPipeline(state.queues, state.yields, coordination.links.route)
        self._fetcher = parts.fetcher
        self._readers = parts.readers
        self._pages = PageFetcher(
            state.config,
            parts.fetcher,
            state.politeness,
            coordination.addresses,
            resolver=parts.resolver,
            network=coordination.network,
            check=coordination.lifecycle.check,
            clock=state.clock,
        )
        self._claiming = 0  # visits that only wait for the answer to a text claim
        self.uncommitted = 0  # outcomes since the last commit

    @property
    def _frontier(self) -> Frontier:
        return self._state.frontier

    def has_room(self, under_way: int) -> bool:
        """Return whether a connection is free and the readers are not too far behind."""
        connections = self._fetcher.capacity
        busy = under_way - min(self._claiming, connections)
        return busy < connections and self._readers.backlog < MAX_READER_BACKLOG

    def queue(self, urls: Sequence[Candidate], source: str | None = None) -> int:
        """Queue URLs that are unseen and in scope, and return their number; `source` is the host with the links."""
        unseen = self._links.unseen([one.url for one in urls], source)
        self._pipeline.queue([urls[place] for place in unseen])
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
        self.process(ReadPage(candidate, reply, page, robots, claim))

    def process(self, read: ReadPage) -> None:
        """Judge a page, weigh its links, write it, learn from it and queue its links."""
        candidate, reply = read.candidate, read.reply
        judgement = self._judge(read)
        page, verdict = judgement.page, judgement.verdict
        cost = len(reply.body)
        text_bytes = len(page.text.encode()) if verdict.keep else 0
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

        def write(found: WeighedLinks) -> None:
            scores = self._scores(page, places, found)
            self._state.writer.record_page(candidate, reply, judgement, text_bytes, scores)

        unseen = candidates(candidate, page, links)
        self._pipeline.absorb_page(candidate, source, cost, text_bytes, unseen, links, write)
        self._state.queues.cycles.note_good_links(page)
        self.uncommitted += 1

    # 2 permit

    async def _permit(self, candidate: Candidate) -> Robots | None:
        """Return the rules under which the URL may be requested now; else record or requeue it and return None."""
        host = host_of(candidate.url)
        if self._links.is_erased(candidate.url):
            # The erasure was killed before it had cleared the queues.
            self._pipeline.finish(candidate)
            self._free(host)
            return None
        if self._state.queues.refuse_if_due(candidate):
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
        if key(target) == key(candidate.url):  # only http became https, which is the same URL to us
            spent = candidate.spent + len(reply.body)
            again = replace(candidate, url=target, hops=candidate.hops + 1, spent=spent)
            self._frontier.requeue(candidate, again)
            return
        # The target of a seed is a seed: many front pages only lead on to another host.
        unseen = self._links.unseen([target], None if candidate.depth == 0 else host)
        detail = "" if self._links.is_erased(target) else target
        outcome = Outcome("redirect", f"http {reply.status}", detail)
        self._state.writer.record(candidate, reply, outcome)
        self._pipeline.absorb_redirect(candidate, [target] if unseen else [], received(reply))
        self.uncommitted += 1

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

    # 5 claim text

    async def _claim_text(self, candidate: Candidate, reply: Reply, page: ReadResult) -> TextClaim:
        """Claim the text of a page that may be kept, so that no other shard keeps an equal one."""
        if self._coordination.shard.count == 1 or not self._config.judge.duplicates:
            return CLAIM_NOT_NEEDED
        if not page.text_hash or not self._state.judge.verdict(page, reply).keep:
            return CLAIM_NOT_NEEDED
        self._claiming += 1
        try:
            return await self._coordination.texts.claim(page.text_hash, candidate.url)
        finally:
            self._claiming -= 1

    # 6 judge

    def _judge(self, read: ReadPage) -> Judgement:
        judgement = self._state.judge.judge(read.page, read.reply, read.claim)
        return replace(judgement, page=with_opt_outs(judgement.page, read.robots.opt_outs))

    # 8 write

    def _scores(self, page: ReadResult, places: Sequence[int], found: WeighedLinks) -> LinkScores:
        """Return the scores of all links of a page, of which the ones in some places are unseen."""
        weights = self._state.yields.expected([link.url for link in page.links])
        chances: list[float | None] = [None] * len(weights)
        expected = self._state.policy.expected_yields(found.queued)
        for place, weight, chance in zip(places, expected, found.chances, strict=True):
            weights[place], chances[place] = weight, chance
        return LinkScores(weights, chances)

    # the end of a turn

    def _record(self, candidate: Candidate, answer: Reply | Failure | None, outcome: Outcome) -> None:
        """Record the outcome of a URL that gave no page, and learn from its cost if it was requested."""
        self._state.writer.record(candidate, answer, outcome)
        self.uncommitted += 1
        if answer is None:
            self._pipeline.finish(candidate)
        else:
            self._pipeline.absorb_failure(candidate, received(answer))

    def _put_back(self, candidate: Candidate, host: str, wait_s: float = 0.0) -> None:
        """Return a URL to its queue, and let its host rest."""
        self._frontier.put_back(candidate)
        self._free(host, wait_s)

    def _free(self, host: str, rest_s: float = 0.0) -> None:
        self._frontier.free(host, self._clock.now() + rest_s)
