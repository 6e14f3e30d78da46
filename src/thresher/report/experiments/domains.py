"""Domains by bytes downloaded and text kept (SpiderLing, Figures 1 and 3), and the yield over the crawl (Figure 4).

The yields of documents (Yd) and of bytes (Yb) are computed per snapshot of raw data, and per number of links from a
seed, which corresponds to the iterations of a crawler that works in rounds.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.errors import UsageError
from thresher.report.experiments.evidence import Evidence
from thresher.report.experiments.figures import CrawlPortion, portion, portions, snapshots
from thresher.report.experiments.thresholds import computed
from thresher.report.plot import Axis, Chart, Series, draw

SNAPSHOTS = 50
MAX_SNAPSHOTS = 10_000
YIELD_LINES = (1.0, 0.1, 0.01, 0.001)  # drawn for comparison


class Domain(Struct, frozen=True):
    """The counts of one domain."""

    domain: str
    pages: int  # with at least one byte received
    kept: int
    bytes: int
    text_bytes: int


class CrawlIteration(Struct, frozen=True):
    """The URLs at one number of links from a seed."""

    depth: int
    figures: CrawlPortion


class Domains(Struct, frozen=True):
    """All domains, most bytes first; the crawl in snapshots and by depth."""

    threshold: str  # the rule t(n) of the crawl
    every: int  # bytes of a snapshot
    whole: CrawlPortion
    domains: list[Domain]
    snapshots: list[CrawlPortion]
    iterations: list[CrawlIteration]


def run(evidence: Evidence, *, every: int = 0) -> Domains:
    """Compute domains and yields; `every` is the bytes of a snapshot, a fiftieth of the crawl by default."""
    record = evidence.record
    total = int(record.bytes.sum())
    size = every or max(1, total // SNAPSHOTS)
    if total // size > MAX_SNAPSHOTS:
        raise UsageError(
            f"--every {size} makes {total // size:,} snapshots, more than {MAX_SNAPSHOTS:,}; "
            f"for example --every {-(-total // SNAPSHOTS)}"
        )
    visits = evidence.visits(np.arange(len(record.urls)))
    order = np.argsort(evidence.depths, kind="stable")
    by_depth = portions(visits.only(order), evidence.depths[order])
    return Domains(
        evidence.config.policy.threshold,
        size,
        portion(visits),
        _domains(evidence),
        snapshots(visits, size),
        [CrawlIteration(depth, figures) for depth, figures in by_depth.items()],
    )


def _domains(evidence: Evidence) -> list[Domain]:
    received = evidence.record.bytes > 0
    names, place = np.unique(np.array(evidence.domains)[received], return_inverse=True)
    gained = evidence.gained[received]
    totals = [
        np.bincount(place, column, len(names)).astype(np.int64).tolist()
        for column in (np.ones(len(place)), gained > 0, evidence.record.bytes[received], gained)
    ]
    found = list(map(Domain, names.tolist(), *totals))
    return sorted(found, key=lambda one: (-one.bytes, one.domain))


def picture(result: Domains) -> str:
    """Draw domains as points with lines of equal yield, then the yields over the crawl."""
    x = [snapshot.downloaded for snapshot in result.snapshots]
    return draw(
        [
            _scatter(result),
            Chart(
                "Yield over the crawl",
                Axis("downloaded", "bytes", reach=(0.0,)),
                Axis("kept per download", "share", reach=(0.0,)),
                [
                    Series("documents (Yd)", x, [snapshot.document_yield for snapshot in result.snapshots]),
                    Series("bytes (Yb)", x, [snapshot.byte_yield for snapshot in result.snapshots]),
                ],
            ),
        ]
    )


def _scatter(result: Domains) -> Chart:
    """Draw domains on logarithmic axes; domains without text are at the bottom, in another colour."""
    giving = [domain for domain in result.domains if domain.text_bytes]
    dry = [domain for domain in result.domains if not domain.text_bytes]
    ground = 10.0 ** np.floor(np.log10(min((domain.text_bytes for domain in giving), default=10)))
    furthest = max((domain.bytes for domain in result.domains), default=10)
    reach = np.logspace(0.0, np.log10(10.0 * furthest), 100)
    lines = [Series(f"yield {rate:g}", reach, rate * reach, "rule") for rate in YIELD_LINES]
    return Chart(
        "Domains by download and text",
        Axis("downloaded", "bytes", log=True),
        Axis("text kept", "bytes", log=True),
        [
            Series(f"{len(giving):,} domains", *_points(giving), "points"),
            Series(
                f"{len(dry):,} without text", [domain.bytes for domain in dry], [ground] * len(dry), "points"
            ),
            *_rule(result, reach),
            *lines,
        ],
    )


def _points(domains: list[Domain]) -> tuple[list[int], list[int]]:
    return [one.bytes for one in domains], [one.text_bytes for one in domains]


def _rule(result: Domains, reach: NDArray[np.float64]) -> list[Series]:
    """Return the line below which a domain with pages of average size is closed."""
    pages = sum(one.pages for one in result.domains)
    if not result.threshold or not pages:
        return []
    average = max(result.whole.bytes / pages, 1.0)
    bounds = computed(result.threshold, (max(1, round(size / average)) for size in reach.tolist()))
    return [Series(f"t(n), pages of {average / 1000:.0f} kB", reach, reach * bounds, "rule")]
