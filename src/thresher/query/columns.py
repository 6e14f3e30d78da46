"""What stands at each position: a column of numbers.

Frequent types have small numbers, so most fit into a byte; the others have a bit set and their upper part in a
stream of its own, found by counting bits. One position, or a stretch of them, is read without the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from thresher.query.packing import (
    BYTES,
    IDS,
    LAST,
    NEW_IDS,
    NEW_WORDS,
    ONE,
    SIX,
    WORDS,
    Bytes,
    Ids,
    Room,
    Words,
    bits_at,
    first_one,
    in_memory,
    mask_of,
    ones,
    put_bits,
)
from thresher.read.scan.kernel import BYTES as NEW_BYTES
from thresher.read.scan.kernel import NOTHING, NUMBER, bare, inlined, inner, kernel

BYTE = 8  # bits of a number that stand in the column itself
BLOCK = 64  # positions whose bits are in one word
AT_ONCE = 4096  # positions whose numbers are at hand at a time


class Column(NamedTuple):
    """The number at every position."""

    low: Bytes  # the lower byte of each
    wide: Words  # a bit for each that has more
    ranks: Ids  # how many have more before each block
    high: Words  # the rest of those, of `width` bits each
    width: int


COLUMN = types.Tuple((BYTES, WORDS, IDS, WORDS, NUMBER))


@inlined
def bare_column(column):
    """A column whose arrays are known by where they begin."""
    return bare(column[0]), bare(column[1]), bare(column[2]), bare(column[3]), np.uint64(column[4])


@inner
def number_at(column, position):
    """The number at a position of a bare column."""
    low, wide, ranks, high, width = column
    place = np.uint64(position)
    block, bit = wide[place >> SIX], place & LAST
    if not block >> bit & ONE:
        return np.int64(low[place])
    at = (np.uint64(ranks[place >> SIX]) + ones(block & mask_of(bit))) * width
    return np.int64(low[place] | bits_at(high, at, mask_of(width)) << np.uint64(BYTE))


def pack_column(ids: Ids, room: Room = in_memory) -> Column:
    """A column of numbers."""
    blocks = -(-len(ids) // BLOCK) + 1
    low, wide = room("low", np.uint8, len(ids)), room("wide", np.uint64, blocks)
    ranks = room("ranks", np.uint32, blocks)
    long = _count_long(ids, ranks)
    width = max(int(ids.max(initial=0)).bit_length() - BYTE, 0)
    high = room("high", np.uint64, (long * width >> 6) + 2)
    _spread(ids, width, low, wide, high)
    return Column(low, wide, ranks, high, width)


@kernel(NUMBER, IDS, NEW_IDS)
def _count_long(ids: Ids, ranks: Ids) -> int:
    """How many numbers have more than a byte: in all, and before each block."""
    count = 0
    for position in range(len(ids)):
        if position % BLOCK == 0:
            ranks[position // BLOCK] = count
        count += int(ids[position]) >> BYTE != 0
    ranks[-(-len(ids) // BLOCK)] = count
    return count


@kernel(NOTHING, IDS, NUMBER, NEW_BYTES, NEW_WORDS, NEW_WORDS)
def _spread(ids: Ids, width: int, low: Bytes, wide: Words, high: Words) -> None:
    """Write the lower bytes of numbers, a bit for those that have more, and what they have more."""
    place = np.uint64(0)
    for position in range(len(ids)):
        low[position] = np.uint8(ids[position] & 255)
        more = np.uint64(ids[position]) >> np.uint64(BYTE)
        if more:
            wide[position >> 6] |= ONE << np.uint64(position & 63)
            put_bits(high, place, more)
            place += np.uint64(width)


@inner
def _read(low, wide, ranks, high, width, start, count, ids):
    """So many numbers from a position on."""
    first = np.uint64(start)
    before = ones(wide[first >> SIX] & mask_of(first & LAST))
    step, mask = np.uint64(width), mask_of(width)
    place = (np.uint64(ranks[first >> SIX]) + before) * step
    for number in range(np.uint64(count)):
        position = first + number
        # No branch: which numbers are long cannot be foreseen.
        is_long = wide[position >> SIX] >> (position & LAST) & ONE
        ids[number] = low[position] | bits_at(high, place, mask * is_long) << np.uint64(BYTE)
        place += step * is_long


@kernel(NOTHING, BYTES, WORDS, IDS, WORDS, NUMBER, NUMBER, NEW_IDS)
def _unpack(low: Bytes, wide: Words, ranks: Ids, high: Words, width: int, start: int, ids: Ids) -> None:
    _read(low, wide, ranks, high, width, start, len(ids), ids)


@kernel(NOTHING, BYTES, WORDS, IDS, WORDS, NUMBER, IDS, NEW_IDS)
def _pick(low: Bytes, wide: Words, ranks: Ids, high: Words, width: int, positions: Ids, ids: Ids) -> None:
    """The numbers at some positions."""
    step, mask = np.uint64(width), mask_of(width)
    for number in range(np.uint64(len(positions))):
        position = np.uint64(positions[number])
        block, bit = wide[position >> SIX], position & LAST
        is_long = block >> bit & ONE
        place = (np.uint64(ranks[position >> SIX]) + ones(block & mask_of(bit))) * step
        ids[number] = low[position] | bits_at(high, place, mask * is_long) << np.uint64(BYTE)


@kernel(NOTHING, BYTES, WORDS, IDS, WORDS, NUMBER, BYTES, NUMBER, NEW_BYTES)
def _translate(
    low: Bytes, wide: Words, ranks: Ids, high: Words, width: int, table: Bytes, start: int, found: Bytes
) -> None:
    first = np.uint64(start)
    before = ones(wide[first >> SIX] & mask_of(first & LAST))
    step, mask = np.uint64(width), mask_of(width)
    place = (np.uint64(ranks[first >> SIX]) + before) * step
    for number in range(np.uint64(len(found))):
        position = first + number
        is_long = wide[position >> SIX] >> (position & LAST) & ONE
        found[number] = table[low[position] | bits_at(high, place, mask * is_long) << np.uint64(BYTE)]
        place += step * is_long


def translated(column: Column, table: Bytes, start: int, end: int) -> Bytes:
    """What a table says of the numbers from a position to before another."""
    found = np.empty(max(end - start, 0), np.uint8)
    if end > start:
        _translate(*column, table, start, found)
    return found


@kernel(NOTHING, IDS, NEW_IDS)
def _count(ids: Ids, counts: Ids) -> None:
    for position in range(len(ids)):
        counts[ids[position]] += 1


def counted(ids: Ids, kinds: int) -> Ids:
    """How often each number below `kinds` is there."""
    counts = np.zeros(kinds, np.uint32)
    _count(ids, counts)
    return counts


def unpack(column: Column, start: int, end: int) -> Ids:
    """The numbers from a position to before another."""
    ids = np.empty(end - start, np.uint32)
    if end > start:
        _unpack(*column, start, ids)
    return ids


def pick(column: Column, positions: Ids) -> Ids:
    """The numbers at some positions."""
    ids = np.empty(len(positions), np.uint32)
    _pick(*column, positions, ids)
    return ids


@kernel(NOTHING, BYTES, WORDS, IDS, WORDS, NUMBER, BYTES, NUMBER, NUMBER, NEW_WORDS)
def _mark(
    low: Bytes,
    wide: Words,
    ranks: Ids,
    high: Words,
    width: int,
    wanted: Bytes,
    start: int,
    end: int,
    bits: Words,
) -> None:
    step, mask = np.uint64(width), mask_of(width)
    position, last = np.uint64(start), np.uint64(end)
    while position < last:
        block = wide[position >> SIX]
        place = np.uint64(ranks[position >> SIX]) * step
        found = np.uint64(0)
        for offset in range(min(np.uint64(BLOCK), last - position)):
            is_long = block >> offset & ONE
            number = low[position + offset] | bits_at(high, place, mask * is_long) << np.uint64(BYTE)
            place += step * is_long
            found |= np.uint64(wanted[number]) << offset
        bits[(position - np.uint64(start)) >> SIX] |= found
        position += np.uint64(BLOCK)


def mark(column: Column, wanted: Bytes, start: int, end: int, bits: Words) -> None:
    """Set the bits of positions whose number is wanted, from the first of a block to before another."""
    _mark(*column, wanted, start, end, bits)


@kernel(NOTHING, BYTES, WORDS, BYTES, NUMBER, NUMBER, NEW_WORDS)
def _mark_short(low: Bytes, wide: Words, wanted: Bytes, start: int, end: int, bits: Words) -> None:
    position, last = np.uint64(start), np.uint64(end)
    while position < last:
        found = np.uint64(0)
        for offset in range(min(np.uint64(BLOCK), last - position)):
            found |= np.uint64(wanted[low[position + offset]]) << offset
        bits[(position - np.uint64(start)) >> SIX] |= found & ~wide[position >> SIX]
        position += np.uint64(BLOCK)


def mark_short(column: Column, wanted: Bytes, start: int, end: int, bits: Words) -> None:
    """The same for numbers that fit into a byte, which costs much less; `wanted` tells of these alone."""
    _mark_short(column.low, column.wide, wanted, start, end, bits)


@kernel(NOTHING, COLUMN, BYTES, NUMBER, NUMBER, NEW_WORDS)
def _keep(whole_column: Any, wanted: Bytes, start: int, distance: int, bits: Words) -> None:
    column, size = bare_column(whole_column), len(whole_column[0])
    for block in range(len(bits)):
        left = bits[block]
        while left:
            position = start + block * BLOCK + np.int64(first_one(left)) + distance
            if position >= size or not wanted[number_at(column, position)]:
                bits[block] &= ~(left & -left)
            left &= left - ONE


def keep(column: Column, wanted: Bytes, start: int, distance: int, bits: Words) -> None:
    """Leave those in a set of positions from `start` on at whose distance a wanted number stands."""
    _keep(tuple(column), wanted, start, distance, bits)


class Alike(NamedTuple):
    """What two tables say of the numbers at two distances is the same, or is not."""

    first_table: Ids
    first: int
    second_table: Ids
    second: int
    is_same: bool


@kernel(NOTHING, COLUMN, IDS, NUMBER, IDS, NUMBER, NUMBER, NUMBER, NEW_WORDS)
def _keep_alike(
    whole_column: Any, one: Ids, first: int, other: Ids, second: int, is_same: int, start: int, bits: Words
) -> None:
    column, size = bare_column(whole_column), len(whole_column[0])
    for block in range(len(bits)):
        left = bits[block]
        while left:
            position = start + block * BLOCK + np.int64(first_one(left))
            keeps = position + max(first, second) < size
            if keeps:
                ours, others = number_at(column, position + first), number_at(column, position + second)
                keeps = (one[ours] == other[others]) == (is_same != 0)
            if not keeps:
                bits[block] &= ~(left & -left)
            left &= left - ONE


def keep_alike(column: Column, alike: Alike, start: int, bits: Words) -> None:
    """Leave those in a set of positions from `start` on of which that is true."""
    _keep_alike(tuple(column), *alike, start, bits)


@kernel(
    NOTHING, BYTES, WORDS, IDS, WORDS, NUMBER, IDS, NUMBER, IDS, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NEW_WORDS
)  # fmt: skip
def _mark_alike(
    low: Bytes,
    wide: Words,
    ranks: Ids,
    high: Words,
    width: int,
    one: Ids,
    first: int,
    other: Ids,
    second: int,
    is_same: int,
    is_one_table: int,
    start: int,
    end: int,
    bits: Words,
) -> None:
    nearest = min(first, second)
    span = max(first, second) - nearest
    ids = np.empty(AT_ONCE + span, np.uint32)
    ours = np.empty(AT_ONCE + span, np.uint32)
    others = ours if is_one_table else np.empty(AT_ONCE + span, np.uint32)
    last = min(end, len(low) - max(first, second))
    for begin in range(start, last, AT_ONCE):
        count = min(AT_ONCE, last - begin)
        _read(low, wide, ranks, high, width, begin + nearest, count + span, ids)
        for number in range(count + span):
            ours[number] = one[ids[number]]
        if not is_one_table:
            for number in range(count + span):
                others[number] = other[ids[number]]
        for offset in range(0, count, BLOCK):
            found = np.uint64(0)
            for number in range(offset, min(offset + BLOCK, count)):
                is_alike = ours[number + first - nearest] == others[number + second - nearest]
                found |= np.uint64(is_alike == (is_same != 0)) << np.uint64(number - offset)
            bits[begin - start + offset >> 6] = found


def mark_alike(column: Column, alike: Alike, start: int, end: int, bits: Words) -> None:
    """Set the bits of positions of which that is true, from the first of a block to before another."""
    is_one_table = alike.first_table is alike.second_table
    _mark_alike(*column, *alike, is_one_table, start, end, bits)
