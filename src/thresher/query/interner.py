"""Distinct lines of tokens, numbered as they come: a word with its attributes is looked at as a whole.

A line that begins with one of two control characters opens or closes a structure; any other line is a token.
"""

from __future__ import annotations

import os
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa

from thresher.query.packing import (
    BYTES,
    NEW_IDS,
    NEW_STARTS,
    NEW_WORDS,
    Bytes,
    Ids,
    Starts,
    Words,
    eight_bytes,
    first_one,
    mask_of,
)
from thresher.read.scan.kernel import BYTES as NEW_BYTES
from thresher.read.scan.kernel import NUMBER, inner, kernel
from thresher.store.lines import CLOSES, OPENS

_OPENS, _CLOSES = ord(OPENS), ord(CLOSES)
_LINE_END = 10
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_ONES, _TOPS, _LINE_ENDS = (np.uint64(byte * 0x0101010101010101) for byte in (0x01, 0x80, _LINE_END))

# where the counters stand
_ENTRIES, _POOLED, _TOKENS, _EVENTS = range(4)


# A text of more than 2 GB has no room in Arrow's other arrays.
Texts = pa.LargeStringArray


class Found(NamedTuple):
    """Lines of a text by their numbers: tokens, and between them what opens or closes structures."""

    tokens: Ids
    events: Ids
    places: Starts  # of events: how many tokens stand before each


class Interner:
    """Gives every distinct line a number."""

    def __init__(self) -> None:
        self._slots = np.full(1 << 12, -1, np.int64)
        self._hashes = np.zeros(1 << 11, np.uint64)
        self._ends = np.zeros((1 << 11) + 1, np.int64)  # of entries in the pool
        self._pool = np.zeros(1 << 16, np.uint8)
        self._counters = np.zeros(4, np.int64)
        # Drawn anew each time: nobody can write a text whose lines all fall together.
        self._seed = int.from_bytes(os.urandom(7), "little")

    def __len__(self) -> int:
        return int(self._counters[_ENTRIES])

    def add(self, lines: bytes) -> Found:
        """The numbers of all lines of a text; each ends with a line end."""
        source = np.frombuffer(lines, np.uint8)
        room = len(lines) // 2 + 1  # a line has a byte and an end; what is not written to takes no memory
        tokens, events = np.empty(room, np.uint32), np.empty(room, np.uint32)
        places = np.empty(room, np.int64)
        self._counters[_TOKENS] = self._counters[_EVENTS] = 0
        at = 0
        while at < len(source):
            at = _intern(
                source, at, self._seed, self._slots, self._hashes, self._ends, self._pool, self._counters,
                tokens, events, places,
            )  # fmt: skip
            if at < len(source):
                self._grow(len(source) - at)
        token_count, event_count = int(self._counters[_TOKENS]), int(self._counters[_EVENTS])
        return Found(tokens[:token_count].copy(), events[:event_count].copy(), places[:event_count].copy())

    def lines(self) -> Texts:
        """The distinct lines, by their numbers."""
        ends, pool = (pa.py_buffer(array.data) for array in (self._ends[: len(self) + 1], self._pool))
        return cast(Texts, pa.LargeStringArray.from_buffers(len(self), ends, pool))

    def _grow(self, more: int) -> None:
        """Make room where it has run out: for entries, or for a text of so many bytes."""
        entries, pooled = int(self._counters[_ENTRIES]), int(self._counters[_POOLED])
        if 2 * (entries + 1) >= len(self._slots):
            self._slots = np.full(2 * len(self._slots), -1, np.int64)
            where = self._hashes[:entries] & np.uint64(len(self._slots) - 1)
            _reseat(where.astype(np.int64), self._slots)
            self._hashes = np.concatenate([self._hashes, np.zeros(len(self._hashes), np.uint64)])
            self._ends = np.concatenate([self._ends, np.zeros(len(self._ends), np.int64)])
        else:
            self._pool = np.concatenate([self._pool, np.zeros(max(len(self._pool), more), np.uint8)])
        assert pooled <= len(self._pool)


@inner
def _mixed(hashed, word):
    """A hash of all that went into another, and of a word."""
    hashed = (hashed ^ word) * _PRIME
    return hashed ^ hashed >> np.uint64(29)


@inner
def _line_ends(word):
    """A word in which the lowest bit that is set belongs to the first byte that is a line end; 0 if none is."""
    other = word ^ _LINE_ENDS
    return (other - _ONES) & ~other & _TOPS


@inner
def _line(source, start, seed):
    """Where a line ends that begins at a place, and its hash."""
    size, end = len(source), start
    hashed, rest = np.uint64(seed), np.uint64(0)
    while end + 8 <= size:
        word = eight_bytes(source, end)
        stop = _line_ends(word)
        if stop:
            length = first_one(stop) >> np.uint64(3)
            rest = word & mask_of(length << np.uint64(3))
            return end + np.int64(length), _mixed(hashed, rest)
        hashed = _mixed(hashed, word)
        end += 8
    place = np.uint64(0)
    while end < size and source[end] != _LINE_END:
        rest |= np.uint64(source[end]) << place
        place += np.uint64(8)
        end += 1
    return end, _mixed(hashed, rest)


@inner
def _are_same(pool, first, source, start, length):
    """Whether so many bytes are the same in two places."""
    same = 0
    while same + 8 <= length:
        if eight_bytes(pool, first + same) != eight_bytes(source, start + same):
            return False
        same += 8
    while same < length and pool[first + same] == source[start + same]:
        same += 1
    return same == length


@kernel(NUMBER, NEW_STARTS, NEW_STARTS)
def _reseat(wanted: Starts, slots: Starts) -> int:
    """Seat entries, by their numbers, at the first free slot from the one they want on."""
    for entry in range(len(wanted)):
        slot = wanted[entry]
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = entry
    return 0


@kernel(
    NUMBER, BYTES, NUMBER, NUMBER, NEW_STARTS, NEW_WORDS, NEW_STARTS, NEW_BYTES, NEW_STARTS, NEW_IDS, NEW_IDS,
    NEW_STARTS,
)  # fmt: skip
def _intern(
    source: Bytes,
    start: int,
    seed: int,
    slots: Starts,
    hashes: Words,
    ends: Starts,
    pool: Bytes,
    counters: Starts,
    tokens: Ids,
    events: Ids,
    places: Starts,
) -> int:
    """Number the lines from a place on, as long as there is room; the result is the place that was reached."""
    entries, pooled, token_count, event_count = counters[0], counters[1], counters[2], counters[3]
    size, last_slot = len(source), len(slots) - 1
    while start < size:
        end, hashed = _line(source, start, seed)
        length = end - start
        if length == 0:
            start = end + 1
            continue
        slot = np.int64(hashed) & last_slot
        entry = slots[slot]
        while entry >= 0:
            is_as_long = hashes[entry] == hashed and ends[entry + 1] - ends[entry] == length
            if is_as_long and _are_same(pool, ends[entry], source, start, length):
                break
            slot = (slot + 1) & last_slot
            entry = slots[slot]
        if entry < 0:
            if 2 * (entries + 1) >= len(slots) or pooled + length > len(pool):
                break
            entry = entries
            slots[slot] = entry
            hashes[entry] = hashed
            for offset in range(length):
                pool[pooled + offset] = source[start + offset]
            pooled += length
            entries += 1
            ends[entries] = pooled
        if source[start] == _OPENS or source[start] == _CLOSES:
            events[event_count] = entry
            places[event_count] = token_count
            event_count += 1
        else:
            tokens[token_count] = entry
            token_count += 1
        start = end + 1
    counters[0], counters[1], counters[2], counters[3] = entries, pooled, token_count, event_count
    return min(start, size)
