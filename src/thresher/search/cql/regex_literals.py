"""Literals of a regular expression: the few values that it can match, or texts that all of them contain.

Both are looked up in a lexicon, so that the expression is matched against few values.
"""

from __future__ import annotations

import re
from itertools import product
from typing import NamedTuple

from thresher.search.cql.regex import TOKENS

FIRST, LAST = "\x01", "\x02"  # marks of the beginning and the end of a value; they occur in no value
MOST_VALUES = 100  # an expression of more values is not enumerated

_OPTIONAL = re.compile(r"[*?]|\{0*(?:,.*)?\}")
_PLAIN_CLASS = re.compile(r"\[[^]^\\[-]+\]")  # letters, and no ranges among them


def needs(expression: str) -> tuple[str, ...]:
    r"""Return texts that every matching value contains, with FIRST and LAST at its ends.

    The result is empty if such texts are not easy to find.

    >>> needs("inter.*")
    ('\x01inter',)
    >>> needs(".*(ing|ed)s?"), needs(".*ly")
    ((), ('ly\x02',))
    """
    if "(?" in expression or r"\Q" in expression:  # the signs after it may have another meaning
        return ()
    runs = [FIRST]
    depth = 0
    for token in TOKENS.finditer(expression):
        kind, text = token.lastgroup, token.group()
        if kind == "stop":
            if text == "|" and depth == 0:
                return ()
            depth += {"(": 1, ")": -1}.get(text, 0)
            runs.append("")
        elif depth:
            continue
        elif kind == "repeat":
            if _OPTIONAL.fullmatch(text):
                runs[-1] = runs[-1][:-1]  # the letter before it may be missing
            runs.append("")
        elif kind in ("other", "class"):
            runs.append("")
        else:
            runs[-1] += text[-1]
    runs[-1] += LAST
    return tuple(run for run in runs if run not in (FIRST, LAST, ""))


class _NotFinite(Exception):
    """An expression matches too many values, or it is hard to enumerate them."""


def spelled_out(expression: str) -> list[str] | None:
    """Return all values that an expression matches; None if they are many or not easy to enumerate.

    >>> spelled_out("colou?rs?"), spelled_out("[Ii]f|when"), spelled_out("a.*")
    (['colours', 'colour', 'colors', 'color'], ['If', 'if', 'when'], None)
    """
    tokens = [_Token(token.lastgroup or "", token.group()) for token in TOKENS.finditer(expression)]
    try:
        values, end = _alternation(tokens, 0, 0)
    except _NotFinite:
        return None
    return values if end == len(tokens) else None


class _Token(NamedTuple):
    kind: str
    text: str


_DEEPEST_NESTING = 20  # brackets within brackets


def _alternation(tokens: list[_Token], at: int, depth: int) -> tuple[list[str], int]:
    if depth > _DEEPEST_NESTING:
        raise _NotFinite
    values, at = _sequence(tokens, at, depth)
    while at < len(tokens) and tokens[at] == ("stop", "|"):
        more, at = _sequence(tokens, at + 1, depth)
        values = list(dict.fromkeys([*values, *more]))
    return values, at


def _sequence(tokens: list[_Token], at: int, depth: int) -> tuple[list[str], int]:
    values = [""]
    while at < len(tokens) and not (tokens[at].kind == "stop" and tokens[at].text in "|)"):
        part, at = _atom(tokens, at, depth)
        if at < len(tokens) and tokens[at].kind == "repeat":
            if tokens[at].text != "?":
                raise _NotFinite
            part = list(dict.fromkeys([*part, ""]))
            at += 1
        if len(values) * len(part) > MOST_VALUES:
            raise _NotFinite
        values = ["".join(pair) for pair in product(values, part)]
    return values, at


def _atom(tokens: list[_Token], at: int, depth: int) -> tuple[list[str], int]:
    kind, text = tokens[at]
    if kind == "escape" or (kind == "letter" and text not in "[]{}"):  # a bracket may be half of a class
        return [text[-1]], at + 1
    if kind == "class" and _PLAIN_CLASS.fullmatch(text):
        return list(dict.fromkeys(text[1:-1])), at + 1
    if kind == "stop" and text == "(":
        if tokens[at + 1 : at + 2] == [("repeat", "?")]:  # (?…) may have any meaning
            raise _NotFinite
        values, end = _alternation(tokens, at + 1, depth + 1)
        if end >= len(tokens):
            raise _NotFinite
        return values, end + 1
    raise _NotFinite
