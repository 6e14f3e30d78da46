"""Constraints on labels, such as `a.lemma = b.lemma`, which can be evaluated only while a match is tried.

A constraint is compiled to a program for a stack machine that runs in the matching kernels.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher.search.cql import ast
from thresher.search.cql.lexer import CqlError
from thresher.search.encoding.token_column import EqualTokens
from thresher.search.execution.conditions import Conditions

MATCH, MATCHEND = "match", "matchend"
HERE_PLACE, MATCH_PLACE, END_PLACE = -1, -2, -3  # registers of the places that are no labels

Numbers = NDArray[np.int64]
Steps = list[tuple[int, int, int]]
Item = TypeVar("Item")


class ConstraintOp(IntEnum):
    """An instruction of the stack machine."""

    NUMBER = 0  # push a constant
    OF_TYPE = 1  # push a number by the type of a token
    OF_REGION = 2  # push a number by the structure around a token
    PLACE = 3  # push the position of a token
    IS_AMONG = 4  # push whether a token stands at one of some positions
    MINUS = 5
    DISTANCE = 6
    EQUAL = 7
    UNEQUAL = 8
    LESS = 9
    MORE = 10
    AT_MOST = 11
    AT_LEAST = 12
    BOTH = 13
    EITHER = 14
    NOT = 15
    IS_SET = 16  # push whether a label is set


_SAME = (ConstraintOp.EQUAL, ConstraintOp.UNEQUAL)
_OF_PLACES = (
    ConstraintOp.OF_TYPE,
    ConstraintOp.OF_REGION,
    ConstraintOp.PLACE,
    ConstraintOp.IS_AMONG,
    ConstraintOp.IS_SET,
)
_SIGNS = {
    "=": ConstraintOp.EQUAL,
    "!=": ConstraintOp.UNEQUAL,
    "<": ConstraintOp.LESS,
    ">": ConstraintOp.MORE,
    "<=": ConstraintOp.AT_MOST,
    ">=": ConstraintOp.AT_LEAST,
}


def numbered(known: dict[Item, int], item: Item) -> int:
    """Return the number of an item, which is added with the next number if it is not known."""
    return known.setdefault(item, len(known))


class LabelConstraints:
    """The compiled constraints of a query, and the tables of numbers that they compare."""

    def __init__(
        self,
        conditions: Conditions,
        labels: dict[str, int],
        places: dict[ast.Condition | ast.StructureTag, int],
    ) -> None:
        """Prepare for a query with labels; conditions on positions are added to `places`."""
        self._conditions, self._labels, self._places = conditions, labels, places
        self.programs: list[Steps] = []
        self.type_numbers: list[Numbers] = []
        self.region_numbers: list[tuple[str, Numbers]] = []

    def add(self, condition: ast.Condition) -> int:
        """Compile a condition and return the number of its program."""
        program: Steps = []
        self._put_condition(program, condition)
        self.programs.append(program)
        return len(self.programs) - 1

    def labels_of(self, number: int) -> set[int]:
        """Return the registers of the labels that a program reads."""
        return {place for kind, place, _ in self.programs[number] if kind in _OF_PLACES and place >= 0}

    def equal_tokens(self, number: int, offsets: dict[int, int]) -> EqualTokens | None:
        """Return the comparison of a program that only compares two tokens by an attribute, else None.

        `offsets` are the distances of the labels from the beginning of the match.
        """
        match self.programs[number]:
            case [
                (ConstraintOp.OF_TYPE, first, one),
                (ConstraintOp.OF_TYPE, second, other),
                (sign, _, _),
            ] if sign in _SAME:
                numbers, others = self.type_numbers[one], self.type_numbers[other]
                if _fit_32_bits(numbers) and _fit_32_bits(others):
                    table = numbers.astype(np.uint32)
                    second_table = table if one == other else others.astype(np.uint32)
                    return EqualTokens(
                        table, offsets[first], second_table, offsets[second], sign == ConstraintOp.EQUAL
                    )
        return None

    def _put_condition(self, rule: Steps, condition: ast.Condition) -> None:
        match condition:
            case ast.AndCondition(parts) | ast.OrCondition(parts):
                join = ConstraintOp.BOTH if isinstance(condition, ast.AndCondition) else ConstraintOp.EITHER
                for number, part in enumerate(parts):
                    self._put_condition(rule, part)
                    if number:
                        rule.append((join, 0, 0))
            case ast.NotCondition(part):
                self._put_condition(rule, part)
                rule.append((ConstraintOp.NOT, 0, 0))
            case ast.Compare(left, sign, right):
                self._put_comparison(rule, left, sign, right)
            case ast.AttributeRef(name, "") if name in self._labels:
                rule.append((ConstraintOp.IS_SET, self._labels[name], 0))
            case ast.AttributeRef(name, label) if name in self._conditions.segment.structures:
                place = self._place_of(ast.AttributeRef(name))
                rule.append((ConstraintOp.IS_AMONG, self._where(label), place))
            case ast.FunctionCall(("lbound" | "rbound") as border, (ast.AttributeRef(name, label),)):
                place = self._place_of(ast.FunctionCall(border, (ast.AttributeRef(name),)))
                rule.append((ConstraintOp.IS_AMONG, self._where(label), place))
            case _:
                raise CqlError("a condition must be a comparison, such as a.lemma = b.lemma")

    def _put_comparison(self, rule: Steps, left: ast.Term, sign: ast.Operator, right: ast.Term) -> None:
        if isinstance(left, ast.StringPattern):
            left, right = right, left
        match left, right:
            case ast.AttributeRef(name, label), ast.StringPattern():
                if sign not in ("=", "!="):
                    raise CqlError(f"{sign} compares numbers; write int({label}.{name}) {sign} …")
                if found := self._conditions.of_structure(name):
                    holds = self._conditions.holds(*found, sign, right)
                    self._put_region(rule, label, found[0].name, holds.astype(np.int64))
                else:
                    holds = self._conditions.types(ast.Compare(ast.AttributeRef(name), sign, right))
                    self._put_type(rule, label, holds.astype(np.int64))
                rule.append((ConstraintOp.NUMBER, 1, 0))
                rule.append((ConstraintOp.EQUAL, 0, 0))
            case ast.AttributeRef(first, label), ast.AttributeRef(second, other) if not self._are_labels(
                left, right
            ):
                self._put_values(rule, first, label, second, other)
                rule.append((_SIGNS[sign], 0, 0))
            case _:
                self._put_number(rule, left)
                self._put_number(rule, right)
                rule.append((_SIGNS[sign], 0, 0))

    def _are_labels(self, *terms: ast.Term) -> bool:
        return all(
            isinstance(term, ast.AttributeRef) and not term.label and self._is_place(term.name)
            for term in terms
        )

    def _is_place(self, name: str) -> bool:
        return name in self._labels or name in (MATCH, MATCHEND)

    def _put_values(self, rule: Steps, first: str, label: str, second: str, other: str) -> None:
        """Push the values of two attributes as numbers that are equal if the values are."""
        left, right = self._conditions.of_structure(first), self._conditions.of_structure(second)
        if left is None and right is None:
            numbers = self._conditions.numbers_as(first, first)
            self._put_type(rule, label, numbers)
            self._put_type(
                rule, other, numbers if first == second else self._conditions.numbers_as(second, first)
            )
        elif left and right:
            one = self._conditions.segment.values(left[0].name, left[1])
            two = self._conditions.segment.values(right[0].name, right[1])
            known = {value: number for number, value in enumerate(one.values.to_pylist())}
            same = np.array([known.get(value, -1) for value in two.values.to_pylist()], np.int64)
            self._put_region(rule, label, left[0].name, one.numbers.astype(np.int64))
            self._put_region(rule, other, right[0].name, same[two.numbers])
        else:
            raise CqlError(f"{first} and {second} cannot be compared: one is of tokens, one of structures")

    def _put_number(self, rule: Steps, term: ast.Term) -> None:
        match term:
            case ast.NumberLiteral(value):
                rule.append((ConstraintOp.NUMBER, value, 0))
            case ast.AttributeRef(name, "") if self._is_place(name):
                rule.append((ConstraintOp.PLACE, self._where(name), 0))
            case ast.FunctionCall(("distance" | "dist" | "distabs") as function, (first, second)):
                self._put_number(rule, second)
                self._put_number(rule, first)
                rule.append((ConstraintOp.DISTANCE if function == "distabs" else ConstraintOp.MINUS, 0, 0))
            case ast.FunctionCall("int", (ast.AttributeRef(name, label),)):
                if found := self._conditions.of_structure(name):
                    numbers = self._conditions.region_numbers(*found)
                    self._put_region(rule, label, found[0].name, numbers)
                else:
                    free = ast.FunctionCall("int", (ast.AttributeRef(name),))
                    self._put_type(rule, label, self._conditions.type_numbers(free))
            case ast.FunctionCall(function, (ast.AttributeRef(name, label),)):
                free = ast.FunctionCall(function, (ast.AttributeRef(name),))
                self._put_type(rule, label, self._conditions.type_numbers(free))
            case _:
                self._conditions.type_numbers(term)  # raises an error that names the functions

    def _put_type(self, rule: Steps, label: str, numbers: Numbers) -> None:
        known = [number for number, one in enumerate(self.type_numbers) if one is numbers]
        if not known:
            self.type_numbers.append(numbers)
        row = known[0] if known else len(self.type_numbers) - 1
        rule.append((ConstraintOp.OF_TYPE, self._where(label), row))

    def _put_region(self, rule: Steps, label: str, structure: str, numbers: Numbers) -> None:
        self.region_numbers.append((structure, numbers))
        rule.append((ConstraintOp.OF_REGION, self._where(label), len(self.region_numbers) - 1))

    def _where(self, label: str) -> int:
        if label == ast.HERE:
            return HERE_PLACE
        if label == MATCH:
            return MATCH_PLACE
        if label == MATCHEND:
            return END_PLACE
        return self._labels[label]

    def _place_of(self, condition: ast.Condition) -> int:
        return numbered(self._places, condition)


def _fit_32_bits(numbers: Numbers) -> bool:
    """Return whether numbers stay distinct in 32 bits. `UNDEFINED` does not."""
    return bool(numbers.min(initial=0) >= -1 and numbers.max(initial=0) < np.iinfo(np.uint32).max)
