"""Estimates from a sample of pages: shares of all pages, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from thresher.crawler.sampling.random_walk import SampledPage
from thresher.urls import host

REPLICATES = 1_000
INTERVAL = (0.025, 0.975)  # 95 %


class Estimate(Struct, frozen=True):
    """The share of all pages with some property, and the bounds of its 95 % interval."""

    value: str
    share: float
    low: float
    high: float


def estimate(sample: Sequence[SampledPage], values: Sequence[str], seed: int = 0) -> list[Estimate]:
    """Return the share of each value among all pages, the largest first; `values` has one for each page.

    The intervals come from a bootstrap over hosts, since pages of one host are similar. A bootstrap over single
    pages would give intervals that are far too narrow.
    """
    if not sample:
        return []
    columns = {name: column for column, name in enumerate(dict.fromkeys(values))}
    rows = {name: row for row, name in enumerate(dict.fromkeys(host(page.url) for page in sample))}
    table = np.zeros((len(rows), len(columns)))
    for page, value in zip(sample, values, strict=True):
        table[rows[host(page.url)], columns[value]] += page.weight
    rng = np.random.default_rng(seed)
    chances = np.full(len(rows), 1 / len(rows))
    drawn = np.array([rng.multinomial(len(rows), chances) @ table for _ in range(REPLICATES)])
    drawn /= drawn.sum(axis=1, keepdims=True)
    low, high = np.quantile(drawn, INTERVAL, axis=0)
    shares = table.sum(axis=0)
    found = [
        Estimate(name, float(shares[at]), float(low[at]), float(high[at])) for name, at in columns.items()
    ]
    return sorted(found, key=lambda each: (-each.share, each.value))
