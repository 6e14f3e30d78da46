"""Computations shared by experiments: yields, snapshots of a crawl, straight lines through points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def ratio(part: float, whole: float) -> float:
    """Return a share; 0 if the whole is 0."""
    return float(part / whole) if whole else 0.0


class VisitSeries(NamedTuple):
    """A crawl, visit by visit, as columns."""

    bytes: Numbers
    documents: NDArray[np.bool_]  # whether a page was read
    gained: Numbers  # bytes of text that it added to the corpus

    def only(self, places: NDArray[np.generic] | slice) -> VisitSeries:
        """Return some of the visits, or all in another order."""
        return VisitSeries(self.bytes[places], self.documents[places], self.gained[places])


class CrawlPortion(Struct, frozen=True):
    """The counts and yields of a part of a crawl."""

    downloaded: int  # bytes of the crawl up to its end
    documents: int
    kept: int
    bytes: int
    text_bytes: int
    document_yield: float  # Yd: documents kept per document crawled
    byte_yield: float  # Yb: bytes of text kept per byte downloaded


def portion(visits: VisitSeries, downloaded: int = 0) -> CrawlPortion:
    """Sum up some visits; `downloaded` is the bytes before them."""
    documents, kept = int(visits.documents.sum()), int((visits.gained > 0).sum())
    received, text = int(visits.bytes.sum()), int(visits.gained.sum())
    yields = ratio(kept, documents), ratio(text, received)
    return CrawlPortion(downloaded + received, documents, kept, received, text, *yields)


def portions(visits: VisitSeries, places: Numbers) -> dict[int, CrawlPortion]:
    """Sum up a crawl in parts; `places` holds the number of the part of each visit, in rising order."""
    names, starts = np.unique(places, return_index=True)
    before = (np.cumsum(visits.bytes) - visits.bytes)[starts].tolist()
    parts = zip(names.tolist(), starts.tolist(), [*starts[1:].tolist(), len(places)], before, strict=True)
    return {
        name: portion(visits.only(slice(start, end)), downloaded) for name, start, end, downloaded in parts
    }


def snapshots(visits: VisitSeries, every: int) -> list[CrawlPortion]:
    """Sum up a crawl in parts of `every` bytes; a page belongs to the part in which it begins."""
    return list(portions(visits, (np.cumsum(visits.bytes) - visits.bytes) // max(every, 1)).values())


class Fit(Struct, frozen=True):
    """A least-squares line through points."""

    points: int
    intercept: float
    slope: float
    r2: float  # share of the variance that the line explains
    adjusted_r2: float


def fit(x: Sequence[float], y: Sequence[float]) -> Fit | None:
    """Fit a line; None for fewer than three points, or if all x are equal."""
    across, up = np.array(x, np.float64), np.array(y, np.float64)
    if len(across) < 3 or np.ptp(across) == 0:
        return None
    centred = across - across.mean()
    slope = float(centred @ (up - up.mean()) / (centred @ centred))
    intercept = float(up.mean() - slope * across.mean())
    missed = float(((up - intercept - slope * across) ** 2).sum())
    r2 = 1.0 - ratio(missed, float(((up - up.mean()) ** 2).sum())) if np.ptp(up) else 0.0
    return Fit(len(x), intercept, slope, r2, 1.0 - (1.0 - r2) * (len(x) - 1) / (len(x) - 2))
