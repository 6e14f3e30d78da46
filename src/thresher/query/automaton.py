"""A program without labels as an automaton: one look into a table for each token, however many ways there are.

What a program can ask of a position is its *sign*: the class of the token's type, and which borders and conditions
hold there. A state is a set of ways that are followed at once. Where the next state is not known yet, it is worked
out once and written into the table; few of all states and signs ever come up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.query import bits
from thresher.query.columns import COLUMN, bare_column, number_at, translated
from thresher.query.match import Places
from thresher.query.packing import IDS, NEW_STARTS, NEW_WORDS, ONE, Bytes, Ids, Starts, Words
from thresher.query.program import NONE, Program, Step
from thresher.query.tables import NOWHERE
from thresher.read.scan.kernel import BYTES as NEW_BYTES
from thresher.read.scan.kernel import NUMBER, bare, kernel

MOST_SIGNS = 1 << 13
MOST_STATES = 1 << 11
NARROW = 1 << 8  # classes that a byte can tell apart
_DEAD, _START = 0, 1
_UNKNOWN = -1

# what a way knows of a structure that it has opened: nothing, that it just began, that it is in it or has left it
_NOT_OPENED, _JUST_OPENED, _INSIDE, _LEFT = range(4)

_CLASSES = types.Array(types.uint16, 1, "C")

Way = tuple[int, tuple[int, ...]]


class Automaton:
    """A program made into a table, as far as it was needed."""

    @staticmethod
    def of(program: Program) -> Automaton | None:
        """The automaton of a program; None if it has labels or asks too much."""
        signs = (1 << len(program.types)) + 1 << len(program.places)
        if program.has_rules or program.target != NONE or signs > MOST_SIGNS:
            return None
        return Automaton(program)

    def __init__(self, program: Program) -> None:
        self._program = program
        self._classes = _classes(program)
        self._behind_all = 1 << len(program.types)  # the class of no token, which comes after the last one
        self._shift = len(program.places)
        self._ways: list[frozenset[Way]] = [frozenset(), frozenset({(0, (_NOT_OPENED,) * program.registers)})]
        self._states = {ways: number for number, ways in enumerate(self._ways)}
        self._table = np.full((16, self._behind_all + 1 << self._shift), _UNKNOWN, np.int32)
        self._table[_DEAD] = 0

    @property
    def is_too_large(self) -> bool:
        return len(self._ways) > MOST_STATES

    def classes_at(self, start: int, end: int) -> Bytes:
        """The class of every token from a position to before another; nothing if there are too many classes."""
        conditions = self._program.conditions
        if self._behind_all > NARROW:
            return np.zeros(0, np.uint8)
        if not all(map(conditions.has_planes, self._program.types)):
            return translated(conditions.segment.column, self._classes.astype(np.uint8), start, end)
        sets = [conditions.positions(condition, start, end) for condition in self._program.types]
        return bits.numbers(sets, end - start)

    def ends(
        self,
        candidates: Ids,
        limits: Starts,
        places: Places,
        classes_at: Bytes,
        *,
        latest: bool,
    ) -> Starts | None:
        """Where the matches end that begin at some positions; None if there are too many states to tell.

        `classes_at` has the classes of all tokens, where it is worth looking at them beforehand.
        """
        segment = self._program.conditions.segment
        ends = np.empty(len(candidates), np.int64)
        asked = np.zeros(2, np.int64)
        done = 0
        while True:
            done = _run(
                candidates, limits, done, segment.size, tuple(segment.column), self._classes, classes_at,
                self._shift, places.start, places.bits.ravel(), places.bits.shape[1], self._table.ravel(),
                self._table.shape[1], int(latest), asked, ends,
            )  # fmt: skip
            if done == len(candidates):
                return ends
            self._learn(int(asked[0]), int(asked[1]))
            if self.is_too_large:
                return None

    def _learn(self, state: int, sign: int) -> None:
        """Work out what comes next in a state at a sign."""
        following, is_done = self._after(self._ways[state], sign)
        if following not in self._states:
            self._states[following] = len(self._ways)
            self._ways.append(following)
        if len(self._ways) > len(self._table):
            self._table = np.concatenate([self._table, np.full_like(self._table, _UNKNOWN)])
        self._table[state, sign] = self._states[following] << 1 | is_done

    def _after(self, ways: frozenset[Way], sign: int) -> tuple[frozenset[Way], bool]:
        """The ways that go on behind a token with a sign, and whether one is done before it."""
        reached, waiting = set(ways), list(ways)
        following: set[Way] = set()
        is_done = False
        while waiting:
            step, known = waiting.pop()
            what = self._program.steps[step][0]
            is_done |= what == Step.DONE
            if what == Step.TOKEN and self._passes(step, sign):
                following.add((step + 1, self._behind(known, sign)))
            for way in self._onward(step, known, sign):
                if way not in reached:
                    reached.add(way)
                    waiting.append(way)
        return frozenset(following), is_done

    def _passes(self, step: int, sign: int) -> bool:
        """Whether the token with a sign is what a step asks for."""
        _, types, place = self._program.steps[step][:3]
        kind = sign >> self._shift
        if kind == self._behind_all:
            return False
        return (types < 0 or bool(kind >> types & 1)) and (place < 0 or bool(sign >> place & 1))

    def _onward(self, step: int, known: tuple[int, ...], sign: int) -> list[Way]:
        """Where a way goes on without going over a token."""
        what, first, second = self._program.steps[step][:3]
        if what == Step.SPLIT:
            return [(first, known), (second, known)]
        if what == Step.JUMP:
            return [(first, known)]
        if what == Step.AHEAD:
            return [(step + 1, known)] if self._passes(step, sign) else []
        if what in (Step.TOKEN, Step.DONE) or not sign >> first & 1:
            return []
        if what == Step.OPEN:
            return [(step + 1, (*known[:second], _JUST_OPENED, *known[second + 1 :]))]
        if what == Step.CLOSE and known[second] not in (_NOT_OPENED, _INSIDE):
            return []
        return [(step + 1, known)]

    def _behind(self, known: tuple[int, ...], sign: int) -> tuple[int, ...]:
        """What a way knows of structures once it has gone over a token."""
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
    """The class of every type: a bit for each condition that it passes."""
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
    asked: Starts,
    ends: Starts,
) -> int:
    """Where matches end that begin at candidates, from one of them on, until the table cannot tell what is next."""
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
                asked[0], asked[1] = state, sign
                return number
            if following & 1 and position > match:
                end = position - 1
                if wants_latest == 0:
                    break
            state = following >> 1
            position += 1
        ends[number] = end
    return len(candidates)
