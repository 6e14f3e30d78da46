"""Kernel that classifies addresses by shape, so that most of them need no URL parser.

Most addresses are canonical already, except for the origin or folder that precedes them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.jit import BYTES, NOTHING, bare, inlined, inner, kernel

ODD, WHOLE, FROM_ROOT, FROM_FOLDER = range(4)  # shapes; odd addresses are left to the parser

SLASH, DASH, DOT, PERCENT = ord("/"), ord("-"), ord("."), ord("%")
QUESTION, AMPERSAND, SMALL_S, TWO = ord("?"), ord("&"), ord("s"), ord("2")
HTTP, AFTER_SCHEME = (np.frombuffer(part, np.uint8) for part in (b"http", b"://"))
IN_NAME = 0b11111  # bits that tell letters apart, in capitals or not
# Beginnings of the parameters that `thresher.urls` removes.
_REMOVED = b"_g as cf dc fb gc ig js mc ms mt os ph pk se ut yc ze"


def _bytes_of(characters: bytes) -> NDArray[np.bool_]:
    """Return a table that says for every byte if it is one of these characters."""
    are_in = np.zeros(256, np.bool_)
    are_in[list(characters)] = True
    return are_in


def _beginnings() -> NDArray[np.bool_]:
    """Return a table that says for every two letters if a removable parameter may begin with them."""
    are_in = np.zeros((IN_NAME + 1, IN_NAME + 1), np.bool_)
    for first, second in _REMOVED.split():
        are_in[first & IN_NAME, second & IN_NAME] = True
    return are_in


# Characters that the URL standard leaves as they are, between the slashes of a path and in a query.
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_~!$&()*+,=@.%-"
IN_PATHS, IN_QUERIES = _bytes_of(_PLAIN), _bytes_of(_PLAIN + b":/;?")
BEGINNINGS = _beginnings()


@inner
def after_origin(strings, start):
    """Return the start of the path of a URL with a plain origin (`https://www.a.cz`), or `start` without one.

    A plain origin is a name in lower case that needs no IDNA. It ends in letters, so it is no IP address.
    """
    place = start
    for byte in HTTP:
        if strings[place] != byte:
            return start
        place += 1
    place += strings[place] == SMALL_S
    for byte in AFTER_SCHEME:
        if strings[place] != byte:
            return start
        place += 1
    dots = letters = 0
    label = place
    while strings[place] != SLASH:
        byte = strings[place]
        if byte == DOT:
            if place == label:
                return start
            dots += 1
            letters = 0
            label = place + 1
        elif 97 <= byte <= 122:
            letters += 1
        elif not (48 <= byte <= 57 or byte == DASH):
            return start
        if place == label + 3 and byte == DASH and strings[place - 1] == DASH:
            return start  # `xn--`, or something like it
        place += 1
    return place if dots and letters > 1 and letters == place - label else start


@inlined
def may_be_dot(strings, place):
    """Return True if `.` stands at a place, or `%2e`, which means the same."""
    return strings[place] == DOT or (strings[place] == PERCENT and strings[place + 1] == TWO)


@inlined
def is_plain_query(strings, start, end):
    """Return True if a query stays as it is: nothing is escaped or empty or may be a session parameter."""
    begins = True
    for place in range(start, end):
        byte = strings[place]
        if not IN_QUERIES[byte] or (
            begins and (byte == AMPERSAND or BEGINNINGS[byte & IN_NAME, strings[place + 1] & IN_NAME])
        ):
            return False
        begins = byte == AMPERSAND
    return not begins


@inlined
def shape_of(strings, start, end):
    """Return the shape of the address between two places."""
    place = after_origin(strings, start)
    shape = WHOLE if place > start else FROM_ROOT if strings[start] == SLASH else FROM_FOLDER
    first = place = place + (strings[place] == SLASH)
    while place < end:
        byte = strings[place]
        if byte == SLASH:
            if place == first:
                return ODD
            first = place + 1
        elif byte == QUESTION:
            return shape if place > start and is_plain_query(strings, place + 1, end) else ODD
        elif not IN_PATHS[byte] or (place == first and may_be_dot(strings, place)):
            return ODD
        place += 1
    return shape if end > start else ODD


@kernel(NOTHING, BYTES, BYTES)
def tell_shapes(strings: NDArray[np.uint8], shapes: NDArray[np.uint8]) -> None:
    """Write the shape of each string, each of which ends with a zero byte."""
    strings = bare(strings)
    start = place = np.int64(0)  # not a mere 0: all that is called with it would be compiled once more
    for number in range(len(shapes)):
        while strings[place]:
            place += 1
        shapes[number] = shape_of(strings, start, place)
        place += 1
        start = place
