"""What queries mean, from single searches to named results that are made into others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.query import tree
from thresher.query.conditions import Conditions
from thresher.query.packing import Starts
from thresher.query.pieces import CqlError
from thresher.query.search import Finder, Hits, Watch, some_hits, those
from thresher.query.segment import Bounds, Segment

Result = list[Hits]  # by segment


class Part(NamedTuple):
    """Some hits of an answer, and the segment that they are in."""

    segment: int
    hits: Hits


class Answers:
    """Answers queries from some segments."""

    def __init__(self, conditions: Sequence[Conditions], strategy: tree.Strategy, watch: Watch) -> None:
        self._conditions, self._strategy, self._watch = conditions, strategy, watch
        self._segments = [one.segment for one in conditions]
        self.finders: dict[int, Finder] = {}  # of the last search, by segment
        self._named: dict[str, Result] = {}
        self._inside: Result | None = None

    def parts(self, statements: Sequence[tree.Statement], *, gently: bool = True) -> Iterator[Part]:
        """The hits of the last statement, in the order of the corpus, as they are found."""
        for statement in statements[:-1]:
            self._run(statement)
        last = statements[-1].search
        if isinstance(last, tree.Find) and last.expand is None:
            yield from self._found(last, gently)
            return
        for number, hits in enumerate(self._result(last)):
            yield Part(number, hits)

    def _run(self, statement: tree.Statement) -> None:
        if isinstance(statement.search, tree.Use) and not statement.name:
            self._inside = self._known(statement.search.name)
        elif not statement.name:
            raise CqlError("only the last query has no need of a name; write A = … for the others")
        else:
            self._named[statement.name] = self._result(statement.search)

    def _known(self, name: str) -> Result:
        if name not in self._named:
            known = ", ".join(self._named) or "none yet"
            raise CqlError(f"there is no result {name}; there is {known}: write {name} = … first")
        return self._named[name]

    def _result(self, search: tree.Search) -> Result:
        match search:
            case tree.Find():
                found = self._gathered(self._found(search, gently=False))
                return self._expanded(found, search.expand) if search.expand else found
            case tree.Combine(operation, first, second):
                pairs = zip(self._known(first), self._known(second), strict=True)
                return [_combined(operation, one, other) for one, other in pairs]
            case tree.Use(name):
                return self._known(name)
        return [
            Hits(found, found) for conditions in self._conditions for found in [self._met(search, conditions)]
        ]

    def _gathered(self, parts: Iterator[Part]) -> Result:
        by_segment: list[list[Hits]] = [[] for _ in self._segments]
        for number, hits in parts:
            by_segment[number].append(hits)
        return [some_hits(hits) for hits in by_segment]

    # searches for patterns

    def _found(self, find: tree.Find, gently: bool) -> Iterator[Part]:
        left = find.cut
        for number, conditions in enumerate(self._conditions):
            inside = _bounds(self._inside[number]) if self._inside is not None else None
            others = [(nested, self._nested(nested, conditions)) for nested in find.nested]
            finder = self.finders[number] = Finder(conditions, find, self._strategy, inside)
            for hits in finder.stretches(self._watch, gently=gently):
                for nested, other in others:
                    hits = _related(hits, nested, other)  # noqa: PLW2901
                if left is not None:
                    hits = those(hits, slice(left))  # noqa: PLW2901
                    left -= len(hits)
                yield Part(number, hits)
                if left == 0:
                    return

    def _nested(self, nested: tree.Nested, conditions: Conditions) -> Hits:
        finder = Finder(
            conditions, tree.Find(nested.pattern), "longest" if not nested.contains else "shortest"
        )
        return some_hits(list(finder.stretches(self._watch, gently=False)))

    # meetings

    def _met(self, search: tree.Meeting, conditions: Conditions) -> Starts:
        match search:
            case tree.Token():
                finder = Finder(conditions, tree.Find(search), "standard")
                return some_hits(list(finder.stretches(self._watch, gently=False))).firsts
            case tree.Unite(first, second):
                return np.union1d(self._met(first, conditions), self._met(second, conditions))
            case tree.Meet(first, second, window):
                ours, others = self._met(first, conditions), self._met(second, conditions)
                if isinstance(window, str):
                    return ours[_share_structure(ours, others, window, conditions.segment)]
                least, most = window
                nearest = np.searchsorted(others, ours + least)
                there = np.append(others, np.iinfo(np.int64).max)[nearest]
                return ours[there <= ours + most]

    # structures

    def _expanded(self, result: Result, expand: tree.Expand) -> Result:
        found = []
        for segment, hits in zip(self._segments, result, strict=True):
            if expand.structure not in segment.structures:
                known = ", ".join(segment.structures)
                raise CqlError(f"there is no structure {expand.structure}; there are {known}")
            structure = segment.structures[expand.structure]
            firsts, lasts = hits.firsts, hits.lasts
            if expand.left:
                number = structure.around(firsts)
                firsts = np.where(number >= 0, np.append(structure.firsts, 0)[number], firsts)
            if expand.right:
                number = structure.around(lasts)
                lasts = np.where(
                    number >= 0, np.append(structure.nexts, 0)[number].astype(np.int64) - 1, lasts
                )
            pairs = np.unique(np.stack([firsts, lasts], 1), axis=0)
            found.append(Hits(pairs[:, 0].copy(), pairs[:, 1].copy()))
        return found


def _share_structure(ours: Starts, others: Starts, structure: str, segment: Segment) -> NDArray[np.bool_]:
    """Which positions have another one in the same structure."""
    if structure not in segment.structures:
        raise CqlError(f"there is no structure {structure}; there are {', '.join(segment.structures)}")
    regions = segment.structures[structure]

    where = regions.around(ours)
    return np.isin(where, regions.around(others)) & (where >= 0)


def _combined(operation: tree.SetOperation, one: Hits, other: Hits) -> Hits:
    """Hits of two results: those in either, in both, or only in the first."""
    ours, others = _packed(one), _packed(other)
    places = np.searchsorted(others, ours)
    is_in_both = np.append(others, ~np.uint64(0))[places] == ours
    if operation == "union":
        pairs = np.sort(np.concatenate([ours[~is_in_both], others]), kind="stable")
    else:
        pairs = ours[is_in_both == (operation == "intersection")]
    return Hits((pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64))


def _packed(hits: Hits) -> NDArray[np.uint64]:
    """Beginning and end of each hit in one number; their order is that of the corpus."""
    return hits.firsts.astype(np.uint64) << np.uint64(32) | hits.lasts.astype(np.uint64)


def _bounds(hits: Hits) -> Bounds:
    """Hits as stretches to search in."""
    nexts = np.maximum.accumulate(hits.lasts + 1) if len(hits) else hits.lasts
    return Bounds(hits.firsts.astype(np.uint32), nexts.astype(np.uint32))


def _related(hits: Hits, nested: tree.Nested, other: Hits) -> Hits:
    """Hits that contain one of others, or lie in one; or that do not."""
    if not len(other):
        return those(hits, np.full(len(hits), nested.negated))
    if nested.contains:
        # Of all that begin at a hit's beginning or later, the one that ends first.
        soonest = np.minimum.accumulate(other.lasts[::-1])[::-1]
        number = np.searchsorted(other.firsts, hits.firsts)
        holds = np.append(soonest, np.iinfo(np.int64).max)[number] <= hits.lasts
    else:
        latest = np.maximum.accumulate(other.lasts)
        number = np.searchsorted(other.firsts, hits.firsts, "right") - 1
        holds = (number >= 0) & (latest[number] >= hits.lasts)
    return those(hits, holds != nested.negated)
