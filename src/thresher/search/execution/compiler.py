"""Compiler from a pattern to a program: the steps of a nondeterministic automaton.

Steps refer to their conditions by number: masks over types, bit sets over positions, and constraints on labels.
The matching kernels read them from tables.
"""

from __future__ import annotations

from collections.abc import Container
from enum import IntEnum
from typing import NamedTuple

from thresher.search.cql import ast
from thresher.search.cql.ast_tools import bare_names, comparisons_in, labels_in, mentions
from thresher.search.cql.lexer import CqlError
from thresher.search.encoding.bitpacking import Words
from thresher.search.encoding.token_column import EqualTokens
from thresher.search.execution.conditions import Conditions
from thresher.search.execution.label_constraints import (
    END_PLACE,
    HERE_PLACE,
    MATCH,
    MATCH_PLACE,
    MATCHEND,
    LabelConstraints,
    numbered,
)

LONGEST_PROGRAM = 20_000  # steps
TARGET = "target"
WIDTH = 6  # numbers of a step
NONE = -1  # in place of the number of a condition or register


class ProgramStep(IntEnum):
    """An instruction of a program."""

    TOKEN = 0  # consume a token that passes
    AHEAD = 1  # continue if the next token passes
    SPLIT = 2  # continue at two steps
    JUMP = 3
    BORDER = 4  # continue if a structure begins or ends here
    OPEN = 5  # continue if a structure begins here, and remember its end
    CLOSE = 6  # continue at the remembered end, or at any end if none is remembered
    DONE = 7


class CompiledConditions(NamedTuple):
    """The conditions on a token, as numbers in the tables of a program."""

    types: int = NONE
    places: int = NONE
    rule: int = NONE


class LabelLayout(NamedTuple):
    """The distances of labels and constraints from the beginning of a match, for a pattern of fixed length."""

    length: int
    target: int | None
    labels: list[tuple[int, int]]  # registers, with their distances
    equal_tokens: list[EqualTokens]  # constraints that only compare two tokens
    rules: list[tuple[int, int]]  # other constraints of tokens, with their distances
    final_rule: int

    @property
    def has_rules(self) -> bool:
        """True if a constraint does more than compare two tokens."""
        return bool(self.rules) or self.final_rule != NONE


class Program:
    """The steps of a pattern in one segment, and the conditions to which they refer."""

    def __init__(self, conditions: Conditions, find: ast.FindQuery) -> None:
        self.conditions = conditions
        self.steps: list[tuple[int, ...]] = []
        # Numbers of the conditions on types, of the conditions and tags at positions, and of the structures whose
        # ends are remembered.
        self.types: dict[ast.Condition, int] = {}
        self.places: dict[ast.Condition | ast.StructureTag, int] = {}
        self.structures: dict[str, int] = {}
        used = labels_in(find.condition) | _labels_of_tokens(find.pattern)
        used |= _bare_labels(find.condition, find.pattern)
        self._labels = {label: number for number, label in enumerate(_set_labels(find.pattern, used))}
        for label in used - self._labels.keys() - {MATCH, MATCHEND}:
            raise CqlError(f"no token has the label {label}; write {label}:[…] in the pattern")
        self.registers = len(self._labels)
        self.rules = LabelConstraints(conditions, self._labels, self.places)
        self._strict = strict_structures(find.pattern)
        # For each register that is no label, the number of the tag that closes its structure.
        self.ends_remembered: list[int] = []
        self._memory: dict[str, int] = {}
        for name in self._strict:
            self._memory[name] = self._remember(name)
        self._emit(find.pattern)
        self.final_rule = self.rules.add(find.condition) if find.condition is not None else NONE
        self._step(ProgramStep.DONE)

    @property
    def labels(self) -> Container[str]:
        """Labels that conditions may mention."""
        return self._labels

    @property
    def comparisons(self) -> list[ast.Compare]:
        """Comparisons in the conditions on types."""
        return [one for condition in self.types for one in comparisons_in(condition)]

    @property
    def has_rules(self) -> bool:
        """True if the program has constraints on labels."""
        return bool(self.rules.programs)

    @property
    def target(self) -> int:
        """Register of the target, or NONE."""
        return self._labels.get(TARGET, NONE)

    def layout(self) -> LabelLayout | None:
        """Return the layout of a program whose steps follow each other without branches.

        The result is None if a label is set twice, or read before it is set: then its distance is not fixed.
        """
        labels: dict[int, int] = {}
        equal_tokens, rules = [], []
        offset = 0
        for kind, _, _, rule, *registers in self.steps:
            if kind not in (ProgramStep.TOKEN, ProgramStep.AHEAD):
                continue
            if rule != NONE:
                if not self.rules.labels_of(rule) <= labels.keys():
                    return None
                offsets = {**labels, HERE_PLACE: offset, MATCH_PLACE: 0, END_PLACE: offset}
                if compared := self.rules.equal_tokens(rule, offsets):
                    equal_tokens.append(compared)
                else:
                    rules.append((rule, offset))
            for register in registers:
                if register in labels:
                    return None
                if register != NONE:
                    labels[register] = offset
            offset += kind == ProgramStep.TOKEN
        final_rule = self.final_rule
        if final_rule != NONE:
            offsets = {**labels, HERE_PLACE: 0, MATCH_PLACE: 0, END_PLACE: offset - 1}
            if compared := self.rules.equal_tokens(final_rule, offsets):
                equal_tokens.append(compared)
                final_rule = NONE
        return LabelLayout(
            offset, labels.get(self.target), list(labels.items()), equal_tokens, rules, final_rule
        )

    def _remember(self, structure: str) -> int:
        register = self.registers
        self.registers += 1
        self.ends_remembered.append(self._place(ast.StructureTag(structure, closes=True)))
        return register

    def positions(self, asked: ast.Condition | ast.StructureTag, start: int, end: int) -> Words:
        """Return the positions for which a condition holds, or that follow a tag."""
        if isinstance(asked, ast.StructureTag):
            return self.conditions.borders(asked, start, end)
        return self.conditions.positions(asked, start, min(end, self.conditions.segment.size))

    # steps

    def _step(self, kind: ProgramStep, *numbers: int) -> int:
        if len(self.steps) >= LONGEST_PROGRAM:
            raise CqlError(f"the pattern is too long: it has more than {LONGEST_PROGRAM:,} steps")
        self.steps.append(_row(kind, *numbers))
        return len(self.steps) - 1

    def _emit(self, pattern: ast.Pattern) -> None:
        match pattern:
            case ast.TokenPattern(condition, label, is_target):
                target = self._labels[TARGET] if is_target else NONE
                self._step(ProgramStep.TOKEN, *self._asked(condition), self._labels.get(label, NONE), target)
            case ast.LookAhead(condition):
                self._step(ProgramStep.AHEAD, *self._asked(condition))
            case ast.StructureTag(structure, closes):
                place = self._place(pattern)
                if structure not in self._memory:
                    self._step(ProgramStep.BORDER, place)
                elif closes:
                    self._step(ProgramStep.CLOSE, place, self._memory[structure])
                else:
                    self._step(ProgramStep.OPEN, place, self._memory[structure], self._structure(structure))
            case ast.Region(structure, tests):
                register = self._remember(structure)
                opening = self._place(ast.StructureTag(structure, False, tests))
                self._step(ProgramStep.OPEN, opening, register, self._structure(structure))
                self._emit(ast.Repeat(ast.TokenPattern(), 1))
                self._step(ProgramStep.CLOSE, self._place(ast.StructureTag(structure, True)), register)
            case ast.Sequence(parts):
                for part in parts:
                    self._emit(part)
            case ast.Alternation(parts):
                self._emit_choice(parts)
            case ast.Repeat(part, least, most):
                self._emit_repeat(part, least, most)

    def _emit_choice(self, parts: tuple[ast.Pattern, ...]) -> None:
        jumps = []
        for part in parts[:-1]:
            split = self._step(ProgramStep.SPLIT)
            self._emit(part)
            jumps.append(self._step(ProgramStep.JUMP))
            self.steps[split] = _row(ProgramStep.SPLIT, split + 1, len(self.steps))
        self._emit(parts[-1])
        for jump in jumps:
            self.steps[jump] = _row(ProgramStep.JUMP, len(self.steps))

    def _emit_repeat(self, part: ast.Pattern, least: int, most: int | None) -> None:
        for _ in range(least):
            self._emit(part)
        if most is None:
            split = self._step(ProgramStep.SPLIT)
            self._emit(part)
            self._step(ProgramStep.JUMP, split)
            self.steps[split] = _row(ProgramStep.SPLIT, split + 1, len(self.steps))
            return
        splits = []
        for _ in range(most - least):
            splits.append(self._step(ProgramStep.SPLIT))
            self._emit(part)
        for split in splits:
            self.steps[split] = _row(ProgramStep.SPLIT, split + 1, len(self.steps))

    # tables

    def _asked(self, condition: ast.Condition | None) -> CompiledConditions:
        if condition is None:
            return CompiledConditions()
        if self._has_labels(condition):
            free, bound = self._divided(condition)
            asked = self._asked(free)
            return asked._replace(rule=self.rules.add(bound))
        if self.conditions.is_about_types(condition):
            return CompiledConditions(types=numbered(self.types, condition))
        return CompiledConditions(places=self._place(condition))

    def _divided(self, condition: ast.Condition) -> tuple[ast.Condition | None, ast.Condition]:
        """Divide a condition into one without labels and one with labels; both must hold."""
        if not isinstance(condition, ast.AndCondition):
            return None, condition
        free = tuple(part for part in condition.conditions if not self._has_labels(part))
        bound = tuple(part for part in condition.conditions if self._has_labels(part))
        return (ast.AndCondition(free) if free else None), ast.AndCondition(bound)

    def _has_labels(self, condition: ast.Condition) -> bool:
        return mentions(condition, self._labels)

    def _place(self, condition: ast.Condition | ast.StructureTag) -> int:
        return numbered(self.places, condition)

    def _structure(self, name: str) -> int:
        self.conditions.structure(name)
        return numbered(self.structures, name)


def _row(kind: ProgramStep, *numbers: int) -> tuple[int, ...]:
    return (kind, *numbers, *[NONE] * (WIDTH - 1 - len(numbers)))


def parts_of(pattern: ast.Pattern) -> list[ast.Pattern]:
    """Return a pattern and all patterns inside it."""
    match pattern:
        case ast.Sequence(parts) | ast.Alternation(parts):
            return [pattern, *(inner for part in parts for inner in parts_of(part))]
        case ast.Repeat(part):
            return [pattern, *parts_of(part)]
    return [pattern]


def strict_structures(pattern: ast.Pattern) -> list[str]:
    """Return the structures with both an opening and a closing tag, which must belong to the same structure."""
    tags = [part for part in parts_of(pattern) if isinstance(part, ast.StructureTag)]
    opened = {tag.structure for tag in tags if not tag.closes}
    return sorted(opened & {tag.structure for tag in tags if tag.closes})


def enclosing_structure(pattern: ast.Pattern) -> str:
    """Return the structure whose tags begin and end a pattern, so that a match lies in one of them, or ""."""
    if not isinstance(pattern, ast.Sequence):
        return ""
    first, last = pattern.parts[0], pattern.parts[-1]
    if (
        not isinstance(first, ast.StructureTag)
        or not isinstance(last, ast.StructureTag)
        or first.closes
        or not last.closes
    ):
        return ""
    tags = [part for part in parts_of(pattern) if isinstance(part, ast.StructureTag)]
    same = [tag for tag in tags if tag.structure == first.structure]
    return first.structure if first.structure == last.structure and len(same) == 2 else ""


def _set_labels(pattern: ast.Pattern, used: set[str]) -> list[str]:
    """Return the labels that a token sets and a condition reads, and the target if there is one."""
    tokens = [part for part in parts_of(pattern) if isinstance(part, ast.TokenPattern)]
    labels = {token.label for token in tokens if token.label in used}
    return sorted(labels | ({TARGET} if any(token.is_target for token in tokens) else set()))


def _labels_of_tokens(pattern: ast.Pattern) -> set[str]:
    found: set[str] = set()
    for part in parts_of(pattern):
        if isinstance(part, ast.TokenPattern | ast.LookAhead):
            found |= labels_in(part.condition)
    return found


def _bare_labels(condition: ast.Condition | None, pattern: ast.Pattern) -> set[str]:
    """Return labels that are mentioned without a dot, as in distance(a, b)."""
    tokens = [part for part in parts_of(pattern) if isinstance(part, ast.TokenPattern | ast.LookAhead)]
    named = set().union(bare_names(condition), *(bare_names(token.condition) for token in tokens))
    return named & {token.label for token in tokens if isinstance(token, ast.TokenPattern)}
