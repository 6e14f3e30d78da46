"""What conditions say of the types of tokens: which of them they hold for, wherever those stand.

It is remembered for a while, as the next query may ask again.
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

from thresher.query import tree
from thresher.query.expressions import ExpressionError
from thresher.query.lexicon import matches, matching, takes_long
from thresher.query.packing import Ids, Words
from thresher.query.pieces import CqlError
from thresher.query.segment import Attribute, Segment, Structure
from thresher.query.terms import written

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

FEW = 10_000  # values that an expression can be asked of at once
MOST_KNOWN = 64  # conditions that are remembered


class Kinds:
    """Tells of one segment which types conditions hold for."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self._types: dict[tree.Condition, Mask] = {}
        self._frequencies: dict[tree.Condition, int] = {}

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
            self._types[condition] = known
        return known

    def _types_of(self, condition: tree.Condition) -> Mask:
        match condition:
            case tree.All(parts):
                return both([self.types(part) for part in parts])
            case tree.Some(parts):
                return either([self.types(part) for part in parts])
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


Sets = TypeVar("Sets", Mask, Words)


def both(sets: Sequence[Sets]) -> Sets:
    """What is in all sets."""
    return reduce(operator.and_, sets)


def either(sets: Sequence[Sets]) -> Sets:
    return reduce(operator.or_, sets)


def like(attribute: Attribute, text: tree.Text, among: Ids | None = None) -> Ids:
    """The numbers of an attribute's values that an expression matches; of some, if others do not matter."""
    try:
        return matching(attribute.lexicon, text, among)
    except ExpressionError as fault:
        raise CqlError(str(fault)) from None


def matching_texts(values: pa.StringArray, text: tree.Text) -> Mask:
    try:
        return matches(values, text)
    except ExpressionError as fault:
        raise CqlError(str(fault)) from None


def whole_numbers(values: pa.StringArray) -> Numbers:
    """Texts as whole numbers; UNDEFINED where they are none."""
    fits = pc.match_substring_regex(values, r"\A[+-]?[0-9]{1,18}\z")
    told = pc.if_else(fits, values, None).cast(pa.int64())
    return np.asarray(told.fill_null(UNDEFINED), np.int64)
