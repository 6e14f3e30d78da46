"""Lexer of CQL: a query as tokens (strings, names, numbers and signs), and errors that point at one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, NoReturn, TypeVar

from thresher.errors import UsageError

DEEPEST_NESTING = 100  # brackets within brackets

Result = TypeVar("Result")


class CqlError(UsageError):
    """A query that cannot be parsed or evaluated. `place` is the offset of the fault in `query`."""

    def __init__(self, message: str, query: str = "", place: int = 0) -> None:
        super().__init__(message)
        self.message, self.query, self.place = message, query, place

    def __str__(self) -> str:
        if not self.query:
            return self.message
        start = self.query.rfind("\n", 0, self.place) + 1
        line = self.query[start:].partition("\n")[0]
        return f"{self.message}\n  {line}\n  {' ' * (self.place - start)}^"


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message for a name that does not exist.

    >>> unknown("strategy", "fast", ["standard", "longest"])
    "unknown strategy 'fast'; choose one of standard, longest"
    >>> unknown("structure", "s", [])
    "unknown structure 's'; there are none"
    """
    names = ", ".join(known)
    return f"unknown {kind} {name!r}; {f'choose one of {names}' if names else 'there are none'}"


class Lexeme(NamedTuple):
    """A token of a query, with its offset."""

    kind: str
    text: str
    place: int


_LEXEMES = re.compile(
    r"""
    (?P<space>\s+)
    |(?P<string>"(?:[^"\\]|\\.|"")*"|'(?:[^'\\]|\\.|'')*')
    |(?P<flags>%[a-z]+)
    |(?P<number>\d+)
    |(?P<strategy>\(\?\s*[a-z]+\s*\))
    |(?P<region>/region\[)
    |(?P<name>[A-Za-z_][\w-]*)
    |(?P<sign>\[:|:\]|::|->|!=|<=|>=|/>|</|[][(){}<>=!&|?*+,.:;@-])
    """,
    re.VERBOSE | re.DOTALL,
)


class LexemeStream:
    """The tokens of a query with a cursor: base class of the parser."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._lexemes = self._split(query)
        self._next = 0
        self._depth = 0

    def _split(self, query: str) -> list[Lexeme]:
        lexemes, place = [], 0
        while place < len(query):
            lexeme = _LEXEMES.match(query, place)
            if not lexeme:
                quote = query[place] in "\"'"
                fault = "this string has no closing quote" if quote else f"unexpected {query[place]!r}"
                raise CqlError(fault, query, place)
            kind = lexeme.lastgroup or ""
            if kind != "space":
                lexemes.append(Lexeme(kind, lexeme.group(), place))
            place = lexeme.end()
        return [*lexemes, Lexeme("end", "", len(query))]

    @property
    def _here(self) -> Lexeme:
        return self._lexemes[self._next]

    def _ahead(self, steps: int = 1) -> Lexeme:
        return self._lexemes[min(self._next + steps, len(self._lexemes) - 1)]

    def _take(self) -> Lexeme:
        taken = self._here
        self._next = min(self._next + 1, len(self._lexemes) - 1)
        return taken

    def _is(self, *texts: str) -> bool:
        return self._here.kind in ("sign", "name") and self._here.text in texts

    def _skip(self, *texts: str) -> bool:
        """Advance past one of these signs or names; return whether one was there."""
        if is_here := self._is(*texts):
            self._take()
        return is_here

    def _need(self, text: str, where: str = "") -> Lexeme:
        if not self._is(text):
            self._fail(f"expected {text}{' ' + where if where else ''}")
        return self._take()

    def _name(self, expected: str) -> str:
        if self._here.kind != "name":
            self._fail(f"expected {expected}")
        return self._take().text

    def _number(self, expected: str) -> int:
        if self._here.kind != "number":
            self._fail(f"expected {expected}")
        return int(self._take().text)

    def _inside(self, read: Callable[[], Result]) -> Result:
        """Parse the inside of brackets, or of a word that works like them, with a limit to the nesting."""
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            self._fail(f"brackets are nested more than {DEEPEST_NESTING} deep")
        found = read()
        self._depth -= 1
        return found

    def _fail(self, message: str, lexeme: Lexeme | None = None) -> NoReturn:
        lexeme = lexeme or self._here
        seen = f", not {lexeme.text}" if lexeme.text and lexeme is self._here else ""
        raise CqlError(message + seen, self._query, lexeme.place)
