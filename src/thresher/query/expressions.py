r"""Expressions as CQL has them, for two engines: one that always takes linear time, and one that knows more.

In CQL, `\w`, `\d` and `[[:alpha:]]` are about the letters of all scripts. RE2 means those of English by them, so
they are written out for it. Where an expression looks ahead or back, or at what it has matched, only the other
engine can tell; that one is given a time limit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import regex
from numpy.typing import NDArray

PATIENCE = 5.0  # seconds that an expression may take of all values together, where time is not linear

# Pieces of an expression: a sign that stands for itself, something that stands for several letters, how often, a
# border, or a letter.
PIECES = re.compile(
    r"""
    (?P<escape>\\[^\w\s])
    |(?P<other>\\(?:[pP](?:\{[^}]*\}|.)|x(?:\{[^}]*\}|..)|\d+|.)|[.^$])
    |(?P<class>\[\^?\]?(?:\[:[^]]*:\]|[^]\\]|\\.)*\])
    |(?P<repeat>[*+?]|\{\d*,?\d*\})
    |(?P<stop>[|()])
    |(?P<letter>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_SPACE = r"\p{Z}\t\n\v\f\r\x85"
_OUTSIDE = {
    r"\w": r"[\p{L}\p{N}_]",
    r"\W": r"[^\p{L}\p{N}_]",
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
}
_INSIDE = {
    r"\w": r"\p{L}\p{N}_",
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\s": _SPACE,
    "[:alpha:]": r"\p{L}",
    "[:lower:]": r"\p{Ll}",
    "[:upper:]": r"\p{Lu}",
    "[:alnum:]": r"\p{L}\p{N}",
    "[:digit:]": r"\p{Nd}",
    "[:space:]": _SPACE,
    "[:word:]": r"\p{L}\p{N}_",
    "[:punct:]": r"\p{P}$+<=>^`|~",
    "[:cntrl:]": r"\p{Cc}",
    "[:blank:]": r"\p{Zs}\t",
}
_IN_CLASS = re.compile(r"\[:[a-z]+:\]|\\[wdDs]")
_KNOWN_TO_ONE = re.compile(r"\\[WSbB]")  # in a class, or at all: RE2 means English by it


class ExpressionError(ValueError):
    """An expression that cannot be read, or that takes too long."""


Expression = Callable[
    [pa.StringArray], NDArray[np.bool_]
]  # tells of every value whether it matches as a whole


def compiled(pattern: str, *, caseless: bool = False) -> Expression:
    """An expression, in the engine that can tell."""
    expression = _unicode(pattern)
    if not _differs(pattern):
        if _is_read(expression):
            return lambda values: _linear(values, expression, caseless)
        looks, rest = _looks_ahead(expression)
        if looks and all(map(_is_read, [*looks, rest])):
            return lambda values: _each(values, looks, rest, caseless)
    try:
        other = regex.compile(expression, regex.IGNORECASE if caseless else 0)
    except (regex.error, ValueError, OverflowError) as fault:
        raise ExpressionError(f"{pattern} is no expression: {fault}") from None
    except RecursionError:
        raise ExpressionError("this expression has too many brackets in each other") from None
    return lambda values: _other(values, other)


def _differs(pattern: str) -> bool:
    """Whether RE2 would read something in it another way."""
    return any(
        _KNOWN_TO_ONE.search(piece.group())
        for piece in PIECES.finditer(pattern)
        if piece.lastgroup == "class" or piece.group() in (r"\b", r"\B")
    )


def _unicode(pattern: str) -> str:
    """The expression with classes of all scripts written out."""
    parts = []
    for piece in PIECES.finditer(pattern):
        text = piece.group()
        if piece.lastgroup == "class":
            text = _IN_CLASS.sub(lambda found: _INSIDE.get(found.group(), found.group()), text)
        parts.append(_OUTSIDE.get(text, text))
    return "".join(parts)


def _is_read(expression: str) -> bool:
    """Whether RE2 can read an expression. By itself: between brackets, some would be one that are none."""
    try:
        pc.match_substring_regex(pa.array(["", None]), expression)
    except pa.ArrowInvalid:
        return False
    return True


def _looks_ahead(expression: str) -> tuple[list[str], str]:
    """What an expression looks for, (?=…), before all else, one by one; and the rest of it."""
    looks = []
    while expression.startswith("(?="):
        depth = 0
        for piece in PIECES.finditer(expression):
            depth += {"(": 1, ")": -1}.get(piece.group(), 0) if piece.lastgroup == "stop" else 0
            if depth == 0:
                looks.append(expression[3 : piece.start()])
                expression = expression[piece.end() :]
                break
        else:
            break
    return looks, expression


def _each(values: pa.StringArray, looks: list[str], rest: str, caseless: bool) -> NDArray[np.bool_]:
    """Values that match, and that begin with all that is looked for."""
    found = _linear(values, rest, caseless)
    for look in looks:
        found &= _mask(pc.match_substring_regex(values, rf"\A(?:{look})", ignore_case=caseless))
    return found


def _linear(values: pa.StringArray, expression: str, caseless: bool) -> NDArray[np.bool_]:
    return _mask(pc.match_substring_regex(values, rf"\A(?:{expression})\z", ignore_case=caseless))


def _mask(told: pa.BooleanArray) -> NDArray[np.bool_]:
    """Bits as numpy has them; Arrow's own way loads pandas for it, where there is pandas."""
    bits = told.buffers()[1]
    if bits is None:
        return np.zeros(0, np.bool_)
    every = np.unpackbits(np.frombuffer(memoryview(bits), np.uint8), bitorder="little")
    return every[told.offset : told.offset + len(told)].view(np.bool_)


def _other(values: pa.StringArray, expression: regex.Pattern[str]) -> NDArray[np.bool_]:
    end = time.monotonic() + PATIENCE

    def matches(text: str | None) -> bool:
        return expression.fullmatch(text, timeout=max(end - time.monotonic(), 1e-3)) is not None

    try:
        return np.array(list(map(matches, values.to_pylist())), np.bool_)
    except TimeoutError:
        raise ExpressionError(
            f"the expression {expression.pattern} takes too long; try one without (?=…) and \\1"
        ) from None


def quoted(literal: str) -> str:
    r"""An expression for just this text: \Q…\E would end at an \E in it."""
    return "".join(char if char.isalnum() or ord(char) > 127 else f"\\x{{{ord(char):x}}}" for char in literal)
