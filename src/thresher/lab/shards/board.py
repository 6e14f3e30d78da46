"""All that a crawl on paper keeps of its shards, hosts, addresses and letters: arrays for its kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.config import Budget, Fetch, Polite
from thresher.crawl.politeness import MAX_LOAD_DELAY
from thresher.crawl.seen import Seen
from thresher.lab.shards.lines import NOBODY
from thresher.lab.shards.web import MOST_OUT, Ids, Web
from thresher.read.scan.kernel import FLOATS, NUMBER, NUMBERS, TABLE

COMMIT_PAGES = 256  # a commit is made after so many pages, or a second
MILESTONES = 10  # of the budget, at which it is looked how far each shard is
EVENTS_OF_SHARD = 4  # beside answers
SPARE_EVENTS = 10_000

# What is counted for each shard.
FETCHED, ROBOTS, OUTWARD, SENT, RECEIVED, FRESH, LETTERS, ASKED, REFUSED, QUEUED, LONGEST_OUTBOX = range(11)
COUNTS = 11

_POLITE, _BUDGET = Polite(), Budget()


class Terms(NamedTuple):
    """Under what terms a web is crawled; seconds, unless said otherwise."""

    pages: int  # after which the coordinator ends the crawl
    connections: int = Fetch().connections  # of a shard
    delay: float = _POLITE.delay
    load_share: float = _POLITE.load_share
    ip_delay: float = _POLITE.ip_delay
    most_delay: float = MAX_LOAD_DELAY
    host_pages: int = _BUDGET.host_pages
    domain_pages: int = _BUDGET.domain_pages
    recent: int = Seen.RECENT  # URLs in a generation of a sender's memory
    latency: float = 0.001  # of a question or a letter, on average
    reply: float = 0.5  # median of what an answer takes
    scatter: float = 1.0  # of its logarithm
    spread: int = (
        1  # 1: whoever has to wait for an address is told a time of its own; 0: the next time there is
    )
    lend: float = 0.0  # how long an address is lent to the only shard that wants it; 0: it asks each time
    seeds: int = 1_000


class Board(NamedTuple):
    """The state of a crawl on paper."""

    status: NDArray[np.uint8]  # by page: unknown, queued or taken
    # by host
    queued: Ids
    lowest: Ids  # no page before this one is queued
    fetched: Ids
    visiting: Ids  # the page under way; NOBODY: robots.txt
    stands: NDArray[np.uint8]  # in the line, or being visited, or neither …
    met: NDArray[np.uint8]  # … and whether its robots.txt is known
    began: NDArray[np.float64]  # the visit under way
    rests: NDArray[np.float64]  # until when
    # by domain and by address
    domain_fetched: Ids
    free_from: NDArray[np.float64]
    line_ends: NDArray[np.float64]
    lent_to: Ids
    lent_until: NDArray[np.float64]
    contested: NDArray[np.uint8]  # more than one shard has asked for it
    # hosts that wait, a heap for each shard
    turn_times: NDArray[np.float64]
    turn_hosts: Ids
    turn_starts: NDArray[np.int64]
    turn_counts: NDArray[np.int64]
    # what happens next, a heap
    event_times: NDArray[np.float64]
    events: NDArray[np.int64]
    # by shard
    busy: NDArray[np.int64]
    wakes: NDArray[np.float64]
    uncommitted: NDArray[np.int64]
    reported: NDArray[np.int64]  # pages that the coordinator has heard of
    counts: NDArray[np.int64]  # shard by shard
    memory: NDArray[np.int32]
    remembered: NDArray[np.int64]
    young: NDArray[np.int64]
    # letters: being written and under way, by shard and side
    letter_hosts: NDArray[np.int32]
    letter_pages: NDArray[np.int32]
    letter_counts: NDArray[np.int64]
    side: NDArray[np.int64]
    unconfirmed: NDArray[np.int64]  # by receiver and sender
    outbox: NDArray[np.int64]  # by sender
    # requests, in the order in which they were sent
    sent_at: NDArray[np.float64]
    answered_at: NDArray[np.float64]
    asked_host: Ids
    asked_page: Ids
    # how far each shard was when a tenth, two tenths, … of the budget was spent, and when that was
    progress: NDArray[np.int64]
    progress_times: NDArray[np.float64]
    totals: NDArray[np.int64]  # see below


EVENTS, REQUESTS, PASSED = range(3)  # places in `totals`

_BYTES = types.Array(types.uint8, 1, "C")
_IDS = types.Array(types.int32, 1, "C")
_CUBE = types.Array(types.int32, 3, "C")
TERMS = types.NamedTuple(  # type: ignore[no-untyped-call]
    (
        NUMBER,
        NUMBER,
        *[types.float64] * 4,
        *[NUMBER] * 3,
        *[types.float64] * 3,
        NUMBER,
        types.float64,
        NUMBER,
    ),
    Terms,
)
BOARD = types.NamedTuple(  # type: ignore[no-untyped-call]
    (
        _BYTES, _IDS, _IDS, _IDS, _IDS, _BYTES, _BYTES, FLOATS, FLOATS, _IDS, FLOATS, FLOATS, _IDS, FLOATS, _BYTES,
        FLOATS, _IDS, NUMBERS,
        NUMBERS, FLOATS, NUMBERS, NUMBERS, FLOATS, NUMBERS, NUMBERS, TABLE, _CUBE, NUMBERS, NUMBERS, _CUBE, _CUBE,
        TABLE, NUMBERS, TABLE, NUMBERS, FLOATS, FLOATS, _IDS, _IDS, TABLE, FLOATS, NUMBERS,
    ),
    Board,
)  # fmt: skip


def lay_out(web: Web, shards: int, terms: Terms) -> Board:
    """A board on which nothing has happened yet."""
    hosts, addresses = len(web.domains), len(web.doors)
    # The coordinator hears of pages a second late, so there will be some more than it allows.
    requests = min(web.pages, 2 * terms.pages + 10 * shards * terms.connections) + hosts
    table = 1 << int(2 * terms.recent).bit_length()
    in_letters = (COMMIT_PAGES + 1) * 2 * MOST_OUT
    events = 2 * (shards * (terms.connections + EVENTS_OF_SHARD) + SPARE_EVENTS)
    crowds = np.bincount(web.shards, minlength=shards)
    return Board(
        status=np.zeros(web.pages, np.uint8),
        queued=np.zeros(hosts, np.int32),
        lowest=web.first_pages[:-1].copy(),
        fetched=np.zeros(hosts, np.int32),
        visiting=np.full(hosts, NOBODY, np.int32),
        stands=np.zeros(hosts, np.uint8),
        met=np.zeros(hosts, np.uint8),
        began=np.zeros(hosts),
        rests=np.zeros(hosts),
        domain_fetched=np.zeros(len(web.first_hosts) - 1, np.int32),
        free_from=np.zeros(addresses),
        line_ends=np.zeros(addresses),
        lent_to=np.full(addresses, NOBODY, np.int32),
        lent_until=np.zeros(addresses),
        contested=np.zeros(addresses, np.uint8),
        turn_times=np.zeros(hosts),
        turn_hosts=np.zeros(hosts, np.int32),
        turn_starts=np.concatenate(([0], np.cumsum(crowds)[:-1])),
        turn_counts=np.zeros(shards, np.int64),
        event_times=np.zeros(events),
        events=np.zeros(events, np.int64),
        busy=np.zeros(shards, np.int64),
        wakes=np.full(shards, np.inf),
        uncommitted=np.zeros(shards, np.int64),
        reported=np.zeros(shards, np.int64),
        counts=np.zeros((shards, COUNTS), np.int64),
        memory=np.full((shards, 2, table), NOBODY, np.int32),
        remembered=np.zeros(shards, np.int64),
        young=np.zeros(shards, np.int64),
        letter_hosts=np.zeros((shards, 2, in_letters), np.int32),
        letter_pages=np.zeros((shards, 2, in_letters), np.int32),
        letter_counts=np.zeros((shards, 2), np.int64),
        side=np.zeros(shards, np.int64),
        unconfirmed=np.zeros((shards, shards), np.int64),
        outbox=np.zeros(shards, np.int64),
        sent_at=np.zeros(requests),
        answered_at=np.zeros(requests),
        asked_host=np.zeros(requests, np.int32),
        asked_page=np.zeros(requests, np.int32),
        progress=np.zeros((MILESTONES, shards), np.int64),
        progress_times=np.zeros(MILESTONES),
        totals=np.zeros(3, np.int64),
    )
