"""What conditions say of a segment: which types of tokens they hold for, and which positions.

A condition on a token's own attributes holds for some types, wherever they stand. One that asks for the structure
round a token holds for some positions. One with labels can only be told when a match is tried: see `rules`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.query import bits, columns, planes, postings, tree
from thresher.query.cql import CqlError
from thresher.query.expressions import ExpressionError
from thresher.query.lexicon import matches, matching, takes_long
from thresher.query.packing import Bytes, Ids, Words
from thresher.query.segment import LISTED, Attribute, Segment, Structure
from thresher.query.terms import all_plain, attributes_in, written

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]

UNDEFINED = np.iinfo(np.int64).min  # what is no number
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
FUNCTIONS = "f(word), int(value), strlen(word), distance(a, b), distabs(a, b), lbound(s), rbound(s)"

# What finding positions costs, in nanoseconds, as measured.
PER_SCANNED, PER_SHORT, PER_LIST, PER_POSTING, PER_PLANES, PER_VALUE = 2.5, 1.0, 20.0, 2.5, 0.1, 0.03


FEW = 10_000  # values that an expression can be asked of at once
MOST_KNOWN = 64  # conditions that are remembered


class Conditions:
    """Tells of one segment what conditions hold for, and remembers some of it: the next query may ask again."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self._types: dict[tree.Condition, Mask] = {}
        self._frequencies: dict[tree.Condition, int] = {}
        self._by_value: dict[tree.Condition, Bytes] = {}
        self._regions: dict[tuple[str, tuple[tree.Compare, ...]], Mask] = {}

    # names

    def attribute(self, name: str) -> Attribute:
        try:
            return self.segment.attributes[name]
        except KeyError:
            known = ", ".join(self.segment.attributes)
            raise CqlError(f"tokens have no attribute {name}; they have {known}") from None

    def structure(self, name: str) -> Structure:
        try:
            return self.segment.structures[name]
        except KeyError:
            known = ", ".join(self.segment.structures)
            raise CqlError(f"there is no structure {name}; there are {known}") from None

    def of_structure(self, name: str) -> tuple[Structure, str] | None:
        """The structure and its attribute that a name such as `doc_year` means."""
        if name in self.segment.attributes:
            return None
        structure, _, attribute = name.partition("_")
        if structure not in self.segment.structures or not attribute:
            self.attribute(name)  # tells what there is
        found = self.structure(structure)
        if attribute not in found.attributes:
            known = ", ".join(f"{structure}_{one}" for one in found.attributes) or "none"
            raise CqlError(f"there is no attribute {name}; of {structure} there are {known}")
        return found, attribute

    # types

    def is_about_types(self, condition: tree.Condition | tree.Term) -> bool:
        """Whether a condition asks for a token's own attributes alone."""
        match condition:
            case tree.All(parts) | tree.Some(parts):
                return all(self.is_about_types(part) for part in parts)
            case tree.Not(part):
                return self.is_about_types(part)
            case tree.Compare(left, _, right):
                return self.is_about_types(left) and self.is_about_types(right)
            case tree.Attribute(name, label):
                return not label and name in self.segment.attributes
            case tree.Call(name, arguments):
                return name not in ("lbound", "rbound") and all(map(self.is_about_types, arguments))
        return True

    def types(self, condition: tree.Condition) -> Mask:
        """The types that a condition holds for."""
        known = self._types.get(condition)
        if known is None:
            known = self._types_of(condition)
            if len(self._types) >= MOST_KNOWN:
                self._types.clear()
                self._frequencies.clear()
                self._by_value.clear()
            self._types[condition] = known
        return known

    def _types_of(self, condition: tree.Condition) -> Mask:
        match condition:
            case tree.All(parts):
                return _both([self.types(part) for part in parts])
            case tree.Some(parts):
                return _either([self.types(part) for part in parts])
            case tree.Not(part):
                return ~self.types(part)
            case tree.Compare(tree.Attribute(name), ("=" | "!=") as sign, tree.Text() as text):
                attribute = self.attribute(name)
                holds = self._values_like(attribute, text)
                return holds if sign == "=" else ~holds
            case tree.Compare(tree.Attribute(first), sign, tree.Attribute(second)):
                ours = self.attribute(first).values.astype(np.int64)
                return np.asarray(COMPARE[sign](ours, self.numbers_as(second, first)))
            case tree.Compare(left, sign, right):
                one, other = self.type_numbers(left), self.type_numbers(right)
                return np.asarray(COMPARE[sign](one, other) & (one != UNDEFINED) & (other != UNDEFINED))
            case tree.Attribute(name):
                raise CqlError(f'{name} alone says nothing of a token; write {name}="…"')
        raise CqlError(f"{written(condition)} is no condition on a token")

    def _like(self, attribute: Attribute, text: tree.Text) -> Ids:
        return like(attribute, text)

    def _values_like(self, attribute: Attribute, text: tree.Text) -> Mask:
        numbers = self._like(attribute, text)
        if len(numbers) == 1:
            return np.asarray(attribute.values == numbers[0])
        wanted = np.zeros(max(len(attribute.lexicon.values), 1), np.bool_)
        wanted[numbers] = True
        return wanted[attribute.values]

    def numbers_as(self, name: str, other: str) -> Numbers:
        """The values of an attribute, by type, in the numbers of another attribute; -1 for one it does not have."""
        attribute = self.attribute(name)
        if name == other:
            return attribute.values.astype(np.int64)
        places = pc.index_in(attribute.lexicon.values, self.attribute(other).lexicon.values)
        return np.asarray(places.fill_null(-1), np.int64)[attribute.values]

    def type_numbers(self, term: tree.Term) -> Numbers:
        """A number by type."""
        match term:
            case tree.Number(value):
                return np.full(self.segment.types, value, np.int64)
            case tree.Call("f", (tree.Attribute(name),)):
                attribute = self.attribute(name)
                sums = np.bincount(attribute.values, weights=self.segment.counts)
                return sums.astype(np.int64)[attribute.values]
            case tree.Call("int", (tree.Attribute(name),)):
                attribute = self.attribute(name)
                return whole_numbers(attribute.lexicon.values)[attribute.values]
            case tree.Call("strlen", (tree.Attribute(name),)):
                attribute = self.attribute(name)
                lengths = pc.utf8_length(attribute.lexicon.values)
                return np.asarray(lengths, np.int64)[attribute.values]
            case tree.Call():
                raise CqlError(f"{written(term)} means nothing; there are {FUNCTIONS}")
        raise CqlError(f"{written(term)} is no number; int({written(term)}) makes one of digits")

    def frequency(self, condition: tree.Condition | None) -> int:
        """How many tokens a condition holds for at most."""
        if condition is None:
            return self.segment.size
        if self.is_about_types(condition):
            known = self._frequencies.get(condition)  # another thread may forget it the next moment
            if known is None:
                counts = self.segment.counts[self.types(condition)]
                known = self._frequencies[condition] = int(counts.sum(dtype=np.int64))
            return known
        if isinstance(condition, tree.All):
            return min(map(self.frequency, condition.conditions))
        if isinstance(condition, tree.Some):
            return min(sum(map(self.frequency, condition.conditions)), self.segment.size)
        return self.segment.size

    def takes_long(self, compared: tree.Compare) -> bool:
        """Whether it takes long to tell which types a comparison of an attribute with a text holds for."""
        match compared:
            case tree.Compare(tree.Attribute(name), _, tree.Text() as text) if (
                name in self.segment.attributes
            ):
                return len(self.attribute(name).lexicon.values) > FEW and takes_long(text)
        return False

    # positions

    def positions(self, condition: tree.Condition | None, start: int, end: int) -> Words:
        """The positions from the first of a block to before another that a condition without labels holds for."""
        if condition is None:
            return bits.everybody(end - start)
        if self.is_about_types(condition):
            return self._positions_of_types(condition, start, end)
        match condition:
            case tree.All(parts):
                return _both([self.positions(part, start, end) for part in parts])
            case tree.Some(parts):
                return _either([self.positions(part, start, end) for part in parts])
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
            like_it = _matches(values.values, text)
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


Sets = TypeVar("Sets", Mask, Words)


def _both(sets: Sequence[Sets]) -> Sets:
    """What is in all sets."""
    return reduce(operator.and_, sets)


def _either(sets: Sequence[Sets]) -> Sets:
    return reduce(operator.or_, sets)


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


def like(attribute: Attribute, text: tree.Text, among: Ids | None = None) -> Ids:
    """The numbers of an attribute's values that an expression matches; of some, if others do not matter."""
    try:
        return matching(attribute.lexicon, text, among)
    except ExpressionError as fault:
        raise CqlError(str(fault)) from None


def _matches(values: pa.StringArray, text: tree.Text) -> Mask:
    try:
        return matches(values, text)
    except ExpressionError as fault:
        raise CqlError(str(fault)) from None


def whole_numbers(values: pa.StringArray) -> Numbers:
    """Texts as whole numbers; UNDEFINED where they are none."""
    fits = pc.match_substring_regex(values, r"\A[+-]?[0-9]{1,18}\z")
    told = pc.if_else(fits, values, None).cast(pa.int64())
    return np.asarray(told.fill_null(UNDEFINED), np.int64)


def between(places: Ids, start: int, end: int) -> Ids:
    """Those of rising numbers that are from one to before another."""
    first, last = np.searchsorted(places, np.array([start, end], places.dtype))
    return np.ascontiguousarray(places[first:last])


def overlapping(structure: Structure, start: int, end: int) -> slice:
    """The structures that have tokens from a position to before another."""
    first = int(np.searchsorted(structure.nexts, np.uint32(start), "right"))
    last = int(np.searchsorted(structure.firsts, np.uint32(end)))
    return slice(first, max(first, last))
