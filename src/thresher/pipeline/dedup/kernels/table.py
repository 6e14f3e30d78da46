"""Kernels that sort hashes into buckets, and a hash table that finds the ones that occur more than once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from thresher.jit import BYTES, NUMBER, NUMBERS, inlined, kernel

HASHES = types.Array(types.uint64, 1, "C")
IDS = types.Array(types.uint32, 1, "C")
HASH, SHARE = types.uint64, types.float64

BUCKET_BITS = 10
BUCKETS = 1 << BUCKET_BITS
EMPTY, ONCE, OFTEN = 0, 1, 2  # states of a slot
_TO_BUCKET = np.uint64(64 - BUCKET_BITS)
_EXACT = np.uint64(11)  # bits by which a hash exceeds the precision of a float


@kernel(NUMBER, HASHES, NUMBERS, NUMBERS, HASHES, IDS)
def into_buckets(hashes: Any, counts: Any, starts: Any, sorted_hashes: Any, owners: Any) -> int:
    """Sort hashes into buckets by their upper bits, together with the numbers of their texts; return their number.

    `counts` is the number of hashes of each text. A bucket keeps the order of the texts. `starts` gets the begin of
    each bucket, and the end of the last one.
    """
    starts[:] = 0
    for hashed in hashes:
        starts[np.int64(hashed >> _TO_BUCKET) + 1] += 1
    for number in range(BUCKETS):
        starts[number + 1] += starts[number]
    following = starts.copy()
    done = 0
    for owner in range(len(counts)):
        for _ in range(counts[owner]):
            bucket = np.int64(hashes[done] >> _TO_BUCKET)
            sorted_hashes[following[bucket]] = hashes[done]
            owners[following[bucket]] = owner
            following[bucket] += 1
            done += 1
    return done


@inlined
def _slot(hashed: Any, low: Any, factor: Any, slots: Any) -> Any:
    """Return the preferred slot of a hash; hashes of one bucket are close to each other, which suits the caches."""
    return min(np.int64(np.float64(np.int64((hashed - low) >> _EXACT)) * factor), slots - 1)


@kernel(NUMBER, HASHES, HASH, HASH, SHARE, HASHES, BYTES, NUMBER)
def note(hashes: Any, low: Any, last: Any, factor: Any, keys: Any, states: Any, held: int) -> int:
    """Add the hashes of a range to a table with `held` entries; return the new number, or -1 if it is full."""
    slots = len(keys)
    for hashed in hashes:
        if hashed < low or hashed > last:
            continue
        slot = _slot(hashed, low, factor, slots)
        while states[slot] != EMPTY and keys[slot] != hashed:
            slot = slot + 1 if slot + 1 < slots else 0
        if states[slot] != EMPTY:
            states[slot] = OFTEN
        elif held + 1 >= slots:
            return -1
        else:
            keys[slot] = hashed
            states[slot] = ONCE
            held += 1
    return held


@kernel(NUMBER, HASHES, IDS, HASH, HASH, SHARE, HASHES, BYTES, IDS, IDS)
def pick(
    hashes: Any,
    owners: Any,
    low: Any,
    last: Any,
    factor: Any,
    keys: Any,
    states: Any,
    ids: Any,
    picked_owners: Any,
) -> int:
    """Find the slots and owners of the hashes of a range that occur more than once; return their number.

    Return -1 if the table lacks one of the hashes.
    """
    slots, found = len(keys), 0
    for place in range(len(hashes)):
        hashed = hashes[place]
        if hashed < low or hashed > last:
            continue
        slot = _slot(hashed, low, factor, slots)
        while states[slot] != EMPTY and keys[slot] != hashed:
            slot = slot + 1 if slot + 1 < slots else 0
        if states[slot] == EMPTY:
            return -1
        if states[slot] == OFTEN:
            ids[found] = slot
            picked_owners[found] = owners[place]
            found += 1
    return found


@kernel(NUMBER, IDS, IDS, NUMBER, IDS, IDS)
def by_owner(ids: Any, owners: Any, many: int, sorted_ids: Any, sorted_owners: Any) -> int:
    """Sort entries by owner, stably, and return their number; `many` is the number of owners."""
    following = np.zeros(many + 1, dtype=np.int64)
    for owner in owners:
        following[np.int64(owner) + 1] += 1
    for owner in range(many):
        following[owner + 1] += following[owner]
    for place in range(len(ids)):
        owner = np.int64(owners[place])
        sorted_ids[following[owner]] = ids[place]
        sorted_owners[following[owner]] = owner
        following[owner] += 1
    return len(ids)
