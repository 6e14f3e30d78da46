"""Search for a pattern in one segment, range by range: candidates, attempts at them, and the matches kept.

A strategy compares matches that overlap, so a match that reaches beyond a range waits for the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.jit import BYTES as NEW_BYTES
from thresher.jit import NOTHING, NUMBER, kernel
from thresher.search.cql import ast
from thresher.search.cql.lexer import CqlError
from thresher.search.encoding import bitset
from thresher.search.encoding.bitpacking import (
    BYTES,
    IDS,
    LAST,
    NEW_STARTS,
    ONE,
    SIX,
    STARTS,
    Bytes,
    Ids,
    Starts,
    Words,
)
from thresher.search.execution.compiler import LabelLayout, Program, enclosing_structure, parts_of
from thresher.search.execution.conditions import Conditions, EarlyConditions
from thresher.search.execution.lazy_dfa import LazyDfa
from thresher.search.execution.matcher import DENSE, MatchEnds, Matcher, SearchStopped, places_of
from thresher.search.execution.planner import AllOf, CandidatePlanner, PlanShape, Shaper, is_fixed
from thresher.search.index.segment import RegionBounds, Segment, SegmentStructure

DEFAULT_REACH = 500  # tokens that a match can have after the first one, if nothing else limits it; as in CQP
# Positions searched at a time: few for the first page, then many, which is faster.
RANGE_SIZES = (1 << 16, 1 << 20, 1 << 22)
# Candidates tried between two looks at the clock. The number is doubled while a batch takes less than
# QUICK_BATCH_S, up to LARGEST_BATCH, whose data still fit into the cache of the processor.
FIRST_BATCH = 1 << 8
QUICK_BATCH_S = 0.02
LARGEST_BATCH = 1 << 18


class Hits(Struct, frozen=True):
    """Matches in the order of the corpus: first and last position of each, and its target if the query has one."""

    firsts: Starts
    lasts: Starts
    targets: Starts | None = None

    def __len__(self) -> int:
        return len(self.firsts)


class Deadline:
    """Stops a search that takes too long or was cancelled."""

    def __init__(
        self, seconds: float | None = None, is_cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self._seconds, self._is_cancelled = seconds, is_cancelled
        self._end = time.monotonic() + seconds if seconds is not None else None

    def again(self) -> Deadline:
        """Return a new deadline with the same number of seconds."""
        return Deadline(self._seconds, self._is_cancelled)

    def renew(self) -> None:
        """Begin the time limit again, from now."""
        self._end = time.monotonic() + self._seconds if self._seconds is not None else None

    def check(self) -> None:
        """Raise SearchStopped if the time is up or the search was cancelled."""
        if self._is_cancelled():
            raise SearchStopped("the search was cancelled")
        if self._end is not None and time.monotonic() > self._end:
            raise SearchStopped("the search took too long")


def joined_hits(parts: list[Hits]) -> Hits:
    """Concatenate hits."""
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


class CandidateMatcher:
    """Tries the candidates of a range: with an automaton, or with the backtracking matcher where that is needed."""

    def __init__(
        self,
        program: Program,
        automaton: LazyDfa | None,
        segment: Segment,
        start: int,
        reach: int,
        count: int,
    ) -> None:
        """Prepare for `count` candidates from `start` on whose matches end before `reach`."""
        self._program, self._automaton, self._segment = program, automaton, segment
        self._reach = reach
        self._places = places_of(program, start, reach)
        self._matcher: Matcher | None = None
        self._classes = np.zeros(0, np.uint8)
        if automaton and count > (reach - start) * DENSE:
            self._classes = automaton.classes_at(start, reach + 1 if reach < segment.size else reach)

    def ends(self, candidates: Ids, limits: Starts, *, latest: bool) -> MatchEnds:
        """Return the end of the shortest or the longest match at each candidate; -1 where there is none."""
        if self._automaton and not self._automaton.is_too_large:
            ends = self._automaton.ends(candidates, limits, self._places, self._classes, latest=latest)
            if ends is not None:
                return MatchEnds(ends, ends)
        if self._matcher is None:
            self._matcher = Matcher(self._program, self._segment, self._places, self._reach)
        return self._matcher.ends(candidates, limits, latest=latest)


class PatternSearch:
    """A search for all matches of one pattern in one segment."""

    def __init__(
        self,
        conditions: Conditions,
        find: ast.FindQuery,
        strategy: ast.Strategy,
        inside: RegionBounds | None = None,
    ) -> None:
        self._conditions, self._segment, self._find = conditions, conditions.segment, find
        self._strategy: ast.Strategy = find.strategy or strategy
        self._inside = inside
        self._program = Program(self._conditions, find)
        shaper = Shaper(self._program.labels)
        self._shape: PlanShape = shaper.shape(find.pattern)
        self._need = AllOf((self._shape.need, shaper.beginning(find.pattern)))
        self._layout = self._program.layout() if is_fixed(find.pattern) else None
        if self._layout:
            self._need = AllOf((self._need, *self._layout.equal_tokens))
        if self._shape.least == 0 and any(
            isinstance(part, ast.TokenPattern) for part in parts_of(find.pattern)
        ):
            raise CqlError("the pattern can match no token at all; add a token that is not optional")
        within = find.within
        self._within: SegmentStructure | None = None
        if within and within.structure:
            self._within = self._conditions.structure(within.structure)
        enclosing = enclosing_structure(find.pattern)
        self._enclosing = self._conditions.structure(enclosing) if enclosing else None

    @cached_property
    def _automaton(self) -> LazyDfa | None:
        return LazyDfa.of(self._program)

    def _early(self, end: int) -> PatternSearch:
        """Return the search to use for the first positions, which avoids slow comparisons with all values."""
        if not any(map(self._conditions.takes_long, self._program.comparisons)):
            return self
        # A condition may look at one token after the last that a match can reach.
        conditions = EarlyConditions(self._segment, min(self._reach(end) + 1, self._segment.size))
        return PatternSearch(conditions, self._find, self._strategy, self._inside)

    def matches(self, deadline: Deadline, *, gently: bool = True) -> Iterator[Hits]:
        """Yield matches in the order of the corpus, range by range; if `gently`, the first ranges are small."""
        waiting = joined_hits([])
        start = 0
        for end in self._ends(gently):
            deadline.check()
            finder = self._early(end) if gently and start == 0 else self
            found = finder._matches_in(start, end, deadline)
            # The strategy may compare a match that reaches beyond this range with matches of the next one.
            waiting = joined_hits([waiting, found])
            is_last = end >= self._segment.size
            # Matches of one length never lie in each other.
            strategy = "traditional" if self._layout else self._strategy
            ready, waiting = _settled(waiting, strategy, self._segment.size if is_last else end)
            yield ready
            start = end

    def count(self, deadline: Deadline) -> int:
        """Return the number of matches. Where possible, candidates are counted without being tried."""
        is_bounded = self._is_bounded()
        token = self._find.pattern
        if isinstance(token, ast.TokenPattern) and not is_bounded and not self._program.has_rules:
            condition = token.condition
            if condition is None or self._conditions.is_about_types(condition):
                return self._conditions.frequency(condition)
        layout = self._layout
        if layout is None or layout.has_rules or is_bounded or not layout.length:
            return sum(len(hits) for hits in self.matches(deadline, gently=False))
        total, start = 0, 0
        for end in self._ends(gently=False):
            deadline.check()
            found = self._candidates(start, end, self._reach(end))
            if end == self._segment.size:  # a match must end before the segment does
                found = bitset.first(found, max(end - start - layout.length + 1, 0))
            total += bitset.count(found)
            start = end
        return total

    def _is_bounded(self) -> bool:
        """Return whether structures, deleted documents or other hits limit the matches."""
        return not (
            self._find.within is None
            and self._inside is None
            and self._enclosing is None
            and self._segment.alive is None
        )

    def _ends(self, gently: bool) -> Iterator[int]:
        size, end, number = self._segment.size, 0, 0 if gently else len(RANGE_SIZES) - 1
        while end < size:
            end = min(end + RANGE_SIZES[min(number, len(RANGE_SIZES) - 1)], size)
            number += 1
            yield end

    def _matches_in(self, start: int, end: int, deadline: Deadline) -> Hits:
        """Return the match that begins at each position in `[start, end)`, if there is one."""
        reach = self._reach(end)
        candidates = bitset.members(self._candidates(start, end, reach), start)
        if self._layout:
            return self._laid_out(self._layout, candidates, start, reach)
        matcher = CandidateMatcher(
            self._program, self._automaton, self._segment, start, reach, len(candidates)
        )
        parts: list[Hits] = []
        first, count = 0, FIRST_BATCH
        while first < len(candidates) or not parts:
            deadline.check()
            begun = time.monotonic()
            batch = candidates[first : first + count]
            ends, targets = matcher.ends(batch, self._limits(batch), latest=self._strategy == "longest")
            every = Hits(batch.astype(np.int64), ends, targets if self._program.target >= 0 else None)
            parts.append(selected(every, ends >= 0))
            first += count
            if time.monotonic() - begun < QUICK_BATCH_S:
                count = min(2 * count, LARGEST_BATCH)
        return joined_hits(parts)

    def _candidates(self, start: int, end: int, reach: int) -> Words:
        count = self._find.within.count if self._find.within else 1
        planner = CandidatePlanner(self._conditions, start, end, reach, self._within, count)
        return planner.candidates(self._need, self._farthest(), exact=self._layout is not None)

    def _laid_out(self, layout: LabelLayout, candidates: Ids, start: int, reach: int) -> Hits:
        """Return the matches of a pattern of fixed length.

        Candidates of such a pattern meet all its conditions but some constraints on labels.
        """
        if not layout.length:
            return joined_hits([])
        if self._is_bounded():
            kept = candidates[candidates + np.int64(layout.length) <= self._limits(candidates)]
        else:
            # The first position without room for a match.
            room = max(self._segment.size - layout.length + 1, 0)
            kept = candidates[: int(np.searchsorted(candidates, np.uint32(room)))]
        if layout.has_rules:
            places = places_of(self._program, start, reach)
            keeps = Matcher(self._program, self._segment, places, reach).keeps(kept, layout)
            kept = kept[np.flatnonzero(keeps)]
        firsts = kept.astype(np.int64)
        return Hits(
            firsts, firsts + layout.length - 1, None if layout.target is None else firsts + layout.target
        )

    # limits

    def _farthest(self) -> int | None:
        """Return the number of tokens that a match can have after the first; None if a structure limits it."""
        within = self._find.within
        if within is None:
            return DEFAULT_REACH
        return None if within.structure else within.count

    def _reach(self, end: int) -> int:
        """Return the first position that no match beginning before `end` can reach."""
        last = np.array([end - 1], np.uint32)
        return max(
            end,
            int(self._limits(last)[0]),
            min(end + DEFAULT_REACH, self._segment.size) if not self._within else 0,
        )

    def _limits(self, candidates: Ids) -> Starts:
        """Return for every candidate the first position that its match must not reach."""
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
    """Set limits by the number of tokens of a match and by the end of the segment."""
    for number in range(len(candidates)):
        limits[number] = min(int(candidates[number]) + most, size)


@kernel(NOTHING, IDS, IDS, IDS, NUMBER, NEW_STARTS)
def _bound(candidates: Ids, firsts: Ids, nexts: Ids, count: int, limits: Starts) -> None:
    """Lower limits to the end of the last of `count` regions from the one around the candidate; 0 outside all."""
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


def _settled(hits: Hits, strategy: ast.Strategy, end: int) -> tuple[Hits, Hits]:
    """Split the hits that a strategy keeps into final ones and ones that later hits may still replace.

    A hit that the strategy drops is never kept because of later hits.
    """
    kept = chosen(hits, strategy)
    if not len(kept) or kept.lasts.max() < end:
        return kept, joined_hits([])
    # From the first hit that reaches beyond `end` on, all must wait: later ones may lie in it.
    ready = int(np.argmax(kept.lasts >= end))
    return selected(kept, slice(ready)), selected(kept, slice(ready, None))


def selected(hits: Hits, wanted: NDArray[np.bool_] | slice) -> Hits:
    """Return the hits in a mask or a slice."""
    if isinstance(wanted, slice):
        targets = None if hits.targets is None else hits.targets[wanted]
        return Hits(hits.firsts[wanted], hits.lasts[wanted], targets)
    count = int(np.count_nonzero(wanted))
    every = (hits.firsts, hits.lasts, hits.targets)
    return Hits(*(None if part is None else _picked(part, wanted, count) for part in every))  # type: ignore[arg-type]


def _picked(numbers: Starts, wanted: NDArray[np.bool_], count: int) -> Starts:
    """Return the numbers in a mask. A loop without branches is faster here than numpy's indexing by a mask."""
    found = np.empty(count + 1, np.int64)
    _pick(numbers, wanted.view(np.uint8), found)
    return found[:count]


@kernel(NOTHING, STARTS, BYTES, NEW_STARTS)
def _pick(numbers: Starts, wanted: Bytes, found: Starts) -> None:
    written = 0
    for number in range(len(numbers)):
        found[written] = numbers[number]
        written += wanted[number]


def chosen(hits: Hits, strategy: ast.Strategy) -> Hits:
    """Return the hits that a strategy keeps, of hits that begin at different positions."""
    if strategy == "traditional" or not len(hits):
        return hits
    wanted = np.ones(len(hits), np.uint8)
    {"standard": _leftmost, "longest": _outermost, "shortest": _innermost}[strategy](
        hits.firsts, hits.lasts, wanted
    )
    return hits if wanted.all() else selected(hits, wanted.view(np.bool_))


@kernel(NOTHING, NEW_STARTS, NEW_STARTS, NEW_BYTES)
def _leftmost(firsts: Starts, lasts: Starts, wanted: Bytes) -> None:
    """Mark, of hits with the same end, the one that begins first."""
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
    """Mark hits that lie in no other hit."""
    farthest = np.int64(-1)
    for number in range(len(firsts)):
        wanted[number] = lasts[number] > farthest
        farthest = max(farthest, lasts[number])


@kernel(NOTHING, NEW_STARTS, NEW_STARTS, NEW_BYTES)
def _innermost(firsts: Starts, lasts: Starts, wanted: Bytes) -> None:
    """Mark hits in which no other hit lies."""
    nearest = np.int64(np.iinfo(np.int64).max)
    for number in range(len(firsts) - 1, -1, -1):
        wanted[number] = lasts[number] < nearest
        nearest = min(nearest, lasts[number])
