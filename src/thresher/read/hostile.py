"""Pages whose markup is made to stall whoever builds a tree of it."""

from __future__ import annotations

import re

# Where a tree would cost quadratic time: lexbor looks up through open elements and along attributes.
MAX_DEPTH = 2_500
MAX_ATTRIBUTES = 2_000
MAX_REOPENED = 500_000  # unclosed formatting elements are opened again in every block after them
_SOME_TAGS, _MANY_TAGS = 2_000, 10_000  # fewer cannot do harm; more are worth a look whatever they are
_MANY_UNCLOSED = 400
_LONG_RUN = 4_096  # bytes without ">"
_OPENED_OR_CLOSED = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_VALUE = re.compile(rb"""=\s*+(?:"[^"]*+"|'[^']*+')""")
_NEVER_NESTED = frozenset(
    b"area base br col embed hr img input link meta param source track wbr "
    b"p li td th tr dt dd option thead tbody tfoot html head body".split()
)
_FORMATTING = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())


def is_hostile(utf8: bytes) -> bool:
    """Whether the tree of a page would be so deep or its tags so full that it is made to stall its reader."""
    tags = utf8.count(b"<")
    many = tags > _MANY_TAGS or (tags > _SOME_TAGS and tags - 2 * utf8.count(b"</") > _MANY_UNCLOSED)
    if many and _is_too_deep(utf8, tags):
        return True
    # A longer run without ">" would leave one of these stretches empty: only then is a closer look worth it.
    stretches = range(0, len(utf8) - _LONG_RUN, _LONG_RUN)
    if all(utf8.find(b">", start, start + _LONG_RUN) >= 0 for start in stretches):
        return False
    return any(
        len(_VALUE.sub(b"", run[opened.start() :]).split()) > MAX_ATTRIBUTES
        for run in utf8.split(b">")
        if len(run) > _LONG_RUN and (opened := _OPENED_OR_CLOSED.search(run))
    )


def _is_too_deep(utf8: bytes, tags: int) -> bool:
    """Follow the nesting roughly, without a tree."""
    depth = formatting = 0
    for slash, name in _OPENED_OR_CLOSED.findall(utf8):
        tag = name.lower()
        if tag in _NEVER_NESTED:
            continue
        step = -1 if slash else 1
        depth = max(0, depth + step)
        if tag in _FORMATTING:
            formatting = max(0, formatting + step)
        if depth > MAX_DEPTH:
            return True
    return formatting * tags > MAX_REOPENED
