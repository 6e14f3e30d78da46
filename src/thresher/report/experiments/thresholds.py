"""Savings and losses by thresholds of yield (SpiderLing, Table 1 and Figure 2).

The first table is the paper's: domains with a final yield above a threshold. The second follows the crawl page by
page: under a rule t(n), a domain is closed as soon as its yield is below t after n pages. The bytes of its later
pages count as saved, their text as lost. Other domains that were found through it still count, since it is unknown
whether they would have been found otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.crawler.policy.yield_stats import compile_threshold
from thresher.errors import UsageError
from thresher.report.experiments.evidence import Evidence
from thresher.report.experiments.figures import ratio
from thresher.report.plot import Axis, Chart, Series, draw

LEVELS = tuple(0.0001 * 2**power for power in range(13))  # the paper's, after none and 0
RULES = tuple(f"{strength} * (log10(n) - 1)" for strength in (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08))
CURVE_POINTS = 200

Numbers = NDArray[np.int64]


class Level(Struct, frozen=True):
    """The domains with a yield above a threshold: a row of the paper's Table 1."""

    threshold: float | None  # None: all domains
    domains: int
    bytes: int
    text_bytes: int
    byte_yield: float


class ThresholdRule(Struct, frozen=True):
    """A crawl in which poor domains are closed by a rule."""

    threshold: str  # t(n); "" closes none
    domains: int
    closed: int
    bytes: int
    text_bytes: int
    byte_yield: float
    saved: float  # of all bytes
    lost: float  # of all text
    downloaded: list[int]  # Figure 2, x: bytes downloaded
    average: list[float]  # Figure 2, y: the yield up to there


class Thresholds(Struct, frozen=True):
    """Both tables."""

    min_pages: int  # of a domain before it may be closed
    min_bytes: int  # of a domain before it may be closed
    levels: list[Level]
    rules: list[ThresholdRule]


class _Visits(Struct, frozen=True):
    """Columns of visits in order, with the totals of their domains up to each."""

    domain: Numbers
    bytes: Numbers
    text: Numbers
    domain_pages: Numbers
    domain_bytes: Numbers
    domain_text: Numbers

    @property
    def domains(self) -> int:
        """The number of domains."""
        return int(self.domain.max(initial=-1)) + 1


def run(
    evidence: Evidence,
    *,
    rules: Sequence[str] = (),
    min_pages: int | None = None,
    min_bytes: int | None = None,
) -> Thresholds:
    """Compute both tables; `rules` are added to the usual ones, and bounds default to the settings of the crawl."""
    policy = evidence.config.policy
    pages = policy.min_pages if min_pages is None else min_pages
    size = policy.min_bytes if min_bytes is None else min_bytes
    visits = _visits(evidence)
    wanted = dict.fromkeys(("", *RULES, *rules))
    return Thresholds(pages, size, _levels(visits), [_rule(visits, one, pages, size) for one in wanted])


def computed(threshold: str, pages: Iterable[int]) -> NDArray[np.float64]:
    """Return t(n) for numbers of pages; UsageError if it has no value for one of them."""
    try:
        t = compile_threshold(threshold)
        return np.array([float(t(n)) for n in pages])
    except (ArithmeticError, ValueError):
        raise UsageError(
            f"the threshold {threshold!r} has no value for some numbers of pages n; for example {RULES[2]!r}"
        ) from None


def _visits(evidence: Evidence) -> _Visits:
    # As in a crawl, an answer without a body is not a page of its domain.
    received = evidence.record.bytes > 0
    domain = np.unique(np.array(evidence.domains)[received], return_inverse=True)[1].astype(np.int64)
    bytes_, text = evidence.record.bytes[received], evidence.gained[received]
    return _Visits(
        domain,
        bytes_,
        text,
        *(_running_sums(domain, column) for column in (np.ones_like(bytes_), bytes_, text)),
    )


def _running_sums(group: Numbers, values: Numbers) -> Numbers:
    """Return for each value the sum of the values of its group up to it."""
    order = np.argsort(group, kind="stable")
    sums = values[order].cumsum()
    begins = np.searchsorted(group[order], group[order])  # the start of the group of each
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


def _rule(visits: _Visits, threshold: str, min_pages: int, min_bytes: int) -> ThresholdRule:
    """Return the crawl under one rule: pages of a domain after it became too poor are left out."""
    poor = np.zeros(len(visits.domain), np.bool_)
    if threshold and len(poor):
        largest = int(visits.domain_pages.max())
        t = computed(threshold, range(1, largest + 1))[visits.domain_pages - 1]
        old = (visits.domain_pages >= min_pages) & (visits.domain_bytes >= min_bytes)
        poor = old & (visits.domain_text / visits.domain_bytes < t)
    closed_at = np.full(visits.domains, np.iinfo(np.int64).max)
    np.minimum.at(closed_at, visits.domain[poor], visits.domain_pages[poor])
    stays = visits.domain_pages <= closed_at[visits.domain]
    down, up = visits.bytes[stays].cumsum(), visits.text[stays].cumsum()
    points = (
        np.unique(np.linspace(0, len(down) - 1, CURVE_POINTS).astype(np.int64)) if len(down) else slice(0)
    )
    total, text = int(down[-1:].sum()), int(up[-1:].sum())
    return ThresholdRule(
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
    """Draw the average yield over the crawl under each rule, and the paper's Table 1 as lines."""
    everything = result.levels[0]
    above = result.levels[1:]
    return draw(
        [
            Chart(
                "Average yield over the crawl, with poor domains closed",
                Axis("downloaded", "bytes", reach=(0.0,)),
                Axis("text kept per byte downloaded", "share", reach=(0.0,)),
                [
                    Series(rule.threshold or "none closed", rule.downloaded, rule.average)
                    for rule in result.rules
                ],
            ),
            Chart(
                "Shares of domains above a yield",
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
