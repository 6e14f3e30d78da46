"""Numbers in words of 64 bits: what the kernels of columns, postings and bit sets have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from thresher.read.scan.kernel import inner

Bytes = NDArray[np.uint8]
Ids = NDArray[np.uint32]
Words = NDArray[np.uint64]
Starts = NDArray[np.int64]

# Where numbers are written that are to be kept: so many zeros of a kind, under a name.
Room = Callable[[str, Any, int], NDArray[Any]]


def in_memory(_name: str, kind: Any, count: int) -> NDArray[Any]:
    """Room for those who keep them otherwise."""
    return np.zeros(count, kind)


# What a memory-mapped file lends, and what is made anew.
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
    """A function of a word that processors have an instruction for."""

    def typed(_context: Any, word: types.Type) -> tuple[Any, Callable[..., Any]]:
        def build(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            flags = [context.get_constant(types.boolean, argument) for argument in arguments]
            return getattr(builder, name)(values[0], *flags)

        return types.uint64(word), build

    return intrinsic(typed)


def _word_at(_context: Any, array: types.Array, _place: types.Type) -> tuple[Any, Callable[..., Any]]:
    """How eight bytes from anywhere in an array are read as one word, the first being the lowest."""

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        first = context.make_array(signature.args[0])(context, builder, values[0]).data
        where = builder.gep(first, [values[1]])
        word = context.get_value_type(signature.return_type)
        return builder.load(builder.bitcast(where, word.as_pointer()), align=1)

    return types.uint64(array, types.int64), build


eight_bytes: Any = intrinsic(_word_at)
ones = _instruction("ctpop")  # how many bits of a word are set
first_one = _instruction("cttz", True)  # the place of the lowest one, if there is one
leading_zeros = _instruction("ctlz", True)  # how many bits above the highest one, if there is one


@inner
def bits_at(words, place, mask):
    """A number from anywhere, as long as a mask."""
    word, offset = place >> SIX, place & LAST
    # In two steps, for there is no shift by 64.
    return (words[word] >> offset | words[word + ONE] << ONE << (LAST - offset)) & mask


@inner
def put_bits(words, place, value):
    """Write a number to where nothing was written before."""
    word, offset = place >> SIX, place & LAST
    words[word] |= value << offset
    words[word + ONE] |= value >> ONE >> (LAST - offset)


@inner
def mask_of(width):
    """A word with so many bits set; fewer than 64."""
    return (ONE << np.uint64(width)) - ONE
