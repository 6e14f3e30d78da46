"""A query cut into pieces: strings, names, numbers and signs; and errors that point at one of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeVar

from thresher.config import ConfigError

DEEPEST = 100  # brackets in each other

Result = TypeVar("Result")


class CqlError(ConfigError):
    """A query that cannot be read, or not be answered; `place` is where in it."""

    def __init__(self, message: str, query: str = "", place: int = 0) -> None:
        super().__init__(message)
        self.message, self.query, self.place = message, query, place

    def __str__(self) -> str:
        if not self.query:
            return self.message
        start = self.query.rfind("\n", 0, self.place) + 1
        line = self.query[start:].partition("\n")[0]
        return f"{self.message}\n  {line}\n  {' ' * (self.place - start)}^"


class Piece(NamedTuple):
    kind: str
    text: str
    place: int


_PIECES = re.compile(
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


class Pieces:
    """The pieces of a query, taken one after the other by whoever knows what they mean."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._pieces = self._split(query)
        self._next = 0
        self._depth = 0

    def _split(self, query: str) -> list[Piece]:
        pieces, place = [], 0
        while place < len(query):
            found = _PIECES.match(query, place)
            if not found:
                quote = query[place] in "\"'"
                why = "this string has no end" if quote else f"{query[place]!r} means nothing here"
                raise CqlError(why, query, place)
            kind = found.lastgroup or ""
            if kind != "space":
                pieces.append(Piece(kind, found.group(), place))
            place = found.end()
        return [*pieces, Piece("end", "", len(query))]

    @property
    def _here(self) -> Piece:
        return self._pieces[self._next]

    def _ahead(self, steps: int = 1) -> Piece:
        return self._pieces[min(self._next + steps, len(self._pieces) - 1)]

    def _take(self) -> Piece:
        piece = self._here
        self._next = min(self._next + 1, len(self._pieces) - 1)
        return piece

    def _is(self, *texts: str) -> bool:
        return self._here.kind in ("sign", "name") and self._here.text in texts

    def _skip(self, *texts: str) -> bool:
        """Go on if one of these stands here."""
        if is_here := self._is(*texts):
            self._take()
        return is_here

    def _need(self, text: str, what: str = "") -> Piece:
        if not self._is(text):
            self._fail(f"expected {text}{' ' + what if what else ''}")
        return self._take()

    def _name(self, what: str) -> str:
        if self._here.kind != "name":
            self._fail(f"expected {what}")
        return self._take().text

    def _number(self, what: str) -> int:
        if self._here.kind != "number":
            self._fail(f"expected {what}")
        return int(self._take().text)

    def _inside(self, read: Callable[[], Result]) -> Result:
        """Read what stands in brackets, or in a word that works like them."""
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail(f"more than {DEEPEST} brackets in each other")
        found = read()
        self._depth -= 1
        return found

    def _fail(self, why: str, piece: Piece | None = None) -> NoReturn:
        piece = piece or self._here
        seen = f", not {piece.text}" if piece.text and piece is self._here else ""
        raise CqlError(why + seen, self._query, piece.place)
