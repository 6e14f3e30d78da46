"""Where a match may begin: what every match must have, and how far from its beginning.

The rarest thing that a match cannot do without is looked up first, across gaps, too; what else it must have is
looked up only as long as that is cheaper than to try what is left.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Container, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from thresher.query import bits, columns, tree
from thresher.query.columns import Alike
from thresher.query.conditions import Conditions
from thresher.query.packing import Words
from thresher.query.program import parts_of, strict_structures
from thresher.query.segment import Structure
from thresher.query.terms import mentions

MOST_COPIES = 8  # of a repeated part that are looked at
TRYING = 60.0  # nanoseconds that it takes to try a candidate, about
ASKING = 12.0  # … to ask whether there is at a candidate what must be there
COMPARING = 3.0  # … to compare two tokens
BORDERING = 0.2  # … a border: structures are few
ALIKE = (
    0.1  # share of positions that are expected to have two tokens alike: what is rarer is looked up before
)


class Near(NamedTuple):
    """A token, or a tag, that must be at least so many steps from the beginning, and at most so many."""

    what: tree.Condition | tree.Tag
    least: int
    most: int | None  # None: as far as a match can reach


class AllOf(NamedTuple):
    needs: tuple[Need, ...]


class OneOf(NamedTuple):
    needs: tuple[Need, ...]


Need = Near | Alike | AllOf | OneOf
ANYTHING = AllOf(())


class Shape(NamedTuple):
    """What a pattern needs, and how long it can be."""

    need: Need
    least: int
    most: int | None


class Shaper:
    """Tells what patterns need; `labels` are those that conditions may mention."""

    def __init__(self, labels: Container[str]) -> None:
        self._labels = labels

    def shape(self, pattern: tree.Pattern, least: int = 0, most: int | None = 0) -> Shape:
        """What a pattern needs that begins at least and at most so many steps from the beginning of a match."""
        match pattern:
            case tree.Token(condition):
                return Shape(self._need(condition, least, most), 1, 1)
            case tree.Ahead(condition):
                return Shape(self._need(condition, least, most), 0, 0)
            case tree.Tag():
                return Shape(Near(pattern, least, most), 0, 0)
            case tree.Region(structure, tests):
                return Shape(Near(tree.Tag(structure, False, tests), least, most), 1, None)
            case tree.Sequence(parts):
                return self._sequence(parts, least, most)
            case tree.Choice(parts):
                shapes = [self.shape(part, least, most) for part in parts]
                needs = tuple(one.need for one in shapes)
                return Shape(OneOf(needs), min(one.least for one in shapes), _longest(shapes))
            case tree.Repeat(part, fewest, times):
                # A part that may be missing altogether is looked at for its length alone.
                copies = self._sequence((part,) * min(max(fewest, 1), MOST_COPIES), least, most)
                once = self.shape(part) if fewest > 1 else copies
                need = copies.need if fewest else ANYTHING
                longest = None if times is None or once.most is None else once.most * times
                return Shape(need, once.least * fewest, 0 if once.most == 0 else longest)
        raise AssertionError(pattern)

    def beginning(self, pattern: tree.Pattern) -> Need:
        """What the first token of a match is like: one of several, where parts may be missing."""
        conditions, _ = self._firsts(pattern)
        found = [condition for condition in conditions if condition is not None]
        return ANYTHING if not found or len(found) < len(conditions) else Near(_either(found), 0, 0)

    def _firsts(self, pattern: tree.Pattern) -> tuple[list[tree.Condition | None], bool]:
        """What a pattern may begin with, None for anything; and whether it may be missing."""
        match pattern:
            case tree.Token(condition):
                return [self._free(condition)], False
            case tree.Region():
                return [None], False
            case tree.Choice(parts):
                both = [self._firsts(part) for part in parts]
                return [one for found, _ in both for one in found], any(missing for _, missing in both)
            case tree.Sequence(parts):
                conditions: list[tree.Condition | None] = []
                for part in parts:
                    found, may_miss = self._firsts(part)
                    conditions += found
                    if not may_miss:
                        return conditions, False
                return conditions, True
            case tree.Repeat(part, least):
                found, may_miss = self._firsts(part)
                return found, may_miss or least == 0
        return [], True

    def _sequence(self, parts: tuple[tree.Pattern, ...], least: int, most: int | None) -> Shape:
        needs: list[Need] = []
        shortest = 0
        longest: int | None = 0
        for part in parts:
            far = None if most is None or longest is None else most + longest
            one = self.shape(part, least + shortest, far)
            needs.append(one.need)
            shortest += one.least
            longest = None if longest is None or one.most is None else longest + one.most
        return Shape(AllOf(tuple(needs)), shortest, longest)

    def _need(self, condition: tree.Condition | None, least: int, most: int | None) -> Need:
        free = self._free(condition)
        return ANYTHING if free is None else Near(free, least, most)

    def _free(self, condition: tree.Condition | None) -> tree.Condition | None:
        """What a condition says that has nothing to do with labels; None if that is nothing."""
        if condition is None or not mentions(condition, self._labels):
            return condition
        if isinstance(condition, tree.All):
            free = tuple(part for part in condition.conditions if not mentions(part, self._labels))
            return tree.All(free) if free else None
        return None


def is_fixed(pattern: tree.Pattern) -> bool:
    """Whether all that a pattern says is at one distance from the beginning each."""
    strict = strict_structures(pattern)
    for part in parts_of(pattern):
        match part:
            case tree.Choice() | tree.Region():
                return False
            case tree.Tag(structure) if structure in strict:
                return False
            case tree.Repeat(_, least, most) if least != most or least > MOST_COPIES:
                return False
    return True


def _either(conditions: Sequence[tree.Condition]) -> tree.Condition:
    return conditions[0] if len(conditions) == 1 else tree.Some(tuple(dict.fromkeys(conditions)))


def _longest(shapes: Sequence[Shape]) -> int | None:
    lengths = [one.most for one in shapes]
    return None if None in lengths else max(one for one in lengths if one is not None)


class Planner:
    """Finds candidates in a stretch of positions."""

    def __init__(
        self,
        conditions: Conditions,
        start: int,
        end: int,
        reach: int,
        within: Structure | None,
        count: int = 1,
    ) -> None:
        """Matches begin from `start`, the first of a block, to before `end` and never reach `reach`.

        They are within so many structures that follow each other, if within any.
        """
        self._conditions = conditions
        self._start, self._size, self._reach = start, end - start, reach - start
        self._within, self._count = within, count
        self._known: dict[tree.Condition | tree.Tag, Words] = {}

    def candidates(self, need: Need, farthest: int | None, *, exact: bool = False) -> Words:
        """Positions where matches may begin; if it must be exact, nothing that is needed is left out."""
        self._farthest = farthest
        found = self._found(need, exact)
        return bits.everybody(self._size) if found is None else found

    def _expected(self, need: Need) -> float:
        """About how many positions a need leaves, in the whole segment."""
        size = self._conditions.segment.size
        match need:
            case Near(what, least, most):
                spread = (self._farthest or 500 if most is None else most) - least + 1
                return min(self._frequency(what) * spread, size)
            case Alike(is_same=is_same):
                return (ALIKE if is_same else 1 - ALIKE) * size
            case AllOf(needs):
                return min(map(self._expected, needs), default=size)
            case OneOf(needs):
                return min(sum(map(self._expected, needs)), size)

    def _frequency(self, what: tree.Condition | tree.Tag) -> float:
        if isinstance(what, tree.Tag):
            structure = self._conditions.structure(what.structure)
            holds = self._conditions.all_hold(structure, what.tests)
            return len(structure.firsts) if holds is None else int(holds.sum())
        return self._conditions.frequency(what)

    def _found(self, need: Need, exact: bool) -> Words | None:
        """Positions that have what is needed; None if that is not worth looking up."""
        match need:
            case Near():
                return self._near(need)
            case Alike():
                found = bits.nobody(self._size)
                end = self._start + self._size
                columns.mark_alike(self._conditions.segment.column, need, self._start, end, found)
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
        found: Words | None = None
        for need in ordered:
            expected = self._expected(need)
            if not exact and expected >= size:
                continue
            if found is not None:
                count = bits.count(found)
                if not count:
                    break
                looking = self._cost(need)
                asking = ASKING * count if self._can_be_asked(need) else math.inf
                if not exact and count * TRYING * (1 - expected / size) < min(looking, asking):
                    continue
                if asking < looking:
                    self._ask(need, found)
                    continue
            more = self._found(need, exact)
            if more is not None:
                found = more if found is None else found & more
        return found

    def _can_be_asked(self, need: Need) -> bool:
        """Whether a look at one token, or at two, tells of a candidate whether it has what is needed."""
        match need:
            case Alike():
                return True
            case Near(what, least, most):
                if isinstance(what, tree.Tag) or least != most:
                    return False
                return self._conditions.is_about_types(what)
        return False

    def _ask(self, need: Need, candidates: Words) -> None:
        """Leave those candidates that have what is needed."""
        column = self._conditions.segment.column
        match need:
            case Alike():
                columns.keep_alike(column, need, self._start, candidates)
            case Near(what, distance):
                assert not isinstance(what, tree.Tag)
                wanted = self._conditions.types(what).view(np.uint8)
                columns.keep(column, wanted, self._start, distance, candidates)

    def _cost(self, need: Need) -> float:
        """About how many nanoseconds it takes to look up all positions of a need."""
        match need:
            case Near(what) if what in self._known:
                return 0.0
            case Near(what):
                if isinstance(what, tree.Tag):
                    return BORDERING * self._reach
                return self._conditions.cost(what, self._start, self._start + self._reach)
            case Alike():
                return COMPARING * self._size
            case AllOf(needs) | OneOf(needs):
                return sum(map(self._cost, needs))

    def _near(self, need: Near) -> Words:
        there = self._positions(need.what)
        if need.most is not None:
            return bits.earlier(there, need.least, need.most, self._size)
        if self._within is None:
            # Tags, and tokens that are looked ahead at, may stand one step behind the last token.
            return bits.earlier(there, need.least, max((self._farthest or 0) + 1, need.least), self._size)
        return self._earlier_in_structure(there, need.least)

    def _earlier_in_structure(self, there: Words, least: int) -> Words:
        """Positions from which one of a set is some steps away in the same structures, however far."""
        assert self._within
        places = bits.members(there, self._start).astype(np.int64)
        # What stands right behind a structure may belong to a match in it: a tag, or a token looked ahead at.
        numbers = np.concatenate(
            [self._within.around(places), self._within.around(np.maximum(places - 1, 0))]
        )
        places = np.concatenate([places, places])[numbers >= 0]
        numbers = numbers[numbers >= 0]
        order = np.lexsort((places, numbers))
        numbers, places = numbers[order], places[order]
        # Of several in one structure, the last reaches back over all that the others do.
        last = np.append(numbers[1:] != numbers[:-1], True) if len(numbers) else np.zeros(0, np.bool_)
        firsts = self._within.firsts[np.maximum(numbers[last] - self._count + 1, 0)]
        nexts = np.maximum(places[last] - least + 1, 0).astype(np.uint32)
        found = bits.nobody(self._size)
        bits.fill(firsts, nexts, self._start, self._start + self._size, found)
        return found

    def _positions(self, what: tree.Condition | tree.Tag) -> Words:
        if what not in self._known:
            end = self._start + self._reach
            if isinstance(what, tree.Tag):  # it may stand behind the last token
                self._known[what] = self._conditions.borders(what, self._start, end + 1)
            else:  # one token behind the last may be looked at, if there is one
                end = min(end + 1, self._conditions.segment.size)
                self._known[what] = self._conditions.positions(what, self._start, end)
        return self._known[what]


def _flat(needs: tuple[Need, ...]) -> list[Need]:
    """Needs that must all be met, those of groups one by one."""
    found: list[Need] = []
    for need in needs:
        found.extend(_flat(need.needs) if isinstance(need, AllOf) else [need])
    return found
