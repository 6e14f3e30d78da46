"""Which URL comes next: a queue for each host, the best first, hosts taking turns, the far end of queues on disk.

What a URL promises is what its host promises, which changes with every page of it, times what the URL promises
among those of its host, which is settled when it is queued. So a queue keeps its order, and hosts move as a whole.

A URL's life here: `add` puts it into its host's queue; `take` hands it out when its host's turn has come, and
the host rests; `free` tells when the host may have its next turn; `finish` strikes the URL off, or `put_back`
returns it. A URL that was taken but not finished when the crawl stopped is still queued when it goes on.

No network here and no clock but the one given, so a crawl can be simulated.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from math import inf, log2
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from thresher.config import Policy
from thresher.crawl.state import State
from thresher.crawl.turns import RANKS, RankedTurns, Turns
from thresher.page import Candidate
from thresher.url import host as host_of

QUEUE = b"q"  # q host-number rank sequence -> Candidate
HOSTS = b"f"  # f host-name -> host number, URLs queued
RANK_AT = 5  # where the rank stands in a key
NEXT = b"m/frontier"  # next host number and sequence

HEAD, LEAST_HEAD = 64, 4  # candidates of a host in memory: fewer where there are many hosts, …
IN_MEMORY = 400_000  # … so that there are about so many in all
LAST_RANK = 255
USUAL = 32  # the rank in its queue of a URL that promises what its host does

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Candidate).decode
_decode_pair = msgspec.msgpack.Decoder(tuple[int, int]).decode


class _Host:
    """A host's queue in memory: its best candidates, in order; the rest of them are on disk, from `low` on."""

    __slots__ = (
        "closed",
        "head",
        "level",
        "low",
        "name",
        "number",
        "queued",
        "rest",
        "tail",
        "taken",
        "visiting",
    )

    def __init__(self, name: str, number: int, queued: int, rest: float) -> None:
        self.name = name
        self.number = number
        self.queued = queued  # all that is not finished: head, tail, disk and taken
        self.head: list[tuple[bytes, Candidate]] = []
        self.low = b"" if queued else None  # key from which there is more than the head; None: nothing
        self.tail: list[tuple[bytes, Candidate]] = []  # of that, what no commit has brought to disk yet
        self.taken: dict[str, tuple[bytes, Candidate]] = {}  # by URL, what was handed out
        self.rest = rest  # not to be visited before
        self.level = 1.0  # what the host promises
        self.visiting = False
        self.closed = ""


def arranged(policy: Policy, random: Random) -> dict[str, Any]:
    """How queues and turns are arranged under a policy."""
    if policy.name == "random":
        return {"rank": lambda _: random.randrange(RANKS), "turns": RankedTurns(random, inf)}
    if policy.name in ("host-yield", "heidix"):
        return {"rank": by_weight, "turns": RankedTurns(random, policy.temperature)}
    return {"rank": by_depth, "turns": Turns()}


def by_depth(candidate: Candidate) -> int:
    """The rank of a URL in its queue, where queues are breadth first."""
    return candidate.depth


def by_weight(candidate: Candidate) -> int:
    """The rank of a URL in its queue, where the best is first: two ranks for half the weight."""
    return USUAL - round(2 * log2(max(candidate.weight, 1e-9)))


class Frontier:
    """Queues of candidates, each in the order of ranks, and hosts that take turns."""

    def __init__(
        self,
        state: State,
        clock: Callable[[], float],
        first_turn: Callable[[str], float] = lambda _: 0.0,
        rank: Callable[[Candidate], int] = by_depth,
        turns: Turns | RankedTurns | None = None,
        promise: Callable[[str], float] = lambda _: 1.0,
        host_power: float = 1.0,
    ) -> None:
        """`first_turn` gives the seconds a host has to rest when the crawl goes on, `promise` what it promises.

        `host_power` is how much that counts for its rank among hosts.
        """
        self._state = state
        self._clock = clock
        self._rank = rank
        self._hosts: dict[str, _Host] = {}
        self._turns = turns or Turns()
        self._promise = promise
        self._host_power = host_power
        self._head = HEAD
        self._struck: set[bytes] = set()  # finished or moved, but on disk until the next commit
        self._counted: set[_Host] = set()  # whose count the next commit has to tell
        self._changed: set[_Host] = set()  # with a head or a tail that the next commit makes shorter
        self._next_host, self._next_sequence = _decode_pair(state.get(NEXT) or _encode((0, 0)))
        self.queued = 0  # URLs of hosts that are open …
        self.queued_closed = 0  # … and of those that are closed
        self.closed_hosts = 0
        self._opened = clock()
        self._first_turn = first_turn
        for key, record in state.scan(HOSTS):
            number, queued = _decode_pair(record)
            host = self._new_host(key[len(HOSTS) :].decode(), number, queued)
            self.queued += queued
            self._schedule(host)

    def _new_host(self, name: str, number: int, queued: int) -> _Host:
        host = self._hosts[name] = _Host(name, number, queued, self._opened + self._first_turn(name))
        host.level = self._promise(name)
        return host

    def __len__(self) -> int:
        """URLs queued with hosts that are open."""
        return self.queued

    @property
    def hosts(self) -> int:
        return len(self._hosts)

    def names(self) -> list[str]:
        """Every host that was ever queued."""
        return list(self._hosts)

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Queue URLs that were never queued before (that is for `Seen` to say)."""
        for candidate in candidates:
            self._push(candidate)

    def _push(self, candidate: Candidate) -> None:
        name = host_of(candidate.url)
        host = self._hosts.get(name)
        if host is None:
            host = self._new_host(name, self._next_host, 0)
            self._next_host += 1
        key = self._key(host, candidate)
        self._state.put(key, _encode(candidate))
        self._count(host, 1)
        if host.low is None or (host.head and key < host.head[-1][0]):
            insort(host.head, (key, candidate))
        else:
            host.tail.append((key, candidate))
            host.low = min(host.low, key)
        if host.tail or len(host.head) > self._head:
            self._changed.add(host)
        if host.name not in self._turns and not host.visiting:
            self._schedule(host)
        elif host.head and host.head[0][0] == key:
            self._turns.rerank(host.name, self._rank_of(host))

    def _key(self, host: _Host, candidate: Candidate) -> bytes:
        rank = min(max(self._rank(candidate), 0), LAST_RANK)
        sequence = self._next_sequence
        self._next_sequence += 1
        return QUEUE + host.number.to_bytes(4, "big") + rank.to_bytes(1, "big") + sequence.to_bytes(8, "big")

    def _count(self, host: _Host, change: int) -> None:
        host.queued += change
        self._counted.add(host)
        if host.closed:
            self.queued_closed += change
        else:
            self.queued += change

    def _schedule(self, host: _Host) -> None:
        if host.closed or host.queued <= len(host.taken):
            return
        self._turns.put(host.name, max(host.rest, self._clock()), self._rank_of(host))

    def _rank_of(self, host: _Host) -> int:
        """Where a host stands among others: by its level, and by the rank of its first URL as far as known."""
        first = host.head[0][0] if host.head else host.low
        in_queue = first[RANK_AT] if first else USUAL
        of_host = round(2 * self._host_power * log2(max(host.level, 1e-9)))
        return min(max(in_queue - USUAL - of_host, 0), RANKS - 1)

    def reweigh(self, name: str) -> None:
        """The record of a host has changed: ask anew what it promises."""
        host = self._hosts[name]
        host.level = self._promise(name)
        self._turns.rerank(name, self._rank_of(host))

    def take(self) -> Candidate | None:
        """The next URL of a host whose turn has come, with its present weight; the host rests until it is freed."""
        name = self._turns.take(self._clock())
        if name is None:
            return None
        host = self._hosts[name]
        host.visiting = True
        if not host.head:
            self._refill(host)
        key, candidate = host.head.pop(0)
        host.taken[candidate.url] = key, candidate
        return replace(candidate, weight=host.level * candidate.weight)

    def next_turn(self) -> float | None:
        """When a host's turn comes next; None if nothing waits."""
        return self._turns.next_time()

    def _refill(self, host: _Host) -> None:
        """Fetch the next candidates from disk; only called when the head is empty but the queue is not."""
        prefix = QUEUE + host.number.to_bytes(4, "big")
        end = QUEUE + (host.number + 1).to_bytes(4, "big")
        taken = {key for key, _ in host.taken.values()}
        low = host.low
        host.low = None
        for key, value in self._state.committed(low or prefix, end):
            if key in self._struck or key in taken:
                continue
            if len(host.head) >= self._head:
                host.low = key
                break
            host.head.append((key, _decode(value)))
        tail, host.tail = host.tail, []
        for entry in tail:
            if host.low is None or entry[0] < host.low:
                insort(host.head, entry)
            else:
                host.tail.append(entry)

    def free(self, name: str, rest: float) -> None:
        """The visit is over; the host may be visited again from then on."""
        host = self._hosts[name]
        host.visiting = False
        host.rest = rest
        self._schedule(host)

    def under_way(self, name: str) -> int:
        """How many URLs of the host are taken and have no outcome yet."""
        return len(self._hosts[name].taken)

    def finish(self, candidate: Candidate) -> None:
        """Strike a taken URL off: it has an outcome."""
        host = self._hosts[host_of(candidate.url)]
        key, _ = host.taken.pop(candidate.url)
        self._state.delete(key)
        self._struck.add(key)
        self._count(host, -1)

    def put_back(self, candidate: Candidate) -> None:
        """Return a taken URL to the head of its queue, as if it had not been taken."""
        host = self._hosts[host_of(candidate.url)]
        insort(host.head, host.taken.pop(candidate.url))
        if host.name in self._turns:
            self._turns.rerank(host.name, self._rank_of(host))
        elif not host.visiting:
            self._schedule(host)

    def requeue(self, taken: Candidate, again: Candidate) -> None:
        """Replace a taken URL by another try of it, at the end of its rank."""
        _, queued = self._hosts[host_of(taken.url)].taken[taken.url]
        self.finish(taken)
        self._push(replace(again, weight=queued.weight))

    def close(self, name: str, reason: str) -> None:
        """Hand out nothing more of this host; its queue stays on disk."""
        host = self._hosts[name]
        if not host.closed:
            host.closed = reason
            self._turns.remove(name)
            self.queued -= host.queued
            self.queued_closed += host.queued
            self.closed_hosts += 1

    def flush(self) -> None:
        """Hand the counts to the state's next commit."""
        for host in self._counted:
            self._state.put(HOSTS + host.name.encode(), _encode((host.number, host.queued)))
        self._counted.clear()
        self._state.put(NEXT, _encode((self._next_host, self._next_sequence)))

    def committed(self) -> None:
        """To be called after each commit: what is safe on disk need not stay in memory."""
        self._struck.clear()
        head = min(HEAD, max(LEAST_HEAD, IN_MEMORY // (len(self._hosts) + 1)))
        if 4 * head <= 3 * self._head:
            self._changed.update(self._hosts.values())
            self._head = head
        for host in self._changed:
            if len(host.head) > self._head:
                low = host.head[self._head][0]
                host.low = low if host.low is None else min(low, host.low)
                del host.head[self._head :]
            host.tail.clear()
        self._changed.clear()
