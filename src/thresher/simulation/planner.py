"""Planner with perfect knowledge: an upper bound for policies that may fetch only URLs they have found.

It knows every page and link in advance. Best-first search is not enough, since the way to good pages leads through
others. So a page is valued as a bundle with the subset of links behind it that maximises the text of the bundle per
byte of the bundle.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.jit import FLOATS, NOTHING, NUMBER, NUMBERS, inner, kernel
from thresher.simulation.record import CrawlRecord

LOOKAHEAD_LINKS = 2  # length of the paths of links that bundles look ahead
REQUEST_BYTES = 300.0  # cost of a request beside the bytes received

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
Marks = NDArray[np.bool_]
_MARKS = types.Array(types.bool_, 1, "C")


@inner
def best_bargain(own: float, cost: float, texts: Reals, costs: Reals, count: int, out: Reals) -> None:
    """Write text and cost of the best bundle of a page: with the links that maximise its text per byte."""
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
    """Compute bundles that look one link further: of every page with the bundles of its best links."""
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
def bundle_value(
    page: int,
    links: Numbers,
    originals: Numbers,
    found: Marks,
    collected: Marks,
    worth: Reals,
    cost: Reals,
    texts: Reals,
    costs: Reals,
) -> float:
    """Return text per byte of the best bundle of a page; links already found and texts already had do not count."""
    behind, behind_costs = np.empty(len(links)), np.empty(len(links))
    count = 0
    for target in links:
        if not found[target] and texts[target] > 0 and not collected[originals[target]]:
            behind[count], behind_costs[count] = texts[target], costs[target]
            count += 1
    out = np.empty(2)
    own = 0.0 if collected[originals[page]] else worth[page]
    best_bargain(own, cost[page], behind, behind_costs, count, out)
    return float(out[0] / out[1])


class OraclePlanner:
    """Plans a path through a recorded web."""

    def __init__(self, record: CrawlRecord) -> None:
        self._record = record
        self._worth: Reals = record.worth.astype(np.float64)
        self._cost: Reals = record.bytes.astype(np.float64) + REQUEST_BYTES
        self._texts, self._costs = self._worth.copy(), self._cost.copy()
        for _ in range(LOOKAHEAD_LINKS):
            more, dearer = np.empty_like(self._worth), np.empty_like(self._worth)
            web = record.starts, record.targets, self._worth, self._cost
            bundle_all(*web, self._texts, self._costs, more, dearer)
            self._texts, self._costs = more, dearer
        self._found: Marks = np.zeros(len(record.urls), np.bool_)
        self._collected: Marks = np.zeros(len(record.urls), np.bool_)  # texts, by the first URL with each
        self._hosts: set[str] = set()

    def visit(self, seeds: Iterable[int], limit: int = 0) -> Numbers:
        """Return the URLs visited, in order, until `limit` bytes are received (0: no limit) or none is left."""
        queue = [(-math.inf, number) for number in dict.fromkeys(seeds)]
        self._found[[number for _, number in queue]] = True
        visited: list[int] = []
        left = limit or math.inf
        while queue and left > 0:
            before, number = heapq.heappop(queue)
            if (
                before > -math.inf
            ):  # pages visited since may have taken part of its bundle, so it can only be worse
                now = -self._value(number)
                if queue and now > queue[0][0]:
                    heapq.heappush(queue, (now, number))
                    continue
            visited.append(number)
            left -= int(self._record.bytes[number])
            self._collected[self._record.originals[number]] |= self._worth[number] > 0
            links = self._links(number)
            self._hosts.add(self._record.hosts[number])
            unseen = links[~self._found[links]].tolist()
            self._found[unseen] = True
            for link in unseen:
                heapq.heappush(queue, (-self._value(link), link))
        return np.array(visited, np.int64)

    def _value(self, number: int) -> float:
        marks = self._record.originals, self._found, self._collected
        return bundle_value(
            number, self._links(number), *marks, self._worth, self._cost, self._texts, self._costs
        )

    def _links(self, number: int) -> Numbers:
        """Return the links of a page, each once; the first page of a host adds the sitemaps of the host."""
        host = self._record.hosts[number]
        sitemaps = [] if host in self._hosts else self._record.sitemaps.get(host, [])
        links = self._record.links(number)
        if sitemaps:
            links = np.append(links, np.array(sitemaps, np.int64))
        return np.unique(links)
