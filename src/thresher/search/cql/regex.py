r"""Regular expressions of CQL, compiled for RE2, which takes linear time, or else for the package `regex`.

In CQL, `\w`, `\d` and `[[:alpha:]]` include the letters of all scripts. RE2 takes them for ASCII, so they are
written out for it. Look-around and back-references need `regex`, which gets a time limit.
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

from thresher.errors import UsageError

BACKTRACKING_TIME_S = 5.0  # time limit of `regex` for all values together

# Tokens of an expression: an escaped sign, a set of letters, a class in brackets, a repetition, a border, a letter.
TOKENS = re.compile(
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
_ASCII_IN_RE2 = re.compile(r"\\[WSbB]")  # RE2 takes these for ASCII, and they cannot be written out


class ExpressionError(UsageError):
    """A regular expression that cannot be compiled, or that takes too long."""


# Returns for every value whether the whole of it matches.
Expression = Callable[[pa.StringArray], NDArray[np.bool_]]


def compiled(pattern: str, *, caseless: bool = False) -> Expression:
    """Compile an expression for the fastest engine that supports it. Raises ExpressionError."""
    expression = _unicode(pattern)
    if not _differs(pattern):
        if _is_supported(expression):
            return lambda values: _linear(values, expression, caseless)
        lookaheads, rest = _leading_lookaheads(expression)
        if lookaheads and all(map(_is_supported, [*lookaheads, rest])):
            return lambda values: _with_lookaheads(values, lookaheads, rest, caseless)
    try:
        other = regex.compile(expression, regex.IGNORECASE if caseless else 0)
    except (regex.error, ValueError, OverflowError) as fault:
        raise ExpressionError(f"invalid regular expression {pattern}: {fault}") from None
    except RecursionError:
        raise ExpressionError("the brackets of this regular expression are nested too deep") from None
    return lambda values: _backtracking(values, other)


def _differs(pattern: str) -> bool:
    """Return whether RE2 would give a part of the expression another meaning."""
    return any(
        _ASCII_IN_RE2.search(token.group())
        for token in TOKENS.finditer(pattern)
        if token.lastgroup == "class" or token.group() in (r"\b", r"\B")
    )


def _unicode(pattern: str) -> str:
    """Return the expression with its classes written out for all scripts."""
    parts = []
    for token in TOKENS.finditer(pattern):
        text = token.group()
        if token.lastgroup == "class":
            text = _IN_CLASS.sub(lambda found: _INSIDE.get(found.group(), found.group()), text)
        parts.append(_OUTSIDE.get(text, text))
    return "".join(parts)


def _is_supported(expression: str) -> bool:
    """Return whether RE2 can compile an expression.

    The expression is compiled without brackets around it: some faulty ones would be valid inside them.
    """
    try:
        pc.match_substring_regex(pa.array(["", None]), expression)
    except pa.ArrowInvalid:
        return False
    return True


def _leading_lookaheads(expression: str) -> tuple[list[str], str]:
    """Return the insides of the look-aheads, (?=…), at the start of an expression, and the rest of it."""
    lookaheads = []
    while expression.startswith("(?="):
        depth = 0
        for token in TOKENS.finditer(expression):
            depth += {"(": 1, ")": -1}.get(token.group(), 0) if token.lastgroup == "stop" else 0
            if depth == 0:
                lookaheads.append(expression[3 : token.start()])
                expression = expression[token.end() :]
                break
        else:
            break
    return lookaheads, expression


def _with_lookaheads(
    values: pa.StringArray, lookaheads: list[str], rest: str, caseless: bool
) -> NDArray[np.bool_]:
    """Match the rest as a whole, and each look-ahead at the start of the value."""
    found = _linear(values, rest, caseless)
    for lookahead in lookaheads:
        found &= _mask(pc.match_substring_regex(values, rf"\A(?:{lookahead})", ignore_case=caseless))
    return found


def _linear(values: pa.StringArray, expression: str, caseless: bool) -> NDArray[np.bool_]:
    return _mask(pc.match_substring_regex(values, rf"\A(?:{expression})\z", ignore_case=caseless))


def _mask(matched: pa.BooleanArray) -> NDArray[np.bool_]:
    """Convert bits to a numpy array. Arrow's own conversion would import pandas if it is installed."""
    bits = matched.buffers()[1]
    if bits is None:
        return np.zeros(0, np.bool_)
    every = np.unpackbits(np.frombuffer(memoryview(bits), np.uint8), bitorder="little")
    return every[matched.offset : matched.offset + len(matched)].view(np.bool_)


def _backtracking(values: pa.StringArray, expression: regex.Pattern[str]) -> NDArray[np.bool_]:
    end = time.monotonic() + BACKTRACKING_TIME_S

    def matches(text: str | None) -> bool:
        return expression.fullmatch(text, timeout=max(end - time.monotonic(), 1e-3)) is not None

    try:
        return np.array(list(map(matches, values.to_pylist())), np.bool_)
    except TimeoutError:
        raise ExpressionError(
            f"the regular expression {expression.pattern} takes too long; try one without (?=…) and \\1"
        ) from None


def quoted(literal: str) -> str:
    r"""Return an expression that matches just this text. `\Q…\E` would not do: it ends at an `\E` in the text."""
    return "".join(char if char.isalnum() or ord(char) > 127 else f"\\x{{{ord(char):x}}}" for char in literal)
