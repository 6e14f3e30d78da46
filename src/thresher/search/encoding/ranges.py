"""Ranges of positions, and their division into portions that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from thresher.search.encoding.bitpacking import Starts


def cuts(lengths: Starts, most: int) -> Iterator[slice]:
    """Yield slices of rows whose lengths add up to at most `most`; a longer row makes a slice of its own."""
    ends = np.cumsum(lengths)
    start = done = 0
    while start < len(lengths):
        stop = max(int(np.searchsorted(ends, done + most, "right")), start + 1)
        yield slice(start, stop)
        start, done = stop, int(ends[stop - 1])


def spread(starts: Starts, ends: Starts) -> Starts:
    """Return all positions of ranges `[start, end)`, one range after the other."""
    lengths = np.maximum(ends - starts, 0)
    shifts = starts - (np.cumsum(lengths) - lengths)
    positions: Starts = np.arange(int(lengths.sum()), dtype=np.int64) + np.repeat(shifts, lengths)
    return positions
