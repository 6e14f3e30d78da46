"""State of a simulated crawl in shards: arrays of shards, hosts, addresses, events and messages for its kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.config import BudgetSettings, FetchSettings, PoliteSettings
from thresher.crawler.frontier.seen import SeenUrls
from thresher.crawler.manners.politeness import MAX_LOAD_DELAY
from thresher.jit import FLOATS, NUMBER, NUMBERS, TABLE
from thresher_lab.shard_simulation.heaps import NONE
from thresher_lab.shard_simulation.web import MAX_OUT_LINKS, Ids, Web

COMMIT_PAGES = 256  # pages after which a shard commits, unless a second has passed before
MILESTONES = 10  # portions of the budget after which the progress of each shard is recorded
EVENTS_PER_SHARD = 4  # beside answers
SPARE_EVENTS = 10_000

# Counters of each shard.
FETCHED, ROBOTS, OUTWARD, SENT, RECEIVED, NEW, MESSAGES, ASKED, REFUSED, QUEUED, LONGEST_OUTBOX = range(11)
COUNTS = 11

_POLITE, _BUDGET = PoliteSettings(), BudgetSettings()


class ShardTerms(NamedTuple):
    """Conditions of a simulated crawl; times are in seconds."""

    pages: int  # budget, after which the coordinator ends the crawl
    connections: int = FetchSettings().connections  # of each shard
    delay: float = _POLITE.delay
    load_share: float = _POLITE.load_share
    ip_delay: float = _POLITE.ip_delay
    max_delay: float = MAX_LOAD_DELAY
    host_pages: int = _BUDGET.host_pages
    domain_pages: int = _BUDGET.domain_pages
    recent: int = SeenUrls.RECENT  # URLs in a generation of the memory of a sender
    latency: float = 0.001  # mean time of a question or a message
    reply: float = 0.5  # median time of an answer of a host
    scatter: float = 1.0  # sigma of its logarithm
    # 1: each request that must wait for an address gets a time of its own; 0: all get the next free time.
    spread: int = 1
    lend: float = 0.0  # time for which an address is lent to the only shard that wants it; 0: never
    seeds: int = 1_000


class State(NamedTuple):
    """The state of a simulated crawl, as arrays that kernels change in place."""

    status: NDArray[np.uint8]  # by page: unknown, queued or taken
    # by host
    queued: Ids
    lowest: Ids  # no page before this one is queued
    fetched: Ids
    visiting: Ids  # the page under way; NONE: robots.txt
    positions: NDArray[np.uint8]  # idle, queued for a turn, or busy
    robots_known: NDArray[np.uint8]  # whether robots.txt was fetched
    visit_started: NDArray[np.float64]  # start of the visit under way
    rest_until: NDArray[np.float64]
    # by domain and by address
    domain_fetched: Ids
    address_free: NDArray[np.float64]
    line_ends: NDArray[np.float64]
    lent_to: Ids
    lent_until: NDArray[np.float64]
    contested: NDArray[np.uint8]  # whether more than one shard has asked for it
    # a heap of waiting hosts for each shard
    turn_times: NDArray[np.float64]
    turn_hosts: Ids
    turn_starts: NDArray[np.int64]
    turn_counts: NDArray[np.int64]
    # a heap of future events
    event_times: NDArray[np.float64]
    events: NDArray[np.int64]
    # by shard
    busy: NDArray[np.int64]
    wakes: NDArray[np.float64]
    uncommitted: NDArray[np.int64]
    reported: NDArray[np.int64]  # pages that were reported to the coordinator
    counts: NDArray[np.int64]  # shard by shard
    memory: NDArray[np.int32]
    remembered: NDArray[np.int64]
    young: NDArray[np.int64]
    # messages by shard and side: one side is being filled, the other is under way
    message_hosts: NDArray[np.int32]
    message_pages: NDArray[np.int32]
    message_counts: NDArray[np.int64]
    side: NDArray[np.int64]
    unconfirmed: NDArray[np.int64]  # by receiver and sender
    outbox: NDArray[np.int64]  # by sender
    # requests, in the order of sending
    sent_at: NDArray[np.float64]
    answered_at: NDArray[np.float64]
    request_host: Ids
    request_page: Ids
    # pages of each shard when each tenth of the budget was spent, and the times
    progress: NDArray[np.int64]
    progress_times: NDArray[np.float64]
    totals: NDArray[np.int64]  # EVENTS, REQUESTS and PASSED


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
    ShardTerms,
)
STATE = types.NamedTuple(  # type: ignore[no-untyped-call]
    (
        _BYTES, _IDS, _IDS, _IDS, _IDS, _BYTES, _BYTES, FLOATS, FLOATS, _IDS, FLOATS, FLOATS, _IDS, FLOATS, _BYTES,
        FLOATS, _IDS, NUMBERS,
        NUMBERS, FLOATS, NUMBERS, NUMBERS, FLOATS, NUMBERS, NUMBERS, TABLE, _CUBE, NUMBERS, NUMBERS, _CUBE, _CUBE,
        TABLE, NUMBERS, TABLE, NUMBERS, FLOATS, FLOATS, _IDS, _IDS, TABLE, FLOATS, NUMBERS,
    ),
    State,
)  # fmt: skip


def empty_state(web: Web, shards: int, terms: ShardTerms) -> State:
    """Return the state of a crawl before its first event."""
    hosts, addresses = len(web.domains), len(web.address_owners)
    # Pages are reported to the coordinator up to a second late, so there are some more than the budget.
    requests = min(web.pages, 2 * terms.pages + 10 * shards * terms.connections) + hosts
    table = 1 << int(2 * terms.recent).bit_length()
    in_messages = (COMMIT_PAGES + 1) * 2 * MAX_OUT_LINKS
    events = 2 * (shards * (terms.connections + EVENTS_PER_SHARD) + SPARE_EVENTS)
    hosts_of_shards = np.bincount(web.shards, minlength=shards)
    return State(
        status=np.zeros(web.pages, np.uint8),
        queued=np.zeros(hosts, np.int32),
        lowest=web.first_pages[:-1].copy(),
        fetched=np.zeros(hosts, np.int32),
        visiting=np.full(hosts, NONE, np.int32),
        positions=np.zeros(hosts, np.uint8),
        robots_known=np.zeros(hosts, np.uint8),
        visit_started=np.zeros(hosts),
        rest_until=np.zeros(hosts),
        domain_fetched=np.zeros(len(web.first_hosts) - 1, np.int32),
        address_free=np.zeros(addresses),
        line_ends=np.zeros(addresses),
        lent_to=np.full(addresses, NONE, np.int32),
        lent_until=np.zeros(addresses),
        contested=np.zeros(addresses, np.uint8),
        turn_times=np.zeros(hosts),
        turn_hosts=np.zeros(hosts, np.int32),
        turn_starts=np.concatenate(([0], np.cumsum(hosts_of_shards)[:-1])),
        turn_counts=np.zeros(shards, np.int64),
        event_times=np.zeros(events),
        events=np.zeros(events, np.int64),
        busy=np.zeros(shards, np.int64),
        wakes=np.full(shards, np.inf),
        uncommitted=np.zeros(shards, np.int64),
        reported=np.zeros(shards, np.int64),
        counts=np.zeros((shards, COUNTS), np.int64),
        memory=np.full((shards, 2, table), NONE, np.int32),
        remembered=np.zeros(shards, np.int64),
        young=np.zeros(shards, np.int64),
        message_hosts=np.zeros((shards, 2, in_messages), np.int32),
        message_pages=np.zeros((shards, 2, in_messages), np.int32),
        message_counts=np.zeros((shards, 2), np.int64),
        side=np.zeros(shards, np.int64),
        unconfirmed=np.zeros((shards, shards), np.int64),
        outbox=np.zeros(shards, np.int64),
        sent_at=np.zeros(requests),
        answered_at=np.zeros(requests),
        request_host=np.zeros(requests, np.int32),
        request_page=np.zeros(requests, np.int32),
        progress=np.zeros((MILESTONES, shards), np.int64),
        progress_times=np.zeros(MILESTONES),
        totals=np.zeros(3, np.int64),
    )
