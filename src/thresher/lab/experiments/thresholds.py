"""What thresholds of yield save and cost (SpiderLing, Table 1 and Figure 2).

The first table is the paper's: domains whose yield in the end is above a threshold. The second follows the crawl
page by page: under a rule t(n), a domain is closed as soon as its yield is below t after n pages, and what came of
it later is saved and lost. What other domains were found through it is not known, and still counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.config import ConfigError
from thresher.crawl.yields import compile_threshold
from thresher.lab.experiments.evidence import Evidence
from thresher.lab.experiments.figures import ratio
from thresher.lab.plot import Axis, Chart, Series, draw

LEVELS = tuple(0.0001 * 2**power for power in range(13))  # the paper's, after none and 0
RULES = tuple(f"{strength} * (log10(n) - 1)" for strength in (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08))
CURVE = 200  # points of a curve that is stored

Numbers = NDArray[np.int64]


class Level(Struct, frozen=True):
    """The domains above a yield: a row of the paper's Table 1."""

    threshold: float | None  # None: all domains
    domains: int
    bytes: int
    text_bytes: int
    byte_yield: float


class Rule(Struct, frozen=True):
    """A crawl with poor domains closed on the way."""

    threshold: str  # t(n); "" closes none
    domains: int
    closed: int
    bytes: int
    text_bytes: int
    byte_yield: float
    saved: float  # of all bytes
    lost: float  # of all text
    downloaded: list[int]  # points of Figure 2: bytes downloaded …
    average: list[float]  # … and the yield until then


class Thresholds(Struct, frozen=True):
    """Both tables."""

    min_pages: int  # no domain is closed before it has so many pages …
    min_bytes: int  # … and so many bytes
    levels: list[Level]
    rules: list[Rule]


class _Visits(Struct, frozen=True):
    """What was received, in order, and how far its domain was by then."""

    domain: Numbers
    bytes: Numbers
    text: Numbers
    domain_pages: Numbers
    domain_bytes: Numbers
    domain_text: Numbers

    @property
    def domains(self) -> int:
        return int(self.domain.max(initial=-1)) + 1


def run(
    evidence: Evidence,
    *,
    rules: Sequence[str] = (),
    min_pages: int | None = None,
    min_bytes: int | None = None,
) -> Thresholds:
    """Both tables; rules of one's own come after the usual ones, bounds are those of the crawl if left out."""
    policy = evidence.config.policy
    pages = policy.min_pages if min_pages is None else min_pages
    size = policy.min_bytes if min_bytes is None else min_bytes
    visits = _visits(evidence)
    wanted = dict.fromkeys(("", *RULES, *rules))
    return Thresholds(pages, size, _levels(visits), [_rule(visits, one, pages, size) for one in wanted])


def computed(threshold: str, pages: Iterable[int]) -> NDArray[np.float64]:
    """t(n) for numbers of pages; ConfigError where it has no value for one of them."""
    try:
        t = compile_threshold(threshold)
        return np.array([float(t(n)) for n in pages])
    except (ArithmeticError, ValueError):
        raise ConfigError(
            f"the threshold {threshold!r} has no value for some numbers of pages n; try {RULES[2]!r}"
        ) from None


def _visits(evidence: Evidence) -> _Visits:
    received = evidence.record.bytes > 0  # as in a crawl: what brought nothing is no page of its domain
    domain = np.unique(np.array(evidence.domains)[received], return_inverse=True)[1].astype(np.int64)
    bytes_, text = evidence.record.bytes[received], evidence.gained[received]
    return _Visits(
        domain,
        bytes_,
        text,
        *(_so_far(domain, column) for column in (np.ones_like(bytes_), bytes_, text)),
    )


def _so_far(group: Numbers, values: Numbers) -> Numbers:
    """For each value, the sum of those of its group up to it."""
    order = np.argsort(group, kind="stable")
    sums = values[order].cumsum()
    begins = np.searchsorted(group[order], group[order])  # where the group of each begins
    before = np.where(begins > 0, sums[begins - 1], 0)
    result = np.empty_like(values)
    result[order] = sums - before
    return result


def _levels(visits: _Visits) -> list[Level]:
    count = visits.domains
    bytes_ = np.bincount(visits.domain, visits.bytes, count)
    text = np.bincount(visits.domain, visits.text, count)
    rate = text / np.maximum(bytes_, 1)
    levels = []
    for threshold in (None, 0.0, *LEVELS):
        above = np.ones(count, np.bool_) if threshold is None else rate > threshold
        down, up = int(bytes_[above].sum()), int(text[above].sum())
        levels.append(Level(threshold, int(above.sum()), down, up, ratio(up, down)))
    return levels


def _rule(visits: _Visits, threshold: str, min_pages: int, min_bytes: int) -> Rule:
    """The crawl under one rule: what follows the page after which a domain is too poor is left out."""
    poor = np.zeros(len(visits.domain), np.bool_)
    if threshold and len(poor):
        most = int(visits.domain_pages.max())
        t = computed(threshold, range(1, most + 1))[visits.domain_pages - 1]
        old = (visits.domain_pages >= min_pages) & (visits.domain_bytes >= min_bytes)
        poor = old & (visits.domain_text / visits.domain_bytes < t)
    closed_at = np.full(visits.domains, np.iinfo(np.int64).max)
    np.minimum.at(closed_at, visits.domain[poor], visits.domain_pages[poor])
    stays = visits.domain_pages <= closed_at[visits.domain]
    down, up = visits.bytes[stays].cumsum(), visits.text[stays].cumsum()
    points = np.unique(np.linspace(0, len(down) - 1, CURVE).astype(np.int64)) if len(down) else slice(0)
    total, text = int(down[-1:].sum()), int(up[-1:].sum())
    return Rule(
        threshold,
        visits.domains,
        len(np.unique(visits.domain[poor])),
        total,
        text,
        ratio(text, total),
        ratio(visits.bytes.sum() - total, visits.bytes.sum()),
        ratio(visits.text.sum() - text, visits.text.sum()),
        down[points].tolist(),
        (up / np.maximum(down, 1))[points].tolist(),
    )


def picture(result: Thresholds) -> str:
    """The average yield over the crawl under each rule, and the paper's Table 1 as lines."""
    everything = result.levels[0]
    above = result.levels[1:]
    return draw(
        [
            Chart(
                "Average yield over the crawl, with poor domains closed",
                Axis("downloaded", "bytes", reach=(0.0,)),
                Axis("text kept, of what was downloaded", "share", reach=(0.0,)),
                [
                    Series(rule.threshold or "none closed", rule.downloaded, rule.average)
                    for rule in result.rules
                ],
            ),
            Chart(
                "What is left above a yield",
                Axis("yield of a domain, at least", log=True),
                Axis("of all", "share", reach=(0.0, 1.0)),
                [
                    _left("downloaded", above, [ratio(one.bytes, everything.bytes) for one in above]),
                    _left(
                        "text kept", above, [ratio(one.text_bytes, everything.text_bytes) for one in above]
                    ),
                    _left("domains", above, [ratio(one.domains, everything.domains) for one in above]),
                ],
            ),
        ]
    )


def _left(name: str, levels: Sequence[Level], shares: list[float]) -> Series:
    return Series(name, [level.threshold or 0.0 for level in levels], shares)
