"""Tables from which the matching kernels read the conditions of a program, and the kernels that evaluate them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from thresher.jit import BYTES as NEW_BYTES
from thresher.jit import NUMBER, bare, inlined, inner
from thresher.search.encoding.bitpacking import NEW_STARTS, NEW_WORDS, ONE, Bytes, Starts, Words
from thresher.search.encoding.token_column import number_at
from thresher.search.execution.label_constraints import ConstraintOp
from thresher.search.execution.type_conditions import UNDEFINED

NOWHERE = -1  # value of a register that is not set
RULE_WIDTH = 3  # numbers of an instruction of a constraint
_UNDEFINED = UNDEFINED
(
    _NUMBER, _OF_TYPE, _OF_REGION, _PLACE, _IS_AMONG, _MINUS, _DISTANCE, _EQUAL, _UNEQUAL, _LESS, _MORE, _AT_MOST,
    _AT_LEAST, _BOTH, _EITHER, _NOT, _IS_SET,
) = (int(rule) for rule in ConstraintOp)  # fmt: skip


class KernelTables(NamedTuple):
    """The conditions of a program for positions from `start` on. Tables with several rows are flattened."""

    steps: Starts
    flags: Bytes  # by condition and type
    types: int  # number of types
    start: int
    places: Words  # bit sets of positions, by condition
    place_words: int  # words of each bit set
    rules: Starts  # instructions of all constraints
    rule_bounds: Starts
    type_numbers: Starts
    # Structures that constraints read or whose ends are remembered, name by name: first positions, next positions,
    # numbers, and the place where each name begins.
    firsts: Starts
    nexts: Starts
    numbers: Starts
    bounds: Starts


TABLES = types.Tuple(
    (
        NEW_STARTS, NEW_BYTES, NUMBER, NUMBER, NEW_WORDS, NUMBER, NEW_STARTS, NEW_STARTS, NEW_STARTS, NEW_STARTS,
        NEW_STARTS, NEW_STARTS, NEW_STARTS,
    )
)  # fmt: skip


@inlined
def bare_tables(tables):
    """Return tables whose arrays are replaced by pointers."""
    return (
        bare(tables[0]), bare(tables[1]), tables[2], tables[3], bare(tables[4]), tables[5], bare(tables[6]),
        bare(tables[7]), bare(tables[8]), bare(tables[9]), bare(tables[10]), bare(tables[11]), bare(tables[12]),
    )  # fmt: skip


@inner
def is_in(tables, row, position):
    """Return whether a position is in the bit set of a condition."""
    offset = position - tables[3]
    return tables[4][row * tables[5] + (offset >> 6)] >> np.uint64(offset & 63) & ONE


@inner
def region_at(tables, kind, position):
    """Return the last structure of a name that begins at or before a position."""
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
    """Return the number that an instruction reads for a position."""
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
    """Return the result of an instruction for two numbers."""
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
    """Return whether a constraint holds; `way` is the place of the first register of a way."""
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
