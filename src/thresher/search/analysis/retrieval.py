"""Retrieval: the best documents, paragraphs or sentences that have some words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.search.analysis import subcorpora
from thresher.search.analysis.concordance import ConcordanceLines, rows_of
from thresher.search.analysis.scope import DocumentScope, document_numbers, main_attribute, structure_in
from thresher.search.analysis.tables import AnalysisError, ResultTable, one_of
from thresher.search.cql import ast
from thresher.search.cql.parser import check_text, parse
from thresher.search.encoding import bitset
from thresher.search.encoding.bitpacking import Starts
from thresher.search.index.segment import DOCUMENT
from thresher.search.searcher import Index, RunningSearch

BLOCK = 64  # documents that share the minimum and maximum of a dimension
# Blocks that are searched one by one before all documents are searched together, which is faster.
MOST_BLOCKS = 512
POSITIONS_AT_A_TIME = 1 << 24
RARITY = "rarity"
WEIGHTS = {RARITY: 1.0}
LONGEST = 100  # tokens of a unit that are shown

Floats = NDArray[np.float64]


class RankDimension(NamedTuple):
    """A dimension by which documents are ranked: its sorted values, and minima and maxima of blocks by segment."""

    ordered: NDArray[np.float32]
    minima: list[NDArray[np.float32]]
    maxima: list[NDArray[np.float32]]

    def ranks(self, values: NDArray[np.float32]) -> Floats:
        """Return the share of documents with a smaller value, from 0 to 1."""
        return np.searchsorted(self.ordered, values) / max(len(self.ordered) - 1, 1)


class RankedUnits(NamedTuple):
    """Units of all segments with their scores."""

    segments: Starts
    firsts: Starts
    nexts: Starts
    documents: Starts  # documents around the units
    found: Starts  # number of the words that a unit has
    scores: Floats
    parts: Floats  # summands of the scores, by unit and weight

    def best(self, count: int | None) -> RankedUnits:
        """Return the units with the highest scores; equal ones in the order of the corpus."""
        order = np.lexsort((self.firsts, self.segments, -self.scores))[:count]
        columns: Any = (column[order] for column in self)
        return RankedUnits(*columns)


_DIMENSIONS: WeakKeyDictionary[Index, dict[str, RankDimension]] = WeakKeyDictionary()


def dimension(index: Index, name: str) -> RankDimension:
    """Return a dimension of all documents, which is remembered, since sorting takes a while."""
    known = _DIMENSIONS.setdefault(index, {})
    if name not in known:
        every = [_values(index, number, name) for number in range(len(index.segments))]
        alive = [np.delete(values, index.segments[number].deleted) for number, values in enumerate(every)]
        starts = [np.arange(0, len(values), BLOCK) for values in every]
        known[name] = RankDimension(
            np.sort(np.concatenate([np.zeros(0, np.float32), *alive])),
            [np.minimum.reduceat(values, start) for values, start in zip(every, starts, strict=True)],
            [np.maximum.reduceat(values, start) for values, start in zip(every, starts, strict=True)],
        )
    return known[name]


def _values(index: Index, number: int, name: str) -> NDArray[np.float32]:
    segment = index.segments[number]
    nothing = np.zeros(len(segment.structures[DOCUMENT].firsts), np.float32)
    return segment.dimensions.get(name, nothing)


def retrieve(
    index: Index,
    _: RunningSearch | None = None,
    *,
    words: Sequence[str],
    unit: str = DOCUMENT,
    match: str = "all",
    weights: Mapping[str, float] | None = None,
    meta: Sequence[str] = (),
    within: str | None = None,
    limit: int | None = 10,
    longest: int = LONGEST,
) -> ResultTable:
    """Return the best units that have all words, or any; words are plain words in any case, or tokens in CQL.

    The score is a sum over the weights: for a dimension, the weight times the rank of the unit's document in it,
    from 0 to 1; for `rarity`, the weight times the idf of the words found, ln(units / units that have the word).
    """
    one_of(match, ("all", "any"), "way to match")
    one_of(unit, index.structures, "structure")
    weighed = dict(WEIGHTS if weights is None else weights)
    known = dict.fromkeys([RARITY, *(name for segment in index.segments for name in segment.dimensions)])
    for name in weighed:
        one_of(name, known, "dimension")
    if not words or (limit is not None and limit < 1):
        raise AnalysisError("retrieve needs at least one word and a limit of at least 1")
    conditions = [_condition(index, word) for word in words]
    finder = UnitRetriever(subcorpora.scope(index, within), conditions, unit, match == "all", weighed)
    found = finder.best_of_blocks(limit) if limit is not None and not weighed.get(RARITY) else None
    ranked, is_whole = found or finder.best_of_all(limit)
    ends = np.minimum(ranked.nexts, ranked.firsts + longest)
    shown = rows_of(index, ConcordanceLines(ranked.segments, ranked.firsts, ends - 1), 1, (0, 0), (), meta)
    parts = {name if name == RARITY else f"{name}_rank": ranked.parts[:, n] for n, name in enumerate(weighed)}
    columns: dict[str, Any] = {"score": ranked.scores, **parts, "found": ranked.found}
    columns |= {name: shown[name] for name in ("document", *meta)}
    rows = pa.table(
        {**columns, "first": np.array(index.bases)[ranked.segments] + ranked.firsts, "text": shown["match"]}
    )
    return ResultTable(rows, "" if is_whole else f"the best {limit}")


def _condition(index: Index, word: str) -> ast.Condition | None:
    check_text(word)
    if not word.startswith(("[", '"', "'")):
        return ast.Compare(ast.AttributeRef(main_attribute(index)), "=", ast.StringPattern(word, "cl"))
    search = parse(word)[-1].search
    if not isinstance(search, ast.FindQuery) or not isinstance(search.pattern, ast.TokenPattern):
        raise AnalysisError(f'{word} is more than a token; give tokens one by one, such as [lemma="…"]')
    return search.pattern.condition


class UnitRetriever:
    """Finds the units that have words, and ranks them."""

    def __init__(
        self,
        scope: DocumentScope,
        conditions: Sequence[ast.Condition | None],
        unit: str,
        needs_all: bool,
        weights: Mapping[str, float],
    ) -> None:
        self._scope, self._index, self._unit = scope, scope.index, unit
        self._conditions, self._needs_all, self._weights = conditions, needs_all, weights
        self._numbers = [n for n, one in enumerate(scope.index.segments) if structure_in(one, unit)]

    def best_of_all(self, limit: int | None) -> tuple[RankedUnits, bool]:
        """Return the best of all units, and whether no unit was left out."""
        having = [self._having(number, 0, self._index.segments[number].size) for number in self._numbers]
        idf = np.zeros(len(self._conditions))
        if self._weights.get(RARITY):
            counts = [sum(len(by_word[word]) for by_word in having) for word in range(len(idf))]
            units = sum(map(self._units, self._numbers))
            idf = np.log(max(units, 1) / np.maximum(counts, 1))
        parts = [
            self._ranked(number, units, idf) for number, units in zip(self._numbers, having, strict=True)
        ]
        found = self._joined(parts)
        return found.best(limit), limit is None or len(found.scores) <= limit

    def best_of_blocks(self, limit: int) -> tuple[RankedUnits, bool] | None:
        """Return the same as `best_of_all`, but skip blocks of documents that cannot have one of the best units.

        Blocks with the highest possible score come first. If documents stand in the order of the only dimension
        asked for, few blocks are searched. The result is None if too many blocks would have to be searched.
        """
        bounds = [self._bounds(number) for number in self._numbers]
        owners = np.repeat(np.array(self._numbers, np.int64), [len(some) for some in bounds])
        firsts = np.concatenate([np.zeros(0, np.int64), *(np.arange(len(some)) * BLOCK for some in bounds)])
        most = np.concatenate([np.zeros(0), *bounds])
        best, seen = self._joined([]), 0
        for visits, block in enumerate(np.lexsort((firsts, owners, -most)).tolist()):
            if len(best.scores) == limit:
                last = -best.scores[-1], best.segments[-1], best.documents[-1]
                if (-most[block], owners[block], firsts[block]) > last:
                    return best, False
            if visits == MOST_BLOCKS:
                return None
            found = self._in_block(int(owners[block]), int(firsts[block]))
            seen += len(found.scores)
            best = self._joined([best, found]).best(limit)
        return best, seen <= limit

    def _in_block(self, number: int, first: int) -> RankedUnits:
        documents = self._index.segments[number].structures[DOCUMENT]
        start, end = documents.firsts[first], documents.nexts[first : first + BLOCK][-1]
        having = self._having(number, int(start), int(end))
        return self._ranked(number, having, np.zeros(len(having)))

    def _bounds(self, number: int) -> Floats:
        """Return the highest score that a unit can have, by block of documents."""
        total = np.zeros(-(-len(self._scope.masks[number]) // BLOCK))
        for name, weight in self._weights.items():
            if name != RARITY:
                ranks = dimension(self._index, name)
                extremes = ranks.minima[number], ranks.maxima[number]
                total += np.maximum(*(weight * ranks.ranks(some) for some in extremes))
        return total

    def _having(self, number: int, start: int, end: int) -> list[Starts]:
        """Return for each word the units in `[start, end)` that have it and are in scope, in order."""
        segment, conditions = self._index.segments[number], self._index.conditions[number]
        units_of_conditions = []
        for condition in self._conditions:
            parts = [np.zeros(0, np.int64)]
            for first in range(start - start % 64, end, POSITIONS_AT_A_TIME):
                marked = conditions.positions(condition, first, min(first + POSITIONS_AT_A_TIME, end))
                positions = bitset.members(marked, first).astype(np.int64)
                parts.append(np.unique(segment.structures[self._unit].around(positions[positions >= start])))
            units = np.unique(np.concatenate(parts))
            units = units[units >= 0]
            units_of_conditions.append(units[self._scope.masks[number][self._documents(number, units)]])
        return units_of_conditions

    def _documents(self, number: int, units: Starts) -> Starts:
        segment = self._index.segments[number]
        return document_numbers(segment, segment.structures[self._unit].firsts[units].astype(np.int64))

    def _units(self, number: int) -> int:
        """Return the number of units in scope, of which there may be many more than documents."""
        segment = self._index.segments[number]
        units, documents = segment.structures[self._unit], segment.structures[DOCUMENT]
        before, behind = (np.searchsorted(units.firsts, ends) for ends in (documents.firsts, documents.nexts))
        return int((behind - before)[self._scope.masks[number]].sum())

    def _ranked(self, number: int, having: list[Starts], idf: Floats) -> RankedUnits:
        """Return the units that have all words, or any, with their scores."""
        units = reduce(np.intersect1d if self._needs_all else np.union1d, having)
        has = np.stack([np.isin(units, with_word) for with_word in having])
        documents = self._documents(number, units)
        parts = np.zeros((len(units), len(self._weights)))
        scores = np.zeros(len(units))
        for column, (name, weight) in enumerate(self._weights.items()):
            if name == RARITY:
                parts[:, column] = idf @ has
            else:
                values = _values(self._index, number, name)[documents]
                parts[:, column] = dimension(self._index, name).ranks(values)
            scores += weight * parts[:, column]
        structure = self._index.segments[number].structures[self._unit]
        firsts, nexts = structure.firsts[units].astype(np.int64), structure.nexts[units].astype(np.int64)
        return RankedUnits(np.full(len(units), number), firsts, nexts, documents, has.sum(0), scores, parts)

    def _joined(self, parts: Sequence[RankedUnits]) -> RankedUnits:
        none = np.zeros(0, np.int64)
        empty = RankedUnits(none, none, none, none, none, np.zeros(0), np.zeros((0, len(self._weights))))
        columns: Any = (np.concatenate(columns) for columns in zip(empty, *parts, strict=True))
        return RankedUnits(*columns)
