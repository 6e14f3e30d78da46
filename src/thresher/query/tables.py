"""What a program asks, in tables that machine code can ask: types, positions, rules about labels, structures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from thresher.query.columns import number_at
from thresher.query.kinds import UNDEFINED
from thresher.query.packing import (
    NEW_STARTS,
    NEW_WORDS,
    ONE,
    Bytes,
    Starts,
    Words,
)
from thresher.query.rules import Rule
from thresher.read.scan.kernel import BYTES as NEW_BYTES
from thresher.read.scan.kernel import NUMBER, bare, inlined, inner

NOWHERE = -1  # a register that is not set
RULE_WIDTH = 3  # numbers of a step of a rule
_UNDEFINED = UNDEFINED
(
    _NUMBER, _OF_TYPE, _OF_REGION, _PLACE, _IS_AMONG, _MINUS, _DISTANCE, _EQUAL, _UNEQUAL, _LESS, _MORE, _AT_MOST,
    _AT_LEAST, _BOTH, _EITHER, _NOT, _IS_SET,
) = (int(rule) for rule in Rule)  # fmt: skip


class Tables(NamedTuple):
    """What a program asks, for positions from one on; tables of several rows are written row by row."""

    steps: Starts
    flags: Bytes  # by condition and type
    kinds: int  # how many types there are
    start: int
    places: Words  # by condition: bits of positions
    place_words: int  # of a condition
    rules: Starts  # all of them, one after the other
    rule_bounds: Starts
    type_numbers: Starts
    firsts: Starts  # of all structures that numbers are of, or whose ends are remembered …
    nexts: Starts
    numbers: Starts
    bounds: Starts  # … and where each kind of them begins


TABLES = types.Tuple(
    (
        NEW_STARTS, NEW_BYTES, NUMBER, NUMBER, NEW_WORDS, NUMBER, NEW_STARTS, NEW_STARTS, NEW_STARTS, NEW_STARTS,
        NEW_STARTS, NEW_STARTS, NEW_STARTS,
    )
)  # fmt: skip


@inlined
def bare_tables(tables):
    return (
        bare(tables[0]), bare(tables[1]), tables[2], tables[3], bare(tables[4]), tables[5], bare(tables[6]),
        bare(tables[7]), bare(tables[8]), bare(tables[9]), bare(tables[10]), bare(tables[11]), bare(tables[12]),
    )  # fmt: skip


@inner
def is_in(tables, row, position):
    offset = position - tables[3]
    return tables[4][row * tables[5] + (offset >> 6)] >> np.uint64(offset & 63) & ONE


@inner
def region_at(tables, kind, position):
    """The number of the last structure of a kind that begins at a position or before."""
    firsts, bounds = tables[9], tables[12]
    first, last = bounds[kind], bounds[kind + 1]
    while first < last:
        middle = (first + last) >> 1
        if firsts[middle] <= position:
            first = middle + 1
        else:
            last = middle
    return first - 1


@inner
def _number_at(tables, column, kind, second, position):
    """What a rule puts on the stack of a position."""
    if position == NOWHERE:
        return np.int64(_UNDEFINED)
    if kind == _OF_TYPE:
        return tables[8][second * tables[2] + number_at(column, position)]
    if kind == _PLACE:
        return np.int64(position)
    if kind == _IS_AMONG:
        return np.int64(is_in(tables, second, position))
    region = region_at(tables, second, position)
    if region >= tables[12][second] and position < tables[10][region]:
        return tables[11][region]
    return np.int64(_UNDEFINED)


@inner
def _joined(kind, left, right):
    """What a rule makes of two numbers."""
    if kind == _BOTH:
        return np.int64(left != 0 and right != 0)
    if kind == _EITHER:
        return np.int64(left != 0 or right != 0)
    if left == _UNDEFINED or right == _UNDEFINED:
        return np.int64(_UNDEFINED if kind <= _DISTANCE else 0)
    if kind == _MINUS:
        return np.int64(left - right)
    if kind == _DISTANCE:
        return np.int64(abs(left - right))
    if kind == _EQUAL:
        return np.int64(left == right)
    if kind == _UNEQUAL:
        return np.int64(left != right)
    if kind == _LESS:
        return np.int64(left < right)
    if kind == _MORE:
        return np.int64(left > right)
    if kind == _AT_MOST:
        return np.int64(left <= right)
    return np.int64(left >= right)


@inner
def holds(rule, tables, column, stack, registers, way, here, match, end):
    """Whether a rule holds; `way` is where the registers of a way begin."""
    rules, bounds = tables[6], tables[7]
    height = 0
    for number in range(bounds[rule], bounds[rule + 1]):
        at = number * RULE_WIDTH
        kind, first, second = rules[at], rules[at + 1], rules[at + 2]
        if kind == _NUMBER:
            stack[height] = first
            height += 1
        elif kind <= _IS_AMONG or kind == _IS_SET:
            position = end
            if first == -1:
                position = here
            elif first == -2:
                position = match
            elif first >= 0:
                position = registers[way + first]
            if kind == _IS_SET:
                stack[height] = np.int64(position != NOWHERE)
            else:
                stack[height] = _number_at(tables, column, kind, second, position)
            height += 1
        elif kind == _NOT:
            stack[height - 1] = np.int64(stack[height - 1] == 0)
        else:
            height -= 1
            stack[height - 1] = _joined(kind, stack[height - 1], stack[height])
    return stack[0] != 0 and stack[0] != _UNDEFINED
