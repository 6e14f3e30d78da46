"""How tokens are packed: what stands at each position, and the positions where each thing stands.

A *column* has the number of a token's type at every position. Frequent types have small numbers, so most fit into
a byte; the others have a bit set and their upper part in a stream of its own, found by counting bits. One position,
or a stretch of them, is read without the rest.

*Postings* are the positions of every type, in Elias–Fano code: of `count` positions below `size` each takes two
bits and the logarithm of `size / count`, however they are spread. The first one from some position on is found by
counting bits, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from thresher.read.scan.kernel import NOTHING, NUMBER, inner, kernel

BYTE = 8  # bits of a number that stand in the column itself
BLOCK = 64  # positions whose bits are in one word
GROUP = 64  # lists of postings whose start is counted from one that is written down

Bytes = NDArray[np.uint8]
Ids = NDArray[np.uint32]
Words = NDArray[np.uint64]
Starts = NDArray[np.int64]

# What a memory-mapped file lends, and what is made anew.
_BYTES = types.Array(types.uint8, 1, "C", readonly=True)
_IDS = types.Array(types.uint32, 1, "C", readonly=True)
_WORDS = types.Array(types.uint64, 1, "C", readonly=True)
_STARTS = types.Array(types.int64, 1, "C", readonly=True)
_NEW_IDS = types.Array(types.uint32, 1, "C")
_NEW_WORDS = types.Array(types.uint64, 1, "C")

_ONE, _SIX, _LAST = np.uint64(1), np.uint64(6), np.uint64(63)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Column(NamedTuple):
    """The number at every position."""

    low: Bytes  # the lower byte of each
    wide: Words  # a bit for each that has more
    ranks: Starts  # how many have more before each block
    high: Words  # the rest of those, of `width` bits each
    width: int


class Postings(NamedTuple):
    """The positions of every type."""

    size: int  # all positions are below
    counts: Ids  # of positions, by type
    starts: Starts  # where the lists of every group begin, in bits
    words: Words


def _instruction(name: str, *arguments: bool) -> Any:
    """A function of a word that processors have an instruction for."""

    def typed(_context: Any, word: types.Type) -> tuple[Any, Callable[..., Any]]:
        def build(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            flags = [context.get_constant(types.boolean, argument) for argument in arguments]
            return getattr(builder, name)(values[0], *flags)

        return types.uint64(word), build

    return intrinsic(typed)


ones = _instruction("ctpop")  # how many bits of a word are set
first_one = _instruction("cttz", True)  # the place of the lowest one, if there is one


@inner
def bits_at(words, place, mask):
    """A number from anywhere, as long as a mask."""
    word, offset = place >> _SIX, place & _LAST
    # In two steps, for there is no shift by 64.
    return (words[word] >> offset | words[word + _ONE] << _ONE << (_LAST - offset)) & mask


@inner
def put_bits(words, place, value):
    """Write a number to where nothing was written before."""
    word, offset = place >> _SIX, place & _LAST
    words[word] |= value << offset
    words[word + _ONE] |= value >> _ONE >> (_LAST - offset)


@inner
def mask_of(width):
    """A word with so many bits set; fewer than 64."""
    return (_ONE << np.uint64(width)) - _ONE


# columns


def pack_column(ids: Ids) -> Column:
    """A column of numbers."""
    wide = ids >> BYTE != 0
    width = int(ids.max(initial=0)).bit_length() - BYTE if wide.any() else 0
    counts = (
        np.add.reduceat(wide, np.arange(0, len(ids), BLOCK), dtype=np.int64)
        if len(ids)
        else np.zeros(0, np.int64)
    )
    ranks = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    bits = np.zeros(-(-len(ids) // BLOCK) + 1, np.uint64)
    high = np.zeros((int(ranks[-1]) * width >> 6) + 2, np.uint64)
    _spread(ids, width, bits, high)
    return Column(ids.astype(np.uint8), bits, ranks, high, width)


@kernel(NOTHING, _IDS, NUMBER, _NEW_WORDS, _NEW_WORDS)
def _spread(ids: Ids, width: int, wide: Words, high: Words) -> None:
    """Set the bits of numbers that have more than a byte, and write what they have more."""
    place = np.uint64(0)
    for position in range(len(ids)):
        more = np.uint64(ids[position]) >> np.uint64(BYTE)
        if more:
            wide[position >> 6] |= _ONE << np.uint64(position & 63)
            put_bits(high, place, more)
            place += np.uint64(width)


@kernel(NOTHING, _BYTES, _WORDS, _STARTS, _WORDS, NUMBER, NUMBER, _NEW_IDS)
def _unpack(low: Bytes, wide: Words, ranks: Starts, high: Words, width: int, start: int, ids: Ids) -> None:
    """The numbers from a position on, as many as there is room for."""
    first = np.uint64(start)
    before = ones(wide[first >> _SIX] & mask_of(first & _LAST))
    step, mask = np.uint64(width), mask_of(width)
    place = (np.uint64(ranks[first >> _SIX]) + before) * step
    for number in range(np.uint64(len(ids))):
        position = first + number
        # No branch: which numbers are long cannot be foreseen.
        is_long = wide[position >> _SIX] >> (position & _LAST) & _ONE
        ids[number] = low[position] | bits_at(high, place, mask * is_long) << np.uint64(BYTE)
        place += step * is_long


@kernel(NOTHING, _BYTES, _WORDS, _STARTS, _WORDS, NUMBER, _IDS, _NEW_IDS)
def _pick(low: Bytes, wide: Words, ranks: Starts, high: Words, width: int, positions: Ids, ids: Ids) -> None:
    """The numbers at some positions."""
    step, mask = np.uint64(width), mask_of(width)
    for number in range(np.uint64(len(positions))):
        position = np.uint64(positions[number])
        block, bit = wide[position >> _SIX], position & _LAST
        is_long = block >> bit & _ONE
        place = (np.uint64(ranks[position >> _SIX]) + ones(block & mask_of(bit))) * step
        ids[number] = low[position] | bits_at(high, place, mask * is_long) << np.uint64(BYTE)


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


# postings


@inner
def low_bits(count, size):
    """How many lower bits of each position are written as they are."""
    bits = 0
    while count << bits + 1 <= size:
        bits += 1
    return bits


@inner
def list_bits(count, size):
    """How many bits a list of positions takes."""
    if count == 0:
        return 0
    low = low_bits(count, size)
    return count * low + count + (size >> low) + 1


def pack_postings(ids: Ids, kinds: int) -> Postings:
    """The positions of every number below `kinds` in a column."""
    counts = np.bincount(ids, minlength=kinds).astype(np.uint32)
    return pack_lists(np.argsort(ids, kind="stable").astype(np.uint32), counts, len(ids))


def pack_lists(positions: Ids, counts: Ids, size: int) -> Postings:
    """Lists of rising positions below a size, one after the other, so many in each."""
    starts = np.zeros(-(-len(counts) // GROUP) + 1, np.int64)
    words = np.zeros((_lay_out(counts, size, starts) >> 6) + 2, np.uint64)
    _write(positions, counts, size, words)
    return Postings(size, counts, starts, words)


@kernel(NUMBER, _IDS, NUMBER, types.Array(types.int64, 1, "C"))
def _lay_out(counts: Ids, size: int, starts: Starts) -> int:
    """Where each group of lists begins, and how many bits there are in all."""
    place = 0
    for number in range(len(counts)):
        if number % GROUP == 0:
            starts[number // GROUP] = place
        place += list_bits(np.int64(counts[number]), size)
    return place


@kernel(NOTHING, _IDS, _IDS, NUMBER, _NEW_WORDS)
def _write(positions: Ids, counts: Ids, size: int, words: Words) -> None:
    place = first = 0
    for number in range(len(counts)):
        count = int(counts[number])
        low = low_bits(count, size) if count else 0
        upper = place + count * low
        for item in range(count):
            position = np.uint64(positions[first + item])
            put_bits(words, np.uint64(place + item * low), position & mask_of(low))
            put_bits(words, np.uint64(upper + np.int64(position >> np.uint64(low)) + item), _ONE)
        place += list_bits(count, size)
        first += count


@kernel(NUMBER, NUMBER, _IDS, _STARTS, _WORDS, NUMBER, NUMBER, NUMBER, _NEW_IDS)
def _positions(
    size: int, counts: Ids, starts: Starts, words: Words, kind: int, start: int, end: int, found: Ids
) -> int:
    """Positions of a type from one to before another; the result is how many there are."""
    place = int(starts[kind // GROUP])
    for before in range(kind // GROUP * GROUP, kind):
        place += list_bits(np.int64(counts[before]), size)
    count = np.int64(counts[kind])
    if count == 0:
        return 0
    low = np.uint64(low_bits(count, size))
    mask = mask_of(low)
    lower = np.uint64(place)
    upper = lower + np.uint64(count) * low
    # The upper part of the position of a bit is the number of zeros before it: skip words with too few of them.
    wanted, last = np.uint64(start) >> low, np.uint64(count)
    item = bit = np.uint64(0)
    word = bits_at(words, upper, _ALL)
    while bit - item + np.uint64(64) - ones(word) < wanted and item + ones(word) < last:
        item += ones(word)
        bit += np.uint64(64)
        word = bits_at(words, upper + bit, _ALL)
    written = np.uint64(0)
    while item < last:
        while word == 0:
            bit += np.uint64(64)
            word = bits_at(words, upper + bit, _ALL)
        above = bit + first_one(word) - item
        word &= word - _ONE
        position = above << low | bits_at(words, lower + item * low, mask)
        item += _ONE
        if position >= np.uint64(end):
            break
        if position >= np.uint64(start):
            found[written] = position
            written += _ONE
    return int(written)


def positions(postings: Postings, kind: int, start: int = 0, end: int | None = None) -> Ids:
    """The positions of a type, in order: all of them, or those from one to before another."""
    end = postings.size if end is None else end
    found = np.empty(min(int(postings.counts[kind]), max(end - start, 0)), np.uint32)
    return found[: _positions(*postings, kind, start, end, found)]
