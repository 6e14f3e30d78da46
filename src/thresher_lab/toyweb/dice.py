"""Random numbers without state: every draw is a pure function of a seed and of its purpose."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import xxhash
from numpy.typing import NDArray

_GOLDEN = 0x9E3779B97F4A7C15  # splitmix64's step: the odd number nearest 2^64 / golden ratio
_FEISTEL_ROUNDS = 4


def roll(seed: int, purpose: str, a: int = 0, b: int = 0) -> int:
    """Return 64 random bits for one purpose and up to two numbers."""
    return xxhash.xxh3_64_intdigest(f"{seed} {purpose} {a} {b}".encode())


def unit(seed: int, purpose: str, a: int = 0, b: int = 0) -> float:
    """Return a random number in [0, 1)."""
    return roll(seed, purpose, a, b) / 2**64


def between(bounds: tuple[int, int], chance: float) -> int:
    """Return the whole number that lies at `chance` between the bounds, which are both possible."""
    low, high = bounds
    return low + int((high - low + 1) * chance)


def draws(key: int, count: int) -> NDArray[np.uint64]:
    """Return `count` words of 64 random bits (splitmix64, all at once)."""
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
    """Return the place of `number` after range(size) was shuffled."""
    return _walk(key, size, number, tuple(range(_FEISTEL_ROUNDS)), forward=True)


def unshuffled(key: int, size: int, place: int) -> int:
    """Return the number at `place` after range(size) was shuffled."""
    return _walk(key, size, place, tuple(reversed(range(_FEISTEL_ROUNDS))), forward=False)


def _walk(key: int, size: int, value: int, rounds: Sequence[int], *, forward: bool) -> int:
    """Return the value after a Feistel network over the next even power of two, repeated until in the range."""
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
    """Outcomes with their proportions; the last outcome has the rest of 1."""

    def __init__(self, shares: Sequence[tuple[str, float]], rest: str) -> None:
        self._names = [name for name, _ in shares] + [rest]
        total = 0.0
        self._ends = [total := total + share for _, share in shares]

    def pick(self, chance: float) -> str:
        """Return the outcome that a number in [0, 1) falls to."""
        return self._names[bisect_right(self._ends, chance)]
