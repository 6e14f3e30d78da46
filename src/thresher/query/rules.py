"""Rules about labels: what can only be told once a match is tried, as `a.lemma = b.lemma`.

A rule is written as steps that put numbers on a stack and join them, so that machine code can follow it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher.query import tree
from thresher.query.columns import Alike
from thresher.query.conditions import Conditions
from thresher.query.pieces import CqlError

MATCH, MATCHEND = "match", "matchend"
HERE_PLACE, MATCH_PLACE, END_PLACE = -1, -2, -3  # places that are no labels

Numbers = NDArray[np.int64]
Steps = list[tuple[int, int, int]]
Item = TypeVar("Item")


class Rule(IntEnum):
    """What a rule about labels does with numbers on a stack."""

    NUMBER = 0  # put one there
    OF_TYPE = 1  # one by the type of a token
    OF_REGION = 2  # one by the structure round a token
    PLACE = 3  # the position of a token
    IS_AMONG = 4  # whether a token is at one of some positions
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
    IS_SET = 16  # whether a label stands anywhere


_SAME = (Rule.EQUAL, Rule.UNEQUAL)
_OF_PLACES = (Rule.OF_TYPE, Rule.OF_REGION, Rule.PLACE, Rule.IS_AMONG, Rule.IS_SET)
_SIGNS = {
    "=": Rule.EQUAL,
    "!=": Rule.UNEQUAL,
    "<": Rule.LESS,
    ">": Rule.MORE,
    "<=": Rule.AT_MOST,
    ">=": Rule.AT_LEAST,
}


def numbered(known: dict[Item, int], item: Item) -> int:
    """The number of an item among those that are known, which it joins if it is not there."""
    return known.setdefault(item, len(known))


class Rules:
    """The rules of a program, and the numbers that they compare."""

    def __init__(
        self, conditions: Conditions, labels: dict[str, int], places: dict[tree.Condition | tree.Tag, int]
    ) -> None:
        """`labels` are those that tokens set; `places` gets the conditions on positions that rules ask for."""
        self._conditions, self._labels, self._places = conditions, labels, places
        self.written: list[Steps] = []
        self.type_numbers: list[Numbers] = []
        self.region_numbers: list[tuple[str, Numbers]] = []

    def add(self, condition: tree.Condition) -> int:
        """The number of the rule that a condition makes."""
        rule: Steps = []
        self._put_condition(rule, condition)
        self.written.append(rule)
        return len(self.written) - 1

    def labels_of(self, rule: int) -> set[int]:
        """The registers of the labels that a rule asks for."""
        return {place for kind, place, _ in self.written[rule] if kind in _OF_PLACES and place >= 0}

    def alike(self, rule: int, places: dict[int, int]) -> Alike | None:
        """What a rule compares, if that is just two tokens by an attribute; `places` tells how far off they are."""
        match self.written[rule]:
            case [(Rule.OF_TYPE, first, one), (Rule.OF_TYPE, second, other), (sign, _, _)] if sign in _SAME:
                ours, others = self.type_numbers[one], self.type_numbers[other]
                if _are_small(ours) and _are_small(others):
                    table = ours.astype(np.uint32)
                    second_table = table if one == other else others.astype(np.uint32)
                    return Alike(table, places[first], second_table, places[second], sign == Rule.EQUAL)
        return None

    def _put_condition(self, rule: Steps, condition: tree.Condition) -> None:
        match condition:
            case tree.All(parts) | tree.Some(parts):
                join = Rule.BOTH if isinstance(condition, tree.All) else Rule.EITHER
                for number, part in enumerate(parts):
                    self._put_condition(rule, part)
                    if number:
                        rule.append((join, 0, 0))
            case tree.Not(part):
                self._put_condition(rule, part)
                rule.append((Rule.NOT, 0, 0))
            case tree.Compare(left, sign, right):
                self._put_comparison(rule, left, sign, right)
            case tree.Attribute(name, "") if name in self._labels:
                rule.append((Rule.IS_SET, self._labels[name], 0))
            case tree.Attribute(name, label) if name in self._conditions.segment.structures:
                place = self._place_of(tree.Attribute(name))
                rule.append((Rule.IS_AMONG, self._where(label), place))
            case tree.Call(("lbound" | "rbound") as border, (tree.Attribute(name, label),)):
                place = self._place_of(tree.Call(border, (tree.Attribute(name),)))
                rule.append((Rule.IS_AMONG, self._where(label), place))
            case _:
                raise CqlError("a condition compares something with something, as a.lemma = b.lemma")

    def _put_comparison(self, rule: Steps, left: tree.Term, sign: tree.Operator, right: tree.Term) -> None:
        if isinstance(left, tree.Text):
            left, right = right, left
        match left, right:
            case tree.Attribute(name, label), tree.Text():
                if sign not in ("=", "!="):
                    raise CqlError(f"texts are equal or not; for {sign} write int({label}.{name}) {sign} …")
                if found := self._conditions.of_structure(name):
                    holds = self._conditions.holds(*found, sign, right)
                    self._put_region(rule, label, found[0].name, holds.astype(np.int64))
                else:
                    holds = self._conditions.types(tree.Compare(tree.Attribute(name), sign, right))
                    self._put_type(rule, label, holds.astype(np.int64))
                rule.append((Rule.NUMBER, 1, 0))
                rule.append((Rule.EQUAL, 0, 0))
            case tree.Attribute(first, label), tree.Attribute(second, other) if not self._are_labels(
                left, right
            ):
                self._put_values(rule, first, label, second, other)
                rule.append((_SIGNS[sign], 0, 0))
            case _:
                self._put_number(rule, left)
                self._put_number(rule, right)
                rule.append((_SIGNS[sign], 0, 0))

    def _are_labels(self, *terms: tree.Term) -> bool:
        return all(
            isinstance(term, tree.Attribute) and not term.label and self._is_place(term.name)
            for term in terms
        )

    def _is_place(self, name: str) -> bool:
        return name in self._labels or name in (MATCH, MATCHEND)

    def _put_values(self, rule: Steps, first: str, label: str, second: str, other: str) -> None:
        """The values of two attributes, as numbers that are equal if they are."""
        left, right = self._conditions.of_structure(first), self._conditions.of_structure(second)
        if left is None and right is None:
            ours = self._conditions.numbers_as(first, first)
            self._put_type(rule, label, ours)
            self._put_type(
                rule, other, ours if first == second else self._conditions.numbers_as(second, first)
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

    def _put_number(self, rule: Steps, term: tree.Term) -> None:
        match term:
            case tree.Number(value):
                rule.append((Rule.NUMBER, value, 0))
            case tree.Attribute(name, "") if self._is_place(name):
                rule.append((Rule.PLACE, self._where(name), 0))
            case tree.Call(("distance" | "dist" | "distabs") as function, (first, second)):
                self._put_number(rule, second)
                self._put_number(rule, first)
                rule.append((Rule.DISTANCE if function == "distabs" else Rule.MINUS, 0, 0))
            case tree.Call("int", (tree.Attribute(name, label),)):
                if found := self._conditions.of_structure(name):
                    numbers = self._conditions.region_numbers(*found)
                    self._put_region(rule, label, found[0].name, numbers)
                else:
                    free = tree.Call("int", (tree.Attribute(name),))
                    self._put_type(rule, label, self._conditions.type_numbers(free))
            case tree.Call(function, (tree.Attribute(name, label),)):
                free = tree.Call(function, (tree.Attribute(name),))
                self._put_type(rule, label, self._conditions.type_numbers(free))
            case _:
                self._conditions.type_numbers(term)  # tells what there is

    def _put_type(self, rule: Steps, label: str, numbers: Numbers) -> None:
        known = [number for number, one in enumerate(self.type_numbers) if one is numbers]
        if not known:
            self.type_numbers.append(numbers)
        row = known[0] if known else len(self.type_numbers) - 1
        rule.append((Rule.OF_TYPE, self._where(label), row))

    def _put_region(self, rule: Steps, label: str, structure: str, numbers: Numbers) -> None:
        self.region_numbers.append((structure, numbers))
        rule.append((Rule.OF_REGION, self._where(label), len(self.region_numbers) - 1))

    def _where(self, label: str) -> int:
        if label == tree.HERE:
            return HERE_PLACE
        if label == MATCH:
            return MATCH_PLACE
        if label == MATCHEND:
            return END_PLACE
        return self._labels[label]

    def _place_of(self, condition: tree.Condition) -> int:
        return numbered(self._places, condition)


def _are_small(numbers: Numbers) -> bool:
    """Whether numbers stay different from each other in 32 bits; undefined ones would not."""
    return bool(numbers.min(initial=0) >= -1 and numbers.max(initial=0) < np.iinfo(np.uint32).max)
