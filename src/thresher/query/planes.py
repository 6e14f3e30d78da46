"""Attributes of few values, such as parts of speech: a bit set for each bit of their numbers.

The words of a block of positions stand side by side. Which positions of a block have some value, or one of several,
is told by a few operations on whole words, not by looking at each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.query.packing import (
    BYTES,
    IDS,
    LAST,
    NEW_WORDS,
    ONE,
    SIX,
    WORDS,
    Bytes,
    Ids,
    Room,
    Words,
    in_memory,
)
from thresher.read.scan.kernel import NOTHING, NUMBER, kernel

WIDEST = 8  # bits: attributes of more values have no planes


class Planes(NamedTuple):
    """The value of every position."""

    words: Words
    width: int  # bits of a value


def pack_planes(ids: Ids, values: Ids, width: int, room: Room = in_memory) -> Planes:
    """The values, by type, of a column of types."""
    words = room("planes", np.uint64, -(-len(ids) // 64) * width)
    _spread(ids, values, width, words)
    return Planes(words, width)


@kernel(NOTHING, IDS, IDS, NUMBER, NEW_WORDS)
def _spread(ids: Ids, values: Ids, width: int, words: Words) -> None:
    for position in range(np.uint64(len(ids))):
        value = np.uint64(values[ids[position]])
        first = (position >> SIX) * np.uint64(width)
        for plane in range(np.uint64(width)):
            words[first + plane] |= (value >> plane & ONE) << (position & LAST)


@kernel(NOTHING, WORDS, NUMBER, BYTES, NUMBER, NUMBER, NEW_WORDS)
def _mark(words: Words, width: int, values: Bytes, start: int, blocks: int, bits: Words) -> None:
    for block in range(blocks):
        first = (start >> 6) + block
        found = np.uint64(0)
        for number in range(len(values)):
            value = values[number]
            here = ~np.uint64(0)
            for plane in range(width):
                word = words[first * width + plane]
                here &= word if value >> plane & 1 else ~word
            found |= here
        bits[block] = found


def mark(planes: Planes, wanted: Bytes, start: int, end: int, bits: Words) -> None:
    """Set the bits of positions whose value is wanted, from the first of a block to before another."""
    blocks = -(-(end - start) // 64)
    values = np.flatnonzero(wanted)
    # The fewer values there are to look for, the better: look for the others if they are.
    others = np.flatnonzero(wanted == 0)
    few = min(values, others, key=len).astype(np.uint8)
    _mark(*planes, few, start, blocks, bits)
    if len(others) < len(values):
        np.bitwise_not(bits[:blocks], out=bits[:blocks])
    if blocks and end % 64:
        bits[blocks - 1] &= np.uint64((1 << end % 64) - 1)
