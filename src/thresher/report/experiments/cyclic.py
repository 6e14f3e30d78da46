"""Cyclic selection (HeidiX, experiment 2): a crawl in phases compared with one without a break.

After each phase the frontier is emptied, and the next phase begins with the best URLs that were found: links from
pages of low Badness, in blocks that are likely text. No URL is fetched twice. Both crawls are simulated, breadth
first with hosts in rotation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from thresher.config import CycleSettings, PolicySettings
from thresher.crawler.frontier.cycles import good_places
from thresher.errors import UsageError
from thresher.report.experiments.evidence import Evidence, Numbers
from thresher.report.experiments.figures import CrawlPortion, Fit, fit, portion, portions, snapshots
from thresher.report.plot import Axis, Chart, Series, draw
from thresher.simulation.simulate import Simulation, SimulationTerms

PHASES, MAX_PHASES = 5, 1_000
FIRST_PHASE = 0.1  # size of the first phase relative to the others
BADNESS, BOILERPLATE = CycleSettings().max_badness, CycleSettings().max_boilerplate  # the paper's bounds
CRAWLED_SHARE = 0.5  # of the bytes on record: if everything was fetched, both crawls would end alike
SNAPSHOTS = 50
MIN_SNAPSHOTS = 5  # of a phase, for a fit of its decline
BFS = PolicySettings(name="bfs")


class Phase(Struct, frozen=True):
    """One phase, beside the same part of the crawl without a break."""

    seeds: int
    cyclic: CrawlPortion
    unbroken: CrawlPortion | None  # None: that crawl had ended
    decline: Fit | None  # of the document yield over its snapshots


class CyclicSelection(Struct, frozen=True):
    """Both crawls as a whole, by phases and by snapshots."""

    badness: float
    boilerplate: float
    wanted: int  # phases; there are fewer if no good URL was left to begin with
    every: int  # bytes of a snapshot
    phases: list[Phase]
    cyclic: CrawlPortion
    unbroken: CrawlPortion
    cyclic_snapshots: list[CrawlPortion]
    unbroken_snapshots: list[CrawlPortion]


def run(
    evidence: Evidence,
    *,
    phases: int = PHASES,
    max_bytes: int = 0,
    badness: float = BADNESS,
    boilerplate: float = BOILERPLATE,
) -> CyclicSelection:
    """Simulate a crawl in phases and one without a break, from the seeds of the record and of the same size.

    Parameters
    ----------
    evidence
        The recorded crawl.
    phases
        Phases; the first is a tenth of the size of the others.
    max_bytes
        Bytes that each crawl downloads; half of the record by default.
    badness
        Maximum Badness of a page with links that a phase may begin with.
    boilerplate
        Boilerplate score of their blocks, exclusive maximum.
    """
    if not 2 <= phases <= MAX_PHASES:
        raise UsageError(f"--phases must be from 2 to {MAX_PHASES}, got {phases}; for example {PHASES}")
    evidence.need_links()
    total = max_bytes or int(CRAWLED_SHARE * int(evidence.record.bytes.sum()))
    seeds = evidence.need_seeds()
    terms = SimulationTerms(latency=0.0)
    simulation, begun, ends = Simulation(evidence.record, BFS, terms), [], []
    visited = np.zeros(0, np.int64)
    start: Sequence[int] = seeds
    for size in _sizes(total, phases):
        if not start:
            break
        begun.append(len(start))
        simulation.restart()
        before, visited = len(visited), simulation.run(start, size).visited
        ends.append(len(visited))
        start = _best(evidence, visited[before:], visited, badness, boilerplate)
    downloaded = int(evidence.record.bytes[visited].sum())
    unbroken = Simulation(evidence.record, BFS, terms).run(seeds, downloaded).visited
    return _result(evidence, visited, unbroken, begun, ends, (badness, boilerplate, phases))


def _sizes(total: int, phases: int) -> list[int]:
    """Return the bytes of each phase: a short first one, then equal ones."""
    first = total * FIRST_PHASE / (FIRST_PHASE + phases - 1)
    return [max(1, int(first))] + [max(1, int((total - first) / (phases - 1)))] * (phases - 1)


def _best(
    evidence: Evidence, visited: Numbers, fetched: Numbers, badness: float, boilerplate: float
) -> list[int]:
    """Return URLs that good blocks of good pages link to and that were never fetched, in the order of discovery."""
    record = evidence.record
    is_fetched = np.zeros(len(record.urls), np.bool_)
    is_fetched[fetched] = True
    found: dict[int, None] = {}
    for number in visited.tolist():
        place = slice(record.starts[number], record.starts[number + 1])
        good = good_places(record.badness[number], record.boilerplate[place], badness, boilerplate)
        if len(good):
            targets = record.targets[place][good]
            found |= dict.fromkeys(targets[~is_fetched[targets]].tolist())
    return list(found)


def _result(
    evidence: Evidence,
    cyclic: Numbers,
    unbroken: Numbers,
    begun: list[int],
    ends: list[int],
    terms: tuple[float, float, int],
) -> CyclicSelection:
    crawl, other = (evidence.visits(visited) for visited in (cyclic, unbroken))
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


def _decline(curve: Sequence[CrawlPortion], marks: Numbers, number: int) -> Fit | None:
    start = int(marks[number - 1]) if number else 0
    inside = [one for one in curve if start < one.downloaded <= marks[number]]
    if len(inside) < MIN_SNAPSHOTS:
        return None
    return fit([one.downloaded for one in inside], [one.document_yield for one in inside])


def picture(result: CyclicSelection) -> str:
    """Draw the document yield over both crawls, with rules at the ends of phases."""
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
        Axis("documents kept per document crawled", "share", reach=(0.0,)),
        [*lines, *rules],
    )
    return draw([chart])


def _line(name: str, curve: Sequence[CrawlPortion]) -> Series:
    return Series(name, [one.downloaded for one in curve], [one.document_yield for one in curve])
