"""Whose turn it is: hosts wait until they may be visited; who is next of those that may, is a matter of policy."""

from __future__ import annotations

import heapq
from collections import deque
from math import log2
from random import Random
from typing import Protocol

RANKS = 24  # 0 is the best, for weights of 1 and more; there are two for half the weight
MANY_VOID = 64  # tickets that may stand in a line for nothing


class Turning(Protocol):
    """A way for hosts to take turns."""

    waiting_for: float  # the weight of a host that others have to wait for; 0 if there is none

    def __contains__(self, host: str) -> bool: ...

    def put(self, host: str, time: float, weight: float, curiosity: float = 0.0) -> None:
        """The host may be visited from then on; it is in the line once, however often it is put there."""

    def rerank(self, host: str, weight: float, curiosity: float = 0.0) -> None:
        """What a host in the line promises has changed, or what would be learnt by visiting it."""

    def remove(self, host: str) -> None:
        """Forget a host, if it is in the line."""

    def next_time(self) -> float | None:
        """When a host may be visited, long ago if one is ready; None if none waits."""

    def take(self, now: float, *, curious: bool = False) -> str | None:
        """The next host, out of the line, or None if none is to be visited now."""


class Turns:
    """Hosts in the order of the times at which they may be visited: the one that waits longest is next."""

    waiting_for = 0.0

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, str]] = []  # some of hosts that were put elsewhere since
        self._places: dict[str, tuple[float, int]] = {}
        self._number = 0  # of equal times, the first come is the first served

    def __contains__(self, host: str) -> bool:
        return host in self._places

    def put(self, host: str, time: float, weight: float = 0.0, curiosity: float = 0.0) -> None:  # noqa: ARG002
        self._number += 1
        self._places[host] = (time, self._number)
        heapq.heappush(self._entries, (time, self._number, host))

    def rerank(self, host: str, weight: float, curiosity: float = 0.0) -> None:
        pass

    def remove(self, host: str) -> None:
        self._places.pop(host, None)

    def next_time(self) -> float | None:
        entries = self._entries
        while entries and self._places.get(entries[0][2]) != entries[0][:2]:
            heapq.heappop(entries)
        return entries[0][0] if entries else None

    def take(self, now: float, *, curious: bool = False) -> str | None:  # noqa: ARG002
        time = self.next_time()
        if time is None or time > now:
            return None
        host = heapq.heappop(self._entries)[2]
        del self._places[host]
        return host


class RankedTurns:
    """Hosts that may be visited are drawn by rank: one of rank r with a probability as 1 / (r + 1).

    So the best come first, and the others are never forgotten. The temperature widens the choice: at 0 the best one
    is always next, without bound all are alike. Those of one rank take turns.
    """

    waiting_for = 0.0

    def __init__(self, random: Random, temperature: float = 1.0) -> None:
        self._random = random
        # At no temperature, none but the first has a chance.
        self._chances = [(rank + 1) ** (-1 / temperature) if temperature else 0.0 for rank in range(RANKS)]
        self._waiting = Turns()
        self._ranks: dict[str, int] = {}  # of all, waiting or ready
        self._ready: list[deque[tuple[int, str]]] = [deque() for _ in range(RANKS)]
        self._tickets: dict[str, int] = {}  # of hosts that are ready: all but the last one are void
        self._counts = [0] * RANKS
        self._number = 0

    def __contains__(self, host: str) -> bool:
        return host in self._ranks

    def put(self, host: str, time: float, weight: float, curiosity: float = 0.0) -> None:  # noqa: ARG002
        self.remove(host)
        self._ranks[host] = _rank(weight)
        self._waiting.put(host, time)

    def rerank(self, host: str, weight: float, curiosity: float = 0.0) -> None:  # noqa: ARG002
        rank = _rank(weight)
        if host in self._tickets and self._ranks[host] != rank:
            self._counts[self._ranks[host]] -= 1
            self._admit(host, rank)
        elif host in self._ranks:
            self._ranks[host] = rank

    def remove(self, host: str) -> None:
        rank = self._ranks.pop(host, None)
        if rank is not None and self._tickets.pop(host, None) is not None:
            self._counts[rank] -= 1
        self._waiting.remove(host)

    def next_time(self) -> float | None:
        return float("-inf") if self._tickets else self._waiting.next_time()

    def take(self, now: float, *, curious: bool = False) -> str | None:  # noqa: ARG002
        while host := self._waiting.take(now):
            self._admit(host, self._ranks[host])
        if not self._tickets:
            return None
        rank = self._draw()
        line = self._ready[rank]
        while True:
            ticket, host = line.popleft()
            if self._tickets.get(host) == ticket:
                self.remove(host)
                return host

    def _admit(self, host: str, rank: int) -> None:
        self._number += 1
        self._ranks[host] = rank
        self._tickets[host] = self._number
        self._counts[rank] += 1
        line = self._ready[rank]
        line.append((self._number, host))
        if len(line) > 2 * self._counts[rank] + MANY_VOID:
            self._ready[rank] = deque(each for each in line if self._tickets.get(each[1]) == each[0])

    def _draw(self) -> int:
        """A rank that some ready host has."""
        ranks = [rank for rank, count in enumerate(self._counts) if count]
        chances = [self._chances[rank] for rank in ranks]
        return self._random.choices(ranks, chances)[0] if any(chances) else ranks[0]


def _rank(weight: float) -> int:
    return min(max(round(-2 * log2(max(weight, 1e-9))), 0), RANKS - 1)


class BestTurns:
    """Of the hosts that may be visited the best is next; or none, while better ones are about to be ready again.

    How much better is a matter of patience: at 0 nothing is ever waited for, at 1 all that is worse than usual, and
    than a host that will be back soon, has to wait. In between, the fewer good hosts are known the less is waited
    for them: there may be others.
    """

    SOON = 30.0  # seconds that are worth waiting
    MEMORY = 50  # takes after which what was usual counts for little
    FEW = 5  # good hosts

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._waiting = Turns()
        self._weights: dict[str, tuple[float, float]] = {}  # and curiosity, of all in the line
        self._ready: set[str] = set()
        self._best: list[tuple[float, str]] = []  # ready hosts by weight, the first the best; some outdated
        self._newest: list[tuple[float, str]] = []  # the same by curiosity
        self._away: list[tuple[float, float, str]] = []  # hosts that will be back, by weight, and until when
        self._back: dict[str, float] = {}  # when they will, as far as anybody knows
        self._usual = 0.0  # weight of what was taken lately …
        self._lately: deque[str] = deque(maxlen=self.MEMORY)  # … and from which hosts
        self.waiting_for = 0.0  # the weight of a host that others have to wait for; 0 if there is none
        self._refused = False  # and nothing has changed since

    def __contains__(self, host: str) -> bool:
        return host in self._weights

    def put(self, host: str, time: float, weight: float, curiosity: float = 0.0) -> None:
        self._ready.discard(host)
        self._refused = False
        self._weights[host] = weight, curiosity
        self._waiting.put(host, time)
        self._expect(host, weight, time)

    def _expect(self, host: str, weight: float, time: float) -> None:
        self._back[host] = time
        heapq.heappush(self._away, (-weight, time, host))

    def rerank(self, host: str, weight: float, curiosity: float = 0.0) -> None:
        if self._weights.get(host, (weight, curiosity)) == (weight, curiosity):
            return
        self._refused = False
        self._weights[host] = weight, curiosity
        if host in self._ready:
            self._enter(host)
        else:
            heapq.heappush(self._away, (-weight, self._back[host], host))

    def _enter(self, host: str) -> None:
        weight, curiosity = self._weights[host]
        self._ready.add(host)
        heapq.heappush(self._best, (-weight, host))
        if curiosity > 0:
            heapq.heappush(self._newest, (-curiosity, host))

    def remove(self, host: str) -> None:
        self._refused = False
        self._weights.pop(host, None)
        self._ready.discard(host)
        self._back.pop(host, None)
        self._waiting.remove(host)

    def next_time(self) -> float | None:
        if self._ready and not self._refused:
            return float("-inf")
        return self._waiting.next_time()

    def take(self, now: float, *, curious: bool = False) -> str | None:
        while host := self._waiting.take(now):
            self._back.pop(host, None)
            self._enter(host)
        self.waiting_for, self._refused = 0.0, False
        chosen = self._first(self._newest, 1) if curious else None
        if chosen is None:
            chosen = self._first(self._best, 0)
            if chosen is None:
                return None
            weight, soon = self._weights[chosen][0], self._soon(now)
            if weight < self._insists() * min(self._usual, soon):
                self.waiting_for, self._refused = soon, True
                return None
            self._usual += (weight - self._usual) / self.MEMORY
            self._lately.append(chosen)
        weight = self._weights[chosen][0]
        self.remove(chosen)
        self._expect(chosen, weight, now + self.SOON)
        return chosen

    def _insists(self) -> float:
        """The share of what is usual that a host has to promise."""
        good = len(set(self._lately))
        return self._patience * good / (good + self.FEW * (1.0 - self._patience)) if good else 0.0

    def _first(self, line: list[tuple[float, str]], measure: int) -> str | None:
        """The first ready host of a line, without those that have left it or stand elsewhere in it."""
        while line:
            weight, host = line[0]
            if host in self._ready and self._weights[host][measure] == -weight:
                return host
            heapq.heappop(line)
        return None

    def _soon(self, now: float) -> float:
        """The weight of the best host that will be back soon."""
        while self._away:
            weight, time, host = self._away[0]
            if (
                self._back.get(host) == time
                and now <= time <= now + self.SOON
                and (host not in self._weights or self._weights[host][0] == -weight)
            ):
                return -weight
            heapq.heappop(self._away)
            if time < now and self._back.get(host) == time:
                del self._back[host]
        return 0.0
