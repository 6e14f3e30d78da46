"""Trees that tell from measures of the evidence what to expect: text per byte, and whether a page is kept."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.config import ConfigError
from thresher.crawl.learned.forecast import MEASURES

DATA = Path(__file__).parent / "trees.msgpack"


class Trees(NamedTuple):
    """Complete trees of one depth, one after the other; see `thresher.read.scan.forest`."""

    depth: int
    columns: NDArray[np.uint8]
    bounds: NDArray[np.float64]
    values: NDArray[np.float64]


class Forests(NamedTuple):
    """All trees of the policy that learns."""

    rates: Trees  # text per byte
    chances: Trees  # the odds, as a logarithm, that a page is kept


class Stored(Struct, array_like=True, frozen=True):
    """Trees as they are shipped."""

    measures: int  # that they were grown with
    depth: int
    columns: bytes
    bounds: bytes
    values: bytes


def packed(forests: Forests) -> bytes:
    """Trees as bytes."""
    return msgspec.msgpack.encode([_stored(trees) for trees in forests])


def _stored(trees: Trees) -> Stored:
    bounds, values = (part.astype(np.float32).tobytes() for part in (trees.bounds, trees.values))
    return Stored(MEASURES, trees.depth, trees.columns.tobytes(), bounds, values)


def unpacked(data: bytes) -> Forests:
    """Trees from bytes; ConfigError if they were grown with other measures."""
    rates, chances = msgspec.msgpack.decode(data, type=tuple[Stored, Stored])
    return Forests(_trees(rates), _trees(chances))


def _trees(stored: Stored) -> Trees:
    if stored.measures != MEASURES:  # kernels would look beyond what was measured
        raise ConfigError(f"trees of {stored.measures} measures, but there are {MEASURES}; grow them anew")
    bounds, values = (
        np.frombuffer(part, np.float32).astype(np.float64) for part in (stored.bounds, stored.values)
    )
    return Trees(stored.depth, np.frombuffer(stored.columns, np.uint8).copy(), bounds, values)


@cache
def shipped() -> Forests:
    """The trees that come with the package."""
    return unpacked(DATA.read_bytes())
