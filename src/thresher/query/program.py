"""A pattern as a program: steps that a match goes through, with all ways to go on where there are several.

What a step asks for stands in tables by number, so that machine code can ask it: types that a token may have,
positions that it may stand at, rules about labels.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from enum import IntEnum
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from thresher.query import tree
from thresher.query.conditions import Conditions
from thresher.query.cql import CqlError
from thresher.query.packing import Words
from thresher.query.terms import bare_names, comparisons_in, labels_in, mentions

LONGEST_PROGRAM = 20_000  # steps
MATCH, MATCHEND, TARGET = "match", "matchend", "target"
WIDTH = 6  # numbers of a step
NONE = -1  # in place of a number: there is none


class Step(IntEnum):
    """What a step of a program does."""

    TOKEN = 0  # go over a token that passes
    AHEAD = 1  # go on if the next token passes
    SPLIT = 2  # go on in two ways
    JUMP = 3
    BORDER = 4  # go on where a structure begins or ends
    OPEN = 5  # the same where it begins, and remember where it ends
    CLOSE = 6  # go on at the end that was remembered, if one was
    DONE = 7


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


HERE_PLACE, MATCH_PLACE, END_PLACE = -1, -2, -3  # places that are no labels
_SIGNS = {
    "=": Rule.EQUAL,
    "!=": Rule.UNEQUAL,
    "<": Rule.LESS,
    ">": Rule.MORE,
    "<=": Rule.AT_MOST,
    ">=": Rule.AT_LEAST,
}


Item = TypeVar("Item")


class Asked(NamedTuple):
    """What a token is asked for, by numbers in the tables of a program."""

    types: int = NONE
    places: int = NONE
    rule: int = NONE


class Program:
    """The steps of a pattern in one segment, and the tables that they ask."""

    def __init__(self, conditions: Conditions, find: tree.Find) -> None:
        self.conditions = conditions
        self.steps: list[tuple[int, ...]] = []
        self.types: dict[tree.Condition, int] = {}  # conditions on types, with their numbers
        self.places: dict[tree.Condition | tree.Tag, int] = {}  # … on positions, and tags that stand there
        self.rules: list[list[tuple[int, int, int]]] = []
        self.type_numbers: list[NDArray[np.int64]] = []
        self.region_numbers: list[tuple[str, NDArray[np.int64]]] = []
        self.structures: dict[str, int] = {}  # whose ends are remembered
        used = labels_in(find.condition) | _labels_of_tokens(find.pattern)
        used |= _bare_labels(find.condition, find.pattern)
        self._labels = {label: number for number, label in enumerate(_set_labels(find.pattern, used))}
        for label in used - self._labels.keys() - {MATCH, MATCHEND}:
            raise CqlError(f"no token has the label {label}; write {label}:[…] in the pattern")
        self.registers = len(self._labels)
        self._strict = strict_structures(find.pattern)
        self.ends_remembered: list[int] = []  # by register that is no label: where its structures end
        self._memory: dict[str, int] = {}
        for name in self._strict:
            self._memory[name] = self._remember(name)
        self._emit(find.pattern)
        self.final_rule = self._rule(find.condition) if find.condition is not None else NONE
        self._step(Step.DONE)

    @property
    def labels(self) -> Container[str]:
        """The labels that conditions may mention."""
        return self._labels

    @property
    def comparisons(self) -> list[tree.Compare]:
        """All that tokens are compared with."""
        return [one for condition in self.types for one in comparisons_in(condition)]

    @property
    def has_rules(self) -> bool:
        """Whether labels must be kept to tell a match."""
        return bool(self.rules)

    @property
    def target(self) -> int:
        """The register that has the place of the target."""
        return self._labels.get(TARGET, NONE)

    @property
    def target_offset(self) -> int | None:
        """How far from the beginning the target is, if all steps are one after the other."""
        return next((place for place, step in self._tokens() if step[5] != NONE), None)

    @property
    def rule_offsets(self) -> list[tuple[int, int]]:
        """The rules of tokens and how far from the beginning these are, if all steps are one after the other."""
        return [(step[3], place) for place, step in self._tokens() if step[3] != NONE]

    @property
    def label_offsets(self) -> list[tuple[int, int]]:
        """The registers of labels and how far from the beginning these are, if steps are one after the other."""
        return [
            (register, place) for place, step in self._tokens() for register in step[4:] if register != NONE
        ]

    @property
    def length(self) -> int:
        """How many tokens there are, if all steps are one after the other."""
        return sum(step[0] == Step.TOKEN for step in self.steps)

    def _tokens(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        place = 0
        for step in self.steps:
            if step[0] in (Step.TOKEN, Step.AHEAD):
                yield place, step
            place += step[0] == Step.TOKEN

    def _remember(self, structure: str) -> int:
        register = self.registers
        self.registers += 1
        self.ends_remembered.append(self._place(tree.Tag(structure, closes=True)))
        return register

    def positions(self, asked: tree.Condition | tree.Tag, start: int, end: int) -> Words:
        """The positions that one of the program's conditions holds for, or that a tag stands before."""
        if isinstance(asked, tree.Tag):
            return self.conditions.borders(asked, start, end)
        return self.conditions.positions(asked, start, min(end, self.conditions.segment.size))

    # steps

    def _step(self, kind: Step, *numbers: int) -> int:
        if len(self.steps) >= LONGEST_PROGRAM:
            raise CqlError(f"the pattern is too long: it has more than {LONGEST_PROGRAM:,} steps")
        self.steps.append(_row(kind, *numbers))
        return len(self.steps) - 1

    def _emit(self, pattern: tree.Pattern) -> None:
        match pattern:
            case tree.Token(condition, label, is_target):
                target = self._labels[TARGET] if is_target else NONE
                self._step(Step.TOKEN, *self._asked(condition), self._labels.get(label, NONE), target)
            case tree.Ahead(condition):
                self._step(Step.AHEAD, *self._asked(condition))
            case tree.Tag(structure, closes):
                place = self._place(pattern)
                if structure not in self._memory:
                    self._step(Step.BORDER, place)
                elif closes:
                    self._step(Step.CLOSE, place, self._memory[structure])
                else:
                    self._step(Step.OPEN, place, self._memory[structure], self._structure(structure))
            case tree.Region(structure, tests):
                register = self._remember(structure)
                opening = self._place(tree.Tag(structure, False, tests))
                self._step(Step.OPEN, opening, register, self._structure(structure))
                self._emit(tree.Repeat(tree.Token(), 1))
                self._step(Step.CLOSE, self._place(tree.Tag(structure, True)), register)
            case tree.Sequence(parts):
                for part in parts:
                    self._emit(part)
            case tree.Choice(parts):
                self._emit_choice(parts)
            case tree.Repeat(part, least, most):
                self._emit_repeat(part, least, most)

    def _emit_choice(self, parts: tuple[tree.Pattern, ...]) -> None:
        jumps = []
        for part in parts[:-1]:
            split = self._step(Step.SPLIT)
            self._emit(part)
            jumps.append(self._step(Step.JUMP))
            self.steps[split] = _row(Step.SPLIT, split + 1, len(self.steps))
        self._emit(parts[-1])
        for jump in jumps:
            self.steps[jump] = _row(Step.JUMP, len(self.steps))

    def _emit_repeat(self, part: tree.Pattern, least: int, most: int | None) -> None:
        for _ in range(least):
            self._emit(part)
        if most is None:
            split = self._step(Step.SPLIT)
            self._emit(part)
            self._step(Step.JUMP, split)
            self.steps[split] = _row(Step.SPLIT, split + 1, len(self.steps))
            return
        splits = []
        for _ in range(most - least):
            splits.append(self._step(Step.SPLIT))
            self._emit(part)
        for split in splits:
            self.steps[split] = _row(Step.SPLIT, split + 1, len(self.steps))

    # tables

    def _asked(self, condition: tree.Condition | None) -> Asked:
        if condition is None:
            return Asked()
        if self._has_labels(condition):
            free, bound = self._divided(condition)
            asked = self._asked(free)
            return asked._replace(rule=self._rule(bound))
        if self.conditions.is_about_types(condition):
            return Asked(types=_number(self.types, condition))
        return Asked(places=self._place(condition))

    def _divided(self, condition: tree.Condition) -> tuple[tree.Condition | None, tree.Condition]:
        """A condition as one without labels and one that has some; both must hold."""
        if not isinstance(condition, tree.All):
            return None, condition
        free = tuple(part for part in condition.conditions if not self._has_labels(part))
        bound = tuple(part for part in condition.conditions if self._has_labels(part))
        return (tree.All(free) if free else None), tree.All(bound)

    def _has_labels(self, condition: tree.Condition) -> bool:
        return mentions(condition, self._labels)

    def _place(self, condition: tree.Condition | tree.Tag) -> int:
        return _number(self.places, condition)

    def _structure(self, name: str) -> int:
        self.conditions.structure(name)
        return _number(self.structures, name)

    # rules

    def _rule(self, condition: tree.Condition) -> int:
        rule: list[tuple[int, int, int]] = []
        self._put_condition(rule, condition)
        self.rules.append(rule)
        return len(self.rules) - 1

    def _put_condition(self, rule: list[tuple[int, int, int]], condition: tree.Condition) -> None:
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
            case tree.Attribute(name, label) if name in self.conditions.segment.structures:
                place = self._place(tree.Attribute(name))
                rule.append((Rule.IS_AMONG, self._where(label), place))
            case tree.Call(("lbound" | "rbound") as border, (tree.Attribute(name, label),)):
                place = self._place(tree.Call(border, (tree.Attribute(name),)))
                rule.append((Rule.IS_AMONG, self._where(label), place))
            case _:
                raise CqlError("a condition compares something with something, as a.lemma = b.lemma")

    def _put_comparison(
        self, rule: list[tuple[int, int, int]], left: tree.Term, sign: tree.Operator, right: tree.Term
    ) -> None:
        if isinstance(left, tree.Text):
            left, right = right, left
        match left, right:
            case tree.Attribute(name, label), tree.Text():
                if sign not in ("=", "!="):
                    raise CqlError(f"texts are equal or not; for {sign} write int({label}.{name}) {sign} …")
                if found := self.conditions.of_structure(name):
                    holds = self.conditions.holds(*found, sign, right)
                    self._put_region(rule, label, found[0].name, holds.astype(np.int64))
                else:
                    holds = self.conditions.types(tree.Compare(tree.Attribute(name), sign, right))
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

    def _put_values(
        self, rule: list[tuple[int, int, int]], first: str, label: str, second: str, other: str
    ) -> None:
        """The values of two attributes, as numbers that are equal if they are."""
        left, right = self.conditions.of_structure(first), self.conditions.of_structure(second)
        if left is None and right is None:
            ours = self.conditions.numbers_as(first, first)
            self._put_type(rule, label, ours)
            self._put_type(
                rule, other, ours if first == second else self.conditions.numbers_as(second, first)
            )
        elif left and right:
            one = self.conditions.segment.values(left[0].name, left[1])
            two = self.conditions.segment.values(right[0].name, right[1])
            known = {value: number for number, value in enumerate(one.values.to_pylist())}
            same = np.array([known.get(value, -1) for value in two.values.to_pylist()], np.int64)
            self._put_region(rule, label, left[0].name, one.numbers.astype(np.int64))
            self._put_region(rule, other, right[0].name, same[two.numbers])
        else:
            raise CqlError(f"{first} and {second} cannot be compared: one is of tokens, one of structures")

    def _put_number(self, rule: list[tuple[int, int, int]], term: tree.Term) -> None:
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
                if found := self.conditions.of_structure(name):
                    numbers = self.conditions.region_numbers(*found)
                    self._put_region(rule, label, found[0].name, numbers)
                else:
                    free = tree.Call("int", (tree.Attribute(name),))
                    self._put_type(rule, label, self.conditions.type_numbers(free))
            case tree.Call(function, (tree.Attribute(name, label),)):
                free = tree.Call(function, (tree.Attribute(name),))
                self._put_type(rule, label, self.conditions.type_numbers(free))
            case _:
                self.conditions.type_numbers(term)  # tells what there is

    def _put_type(self, rule: list[tuple[int, int, int]], label: str, numbers: NDArray[np.int64]) -> None:
        known = [number for number, one in enumerate(self.type_numbers) if one is numbers]
        if not known:
            self.type_numbers.append(numbers)
        row = known[0] if known else len(self.type_numbers) - 1
        rule.append((Rule.OF_TYPE, self._where(label), row))

    def _put_region(
        self, rule: list[tuple[int, int, int]], label: str, structure: str, numbers: NDArray[np.int64]
    ) -> None:
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


def _row(kind: Step, *numbers: int) -> tuple[int, ...]:
    return (kind, *numbers, *[NONE] * (WIDTH - 1 - len(numbers)))


def _number(known: dict[Item, int], item: Item) -> int:
    """The number of an item among those that are known, which it joins if it is not there."""
    return known.setdefault(item, len(known))


def parts_of(pattern: tree.Pattern) -> list[tree.Pattern]:
    """A pattern and all that it is made of."""
    match pattern:
        case tree.Sequence(parts) | tree.Choice(parts):
            return [pattern, *(inner for part in parts for inner in parts_of(part))]
        case tree.Repeat(part):
            return [pattern, *parts_of(part)]
    return [pattern]


def strict_structures(pattern: tree.Pattern) -> list[str]:
    """Structures with both an opening and a closing tag: those must be of the same one."""
    tags = [part for part in parts_of(pattern) if isinstance(part, tree.Tag)]
    opened = {tag.structure for tag in tags if not tag.closes}
    return sorted(opened & {tag.structure for tag in tags if tag.closes})


def enclosing_structure(pattern: tree.Pattern) -> str:
    """The structure that a pattern begins and ends with, if all of it lies in one such structure."""
    if not isinstance(pattern, tree.Sequence):
        return ""
    first, last = pattern.parts[0], pattern.parts[-1]
    if not isinstance(first, tree.Tag) or not isinstance(last, tree.Tag) or first.closes or not last.closes:
        return ""
    tags = [part for part in parts_of(pattern) if isinstance(part, tree.Tag)]
    ours = [tag for tag in tags if tag.structure == first.structure]
    return first.structure if first.structure == last.structure and len(ours) == 2 else ""


def _set_labels(pattern: tree.Pattern, used: set[str]) -> list[str]:
    """The labels that some token sets and somebody asks for; the target is one of them."""
    tokens = [part for part in parts_of(pattern) if isinstance(part, tree.Token)]
    labels = {token.label for token in tokens if token.label in used}
    return sorted(labels | ({TARGET} if any(token.is_target for token in tokens) else set()))


def _labels_of_tokens(pattern: tree.Pattern) -> set[str]:
    found: set[str] = set()
    for part in parts_of(pattern):
        if isinstance(part, tree.Token | tree.Ahead):
            found |= labels_in(part.condition)
    return found


def _bare_labels(condition: tree.Condition | None, pattern: tree.Pattern) -> set[str]:
    """Labels that are mentioned by themselves, as in distance(a, b)."""
    tokens = [part for part in parts_of(pattern) if isinstance(part, tree.Token | tree.Ahead)]
    named = set().union(bare_names(condition), *(bare_names(token.condition) for token in tokens))
    return named & {token.label for token in tokens if isinstance(token, tree.Token)}
