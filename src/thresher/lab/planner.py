"""One who knows every page and every link beforehand, but may fetch only what it has found: how well can one do?

Best first is not enough for that, for the way to good pages leads through others. So a page counts together with
those links behind it that make the best bargain of it: the text of all per byte of all.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.lab.record import Record
from thresher.read.scan.kernel import FLOATS, NOTHING, NUMBER, NUMBERS, inner, kernel

HOPS = 2  # links that lie behind those of a page
REQUEST = 300.0  # bytes that a request costs beside what is received

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
Marks = NDArray[np.bool_]
_MARKS = types.Array(types.bool_, 1, "C")


@inner
def best_bargain(own: float, cost: float, texts: Reals, costs: Reals, count: int, out: Reals) -> None:
    """The text and the cost of a page with those of its links that make the most text per byte of them all."""
    ratios = np.empty(count)
    for place in range(count):
        ratios[place] = -texts[place] / costs[place]
    out[0], out[1] = own, cost
    text, spent = own, cost
    for place in np.argsort(ratios):
        text += texts[place]
        spent += costs[place]
        if text * out[1] > out[0] * spent:
            out[0], out[1] = text, spent


@kernel(NOTHING, NUMBERS, NUMBERS, FLOATS, FLOATS, FLOATS, FLOATS, FLOATS, FLOATS)
def bundle_all(
    starts: Numbers,
    targets: Numbers,
    worth: Reals,
    cost: Reals,
    texts: Reals,
    costs: Reals,
    more: Reals,
    dearer: Reals,
) -> None:
    """Bundles one link further: of every page with the bundles of its links, as far as they are worth it."""
    marked = np.full(len(worth), -1)
    out = np.empty(2)
    for page in range(len(worth)):
        count = 0
        behind = np.empty(starts[page + 1] - starts[page])
        behind_costs = np.empty(len(behind))
        for place in range(starts[page], starts[page + 1]):
            target = targets[place]
            if marked[target] != page and texts[target] > 0:
                marked[target] = page
                behind[count], behind_costs[count] = texts[target], costs[target]
                count += 1
        best_bargain(worth[page], cost[page], behind, behind_costs, count, out)
        more[page], dearer[page] = out[0], out[1]


@kernel(types.float64, NUMBER, NUMBERS, NUMBERS, _MARKS, _MARKS, FLOATS, FLOATS, FLOATS, FLOATS)
def promise_of(
    page: int,
    links: Numbers,
    twins: Numbers,
    found: Marks,
    gathered: Marks,
    worth: Reals,
    cost: Reals,
    texts: Reals,
    costs: Reals,
) -> float:
    """Text per byte of a page with the best of its links, as far as neither has been found or gathered yet."""
    behind, behind_costs = np.empty(len(links)), np.empty(len(links))
    count = 0
    for target in links:
        if not found[target] and texts[target] > 0 and not gathered[twins[target]]:
            behind[count], behind_costs[count] = texts[target], costs[target]
            count += 1
    out = np.empty(2)
    own = 0.0 if gathered[twins[page]] else worth[page]
    best_bargain(own, cost[page], behind, behind_costs, count, out)
    return float(out[0] / out[1])


class Planner:
    """Plans a way through a recorded web."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._worth: Reals = record.worth.astype(np.float64)
        self._cost: Reals = record.bytes.astype(np.float64) + REQUEST
        self._texts, self._costs = self._worth.copy(), self._cost.copy()
        for _ in range(HOPS):
            more, dearer = np.empty_like(self._worth), np.empty_like(self._worth)
            web = record.starts, record.targets, self._worth, self._cost
            bundle_all(*web, self._texts, self._costs, more, dearer)
            self._texts, self._costs = more, dearer
        self._found: Marks = np.zeros(len(record.urls), np.bool_)
        self._gathered: Marks = np.zeros(len(record.urls), np.bool_)  # texts, by the first URL that has each
        self._hosts: set[str] = set()

    def visit(self, seeds: Iterable[int], limit: int = 0) -> Numbers:
        """The pages visited, in order, until so many bytes are received, or nothing is left."""
        queue = [(-math.inf, number) for number in dict.fromkeys(seeds)]
        self._found[[number for _, number in queue]] = True
        visited: list[int] = []
        left = limit or math.inf
        while queue and left > 0:
            before, number = heapq.heappop(queue)
            if (
                before > -math.inf
            ):  # others may have found meanwhile what lies behind it: it can only be worse
                now = -self._promise(number)
                if queue and now > queue[0][0]:
                    heapq.heappush(queue, (now, number))
                    continue
            visited.append(number)
            left -= int(self._record.bytes[number])
            self._gathered[self._record.twins[number]] |= self._worth[number] > 0
            links = self._links(number)
            self._hosts.add(self._record.hosts[number])
            fresh = links[~self._found[links]].tolist()
            self._found[fresh] = True
            for link in fresh:
                heapq.heappush(queue, (-self._promise(link), link))
        return np.array(visited, np.int64)

    def _promise(self, number: int) -> float:
        marks = self._record.twins, self._found, self._gathered
        return promise_of(
            number, self._links(number), *marks, self._worth, self._cost, self._texts, self._costs
        )

    def _links(self, number: int) -> Numbers:
        """What a page leads to, each once, with the sitemaps that are found with the first page of a host."""
        host = self._record.hosts[number]
        sitemaps = [] if host in self._hosts else self._record.sitemaps.get(host, [])
        links = self._record.links(number)
        if sitemaps:
            links = np.append(links, np.array(sitemaps, np.int64))
        return np.unique(links)
