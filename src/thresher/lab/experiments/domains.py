"""Domains by what they took and gave (SpiderLing, Figures 1 and 3), and the yield over the crawl (Figure 4; H12).

The yields Yd and Yb are told per snapshot of raw data, and per number of links from a seed: the iterations of a
crawler that works in rounds (N7).
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.config import ConfigError
from thresher.lab.experiments.evidence import Evidence
from thresher.lab.experiments.figures import Portion, portion, portions, snapshots
from thresher.lab.experiments.thresholds import computed
from thresher.lab.plot import Axis, Chart, Series, draw

SNAPSHOTS = 50
MANY = 10_000  # snapshots; more are no figure that anybody looks at
LINES = (1.0, 0.1, 0.01, 0.001)  # yields that are drawn to compare with


class Domain(Struct, frozen=True):
    """One domain in figures."""

    domain: str
    pages: int  # that anything was received of
    kept: int
    bytes: int
    text_bytes: int


class Iteration(Struct, frozen=True):
    """What was found as many links from a seed."""

    depth: int
    figures: Portion


class Domains(Struct, frozen=True):
    """All domains, those that took most first; the crawl in snapshots and by depth."""

    threshold: str  # SpiderLing's rule, as the crawl has it
    every: int  # bytes of a snapshot
    whole: Portion
    domains: list[Domain]
    snapshots: list[Portion]
    iterations: list[Iteration]


def run(evidence: Evidence, *, every: int = 0) -> Domains:
    """The domains of a crawl, and its yield per so many bytes: a fiftieth of the crawl if left out."""
    record = evidence.record
    total = int(record.bytes.sum())
    size = every or max(1, total // SNAPSHOTS)
    if total // size > MANY:
        raise ConfigError(f"--every {size} makes {total // size:,} snapshots; try {-(-total // SNAPSHOTS)}")
    visits = evidence.visits(np.arange(len(record.urls)))
    order = np.argsort(evidence.depths, kind="stable")
    by_depth = portions(visits.only(order), evidence.depths[order])
    return Domains(
        evidence.config.policy.threshold,
        size,
        portion(visits),
        _domains(evidence),
        snapshots(visits, size),
        [Iteration(depth, figures) for depth, figures in by_depth.items()],
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
    """Domains as points with lines of equal yield, then the yields over the crawl."""
    x = [one.downloaded for one in result.snapshots]
    return draw(
        [
            _scatter(result),
            Chart(
                "Yield over the crawl",
                Axis("downloaded", "bytes", reach=(0.0,)),
                Axis("kept, of what was downloaded", "share", reach=(0.0,)),
                [
                    Series("documents (Yd)", x, [one.document_yield for one in result.snapshots]),
                    Series("bytes (Yb)", x, [one.byte_yield for one in result.snapshots]),
                ],
            ),
        ]
    )


def _scatter(result: Domains) -> Chart:
    """Both axes are logarithms, so domains without any text stand on the ground, in a colour of their own."""
    giving = [one for one in result.domains if one.text_bytes]
    dry = [one for one in result.domains if not one.text_bytes]
    ground = 10.0 ** np.floor(np.log10(min((one.text_bytes for one in giving), default=10)))
    furthest = max((one.bytes for one in result.domains), default=10)
    reach = np.logspace(0.0, np.log10(10.0 * furthest), 100)
    lines = [Series(f"yield {rate:g}", reach, rate * reach, "rule") for rate in LINES]
    return Chart(
        "Domains by what they took and what they gave",
        Axis("downloaded", "bytes", log=True),
        Axis("text kept", "bytes", log=True),
        [
            Series(f"{len(giving):,} domains", *_points(giving), "points"),
            Series(f"{len(dry):,} without text", [one.bytes for one in dry], [ground] * len(dry), "points"),
            *_rule(result, reach),
            *lines,
        ],
    )


def _points(domains: list[Domain]) -> tuple[list[int], list[int]]:
    return [one.bytes for one in domains], [one.text_bytes for one in domains]


def _rule(result: Domains, reach: NDArray[np.float64]) -> list[Series]:
    """Below this line a domain is closed, if its pages are of average size."""
    pages = sum(one.pages for one in result.domains)
    if not result.threshold or not pages:
        return []
    average = max(result.whole.bytes / pages, 1.0)
    bounds = computed(result.threshold, (max(1, round(size / average)) for size in reach.tolist()))
    return [Series(f"t(n), pages of {average / 1000:.0f} kB", reach, reach * bounds, "rule")]
