"""Evaluate CQL scripts: single searches, named results and set operations on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.search.cql import ast
from thresher.search.cql.lexer import CqlError, unknown
from thresher.search.encoding.bitpacking import Starts
from thresher.search.execution.conditions import Conditions
from thresher.search.execution.segment_search import Deadline, Hits, PatternSearch, joined_hits, selected
from thresher.search.index.segment import RegionBounds, Segment

Result = list[Hits]  # by segment


class NamedResult(NamedTuple):
    """Some hits of a result, all in one segment."""

    segment: int
    hits: Hits


class ScriptEvaluator:
    """Evaluates the statements of a query, segment by segment."""

    def __init__(self, conditions: Sequence[Conditions], strategy: ast.Strategy, deadline: Deadline) -> None:
        self._conditions, self._strategy, self._deadline = conditions, strategy, deadline
        self._segments = [one.segment for one in conditions]
        self.finders: dict[int, PatternSearch] = {}  # of the last search, by segment
        self._named: dict[str, Result] = {}
        self._inside: Result | None = None  # the result in which later searches stay

    def parts(self, statements: Sequence[ast.Statement], *, gently: bool = True) -> Iterator[NamedResult]:
        """Yield the hits of the last statement as they are found, in the order of the corpus."""
        for statement in statements[:-1]:
            self._run(statement)
        last = statements[-1].search
        if isinstance(last, ast.FindQuery) and last.expand is None:
            yield from self._found(last, gently)
            return
        for number, hits in enumerate(self._result(last)):
            yield NamedResult(number, hits)

    def _run(self, statement: ast.Statement) -> None:
        if isinstance(statement.search, ast.UseNamed) and not statement.name:
            self._inside = self._known(statement.search.name)
        elif not statement.name:
            raise CqlError("all queries but the last need a name; write A = … for them")
        else:
            self._named[statement.name] = self._result(statement.search)

    def _known(self, name: str) -> Result:
        if name not in self._named:
            raise CqlError(f"{unknown('result', name, self._named)}; write {name} = … first")
        return self._named[name]

    def _result(self, search: ast.Search) -> Result:
        match search:
            case ast.FindQuery():
                found = self._gathered(self._found(search, gently=False))
                return self._expanded(found, search.expand) if search.expand else found
            case ast.SetQuery(operation, first, second):
                pairs = zip(self._known(first), self._known(second), strict=True)
                return [_combined(operation, one, other) for one, other in pairs]
            case ast.UseNamed(name):
                return self._known(name)
        return [
            Hits(found, found)
            for conditions in self._conditions
            for found in [self._meeting(search, conditions)]
        ]

    def _gathered(self, parts: Iterator[NamedResult]) -> Result:
        by_segment: list[list[Hits]] = [[] for _ in self._segments]
        for number, hits in parts:
            by_segment[number].append(hits)
        return [joined_hits(hits) for hits in by_segment]

    # patterns

    def _found(self, find: ast.FindQuery, gently: bool) -> Iterator[NamedResult]:
        left = find.cut
        for number, conditions in enumerate(self._conditions):
            inside = _bounds(self._inside[number]) if self._inside is not None else None
            others = [(nested, self._nested(nested, conditions)) for nested in find.nested]
            finder = self.finders[number] = PatternSearch(conditions, find, self._strategy, inside)
            for hits in finder.matches(self._deadline, gently=gently):
                for nested, other in others:
                    hits = _related(hits, nested, other)  # noqa: PLW2901
                if left is not None:
                    hits = selected(hits, slice(left))  # noqa: PLW2901
                    left -= len(hits)
                yield NamedResult(number, hits)
                if left == 0:
                    return

    def _nested(self, nested: ast.Nested, conditions: Conditions) -> Hits:
        finder = PatternSearch(
            conditions, ast.FindQuery(nested.pattern), "longest" if not nested.contains else "shortest"
        )
        return joined_hits(list(finder.matches(self._deadline, gently=False)))

    # MU queries

    def _meeting(self, search: ast.Meeting, conditions: Conditions) -> Starts:
        """Return the positions of an MU query."""
        match search:
            case ast.TokenPattern():
                finder = PatternSearch(conditions, ast.FindQuery(search), "standard")
                return joined_hits(list(finder.matches(self._deadline, gently=False))).firsts
            case ast.UnionQuery(first, second):
                return np.union1d(self._meeting(first, conditions), self._meeting(second, conditions))
            case ast.MeetQuery(first, second, window):
                positions, others = self._meeting(first, conditions), self._meeting(second, conditions)
                if isinstance(window, str):
                    return positions[_share_structure(positions, others, window, conditions.segment)]
                least, most = window
                nearest = np.searchsorted(others, positions + least)
                there = np.append(others, np.iinfo(np.int64).max)[nearest]
                return positions[there <= positions + most]

    # structures

    def _expanded(self, result: Result, expand: ast.Expand) -> Result:
        expanded = []
        for segment, hits in zip(self._segments, result, strict=True):
            if expand.structure not in segment.structures:
                raise CqlError(unknown("structure", expand.structure, segment.structures))
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
            expanded.append(Hits(pairs[:, 0].copy(), pairs[:, 1].copy()))
        return expanded


def _share_structure(
    positions: Starts, others: Starts, structure: str, segment: Segment
) -> NDArray[np.bool_]:
    """Return a mask of the positions that have another position in the same structure."""
    if structure not in segment.structures:
        raise CqlError(unknown("structure", structure, segment.structures))
    regions = segment.structures[structure]

    numbers = regions.around(positions)
    return np.isin(numbers, regions.around(others)) & (numbers >= 0)


def _combined(operation: ast.SetOperation, one: Hits, other: Hits) -> Hits:
    """Return the union, intersection or difference of two results."""
    first, second = _packed(one), _packed(other)
    places = np.searchsorted(second, first)
    is_in_both = np.append(second, ~np.uint64(0))[places] == first
    if operation == "union":
        pairs = np.sort(np.concatenate([first[~is_in_both], second]), kind="stable")
    else:
        pairs = first[is_in_both == (operation == "intersection")]
    return Hits((pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64))


def _packed(hits: Hits) -> NDArray[np.uint64]:
    """Return first and last position of each hit in one number; the numbers sort as hits in the corpus."""
    return hits.firsts.astype(np.uint64) << np.uint64(32) | hits.lasts.astype(np.uint64)


def _bounds(hits: Hits) -> RegionBounds:
    """Return hits as regions to search in."""
    nexts = np.maximum.accumulate(hits.lasts + 1) if len(hits) else hits.lasts
    return RegionBounds(hits.firsts.astype(np.uint32), nexts.astype(np.uint32))


def _related(hits: Hits, nested: ast.Nested, other: Hits) -> Hits:
    """Return the hits that contain a hit of another search, or lie in one; if negated, all other hits."""
    if not len(other):
        return selected(hits, np.full(len(hits), nested.negated))
    if nested.contains:
        # Of the other hits that begin at a hit's beginning or later, the one that ends first.
        soonest = np.minimum.accumulate(other.lasts[::-1])[::-1]
        number = np.searchsorted(other.firsts, hits.firsts)
        holds = np.append(soonest, np.iinfo(np.int64).max)[number] <= hits.lasts
    else:
        latest = np.maximum.accumulate(other.lasts)
        number = np.searchsorted(other.firsts, hits.firsts, "right") - 1
        holds = (number >= 0) & (latest[number] >= hits.lasts)
    return selected(hits, holds != nested.negated)
