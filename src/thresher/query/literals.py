"""What an expression cannot do without: texts that every value it matches must begin with, or have inside."""

from __future__ import annotations

import re
from typing import NamedTuple

# Pieces of an expression: a sign that stands for itself, something that stands for several letters, how often, a
# border, or a letter.
_PIECES = re.compile(
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
_OPTIONAL = re.compile(r"[*?]|\{0*(?:,.*)?\}")


class Needs(NamedTuple):
    """The text that a value begins with, and texts that it has inside."""

    prefix: str
    parts: tuple[str, ...]


def needs(expression: str) -> Needs:
    """What every value must have that an expression matches as a whole. Where that is hard to tell, it is nothing.

    >>> needs("inter.*")
    Needs(prefix='inter', parts=('inter',))
    >>> needs(".*(ing|ed)s?")
    Needs(prefix='', parts=())
    """
    if "(?" in expression or r"\Q" in expression:  # signs may mean something else from there on
        return Needs("", ())
    runs: list[str] = [""]
    depth = 0
    for piece in _PIECES.finditer(expression):
        kind, text = piece.lastgroup, piece.group()
        if kind == "stop":
            if text == "|" and depth == 0:
                return Needs("", ())
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
    return Needs(runs[0], tuple(run for run in runs if run))
