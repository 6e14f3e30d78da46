"""Event loop of a simulated crawl in shards, until the coordinator ends it or no URL is left.

A shard takes hosts in the order in which they may be visited, asks the shard that owns the address of a host, and
visits. Links to its own hosts are queued, others are written to messages. A commit sends the messages, acknowledges
the ones received, and reports pages to the coordinator, which checks once a second whether the budget is spent.
"""

from __future__ import annotations

import numpy as np
from numba import types

from thresher.jit import inner, kernel
from thresher_lab.shard_simulation.heaps import NONE, is_new, pop, push
from thresher_lab.shard_simulation.random_draws import below, draw, lognormal, share
from thresher_lab.shard_simulation.state import (
    ASKED,
    COMMIT_PAGES,
    EVENTS,
    FETCHED,
    LONGEST_OUTBOX,
    MESSAGES,
    MILESTONES,
    NEW,
    OUTWARD,
    PASSED,
    QUEUED,
    RECEIVED,
    REFUSED,
    REQUESTS,
    ROBOTS,
    SENT,
    STATE,
    TERMS,
    ShardTerms,
    State,
)
from thresher_lab.shard_simulation.web import MAX_LINKS, WEB, Web, links

UNKNOWN_PAGE, QUEUED_PAGE, TAKEN_PAGE = 0, 1, 2
IDLE_HOST, QUEUED_HOST, BUSY_HOST = 0, 1, 2
# An event is its kind times EVENT_KIND plus the number of a host (ANSWER) or of a shard (others).
EVENT_KIND = 1 << 40
ANSWER, DELIVERY, COMMIT, CHECK, WAKE = 0, 1, 2, 3, 4
INTERVAL_S = 1.0  # between commits of a shard, and between checks of the coordinator
MAX_LATENCY_FACTOR = 1.5  # longest time of an answer about an address, in mean latencies
_REPLIES, _QUESTIONS, _SEEDS = 21, 22, 23  # streams of random draws


@inner
def _schedule(state, time, kind, number):
    """Add an event."""
    push(state.event_times, state.events, 0, state.totals[EVENTS], time, kind * EVENT_KIND + number)
    state.totals[EVENTS] += 1


@inner
def _enqueue_host(state, web, host, time):
    """Let a host wait for its turn at a time."""
    shard = web.shards[host]
    push(state.turn_times, state.turn_hosts, state.turn_starts[shard], state.turn_counts[shard], time, host)
    state.turn_counts[shard] += 1
    state.positions[host] = QUEUED_HOST


@inner
def _is_closed(state, web, terms, host):
    """Return whether the budget of a host or its domain is spent."""
    return (
        state.fetched[host] >= terms.host_pages
        or state.domain_fetched[web.domains[host]] >= terms.domain_pages
    )


@inner
def _queue(state, web, terms, host, page, now):
    """Queue a page in the shard of its host; return whether it was unknown."""
    if state.status[page] != UNKNOWN_PAGE:
        return False
    state.status[page] = QUEUED_PAGE
    state.queued[host] += 1
    state.counts[web.shards[host], QUEUED] += 1
    state.lowest[host] = min(state.lowest[host], page)
    if state.positions[host] == IDLE_HOST and not _is_closed(state, web, terms, host):
        _enqueue_host(state, web, host, max(now, state.rest_until[host]))
    return True


@inner
def _reserve_address(state, web, terms, shard, address, now):
    """Ask the owner of an address for a request; return (True, time to send) or (False, time to ask again).

    The owner rests the address a little longer than ip_delay, since its answer takes time to arrive. A shard to
    which the address is lent does not ask.
    """
    lag, rest = 0.0, terms.ip_delay + MAX_LATENCY_FACTOR * terms.latency
    earliest = state.address_free[address]
    if not (state.lent_to[address] == shard and now < state.lent_until[address]):
        if web.address_owners[address] != shard:
            state.counts[shard, ASKED] += 1
            chance = share(draw(web.seed + _QUESTIONS, address, state.counts[shard, ASKED]))
            lag = terms.latency * (0.5 + chance)
        earliest = max(earliest, _lend(state, terms, shard, address, now, rest))
    if earliest <= now:
        state.address_free[address] = now + rest
        return True, now + lag
    state.counts[shard, REFUSED] += 1
    if not terms.spread:
        return False, earliest
    turn = max(state.line_ends[address], earliest)
    state.line_ends[address] = turn + rest
    return False, turn


@inner
def _lend(state, terms, shard, address, now, rest):
    """Lend an address to the first shard that asks, and again as long as no other shard asks for it.

    Return the time at which it is available again. Its last use by the borrower is unknown, so it rests first.
    """
    if terms.lend <= 0.0:
        return 0.0
    back = state.lent_until[address] + rest if state.lent_to[address] != NONE else 0.0
    if state.lent_to[address] not in (NONE, shard):
        state.contested[address] = 1
    if now >= back or state.lent_to[address] == shard:
        back = 0.0
        state.lent_to[address], state.lent_until[address] = shard, now + terms.lend
        if state.contested[address]:
            state.lent_to[address] = NONE
    return back


@inner
def _visit(state, web, terms, shard, host, time):
    """Send a request: for robots.txt if it is the first to the host, else for the first of its queued pages."""
    page = NONE
    if state.robots_known[host]:
        page = state.lowest[host]
        while state.status[page] != QUEUED_PAGE:
            page += 1
        state.status[page] = TAKEN_PAGE
        state.lowest[host] = page + 1
        state.queued[host] -= 1
        state.counts[shard, QUEUED] -= 1
        state.fetched[host] += 1
        state.domain_fetched[web.domains[host]] += 1
    number = state.totals[REQUESTS]
    answered = time + lognormal(web.seed + _REPLIES, number, 0, terms.reply, terms.scatter)
    state.sent_at[number], state.answered_at[number] = time, answered
    state.request_host[number], state.request_page[number] = host, page
    state.totals[REQUESTS] = number + 1
    state.visiting[host], state.visit_started[host], state.positions[host] = page, time, BUSY_HOST
    state.busy[shard] += 1
    _schedule(state, answered, ANSWER, host)


@inner
def _start_visits(state, web, terms, shard, now):
    """Start the visits that may start now, and schedule the shard to wake for the next one."""
    start = state.turn_starts[shard]
    while (
        state.busy[shard] < terms.connections
        and state.turn_counts[shard]
        and state.turn_times[start] <= now
        and state.totals[REQUESTS] < len(state.sent_at)
    ):
        host = pop(state.turn_times, state.turn_hosts, start, state.turn_counts[shard])
        state.turn_counts[shard] -= 1
        state.positions[host] = IDLE_HOST
        if _is_closed(state, web, terms, host):
            continue
        may_go, time = _reserve_address(state, web, terms, shard, web.addresses[host], now)
        if may_go:
            _visit(state, web, terms, shard, host, time)
        else:
            _enqueue_host(state, web, host, time)
    if state.busy[shard] < terms.connections and state.turn_counts[shard]:
        turn = max(state.turn_times[start], now)
        # If the heap of events is half full, the wake is left out: the next commit starts visits as well.
        if turn < state.wakes[shard] and 2 * state.totals[EVENTS] < len(state.events):
            state.wakes[shard] = turn
            _schedule(state, turn, WAKE, shard)


@inner
def _answered(state, web, terms, host, now, hosts, pages):
    """Process an answer: the host rests, its links are queued or written to messages."""
    shard, page = web.shards[host], state.visiting[host]
    state.busy[shard] -= 1
    state.positions[host] = IDLE_HOST
    slow = min((now - state.visit_started[host]) / terms.load_share, terms.max_delay)
    state.rest_until[host] = now + max(terms.delay, slow)
    if page == NONE:
        state.robots_known[host] = 1
        state.counts[shard, ROBOTS] += 1
    else:
        state.counts[shard, FETCHED] += 1
        state.uncommitted[shard] += 1
        for place in range(links(web, host, page, hosts, pages)):
            target = web.shards[hosts[place]]
            if target == shard:
                _queue(state, web, terms, hosts[place], pages[place], now)
            else:
                _write(state, terms, shard, hosts[place], pages[place])
    if state.positions[host] == IDLE_HOST and state.queued[host] and not _is_closed(state, web, terms, host):
        _enqueue_host(state, web, host, state.rest_until[host])


@inner
def _write(state, terms, shard, host, page):
    """Write a link to the message for the shard of its host, unless it was sent recently."""
    state.counts[shard, OUTWARD] += 1
    if is_new(state.memory, state.remembered, state.young, shard, page, terms.recent):
        side = state.side[shard]
        number = state.message_counts[shard, side]
        state.message_hosts[shard, side, number] = host
        state.message_pages[shard, side, number] = page
        state.message_counts[shard, side] = number + 1


@inner
def _commit(state, web, terms, shard, now, addressees):
    """Commit a shard: acknowledge messages received, send messages written, report pages to the coordinator."""
    for sender in range(len(state.busy)):
        state.outbox[sender] -= state.unconfirmed[shard, sender]
        state.unconfirmed[shard, sender] = 0
    state.reported[shard], state.uncommitted[shard] = state.counts[shard, FETCHED], 0
    side = state.side[shard]
    written = state.message_counts[shard, side]
    if not written:
        return
    if state.message_counts[shard, 1 - side]:
        _deliver(state, web, terms, shard, now)
    state.side[shard] = 1 - side
    addressees[:] = 0
    for number in range(written):
        addressees[web.shards[state.message_hosts[shard, side, number]]] = 1
    state.counts[shard, MESSAGES] += addressees.sum()
    state.counts[shard, SENT] += written
    state.outbox[shard] += written
    state.counts[shard, LONGEST_OUTBOX] = max(state.counts[shard, LONGEST_OUTBOX], state.outbox[shard])
    _schedule(state, now + terms.latency, DELIVERY, shard)


@inner
def _deliver(state, web, terms, shard, now):
    """Deliver the messages of a shard to all receivers."""
    side = 1 - state.side[shard]
    for number in range(state.message_counts[shard, side]):
        host, page = state.message_hosts[shard, side, number], state.message_pages[shard, side, number]
        receiver = web.shards[host]
        state.counts[receiver, RECEIVED] += 1
        state.unconfirmed[receiver, shard] += 1
        if _queue(state, web, terms, host, page, now):
            state.counts[receiver, NEW] += 1
    state.message_counts[shard, side] = 0


@inner
def _check_progress(state, terms, now):
    """Check as the coordinator does each second: return whether the budget is spent, and whether no URL is left."""
    known = state.reported.sum()
    while (
        state.totals[PASSED] < MILESTONES and known * MILESTONES >= (state.totals[PASSED] + 1) * terms.pages
    ):
        state.progress[state.totals[PASSED]] = state.reported
        state.progress_times[state.totals[PASSED]] = now
        state.totals[PASSED] += 1
    is_idle = not (
        state.busy.sum() + state.turn_counts.sum() + state.message_counts.sum() + state.outbox.sum()
    )
    return known >= terms.pages, is_idle


@kernel(types.float64, STATE, WEB, TERMS)
def run(state: State, web: Web, terms: ShardTerms) -> float:
    """Simulate until the budget of pages is reported as spent, or no URL is left; return the time of the end."""
    shards, hosts = len(state.busy), len(web.domains)
    to_hosts, to_pages = np.empty(MAX_LINKS, np.int64), np.empty(MAX_LINKS, np.int64)
    addressees = np.zeros(shards, np.int64)
    for number in range(terms.seeds):
        host = below(draw(web.seed + _SEEDS, number, 0), hosts)
        _queue(state, web, terms, host, web.first_pages[host], 0.0)
    for shard in range(shards):
        _start_visits(state, web, terms, shard, 0.0)
        _schedule(state, INTERVAL_S * (shard + 1) / shards, COMMIT, shard)  # not all at the same time
    _schedule(state, INTERVAL_S, CHECK, 0)
    now, is_over = 0.0, False
    while state.totals[EVENTS]:
        now = state.event_times[0]
        event = pop(state.event_times, state.events, 0, state.totals[EVENTS])
        state.totals[EVENTS] -= 1
        kind, number = event // EVENT_KIND, event % EVENT_KIND
        shard = web.shards[number] if kind == ANSWER else number
        if kind == ANSWER:
            _answered(state, web, terms, number, now, to_hosts, to_pages)
            if state.uncommitted[shard] >= COMMIT_PAGES:
                _commit(state, web, terms, shard, now, addressees)
        elif kind == COMMIT:
            _commit(state, web, terms, shard, now, addressees)
            _schedule(state, now + INTERVAL_S, COMMIT, shard)
        elif kind == DELIVERY:
            _deliver(state, web, terms, shard, now)
            for receiver in range(shards):
                if state.busy[receiver] < terms.connections and not is_over:
                    _start_visits(state, web, terms, receiver, now)
        elif kind == WAKE:
            state.wakes[shard] = np.inf
        else:
            is_enough, is_idle = _check_progress(state, terms, now)
            is_over = is_over or is_enough
            if is_idle or (is_over and not state.busy.sum()):
                break
            _schedule(state, now + INTERVAL_S, CHECK, 0)
        if not is_over and kind != DELIVERY and kind != CHECK:
            _start_visits(state, web, terms, shard, now)
    return now
