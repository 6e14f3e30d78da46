"""Postings: for each type the rising list of its positions, in Elias–Fano code.

Each of `count` positions below `size` takes two bits and the logarithm of `size / count`, however they are spread.
The first position at or after another is found by counting bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.jit import NOTHING, NUMBER, inner, kernel
from thresher.search.encoding.bitpacking import (
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
    Allocator,
    Ids,
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

POSITIONS_AT_A_TIME = 1 << 26  # positions that are sorted in memory
GROUP = 64  # lists per stored start; the other starts are computed from it


class Postings(NamedTuple):
    """The positions of every type."""

    size: int  # all positions are below it
    counts: Ids  # number of positions, by type
    starts: Starts  # first bit of the lists of each group
    words: Words


@inner
def low_bits(count, size):
    """Return the number of lower bits of each position that are stored as they are."""
    return 63 - np.int64(leading_zeros(np.uint64(size // count))) if size > count else 0


@inner
def list_bits(count, size):
    """Return the number of bits of a list."""
    if count == 0:
        return 0
    low = low_bits(count, size)
    return count * low + count + (size >> low) + 1


def pack_postings(ids: Ids, counts: Ids, first: int = 0, allocate: Allocator = in_memory) -> Postings:
    """Return the postings of the types from `first` on in a column; `counts` are the frequencies of all types."""
    counts = counts[first:]
    starts = np.zeros(-(-len(counts) // GROUP) + 1, np.int64)
    words = allocate("posting_words", np.uint64, (_lay_out(counts, len(ids), starts) >> 6) + 2)
    totals = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    start = place = 0
    while start < len(counts):
        end = max(int(np.searchsorted(totals, totals[start] + POSITIONS_AT_A_TIME, "right")) - 1, start + 1)
        places = totals[start : end + 1] - totals[start]
        found = np.empty(places[-1], np.uint32)
        _sort_positions(ids, first + start, first + end, places, found)
        place = _write(found, counts[start:end], len(ids), place, words)
        start = end
    return Postings(len(ids), counts, starts, words)


@kernel(NOTHING, IDS, NUMBER, NUMBER, NEW_STARTS, NEW_IDS)
def _sort_positions(ids: Ids, start: int, end: int, places: Starts, found: Ids) -> None:
    """Write each position of the types in `[start, end)` to the next free place of its type."""
    for position in range(len(ids)):
        number = int(ids[position])
        if start <= number < end:
            found[places[number - start]] = position
            places[number - start] += 1


def pack_lists(positions: Ids, counts: Ids, size: int) -> Postings:
    """Return postings of rising lists of positions, concatenated; `counts` are their lengths."""
    starts = np.zeros(-(-len(counts) // GROUP) + 1, np.int64)
    words = np.zeros((_lay_out(counts, size, starts) >> 6) + 2, np.uint64)
    _write(positions, counts, size, 0, words)
    return Postings(size, counts, starts, words)


@kernel(NUMBER, IDS, NUMBER, NEW_STARTS)
def _lay_out(counts: Ids, size: int, starts: Starts) -> int:
    """Set the first bit of each group of lists; return the number of bits of all."""
    place = 0
    for number in range(len(counts)):
        if number % GROUP == 0:
            starts[number // GROUP] = place
        place += list_bits(np.int64(counts[number]), size)
    return place


@kernel(NUMBER, IDS, IDS, NUMBER, NUMBER, NEW_WORDS)
def _write(positions: Ids, counts: Ids, size: int, place: int, words: Words) -> int:
    """Write lists from a bit on; return the bit after the last list."""
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
    """Return the first bit of a list."""
    place = starts[kind // GROUP]
    for before in range(kind // GROUP * GROUP, kind):
        place += list_bits(np.int64(counts[before]), size)
    return place


@inner
def read_list(words, place, count, size, start, end, found, base, bits):
    """Write the positions of a list in `[start, end)` to `found`, or set their bits if `found` is empty.

    Return the number of positions.
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
    """Return the positions of a type in `[start, end)`, in order."""
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
    """Set the bits of all positions in `[start, end)` of some types, which are sorted."""
    _mark(*postings, kinds, start, end, bits)
