"""Planner of candidates: positions where a match may begin, from the conditions that every match must meet.

The rarest necessary condition is looked up first, even if gaps separate it from the beginning. Other conditions
are looked up only as long as that is cheaper than trying the candidates that are left.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Container, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from thresher.search.cql import ast
from thresher.search.cql.ast_tools import mentions
from thresher.search.encoding import bitset, token_column
from thresher.search.encoding.bitpacking import Words
from thresher.search.encoding.token_column import EqualTokens
from thresher.search.execution.compiler import parts_of, strict_structures
from thresher.search.execution.conditions import Conditions
from thresher.search.index.segment import SegmentStructure

MOST_COPIES = 8  # copies of a repeated part that are planned
# Costs in nanoseconds, as measured.
NS_PER_TRIED_CANDIDATE = 60.0
NS_PER_CHECKED_CANDIDATE = 12.0  # a check of one condition at a known distance
NS_PER_COMPARED_PAIR = 3.0  # a comparison of two tokens
NS_PER_BORDER_POSITION = 0.2  # borders of structures, which are few
EQUAL_SHARE = 0.1  # expected share of positions at which two compared tokens are equal


class NearbyCondition(NamedTuple):
    """A token or a tag that a match must have at a distance of `least` to `most` from its beginning."""

    required: ast.Condition | ast.StructureTag
    least: int
    most: int | None  # None: as far as a match can reach


class AllOf(NamedTuple):
    """Needs that must all be met."""

    needs: tuple[Need, ...]


class OneOf(NamedTuple):
    """Needs of which one must be met."""

    needs: tuple[Need, ...]


Need = NearbyCondition | EqualTokens | AllOf | OneOf
ANYTHING = AllOf(())


class PlanShape(NamedTuple):
    """The needs of a pattern, and its shortest and longest length."""

    need: Need
    least: int
    most: int | None


class Shaper:
    """Derives the needs of patterns."""

    def __init__(self, labels: Container[str]) -> None:
        """Remember the labels that conditions may mention; conditions on labels are not planned."""
        self._labels = labels

    def shape(self, pattern: ast.Pattern, least: int = 0, most: int | None = 0) -> PlanShape:
        """Return the shape of a pattern at a distance of `least` to `most` from the beginning of a match."""
        match pattern:
            case ast.TokenPattern(condition):
                return PlanShape(self._need(condition, least, most), 1, 1)
            case ast.LookAhead(condition):
                return PlanShape(self._need(condition, least, most), 0, 0)
            case ast.StructureTag():
                return PlanShape(NearbyCondition(pattern, least, most), 0, 0)
            case ast.Region(structure, tests):
                return PlanShape(
                    NearbyCondition(ast.StructureTag(structure, False, tests), least, most), 1, None
                )
            case ast.Sequence(parts):
                return self._sequence(parts, least, most)
            case ast.Alternation(parts):
                shapes = [self.shape(part, least, most) for part in parts]
                needs = tuple(one.need for one in shapes)
                return PlanShape(OneOf(needs), min(one.least for one in shapes), _longest(shapes))
            case ast.Repeat(part, fewest, times):
                # Of a part that may be missing, only the length matters.
                copies = self._sequence((part,) * min(max(fewest, 1), MOST_COPIES), least, most)
                once = self.shape(part) if fewest > 1 else copies
                need = copies.need if fewest else ANYTHING
                longest = None if times is None or once.most is None else once.most * times
                return PlanShape(need, once.least * fewest, 0 if once.most == 0 else longest)
        raise AssertionError(pattern)

    def beginning(self, pattern: ast.Pattern) -> Need:
        """Return the need of the first token of a match: one of several conditions if parts may be missing."""
        conditions, _ = self._firsts(pattern)
        found = [condition for condition in conditions if condition is not None]
        return (
            ANYTHING if not found or len(found) < len(conditions) else NearbyCondition(_either(found), 0, 0)
        )

    def _firsts(self, pattern: ast.Pattern) -> tuple[list[ast.Condition | None], bool]:
        """Return the conditions of first tokens, None for any token, and whether the pattern may be empty."""
        match pattern:
            case ast.TokenPattern(condition):
                return [self._free(condition)], False
            case ast.Region():
                return [None], False
            case ast.Alternation(parts):
                both = [self._firsts(part) for part in parts]
                return [one for found, _ in both for one in found], any(missing for _, missing in both)
            case ast.Sequence(parts):
                conditions: list[ast.Condition | None] = []
                for part in parts:
                    found, may_miss = self._firsts(part)
                    conditions += found
                    if not may_miss:
                        return conditions, False
                return conditions, True
            case ast.Repeat(part, least):
                found, may_miss = self._firsts(part)
                return found, may_miss or least == 0
        return [], True

    def _sequence(self, parts: tuple[ast.Pattern, ...], least: int, most: int | None) -> PlanShape:
        needs: list[Need] = []
        shortest = 0
        longest: int | None = 0
        for part in parts:
            far = None if most is None or longest is None else most + longest
            one = self.shape(part, least + shortest, far)
            needs.append(one.need)
            shortest += one.least
            longest = None if longest is None or one.most is None else longest + one.most
        return PlanShape(AllOf(tuple(needs)), shortest, longest)

    def _need(self, condition: ast.Condition | None, least: int, most: int | None) -> Need:
        free = self._free(condition)
        return ANYTHING if free is None else NearbyCondition(free, least, most)

    def _free(self, condition: ast.Condition | None) -> ast.Condition | None:
        """Return the part of a condition that is independent of labels, or None if there is none."""
        if condition is None or not mentions(condition, self._labels):
            return condition
        if isinstance(condition, ast.AndCondition):
            free = tuple(part for part in condition.conditions if not mentions(part, self._labels))
            return ast.AndCondition(free) if free else None
        return None


def is_fixed(pattern: ast.Pattern) -> bool:
    """Return whether all conditions of a pattern are at fixed distances from its beginning."""
    strict = strict_structures(pattern)
    for part in parts_of(pattern):
        match part:
            case ast.Alternation() | ast.Region():
                return False
            case ast.StructureTag(structure) if structure in strict:
                return False
            case ast.Repeat(_, least, most) if least != most or least > MOST_COPIES:
                return False
    return True


def _either(conditions: Sequence[ast.Condition]) -> ast.Condition:
    return conditions[0] if len(conditions) == 1 else ast.OrCondition(tuple(dict.fromkeys(conditions)))


def _longest(shapes: Sequence[PlanShape]) -> int | None:
    lengths = [one.most for one in shapes]
    return None if None in lengths else max(one for one in lengths if one is not None)


class CandidatePlanner:
    """Finds the candidates in a range of positions."""

    def __init__(
        self,
        conditions: Conditions,
        start: int,
        end: int,
        reach: int,
        within: SegmentStructure | None,
        count: int = 1,
    ) -> None:
        """Prepare to find matches that begin in `[start, end)` and end before `reach`; `start` begins a block.

        If `within` is given, a match lies in `count` consecutive structures.
        """
        self._conditions = conditions
        self._start, self._size, self._reach = start, end - start, reach - start
        self._within, self._count = within, count
        self._known: dict[ast.Condition | ast.StructureTag, Words] = {}

    def candidates(self, need: Need, farthest: int | None, *, exact: bool = False) -> Words:
        """Return positions where matches may begin; if `exact`, each of them meets all needs."""
        self._farthest = farthest
        found = self._found(need, exact)
        return bitset.full(self._size) if found is None else found

    def _expected(self, need: Need) -> float:
        """Return the estimated number of positions in the segment that meet a need."""
        size = self._conditions.segment.size
        match need:
            case NearbyCondition(required, least, most):
                spread = (self._farthest or 500 if most is None else most) - least + 1
                return min(self._frequency(required) * spread, size)
            case EqualTokens(is_same=is_same):
                return (EQUAL_SHARE if is_same else 1 - EQUAL_SHARE) * size
            case AllOf(needs):
                return min(map(self._expected, needs), default=size)
            case OneOf(needs):
                return min(sum(map(self._expected, needs)), size)

    def _frequency(self, required: ast.Condition | ast.StructureTag) -> float:
        if isinstance(required, ast.StructureTag):
            structure = self._conditions.structure(required.structure)
            holds = self._conditions.all_hold(structure, required.tests)
            return len(structure.firsts) if holds is None else int(holds.sum())
        return self._conditions.frequency(required)

    def _found(self, need: Need, exact: bool) -> Words | None:
        """Return the positions that meet a need, or None if looking them up does not pay."""
        match need:
            case NearbyCondition():
                return self._near(need)
            case EqualTokens():
                found = bitset.empty(self._size)
                end = self._start + self._size
                token_column.mark_equal(self._conditions.segment.column, need, self._start, end, found)
                return found
            case OneOf(needs):
                parts = [self._found(one, exact) for one in needs]
                if any(part is None for part in parts):
                    return None
                return reduce(operator.or_, [part for part in parts if part is not None])
            case AllOf(needs):
                return self._all(needs, exact)

    def _all(self, needs: tuple[Need, ...], exact: bool) -> Words | None:
        ordered = sorted(_flat(needs), key=self._expected)
        size = max(self._conditions.segment.size, 1)
        candidates: Words | None = None
        for need in ordered:
            expected = self._expected(need)
            if not exact and expected >= size:
                continue
            if candidates is not None:
                count = bitset.count(candidates)
                if not count:
                    break
                lookup_cost = self._cost(need)
                check_cost = NS_PER_CHECKED_CANDIDATE * count if self._can_be_checked(need) else math.inf
                saved = count * NS_PER_TRIED_CANDIDATE * (1 - expected / size)
                if not exact and saved < min(lookup_cost, check_cost):
                    continue
                if check_cost < lookup_cost:
                    self._check(need, candidates)
                    continue
            more = self._found(need, exact)
            if more is not None:
                candidates = more if candidates is None else candidates & more
        return candidates

    def _can_be_checked(self, need: Need) -> bool:
        """Return whether one or two tokens decide if a candidate meets a need."""
        match need:
            case EqualTokens():
                return True
            case NearbyCondition(required, least, most):
                if isinstance(required, ast.StructureTag) or least != most:
                    return False
                return self._conditions.is_about_types(required)
        return False

    def _check(self, need: Need, candidates: Words) -> None:
        """Remove candidates that do not meet a need."""
        column = self._conditions.segment.column
        match need:
            case EqualTokens():
                token_column.keep_equal(column, need, self._start, candidates)
            case NearbyCondition(required, distance):
                assert not isinstance(required, ast.StructureTag)
                wanted = self._conditions.types(required).view(np.uint8)
                token_column.keep(column, wanted, self._start, distance, candidates)

    def _cost(self, need: Need) -> float:
        """Return the estimated time for looking up all positions of a need, in nanoseconds."""
        match need:
            case NearbyCondition(required) if required in self._known:
                return 0.0
            case NearbyCondition(required):
                if isinstance(required, ast.StructureTag):
                    return NS_PER_BORDER_POSITION * self._reach
                return self._conditions.cost(required, self._start, self._start + self._reach)
            case EqualTokens():
                return NS_PER_COMPARED_PAIR * self._size
            case AllOf(needs) | OneOf(needs):
                return sum(map(self._cost, needs))

    def _near(self, need: NearbyCondition) -> Words:
        meeting = self._positions(need.required)
        if need.most is not None:
            return bitset.earlier(meeting, need.least, need.most, self._size)
        if self._within is None:
            # Tags and look-aheads may stand one step after the last token of a match.
            return bitset.earlier(meeting, need.least, max((self._farthest or 0) + 1, need.least), self._size)
        return self._earlier_in_structure(meeting, need.least)

    def _earlier_in_structure(self, members: Words, least: int) -> Words:
        """Return positions that a member follows in the same structures at a distance of at least `least`."""
        assert self._within
        places = bitset.members(members, self._start).astype(np.int64)
        # A tag or a look-ahead right after a structure may belong to a match in it.
        numbers = np.concatenate(
            [self._within.around(places), self._within.around(np.maximum(places - 1, 0))]
        )
        places = np.concatenate([places, places])[numbers >= 0]
        numbers = numbers[numbers >= 0]
        order = np.lexsort((places, numbers))
        numbers, places = numbers[order], places[order]
        # The range before the last member in a structure includes the ranges before the others.
        last = np.append(numbers[1:] != numbers[:-1], True) if len(numbers) else np.zeros(0, np.bool_)
        firsts = self._within.firsts[np.maximum(numbers[last] - self._count + 1, 0)]
        nexts = np.maximum(places[last] - least + 1, 0).astype(np.uint32)
        found = bitset.empty(self._size)
        bitset.fill(firsts, nexts, self._start, self._start + self._size, found)
        return found

    def _positions(self, required: ast.Condition | ast.StructureTag) -> Words:
        if required not in self._known:
            end = self._start + self._reach
            if isinstance(required, ast.StructureTag):  # it may stand after the last token
                self._known[required] = self._conditions.borders(required, self._start, end + 1)
            else:  # a look-ahead may read one token after the last, if there is one
                end = min(end + 1, self._conditions.segment.size)
                self._known[required] = self._conditions.positions(required, self._start, end)
        return self._known[required]


def _flat(needs: tuple[Need, ...]) -> list[Need]:
    """Return needs that must all be met with groups of the same kind dissolved."""
    found: list[Need] = []
    for need in needs:
        found.extend(_flat(need.needs) if isinstance(need, AllOf) else [need])
    return found
