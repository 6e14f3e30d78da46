"""Figures that several experiments share: yields, snapshots of a crawl (H12), straight lines through points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def ratio(part: float, whole: float) -> float:
    """A share; 0 of nothing."""
    return float(part / whole) if whole else 0.0


class Visits(NamedTuple):
    """A crawl, visit by visit."""

    bytes: Numbers
    documents: NDArray[np.bool_]  # a page was read
    gained: Numbers  # bytes of text that it added to the corpus

    def only(self, which: NDArray[np.generic] | slice) -> Visits:
        """Some of the visits, or all in another order."""
        return Visits(self.bytes[which], self.documents[which], self.gained[which])


class Portion(Struct, frozen=True):
    """A part of a crawl: what was downloaded, and what came of it."""

    downloaded: int  # bytes that the crawl had downloaded at its end
    documents: int
    kept: int
    bytes: int
    text_bytes: int
    document_yield: float  # Yd: documents kept per document crawled
    byte_yield: float  # Yb: bytes of text kept per byte downloaded


def portion(visits: Visits, downloaded: int = 0) -> Portion:
    """Some visits in figures; `downloaded` is what had been before."""
    documents, kept = int(visits.documents.sum()), int((visits.gained > 0).sum())
    received, text = int(visits.bytes.sum()), int(visits.gained.sum())
    yields = ratio(kept, documents), ratio(text, received)
    return Portion(downloaded + received, documents, kept, received, text, *yields)


def portions(visits: Visits, places: Numbers) -> dict[int, Portion]:
    """A crawl in parts: `places` tells for each visit, in rising order, which part it belongs to."""
    names, starts = np.unique(places, return_index=True)
    before = (np.cumsum(visits.bytes) - visits.bytes)[starts].tolist()
    parts = zip(names.tolist(), starts.tolist(), [*starts[1:].tolist(), len(places)], before, strict=True)
    return {
        name: portion(visits.only(slice(start, end)), downloaded) for name, start, end, downloaded in parts
    }


def snapshots(visits: Visits, every: int) -> list[Portion]:
    """A crawl in parts of so many bytes; a page belongs to the part in which it began."""
    return list(portions(visits, (np.cumsum(visits.bytes) - visits.bytes) // max(every, 1)).values())


class Fit(Struct, frozen=True):
    """The straight line through points that misses them least."""

    points: int
    intercept: float
    slope: float
    r2: float  # share of the variance that the line tells
    adjusted_r2: float


def fit(x: Sequence[float], y: Sequence[float]) -> Fit | None:
    """The line through points; None where they are fewer than three, or all above each other."""
    across, up = np.array(x, np.float64), np.array(y, np.float64)
    if len(across) < 3 or np.ptp(across) == 0:
        return None
    centred = across - across.mean()
    slope = float(centred @ (up - up.mean()) / (centred @ centred))
    intercept = float(up.mean() - slope * across.mean())
    missed = float(((up - intercept - slope * across) ** 2).sum())
    r2 = 1.0 - ratio(missed, float(((up - up.mean()) ** 2).sum())) if np.ptp(up) else 0.0
    return Fit(len(x), intercept, slope, r2, 1.0 - (1.0 - r2) * (len(x) - 1) / (len(x) - 2))
