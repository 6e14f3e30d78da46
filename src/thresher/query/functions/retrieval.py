"""Retrieval: the best documents, paragraphs or sentences that have some words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.query import bits, tree
from thresher.query.cql import parse
from thresher.query.found import Index, Search
from thresher.query.functions import subcorpora
from thresher.query.functions.concordance import Lines, rows_of
from thresher.query.functions.scope import Scope, document_numbers, main_attribute, structure_in
from thresher.query.functions.tables import FunctionError, Table, one_of
from thresher.query.packing import Starts
from thresher.query.segment import DOCUMENT

BLOCK = 64  # documents of which the least and the most of a dimension are known
MOST_BLOCKS = 512  # that are looked at one by one; then it is faster to look at all at once
STRETCH = 1 << 24  # positions that are looked at at once
RARITY = "rarity"
WEIGHTS = {RARITY: 1.0}
LONGEST = 100  # tokens of a unit that are shown

Floats = NDArray[np.float64]


class Dimension(NamedTuple):
    """What documents are ranked by: all figures in order, and the extremes of blocks, by segment."""

    ordered: NDArray[np.float32]
    minima: list[NDArray[np.float32]]
    maxima: list[NDArray[np.float32]]

    def ranks(self, figures: NDArray[np.float32]) -> Floats:
        """From 0 to 1: the share of documents that have less."""
        return np.searchsorted(self.ordered, figures) / max(len(self.ordered) - 1, 1)


class Ranked(NamedTuple):
    """Units of all segments, with their scores."""

    segments: Starts
    firsts: Starts
    nexts: Starts
    documents: Starts  # that they are in
    found: Starts  # how many of the words
    scores: Floats
    parts: Floats  # what the scores are made of: by unit and weight

    def best(self, count: int | None) -> Ranked:
        """Those with the highest scores; equals in the order of the corpus."""
        order = np.lexsort((self.firsts, self.segments, -self.scores))[:count]
        columns: Any = (column[order] for column in self)
        return Ranked(*columns)


_DIMENSIONS: WeakKeyDictionary[Index, dict[str, Dimension]] = WeakKeyDictionary()


def dimension(index: Index, name: str) -> Dimension:
    """A dimension of all documents; sorting them takes a while, so it is remembered."""
    known = _DIMENSIONS.setdefault(index, {})
    if name not in known:
        every = [_figures(index, number, name) for number in range(len(index.segments))]
        alive = [np.delete(some, index.segments[number].deleted) for number, some in enumerate(every)]
        starts = [np.arange(0, len(some), BLOCK) for some in every]
        known[name] = Dimension(
            np.sort(np.concatenate([np.zeros(0, np.float32), *alive])),
            [np.minimum.reduceat(some, start) for some, start in zip(every, starts, strict=True)],
            [np.maximum.reduceat(some, start) for some, start in zip(every, starts, strict=True)],
        )
    return known[name]


def _figures(index: Index, number: int, name: str) -> NDArray[np.float32]:
    segment = index.segments[number]
    nothing = np.zeros(len(segment.structures[DOCUMENT].firsts), np.float32)
    return segment.dimensions.get(name, nothing)


def retrieve(
    index: Index,
    _: Search | None = None,
    *,
    words: Sequence[str],
    unit: str = DOCUMENT,
    match: str = "all",
    weights: Mapping[str, float] | None = None,
    meta: Sequence[str] = (),
    within: str | None = None,
    limit: int | None = 10,
    longest: int = LONGEST,
) -> Table:
    """The best units that have all words, or any; words are tokens in CQL, or plain, whatever their case.

    A score is the sum of weights times ranks of the unit's document along dimensions (0: the least, 1: the most),
    and of the weight of `rarity` times the idf of the words found: ln(units / units that have the word).
    """
    one_of(match, ("all", "any"), "way to match")
    one_of(unit, index.structures, "structure")
    weighed = dict(WEIGHTS if weights is None else weights)
    known = dict.fromkeys([RARITY, *(name for segment in index.segments for name in segment.dimensions)])
    for name in weighed:
        one_of(name, known, "dimension")
    if not words or (limit is not None and limit < 1):
        raise FunctionError("nothing is asked for; try at least one word, and limit = 1")
    conditions = [_condition(index, word) for word in words]
    finder = Finder(subcorpora.scope(index, within), conditions, unit, match == "all", weighed)
    found = finder.best_of_blocks(limit) if limit is not None and not weighed.get(RARITY) else None
    ranked, is_whole = found or finder.best_of_all(limit)
    ends = np.minimum(ranked.nexts, ranked.firsts + longest)
    told = rows_of(index, Lines(ranked.segments, ranked.firsts, ends - 1), 1, 0, (), meta)
    parts = {name if name == RARITY else f"{name}_rank": ranked.parts[:, n] for n, name in enumerate(weighed)}
    columns: dict[str, Any] = {"score": ranked.scores, **parts, "found": ranked.found}
    columns |= {name: told[name] for name in ("document", *meta)}
    rows = pa.table(
        {**columns, "first": np.array(index.bases)[ranked.segments] + ranked.firsts, "text": told["match"]}
    )
    return Table(rows, "" if is_whole else f"the best {limit}")


def _condition(index: Index, word: str) -> tree.Condition | None:
    if not word.startswith(("[", '"', "'")):
        return tree.Compare(tree.Attribute(main_attribute(index)), "=", tree.Text(word, "cl"))
    search = parse(word)[-1].search
    if not isinstance(search, tree.Find) or not isinstance(search.pattern, tree.Token):
        raise FunctionError(f'{word} is more than a token; give its tokens one by one, as [lemma="…"]')
    return search.pattern.condition


class Finder:
    """Finds the units that have words, and ranks them."""

    def __init__(
        self,
        scope: Scope,
        conditions: Sequence[tree.Condition | None],
        unit: str,
        needs_all: bool,
        weights: Mapping[str, float],
    ) -> None:
        self._scope, self._index, self._unit = scope, scope.index, unit
        self._conditions, self._needs_all, self._weights = conditions, needs_all, weights
        self._numbers = [n for n, one in enumerate(scope.index.segments) if structure_in(one, unit)]

    def best_of_all(self, limit: int | None) -> tuple[Ranked, bool]:
        """The best of all units, and whether these are all that there are."""
        having = [self._having(number, 0, self._index.segments[number].size) for number in self._numbers]
        idf = np.zeros(len(self._conditions))
        if self._weights.get(RARITY):
            counts = [sum(len(some[word]) for some in having) for word in range(len(idf))]
            units = sum(map(self._units, self._numbers))
            idf = np.log(max(units, 1) / np.maximum(counts, 1))
        parts = [self._ranked(number, some, idf) for number, some in zip(self._numbers, having, strict=True)]
        found = self._joined(parts)
        return found.best(limit), limit is None or len(found.scores) <= limit

    def best_of_blocks(self, limit: int) -> tuple[Ranked, bool] | None:
        """The same, where blocks of documents that cannot have one of the best are not looked at.

        The most promising come first. Documents that stand in the order of the only dimension asked for are so
        looked at from the first on. None: too many blocks had to be looked at.
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

    def _in_block(self, number: int, first: int) -> Ranked:
        documents = self._index.segments[number].structures[DOCUMENT]
        start, end = documents.firsts[first], documents.nexts[first : first + BLOCK][-1]
        having = self._having(number, int(start), int(end))
        return self._ranked(number, having, np.zeros(len(having)))

    def _bounds(self, number: int) -> Floats:
        """The highest score that a unit can have, by block of documents."""
        total = np.zeros(-(-len(self._scope.masks[number]) // BLOCK))
        for name, weight in self._weights.items():
            if name != RARITY:
                ranks = dimension(self._index, name)
                extremes = ranks.minima[number], ranks.maxima[number]
                total += np.maximum(*(weight * ranks.ranks(some) for some in extremes))
        return total

    def _having(self, number: int, start: int, end: int) -> list[Starts]:
        """By word, the units that have it, of those that count from a position to before another; in order."""
        segment, conditions = self._index.segments[number], self._index.conditions[number]
        found = []
        for condition in self._conditions:
            parts = [np.zeros(0, np.int64)]
            for first in range(start - start % 64, end, STRETCH):
                marked = conditions.positions(condition, first, min(first + STRETCH, end))
                positions = bits.members(marked, first).astype(np.int64)
                parts.append(np.unique(segment.structures[self._unit].around(positions[positions >= start])))
            units = np.unique(np.concatenate(parts))
            units = units[units >= 0]
            found.append(units[self._scope.masks[number][self._documents(number, units)]])
        return found

    def _documents(self, number: int, units: Starts) -> Starts:
        segment = self._index.segments[number]
        return document_numbers(segment, segment.structures[self._unit].firsts[units].astype(np.int64))

    def _units(self, number: int) -> int:
        """How many units count; there may be many more of them than documents."""
        segment = self._index.segments[number]
        units, documents = segment.structures[self._unit], segment.structures[DOCUMENT]
        before, behind = (np.searchsorted(units.firsts, ends) for ends in (documents.firsts, documents.nexts))
        return int((behind - before)[self._scope.masks[number]].sum())

    def _ranked(self, number: int, having: list[Starts], idf: Floats) -> Ranked:
        """The units that have all words, or any, with their scores."""
        units = reduce(np.intersect1d if self._needs_all else np.union1d, having)
        has = np.stack([np.isin(units, some) for some in having])
        documents = self._documents(number, units)
        parts = np.zeros((len(units), len(self._weights)))
        scores = np.zeros(len(units))
        for column, (name, weight) in enumerate(self._weights.items()):
            if name == RARITY:
                parts[:, column] = idf @ has
            else:
                figures = _figures(self._index, number, name)[documents]
                parts[:, column] = dimension(self._index, name).ranks(figures)
            scores += weight * parts[:, column]
        structure = self._index.segments[number].structures[self._unit]
        firsts, nexts = structure.firsts[units].astype(np.int64), structure.nexts[units].astype(np.int64)
        return Ranked(np.full(len(units), number), firsts, nexts, documents, has.sum(0), scores, parts)

    def _joined(self, parts: Sequence[Ranked]) -> Ranked:
        none = np.zeros(0, np.int64)
        nobody = Ranked(none, none, none, none, none, np.zeros(0), np.zeros((0, len(self._weights))))
        columns: Any = (np.concatenate(columns) for columns in zip(nobody, *parts, strict=True))
        return Ranked(*columns)
