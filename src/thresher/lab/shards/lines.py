"""Lines in which hosts or events wait for their time, and a sender's memory: parts of kernels over plain arrays."""

from __future__ import annotations

import numpy as np

from thresher.read.scan.kernel import inner

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
NOBODY = -1


@inner
def push(times, items, start, length, time, item):
    """Put an item into a heap that begins at `start`; of items at the same time the lower one comes first."""
    place = length
    while place:
        above = (place - 1) >> 1
        earlier = times[start + above]
        if earlier < time or (earlier == time and items[start + above] <= item):
            break
        times[start + place], items[start + place] = earlier, items[start + above]
        place = above
    times[start + place], items[start + place] = time, item


@inner
def pop(times, items, start, length):
    """Take the first item out of a heap of that length."""
    first, last = items[start], length - 1
    time, item = times[start + last], items[start + last]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        one, other = start + below, start + below + 1
        if below + 1 < last and (
            times[other] < times[one] or (times[other] == times[one] and items[other] < items[one])
        ):
            below += 1
        under = start + below
        if time < times[under] or (time == times[under] and item <= items[under]):
            break
        times[start + place], items[start + place] = times[under], items[under]
        place = below
    times[start + place], items[start + place] = time, item
    return first


@inner
def _place(table, page):
    """Where a page stands in a table whose size is a power of two, or could."""
    mask = len(table) - 1
    place = np.int64((np.uint64(page) * _SPREAD) >> np.uint64(32)) & mask
    while table[place] != NOBODY and table[place] != page:
        place = (place + 1) & mask
    return place


@inner
def is_new(memory, counts, young, shard, page, recent):
    """Whether a shard has not sent a page lately; from now on it has.

    As in `thresher.crawl.seen.Seen`: when a generation has more than `recent` members, the one before is forgotten.
    """
    now = young[shard]
    if memory[shard, 1 - now, _place(memory[shard, 1 - now], page)] == page:
        return False
    place = _place(memory[shard, now], page)
    if memory[shard, now, place] == page:
        return False
    memory[shard, now, place] = page
    counts[shard] += 1
    if counts[shard] > recent:
        young[shard] = 1 - now
        memory[shard, 1 - now, :] = NOBODY
        counts[shard] = 0
    return True
