"""The positions where each thing stands: lists of rising numbers, in Elias–Fano code.

Of `count` positions below `size` each takes two bits and the logarithm of `size / count`, however they are spread.
The first one from some position on is found by counting bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.query.packing import (
    ALL,
    IDS,
    LAST,
    NEW_IDS,
    NEW_STARTS,
    NEW_WORDS,
    ONE,
    SIX,
    STARTS,
    WORDS,
    Ids,
    Room,
    Starts,
    Words,
    bits_at,
    first_one,
    in_memory,
    leading_zeros,
    mask_of,
    ones,
    put_bits,
)
from thresher.read.scan.kernel import NOTHING, NUMBER, inner, kernel

AT_ONCE = 1 << 26  # positions that are sorted at a time
GROUP = 64  # lists of postings whose start is counted from one that is written down


class Postings(NamedTuple):
    """The positions of every type."""

    size: int  # all positions are below
    counts: Ids  # of positions, by type
    starts: Starts  # where the lists of every group begin, in bits
    words: Words


@inner
def low_bits(count, size):
    """How many lower bits of each position are written as they are."""
    return 63 - np.int64(leading_zeros(np.uint64(size // count))) if size > count else 0


@inner
def list_bits(count, size):
    """How many bits a list of positions takes."""
    if count == 0:
        return 0
    low = low_bits(count, size)
    return count * low + count + (size >> low) + 1


def pack_postings(ids: Ids, counts: Ids, first: int = 0, room: Room = in_memory) -> Postings:
    """The positions of every number from `first` on in a column; `counts` tells of all how many there are."""
    counts = counts[first:]
    starts = np.zeros(-(-len(counts) // GROUP) + 1, np.int64)
    words = room("posting_words", np.uint64, (_lay_out(counts, len(ids), starts) >> 6) + 2)
    # So many at a time as fit into memory.
    totals = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    start = place = 0
    while start < len(counts):
        end = max(int(np.searchsorted(totals, totals[start] + AT_ONCE, "right")) - 1, start + 1)
        places = totals[start : end + 1] - totals[start]
        found = np.empty(places[-1], np.uint32)
        _sort_positions(ids, first + start, first + end, places, found)
        place = _write(found, counts[start:end], len(ids), place, words)
        start = end
    return Postings(len(ids), counts, starts, words)


@kernel(NOTHING, IDS, NUMBER, NUMBER, NEW_STARTS, NEW_IDS)
def _sort_positions(ids: Ids, start: int, end: int, places: Starts, found: Ids) -> None:
    """Every position of some numbers to the next free place of its number."""
    for position in range(len(ids)):
        number = int(ids[position])
        if start <= number < end:
            found[places[number - start]] = position
            places[number - start] += 1


def pack_lists(positions: Ids, counts: Ids, size: int) -> Postings:
    """Lists of rising positions below a size, one after the other, so many in each."""
    starts = np.zeros(-(-len(counts) // GROUP) + 1, np.int64)
    words = np.zeros((_lay_out(counts, size, starts) >> 6) + 2, np.uint64)
    _write(positions, counts, size, 0, words)
    return Postings(size, counts, starts, words)


@kernel(NUMBER, IDS, NUMBER, NEW_STARTS)
def _lay_out(counts: Ids, size: int, starts: Starts) -> int:
    """Where each group of lists begins, and how many bits there are in all."""
    place = 0
    for number in range(len(counts)):
        if number % GROUP == 0:
            starts[number // GROUP] = place
        place += list_bits(np.int64(counts[number]), size)
    return place


@kernel(NUMBER, IDS, IDS, NUMBER, NUMBER, NEW_WORDS)
def _write(positions: Ids, counts: Ids, size: int, place: int, words: Words) -> int:
    """Write lists from a place on; the result is the place behind the last one."""
    first = 0
    for number in range(len(counts)):
        count = int(counts[number])
        low = low_bits(count, size) if count else 0
        upper = place + count * low
        for item in range(count):
            position = np.uint64(positions[first + item])
            put_bits(words, np.uint64(place + item * low), position & mask_of(low))
            put_bits(words, np.uint64(upper + np.int64(position >> np.uint64(low)) + item), ONE)
        place += list_bits(count, size)
        first += count
    return place


@inner
def list_place(size, counts, starts, kind):
    """Where a list begins, in bits."""
    place = starts[kind // GROUP]
    for before in range(kind // GROUP * GROUP, kind):
        place += list_bits(np.int64(counts[before]), size)
    return place


@inner
def read_list(words, place, count, size, start, end, found, base, bits):
    """Positions of a list from one to before another, written down, or set as bits if there is no room for any.

    The result is how many there are.
    """
    if count == 0:
        return 0
    low = np.uint64(low_bits(count, size))
    mask = mask_of(low)
    lower = np.uint64(place)
    upper = lower + np.uint64(count) * low
    # The upper part of the position of a bit is the number of zeros before it: skip words with too few of them.
    wanted, last = np.uint64(start) >> low, np.uint64(count)
    item = bit = np.uint64(0)
    word = bits_at(words, upper, ALL)
    while bit - item + np.uint64(64) - ones(word) < wanted and item + ones(word) < last:
        item += ones(word)
        bit += np.uint64(64)
        word = bits_at(words, upper + bit, ALL)
    written = 0
    while item < last:
        while word == 0:
            bit += np.uint64(64)
            word = bits_at(words, upper + bit, ALL)
        above = bit + first_one(word) - item
        word &= word - ONE
        position = above << low | bits_at(words, lower + item * low, mask)
        item += ONE
        if position >= np.uint64(end):
            break
        if position >= np.uint64(start):
            if len(found):
                found[written] = position
            else:
                place_of_bit = position - np.uint64(base)
                bits[place_of_bit >> SIX] |= ONE << (place_of_bit & LAST)
            written += 1
    return written


@kernel(NUMBER, NUMBER, IDS, STARTS, WORDS, NUMBER, NUMBER, NUMBER, NEW_IDS)
def _positions(
    size: int, counts: Ids, starts: Starts, words: Words, kind: int, start: int, end: int, found: Ids
) -> int:
    place = list_place(size, counts, starts, kind)
    return int(
        read_list(words, place, np.int64(counts[kind]), size, start, end, found, 0, np.zeros(0, np.uint64))
    )


def positions(postings: Postings, kind: int, start: int = 0, end: int | None = None) -> Ids:
    """The positions of a type, in order: all of them, or those from one to before another."""
    end = postings.size if end is None else end
    found = np.empty(min(int(postings.counts[kind]), max(end - start, 0)), np.uint32)
    return found[: _positions(*postings, kind, start, end, found)] if len(found) else found


@kernel(NOTHING, NUMBER, IDS, STARTS, WORDS, IDS, NUMBER, NUMBER, NEW_WORDS)
def _mark(
    size: int, counts: Ids, starts: Starts, words: Words, kinds: Ids, start: int, end: int, bits: Words
) -> None:
    nowhere = np.zeros(0, np.uint32)
    place, at = np.int64(0), np.int64(-GROUP)
    for number in range(len(kinds)):
        kind = np.int64(kinds[number])
        if kind - at >= GROUP:
            at = kind // GROUP * GROUP
            place = starts[kind // GROUP]
        while at < kind:
            place += list_bits(np.int64(counts[at]), size)
            at += 1
        read_list(words, place, np.int64(counts[kind]), size, start, end, nowhere, start, bits)


def mark(postings: Postings, kinds: Ids, start: int, end: int, bits: Words) -> None:
    """Set the bits of all positions of some types, in their order, from one position to before another."""
    _mark(*postings, kinds, start, end, bits)
