"""A pattern as a program: steps that a match goes through, with all ways to go on where there are several.

What a step asks for stands in tables by number, so that machine code can ask it: types that a token may have,
positions that it may stand at, rules about labels.
"""

from __future__ import annotations

from collections.abc import Container
from enum import IntEnum
from typing import NamedTuple

from thresher.query import tree
from thresher.query.columns import Alike
from thresher.query.conditions import Conditions
from thresher.query.packing import Words
from thresher.query.pieces import CqlError
from thresher.query.rules import END_PLACE, HERE_PLACE, MATCH, MATCH_PLACE, MATCHEND, Rules, numbered
from thresher.query.terms import bare_names, comparisons_in, labels_in, mentions

LONGEST_PROGRAM = 20_000  # steps
TARGET = "target"
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


class Asked(NamedTuple):
    """What a token is asked for, by numbers in the tables of a program."""

    types: int = NONE
    places: int = NONE
    rule: int = NONE


class Layout(NamedTuple):
    """How far from the beginning of a match everything is."""

    length: int
    target: int | None
    labels: list[tuple[int, int]]  # registers, and where they are set
    alike: list[Alike]  # rules that just compare two tokens
    rules: list[tuple[int, int]]  # other rules of tokens, and where those are
    final_rule: int

    @property
    def has_rules(self) -> bool:
        """Whether there are rules that do more than compare two tokens."""
        return bool(self.rules) or self.final_rule != NONE


class Program:
    """The steps of a pattern in one segment, and the tables that they ask."""

    def __init__(self, conditions: Conditions, find: tree.Find) -> None:
        self.conditions = conditions
        self.steps: list[tuple[int, ...]] = []
        self.types: dict[tree.Condition, int] = {}  # conditions on types, with their numbers
        self.places: dict[tree.Condition | tree.Tag, int] = {}  # … on positions, and tags that stand there
        self.structures: dict[str, int] = {}  # whose ends are remembered
        used = labels_in(find.condition) | _labels_of_tokens(find.pattern)
        used |= _bare_labels(find.condition, find.pattern)
        self._labels = {label: number for number, label in enumerate(_set_labels(find.pattern, used))}
        for label in used - self._labels.keys() - {MATCH, MATCHEND}:
            raise CqlError(f"no token has the label {label}; write {label}:[…] in the pattern")
        self.registers = len(self._labels)
        self.rules = Rules(conditions, self._labels, self.places)
        self._strict = strict_structures(find.pattern)
        self.ends_remembered: list[int] = []  # by register that is no label: where its structures end
        self._memory: dict[str, int] = {}
        for name in self._strict:
            self._memory[name] = self._remember(name)
        self._emit(find.pattern)
        self.final_rule = self.rules.add(find.condition) if find.condition is not None else NONE
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
        return bool(self.rules.written)

    @property
    def target(self) -> int:
        """The register that has the place of the target."""
        return self._labels.get(TARGET, NONE)

    def layout(self) -> Layout | None:
        """Where everything is, for steps that come one after the other.

        None if a label is set twice, or asked for before it is set: then it is not at one place.
        """
        labels: dict[int, int] = {}
        alike, rules = [], []
        place = 0
        for kind, _, _, rule, *registers in self.steps:
            if kind not in (Step.TOKEN, Step.AHEAD):
                continue
            if rule != NONE:
                if not self.rules.labels_of(rule) <= labels.keys():
                    return None
                places = {**labels, HERE_PLACE: place, MATCH_PLACE: 0, END_PLACE: place}
                if compared := self.rules.alike(rule, places):
                    alike.append(compared)
                else:
                    rules.append((rule, place))
            for register in registers:
                if register in labels:
                    return None
                if register != NONE:
                    labels[register] = place
            place += kind == Step.TOKEN
        final_rule = self.final_rule
        if final_rule != NONE:
            places = {**labels, HERE_PLACE: 0, MATCH_PLACE: 0, END_PLACE: place - 1}
            if compared := self.rules.alike(final_rule, places):
                alike.append(compared)
                final_rule = NONE
        return Layout(place, labels.get(self.target), list(labels.items()), alike, rules, final_rule)

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
            return asked._replace(rule=self.rules.add(bound))
        if self.conditions.is_about_types(condition):
            return Asked(types=numbered(self.types, condition))
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
        return numbered(self.places, condition)

    def _structure(self, name: str) -> int:
        self.conditions.structure(name)
        return numbered(self.structures, name)


def _row(kind: Step, *numbers: int) -> tuple[int, ...]:
    return (kind, *numbers, *[NONE] * (WIDTH - 1 - len(numbers)))


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
