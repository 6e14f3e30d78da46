"""What a crawl in shards on paper shows; whether it was polite is read off the list of its requests alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.lab.shards.board import (
    ASKED,
    FETCHED,
    FRESH,
    LETTERS,
    LONGEST_OUTBOX,
    OUTWARD,
    PASSED,
    QUEUED,
    RECEIVED,
    REFUSED,
    REQUESTS,
    ROBOTS,
    SENT,
    Board,
    Terms,
    lay_out,
)
from thresher.lab.shards.crawl import run
from thresher.lab.shards.web import BIGGEST, Web, plan

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]


class Requests(NamedTuple):
    """Every request, in the order in which they were granted."""

    sent: Reals  # seconds since the crawl began
    answered: Reals
    hosts: Numbers
    addresses: Numbers
    shards: Numbers
    pages: Numbers  # -1: robots.txt


class Spread(NamedTuple):
    """How something is dealt out to the shards."""

    least: int
    median: float
    most: int


class Milestone(NamedTuple):
    """How far the shards were when the coordinator knew of so many pages."""

    pages: int
    seconds: float
    by_shard: Spread


class Letters(NamedTuple):
    """What all shards have sent each other, in links."""

    outward: int  # links of pages to hosts of other shards
    sent: int  # of those; the others the sender had sent lately
    received: int
    fresh: int  # of those; the others the receiver had queued before
    letters: int
    longest_outbox: int  # of one shard, unconfirmed


class Course(NamedTuple):
    """One crawl on paper, from its beginning to its end."""

    web: Web
    terms: Terms
    seconds: float  # until the last answer
    ended: float  # when the last request was sent
    requests: Requests
    fetched: Numbers  # pages by shard
    waiting: Numbers  # pages still queued, by shard …
    longest_queue: int  # … and those of one domain, at most
    robots: int
    letters: Letters
    questions: int  # about addresses, asked of other shards
    refusals: int  # answers that told to wait, own ones included
    milestones: list[Milestone]

    @property
    def shards(self) -> int:
        return len(self.fetched)

    @property
    def pages(self) -> int:
        return int(self.fetched.sum())

    @property
    def biggest_domain(self) -> int:
        """Pages fetched of the domain that gave most."""
        of_pages = self.requests.hosts[self.requests.pages >= 0]
        return int(np.bincount(self.web.domains[of_pages]).max())

    def host_gap(self) -> float:
        """The shortest time between two requests to a host."""
        return _shortest(self.requests.hosts, self.requests.sent, self.requests.sent)

    def host_rest(self) -> float:
        """The shortest time from an answer of a host to the next request."""
        return _shortest(self.requests.hosts, self.requests.answered, self.requests.sent)

    def address_gap(self) -> float:
        """The shortest time between two requests to an address, whichever shards they came from."""
        return _shortest(self.requests.addresses, self.requests.sent, self.requests.sent)

    def idle(self, since: float = 0.0) -> float:
        """The share of connections that were not in use, from some time on to the last request."""
        begun = np.clip(self.requests.sent, since, self.ended)
        over = np.clip(self.requests.answered, since, self.ended)
        room = self.shards * self.terms.connections * (self.ended - since)
        return float(1.0 - (over - begun).sum() / room) if room else 1.0


def simulate(domains: int, shards: int, terms: Terms, *, biggest: int = BIGGEST, seed: int = 1) -> Course:
    """Crawl a web of so many domains, the biggest of so many pages, with so many shards."""
    web = plan(domains, shards, biggest=biggest, seed=seed)
    board = lay_out(web, shards, terms)
    seconds = run(board, web, terms)
    requests = _requests(board, web)
    counted = {place: int(total) for place, total in enumerate(board.counts.sum(axis=0))}
    return Course(
        web=web,
        terms=terms,
        seconds=seconds,
        ended=float(requests.sent.max(initial=0.0)),
        requests=requests,
        fetched=board.counts[:, FETCHED],
        waiting=board.counts[:, QUEUED],
        longest_queue=int(np.bincount(web.domains, board.queued).max()),
        robots=counted[ROBOTS],
        letters=Letters(
            outward=counted[OUTWARD],
            sent=counted[SENT],
            received=counted[RECEIVED],
            fresh=counted[FRESH],
            letters=counted[LETTERS],
            longest_outbox=int(board.counts[:, LONGEST_OUTBOX].max()),
        ),
        questions=counted[ASKED],
        refusals=counted[REFUSED],
        milestones=[
            Milestone(int(row.sum()), float(time), spread(row))
            for row, time in zip(
                board.progress[: board.totals[PASSED]], board.progress_times.tolist(), strict=False
            )
        ],
    )


def _requests(board: Board, web: Web) -> Requests:
    made = int(board.totals[REQUESTS])
    hosts = board.asked_host[:made].astype(np.int64)
    return Requests(
        sent=board.sent_at[:made],
        answered=board.answered_at[:made],
        hosts=hosts,
        addresses=web.addresses[hosts].astype(np.int64),
        shards=web.shards[hosts].astype(np.int64),
        pages=board.asked_page[:made].astype(np.int64),
    )


def spread(counts: Numbers) -> Spread:
    return Spread(int(counts.min()), float(np.median(counts)), int(counts.max()))


def in_reach(web: Web, shards: int, terms: Terms) -> tuple[Numbers, int]:
    """Pages of the whole web that the budgets of hosts and domains allow, by shard; and of the biggest domain."""
    of_hosts = np.minimum(np.diff(web.first_pages), terms.host_pages)
    of_domains = np.minimum(np.bincount(web.domains, of_hosts), terms.domain_pages)
    owners = web.shards[web.first_hosts[:-1]]
    return np.bincount(owners, of_domains, shards).astype(np.int64), int(of_domains.max())


def _shortest(groups: Numbers, ends: Reals, starts: Reals) -> float:
    """The shortest time from an end to the next start within a group; infinite where there is none."""
    order = np.lexsort((starts, groups))
    groups, ends, starts = groups[order], ends[order], starts[order]
    same = groups[1:] == groups[:-1]
    return float((starts[1:] - ends[:-1])[same].min(initial=np.inf))
