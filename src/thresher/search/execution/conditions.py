"""Evaluate conditions to bit sets over the positions of a segment.

A condition on a token's own attributes holds for some types, wherever they stand. A condition on the structure
around a token holds for some positions. A condition with labels depends on the match: see `label_constraints`.
"""

from __future__ import annotations

import numpy as np

from thresher.search.cql import ast
from thresher.search.cql.ast_tools import all_plain, attributes_in, written
from thresher.search.cql.lexer import CqlError
from thresher.search.encoding import bit_slices, bitset, postings, token_column
from thresher.search.encoding.bitpacking import Bytes, Ids, Words
from thresher.search.execution.type_conditions import (
    COMPARE,
    REMEMBERED_CONDITIONS,
    UNDEFINED,
    Mask,
    Numbers,
    TypeConditions,
    both,
    either,
    like,
    matching_texts,
    whole_numbers,
)
from thresher.search.index.segment import LISTED, Segment, SegmentStructure, TokenAttribute

# Costs of the ways to find positions, in nanoseconds, as measured; they decide which way is taken.
NS_PER_SCANNED_POSITION = 2.5
NS_PER_SHORT_POSITION = 1.0  # a scan for types that fit into a byte
NS_PER_LIST = 20.0
NS_PER_POSTING = 2.5
NS_PER_SLICED_POSITION = 0.1
NS_PER_SLICED_VALUE = 0.03  # more for each position and value looked for


class Conditions(TypeConditions):
    """Evaluates conditions in one segment, to masks over types and to bit sets over positions.

    Ranges of positions begin at the first position of a block of 64.
    """

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment)
        self._by_value: dict[ast.Condition, Bytes] = {}
        self._regions: dict[tuple[str, tuple[ast.Compare, ...]], Mask] = {}

    def positions(self, condition: ast.Condition | None, start: int, end: int) -> Words:
        """Return the positions in `[start, end)` for which a condition without labels holds."""
        if condition is None:
            return bitset.full(end - start)
        if self.is_about_types(condition):
            return self._positions_of_types(condition, start, end)
        match condition:
            case ast.AndCondition(parts):
                return both([self.positions(part, start, end) for part in parts])
            case ast.OrCondition(parts):
                return either([self.positions(part, start, end) for part in parts])
            case ast.NotCondition(part):
                return bitset.full(end - start) & ~self.positions(part, start, end)
            case ast.AttributeRef(name, ""):
                return self._inside(self.structure(name), None, start, end)
            case ast.FunctionCall(("lbound" | "rbound") as border, (ast.AttributeRef(name),)):
                structure = self.structure(name)
                places = structure.firsts if border == "lbound" else structure.nexts - np.uint32(1)
                found = bitset.empty(end - start)
                bitset.set_bits(between(places, start, end), start, end, found)
                return found
            case ast.Compare(left, sign, right):
                structure, holds = self._structures_where(left, sign, right)
                return self._inside(structure, holds, start, end)
        raise CqlError(f"{written(condition)} is no condition on a token")

    def _positions_of_types(self, condition: ast.Condition, start: int, end: int) -> Words:
        marked = bitset.empty(end - start)
        if end <= start:
            return marked
        if (sliced := self._sliced(condition)) is not None:
            attribute, wanted = sliced
            assert attribute.slices
            bit_slices.mark(attribute.slices, wanted, start, end, marked)
            return marked
        rare, is_complement = self._rarer(condition)
        self._mark(rare, start, end, marked)
        return bitset.full(end - start) & ~marked if is_complement else marked

    def _rarer(self, condition: ast.Condition) -> tuple[Mask, bool]:
        """Return the types for which a condition holds, or their complement if it has fewer tokens."""
        is_complement = self.frequency(condition) * 2 > self.segment.size
        return (~self.types(condition) if is_complement else self.types(condition)), is_complement

    def _mark(self, wanted: Mask, start: int, end: int, found: Words) -> None:
        segment = self.segment
        listed = np.flatnonzero(wanted[LISTED:]).astype(np.uint32)
        table: Bytes = wanted.view(np.uint8)
        if self._posting_cost(wanted, listed, start, end) > NS_PER_SCANNED_POSITION * (end - start):
            token_column.mark(segment.column, table, start, end, found)
            return
        if wanted[:LISTED].any():
            short = np.zeros(LISTED, np.uint8)
            short[: len(table)] = table[:LISTED]
            token_column.mark_short(segment.column, short, start, end, found)
        if len(listed):
            postings.mark(segment.postings, listed, start, end, found)

    def _posting_cost(self, wanted: Mask, listed: Ids, start: int, end: int) -> float:
        """Return the cost of finding positions from postings."""
        share = (end - start) / max(self.segment.size, 1)
        occurrences = int(self.segment.postings.counts[listed].sum(dtype=np.int64)) * share
        short = NS_PER_SHORT_POSITION * (end - start) if wanted[:LISTED].any() else 0.0
        return NS_PER_LIST * len(listed) + NS_PER_POSTING * occurrences + short

    def cost(self, condition: ast.Condition, start: int, end: int) -> float:
        """Return the estimated time for finding the positions of a condition, in nanoseconds."""
        if not self.is_about_types(condition):
            return NS_PER_SCANNED_POSITION * (end - start)
        if sliced := self._sliced(condition):
            wanted, every = int(np.count_nonzero(sliced[1])), len(sliced[1])
            values = min(wanted, every - wanted)
            return (NS_PER_SLICED_POSITION + NS_PER_SLICED_VALUE * values) * (end - start)
        rare, _ = self._rarer(condition)
        listed = np.flatnonzero(rare[LISTED:]).astype(np.uint32)
        return min(self._posting_cost(rare, listed, start, end), NS_PER_SCANNED_POSITION * (end - start))

    def has_slices(self, condition: ast.Condition) -> bool:
        """Return whether the positions of a condition are found from bit slices."""
        return self._sliced(condition) is not None

    def _sliced(self, condition: ast.Condition) -> tuple[TokenAttribute, Bytes] | None:
        """Return attribute and wanted values of a condition on just one attribute that has bit slices."""
        names = {attribute.name for attribute in attributes_in(condition)}
        if len(names) != 1 or not all_plain(condition):
            return None
        attribute = self.attribute(next(iter(names)))
        if attribute.slices is None:
            return None
        by_value = self._by_value.get(condition)
        if by_value is None:
            if len(self._by_value) >= REMEMBERED_CONDITIONS:
                self._by_value.clear()
            by_value = np.zeros(1 << attribute.slices.width, np.uint8)
            by_value[attribute.values] = self.types(condition)
            self._by_value[condition] = by_value
        return attribute, by_value

    def _inside(self, structure: SegmentStructure, holds: Mask | None, start: int, end: int) -> Words:
        """Return the positions inside structures, all of them or the ones in a mask."""
        found = bitset.empty(end - start)
        some = overlapping(structure, start, end)
        firsts, nexts = structure.firsts[some], structure.nexts[some]
        if holds is not None:
            firsts, nexts = firsts[holds[some]], nexts[holds[some]]
        bitset.fill(firsts, nexts, start, end, found)
        return found

    # structures

    def _structures_where(self, left: ast.Term, sign: str, right: ast.Term) -> tuple[SegmentStructure, Mask]:
        """Return a mask of the structures for which a comparison of an attribute holds."""
        match left, right:
            case ast.AttributeRef(name, ""), ast.StringPattern() as text:
                if found := self.of_structure(name):
                    structure, attribute = found
                    return structure, self.holds(structure, attribute, sign, text)
            case ast.FunctionCall("int", (ast.AttributeRef(name, ""),)), ast.NumberLiteral(value):
                if found := self.of_structure(name):
                    structure, attribute = found
                    numbers = self.region_numbers(structure, attribute)
                    return structure, COMPARE[sign](numbers, value) & (numbers != UNDEFINED)
        if isinstance(left, ast.AttributeRef) and isinstance(right, ast.AttributeRef | ast.NumberLiteral):
            raise CqlError(
                f"{written(left)} {sign} {written(right)} is no condition on a token; "
                f'put the value in quotes: {written(left)}{sign}"{written(right)}"'
            )
        raise CqlError(
            f"{written(left)} {sign} {written(right)} is no condition on a token; "
            'compare attributes of structures with strings, as _.doc_year="2005", or int(_.doc_year) > 2004'
        )

    def holds(self, structure: SegmentStructure, attribute: str, sign: str, text: ast.StringPattern) -> Mask:
        """Return a mask of the structures whose attribute matches a string, or does not if the sign is `!=`."""
        key = (structure.name, (ast.Compare(ast.AttributeRef(attribute), sign, text),))  # type: ignore[arg-type]
        known = self._regions.get(key)
        if known is None:
            values = self.segment.values(structure.name, attribute)
            matching = matching_texts(values.values, text)
            holds = matching[values.numbers]
            if len(self._regions) >= REMEMBERED_CONDITIONS:
                self._regions.clear()
            known = self._regions[key] = holds if sign == "=" else ~holds
        return known

    def all_hold(self, structure: SegmentStructure, tests: tuple[ast.Compare, ...]) -> Mask | None:
        """Return a mask of the structures that pass all tests, or None if there are no tests."""
        masks = []
        for test in tests:
            assert isinstance(test.left, ast.AttributeRef)
            assert isinstance(test.right, ast.StringPattern)
            self.of_structure(f"{structure.name}_{test.left.name}")
            masks.append(self.holds(structure, test.left.name, test.operator, test.right))
        return np.logical_and.reduce(masks) if masks else None

    def region_numbers(self, structure: SegmentStructure, attribute: str) -> Numbers:
        """Return the attribute of every structure as a whole number."""
        values = self.segment.values(structure.name, attribute)
        return whole_numbers(values.values)[values.numbers]

    def borders(self, tag: ast.StructureTag, start: int, end: int) -> Words:
        """Return the positions in `[start, end)` that follow a tag."""
        structure = self.structure(tag.structure)
        places = structure.nexts if tag.closes else structure.firsts
        holds = self.all_hold(structure, tag.tests)
        found = bitset.empty(end - start)
        if holds is not None:
            places = places[holds]
        bitset.set_bits(between(places, start, end), start, end, found)
        return found


class EarlyConditions(Conditions):
    """Evaluates conditions for the types of the first positions alone.

    The first page of a result needs no more, and an expression is matched against few values.
    """

    def __init__(self, segment: Segment, end: int) -> None:
        super().__init__(segment)
        self._present = np.flatnonzero(
            token_column.counted(token_column.unpack(segment.column, 0, end), segment.types)
        )

    def _like(self, attribute: TokenAttribute, text: ast.StringPattern) -> Ids:
        there = np.zeros(len(attribute.lexicon.values), np.bool_)
        there[attribute.values[self._present]] = True
        return like(attribute, text, np.flatnonzero(there).astype(np.uint32))


def between(places: Ids, start: int, end: int) -> Ids:
    """Return the numbers of a sorted array that lie in `[start, end)`."""
    first, last = np.searchsorted(places, np.array([start, end], places.dtype))
    return np.ascontiguousarray(places[first:last])


def overlapping(structure: SegmentStructure, start: int, end: int) -> slice:
    """Return the structures that have tokens in `[start, end)`."""
    first = int(np.searchsorted(structure.nexts, np.uint32(start), "right"))
    last = int(np.searchsorted(structure.firsts, np.uint32(end)))
    return slice(first, max(first, last))
