"""URLs that wait on disk for a later cycle, in the order in which they were found.

None of them is in memory, so the best ones are found by a pass over all. Changes join the next commit; a pass sees
committed entries.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thresher.crawler.frontier import stored_queue
from thresher.crawler.storage.keys import BACKLOG, BACKLOG_COUNTS
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate
from thresher.urls import domain as domain_of
from thresher.urls import host as host_of

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Candidate).decode

Entry = tuple[bytes, Candidate]


class BacklogCounts(Struct, array_like=True):
    """Counts of the backlog."""

    next: int = 0  # sequence number
    waiting: int = 0
    closed: int = 0  # waiting URLs of hosts that were closed at the last choice
    given_up: int = 0  # URLs that were queued once and never will be again


class BacklogChoice(Struct, frozen=True):
    """The result of a choice from the backlog."""

    best: list[Entry]
    resting: int  # URLs of hosts that asked for a long rest


class Backlog:
    """Candidates that wait outside the frontier."""

    def __init__(self, state: KeyValueState) -> None:
        self._state = state
        self.counts = _read_counts(state)

    def __len__(self) -> int:
        return self.counts.waiting

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Add candidates that are queued nowhere else."""
        for candidate in candidates:
            self._put(_encode(candidate))

    def _put(self, candidate: bytes) -> None:
        self._state.put(BACKLOG + self.counts.next.to_bytes(8, "big"), candidate)
        self.counts.next += 1
        self.counts.waiting += 1

    def take_out(self, entries: Sequence[Entry]) -> None:
        """Delete entries that are queued elsewhere from now on."""
        for key, _ in entries:
            self._state.delete(key)
        self.counts.waiting -= len(entries)
        self.counts.closed = min(self.counts.closed, self.counts.waiting)

    def entries(self) -> Iterator[list[Entry]]:
        """Yield all entries in order and in portions; commits may be made in between."""
        for portion in self._state.portions(BACKLOG):
            yield [(key, _decode(value)) for key, value in portion]

    def choose(
        self,
        count: int,
        of_domain: int,
        weigh: Callable[[Sequence[Candidate]], Sequence[float]],
        standing: Callable[[str], str],
    ) -> BacklogChoice:
        """Return the `count` best URLs by weight, at most `of_domain` per domain (0 is no limit), of open hosts.

        `standing` returns "open", "closed" or "resting" for a host.
        """
        best = BestUrls(count, of_domain)
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
        return BacklogChoice(best.all(), away["resting"])

    def discard_all_but(self, chosen: Sequence[Entry]) -> None:
        """Delete all other entries for good. Commits as it goes; repeat it after a crash."""
        kept = {key for key, _ in chosen}
        for portion in self._state.portions(BACKLOG):
            others = [key for key, _ in portion if key not in kept]
            for key in others:
                self._state.delete(key)
            self.counts.waiting -= len(others)
            self.counts.given_up += len(others)
            self._commit()
        self.counts.closed = 0

    def drain_frontier(self, wanted: Callable[[Candidate], bool]) -> None:
        """Empty the frontier: wanted candidates move to the backlog, all others are given up.

        Commits as it goes. No frontier may be open on the state before this is complete; repeat it after a crash.
        """
        for portion in stored_queue.drain(self._state):
            for candidate in portion:
                if wanted(candidate):
                    self._put(_encode(candidate))
                else:
                    self.counts.given_up += 1
            self._commit()

    def flush(self) -> None:
        """Put the counts into the state's next commit."""
        _write_counts(self._state, self.counts)

    def _commit(self) -> None:
        self.flush()
        self._state.commit()


class BestUrls:
    """The best of many entries, the first of equal ones, at most `of_domain` per domain (0 is no limit).

    At most twice as many entries as requested are in memory: the worst of the best only gets better, so entries
    below it can be dropped.
    """

    def __init__(self, count: int, of_domain: int) -> None:
        self._count = count
        self._of_domain = of_domain
        self._domains: dict[str, list[tuple[float, int, Entry]]] = {}  # heaps with the worst entry first
        self.held = 0  # entries in memory
        self._number = 0
        self._floor = (float("-inf"), 0)

    def add(self, weight: float, entry: Entry) -> None:
        """Consider an entry."""
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
        for ranked in reversed(best):  # in rising order, each list is a heap
            self._heap(ranked[2]).append(ranked)

    def _heap(self, entry: Entry) -> list[tuple[float, int, Entry]]:
        domain = domain_of(host_of(entry[1].url)) if self._of_domain else ""
        return self._domains.setdefault(domain, [])

    def _sorted(self) -> list[tuple[float, int, Entry]]:
        """Return the best entries of all domains, the best first."""
        every = (ranked for heap in self._domains.values() for ranked in heap)
        return heapq.nlargest(self._count, every)

    def all(self) -> list[Entry]:
        """Return the chosen entries, the best first."""
        return [entry for _, _, entry in self._sorted()]


def candidates(state: KeyValueState) -> Iterator[Candidate]:
    """Yield all candidates of the backlog as of the last commit."""
    for _, value in state.entries(BACKLOG):
        yield _decode(value)


def remove(state: KeyValueState, covers: Callable[[str], bool]) -> None:
    """Remove candidates with covered URLs, and covered URLs of sources. Commits as it goes."""
    counts = _read_counts(state)
    for portion in state.portions(BACKLOG):
        for key, value in portion:
            candidate = _decode(value)
            if covers(candidate.url):
                state.delete(key)
                counts.waiting -= 1
                counts.closed = min(counts.closed, counts.waiting)
            elif covers(candidate.source):
                state.put(key, _encode(replace(candidate, source="")))
        _write_counts(state, counts)
        state.commit()


def _read_counts(state: KeyValueState) -> BacklogCounts:
    stored = state.get(BACKLOG_COUNTS)
    return msgspec.msgpack.decode(stored, type=BacklogCounts) if stored else BacklogCounts()


def _write_counts(state: KeyValueState, counts: BacklogCounts) -> None:
    state.put(BACKLOG_COUNTS, _encode(counts))
