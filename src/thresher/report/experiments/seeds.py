"""Quality of seeds and quality of crawls (HeidiX, experiment 1: adjusted R² = 0.78 between document yields).

If a crawl has many seeds, each page is counted for the seed from which it was found. If it has few, many small
crawls of equal size are simulated, each from a few random pages of the record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal

import numpy as np
from msgspec import Struct

from thresher.config import PolicySettings
from thresher.errors import UsageError
from thresher.report.experiments.evidence import NO_PARENT, Evidence, Numbers
from thresher.report.experiments.figures import CrawlPortion, Fit, VisitSeries, fit, portion, ratio
from thresher.report.plot import Axis, Chart, Series, draw
from thresher.simulation.simulate import SimulationTerms, simulate

MIN_SEEDS = 20  # with at least MIN_DOCUMENTS each; with fewer seeds, crawls are simulated
MIN_DOCUMENTS = 20  # of a crawl that has a yield
CRAWLS, MAX_CRAWLS = 40, 10_000
GROUP = 5  # seeds of a simulated crawl
PAPER_R2 = 0.7831  # adjusted R² between document yields in the paper

Way = Literal["found", "replayed"]


class Seeding(Struct, frozen=True):
    """Seeds, and the crawl that grew from them, without the seeds."""

    seeds: list[str]
    seed_document_yield: float
    seed_byte_yield: float
    seed_badness: float | None  # mean of the seeds with a known one
    crawl: CrawlPortion


class Relation(Struct, frozen=True):
    """The fit between a measure of seeds and a measure of crawls; None if the former does not vary."""

    seeds: str
    crawl: str
    fit: Fit | None


class SeedQuality(Struct, frozen=True):
    """Measures of seeds against measures of crawls."""

    way: Way
    crawls: list[Seeding]
    too_small: int  # crawls with fewer than MIN_DOCUMENTS
    relations: list[Relation]


def run(
    evidence: Evidence, *, crawls: int = 0, group: int = GROUP, max_bytes: int = 0, seed: int = 1
) -> SeedQuality:
    """Compare seeds with the crawls that grew from them; simulate crawls if `crawls` is given or seeds are few."""
    for option, value, least in (("--crawls", crawls, 0), ("--group", group, 1)):
        if not least <= value <= MAX_CRAWLS:
            raise UsageError(f"{option} must be from {least} to {MAX_CRAWLS:,}, got {value}")
    measured = [] if crawls else list(_found(evidence))
    good = [seed_crawl for seed_crawl in measured if seed_crawl.crawl.documents >= MIN_DOCUMENTS]
    way: Way = "found"
    if len(good) < MIN_SEEDS:
        way = "replayed"
        count = crawls or CRAWLS
        limit = max_bytes or _size(evidence, count)
        measured = list(_replayed(evidence, count, group, limit, Random(seed)))
        good = [seed_crawl for seed_crawl in measured if seed_crawl.crawl.documents >= MIN_DOCUMENTS]
    if not good:
        raise UsageError(
            f"{evidence.directory} is too small: no seed leads to {MIN_DOCUMENTS} documents; continue the crawl, "
            "or make the simulated crawls larger with --max-bytes"
        )
    return SeedQuality(way, good, len(measured) - len(good), list(_relations(good)))


def _size(evidence: Evidence, crawls: int) -> int:
    """Return the bytes of each simulated crawl: its share of the record, but at least enough documents."""
    total, documents = int(evidence.record.bytes.sum()), int(evidence.documents.sum())
    return math.ceil(total * max(1 / crawls, 3 * MIN_DOCUMENTS / max(documents, 1)))


def _relations(crawls: Sequence[Seeding]) -> Iterator[Relation]:
    for seeds, crawl, of_seeds, of_crawl in (
        ("document yield", "document yield", "seed_document_yield", "document_yield"),
        ("byte yield", "byte yield", "seed_byte_yield", "byte_yield"),
        ("Badness", "document yield", "seed_badness", "document_yield"),
    ):
        known = [one for one in crawls if getattr(one, of_seeds) is not None]
        x = [getattr(one, of_seeds) for one in known]
        yield Relation(seeds, crawl, fit(x, [getattr(one.crawl, of_crawl) for one in known]))


def _found(evidence: Evidence) -> Iterator[Seeding]:
    """Yield every seed with all pages that were found from it."""
    roots = _roots(evidence)
    order = np.argsort(roots, kind="stable")
    for number in evidence.need_seeds():
        start, end = np.searchsorted(roots[order], [number, number + 1])
        visited = order[start:end]
        yield _seeding(evidence, [number], visited, evidence.gained[visited])


def _roots(evidence: Evidence) -> Numbers:
    """Return the seed from which each URL was found; URLs of a robots.txt belong to the first page of its host."""
    roots = np.full(len(evidence.parents), NO_PARENT, np.int64)
    of_host: dict[str, int] = {}
    columns = (evidence.parents.tolist(), evidence.depths.tolist(), evidence.record.hosts)
    for number, (parent, depth, host) in enumerate(zip(*columns, strict=True)):
        if 0 <= parent < number:
            roots[number] = roots[parent]
        elif parent == NO_PARENT:
            roots[number] = number if depth == 0 else of_host.get(host, NO_PARENT)
        of_host.setdefault(host, int(roots[number]))
    return roots


def _replayed(evidence: Evidence, count: int, group: int, limit: int, chance: Random) -> Iterator[Seeding]:
    """Yield simulated breadth-first crawls, each from a few random pages with links."""
    evidence.need_links()
    record = evidence.record
    leading = np.flatnonzero(evidence.documents & (np.diff(record.starts) > 0)).tolist()
    if len(leading) < group:
        raise UsageError(
            f"{evidence.directory} has {len(leading)} pages that lead to others, fewer than --group {group}; "
            "choose a smaller group or continue the crawl"
        )
    for _ in range(count):
        seeds = chance.sample(leading, group)
        visited = simulate(record, PolicySettings(name="bfs"), seeds, SimulationTerms(bytes=limit)).visited
        yield _seeding(evidence, seeds, visited, record.gains(visited))


def _seeding(evidence: Evidence, seeds: list[int], visited: Numbers, gained: Numbers) -> Seeding:
    record = evidence.record
    pages = sorted({evidence.landing(number) for number in seeds})
    badness = record.badness[pages][~np.isnan(record.badness[pages])]
    crawled = ~np.isin(visited, [*seeds, *pages])
    numbers = visited[crawled]
    return Seeding(
        seeds=[record.urls[number] for number in seeds],
        seed_document_yield=float((record.worth[pages] > 0).mean()),
        seed_byte_yield=ratio(record.worth[pages].sum(), record.bytes[pages].sum()),
        seed_badness=float(badness.mean()) if len(badness) else None,
        crawl=portion(VisitSeries(record.bytes[numbers], evidence.documents[numbers], gained[crawled])),
    )


def picture(result: SeedQuality) -> str:
    """Draw crawls as points with fitted lines: by both yields, and by Badness."""
    documents, bytes_, badness = result.relations
    with_badness = [seed_crawl for seed_crawl in result.crawls if seed_crawl.seed_badness is not None]
    kept = Axis("documents kept, of the crawl", "share", reach=(0.0,))
    text = Axis("text kept, of the crawl", "share", reach=(0.0,))
    of_crawls = [seed_crawl.crawl.document_yield for seed_crawl in result.crawls]
    return draw(
        [
            Chart(
                "Documents: the crawl against its seeds",
                Axis("documents kept, of the seeds", "share", reach=(0.0, 1.0)),
                kept,
                _series(
                    [seed_crawl.seed_document_yield for seed_crawl in result.crawls], of_crawls, documents.fit
                ),
            ),
            Chart(
                "Bytes: the crawl against its seeds",
                Axis("text kept, of the seeds", "share", reach=(0.0,)),
                text,
                _series(
                    [seed_crawl.seed_byte_yield for seed_crawl in result.crawls],
                    [seed_crawl.crawl.byte_yield for seed_crawl in result.crawls],
                    bytes_.fit,
                ),
            ),
            Chart(
                "The crawl against the Badness of its seeds",
                Axis("Badness of the seeds, on average", reach=(0.0,)),
                kept,
                _series(
                    [seed_crawl.seed_badness or 0.0 for seed_crawl in with_badness],
                    [seed_crawl.crawl.document_yield for seed_crawl in with_badness],
                    badness.fit,
                ),
            ),
        ]
    )


def _series(x: list[float], y: list[float], line: Fit | None) -> list[Series]:
    """Return the points, and the fitted line where it is not negative."""
    points = Series(f"{len(x)} crawls", x, y, "points")
    if line is None:
        return [points]
    along = np.linspace(min(x), max(x), 100)
    heights = line.intercept + line.slope * along
    formula = f"{line.intercept:.3f} {'−' if line.slope < 0 else '+'} {abs(line.slope):.3f} x"
    name = f"{formula}, R² = {line.r2:.2f} (adjusted {line.adjusted_r2:.2f})"
    return [points, Series(name, along[heights >= 0], heights[heights >= 0])]
