"""Matcher for programs with labels: it finds the end of the match that begins at a candidate.

From a candidate on, all ways through a program are followed together, token by token. A way is a step with its
registers: labels, and ends of structures. Ways that become equal are merged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.errors import ThresherError
from thresher.jit import BYTES as NEW_BYTES
from thresher.jit import NUMBER, bare, inner, kernel
from thresher.search.cql.lexer import CqlError
from thresher.search.encoding import bitset as bits
from thresher.search.encoding.bitpacking import IDS, NEW_STARTS, Bytes, Ids, Starts
from thresher.search.encoding.token_column import COLUMN, bare_column, number_at
from thresher.search.execution.compiler import WIDTH, LabelLayout, Program, ProgramStep
from thresher.search.execution.conditions import overlapping
from thresher.search.execution.kernel_tables import (
    NOWHERE,
    RULE_WIDTH,
    TABLES,
    KernelTables,
    bare_tables,
    holds,
    is_in,
    region_at,
)
from thresher.search.execution.label_constraints import ConstraintOp
from thresher.search.index.segment import Segment

MOST_WAYS = 1 << 14  # ways that are followed together
_TOKEN, _AHEAD, _SPLIT, _JUMP, _BORDER, _OPEN, _CLOSE, _DONE = (int(step) for step in ProgramStep)
_MOST_WORK = 1 << 29  # ways that are followed from a batch of candidates, which takes some seconds
_TOO_MUCH = -1
_WIDTH = WIDTH
DENSE = 0.2  # from this share of candidates on, the classes of all tokens are computed beforehand

_MEMORY = types.UniTuple(NEW_STARTS, 11)


@inner
def _add(step, way, source, ways, registers, count, heads, stamps, stamp, following, width, room):
    """Add a step with the registers of a way, unless it is there already; return the number of ways."""
    other = heads[step] if stamps[step] == stamp else -1
    first = other
    while other >= 0:
        register = 0
        while register < width and registers[other * width + register] == source[way * width + register]:
            register += 1
        if register == width:
            return count
        other = following[other]
    if count == room:
        return count + 1
    following[count] = first
    heads[step] = count
    stamps[step] = stamp
    ways[count] = step
    for register in range(width):
        registers[count * width + register] = source[way * width + register]
    return count + 1


@kernel(
    NUMBER, IDS, NEW_STARTS, NUMBER, NUMBER, COLUMN, TABLES, NUMBER, NUMBER, NUMBER, NUMBER, _MEMORY, NEW_STARTS,
    NEW_STARTS,
)  # fmt: skip
def _ends(
    candidates: Ids,
    limits: Starts,
    size: int,
    width: int,
    whole_column: Any,
    whole_tables: Any,
    room: int,
    final_rule: int,
    wants_latest: int,
    target: int,
    memory: Any,
    ends: Starts,
    targets: Starts,
) -> int:
    """Set the ends of matches that begin at candidates; return how many candidates had more ways than fit."""
    column, tables = bare_column(whole_column), bare_tables(whole_tables)
    steps, flags, types_count = tables[0], tables[1], tables[2]
    ways, next_ways = bare(memory[0]), bare(memory[1])
    kept, next_kept = bare(memory[2]), bare(memory[3])  # the row after the last way is spare
    following, next_following = bare(memory[4]), bare(memory[5])
    heads, next_heads = bare(memory[6]), bare(memory[7])
    stamps, next_stamps = bare(memory[8]), bare(memory[9])
    stack = bare(memory[10])
    spare = room * width
    stamp, crowded, left = 0, 0, _MOST_WORK
    for number in range(len(candidates)):
        match, limit = np.int64(candidates[number]), limits[number]
        ends[number] = targets[number] = NOWHERE
        position = match
        stamp += 1
        for register in range(width):
            kept[spare + register] = NOWHERE
        count = _add(0, room, kept, ways, kept, 0, heads, stamps, stamp, following, width, room)
        is_done = False
        while count > 0 and position <= limit and not is_done:
            next_count, way = 0, 0
            type_here = np.int64(-1)  # the type of the token, read when it is first needed
            left -= count
            if left < 0:
                return _TOO_MUCH
            while way < count:
                at = ways[way] * _WIDTH
                onward, source = -1, way  # the step to continue with at this position, and the way to copy
                kind, first, second, third = steps[at], steps[at + 1], steps[at + 2], steps[at + 3]
                if kind == _SPLIT:
                    count = _add(
                        first, way, kept, ways, kept, count, heads, stamps, stamp, following, width, room
                    )
                    onward = second
                elif kind == _JUMP:
                    onward = first
                elif kind == _TOKEN or kind == _AHEAD:
                    passes = position < limit if kind == _TOKEN else position < size
                    if passes and first >= 0:
                        if type_here < 0:
                            type_here = number_at(column, position)
                        passes = flags[first * types_count + type_here] != 0
                    if passes and second >= 0:
                        passes = is_in(tables, second, position) != 0
                    if passes and third >= 0:
                        passes = holds(
                            third, tables, column, stack, kept, way * width, position, match, position
                        )
                    if passes and kind == _AHEAD:
                        onward = ways[way] + 1
                    elif passes:
                        label, mark = steps[at + 4], steps[at + 5]
                        if label >= 0 or mark >= 0:
                            for register in range(width):
                                kept[spare + register] = kept[way * width + register]
                            if label >= 0:
                                kept[spare + label] = position
                            if mark >= 0:
                                kept[spare + mark] = position
                            source = room
                        next_count = _add(
                            ways[way] + 1, source, kept, next_ways, next_kept, next_count,
                            next_heads, next_stamps, stamp + 1, next_following, width, room,
                        )  # fmt: skip
                elif kind == _DONE:
                    if position > match and (
                        final_rule < 0
                        or holds(
                            final_rule, tables, column, stack, kept, way * width, match, match, position - 1
                        )
                    ):
                        ends[number] = position - 1
                        if target >= 0:
                            targets[number] = kept[way * width + target]
                        is_done = wants_latest == 0
                        if is_done:
                            break
                elif is_in(tables, first, position):
                    if kind == _OPEN:
                        for register in range(width):
                            kept[spare + register] = kept[way * width + register]
                        kept[spare + second] = tables[10][region_at(tables, third, position)]
                        onward, source = ways[way] + 1, room
                    elif kind == _BORDER or (
                        kept[way * width + second] == NOWHERE or kept[way * width + second] == position
                    ):
                        onward = ways[way] + 1
                if onward >= 0:
                    count = _add(
                        onward, source, kept, ways, kept, count, heads, stamps, stamp, following, width, room
                    )
                if count > room or next_count > room:
                    crowded += 1
                    count = next_count = 0
                way += 1
            ways, next_ways = next_ways, ways
            kept, next_kept = next_kept, kept
            following, next_following = next_following, following
            heads, next_heads = next_heads, heads
            stamps, next_stamps = next_stamps, stamps
            count = next_count
            stamp += 1
            position += 1
        stamp += 1
    return crowded


@kernel(
    NUMBER, IDS, NUMBER, COLUMN, TABLES, NEW_STARTS, NEW_STARTS, NUMBER, NEW_STARTS, NEW_STARTS, NEW_BYTES
)  # fmt: skip
def _keeps(
    candidates: Ids,
    length: int,
    whole_column: Any,
    whole_tables: Any,
    labels: Starts,
    rules: Starts,
    final_rule: int,
    places: Starts,
    stack: Starts,
    kept: Bytes,
) -> int:
    """Set which candidates meet all constraints, if labels and constraints are at fixed distances."""
    column, tables = bare_column(whole_column), bare_tables(whole_tables)
    where, numbers = bare(places), bare(stack)
    for number in range(len(candidates)):
        match = np.int64(candidates[number])
        for label in range(0, len(labels), 2):
            where[labels[label]] = match + labels[label + 1]
        keeps = True
        for rule in range(0, len(rules), 2):
            here = match + rules[rule + 1]
            if keeps:
                keeps = holds(rules[rule], tables, column, numbers, where, 0, here, match, here)
        if keeps and final_rule >= 0:
            keeps = holds(final_rule, tables, column, numbers, where, 0, match, match, match + length - 1)
        kept[number] = keeps
    return 0


class SearchStopped(ThresherError):
    """A search was stopped before its end."""


class MatchEnds(NamedTuple):
    """The last positions of the candidates' matches, -1 for no match; and their targets."""

    ends: Starts
    targets: Starts


class MatchPlaces(NamedTuple):
    """Bit sets for the conditions on positions, and the borders, of a program."""

    start: int
    bits: NDArray[np.uint64]  # by condition


def places_of(program: Program, start: int, end: int) -> MatchPlaces:
    """Return the bit sets for `[start, end]`: a tag may stand at `end`. `start` begins a block."""
    reach = end - start + 1
    found = np.zeros((len(program.places), len(bits.empty(reach))), np.uint64)
    for row, asked in enumerate(program.places):
        there = program.positions(asked, start, start + reach)
        found[row, : len(there)] = there
    return MatchPlaces(start, found)


class Matcher:
    """A program with its tables for a range of positions."""

    def __init__(self, program: Program, segment: Segment, places: MatchPlaces, end: int) -> None:
        """Prepare the tables; `end` is the first position that no match can reach."""
        self._program, self._segment, self._end = program, segment, end
        # No constraint needs a higher stack than it has instructions.
        self._stack_height = max(map(len, program.rules.programs), default=0) + 1
        flags = np.zeros((len(program.types), segment.types), np.uint8)
        for row, condition in enumerate(program.types):
            flags[row] = program.conditions.types(condition)
        self._tables = KernelTables(
            np.array(program.steps, np.int64).ravel(),
            flags.ravel(),
            segment.types,
            places.start,
            places.bits.ravel(),
            places.bits.shape[1],
            self._rules(),
            np.cumsum([0, *map(len, program.rules.programs)]).astype(np.int64),
            np.concatenate([np.zeros(0, np.int64), *program.rules.type_numbers]),
            *self._regions(places.start, end),
        )

    def _rules(self) -> Starts:
        """Return the instructions of all constraints; their structures are numbered after the ones of tags."""
        programs = self._program.rules.programs
        rows = np.array([row for program in programs for row in program], np.int64).reshape(-1, RULE_WIDTH)
        rows[rows[:, 0] == ConstraintOp.OF_REGION, 2] += len(self._program.structures)
        return rows.ravel()

    def _regions(self, start: int, end: int) -> tuple[Starts, Starts, Starts, Starts]:
        """Return the structures that tags and constraints read, in the range of positions."""
        nothing = np.zeros(0, np.int64)
        firsts, nexts, numbers = [nothing], [nothing], [nothing]
        for name, values in [
            *((name, None) for name in self._program.structures),
            *self._program.rules.region_numbers,
        ]:
            structure = self._segment.structures[name]
            some = overlapping(structure, start, end)
            firsts.append(structure.firsts[some].astype(np.int64))
            nexts.append(structure.nexts[some].astype(np.int64))
            numbers.append(np.zeros(len(firsts[-1]), np.int64) if values is None else values[some])
        bounds = np.cumsum([0, *(len(part) for part in firsts[1:])]).astype(np.int64)
        return np.concatenate(firsts), np.concatenate(nexts), np.concatenate(numbers), bounds

    def ends(self, candidates: Ids, limits: Starts, *, latest: bool) -> MatchEnds:
        """Return the earliest, or the latest, end of a match for each candidate; it must lie before its limit."""
        program = self._program
        ends, targets = np.empty(len(candidates), np.int64), np.empty(len(candidates), np.int64)
        room = MOST_WAYS if program.registers else len(program.steps) + 1
        sizes = [room] * 2 + [(room + 1) * program.registers] * 2 + [room] * 2 + [len(program.steps)] * 4
        memory = tuple(np.zeros(max(size, 1), np.int64) for size in [*sizes, self._stack_height])
        crowded = _ends(
            candidates, limits, self._segment.size, program.registers,
            tuple(self._segment.column), tuple(self._tables), room, program.final_rule, int(latest),
            program.target, memory, ends, targets,
        )  # fmt: skip
        if crowded == _TOO_MUCH:
            raise SearchStopped(
                "the pattern can match in too many ways to try them all; use fewer gaps, or `within s`"
            )
        if crowded:
            raise CqlError(
                f"the pattern can match in more than {MOST_WAYS:,} ways at once; use fewer labels, or `within s`"
            )
        return MatchEnds(ends, targets)

    def keeps(self, candidates: Ids, layout: LabelLayout) -> NDArray[np.bool_]:
        """Return a mask of the candidates that meet the constraints of a program of fixed length."""
        kept = np.empty(len(candidates), np.uint8)
        _keeps(
            candidates, layout.length, tuple(self._segment.column), tuple(self._tables), _flat(layout.labels),
            _flat(layout.rules), layout.final_rule, np.full(self._program.registers + 1, NOWHERE, np.int64),
            np.zeros(self._stack_height, np.int64), kept,
        )  # fmt: skip
        return kept.view(np.bool_)


def _flat(pairs: list[tuple[int, int]]) -> Starts:
    return np.array(pairs, np.int64).ravel()
