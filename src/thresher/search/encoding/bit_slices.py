"""Bit slices of attributes with few values, such as parts of speech: a bit set for each bit of the value number.

The words of a block of 64 positions stand side by side. A few operations on whole words find all positions of a
block that have one of several values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.jit import NOTHING, NUMBER, kernel
from thresher.search.encoding.bitpacking import (
    BYTES,
    IDS,
    LAST,
    NEW_WORDS,
    ONE,
    SIX,
    WORDS,
    Allocator,
    Bytes,
    Ids,
    Words,
    in_memory,
)

WIDEST = 8  # bits of a value; attributes of more values have no bit slices


class BitSlices(NamedTuple):
    """The value at every position."""

    words: Words
    width: int  # bits of a value


def pack_slices(ids: Ids, values: Ids, width: int, allocate: Allocator = in_memory) -> BitSlices:
    """Return the bit slices of an attribute: `values` by type, for a column of types."""
    words = allocate("planes", np.uint64, -(-len(ids) // 64) * width)
    _spread(ids, values, width, words)
    return BitSlices(words, width)


@kernel(NOTHING, IDS, IDS, NUMBER, NEW_WORDS)
def _spread(ids: Ids, values: Ids, width: int, words: Words) -> None:
    for position in range(np.uint64(len(ids))):
        value = np.uint64(values[ids[position]])
        first = (position >> SIX) * np.uint64(width)
        for bit in range(np.uint64(width)):
            words[first + bit] |= (value >> bit & ONE) << (position & LAST)


@kernel(NOTHING, WORDS, NUMBER, BYTES, NUMBER, NUMBER, NEW_WORDS)
def _mark(words: Words, width: int, values: Bytes, start: int, blocks: int, bits: Words) -> None:
    for block in range(blocks):
        first = (start >> 6) + block
        found = np.uint64(0)
        for number in range(len(values)):
            value = values[number]
            here = ~np.uint64(0)
            for bit in range(width):
                word = words[first * width + bit]
                here &= word if value >> bit & 1 else ~word
            found |= here
        bits[block] = found


def mark(slices: BitSlices, wanted: Bytes, start: int, end: int, bits: Words) -> None:
    """Set the bits of positions in `[start, end)` whose value is wanted; `start` begins a block."""
    blocks = -(-(end - start) // 64)
    values = np.flatnonzero(wanted)
    # The time grows with the number of values: if most are wanted, find the others and invert.
    others = np.flatnonzero(wanted == 0)
    few = min(values, others, key=len).astype(np.uint8)
    _mark(*slices, few, start, blocks, bits)
    if len(others) < len(values):
        np.bitwise_not(bits[:blocks], out=bits[:blocks])
    if blocks and end % 64:
        bits[blocks - 1] &= np.uint64((1 << end % 64) - 1)
