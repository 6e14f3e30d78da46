"""What passes between those who read files and the one who stores what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct

from thresher.store.importers.source import Source

# A longer document is cut: whoever reads it back holds all of it in memory.
LONGEST = 64 << 20  # bytes


class Document(NamedTuple):
    """A document as a file has it, or a part of a long one."""

    meta: dict[str, str]
    body: bytes  # UTF-8: the text, its paragraphs separated by line feeds, or lines of tokens
    tokens: int | None = None  # their number; None: the body is text
    attributes: tuple[str, ...] = ()  # of tokens
    part: int = 1


class Choices(Struct, frozen=True):
    """What can be asked of an import; most of it concerns one format only."""

    attributes: tuple[str, ...] = ()  # vertical: names of the columns; empty: by their number
    document: str = ""  # vertical: the tag of documents; empty: whichever of the usual ones comes first
    entities: bool = False  # vertical: decode &lt; and the other four of XML
    text_column: str = "text"  # jsonl, parquet
    split: Literal["", "line"] = ""  # text: every line is a document


class Remark(Struct):
    """Something odd that did not stop an import: how often, and where first."""

    times: int
    line: int  # or row; 0: it has none


class Remarks:
    """What is to be told of a file once it is imported, each thing once."""

    def __init__(self) -> None:
        self._found: dict[str, Remark] = {}
        self._not_kept: dict[str, None] = {}

    def not_kept(self, what: str) -> None:
        """Something that the file has is not taken over; told once, however often it is there."""
        self._not_kept[what] = None

    def add(self, what: str, line: int | Callable[[], int] = 0, times: int = 1) -> None:
        """Something is there once more; a line that takes some counting is asked for only the first time."""
        if known := self._found.get(what):
            known.times += times
        else:
            self._found[what] = Remark(times, line if isinstance(line, int) else line())

    def sentences(self, name: str) -> list[str]:
        """All of it for people.

        >>> remarks = Remarks()
        >>> remarks.add(NOT_UTF8, 3)
        >>> remarks.sentences("a.vert")
        ['a.vert: 1 × a line with bytes that are not UTF-8, replaced by U+FFFD (first in line 3)']
        """
        told = [f"{name}: not kept: {what}" for what in self._not_kept]
        return told + [
            f"{name}: {remark.times:,} × {what}"
            + (f" (first in line {remark.line:,})" if remark.line else "")
            for what, remark in self._found.items()
        ]


NO_WORD = "a line without a word, left out"
NOT_UTF8 = "a line with bytes that are not UTF-8, replaced by U+FFFD"


def is_utf8(data: bytes) -> bool:
    """Whether all of it is UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


Importer = Callable[[Source, Choices, Remarks], Iterator[Document]]
