"""Chance without memory: every draw is a pure function of a seed and of what it is drawn for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import xxhash
from numpy.typing import NDArray

_GOLDEN = 0x9E3779B97F4A7C15  # splitmix64's step: the odd number nearest 2^64 / golden ratio
_FEISTEL_ROUNDS = 4


def roll(seed: int, what: str, a: int = 0, b: int = 0) -> int:
    """64 random bits for one purpose and up to two numbers."""
    return xxhash.xxh3_64_intdigest(f"{seed} {what} {a} {b}".encode())


def unit(seed: int, what: str, a: int = 0, b: int = 0) -> float:
    """A random number in [0, 1)."""
    return roll(seed, what, a, b) / 2**64


def between(bounds: tuple[int, int], chance: float) -> int:
    """The whole number that lies at `chance` between the bounds, both of them possible."""
    low, high = bounds
    return low + int((high - low + 1) * chance)


def draws(key: int, count: int) -> NDArray[np.uint64]:
    """`count` words of 64 random bits (splitmix64, all at once)."""
    bits = np.arange(1, count + 1, dtype=np.uint64)
    bits *= np.uint64(_GOLDEN)
    bits += np.uint64(key)
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits


def shuffled(key: int, size: int, number: int) -> int:
    """Where `number` stands after range(size) was shuffled."""
    return _walk(key, size, number, tuple(range(_FEISTEL_ROUNDS)), forward=True)


def unshuffled(key: int, size: int, place: int) -> int:
    """The number that stands at `place` after range(size) was shuffled."""
    return _walk(key, size, place, tuple(reversed(range(_FEISTEL_ROUNDS))), forward=False)


def _walk(key: int, size: int, value: int, rounds: Sequence[int], *, forward: bool) -> int:
    """A Feistel network over the next even power of two, walked until it lands inside the range."""
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    while True:
        left, right = value >> half, value & mask
        for turn in rounds:
            if forward:
                left, right = right, left ^ (roll(key, "feistel", turn, right) & mask)
            else:
                left, right = right ^ (roll(key, "feistel", turn, left) & mask), left
        value = left << half | right
        if value < size:
            return value


class Shares:
    """Outcomes with their proportions; what they leave of 1 is the rest's."""

    def __init__(self, shares: Sequence[tuple[str, float]], rest: str) -> None:
        self._names = [name for name, _ in shares] + [rest]
        total = 0.0
        self._ends = [total := total + share for _, share in shares]

    def pick(self, chance: float) -> str:
        """The outcome that a number in [0, 1) falls to."""
        return self._names[bisect_right(self._ends, chance)]
