"""Random draws for kernels, made of hashes: independent of the order of draws, and without any state."""

from __future__ import annotations

import math

import numpy as np

from thresher.jit import inner

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # of splitmix64
_UNIT = 1.0 / (1 << 53)


@inner
def draw(seed, stream, index):
    """Return 64 random bits: draw number `index` of a stream, by splitmix64."""
    bits = np.uint64(seed) + np.uint64(stream) * _GOLDEN + np.uint64(index) * _FIRST
    for _ in range(2):
        bits += _GOLDEN
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
        bits ^= bits >> np.uint64(31)
    return bits


@inner
def share(bits):
    """Return a number from 0 to below 1."""
    return np.float64(bits >> np.uint64(11)) * _UNIT


@inner
def below(bits, count):
    """Return a whole number from 0 to below a count."""
    return min(np.int64(share(bits) * count), count - 1)


@inner
def zipf(bits, count):
    """Return a number below a count, where the n-th is drawn with a probability proportional to 1 / n."""
    return min(np.int64(math.exp(share(bits) * math.log(count + 1.0))) - 1, count - 1)


@inner
def geometric(bits, mean):
    """Return a count from the geometric distribution with this mean."""
    return np.int64(math.log(1.0 - share(bits)) / math.log(mean / (1.0 + mean)))


@inner
def lognormal(seed, stream, index, median, sigma):
    """Return a duration with a normally distributed logarithm."""
    radius = math.sqrt(-2.0 * math.log(1.0 - share(draw(seed, stream, 2 * index))))
    return median * math.exp(
        sigma * radius * math.cos(2.0 * math.pi * share(draw(seed, stream, 2 * index + 1)))
    )
