"""The token column: the number of the token's type at each position.

Frequent types have small numbers, so most fit into a byte. The others have a bit set, and their upper part is in a
separate stream, at a place found by counting bits. Any position or range is read without the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from thresher.jit import BYTES as NEW_BYTES
from thresher.jit import NOTHING, NUMBER, bare, inlined, inner, kernel
from thresher.search.encoding.bitpacking import (
    BYTES,
    IDS,
    LAST,
    NEW_IDS,
    NEW_WORDS,
    ONE,
    SIX,
    WORDS,
    Allocator,
    Bytes,
    Ids,
    Words,
    bits_at,
    first_one,
    in_memory,
    mask_of,
    ones,
    put_bits,
)

BYTE = 8  # bits of a number that are in the column itself
BLOCK = 64  # positions whose bits are in one word
UNPACKED_POSITIONS = 4096  # positions that are unpacked at a time; they fit into the processor's first cache


class TokenColumn(NamedTuple):
    """The number at every position."""

    low: Bytes  # the lower byte of each number
    wide: Words  # a bit for each number that does not fit into a byte
    ranks: Ids  # number of such numbers before each block
    high: Words  # their upper parts, of `width` bits each
    width: int


COLUMN = types.Tuple((BYTES, WORDS, IDS, WORDS, NUMBER))


@inlined
def bare_column(column):
    """Return a column whose arrays are replaced by pointers."""
    return bare(column[0]), bare(column[1]), bare(column[2]), bare(column[3]), np.uint64(column[4])


@inner
def number_at(column, position):
    """Return the number at a position of a bare column."""
    low, wide, ranks, high, width = column
    place = np.uint64(position)
    block, bit = wide[place >> SIX], place & LAST
    if not block >> bit & ONE:
        return np.int64(low[place])
    at = (np.uint64(ranks[place >> SIX]) + ones(block & mask_of(bit))) * width
    return np.int64(low[place] | bits_at(high, at, mask_of(width)) << np.uint64(BYTE))


def pack_column(ids: Ids, allocate: Allocator = in_memory) -> TokenColumn:
    """Return a column of numbers."""
    blocks = -(-len(ids) // BLOCK) + 1
    low, wide = allocate("low", np.uint8, len(ids)), allocate("wide", np.uint64, blocks)
    ranks = allocate("ranks", np.uint32, blocks)
    long = _count_long(ids, ranks)
    width = max(int(ids.max(initial=0)).bit_length() - BYTE, 0)
    high = allocate("high", np.uint64, (long * width >> 6) + 2)
    _spread(ids, width, low, wide, high)
    return TokenColumn(low, wide, ranks, high, width)


@kernel(NUMBER, IDS, NEW_IDS)
def _count_long(ids: Ids, ranks: Ids) -> int:
    """Count the numbers that do not fit into a byte: return all of them, and set the count before each block."""
    count = 0
    for position in range(len(ids)):
        if position % BLOCK == 0:
            ranks[position // BLOCK] = count
        count += int(ids[position]) >> BYTE != 0
    ranks[-(-len(ids) // BLOCK)] = count
    return count


@kernel(NOTHING, IDS, NUMBER, NEW_BYTES, NEW_WORDS, NEW_WORDS)
def _spread(ids: Ids, width: int, low: Bytes, wide: Words, high: Words) -> None:
    """Write the lower bytes of numbers, the bits of wide ones, and their upper parts."""
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
    """Unpack `count` numbers from a position on."""
    first = np.uint64(start)
    before = ones(wide[first >> SIX] & mask_of(first & LAST))
    step, mask = np.uint64(width), mask_of(width)
    place = (np.uint64(ranks[first >> SIX]) + before) * step
    for number in range(np.uint64(count)):
        position = first + number
        # Without a branch, since the processor cannot predict which numbers are wide.
        is_long = wide[position >> SIX] >> (position & LAST) & ONE
        ids[number] = low[position] | bits_at(high, place, mask * is_long) << np.uint64(BYTE)
        place += step * is_long


@kernel(NOTHING, BYTES, WORDS, IDS, WORDS, NUMBER, NUMBER, NEW_IDS)
def _unpack(low: Bytes, wide: Words, ranks: Ids, high: Words, width: int, start: int, ids: Ids) -> None:
    _read(low, wide, ranks, high, width, start, len(ids), ids)


@kernel(NOTHING, BYTES, WORDS, IDS, WORDS, NUMBER, IDS, NEW_IDS)
def _pick(low: Bytes, wide: Words, ranks: Ids, high: Words, width: int, positions: Ids, ids: Ids) -> None:
    """Unpack the numbers at some positions."""
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


def translated(column: TokenColumn, table: Bytes, start: int, end: int) -> Bytes:
    """Return the entries of a table for the numbers in `[start, end)`."""
    found = np.empty(max(end - start, 0), np.uint8)
    if end > start:
        _translate(*column, table, start, found)
    return found


@kernel(NOTHING, IDS, NEW_IDS)
def _count(ids: Ids, counts: Ids) -> None:
    for position in range(len(ids)):
        counts[ids[position]] += 1


def counted(ids: Ids, types: int) -> Ids:
    """Return how often each number below `types` occurs."""
    counts = np.zeros(types, np.uint32)
    _count(ids, counts)
    return counts


def unpack(column: TokenColumn, start: int, end: int) -> Ids:
    """Return the numbers in `[start, end)`."""
    ids = np.empty(end - start, np.uint32)
    if end > start:
        _unpack(*column, start, ids)
    return ids


def pick(column: TokenColumn, positions: Ids) -> Ids:
    """Return the numbers at some positions."""
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


def mark(column: TokenColumn, wanted: Bytes, start: int, end: int, bits: Words) -> None:
    """Set the bits of positions in `[start, end)` whose number is wanted; `start` begins a block."""
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


def mark_short(column: TokenColumn, wanted: Bytes, start: int, end: int, bits: Words) -> None:
    """Set the bits of positions like `mark`, for numbers that fit into a byte alone, which is much faster."""
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


def keep(column: TokenColumn, wanted: Bytes, start: int, distance: int, bits: Words) -> None:
    """Remove the members of a set from `start` on that no wanted number follows at a distance."""
    _keep(tuple(column), wanted, start, distance, bits)


class EqualTokens(NamedTuple):
    """A comparison: the entries of two tables for the numbers at two distances are equal, or differ."""

    first_table: Ids
    first: int
    second_table: Ids
    second: int
    is_same: bool


@kernel(NOTHING, COLUMN, IDS, NUMBER, IDS, NUMBER, NUMBER, NUMBER, NEW_WORDS)
def _keep_equal(
    whole_column: Any, one: Ids, first: int, other: Ids, second: int, is_same: int, start: int, bits: Words
) -> None:
    column, size = bare_column(whole_column), len(whole_column[0])
    for block in range(len(bits)):
        left = bits[block]
        while left:
            position = start + block * BLOCK + np.int64(first_one(left))
            keeps = position + max(first, second) < size
            if keeps:
                left_id, right_id = number_at(column, position + first), number_at(column, position + second)
                keeps = (one[left_id] == other[right_id]) == (is_same != 0)
            if not keeps:
                bits[block] &= ~(left & -left)
            left &= left - ONE


def keep_equal(column: TokenColumn, compared: EqualTokens, start: int, bits: Words) -> None:
    """Remove the members of a set from `start` on for which a comparison does not hold."""
    _keep_equal(tuple(column), *compared, start, bits)


@kernel(
    NOTHING, BYTES, WORDS, IDS, WORDS, NUMBER, IDS, NUMBER, IDS, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NEW_WORDS
)  # fmt: skip
def _mark_equal(
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
    ids = np.empty(UNPACKED_POSITIONS + span, np.uint32)
    entries = np.empty(UNPACKED_POSITIONS + span, np.uint32)
    others = entries if is_one_table else np.empty(UNPACKED_POSITIONS + span, np.uint32)
    last = min(end, len(low) - max(first, second))
    for begin in range(start, last, UNPACKED_POSITIONS):
        count = min(UNPACKED_POSITIONS, last - begin)
        _read(low, wide, ranks, high, width, begin + nearest, count + span, ids)
        for number in range(count + span):
            entries[number] = one[ids[number]]
        if not is_one_table:
            for number in range(count + span):
                others[number] = other[ids[number]]
        for offset in range(0, count, BLOCK):
            found = np.uint64(0)
            for number in range(offset, min(offset + BLOCK, count)):
                is_equal = entries[number + first - nearest] == others[number + second - nearest]
                found |= np.uint64(is_equal == (is_same != 0)) << np.uint64(number - offset)
            bits[begin - start + offset >> 6] = found


def mark_equal(column: TokenColumn, compared: EqualTokens, start: int, end: int, bits: Words) -> None:
    """Set the bits of positions in `[start, end)` for which a comparison holds; `start` begins a block."""
    is_one_table = compared.first_table is compared.second_table
    _mark_equal(*column, *compared, is_one_table, start, end, bits)
