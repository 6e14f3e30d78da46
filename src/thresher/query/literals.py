"""What an expression says outright: the few values that it can match, or texts that all of them must have."""

from __future__ import annotations

import re
from itertools import product
from typing import NamedTuple

from thresher.query.expressions import PIECES

FIRST, LAST = "\x01", "\x02"  # before the first letter of a value and behind its last one; no value has them
MOST_VALUES = 100  # that an expression is spelled out to

_OPTIONAL = re.compile(r"[*?]|\{0*(?:,.*)?\}")
_PLAIN_CLASS = re.compile(r"\[[^]^\\[-]+\]")  # letters, and no ranges among them


def needs(expression: str) -> tuple[str, ...]:
    """Texts that every value has that an expression matches as a whole, with FIRST and LAST at its ends.

    Where that is hard to tell, there are none.

    >>> needs("inter.*")
    ('\\x01inter',)
    >>> needs(".*(ing|ed)s?"), needs(".*ly")
    ((), ('ly\\x02',))
    """
    if "(?" in expression or r"\Q" in expression:  # signs may mean something else from there on
        return ()
    runs = [FIRST]
    depth = 0
    for piece in PIECES.finditer(expression):
        kind, text = piece.lastgroup, piece.group()
        if kind == "stop":
            if text == "|" and depth == 0:
                return ()
            depth += {"(": 1, ")": -1}.get(text, 0)
            runs.append("")
        elif depth:
            continue
        elif kind == "repeat":
            if _OPTIONAL.fullmatch(text):
                runs[-1] = runs[-1][:-1]  # what stands before may be missing
            runs.append("")
        elif kind in ("other", "class"):
            runs.append("")
        else:
            runs[-1] += text[-1]
    runs[-1] += LAST
    return tuple(run for run in runs if run not in (FIRST, LAST, ""))


class _Endless(Exception):
    """An expression matches more than a few values, or who knows which."""


def spelled_out(expression: str) -> list[str] | None:
    """All values that an expression matches, if they are few; None if they are not, or it is hard to tell.

    >>> spelled_out("colou?rs?"), spelled_out("[Ii]f|when"), spelled_out("a.*")
    (['colors', 'color', 'colours', 'colour'], ['If', 'if', 'when'], None)
    """
    pieces = [_Piece(piece.lastgroup or "", piece.group()) for piece in PIECES.finditer(expression)]
    try:
        values, end = _choice(pieces, 0, 0)
    except _Endless:
        return None
    return values if end == len(pieces) else None


class _Piece(NamedTuple):
    kind: str
    text: str


_DEEPEST = 20  # brackets in each other


def _choice(pieces: list[_Piece], at: int, depth: int) -> tuple[list[str], int]:
    if depth > _DEEPEST:
        raise _Endless
    values, at = _sequence(pieces, at, depth)
    while at < len(pieces) and pieces[at] == ("stop", "|"):
        more, at = _sequence(pieces, at + 1, depth)
        values = list(dict.fromkeys([*values, *more]))
    return values, at


def _sequence(pieces: list[_Piece], at: int, depth: int) -> tuple[list[str], int]:
    values = [""]
    while at < len(pieces) and not (pieces[at].kind == "stop" and pieces[at].text in "|)"):
        part, at = _atom(pieces, at, depth)
        if at < len(pieces) and pieces[at].kind == "repeat":
            if pieces[at].text != "?":
                raise _Endless
            part = list(dict.fromkeys([*part, ""]))
            at += 1
        if len(values) * len(part) > MOST_VALUES:
            raise _Endless
        values = ["".join(pair) for pair in product(values, part)]
    return values, at


def _atom(pieces: list[_Piece], at: int, depth: int) -> tuple[list[str], int]:
    kind, text = pieces[at]
    if kind == "escape" or (kind == "letter" and text not in "[]{}"):  # those may be half of something
        return [text[-1]], at + 1
    if kind == "class" and _PLAIN_CLASS.fullmatch(text):
        return list(dict.fromkeys(text[1:-1])), at + 1
    if kind == "stop" and text == "(":
        if pieces[at + 1 : at + 2] == [("repeat", "?")]:  # (?…) may mean anything
            raise _Endless
        values, end = _choice(pieces, at + 1, depth + 1)
        if end >= len(pieces):
            raise _Endless
        return values, end + 1
    raise _Endless
