"""Queries answered in one segment: from candidates over tries to matches, stretch by stretch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.query import bits, tree
from thresher.query.automaton import Automaton
from thresher.query.conditions import Conditions, EarlyConditions
from thresher.query.match import DENSE, Ends, Matcher, Stopped, places_of
from thresher.query.packing import BYTES, IDS, LAST, NEW_STARTS, ONE, SIX, STARTS, Bytes, Ids, Starts, Words
from thresher.query.pieces import CqlError
from thresher.query.plan import AllOf, Planner, Shape, Shaper, is_fixed
from thresher.query.program import Layout, Program, enclosing_structure, parts_of
from thresher.query.segment import Bounds, Segment, Structure
from thresher.read.scan.kernel import BYTES as NEW_BYTES
from thresher.read.scan.kernel import NOTHING, NUMBER, kernel

FARTHEST = 500  # CQP: tokens behind the first, where nothing else bounds a match
STRETCHES = (1 << 16, 1 << 20, 1 << 22)  # positions: a first page is found in few, the rest in many at once
TRIED = 1 << 8  # candidates at first between two looks at the clock; more, if that is soon done …
SOON = 0.02  # … within so many seconds; …
MOST_TRIED = 1 << 18  # … no more than what is worked on in memory that the processor has at hand


class Hits(Struct, frozen=True):
    """Matches in the order of the corpus: first and last token of each, and the target if the query has one."""

    firsts: Starts
    lasts: Starts
    targets: Starts | None = None

    def __len__(self) -> int:
        return len(self.firsts)


class Watch:
    """Ends a search that takes too long, or that nobody wants any more."""

    def __init__(
        self, seconds: float | None = None, is_cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self._seconds, self._is_cancelled = seconds, is_cancelled
        self._end = time.monotonic() + seconds if seconds is not None else None

    def again(self) -> Watch:
        """One that begins now."""
        return Watch(self._seconds, self._is_cancelled)

    def look(self) -> None:
        if self._is_cancelled():
            raise Stopped("the search was cancelled")
        if self._end is not None and time.monotonic() > self._end:
            raise Stopped("the search took too long")


def some_hits(parts: list[Hits]) -> Hits:
    """Hits one after the other."""
    parts = [part for part in parts if len(part)] or parts[-1:]
    if len(parts) == 1:
        return parts[0]
    has_targets = any(part.targets is not None for part in parts)
    empty = np.zeros(0, np.int64)
    targets = [part.targets for part in parts if part.targets is not None]
    return Hits(
        np.concatenate([empty, *(part.firsts for part in parts)]),
        np.concatenate([empty, *(part.lasts for part in parts)]),
        np.concatenate([empty, *targets]) if has_targets else None,
    )


class Attempt:
    """Tries candidates of a stretch of positions: with an automaton, or step by step where that cannot tell."""

    def __init__(
        self,
        program: Program,
        automaton: Automaton | None,
        segment: Segment,
        start: int,
        reach: int,
        count: int,
    ) -> None:
        """Of so many candidates, from a position to before another."""
        self._program, self._automaton, self._segment = program, automaton, segment
        self._reach = reach
        self._places = places_of(program, start, reach)
        self._matcher: Matcher | None = None
        self._classes = np.zeros(0, np.uint8)
        if automaton and count > (reach - start) * DENSE:
            self._classes = automaton.classes_at(start, reach + 1 if reach < segment.size else reach)

    def ends(self, candidates: Ids, limits: Starts, *, latest: bool) -> Ends:
        if self._automaton and not self._automaton.is_too_large:
            ends = self._automaton.ends(candidates, limits, self._places, self._classes, latest=latest)
            if ends is not None:
                return Ends(ends, ends)
        if self._matcher is None:
            self._matcher = Matcher(self._program, self._segment, self._places, self._reach)
        return self._matcher.ends(candidates, limits, latest=latest)


class Finder:
    """All matches of one pattern in one segment."""

    def __init__(
        self,
        conditions: Conditions,
        find: tree.Find,
        strategy: tree.Strategy,
        inside: Bounds | None = None,
    ) -> None:
        self._conditions, self._segment, self._find = conditions, conditions.segment, find
        self._strategy: tree.Strategy = find.strategy or strategy
        self._inside = inside
        self._program = Program(self._conditions, find)
        shaper = Shaper(self._program.labels)
        self._shape: Shape = shaper.shape(find.pattern)
        self._need = AllOf((self._shape.need, shaper.beginning(find.pattern)))
        self._layout = self._program.layout() if is_fixed(find.pattern) else None
        if self._layout:
            self._need = AllOf((self._need, *self._layout.alike))
        if self._shape.least == 0 and any(isinstance(part, tree.Token) for part in parts_of(find.pattern)):
            raise CqlError("the pattern can match nothing at all; at least one token must be there")
        within = find.within
        self._within: Structure | None = None
        if within and within.structure:
            self._within = self._conditions.structure(within.structure)
        enclosing = enclosing_structure(find.pattern)
        self._enclosing = self._conditions.structure(enclosing) if enclosing else None

    @cached_property
    def _automaton(self) -> Automaton | None:
        return Automaton.of(self._program)

    def _early(self, end: int) -> Finder:
        """The same for the first positions: much of what it takes to know all of them is not looked at."""
        if not any(map(self._conditions.takes_long, self._program.comparisons)):
            return self
        # One token behind all that a match can reach may be looked at.
        conditions = EarlyConditions(self._segment, min(self._reach(end) + 1, self._segment.size))
        return Finder(conditions, self._find, self._strategy, self._inside)

    def stretches(self, watch: Watch, *, gently: bool = True) -> Iterator[Hits]:
        """Matches in the order of the corpus, as they are found: at first from few positions, then from many."""
        waiting = some_hits([])
        start = 0
        for end in self._ends(gently):
            watch.look()
            finder = self._early(end) if gently and start == 0 else self
            found = finder._tried(start, end, watch)
            # What reaches beyond this stretch may yet meet others that a strategy compares it with.
            waiting = some_hits([waiting, found])
            is_last = end >= self._segment.size
            # Where all are of one length, none is in another.
            strategy = "traditional" if self._layout else self._strategy
            ready, waiting = _settled(waiting, strategy, self._segment.size if is_last else end)
            yield ready
            start = end

    def count(self, watch: Watch) -> int:
        """How many matches there are; where all are alike, none of them is looked at."""
        is_bounded = self._is_bounded()
        token = self._find.pattern
        if isinstance(token, tree.Token) and not is_bounded and not self._program.has_rules:
            condition = token.condition
            if condition is None or self._conditions.is_about_types(condition):
                return self._conditions.frequency(condition)
        layout = self._layout
        if layout is None or layout.has_rules or is_bounded or not layout.length:
            return sum(len(hits) for hits in self.stretches(watch, gently=False))
        total, start = 0, 0
        for end in self._ends(gently=False):
            watch.look()
            found = self._candidates(start, end, self._reach(end))
            if end == self._segment.size:  # what does not fit before the end of all is no match
                found = bits.first(found, max(end - start - layout.length + 1, 0))
            total += bits.count(found)
            start = end
        return total

    def _is_bounded(self) -> bool:
        """Whether not every candidate may become a match as it is."""
        return not (
            self._find.within is None
            and self._inside is None
            and self._enclosing is None
            and self._segment.alive is None
        )

    def _ends(self, gently: bool) -> Iterator[int]:
        size, end, number = self._segment.size, 0, 0 if gently else len(STRETCHES) - 1
        while end < size:
            end = min(end + STRETCHES[min(number, len(STRETCHES) - 1)], size)
            number += 1
            yield end

    def _tried(self, start: int, end: int, watch: Watch) -> Hits:
        """For every position from one to before another the match that begins there, if any."""
        reach = self._reach(end)
        candidates = bits.members(self._candidates(start, end, reach), start)
        if self._layout:
            return self._laid_out(self._layout, candidates, start, reach)
        attempt = Attempt(self._program, self._automaton, self._segment, start, reach, len(candidates))
        parts: list[Hits] = []
        first, count = 0, TRIED
        while first < len(candidates) or not parts:
            watch.look()
            begun = time.monotonic()
            some = candidates[first : first + count]
            ends, targets = attempt.ends(some, self._limits(some), latest=self._strategy == "longest")
            every = Hits(some.astype(np.int64), ends, targets if self._program.target >= 0 else None)
            parts.append(those(every, ends >= 0))
            first += count
            if time.monotonic() - begun < SOON:
                count = min(2 * count, MOST_TRIED)
        return some_hits(parts)

    def _candidates(self, start: int, end: int, reach: int) -> Words:
        count = self._find.within.count if self._find.within else 1
        planner = Planner(self._conditions, start, end, reach, self._within, count)
        return planner.candidates(self._need, self._farthest(), exact=self._layout is not None)

    def _laid_out(self, layout: Layout, candidates: Ids, start: int, reach: int) -> Hits:
        """Candidates of a pattern whose tokens are at one place each have all that it asks for but some rules."""
        if not layout.length:
            return some_hits([])
        if self._is_bounded():
            some = candidates[candidates + np.int64(layout.length) <= self._limits(candidates)]
        else:
            room = max(self._segment.size - layout.length + 1, 0)  # positions that there is room behind
            some = candidates[: int(np.searchsorted(candidates, np.uint32(room)))]
        if layout.has_rules:
            places = places_of(self._program, start, reach)
            keeps = Matcher(self._program, self._segment, places, reach).keeps(some, layout)
            some = some[np.flatnonzero(keeps)]
        firsts = some.astype(np.int64)
        return Hits(
            firsts, firsts + layout.length - 1, None if layout.target is None else firsts + layout.target
        )

    # limits

    def _farthest(self) -> int | None:
        """How many tokens a match can have behind the first; None: as many as there are in a structure."""
        within = self._find.within
        if within is None:
            return FARTHEST
        return None if within.structure else within.count

    def _reach(self, end: int) -> int:
        """The first position that no match reaches that begins before another."""
        last = np.array([end - 1], np.uint32)
        return max(
            end,
            int(self._limits(last)[0]),
            min(end + FARTHEST, self._segment.size) if not self._within else 0,
        )

    def _limits(self, candidates: Ids) -> Starts:
        """For every candidate the first position that its match must not reach."""
        limits = np.empty(len(candidates), np.int64)
        farthest = self._farthest()
        _set_limits(
            candidates, self._segment.size if farthest is None else farthest + 1, self._segment.size, limits
        )
        if self._within:
            assert self._find.within
            _bound(candidates, self._within.firsts, self._within.nexts, self._find.within.count, limits)
        for bounds in (self._inside, self._enclosing, self._segment.alive):
            if bounds is not None:
                _bound(candidates, bounds.firsts, bounds.nexts, 1, limits)
        return limits


@kernel(NOTHING, IDS, NUMBER, NUMBER, NEW_STARTS)
def _set_limits(candidates: Ids, most: int, size: int, limits: Starts) -> None:
    """Limits by how many tokens a match can have, and by where all end."""
    for number in range(len(candidates)):
        limits[number] = min(int(candidates[number]) + most, size)


@kernel(NOTHING, IDS, IDS, IDS, NUMBER, NEW_STARTS)
def _bound(candidates: Ids, firsts: Ids, nexts: Ids, count: int, limits: Starts) -> None:
    """Limits by the ends of the stretches that candidates lie in, or of some that follow; 0 outside all."""
    stretch = -1
    if len(candidates):
        low, high = 0, len(firsts)
        while low < high:
            middle = (low + high) >> 1
            if firsts[middle] <= candidates[0]:
                low = middle + 1
            else:
                high = middle
        stretch = low - 1
    for number in range(len(candidates)):
        candidate = candidates[number]
        while stretch + 1 < len(firsts) and firsts[stretch + 1] <= candidate:
            stretch += 1
        if stretch < 0 or nexts[stretch] <= candidate:
            limits[number] = 0
        else:
            limits[number] = min(limits[number], np.int64(nexts[min(stretch + count, len(firsts)) - 1]))


# strategies


def _settled(hits: Hits, strategy: tree.Strategy, end: int) -> tuple[Hits, Hits]:
    """Hits that a strategy keeps and that end before a position; and those that may depend on what comes.

    What one drops, none that comes can bring back.
    """
    kept = chosen(hits, strategy)
    if not len(kept) or kept.lasts.max() < end:
        return kept, some_hits([])
    # From the first hit that reaches beyond, all must wait: those behind it may be in it.
    ready = int(np.argmax(kept.lasts >= end))
    return those(kept, slice(ready)), those(kept, slice(ready, None))


def those(hits: Hits, wanted: NDArray[np.bool_] | slice) -> Hits:
    """Some of the hits."""
    if isinstance(wanted, slice):
        targets = None if hits.targets is None else hits.targets[wanted]
        return Hits(hits.firsts[wanted], hits.lasts[wanted], targets)
    count = int(np.count_nonzero(wanted))
    every = (hits.firsts, hits.lasts, hits.targets)
    return Hits(*(None if part is None else _picked(part, wanted, count) for part in every))  # type: ignore[arg-type]


def _picked(numbers: Starts, wanted: NDArray[np.bool_], count: int) -> Starts:
    """Those of some numbers that are wanted; numpy's own way stumbles over which that are."""
    found = np.empty(count + 1, np.int64)
    _pick(numbers, wanted.view(np.uint8), found)
    return found[:count]


@kernel(NOTHING, STARTS, BYTES, NEW_STARTS)
def _pick(numbers: Starts, wanted: Bytes, found: Starts) -> None:
    written = 0
    for number in range(len(numbers)):
        found[written] = numbers[number]
        written += wanted[number]


def chosen(hits: Hits, strategy: tree.Strategy) -> Hits:
    """Those that a strategy keeps of hits that begin at different places."""
    if strategy == "traditional" or not len(hits):
        return hits
    wanted = np.ones(len(hits), np.uint8)
    {"standard": _leftmost, "longest": _outermost, "shortest": _innermost}[strategy](
        hits.firsts, hits.lasts, wanted
    )
    return hits if wanted.all() else those(hits, wanted.view(np.bool_))


@kernel(NOTHING, NEW_STARTS, NEW_STARTS, NEW_BYTES)
def _leftmost(firsts: Starts, lasts: Starts, wanted: Bytes) -> None:
    """Of hits with the same end, the one that begins first."""
    low = lasts[0]
    high = lasts[0]
    for number in range(len(lasts)):
        low, high = min(low, lasts[number]), max(high, lasts[number])
    seen = np.zeros((high - low >> 6) + 1, np.uint64)
    for number in range(len(firsts)):
        place = np.uint64(lasts[number] - low)
        bit = ONE << (place & LAST)
        wanted[number] = (seen[place >> SIX] & bit) == 0
        seen[place >> SIX] |= bit


@kernel(NOTHING, NEW_STARTS, NEW_STARTS, NEW_BYTES)
def _outermost(firsts: Starts, lasts: Starts, wanted: Bytes) -> None:
    """Hits that lie in no other."""
    farthest = np.int64(-1)
    for number in range(len(firsts)):
        wanted[number] = lasts[number] > farthest
        farthest = max(farthest, lasts[number])


@kernel(NOTHING, NEW_STARTS, NEW_STARTS, NEW_BYTES)
def _innermost(firsts: Starts, lasts: Starts, wanted: Bytes) -> None:
    """Hits that no other lies in."""
    nearest = np.int64(np.iinfo(np.int64).max)
    for number in range(len(firsts) - 1, -1, -1):
        wanted[number] = lasts[number] < nearest
        nearest = min(nearest, lasts[number])
