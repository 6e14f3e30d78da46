"""What conditions say of a segment: which types of tokens they hold for, and which positions.

A condition on a token's own attributes holds for some types, wherever they stand. One that asks for the structure
round a token holds for some positions. One with labels can only be told when a match is tried: see `rules`.
"""

from __future__ import annotations

import numpy as np

from thresher.query import bits, columns, planes, postings, tree
from thresher.query.kinds import (
    COMPARE,
    MOST_KNOWN,
    UNDEFINED,
    Kinds,
    Mask,
    Numbers,
    both,
    either,
    like,
    matching_texts,
    whole_numbers,
)
from thresher.query.packing import Bytes, Ids, Words
from thresher.query.pieces import CqlError
from thresher.query.segment import LISTED, Attribute, Segment, Structure
from thresher.query.terms import all_plain, attributes_in, written

# What finding positions costs, in nanoseconds, as measured.
PER_SCANNED, PER_SHORT, PER_LIST, PER_POSTING, PER_PLANES, PER_VALUE = 2.5, 1.0, 20.0, 2.5, 0.1, 0.03


class Conditions(Kinds):
    """Tells of one segment which positions conditions hold for, too."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment)
        self._by_value: dict[tree.Condition, Bytes] = {}
        self._regions: dict[tuple[str, tuple[tree.Compare, ...]], Mask] = {}

    def positions(self, condition: tree.Condition | None, start: int, end: int) -> Words:
        """The positions from the first of a block to before another that a condition without labels holds for."""
        if condition is None:
            return bits.everybody(end - start)
        if self.is_about_types(condition):
            return self._positions_of_types(condition, start, end)
        match condition:
            case tree.All(parts):
                return both([self.positions(part, start, end) for part in parts])
            case tree.Some(parts):
                return either([self.positions(part, start, end) for part in parts])
            case tree.Not(part):
                return bits.everybody(end - start) & ~self.positions(part, start, end)
            case tree.Attribute(name, ""):
                return self._inside(self.structure(name), None, start, end)
            case tree.Call(("lbound" | "rbound") as border, (tree.Attribute(name),)):
                structure = self.structure(name)
                places = structure.firsts if border == "lbound" else structure.nexts - np.uint32(1)
                found = bits.nobody(end - start)
                bits.dot(between(places, start, end), start, end, found)
                return found
            case tree.Compare(left, sign, right):
                structure, holds = self._structures_where(left, sign, right)
                return self._inside(structure, holds, start, end)
        raise CqlError(f"{written(condition)} is no condition on a token")

    def _positions_of_types(self, condition: tree.Condition, start: int, end: int) -> Words:
        found = bits.nobody(end - start)
        if end <= start:
            return found
        if (narrow := self._narrow(condition)) is not None:
            attribute, wanted = narrow
            assert attribute.planes
            planes.mark(attribute.planes, wanted, start, end, found)
            return found
        rare, is_other = self._rarer(condition)
        self._mark(rare, start, end, found)
        return bits.everybody(end - start) & ~found if is_other else found

    def _rarer(self, condition: tree.Condition) -> tuple[Mask, bool]:
        """The types that a condition holds for, or the others if there are fewer tokens of them to find."""
        is_other = self.frequency(condition) * 2 > self.segment.size
        return (~self.types(condition) if is_other else self.types(condition)), is_other

    def _mark(self, wanted: Mask, start: int, end: int, found: Words) -> None:
        segment = self.segment
        listed = np.flatnonzero(wanted[LISTED:]).astype(np.uint32)
        table: Bytes = wanted.view(np.uint8)
        if self._reading(wanted, listed, start, end) > PER_SCANNED * (end - start):
            columns.mark(segment.column, table, start, end, found)
            return
        if wanted[:LISTED].any():
            short = np.zeros(LISTED, np.uint8)
            short[: len(table)] = table[:LISTED]
            columns.mark_short(segment.column, short, start, end, found)
        if len(listed):
            postings.mark(segment.postings, listed, start, end, found)

    def _reading(self, wanted: Mask, listed: Ids, start: int, end: int) -> float:
        """What it costs to find positions without a look at each."""
        share = (end - start) / max(self.segment.size, 1)
        occurrences = int(self.segment.postings.counts[listed].sum(dtype=np.int64)) * share
        short = PER_SHORT * (end - start) if wanted[:LISTED].any() else 0.0
        return PER_LIST * len(listed) + PER_POSTING * occurrences + short

    def cost(self, condition: tree.Condition, start: int, end: int) -> float:
        """About how many nanoseconds it takes to find the positions of a condition."""
        if not self.is_about_types(condition):
            return PER_SCANNED * (end - start)
        if narrow := self._narrow(condition):
            wanted, every = int(np.count_nonzero(narrow[1])), len(narrow[1])
            return (PER_PLANES + PER_VALUE * min(wanted, every - wanted)) * (end - start)
        rare, _ = self._rarer(condition)
        listed = np.flatnonzero(rare[LISTED:]).astype(np.uint32)
        return min(self._reading(rare, listed, start, end), PER_SCANNED * (end - start))

    def has_planes(self, condition: tree.Condition) -> bool:
        """Whether the positions of a condition are told by few operations on bits."""
        return self._narrow(condition) is not None

    def _narrow(self, condition: tree.Condition) -> tuple[Attribute, Bytes] | None:
        """The wanted values, if a condition is about one attribute, and one that has few."""
        names = {attribute.name for attribute in attributes_in(condition)}
        if len(names) != 1 or not all_plain(condition):
            return None
        attribute = self.attribute(next(iter(names)))
        if attribute.planes is None:
            return None
        by_value = self._by_value.get(condition)
        if by_value is None:
            if len(self._by_value) >= MOST_KNOWN:
                self._by_value.clear()
            by_value = np.zeros(1 << attribute.planes.width, np.uint8)
            by_value[attribute.values] = self.types(condition)
            self._by_value[condition] = by_value
        return attribute, by_value

    def _inside(self, structure: Structure, holds: Mask | None, start: int, end: int) -> Words:
        """The positions inside structures; those of a mask."""
        found = bits.nobody(end - start)
        some = overlapping(structure, start, end)
        firsts, nexts = structure.firsts[some], structure.nexts[some]
        if holds is not None:
            firsts, nexts = firsts[holds[some]], nexts[holds[some]]
        bits.fill(firsts, nexts, start, end, found)
        return found

    # structures

    def _structures_where(self, left: tree.Term, sign: str, right: tree.Term) -> tuple[Structure, Mask]:
        """The structures for whose attributes a comparison holds."""
        match left, right:
            case tree.Attribute(name, ""), tree.Text() as text:
                if found := self.of_structure(name):
                    structure, attribute = found
                    return structure, self.holds(structure, attribute, sign, text)
            case tree.Call("int", (tree.Attribute(name, ""),)), tree.Number(value):
                if found := self.of_structure(name):
                    structure, attribute = found
                    numbers = self.region_numbers(structure, attribute)
                    return structure, COMPARE[sign](numbers, value) & (numbers != UNDEFINED)
        raise CqlError(
            f"{written(left)} {sign} {written(right)} cannot be asked of a token; "
            'attributes of structures are compared with texts, as _.doc_year="2005", or int(_.doc_year) > 2004'
        )

    def holds(self, structure: Structure, attribute: str, sign: str, text: tree.Text) -> Mask:
        """The structures whose attribute is like a text, or not."""
        key = (structure.name, (tree.Compare(tree.Attribute(attribute), sign, text),))  # type: ignore[arg-type]
        known = self._regions.get(key)
        if known is None:
            values = self.segment.values(structure.name, attribute)
            like_it = matching_texts(values.values, text)
            holds = like_it[values.numbers]
            if len(self._regions) >= MOST_KNOWN:
                self._regions.clear()
            known = self._regions[key] = holds if sign == "=" else ~holds
        return known

    def all_hold(self, structure: Structure, tests: tuple[tree.Compare, ...]) -> Mask | None:
        """The structures that pass all tests; None if there are no tests."""
        masks = []
        for test in tests:
            assert isinstance(test.left, tree.Attribute)
            assert isinstance(test.right, tree.Text)
            self.of_structure(f"{structure.name}_{test.left.name}")
            masks.append(self.holds(structure, test.left.name, test.operator, test.right))
        return np.logical_and.reduce(masks) if masks else None

    def region_numbers(self, structure: Structure, attribute: str) -> Numbers:
        """The attribute of every structure as a whole number."""
        values = self.segment.values(structure.name, attribute)
        return whole_numbers(values.values)[values.numbers]

    def borders(self, tag: tree.Tag, start: int, end: int) -> Words:
        """The positions that a tag stands before, from the first of a block to before another."""
        structure = self.structure(tag.structure)
        places = structure.nexts if tag.closes else structure.firsts
        holds = self.all_hold(structure, tag.tests)
        found = bits.nobody(end - start)
        if holds is not None:
            places = places[holds]
        bits.dot(between(places, start, end), start, end, found)
        return found


class EarlyConditions(Conditions):
    """Tells what conditions hold for among the types of the first positions alone, which are few.

    A first page needs no more, and expressions that must be asked of every value are then asked of few.
    """

    def __init__(self, segment: Segment, end: int) -> None:
        super().__init__(segment)
        self._present = np.flatnonzero(columns.counted(columns.unpack(segment.column, 0, end), segment.types))

    def _like(self, attribute: Attribute, text: tree.Text) -> Ids:
        there = np.zeros(len(attribute.lexicon.values), np.bool_)
        there[attribute.values[self._present]] = True
        return like(attribute, text, np.flatnonzero(there).astype(np.uint32))


def between(places: Ids, start: int, end: int) -> Ids:
    """Those of rising numbers that are from one to before another."""
    first, last = np.searchsorted(places, np.array([start, end], places.dtype))
    return np.ascontiguousarray(places[first:last])


def overlapping(structure: Structure, start: int, end: int) -> slice:
    """The structures that have tokens from a position to before another."""
    first = int(np.searchsorted(structure.nexts, np.uint32(start), "right"))
    last = int(np.searchsorted(structure.firsts, np.uint32(end)))
    return slice(first, max(first, last))
