"""URLs that wait outside the frontier, for a later cycle: on disk, in the order in which they came.

Nothing of it is in memory, so looking for the best ones takes a pass over all. What is put in and taken out joins
the next commit; a pass sees what was committed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import Struct

from thresher.crawl.frontier import HOSTS, QUEUE, decode_host
from thresher.crawl.state import State, after
from thresher.page import Candidate
from thresher.url import domain as domain_of
from thresher.url import host as host_of

WAITS = b"w"  # w sequence -> Candidate
COUNTS = b"m/stash"
PORTION = 10_000  # entries that are moved with one commit

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Candidate).decode

Entry = tuple[bytes, Candidate]


class Counts(Struct, array_like=True):
    """How much there is."""

    next: int = 0  # sequence
    waiting: int = 0
    closed: int = 0  # of these, of hosts that were closed at the last look
    given_up: int = 0  # URLs that were queued and never will be again


class Choice(Struct, frozen=True):
    """What a look at the stash found."""

    best: list[Entry]
    resting: int  # URLs of hosts that are not to be visited for long


class Stash:
    """Candidates beside the frontier."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.counts = msgspec.msgpack.decode(state.get(COUNTS) or _encode(Counts()), type=Counts)

    def __len__(self) -> int:
        return self.counts.waiting

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Keep URLs that are queued nowhere else."""
        for candidate in candidates:
            self._put(_encode(candidate))

    def _put(self, candidate: bytes) -> None:
        self._state.put(WAITS + self.counts.next.to_bytes(8, "big"), candidate)
        self.counts.next += 1
        self.counts.waiting += 1

    def remove(self, entries: Sequence[Entry]) -> None:
        """Take URLs out."""
        for key, _ in entries:
            self._state.delete(key)
        self.counts.waiting -= len(entries)
        self.counts.closed = min(self.counts.closed, self.counts.waiting)

    def entries(self) -> Iterator[list[Entry]]:
        """All that waits, in order and in portions, between which commits may be made."""
        for portion in portions(self._state, WAITS):
            yield [(key, _decode(value)) for key, value in portion]

    def choose(
        self,
        count: int,
        of_domain: int,
        weigh: Callable[[Sequence[Candidate]], Sequence[float]],
        standing: Callable[[str], str],
    ) -> Choice:
        """The best so many URLs by weight, at most so many of one domain (0: no limit), of hosts that are "open".

        `standing` tells of a host whether it is that, "closed", or "resting".
        """
        best = Best(count, of_domain)
        standings: dict[str, str] = {}
        away = {"closed": 0, "resting": 0}
        for portion in self.entries():
            eligible: list[Entry] = []
            for entry in portion:
                host = host_of(entry[1].url)
                if host not in standings:
                    standings[host] = standing(host)
                if standings[host] == "open":
                    eligible.append(entry)
                else:
                    away[standings[host]] += 1
            weights = weigh([candidate for _, candidate in eligible])
            for entry, weight in zip(eligible, weights, strict=True):
                best.add(weight, entry)
        self.counts.closed = away["closed"]
        return Choice(best.all(), away["resting"])

    def give_up_all_but(self, chosen: Sequence[Entry]) -> None:
        """Take out all others, for good. Commits as it goes; to be repeated after a crash."""
        kept = {key for key, _ in chosen}
        for portion in portions(self._state, WAITS):
            others = [key for key, _ in portion if key not in kept]
            for key in others:
                self._state.delete(key)
            self.counts.waiting -= len(others)
            self.counts.given_up += len(others)
            self._commit()
        self.counts.closed = 0

    def withdraw(self, wanted: Callable[[Candidate], bool]) -> None:
        """Empty the queues of a frontier that nobody has open: what is wanted goes here, the rest is given up.

        Commits as it goes: until it has come to its end the frontier must not be opened, and after a crash it is to
        be repeated.
        """
        for portion in portions(self._state, QUEUE):
            for key, candidate in portion:
                if wanted(_decode(candidate)):
                    self._put(candidate)
                else:
                    self.counts.given_up += 1
                self._state.delete(key)
            self._commit()
        for portion in portions(self._state, HOSTS):
            for key, record in portion:
                number, _, _ = decode_host(record)
                self._state.put(key, _encode((number, 0, 0)))
            self._commit()

    def flush(self) -> None:
        """Hand the counts to the state's next commit."""
        self._state.put(COUNTS, _encode(self.counts))

    def _commit(self) -> None:
        self.flush()
        self._state.commit()


class Best:
    """The best entries of many, of equal ones the first, and at most so many of one domain (0: no limit).

    There are never more than twice as many in memory as are asked for: the worst of the best so far only gets
    better, so what is below it can be forgotten.
    """

    def __init__(self, count: int, of_domain: int) -> None:
        self._count = count
        self._of_domain = of_domain
        self._domains: dict[str, list[tuple[float, int, Entry]]] = {}  # heaps, the worst first
        self.held = 0  # entries in memory
        self._number = 0
        self._floor = (float("-inf"), 0)

    def add(self, weight: float, entry: Entry) -> None:
        self._number -= 1
        if (weight, self._number) <= self._floor:
            return
        heap = self._heap(entry)
        ranked = (weight, self._number, entry)
        if len(heap) >= (self._of_domain or self._count):
            heapq.heappushpop(heap, ranked)
            return
        heapq.heappush(heap, ranked)
        self.held += 1
        if self.held > 2 * self._count:
            self._forget()

    def _forget(self) -> None:
        best = self._sorted()
        self._floor = best[-1][:2]
        self.held = len(best)
        self._domains = {}
        for ranked in reversed(best):  # the worst first: each list is a heap as it is
            self._heap(ranked[2]).append(ranked)

    def _heap(self, entry: Entry) -> list[tuple[float, int, Entry]]:
        domain = domain_of(host_of(entry[1].url)) if self._of_domain else ""
        return self._domains.setdefault(domain, [])

    def _sorted(self) -> list[tuple[float, int, Entry]]:
        """The best of all domains, the best first."""
        every = (ranked for heap in self._domains.values() for ranked in heap)
        return heapq.nlargest(self._count, every)

    def all(self) -> list[Entry]:
        """What was asked for, the best first."""
        return [entry for _, _, entry in self._sorted()]


def portions(state: State, prefix: bytes) -> Iterator[list[tuple[bytes, bytes]]]:
    """Committed entries under a prefix; what is committed while they are looked at does not change them."""
    entries = state.committed(prefix, after(prefix))
    while portion := list(islice(entries, PORTION)):
        yield portion
