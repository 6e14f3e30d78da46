"""Bit sets of positions: position `start + n` is bit `n`, so that 64 positions are processed at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thresher.jit import NOTHING, NUMBER, inner, kernel
from thresher.search.encoding.bitpacking import (
    IDS,
    LAST,
    NEW_IDS,
    NEW_WORDS,
    ONE,
    SIX,
    WORDS,
    Bytes,
    Ids,
    Words,
    first_one,
)


def empty(size: int) -> Words:
    """Return an empty set for `size` positions; kernels may read one word beyond them."""
    return np.zeros((size >> 6) + 2, np.uint64)


def full(size: int) -> Words:
    """Return the set of all `size` positions."""
    bits = empty(size)
    bits[: size >> 6] = ~np.uint64(0)
    bits[size >> 6] = np.uint64((1 << size % 64) - 1)
    return bits


def first(bits: Words, size: int) -> Words:
    """Return the members of a set among the first `size` positions."""
    kept = bits.copy()
    kept[(size >> 6) + 1 :] = 0
    kept[size >> 6] &= np.uint64((1 << size % 64) - 1)
    return kept


def count(bits: Words) -> int:
    """Return the number of members."""
    return int(np.bitwise_count(bits).sum(dtype=np.int64))


def members(bits: Words, start: int = 0) -> Ids:
    """Return the members in order, counted from `start`."""
    found = np.empty(count(bits), np.uint32)
    _members(bits, start, found)
    return found


@kernel(NOTHING, WORDS, NUMBER, NEW_IDS)
def _members(bits: Words, start: int, found: Ids) -> None:
    written = 0
    for number in range(len(bits)):
        word = bits[number]
        while word:
            found[written] = start + number * 64 + np.int64(first_one(word))
            word &= word - ONE
            written += 1


@kernel(NOTHING, WORDS, NUMBER, NEW_WORDS)
def _join_later(bits: Words, steps: int, result: Words) -> None:
    whole, rest = steps >> 6, np.uint64(steps & 63)
    for number in range(min(len(result), len(bits) - whole - 1)):
        result[number] |= bits[number + whole] >> rest | bits[number + whole + 1] << ONE << (LAST - rest)


def earlier(bits: Words, least: int, most: int, size: int) -> Words:
    """Return the positions that a member follows at a distance of at least `least` and at most `most`."""
    if least == most == 0:
        return first(bits[: (size >> 6) + 2], size)
    reached, width = bits, 1
    while width < most - least + 1:
        step = min(width, most - least + 1 - width)
        longer = reached.copy()
        _join_later(reached, step, longer)
        reached, width = longer, width + step
    result = empty(size)
    _join_later(reached, least, result)
    result[size >> 6] &= np.uint64((1 << size % 64) - 1)
    result[(size >> 6) + 1] = 0
    return result


@kernel(NOTHING, IDS, NUMBER, NUMBER, NEW_WORDS)
def _set_bits(positions: Ids, start: int, end: int, bits: Words) -> None:
    for number in range(len(positions)):
        position = np.int64(positions[number])
        if start <= position < end:
            place = np.uint64(position - start)
            bits[place >> SIX] |= ONE << (place & LAST)


def set_bits(positions: Ids, start: int, end: int, bits: Words) -> None:
    """Add positions to a set of `[start, end)`; positions outside are ignored."""
    _set_bits(positions, start, end, bits)


@kernel(NOTHING, IDS, IDS, NUMBER, NUMBER, NEW_WORDS)
def _fill(firsts: Ids, nexts: Ids, start: int, end: int, bits: Words) -> None:
    for number in range(len(firsts)):
        first = max(int(firsts[number]), start) - start
        after = min(int(nexts[number]), end) - start
        while first < after:
            stop = min((first >> 6) + 1 << 6, after)
            length = np.uint64(stop - first)
            mask = (ONE << ONE << (length - ONE)) - ONE if length < 64 else ~np.uint64(0)
            bits[first >> 6] |= mask << np.uint64(first & 63)
            first = stop


def fill(firsts: Ids, nexts: Ids, start: int, end: int, bits: Words) -> None:
    """Add regions, each from a first position to before a next one, to a set of `[start, end)`."""
    _fill(firsts, nexts, start, end, bits)


@inner
def _eight(bits):
    """Expand eight bits to eight bytes, each 0 or 1."""
    # Each byte keeps one of the bits. The addition carries it into the highest bit of the byte.
    one_each = bits * np.uint64(0x0101010101010101) & np.uint64(0x8040201008040201)
    return (one_each + np.uint64(0x00406070787C7E7F)) >> np.uint64(7) & np.uint64(0x0101010101010101)


@kernel(NOTHING, WORDS, NUMBER, NEW_WORDS)
def _spread(sets: Words, count: int, found: Words) -> None:
    """Write the numbers of eight positions into each word."""
    length = len(found) >> 3
    for number in range(len(found)):
        eight = np.uint64(0)
        for place in range(count):
            word = sets[place * length + (number >> 3)]
            eight |= _eight(word >> np.uint64((number & 7) << 3) & np.uint64(255)) << np.uint64(place)
        found[number] = eight


def numbers(sets: Sequence[Words], size: int) -> Bytes:
    """Return for each position a number with a bit for every set that has it; at most eight sets."""
    length = (size >> 6) + 1
    found = np.empty(length << 3, np.uint64)
    _spread(np.concatenate([empty(0)[:0], *(one[:length] for one in sets)]), len(sets), found)
    return found.view(np.uint8)[:size]
