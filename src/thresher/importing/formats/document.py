"""Documents, options and remarks, which pass between the readers of formats and the writer of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct

from thresher.importing.formats.source import SourceFile

MAX_DOCUMENT_BYTES = 64 << 20  # a longer document is cut, since readers hold a document in memory


class SourceDocument(NamedTuple):
    """A document of a file, or a part of a long one."""

    meta: dict[str, str]
    body: bytes  # UTF-8: the text, its paragraphs separated by line feeds, or lines of tokens
    tokens: int | None = None  # their number; None: the body is text
    attributes: tuple[str, ...] = ()  # of tokens
    part: int = 1


class ImportOptions(Struct, frozen=True):
    """The options of an import; most of them apply to one format only."""

    attributes: tuple[str, ...] = ()  # vertical: names of the columns; empty: by their number
    document: str = ""  # vertical: the tag of documents; empty: the first of the usual ones in the file
    entities: bool = False  # vertical: decode &lt; and the other four of XML
    text_column: str = "text"  # jsonl, parquet
    split: Literal["", "line"] = ""  # text: every line is a document


class ImportRemark(Struct):
    """An oddity that did not stop an import: how often it occurs, and its first place."""

    times: int
    line: int  # or row; 0: it has none


class ImportRemarks:
    """The remarks about a file, each of them once."""

    def __init__(self) -> None:
        self._found: dict[str, ImportRemark] = {}
        self._not_kept: dict[str, None] = {}

    def not_kept(self, part: str) -> None:
        """Note that a part of the file is not imported; it is reported once, without a count."""
        self._not_kept[part] = None

    def add(self, oddity: str, line: int | Callable[[], int] = 0, times: int = 1) -> None:
        """Count an oddity; a function that counts the line is called only the first time."""
        if known := self._found.get(oddity):
            known.times += times
        else:
            self._found[oddity] = ImportRemark(times, line if isinstance(line, int) else line())

    def sentences(self, name: str) -> list[str]:
        """Return all remarks as sentences.

        >>> remarks = ImportRemarks()
        >>> remarks.add(NOT_UTF8, 3)
        >>> remarks.sentences("a.vert")
        ['a.vert: 1 × a line with bytes that are not UTF-8, replaced by U+FFFD (first in line 3)']
        """
        not_kept = [f"{name}: not kept: {part}" for part in self._not_kept]
        return not_kept + [
            f"{name}: {remark.times:,} × {oddity}"
            + (f" (first in line {remark.line:,})" if remark.line else "")
            for oddity, remark in self._found.items()
        ]


NO_WORD = "a line without a word, left out"
NOT_UTF8 = "a line with bytes that are not UTF-8, replaced by U+FFFD"


def is_utf8(data: bytes) -> bool:
    """Return whether data is UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


Importer = Callable[[SourceFile, ImportOptions, ImportRemarks], Iterator[SourceDocument]]
