"""Whose turn it is: hosts wait until they may be visited; who is next of those that may, is a matter of policy."""

from __future__ import annotations

import heapq
from collections import deque
from random import Random

RANKS = 24  # 0 is the best
MANY_VOID = 64  # tickets that may stand in a line for nothing


class Turns:
    """Hosts in the order of the times at which they may be visited: the one that waits longest is next."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, str]] = []  # some of hosts that were put elsewhere since
        self._places: dict[str, tuple[float, int]] = {}
        self._number = 0  # of equal times, the first come is the first served

    def __contains__(self, host: str) -> bool:
        return host in self._places

    def put(self, host: str, time: float, rank: int) -> None:  # noqa: ARG002
        """The host may be visited from then on; it is in the line once, however often it is put there."""
        self._number += 1
        self._places[host] = (time, self._number)
        heapq.heappush(self._entries, (time, self._number, host))

    def rerank(self, host: str, rank: int) -> None:
        """What the host promises has changed. Here that means nothing."""

    def remove(self, host: str) -> None:
        """Forget a host, if it is in the line."""
        self._places.pop(host, None)

    def next_time(self) -> float | None:
        """When the first host may be visited; None if none waits."""
        entries = self._entries
        while entries and self._places.get(entries[0][2]) != entries[0][:2]:
            heapq.heappop(entries)
        return entries[0][0] if entries else None

    def take(self, now: float) -> str | None:
        """The next host, out of the line, or None if none may be visited now."""
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

    def put(self, host: str, time: float, rank: int) -> None:
        """The host may be visited from then on; it is in the line once, however often it is put there."""
        self.remove(host)
        self._ranks[host] = rank
        self._waiting.put(host, time, rank)

    def rerank(self, host: str, rank: int) -> None:
        """What the host promises has changed: if it is in the line, it stands among others now."""
        if host in self._tickets and self._ranks[host] != rank:
            self._counts[self._ranks[host]] -= 1
            self._admit(host, rank)
        elif host in self._ranks:
            self._ranks[host] = rank

    def remove(self, host: str) -> None:
        """Forget a host, if it is in the line."""
        rank = self._ranks.pop(host, None)
        if rank is not None and self._tickets.pop(host, None) is not None:
            self._counts[rank] -= 1
        self._waiting.remove(host)

    def next_time(self) -> float | None:
        """When a host may be visited, long ago if one is ready; None if none waits."""
        return float("-inf") if self._tickets else self._waiting.next_time()

    def take(self, now: float) -> str | None:
        """A host that may be visited now, drawn and out of the line, or None if there is none."""
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
