"""Numbers packed into words of 64 bits: types and kernels that columns, postings and bit sets share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from thresher.jit import inner

Bytes = NDArray[np.uint8]
Ids = NDArray[np.uint32]
Words = NDArray[np.uint64]
Starts = NDArray[np.int64]

# Returns zeros for an array, given its name, type and length: in memory, or mapped to a file.
Allocator = Callable[[str, Any, int], NDArray[Any]]


def in_memory(_name: str, kind: Any, count: int) -> NDArray[Any]:
    """Return zeros in memory: the allocator for arrays that are not written to a file."""
    return np.zeros(count, kind)


# Types of read-only arrays from a mapped file, and of writable ones.
BYTES = types.Array(types.uint8, 1, "C", readonly=True)
IDS = types.Array(types.uint32, 1, "C", readonly=True)
WORDS = types.Array(types.uint64, 1, "C", readonly=True)
STARTS = types.Array(types.int64, 1, "C", readonly=True)
NEW_IDS = types.Array(types.uint32, 1, "C")
NEW_WORDS = types.Array(types.uint64, 1, "C")
NEW_STARTS = types.Array(types.int64, 1, "C")

ONE, SIX, LAST = np.uint64(1), np.uint64(6), np.uint64(63)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def _instruction(name: str, *arguments: bool) -> Any:
    """Return a function of a word that compiles to one instruction of the processor."""

    def typed(_context: Any, word: types.Type) -> tuple[Any, Callable[..., Any]]:
        def build(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            flags = [context.get_constant(types.boolean, argument) for argument in arguments]
            return getattr(builder, name)(values[0], *flags)

        return types.uint64(word), build

    return intrinsic(typed)


def _word_at(_context: Any, array: types.Array, _place: types.Type) -> tuple[Any, Callable[..., Any]]:
    """Compile the reading of eight bytes at any place of an array as one word, lowest byte first."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        first = context.make_array(signature.args[0])(context, builder, values[0]).data
        where = builder.gep(first, [values[1]])
        word = context.get_value_type(signature.return_type)
        return builder.load(builder.bitcast(where, word.as_pointer()), align=1)

    return types.uint64(array, types.int64), build


eight_bytes: Any = intrinsic(_word_at)
ones = _instruction("ctpop")  # number of set bits
first_one = _instruction("cttz", True)  # place of the lowest set bit; undefined for 0
leading_zeros = _instruction("ctlz", True)  # number of bits above the highest set one; undefined for 0


@inner
def bits_at(words, place, mask):
    """Read a number, as wide as a mask, from any bit on."""
    word, offset = place >> SIX, place & LAST
    # The shift is made in two steps, since a shift by 64 is undefined.
    return (words[word] >> offset | words[word + ONE] << ONE << (LAST - offset)) & mask


@inner
def put_bits(words, place, value):
    """Write a number from any bit on, where all bits are still zero."""
    word, offset = place >> SIX, place & LAST
    words[word] |= value << offset
    words[word + ONE] |= value >> ONE >> (LAST - offset)


@inner
def mask_of(width):
    """Return a word with its lowest `width` bits set; the width is less than 64."""
    return (ONE << np.uint64(width)) - ONE
