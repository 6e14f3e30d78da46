"""Stretches of positions, and portions of work that fit into memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from thresher.query.packing import Starts


def cuts(lengths: Starts, most: int) -> Iterator[slice]:
    """Rows with lengths, in groups that are together no longer than that; one that is by itself is a group."""
    ends = np.cumsum(lengths)
    start = done = 0
    while start < len(lengths):
        stop = max(int(np.searchsorted(ends, done + most, "right")), start + 1)
        yield slice(start, stop)
        start, done = stop, int(ends[stop - 1])


def spread(starts: Starts, ends: Starts) -> Starts:
    """All positions of stretches, each from one to before another."""
    lengths = np.maximum(ends - starts, 0)
    shifts = starts - (np.cumsum(lengths) - lengths)
    positions: Starts = np.arange(int(lengths.sum()), dtype=np.int64) + np.repeat(shifts, lengths)
    return positions
