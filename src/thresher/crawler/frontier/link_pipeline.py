"""The steps of a page that a crawl and its simulation share: weigh links, learn from the visit, queue the links.

There is no network here, no writer and no judge: visits are given as plain values. So a simulation of a recorded
web drives the same code in the same order as the crawl.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from thresher.crawler.frontier.manager import FrontierManager
from thresher.crawler.policy.policy import WeighedLinks
from thresher.crawler.policy.prioritisers import SourcePage
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.records import Candidate, Link
from thresher.urls import host as host_of

NO_LINKS = WeighedLinks([], [])


def keep_all(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return all candidates: without shards, every host is the crawl's own."""
    return candidates


def redirect_candidate(candidate: Candidate, target: str) -> Candidate:
    """Return the candidate for the target of a redirect: a new URL, as deep as the one that led to it.

    The weight was learnt for another URL, perhaps of another host, and the tries and bytes were spent on it.
    """
    return replace(
        candidate,
        url=target,
        source=candidate.url,
        via="redirect",
        weight=1.0,
        hops=candidate.hops + 1,
        tries=0,
        spent=0,
    )


class LinkPipeline:
    """Weighing, learning and queueing for one crawl process, or for one simulation.

    URLs are given once they are known to be unseen. `route` sends candidates of other shards to these and returns
    the others.
    """

    def __init__(
        self,
        queues: FrontierManager,
        yields: YieldStats,
        route: Callable[[Sequence[Candidate]], Sequence[Candidate]] = keep_all,
    ) -> None:
        self._queues = queues
        self._yields = yields
        self._route = route

    def queue(self, unseen: Sequence[Candidate]) -> None:
        """Weigh and queue URLs that no page linked to: seeds, sitemaps, guesses and targets of redirects."""
        self._queues.add(self._route(self._queues.policy.weigh_urls(unseen)))

    def absorb_page(
        self,
        candidate: Candidate,
        source: SourcePage,
        received: int,
        text: int,
        unseen: Sequence[Candidate],
        links: Sequence[Link],
        write: Callable[[WeighedLinks], None],
    ) -> None:
        """Take in the result of a visit: weigh unseen links, write the page, learn from it and queue the links.

        Links are weighed before anything is learnt from their page, so that the weights that are written are
        expectations.

        Parameters
        ----------
        candidate
            The URL that was visited.
        source
            The page, as prioritisers of its links see it.
        received
            Bytes downloaded.
        text
            Bytes of text that the page adds to the corpus.
        unseen
            Candidates for the unseen links of the page.
        links
            The links of these candidates, as the page has them.
        write
            Writes the page, given the weighed links.
        """
        policy = self._queues.policy
        found = policy.weigh_links(unseen, source, links) if unseen else NO_LINKS
        write(found)
        self._yields.learn(host_of(candidate.url), received, text)
        policy.learn(candidate, received, text, source.ours)
        if unseen:
            self._queues.add(self._route(found.queued))
        self.finish(candidate)

    def absorb_redirect(self, candidate: Candidate, targets: Sequence[str], received: int) -> None:
        """Queue the unseen targets of a redirect, and count its cost; the policy learns from the target."""
        if targets:
            self.queue([redirect_candidate(candidate, target) for target in targets])
        self._yields.learn(host_of(candidate.url), received, 0)
        self.finish(candidate)

    def absorb_failure(self, candidate: Candidate, received: int) -> None:
        """Learn from the cost of a visit that gave no page."""
        self._yields.learn(host_of(candidate.url), received, 0)
        self._queues.policy.learn(candidate, received, 0, False)
        self.finish(candidate)

    def finish(self, candidate: Candidate) -> None:
        """Take a URL that has its outcome off the frontier, weigh its host again and close it if that is due."""
        frontier = self._queues.frontier
        frontier.finish(candidate)
        host = host_of(candidate.url)
        frontier.reweigh(host)
        self._queues.close_if_due(host)
