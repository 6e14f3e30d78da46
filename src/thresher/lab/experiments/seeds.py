"""Do good seeds make a good crawl? (HeidiX, experiment 1; there, adjusted R² = 0.78 between yields of documents.)

Where a crawl has many seeds, each page is counted for the seed that it was found from. Where it has few, many small
crawls are made on paper, each from a few random pages of the record, all of the same size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal

import numpy as np
from msgspec import Struct

from thresher.config import ConfigError, Policy
from thresher.lab.experiments.evidence import NOBODY, Evidence, Numbers, gains
from thresher.lab.experiments.figures import Fit, Portion, Visits, fit, portion, ratio
from thresher.lab.plot import Axis, Chart, Series, draw
from thresher.lab.simulate import Terms, simulate

ENOUGH_SEEDS = 20  # of which at least …
ENOUGH_DOCUMENTS = 20  # … so many documents were found
CRAWLS, MANY = 40, 10_000
GROUP = 5  # seeds of a crawl on paper
PAPER_R2 = 0.7831

Way = Literal["found", "replayed"]


class Seeding(Struct, frozen=True):
    """Seeds, and the crawl that grew from them; they are no part of it."""

    seeds: list[str]
    seed_document_yield: float
    seed_byte_yield: float
    seed_badness: float | None  # on average, of those where it is known
    crawl: Portion


class Relation(Struct, frozen=True):
    """How well one figure of the seeds tells one of the crawl; no fit where there is no variety."""

    seeds: str
    crawl: str
    fit: Fit | None


class SeedQuality(Struct, frozen=True):
    """Seeds against crawls."""

    way: Way
    crawls: list[Seeding]
    too_small: int  # crawls of too few documents to have a yield
    relations: list[Relation]


def run(
    evidence: Evidence, *, crawls: int = 0, group: int = GROUP, max_bytes: int = 0, seed: int = 1
) -> SeedQuality:
    """Seeds against the crawls that grew from them: replayed if asked for, or if seeds are few."""
    for option, value, least in (("--crawls", crawls, 0), ("--group", group, 1)):
        if not least <= value <= MANY:
            raise ConfigError(f"{option} {value} is no number from {least} to {MANY:,}")
    found = [] if crawls else list(_found(evidence))
    good = [one for one in found if one.crawl.documents >= ENOUGH_DOCUMENTS]
    way: Way = "found"
    if len(good) < ENOUGH_SEEDS:
        way = "replayed"
        count = crawls or CRAWLS
        limit = max_bytes or _size(evidence, count)
        found = list(_replayed(evidence, count, group, limit, Random(seed)))
        good = [one for one in found if one.crawl.documents >= ENOUGH_DOCUMENTS]
    if not good:
        raise ConfigError(
            f"{evidence.directory} is too small: no seed leads to {ENOUGH_DOCUMENTS} documents; crawl on, "
            "or let the crawls on paper be larger with --max-bytes"
        )
    return SeedQuality(way, good, len(found) - len(good), list(_relations(good)))


def _size(evidence: Evidence, crawls: int) -> int:
    """Bytes of each crawl on paper: its share of the record, but documents enough in any case."""
    total, documents = int(evidence.record.bytes.sum()), int(evidence.documents.sum())
    return math.ceil(total * max(1 / crawls, 3 * ENOUGH_DOCUMENTS / max(documents, 1)))


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
    """Every seed with all that was found from it."""
    roots = _roots(evidence)
    order = np.argsort(roots, kind="stable")
    for number in evidence.need_seeds():
        start, end = np.searchsorted(roots[order], [number, number + 1])
        visited = order[start:end]
        yield _seeding(evidence, [number], visited, evidence.gained[visited])


def _roots(evidence: Evidence) -> Numbers:
    """The seed that each URL was found from; what a robots.txt tells of belongs to the first page of its host."""
    roots = np.full(len(evidence.parents), NOBODY, np.int64)
    of_host: dict[str, int] = {}
    columns = (evidence.parents.tolist(), evidence.depths.tolist(), evidence.record.hosts)
    for number, (parent, depth, host) in enumerate(zip(*columns, strict=True)):
        if 0 <= parent < number:
            roots[number] = roots[parent]
        elif parent == NOBODY:
            roots[number] = number if depth == 0 else of_host.get(host, NOBODY)
        of_host.setdefault(host, int(roots[number]))
    return roots


def _replayed(evidence: Evidence, count: int, group: int, limit: int, chance: Random) -> Iterator[Seeding]:
    """Crawls on paper, breadth first, each from a few random pages that lead somewhere."""
    evidence.need_links()
    record = evidence.record
    leading = np.flatnonzero(evidence.documents & (np.diff(record.starts) > 0)).tolist()
    if len(leading) < group:
        raise ConfigError(
            f"{evidence.directory} has {len(leading)} pages that lead to others, fewer than --group {group}"
        )
    for _ in range(count):
        seeds = chance.sample(leading, group)
        visited = simulate(record, Policy(name="bfs"), seeds, Terms(bytes=limit)).visited
        yield _seeding(evidence, seeds, visited, gains(record, visited))


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
        crawl=portion(Visits(record.bytes[numbers], evidence.documents[numbers], gained[crawled])),
    )


def picture(result: SeedQuality) -> str:
    """Crawls as points, with the lines through them: by both yields, and by Badness."""
    documents, bytes_, badness = result.relations
    known = [one for one in result.crawls if one.seed_badness is not None]
    kept = Axis("documents kept, of the crawl", "share", reach=(0.0,))
    text = Axis("text kept, of the crawl", "share", reach=(0.0,))
    of_crawls = [one.crawl.document_yield for one in result.crawls]
    return draw(
        [
            Chart(
                "Documents: the crawl against its seeds",
                Axis("documents kept, of the seeds", "share", reach=(0.0, 1.0)),
                kept,
                _series([one.seed_document_yield for one in result.crawls], of_crawls, documents.fit),
            ),
            Chart(
                "Bytes: the crawl against its seeds",
                Axis("text kept, of the seeds", "share", reach=(0.0,)),
                text,
                _series(
                    [one.seed_byte_yield for one in result.crawls],
                    [one.crawl.byte_yield for one in result.crawls],
                    bytes_.fit,
                ),
            ),
            Chart(
                "The crawl against the Badness of its seeds",
                Axis("Badness of the seeds, on average", reach=(0.0,)),
                kept,
                _series(
                    [one.seed_badness or 0.0 for one in known],
                    [one.crawl.document_yield for one in known],
                    badness.fit,
                ),
            ),
        ]
    )


def _series(x: list[float], y: list[float], line: Fit | None) -> list[Series]:
    """The points, and the line through them as far as a yield can be."""
    points = Series(f"{len(x)} crawls", x, y, "points")
    if line is None:
        return [points]
    along = np.linspace(min(x), max(x), 100)
    heights = line.intercept + line.slope * along
    formula = f"{line.intercept:.3f} {'−' if line.slope < 0 else '+'} {abs(line.slope):.3f} x"
    name = f"{formula}, R² = {line.r2:.2f} (adjusted {line.adjusted_r2:.2f})"
    return [points, Series(name, along[heights >= 0], heights[heights >= 0])]
