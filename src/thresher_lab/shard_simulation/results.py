"""Results of a simulated crawl in shards; politeness is computed from the list of its requests alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher_lab.shard_simulation.crawl import run
from thresher_lab.shard_simulation.state import (
    ASKED,
    FETCHED,
    LONGEST_OUTBOX,
    MESSAGES,
    NEW,
    OUTWARD,
    PASSED,
    QUEUED,
    RECEIVED,
    REFUSED,
    REQUESTS,
    ROBOTS,
    SENT,
    ShardTerms,
    State,
    empty_state,
)
from thresher_lab.shard_simulation.web import BIGGEST, Web, plan

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]


class RequestCounts(NamedTuple):
    """Columns of all requests, in the order in which they were granted."""

    sent: Reals  # seconds since the crawl started
    answered: Reals
    hosts: Numbers
    addresses: Numbers
    shards: Numbers
    pages: Numbers  # -1: robots.txt


class LoadSpread(NamedTuple):
    """The distribution of a count over the shards."""

    least: int
    median: float
    most: int


class Milestone(NamedTuple):
    """The progress of the shards when the coordinator knew of a number of pages."""

    pages: int
    seconds: float
    by_shard: LoadSpread


class SentLinks(NamedTuple):
    """The links that shards have sent to each other."""

    outward: int  # links of pages to hosts of other shards
    sent: int  # the others had been sent recently
    received: int
    new: int  # the others were known to the receiver
    messages: int
    longest_outbox: int  # of one shard, in unacknowledged links


class CrawlCourse(NamedTuple):
    """The course and the results of one simulated crawl."""

    web: Web
    terms: ShardTerms
    seconds: float  # until the last answer
    ended: float  # when the last request was sent
    requests: RequestCounts
    fetched: Numbers  # pages by shard
    waiting: Numbers  # queued pages by shard
    longest_queue: int  # queued pages of one domain at most
    robots: int
    messages: SentLinks
    questions: int  # about addresses, to other shards
    refusals: int  # of addresses, by other shards and by the shard itself
    milestones: list[Milestone]

    @property
    def shards(self) -> int:
        """The number of shards."""
        return len(self.fetched)

    @property
    def pages(self) -> int:
        """The number of pages fetched."""
        return int(self.fetched.sum())

    @property
    def biggest_domain(self) -> int:
        """The number of pages fetched from the domain with most pages."""
        of_pages = self.requests.hosts[self.requests.pages >= 0]
        return int(np.bincount(self.web.domains[of_pages]).max())

    def host_gap(self) -> float:
        """Return the shortest time between two requests to a host."""
        return _shortest(self.requests.hosts, self.requests.sent, self.requests.sent)

    def host_rest(self) -> float:
        """Return the shortest time from an answer of a host to the next request to it."""
        return _shortest(self.requests.hosts, self.requests.answered, self.requests.sent)

    def address_gap(self) -> float:
        """Return the shortest time between two requests to an address, from any shards."""
        return _shortest(self.requests.addresses, self.requests.sent, self.requests.sent)

    def idle(self, since: float = 0.0) -> float:
        """Return the share of connections that were idle, from a time on until the last request."""
        started = np.clip(self.requests.sent, since, self.ended)
        ended = np.clip(self.requests.answered, since, self.ended)
        capacity = self.shards * self.terms.connections * (self.ended - since)
        return float(1.0 - (ended - started).sum() / capacity) if capacity else 1.0


def simulate(
    domains: int, shards: int, terms: ShardTerms, *, biggest: int = BIGGEST, seed: int = 1
) -> CrawlCourse:
    """Simulate a crawl by shards on a web of some domains; `biggest` is the number of pages of the largest one."""
    web = plan(domains, shards, biggest=biggest, seed=seed)
    state = empty_state(web, shards, terms)
    seconds = run(state, web, terms)
    requests = _requests(state, web)
    counted = {place: int(total) for place, total in enumerate(state.counts.sum(axis=0))}
    return CrawlCourse(
        web=web,
        terms=terms,
        seconds=seconds,
        ended=float(requests.sent.max(initial=0.0)),
        requests=requests,
        fetched=state.counts[:, FETCHED],
        waiting=state.counts[:, QUEUED],
        longest_queue=int(np.bincount(web.domains, state.queued).max()),
        robots=counted[ROBOTS],
        messages=SentLinks(
            outward=counted[OUTWARD],
            sent=counted[SENT],
            received=counted[RECEIVED],
            new=counted[NEW],
            messages=counted[MESSAGES],
            longest_outbox=int(state.counts[:, LONGEST_OUTBOX].max()),
        ),
        questions=counted[ASKED],
        refusals=counted[REFUSED],
        milestones=[
            Milestone(int(row.sum()), float(time), spread(row))
            for row, time in zip(
                state.progress[: state.totals[PASSED]], state.progress_times.tolist(), strict=False
            )
        ],
    )


def _requests(state: State, web: Web) -> RequestCounts:
    made = int(state.totals[REQUESTS])
    hosts = state.request_host[:made].astype(np.int64)
    return RequestCounts(
        sent=state.sent_at[:made],
        answered=state.answered_at[:made],
        hosts=hosts,
        addresses=web.addresses[hosts].astype(np.int64),
        shards=web.shards[hosts].astype(np.int64),
        pages=state.request_page[:made].astype(np.int64),
    )


def spread(counts: Numbers) -> LoadSpread:
    """Return the distribution of a count over the shards."""
    return LoadSpread(int(counts.min()), float(np.median(counts)), int(counts.max()))


def in_reach(web: Web, shards: int, terms: ShardTerms) -> tuple[Numbers, int]:
    """Return the pages that the budgets of hosts and domains allow, by shard, and in the largest domain."""
    of_hosts = np.minimum(np.diff(web.first_pages), terms.host_pages)
    of_domains = np.minimum(np.bincount(web.domains, of_hosts), terms.domain_pages)
    owners = web.shards[web.first_hosts[:-1]]
    return np.bincount(owners, of_domains, shards).astype(np.int64), int(of_domains.max())


def _shortest(groups: Numbers, ends: Reals, starts: Reals) -> float:
    """Return the shortest time from an end to the next start in its group; infinity if there is none."""
    order = np.lexsort((starts, groups))
    groups, ends, starts = groups[order], ends[order], starts[order]
    same = groups[1:] == groups[:-1]
    return float((starts[1:] - ends[:-1])[same].min(initial=np.inf))
