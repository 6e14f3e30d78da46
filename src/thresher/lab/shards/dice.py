"""Chance for kernels, out of hashes: the same whatever is asked first, and nothing of it is remembered."""

from __future__ import annotations

import math

import numpy as np

from thresher.read.scan.kernel import inner

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # of splitmix64
_UNIT = 1.0 / (1 << 53)


@inner
def draw(seed, what, which):
    """64 bits for the `which`-th question about something, as splitmix64 makes them."""
    bits = np.uint64(seed) + np.uint64(what) * _GOLDEN + np.uint64(which) * _FIRST
    for _ in range(2):
        bits += _GOLDEN
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
        bits ^= bits >> np.uint64(31)
    return bits


@inner
def share(bits):
    """A number from 0 to below 1."""
    return np.float64(bits >> np.uint64(11)) * _UNIT


@inner
def below(bits, count):
    """A whole number from 0 to below a count."""
    return min(np.int64(share(bits) * count), count - 1)


@inner
def favoured(bits, count):
    """A place below a count, the first ones most often: the n-th as often as 1 / n."""
    return min(np.int64(math.exp(share(bits) * math.log(count + 1.0))) - 1, count - 1)


@inner
def scattered(bits, mean):
    """A count that is most often small, with that mean: geometric."""
    return np.int64(math.log(1.0 - share(bits)) / math.log(mean / (1.0 + mean)))


@inner
def lognormal(seed, what, which, median, sigma):
    """How long something takes whose logarithm is scattered normally."""
    radius = math.sqrt(-2.0 * math.log(1.0 - share(draw(seed, what, 2 * which))))
    return median * math.exp(
        sigma * radius * math.cos(2.0 * math.pi * share(draw(seed, what, 2 * which + 1)))
    )
