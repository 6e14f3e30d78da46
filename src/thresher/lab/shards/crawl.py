"""The course of a crawl in shards on paper: what happens next, until the coordinator ends it or nothing is left.

A shard takes hosts in the order in which they may be visited, asks whoever has the door of a host's address, and
visits. What a page links to is queued, if it is the shard's own, or goes into a letter; a commit sends the letters,
and confirms those that came in. The coordinator hears of each commit and looks once a second whether it is enough.
"""

from __future__ import annotations

import numpy as np
from numba import types

from thresher.lab.shards.board import (
    ASKED,
    BOARD,
    COMMIT_PAGES,
    EVENTS,
    FETCHED,
    FRESH,
    LETTERS,
    LONGEST_OUTBOX,
    MILESTONES,
    OUTWARD,
    PASSED,
    QUEUED,
    RECEIVED,
    REFUSED,
    REQUESTS,
    ROBOTS,
    SENT,
    TERMS,
    Board,
    Terms,
)
from thresher.lab.shards.dice import below, draw, lognormal, share
from thresher.lab.shards.lines import NOBODY, is_new, pop, push
from thresher.lab.shards.web import MOST_LINKS, WEB, Web, links
from thresher.read.scan.kernel import inner, kernel

UNKNOWN, WAITS, TAKEN = 0, 1, 2  # pages
NOWHERE, IN_LINE, VISITED = 0, 1, 2  # hosts
KIND = 1 << 40
ANSWER, DELIVERY, COMMIT, LOOK, WAKE = 0, 1, 2, 3, 4  # events, with the number of a host or a shard
SECOND = 1.0
SLOWEST = 1.5  # times the usual latency that an answer about an address may take
_REPLIES, _QUESTIONS, _SEEDS = 21, 22, 23  # what is drawn


@inner
def _schedule(board, time, kind, number):
    push(board.event_times, board.events, 0, board.totals[EVENTS], time, kind * KIND + number)
    board.totals[EVENTS] += 1


@inner
def _line_up(board, web, host, time):
    shard = web.shards[host]
    push(board.turn_times, board.turn_hosts, board.turn_starts[shard], board.turn_counts[shard], time, host)
    board.turn_counts[shard] += 1
    board.stands[host] = IN_LINE


@inner
def _is_closed(board, web, terms, host):
    return (
        board.fetched[host] >= terms.host_pages
        or board.domain_fetched[web.domains[host]] >= terms.domain_pages
    )


@inner
def _queue(board, web, terms, host, page, now):
    """Queue a page of a shard's own, if nobody did before; returns whether it was new."""
    if board.status[page] != UNKNOWN:
        return False
    board.status[page] = WAITS
    board.queued[host] += 1
    board.counts[web.shards[host], QUEUED] += 1
    board.lowest[host] = min(board.lowest[host], page)
    if board.stands[host] == NOWHERE and not _is_closed(board, web, terms, host):
        _line_up(board, web, host, max(now, board.rests[host]))
    return True


@inner
def _ask(board, web, terms, shard, address, now):
    """When a request to an address may be sent: a time that has come, or one at which to ask again.

    Whoever has its door rests it a little longer than is asked for: the answer takes a moment to arrive. A shard to
    which it was lent need not ask.
    """
    lag, rest = 0.0, terms.ip_delay + SLOWEST * terms.latency
    earliest = board.free_from[address]
    if not (board.lent_to[address] == shard and now < board.lent_until[address]):
        if web.doors[address] != shard:
            board.counts[shard, ASKED] += 1
            chance = share(draw(web.seed + _QUESTIONS, address, board.counts[shard, ASKED]))
            lag = terms.latency * (0.5 + chance)
        earliest = max(earliest, _lent(board, terms, shard, address, now, rest))
    if earliest <= now:
        board.free_from[address] = now + rest
        return True, now + lag
    board.counts[shard, REFUSED] += 1
    if not terms.spread:
        return False, earliest
    turn = max(board.line_ends[address], earliest)
    board.line_ends[address] = turn + rest
    return False, turn


@inner
def _lent(board, terms, shard, address, now, rest):
    """Lend an address to the first who asks, for a while, and again as long as nobody else does.

    Returns when it will be back; nobody knows when the borrower used it last, so it has a rest first.
    """
    if terms.lend <= 0.0:
        return 0.0
    back = board.lent_until[address] + rest if board.lent_to[address] != NOBODY else 0.0
    if board.lent_to[address] not in (NOBODY, shard):
        board.contested[address] = 1
    if now >= back or board.lent_to[address] == shard:
        back = 0.0
        board.lent_to[address], board.lent_until[address] = shard, now + terms.lend
        if board.contested[address]:
            board.lent_to[address] = NOBODY
    return back


@inner
def _visit(board, web, terms, shard, host, time):
    """A request goes out: for robots.txt if it is the first to the host, else for the first of its pages."""
    page = NOBODY
    if board.met[host]:
        page = board.lowest[host]
        while board.status[page] != WAITS:
            page += 1
        board.status[page] = TAKEN
        board.lowest[host] = page + 1
        board.queued[host] -= 1
        board.counts[shard, QUEUED] -= 1
        board.fetched[host] += 1
        board.domain_fetched[web.domains[host]] += 1
    number = board.totals[REQUESTS]
    answered = time + lognormal(web.seed + _REPLIES, number, 0, terms.reply, terms.scatter)
    board.sent_at[number], board.answered_at[number] = time, answered
    board.asked_host[number], board.asked_page[number] = host, page
    board.totals[REQUESTS] = number + 1
    board.visiting[host], board.began[host], board.stands[host] = page, time, VISITED
    board.busy[shard] += 1
    _schedule(board, answered, ANSWER, host)


@inner
def _start_visits(board, web, terms, shard, now):
    """Start what may be started, and see to it that the shard wakes when there may be more."""
    start = board.turn_starts[shard]
    while (
        board.busy[shard] < terms.connections
        and board.turn_counts[shard]
        and board.turn_times[start] <= now
        and board.totals[REQUESTS] < len(board.sent_at)
    ):
        host = pop(board.turn_times, board.turn_hosts, start, board.turn_counts[shard])
        board.turn_counts[shard] -= 1
        board.stands[host] = NOWHERE
        if _is_closed(board, web, terms, host):
            continue
        may_go, time = _ask(board, web, terms, shard, web.addresses[host], now)
        if may_go:
            _visit(board, web, terms, shard, host, time)
        else:
            _line_up(board, web, host, time)
    if board.busy[shard] < terms.connections and board.turn_counts[shard]:
        turn = max(board.turn_times[start], now)
        # Where events stand too close, a wake can be left out: the next commit is one.
        if turn < board.wakes[shard] and 2 * board.totals[EVENTS] < len(board.events):
            board.wakes[shard] = turn
            _schedule(board, turn, WAKE, shard)


@inner
def _answered(board, web, terms, host, now, hosts, pages):
    """An answer arrives: the host rests, its links are queued or written into letters."""
    shard, page = web.shards[host], board.visiting[host]
    board.busy[shard] -= 1
    board.stands[host] = NOWHERE
    slow = min((now - board.began[host]) / terms.load_share, terms.most_delay)
    board.rests[host] = now + max(terms.delay, slow)
    if page == NOBODY:
        board.met[host] = 1
        board.counts[shard, ROBOTS] += 1
    else:
        board.counts[shard, FETCHED] += 1
        board.uncommitted[shard] += 1
        for place in range(links(web, host, page, hosts, pages)):
            target = web.shards[hosts[place]]
            if target == shard:
                _queue(board, web, terms, hosts[place], pages[place], now)
            else:
                _write(board, terms, shard, hosts[place], pages[place])
    if board.stands[host] == NOWHERE and board.queued[host] and not _is_closed(board, web, terms, host):
        _line_up(board, web, host, board.rests[host])


@inner
def _write(board, terms, shard, host, page):
    """A link to a host of another shard goes into the letter to that one, unless it did lately."""
    board.counts[shard, OUTWARD] += 1
    if is_new(board.memory, board.remembered, board.young, shard, page, terms.recent):
        side = board.side[shard]
        number = board.letter_counts[shard, side]
        board.letter_hosts[shard, side, number] = host
        board.letter_pages[shard, side, number] = page
        board.letter_counts[shard, side] = number + 1


@inner
def _commit(board, web, terms, shard, now, addressees):
    """Letters that came are confirmed, those that were written are sent, and the coordinator hears of the pages."""
    for sender in range(len(board.busy)):
        board.outbox[sender] -= board.unconfirmed[shard, sender]
        board.unconfirmed[shard, sender] = 0
    board.reported[shard], board.uncommitted[shard] = board.counts[shard, FETCHED], 0
    side = board.side[shard]
    written = board.letter_counts[shard, side]
    if not written:
        return
    if board.letter_counts[shard, 1 - side]:
        _deliver(board, web, terms, shard, now)
    board.side[shard] = 1 - side
    addressees[:] = 0
    for number in range(written):
        addressees[web.shards[board.letter_hosts[shard, side, number]]] = 1
    board.counts[shard, LETTERS] += addressees.sum()
    board.counts[shard, SENT] += written
    board.outbox[shard] += written
    board.counts[shard, LONGEST_OUTBOX] = max(board.counts[shard, LONGEST_OUTBOX], board.outbox[shard])
    _schedule(board, now + terms.latency, DELIVERY, shard)


@inner
def _deliver(board, web, terms, shard, now):
    """The letters of a shard arrive, whoever they are for."""
    side = 1 - board.side[shard]
    for number in range(board.letter_counts[shard, side]):
        host, page = board.letter_hosts[shard, side, number], board.letter_pages[shard, side, number]
        receiver = web.shards[host]
        board.counts[receiver, RECEIVED] += 1
        board.unconfirmed[receiver, shard] += 1
        if _queue(board, web, terms, host, page, now):
            board.counts[receiver, FRESH] += 1
    board.letter_counts[shard, side] = 0


@inner
def _look(board, terms, now):
    """What the coordinator sees once a second: whether it is enough, and whether nothing is left."""
    known = board.reported.sum()
    while (
        board.totals[PASSED] < MILESTONES and known * MILESTONES >= (board.totals[PASSED] + 1) * terms.pages
    ):
        board.progress[board.totals[PASSED]] = board.reported
        board.progress_times[board.totals[PASSED]] = now
        board.totals[PASSED] += 1
    is_idle = not (
        board.busy.sum() + board.turn_counts.sum() + board.letter_counts.sum() + board.outbox.sum()
    )
    return known >= terms.pages, is_idle


@kernel(types.float64, BOARD, WEB, TERMS)
def run(board: Board, web: Web, terms: Terms) -> float:
    """Crawl until the coordinator has heard of enough pages, or nothing is left; returns when that was."""
    shards, hosts = len(board.busy), len(web.domains)
    to_hosts, to_pages = np.empty(MOST_LINKS, np.int64), np.empty(MOST_LINKS, np.int64)
    addressees = np.zeros(shards, np.int64)
    for number in range(terms.seeds):
        host = below(draw(web.seed + _SEEDS, number, 0), hosts)
        _queue(board, web, terms, host, web.first_pages[host], 0.0)
    for shard in range(shards):
        _start_visits(board, web, terms, shard, 0.0)
        _schedule(board, SECOND * (shard + 1) / shards, COMMIT, shard)  # no two at the same moment
    _schedule(board, SECOND, LOOK, 0)
    now, is_over = 0.0, False
    while board.totals[EVENTS]:
        now = board.event_times[0]
        event = pop(board.event_times, board.events, 0, board.totals[EVENTS])
        board.totals[EVENTS] -= 1
        kind, number = event // KIND, event % KIND
        shard = web.shards[number] if kind == ANSWER else number
        if kind == ANSWER:
            _answered(board, web, terms, number, now, to_hosts, to_pages)
            if board.uncommitted[shard] >= COMMIT_PAGES:
                _commit(board, web, terms, shard, now, addressees)
        elif kind == COMMIT:
            _commit(board, web, terms, shard, now, addressees)
            _schedule(board, now + SECOND, COMMIT, shard)
        elif kind == DELIVERY:
            _deliver(board, web, terms, shard, now)
            for receiver in range(shards):
                if board.busy[receiver] < terms.connections and not is_over:
                    _start_visits(board, web, terms, receiver, now)
        elif kind == WAKE:
            board.wakes[shard] = np.inf
        else:
            is_enough, is_idle = _look(board, terms, now)
            is_over = is_over or is_enough
            if is_idle or (is_over and not board.busy.sum()):
                break
            _schedule(board, now + SECOND, LOOK, 0)
        if not is_over and kind != DELIVERY and kind != LOOK:
            _start_visits(board, web, terms, shard, now)
    return now
