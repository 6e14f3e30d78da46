"""Evaluate conditions on attributes to masks over token types, wherever tokens of these types stand.

Masks are remembered for a while, since queries of a session often share conditions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.search.cql import ast
from thresher.search.cql.ast_tools import written
from thresher.search.cql.lexer import CqlError, unknown
from thresher.search.cql.regex import ExpressionError
from thresher.search.encoding.bitpacking import Ids, Words
from thresher.search.encoding.lexicon import matches, matching, takes_long
from thresher.search.index.segment import Segment, SegmentStructure, TokenAttribute

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]

UNDEFINED = np.iinfo(np.int64).min  # the number of a text that is no number
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
FUNCTIONS = "f(word), int(value), strlen(word), distance(a, b), distabs(a, b), lbound(s), rbound(s)"

QUICK_VALUES = 10_000  # an expression is matched against so many values without noticeable delay
REMEMBERED_CONDITIONS = 64


class UnknownAttributeError(CqlError):
    """A query names an attribute that tokens do not have."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"tokens have no attribute {name}; they have {', '.join(known)}")
        self.name = name


class TypeConditions:
    """Evaluates conditions to masks over the token types of one segment, and remembers the newest masks."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self._types: dict[ast.Condition, Mask] = {}
        self._frequencies: dict[ast.Condition, int] = {}

    # names

    def attribute(self, name: str) -> TokenAttribute:
        """Return the attribute of tokens with a name."""
        try:
            return self.segment.attributes[name]
        except KeyError:
            raise UnknownAttributeError(name, self.segment.attributes) from None

    def structure(self, name: str) -> SegmentStructure:
        """Return the structure with a name."""
        try:
            return self.segment.structures[name]
        except KeyError:
            raise CqlError(unknown("structure", name, self.segment.structures)) from None

    def of_structure(self, name: str) -> tuple[SegmentStructure, str] | None:
        """Return structure and attribute for a name such as `doc_year`, or None for an attribute of tokens."""
        if name in self.segment.attributes:
            return None
        structure, _, attribute = name.partition("_")
        if structure not in self.segment.structures or not attribute:
            raise UnknownAttributeError(name, self.segment.attributes)
        found = self.structure(structure)
        if attribute not in found.attributes:
            raise CqlError(unknown("attribute", name, (f"{structure}_{other}" for other in found.attributes)))
        return found, attribute

    # types

    def is_about_types(self, condition: ast.Condition | ast.Term) -> bool:
        """Return whether a condition depends on the token's own attributes alone."""
        match condition:
            case ast.AndCondition(parts) | ast.OrCondition(parts):
                return all(self.is_about_types(part) for part in parts)
            case ast.NotCondition(part):
                return self.is_about_types(part)
            case ast.Compare(left, _, right):
                return self.is_about_types(left) and self.is_about_types(right)
            case ast.AttributeRef(name, label):
                return not label and name in self.segment.attributes
            case ast.FunctionCall(name, arguments):
                return name not in ("lbound", "rbound") and all(map(self.is_about_types, arguments))
        return True

    def types(self, condition: ast.Condition) -> Mask:
        """Return a mask of the types for which a condition holds."""
        known = self._types.get(condition)
        if known is None:
            known = self._types_of(condition)
            if len(self._types) >= REMEMBERED_CONDITIONS:
                self._types.clear()
                self._frequencies.clear()
            self._types[condition] = known
        return known

    def _types_of(self, condition: ast.Condition) -> Mask:
        match condition:
            case ast.AndCondition(parts):
                return both([self.types(part) for part in parts])
            case ast.OrCondition(parts):
                return either([self.types(part) for part in parts])
            case ast.NotCondition(part):
                return ~self.types(part)
            case ast.Compare(ast.AttributeRef(name), ("=" | "!=") as sign, ast.StringPattern() as text):
                attribute = self.attribute(name)
                holds = self._values_like(attribute, text)
                return holds if sign == "=" else ~holds
            case ast.Compare(ast.AttributeRef(first), sign, ast.AttributeRef(second)):
                numbers = self.attribute(first).values.astype(np.int64)
                return np.asarray(COMPARE[sign](numbers, self.numbers_as(second, first)))
            case ast.Compare(left, sign, right):
                one, other = self.type_numbers(left), self.type_numbers(right)
                return np.asarray(COMPARE[sign](one, other) & (one != UNDEFINED) & (other != UNDEFINED))
            case ast.AttributeRef(name):
                raise CqlError(f'{name} alone is no condition on a token; write {name}="…"')
        raise CqlError(f"{written(condition)} is no condition on a token")

    def _like(self, attribute: TokenAttribute, text: ast.StringPattern) -> Ids:
        return like(attribute, text)

    def _values_like(self, attribute: TokenAttribute, text: ast.StringPattern) -> Mask:
        numbers = self._like(attribute, text)
        if len(numbers) == 1:
            return np.asarray(attribute.values == numbers[0])
        wanted = np.zeros(max(len(attribute.lexicon.values), 1), np.bool_)
        wanted[numbers] = True
        return wanted[attribute.values]

    def numbers_as(self, name: str, other: str) -> Numbers:
        """Return the values of an attribute, by type, as value numbers of another attribute.

        A value that the other attribute does not have is -1.
        """
        attribute = self.attribute(name)
        if name == other:
            return attribute.values.astype(np.int64)
        places = pc.index_in(attribute.lexicon.values, self.attribute(other).lexicon.values)
        return np.asarray(places.fill_null(-1), np.int64)[attribute.values]

    def type_numbers(self, term: ast.Term) -> Numbers:
        """Return the value of a numeric term for every type."""
        match term:
            case ast.NumberLiteral(value):
                return np.full(self.segment.types, value, np.int64)
            case ast.FunctionCall("f", (ast.AttributeRef(name),)):
                attribute = self.attribute(name)
                sums = np.bincount(attribute.values, weights=self.segment.counts)
                return sums.astype(np.int64)[attribute.values]
            case ast.FunctionCall("int", (ast.AttributeRef(name),)):
                attribute = self.attribute(name)
                return whole_numbers(attribute.lexicon.values)[attribute.values]
            case ast.FunctionCall("strlen", (ast.AttributeRef(name),)):
                attribute = self.attribute(name)
                lengths = pc.utf8_length(attribute.lexicon.values)
                return np.asarray(lengths, np.int64)[attribute.values]
            case ast.FunctionCall():
                raise CqlError(f"unknown function in {written(term)}; choose one of {FUNCTIONS}")
        raise CqlError(f"{written(term)} is not a number; int({written(term)}) converts digits to one")

    def frequency(self, condition: ast.Condition | None) -> int:
        """Return an upper bound of the number of tokens for which a condition holds."""
        if condition is None:
            return self.segment.size
        if self.is_about_types(condition):
            # Read once: another thread may clear the dictionary at any time.
            known = self._frequencies.get(condition)
            if known is None:
                counts = self.segment.counts[self.types(condition)]
                known = self._frequencies[condition] = int(counts.sum(dtype=np.int64))
            return known
        if isinstance(condition, ast.AndCondition):
            return min(map(self.frequency, condition.conditions))
        if isinstance(condition, ast.OrCondition):
            return min(sum(map(self.frequency, condition.conditions)), self.segment.size)
        return self.segment.size

    def takes_long(self, compared: ast.Compare) -> bool:
        """Return whether it takes long to evaluate a comparison of an attribute with a string."""
        match compared:
            case ast.Compare(ast.AttributeRef(name), _, ast.StringPattern() as text) if (
                name in self.segment.attributes
            ):
                return len(self.attribute(name).lexicon.values) > QUICK_VALUES and takes_long(text)
        return False


Sets = TypeVar("Sets", Mask, Words)


def both(sets: Sequence[Sets]) -> Sets:
    """Return the intersection of sets."""
    return reduce(operator.and_, sets)


def either(sets: Sequence[Sets]) -> Sets:
    """Return the union of sets."""
    return reduce(operator.or_, sets)


def like(attribute: TokenAttribute, text: ast.StringPattern, among: Ids | None = None) -> Ids:
    """Return the numbers of an attribute's values that an expression matches, perhaps only `among` some."""
    try:
        return matching(attribute.lexicon, text, among)
    except ExpressionError as fault:
        raise CqlError(str(fault)) from None


def matching_texts(values: pa.StringArray, text: ast.StringPattern) -> Mask:
    """Return a mask of the texts that an expression matches. Raises CqlError."""
    try:
        return matches(values, text)
    except ExpressionError as fault:
        raise CqlError(str(fault)) from None


def whole_numbers(values: pa.StringArray) -> Numbers:
    """Return texts as whole numbers, UNDEFINED for other texts."""
    fits = pc.match_substring_regex(values, r"\A[+-]?[0-9]{1,18}\z")
    numbers = pc.if_else(fits, values, None).cast(pa.int64())
    return np.asarray(numbers.fill_null(UNDEFINED), np.int64)
