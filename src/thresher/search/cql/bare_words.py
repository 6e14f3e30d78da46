"""Plain words as queries: they are searched literally, one after the other."""

from __future__ import annotations

import re

from thresher.errors import UsageError

_WORD = r"\w[\w'’\-]*"
_WORDS = re.compile(rf"\s*{_WORD}(\s+{_WORD})*\s*")
# `dil within s` is CQL that lacks quotes. Searched as words it would find nothing; parsed, it gives an error.
_CQL = re.compile(r"\S\s+(within\s|containing\s|cut\s+\d+\s*$|expand\s+(left\s+|right\s+)?to\s)")


def quoted(query: str) -> str:
    """Return a query of plain words as CQL; a query in CQL stays as it is.

    >>> quoted("for example"), quoted('"example"'), quoted('example within s')
    ('"for" %l "example" %l', '"example"', 'example within s')
    """
    if not isinstance(query, str):
        raise UsageError(f"a query must be text, such as '[lemma=\"go\"]'; got {query!r}")
    if not _WORDS.fullmatch(query) or _CQL.search(query):
        return query
    return " ".join(f'"{word}" %l' for word in query.split())
