"""What a sample of pages says of all pages: shares with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from thresher.crawl.walk import Sampled

REPLICATES = 1_000
INTERVAL = (0.025, 0.975)  # 95 %


class Estimate(Struct, frozen=True):
    """The share of all pages that have some property, and the bounds of its 95 % interval."""

    value: str
    share: float
    low: float
    high: float


def estimate(sample: Sequence[Sampled], values: Sequence[str], seed: int = 0) -> list[Estimate]:
    """The share of each value among all pages, the largest first; `values` has one for each page of the sample.

    The intervals are a bootstrap over tours: from one jump to the next a walk is independent of the others.
    They tell what is chance in the walk, and nothing of pages that it could not hear of.
    """
    if not sample:
        return []
    names = {name: column for column, name in enumerate(dict.fromkeys(values))}
    tours = {tour: row for row, tour in enumerate({tour for page in sample for tour in page.tours})}
    table = np.zeros((len(tours), len(names)))
    for page, value in zip(sample, values, strict=True):
        for tour in page.tours:
            table[tours[tour], names[value]] += page.weight / page.visits
    rng = np.random.default_rng(seed)
    chances = np.full(len(tours), 1 / len(tours))
    drawn = np.array([rng.multinomial(len(tours), chances) @ table for _ in range(REPLICATES)])
    drawn /= drawn.sum(axis=1, keepdims=True)
    low, high = np.quantile(drawn, INTERVAL, axis=0)
    shares = table.sum(axis=0)
    found = [Estimate(name, float(shares[at]), float(low[at]), float(high[at])) for name, at in names.items()]
    return sorted(found, key=lambda each: (-each.share, each.value))
