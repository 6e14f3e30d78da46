"""Regression trees of the learned policy: text per byte, and the chance that a page is kept."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.crawler.policy.learned.predictor import MEASURES
from thresher.errors import UsageError

DATA = Path(__file__).parent / "trees.msgpack"


class TreeStack(NamedTuple):
    """Complete trees of one depth, concatenated; see `thresher.reader.html.kernels.forest`."""

    depth: int
    columns: NDArray[np.uint8]
    bounds: NDArray[np.float64]
    values: NDArray[np.float64]


class PolicyForests(NamedTuple):
    """All trees of the learned policy."""

    rates: TreeStack  # text per byte
    chances: TreeStack  # log odds that a page is kept


class StoredForests(Struct, array_like=True, frozen=True):
    """Trees in the file of the package."""

    measures: int  # number of measures that they were trained with
    depth: int
    columns: bytes
    bounds: bytes
    values: bytes


def packed(forests: PolicyForests) -> bytes:
    """Encode trees."""
    return msgspec.msgpack.encode([_stored(trees) for trees in forests])


def _stored(trees: TreeStack) -> StoredForests:
    bounds, values = (part.astype(np.float32).tobytes() for part in (trees.bounds, trees.values))
    return StoredForests(MEASURES, trees.depth, trees.columns.tobytes(), bounds, values)


def unpacked(data: bytes) -> PolicyForests:
    """Decode trees; raise UsageError if they were trained with another number of measures."""
    rates, chances = msgspec.msgpack.decode(data, type=tuple[StoredForests, StoredForests])
    return PolicyForests(_trees(rates), _trees(chances))


def _trees(stored: StoredForests) -> TreeStack:
    if stored.measures != MEASURES:  # kernels would index beyond the measures
        raise UsageError(
            f"the trees were trained with {stored.measures} measures, but there are {MEASURES}; "
            "train them again: python -m thresher_lab.training.train_policy DIR"
        )
    bounds, values = (
        np.frombuffer(part, np.float32).astype(np.float64) for part in (stored.bounds, stored.values)
    )
    return TreeStack(stored.depth, np.frombuffer(stored.columns, np.uint8).copy(), bounds, values)


@cache
def shipped() -> PolicyForests:
    """Return the trees of the package."""
    return unpacked(DATA.read_bytes())
