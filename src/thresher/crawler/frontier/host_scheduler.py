"""Schedulers of hosts: hosts wait until they may be visited, and a policy decides which is next."""

from __future__ import annotations

import heapq
from collections import deque
from math import inf, log2
from random import Random
from typing import Protocol

from thresher.config import PolicySettings

RANKS = 24  # rank 0 is the best, for weights of 1 and more; two ranks are half the weight
MAX_VOID_TICKETS = 64  # that may stand in a line before it is cleaned


class HostScheduler(Protocol):
    """An order in which hosts take turns."""

    waiting_for: float  # the weight of a host that others have to wait for; 0 if there is none

    def __contains__(self, host: str) -> bool: ...

    def put(self, host: str, time: float, weight: float, curiosity: float = 0.0) -> None:
        """Let a host be visited from `time` on; it waits once, however often it is put."""

    def rerank(self, host: str, weight: float, curiosity: float = 0.0) -> None:
        """Change weight and curiosity (the value of learning) of a waiting host."""

    def remove(self, host: str) -> None:
        """Remove a host, if it waits."""

    def next_time(self) -> float | None:
        """Return the time at which a host may be visited, in the past if one is ready; None if none waits."""

    def take(self, now: float, *, curious: bool = False) -> str | None:
        """Remove and return the next host, None if none is to be visited now."""

    def resting(self, count: int) -> tuple[int, list[str]]:
        """Return the number of hosts that rest, as of the last `take`, and some of those that return first."""


class RoundRobinScheduler:
    """The host that waits longest is next."""

    waiting_for = 0.0

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, str]] = []  # some are void, of hosts that were put again
        self._places: dict[str, tuple[float, int]] = {}
        self._number = 0  # decides between equal times: first come, first served

    def __contains__(self, host: str) -> bool:
        return host in self._places

    def put(self, host: str, time: float, weight: float = 0.0, curiosity: float = 0.0) -> None:  # noqa: ARG002
        """Let a host be visited from `time` on."""
        self._number += 1
        self._places[host] = (time, self._number)
        heapq.heappush(self._entries, (time, self._number, host))

    def rerank(self, host: str, weight: float, curiosity: float = 0.0) -> None:
        """Do nothing, since weights do not count."""

    def remove(self, host: str) -> None:
        """Remove a host, if it waits."""
        self._places.pop(host, None)

    def resting(self, count: int) -> tuple[int, list[str]]:
        """Return the number of hosts that rest and some of those that return first."""
        # The entries are a heap, so the first ones return early, though in no order.
        sample = [
            host for time, number, host in self._entries[:count] if self._places.get(host) == (time, number)
        ]
        return len(self._places), sample

    def next_time(self) -> float | None:
        """Return the time at which the first host may be visited; None if none waits."""
        entries = self._entries
        while entries and self._places.get(entries[0][2]) != entries[0][:2]:
            heapq.heappop(entries)
        return entries[0][0] if entries else None

    def take(self, now: float, *, curious: bool = False) -> str | None:  # noqa: ARG002
        """Remove and return the host that waits longest; None if none may be visited."""
        time = self.next_time()
        if time is None or time > now:
            return None
        host = heapq.heappop(self._entries)[2]
        del self._places[host]
        return host


class RankedScheduler:
    """Ready hosts are drawn by rank, with a probability proportional to 1 / (r + 1) for rank r.

    So the best come first, and no host waits for ever. The temperature widens the choice: at 0 the best host is
    always next, at infinity all are equal. Hosts of one rank take turns.
    """

    waiting_for = 0.0

    def __init__(self, random: Random, temperature: float = 1.0) -> None:
        self._random = random
        # Without a temperature only the best rank is drawn.
        self._chances = [(rank + 1) ** (-1 / temperature) if temperature else 0.0 for rank in range(RANKS)]
        self._waiting = RoundRobinScheduler()
        self._ranks: dict[str, int] = {}  # of all hosts, waiting or ready
        self._ready: list[deque[tuple[int, str]]] = [deque() for _ in range(RANKS)]
        self._tickets: dict[str, int] = {}  # the valid ticket of each ready host
        self._counts = [0] * RANKS
        self._number = 0

    def __contains__(self, host: str) -> bool:
        return host in self._ranks

    def put(self, host: str, time: float, weight: float, curiosity: float = 0.0) -> None:  # noqa: ARG002
        """Let a host be visited from `time` on, with the rank of its weight."""
        self.remove(host)
        self._ranks[host] = _rank(weight)
        self._waiting.put(host, time)

    def rerank(self, host: str, weight: float, curiosity: float = 0.0) -> None:  # noqa: ARG002
        """Give a waiting host the rank of its weight."""
        rank = _rank(weight)
        if host in self._tickets and self._ranks[host] != rank:
            self._counts[self._ranks[host]] -= 1
            self._admit(host, rank)
        elif host in self._ranks:
            self._ranks[host] = rank

    def remove(self, host: str) -> None:
        """Remove a host, if it waits."""
        rank = self._ranks.pop(host, None)
        if rank is not None and self._tickets.pop(host, None) is not None:
            self._counts[rank] -= 1
        self._waiting.remove(host)

    def resting(self, count: int) -> tuple[int, list[str]]:
        """Return the number of hosts that rest and some of those that return first."""
        return self._waiting.resting(count)

    def next_time(self) -> float | None:
        """Return the time at which a host may be visited, in the past if one is ready; None if none waits."""
        return float("-inf") if self._tickets else self._waiting.next_time()

    def take(self, now: float, *, curious: bool = False) -> str | None:  # noqa: ARG002
        """Remove and return a host of a rank that is drawn; None if none is ready."""
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
        if len(line) > 2 * self._counts[rank] + MAX_VOID_TICKETS:
            self._ready[rank] = deque(each for each in line if self._tickets.get(each[1]) == each[0])

    def _draw(self) -> int:
        """Draw a rank that some ready host has."""
        ranks = [rank for rank, count in enumerate(self._counts) if count]
        chances = [self._chances[rank] for rank in ranks]
        return self._random.choices(ranks, chances)[0] if any(chances) else ranks[0]


def _rank(weight: float) -> int:
    return min(max(round(-2 * log2(max(weight, 1e-9))), 0), RANKS - 1)


class PatientScheduler:
    """The best ready host is next, or none while a better one returns soon.

    Patience decides how much better: at 0 no host waits for another, at 1 every host waits that is worse than usual
    and worse than a host that returns soon. In between, hosts wait less the fewer good hosts are known, since there
    may be others.

    It pays off to wait for hosts that rest as long as all others do. A good host that asks for a far longer rest
    would hold up all others: with a delay of 0, and a Crawl-delay of 1 s at two of 60 hosts, a crawl of 500 pages
    took 41 s, of which 38 s were spent waiting for these two. So where hosts are usually away for less than a
    second, from their turn until they may have the next one, none is waited for longer than ten times as long.
    """

    RETURN_WINDOW_S = 30.0  # the longest time that is worth waiting
    RETURNS_PER_LOOK = 8  # after which the usual absence is determined again
    SHORT_ABSENCE_S = 1.0  # with a polite delay, hosts are away for longer
    WORTHY_ABSENCES = 10.0  # of short absences, as many are worth waiting
    MEMORY = 50  # turns after which earlier weights count for little
    MIN_GOOD_HOSTS = 5  # with that many good hosts, half of the patience applies

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._window = self.RETURN_WINDOW_S
        self._taken: dict[str, float] = {}  # when hosts had their turn, of all that have not come back
        self._absences: deque[float] = deque(maxlen=self.MEMORY)
        self._returns = 0
        self._waiting = RoundRobinScheduler()
        self._weights: dict[str, tuple[float, float]] = {}  # weight and curiosity of all waiting hosts
        self._ready: set[str] = set()
        self._best: list[tuple[float, str]] = []  # heap of ready hosts by weight; some entries are outdated
        self._newest: list[tuple[float, str]] = []  # heap of ready hosts by curiosity
        self._away: list[
            tuple[float, float, str]
        ] = []  # heap of resting hosts by weight, with the time of return
        self._back: dict[str, float] = {}  # expected time of return
        self._usual = 0.0  # mean weight of the last hosts taken
        self._lately: deque[str] = deque(maxlen=self.MEMORY)  # the last hosts taken
        self.waiting_for = 0.0  # the weight of a host that others have to wait for; 0 if there is none
        self._refused = False  # whether the last `take` returned none and nothing has changed since

    def __contains__(self, host: str) -> bool:
        return host in self._weights

    def put(self, host: str, time: float, weight: float, curiosity: float = 0.0) -> None:
        """Let a host be visited from `time` on."""
        self._ready.discard(host)
        self._refused = False
        self._weights[host] = weight, curiosity
        self._waiting.put(host, time)
        if (since := self._taken.pop(host, None)) is not None:
            self._learn_absence(time - since)
        self._expect(host, weight, time)

    def _learn_absence(self, seconds: float) -> None:
        self._absences.append(seconds)
        self._returns += 1
        if self._returns % self.RETURNS_PER_LOOK == 0:
            usual = sorted(self._absences)[len(self._absences) // 2]
            is_short = usual < self.SHORT_ABSENCE_S
            self._window = self.WORTHY_ABSENCES * usual if is_short else self.RETURN_WINDOW_S

    def _expect(self, host: str, weight: float, time: float) -> None:
        self._back[host] = time
        heapq.heappush(self._away, (-weight, time, host))

    def rerank(self, host: str, weight: float, curiosity: float = 0.0) -> None:
        """Change weight and curiosity of a waiting host."""
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
        """Remove a host, if it waits."""
        self._refused = False
        self._weights.pop(host, None)
        self._ready.discard(host)
        self._back.pop(host, None)
        self._taken.pop(host, None)
        self._waiting.remove(host)

    def resting(self, count: int) -> tuple[int, list[str]]:
        """Return the number of hosts that rest and some of those that return first."""
        return self._waiting.resting(count)

    def next_time(self) -> float | None:
        """Return when `take` may return a host, in the past if now; None if none waits."""
        if self._ready and not self._refused:
            return float("-inf")
        return self._waiting.next_time()

    def take(self, now: float, *, curious: bool = False) -> str | None:
        """Remove and return the best ready host; None if none is ready or a better one returns soon."""
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
        self._taken[chosen] = now
        self._expect(chosen, weight, now + self._window)
        return chosen

    def _insists(self) -> float:
        """Return the share of the usual weight that a host must have."""
        good = len(set(self._lately))
        return self._patience * good / (good + self.MIN_GOOD_HOSTS * (1.0 - self._patience)) if good else 0.0

    def _first(self, line: list[tuple[float, str]], measure: int) -> str | None:
        """Return the first ready host of a heap, dropping outdated entries."""
        while line:
            weight, host = line[0]
            if host in self._ready and self._weights[host][measure] == -weight:
                return host
            heapq.heappop(line)
        return None

    def _soon(self, now: float) -> float:
        """Return the weight of the best host that returns soon."""
        while self._away:
            weight, time, host = self._away[0]
            if (
                self._back.get(host) == time
                and now <= time <= now + self._window
                and (host not in self._weights or self._weights[host][0] == -weight)
            ):
                return -weight
            heapq.heappop(self._away)
            if time < now and self._back.get(host) == time:
                del self._back[host]
        return 0.0


def make_scheduler(policy: PolicySettings, random: Random) -> HostScheduler:
    """Return the order in which hosts take turns under a policy."""
    match policy.name:
        case "learned":
            return PatientScheduler(policy.patience)
        case "focus":
            return PatientScheduler(0.0)
        case "random":
            return RankedScheduler(random, inf)
        case "host-yield" | "heidix":
            return RankedScheduler(random, policy.temperature)
        case _:
            return RoundRobinScheduler()
