"""Cyclic selection (HeidiX, experiment 2; H13): a crawl in phases against one without a break.

After each phase the frontier is emptied, and the next one begins with the best URLs that were harvested: from pages
of low Badness, from blocks that are likely text. No URL is fetched twice. Both crawls are on paper, breadth first
with hosts in turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from msgspec import Struct

from thresher.config import ConfigError, Cycles
from thresher.crawl.cycles import good_places
from thresher.lab.experiments.evidence import Evidence, Flags, Numbers
from thresher.lab.experiments.figures import Fit, Portion, fit, portion, portions, snapshots
from thresher.lab.plot import Axis, Chart, Series, draw

PHASES, MOST_PHASES = 5, 1_000
BURN_IN = 0.1  # size of the first phase, in others
BADNESS, BOILERPLATE = Cycles().max_badness, Cycles().max_boilerplate  # the paper's bounds
OF_ALL = 0.5  # of the record that is crawled: with nothing left out, both crawls would end alike
SNAPSHOTS = 50
ENOUGH = 5  # snapshots of a phase that tell how its yield declines


class Phase(Struct, frozen=True):
    """One phase, beside the same stretch of the crawl without a break."""

    seeds: int
    cyclic: Portion
    unbroken: Portion | None  # None: that crawl had come to its end
    decline: Fit | None  # of the yield of documents, by snapshots


class CyclicSelection(Struct, frozen=True):
    """Both crawls as a whole, by phases and by snapshots."""

    badness: float
    boilerplate: float
    wanted: int  # phases; there are fewer where nothing good was left to begin from
    every: int  # bytes of a snapshot
    phases: list[Phase]
    cyclic: Portion
    unbroken: Portion
    cyclic_snapshots: list[Portion]
    unbroken_snapshots: list[Portion]


class _Walk:
    """A crawl on paper that can be halted, and begun anew from other URLs. Hosts take turns, as on the web."""

    def __init__(self, evidence: Evidence) -> None:
        self._record = evidence.record
        self._hosts: set[str] = set()  # that were ever visited
        self.fetched = np.zeros(len(evidence.record.urls), np.bool_)
        self.visited: list[int] = []

    def phase(self, start: Sequence[int], budget: int) -> list[int]:
        """Fetch, breadth first from these URLs, until so many bytes are downloaded or nothing is left."""
        queued: set[int] = set()
        queues: dict[str, deque[int]] = {}  # those in front have waited longest
        visited: list[int] = []
        found: Iterable[int] = start
        while budget > 0:
            for number in found:
                if number not in queued and not self.fetched[number]:
                    queued.add(number)
                    queues.setdefault(self._record.hosts[number], deque()).append(number)
            if not queues:
                break
            host = next(iter(queues))
            queue = queues.pop(host)
            number = queue.popleft()
            if queue:
                queues[host] = queue
            self.fetched[number] = True
            visited.append(number)
            budget -= int(self._record.bytes[number])
            found = self._found(number)
        self.visited += visited
        return visited

    def _found(self, number: int) -> Iterable[int]:
        host = self._record.hosts[number]
        told: list[int] = [] if host in self._hosts else self._record.sitemaps.get(host, [])
        self._hosts.add(host)
        return chain(self._record.links(number).tolist(), told)


def run(
    evidence: Evidence,
    *,
    phases: int = PHASES,
    max_bytes: int = 0,
    badness: float = BADNESS,
    boilerplate: float = BOILERPLATE,
) -> CyclicSelection:
    """A crawl in phases and one without a break, from the seeds of the crawl and of the same size."""
    if not 2 <= phases <= MOST_PHASES:
        raise ConfigError(f"--phases {phases} is no number from 2 to {MOST_PHASES}; try {PHASES}")
    evidence.need_links()
    total = max_bytes or int(OF_ALL * int(evidence.record.bytes.sum()))
    seeds = evidence.need_seeds()
    walk, begun, ends = _Walk(evidence), [], []
    start: Sequence[int] = seeds
    for size in _sizes(total, phases):
        if not start:
            break
        begun.append(len(start))
        visited = walk.phase(start, size)
        ends.append(len(walk.visited))
        start = _best(evidence, visited, walk.fetched, badness, boilerplate)
    unbroken = _Walk(evidence)
    downloaded = int(evidence.record.bytes[walk.visited].sum())
    unbroken.phase(seeds, downloaded)
    return _result(evidence, walk.visited, unbroken.visited, begun, ends, (badness, boilerplate, phases))


def _sizes(total: int, phases: int) -> list[int]:
    """A short phase to begin with, then equal ones."""
    first = total * BURN_IN / (BURN_IN + phases - 1)
    return [max(1, int(first))] + [max(1, int((total - first) / (phases - 1)))] * (phases - 1)


def _best(
    evidence: Evidence, visited: Sequence[int], fetched: Flags, badness: float, boilerplate: float
) -> list[int]:
    """The URLs harvested in good places of good pages and never fetched, in the order in which they were found."""
    record = evidence.record
    found: dict[int, None] = {}
    for number in visited:
        place = slice(record.starts[number], record.starts[number + 1])
        good = good_places(record.badness[number], record.boilerplate[place], badness, boilerplate)
        if len(good):
            targets = record.targets[place][good]
            found |= dict.fromkeys(targets[~fetched[targets]].tolist())
    return list(found)


def _result(
    evidence: Evidence,
    cyclic: list[int],
    unbroken: list[int],
    begun: list[int],
    ends: list[int],
    terms: tuple[float, float, int],
) -> CyclicSelection:
    crawl, other = (evidence.visits(np.array(visited, np.int64)) for visited in (cyclic, unbroken))
    every = max(1, int(crawl.bytes.sum()) // SNAPSHOTS)
    marks = crawl.bytes.cumsum()[np.array(ends) - 1]  # bytes at which phases end
    parts = portions(crawl, np.searchsorted(ends, np.arange(len(cyclic)), side="right"))
    begins = other.bytes.cumsum() - other.bytes
    beside = portions(other, np.searchsorted(marks, begins, side="right").clip(max=len(ends) - 1))
    curve = snapshots(crawl, every)
    return CyclicSelection(
        *terms,
        every,
        [
            Phase(begun[number], part, beside.get(number), _decline(curve, marks, number))
            for number, part in parts.items()
        ],
        portion(crawl),
        portion(other),
        curve,
        snapshots(other, every),
    )


def _decline(curve: Sequence[Portion], marks: Numbers, number: int) -> Fit | None:
    start = int(marks[number - 1]) if number else 0
    inside = [one for one in curve if start < one.downloaded <= marks[number]]
    if len(inside) < ENOUGH:
        return None
    return fit([one.downloaded for one in inside], [one.document_yield for one in inside])


def picture(result: CyclicSelection) -> str:
    """The yield of documents over both crawls; rules where phases end."""
    marks = [phase.cyclic.downloaded for phase in result.phases[:-1]]
    lines = [
        _line("cyclic selection", result.cyclic_snapshots),
        _line("without a break", result.unbroken_snapshots),
    ]
    top = max(max(map(float, line.y), default=0.0) for line in lines)
    rules = [Series("a new phase", [mark] * 3, [0.0, top, 2 * top], "rule") for mark in marks]
    chart = Chart(
        "Yield of documents over the crawl",
        Axis("downloaded", "bytes", reach=(0.0,)),
        Axis("documents kept, of those crawled", "share", reach=(0.0,)),
        [*lines, *rules],
    )
    return draw([chart])


def _line(name: str, curve: Sequence[Portion]) -> Series:
    return Series(name, [one.downloaded for one in curve], [one.document_yield for one in curve])
