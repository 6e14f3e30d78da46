"""Lazy DFA: a program without labels as a deterministic automaton with one table lookup per token.

The *sign* of a position is all that a program can read there: the class of the token's type, and the borders and
conditions that hold. A state is a set of ways through the program that are followed together. A transition is
computed when it is first needed and stored in the table; few of all possible states and signs occur.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.jit import BYTES as NEW_BYTES
from thresher.jit import NUMBER, bare, kernel
from thresher.search.encoding import bitset
from thresher.search.encoding.bitpacking import IDS, NEW_STARTS, NEW_WORDS, ONE, Bytes, Ids, Starts, Words
from thresher.search.encoding.token_column import COLUMN, bare_column, number_at, translated
from thresher.search.execution.compiler import NONE, Program, ProgramStep
from thresher.search.execution.kernel_tables import NOWHERE
from thresher.search.execution.matcher import MatchPlaces

MOST_SIGNS = 1 << 13
MOST_STATES = 1 << 11
BYTE_CLASSES = 1 << 8  # classes that fit into a byte
_DEAD, _START = 0, 1
_UNKNOWN = -1

# States of a structure with an opening tag, as remembered by a way.
_NOT_OPENED, _JUST_OPENED, _INSIDE, _LEFT = range(4)

_CLASSES = types.Array(types.uint16, 1, "C")

Way = tuple[int, tuple[int, ...]]


class LazyDfa:
    """The automaton of a program, with the transitions that were needed so far."""

    @staticmethod
    def of(program: Program) -> LazyDfa | None:
        """Return the automaton of a program; None if the program has labels or too many conditions."""
        signs = (1 << len(program.types)) + 1 << len(program.places)
        if program.has_rules or program.target != NONE or signs > MOST_SIGNS:
            return None
        return LazyDfa(program)

    def __init__(self, program: Program) -> None:
        self._program = program
        self._classes = _classes(program)
        self._end_class = 1 << len(program.types)  # the class of the end, after the last token
        self._shift = len(program.places)
        self._ways: list[frozenset[Way]] = [frozenset(), frozenset({(0, (_NOT_OPENED,) * program.registers)})]
        self._states = {ways: number for number, ways in enumerate(self._ways)}
        self._table = np.full((16, self._end_class + 1 << self._shift), _UNKNOWN, np.int32)
        self._table[_DEAD] = 0

    @property
    def is_too_large(self) -> bool:
        """True if there are too many states; the automaton must not be used any more then."""
        return len(self._ways) > MOST_STATES

    def classes_at(self, start: int, end: int) -> Bytes:
        """Return the class of every token in `[start, end)`; an empty array if there are too many classes."""
        conditions = self._program.conditions
        if self._end_class > BYTE_CLASSES:
            return np.zeros(0, np.uint8)
        if not all(map(conditions.has_slices, self._program.types)):
            return translated(conditions.segment.column, self._classes.astype(np.uint8), start, end)
        sets = [conditions.positions(condition, start, end) for condition in self._program.types]
        return bitset.numbers(sets, end - start)

    def ends(
        self,
        candidates: Ids,
        limits: Starts,
        places: MatchPlaces,
        classes_at: Bytes,
        *,
        latest: bool,
    ) -> Starts | None:
        """Return the ends of the matches that begin at candidates; None if there are too many states.

        `classes_at` are the classes of all tokens if they were computed beforehand, or empty.
        """
        segment = self._program.conditions.segment
        ends = np.empty(len(candidates), np.int64)
        missing = np.zeros(2, np.int64)  # state and sign of the transition that must be computed
        done = 0
        while True:
            done = _run(
                candidates, limits, done, segment.size, tuple(segment.column), self._classes, classes_at,
                self._shift, places.start, places.bits.ravel(), places.bits.shape[1], self._table.ravel(),
                self._table.shape[1], int(latest), missing, ends,
            )  # fmt: skip
            if done == len(candidates):
                return ends
            self._add_transition(int(missing[0]), int(missing[1]))
            if self.is_too_large:
                return None

    def _add_transition(self, state: int, sign: int) -> None:
        """Compute the state that follows a state at a sign, and store it in the table."""
        following, is_done = self._after(self._ways[state], sign)
        if following not in self._states:
            self._states[following] = len(self._ways)
            self._ways.append(following)
        if len(self._ways) > len(self._table):
            self._table = np.concatenate([self._table, np.full_like(self._table, _UNKNOWN)])
        self._table[state, sign] = self._states[following] << 1 | is_done

    def _after(self, ways: frozenset[Way], sign: int) -> tuple[frozenset[Way], bool]:
        """Return the ways that continue after a token with a sign, and whether a way is done before it."""
        reached, waiting = set(ways), list(ways)
        following: set[Way] = set()
        is_done = False
        while waiting:
            step, known = waiting.pop()
            kind = self._program.steps[step][0]
            is_done |= kind == ProgramStep.DONE
            if kind == ProgramStep.TOKEN and self._passes(step, sign):
                following.add((step + 1, self._memory_after(known, sign)))
            for way in self._onward(step, known, sign):
                if way not in reached:
                    reached.add(way)
                    waiting.append(way)
        return frozenset(following), is_done

    def _passes(self, step: int, sign: int) -> bool:
        """Return whether the token with a sign meets the conditions of a step."""
        _, types, place = self._program.steps[step][:3]
        token_class = sign >> self._shift
        if token_class == self._end_class:
            return False
        return (types < 0 or bool(token_class >> types & 1)) and (place < 0 or bool(sign >> place & 1))

    def _onward(self, step: int, known: tuple[int, ...], sign: int) -> list[Way]:
        """Return the ways that continue a way without consuming a token."""
        kind, first, second = self._program.steps[step][:3]
        if kind == ProgramStep.SPLIT:
            return [(first, known), (second, known)]
        if kind == ProgramStep.JUMP:
            return [(first, known)]
        if kind == ProgramStep.AHEAD:
            return [(step + 1, known)] if self._passes(step, sign) else []
        if kind in (ProgramStep.TOKEN, ProgramStep.DONE) or not sign >> first & 1:
            return []
        if kind == ProgramStep.OPEN:
            return [(step + 1, (*known[:second], _JUST_OPENED, *known[second + 1 :]))]
        if kind == ProgramStep.CLOSE and known[second] not in (_NOT_OPENED, _INSIDE):
            return []
        return [(step + 1, known)]

    def _memory_after(self, known: tuple[int, ...], sign: int) -> tuple[int, ...]:
        """Return the remembered states of structures after a token was consumed."""
        if not known:
            return known
        after = []
        for one, end in zip(known, self._program.ends_remembered, strict=True):
            if one == _JUST_OPENED:
                after.append(_INSIDE)
            elif one == _INSIDE and sign >> end & 1:
                after.append(_LEFT)
            else:
                after.append(one)
        return tuple(after)


def _classes(program: Program) -> NDArray[np.uint16]:
    """Return the class of every type: a bit for each condition that it meets."""
    codes = np.zeros(program.conditions.segment.types, np.uint16)
    for number, condition in enumerate(program.types):
        codes |= program.conditions.types(condition).astype(np.uint16) << np.uint16(number)
    return codes


@kernel(
    NUMBER, IDS, NEW_STARTS, NUMBER, NUMBER, COLUMN, _CLASSES, NEW_BYTES, NUMBER, NUMBER, NEW_WORDS, NUMBER,
    types.Array(types.int32, 1, "C"), NUMBER, NUMBER, NEW_STARTS, NEW_STARTS,
)  # fmt: skip
def _run(
    candidates: Ids,
    limits: Starts,
    done: int,
    size: int,
    whole_column: Any,
    classes: NDArray[np.uint16],
    classes_at: Bytes,
    shift: int,
    start: int,
    places: Words,
    words: int,
    table: NDArray[np.int32],
    signs: int,
    wants_latest: int,
    missing: Starts,
    ends: Starts,
) -> int:
    """Set the ends of matches from a candidate on until a transition is missing; return the candidate reached."""
    column = bare_column(whole_column)
    end_class = (signs >> shift) - 1
    class_of, following_of, place_bits = bare(classes), bare(table), bare(places)
    known, is_known = bare(classes_at), len(classes_at) > 0
    for number in range(done, len(candidates)):
        match, limit = np.int64(candidates[number]), limits[number]
        state, position = np.int64(_START), match
        end = np.int64(NOWHERE)
        while state != _DEAD and position <= limit:
            offset = position - start
            sign = np.int64(end_class)
            if position < size:
                sign = np.int64(known[offset] if is_known else class_of[number_at(column, position)])
            sign <<= shift
            for row in range(shift):
                here = place_bits[row * words + (offset >> 6)]
                sign |= np.int64(here >> np.uint64(offset & 63) & ONE) << row
            following = np.int64(following_of[state * signs + sign])
            if following < 0:
                missing[0], missing[1] = state, sign
                return number
            if following & 1 and position > match:
                end = position - 1
                if wants_latest == 0:
                    break
            state = following >> 1
            position += 1
        ends[number] = end
    return len(candidates)
