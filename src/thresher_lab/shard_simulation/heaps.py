"""Heaps of hosts and events by time, and the memory of senders, as parts of kernels over plain arrays."""

from __future__ import annotations

import numpy as np

from thresher.jit import inner

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
NONE = -1


@inner
def push(times, items, start, length, time, item):
    """Push an item onto a heap that begins at `start`; of items at the same time the lower one comes first."""
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
    """Pop the first item of a heap of this length."""
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
    """Return the place of a page in a hash table of 2^n places, or the free place for it."""
    mask = len(table) - 1
    place = np.int64((np.uint64(page) * _SPREAD) >> np.uint64(32)) & mask
    while table[place] != NONE and table[place] != page:
        place = (place + 1) & mask
    return place


@inner
def is_new(memory, counts, young, shard, page, recent):
    """Return whether a shard has not sent a page recently, and remember the page.

    As in `thresher.crawler.frontier.seen`: when a generation has more than `recent` members, the generation before
    is dropped.
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
        memory[shard, 1 - now, :] = NONE
        counts[shard] = 0
    return True
