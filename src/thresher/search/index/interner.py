"""Interner of token lines: it numbers distinct lines in the order in which they first occur.

A word with its attributes is one line. A line that begins with one of two control characters opens or closes a
structure; any other line is a token.
"""

from __future__ import annotations

import os
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa

from thresher.jit import BYTES as NEW_BYTES
from thresher.jit import NUMBER, inner, kernel
from thresher.search.encoding.bitpacking import (
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
from thresher.store.token_lines import CLOSES, OPENS

_OPENS, _CLOSES = ord(OPENS), ord(CLOSES)
_LINE_END = 10
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_ONES, _TOPS, _LINE_ENDS = (np.uint64(byte * 0x0101010101010101) for byte in (0x01, 0x80, _LINE_END))

# Places of the counters.
_ENTRIES, _POOLED, _TOKENS, _EVENTS = range(4)


# Arrow's smaller string array cannot hold more than 2 GB of text.
Texts = pa.LargeStringArray


class InternedLines(NamedTuple):
    """The numbers of a document's lines: tokens, and events, which open or close structures."""

    tokens: Ids
    events: Ids
    places: Starts  # number of tokens before each event


class Interner:
    """A hash table from distinct lines to numbers."""

    def __init__(self) -> None:
        self._slots = np.full(1 << 12, -1, np.int64)
        self._hashes = np.zeros(1 << 11, np.uint64)
        self._ends = np.zeros((1 << 11) + 1, np.int64)  # of the entries in the pool
        self._pool = np.zeros(1 << 16, np.uint8)
        self._counters = np.zeros(4, np.int64)
        # A random seed, so that no text can be written whose lines all collide.
        self._seed = int.from_bytes(os.urandom(7), "little")

    def __len__(self) -> int:
        return int(self._counters[_ENTRIES])

    def add(self, lines: bytes) -> InternedLines:
        """Return the numbers of all lines of a text, each of which ends with a line feed."""
        source = np.frombuffer(lines, np.uint8)
        # A line has at least two bytes. Pages that are never written take no memory.
        most_lines = len(lines) // 2 + 1
        tokens, events = np.empty(most_lines, np.uint32), np.empty(most_lines, np.uint32)
        places = np.empty(most_lines, np.int64)
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
        return InternedLines(
            tokens[:token_count].copy(), events[:event_count].copy(), places[:event_count].copy()
        )

    def lines(self) -> Texts:
        """Return the distinct lines in the order of their numbers."""
        ends, pool = (pa.py_buffer(array.data) for array in (self._ends[: len(self) + 1], self._pool))
        return cast(Texts, pa.LargeStringArray.from_buffers(len(self), ends, pool))

    def _grow(self, more: int) -> None:
        """Enlarge the full one of table and pool, the pool by at least `more` bytes."""
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
    """Mix a word into a hash."""
    hashed = (hashed ^ word) * _PRIME
    return hashed ^ hashed >> np.uint64(29)


@inner
def _line_ends(word):
    """Return a word with its lowest set bit in the first byte that is a line feed; 0 if there is none."""
    other = word ^ _LINE_ENDS
    return (other - _ONES) & ~other & _TOPS


@inner
def _line(source, start, seed):
    """Return the end of the line that begins at `start`, and its hash."""
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
    """Return whether `length` bytes are the same in two places."""
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
    """Insert entries into the first free slot from the wanted one on."""
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
    """Assign numbers to lines from a place on until table or pool is full; return the place reached."""
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
