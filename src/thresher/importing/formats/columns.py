"""The columns of vertical text: token lines are checked in bulk, and faulty ones are repaired one by one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from thresher.importing.formats.document import NO_WORD, NOT_UTF8, ImportOptions, ImportRemarks, is_utf8
from thresher.importing.formats.source import ImportFileError
from thresher.store import token_lines

USUAL_COLUMNS = {1: ("word",), 3: ("word", "pos", "lemma")}
MISFIT = "a line with more or fewer columns than attributes, cut or filled up"
SURPLUS = "a file with more columns than --attributes names; the first are taken"

_ENTITY = re.compile(rb"&(lt|gt|amp|quot|apos);")
_ENTITIES = {b"lt": b"<", b"gt": b">", b"amp": b"&", b"quot": b'"', b"apos": b"'"}
_ASCII = bytes(range(0x80))
_NO_CONTROLS = bytes(code for code in range(0x100) if code >= 0x20 and code != 0x7F)
_WIDE_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")  # C1, U+2028, U+2029

# A word of spaces alone; it is looked for only where a line begins with a space.
_SPACES = rb" |\xc2\xa0|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xaf]|\xe2\x81\x9f|\xe3\x80\x80"
_SPACE_FIRST = re.compile(
    rb"\n[\t \xc2\xe1-\xe3](?:(?<=[\t ])|(?<=\xc2)\xa0|(?<=\xe1)\x9a|(?<=\xe2)[\x80\x81]|(?<=\xe3)\x80)"
)
_NO_WORD = re.compile(rb"\n(?:%b)*(?:\t|(?<!\n)(?=\n|\Z))" % _SPACES)

# Returns the number of a line in the file, given the number of its stretch and its number in the stretch.
Numbering = Callable[[int, int], int]


class TableColumns:
    """The columns of a file: checks token lines and repairs faulty ones.

    A stretch is a run of lines with a line feed in front of each.
    """

    def __init__(self, name: str, options: ImportOptions, remarks: ImportRemarks) -> None:
        self.attributes = options.attributes
        self.entities = options.entities
        self._name = name
        self._remarks = remarks
        self._is_known = False  # whether the number of columns is known
        self._has_more = False  # whether there are more columns than attributes

    def checked(self, stretches: Sequence[bytes], numbering: Numbering) -> Sequence[bytes]:
        """Return stretches in the form in which they are stored."""
        if self.entities:
            stretches = [decoded(stretch) for stretch in stretches]
        if not self._is_known:
            self._learn(stretches, numbering)
        if self._has_more:
            stretches = first_columns(stretches, len(self.attributes))
        if self._sound(stretches):
            return stretches
        return [
            stretch if self._sound([stretch]) else self._repaired(stretch, at, numbering)
            for at, stretch in enumerate(stretches)
        ]

    def _learn(self, stretches: Sequence[bytes], numbering: Numbering) -> None:
        """Take the number of columns from the first token."""
        for at, stretch in enumerate(stretches):
            for nth, line in enumerate(stretch.split(b"\n")[1:]):
                if line:
                    self._is_known = True
                    self._learn_from(line.count(b"\t") + 1, numbering(at, nth))
                    return

    def _learn_from(self, columns: int, number: int) -> None:
        wanted = len(self.attributes)
        if not wanted and columns not in USUAL_COLUMNS:
            raise ImportFileError(
                f"{self._name}, line {number:,} has {columns} columns; "
                f"name them: --attributes word,{','.join('abcdefgh'[: columns - 1])}"
            )
        if not wanted:
            self.attributes = USUAL_COLUMNS[columns]
        elif columns > wanted:
            self._remarks.add(SURPLUS)
            self._has_more = True

    def _sound(self, stretches: Sequence[bytes]) -> bool:
        """Return whether all lines have the right columns and a word, no controls, and are UTF-8 in NFC."""
        joined = b"".join(stretches)
        line = b"\n" + b"\t" * (len(self.attributes) - 1)
        marks = joined.translate(None, _NO_CONTROLS)
        if marks != line * (len(marks) // len(line)):
            return False
        if len(line) == 1 and (b"\n\n" in joined or joined.endswith(b"\n")):
            return False
        if _SPACE_FIRST.search(joined) and _NO_WORD.search(joined):
            return False
        return joined.isascii() or _is_clean(b"".join([each for each in stretches if not each.isascii()]))

    def _repaired(self, stretch: bytes, at: int, numbering: Numbering) -> bytes:
        """Repair lines one by one: drop blank ones, cut or fill up columns, replace forbidden characters."""
        normal = unicodedata.normalize("NFC", stretch.decode("utf-8", "replace")).encode()
        # Whole files may be in another normal form, so normalising alone is tried first.
        if is_utf8(stretch) and self._sound([normal]):
            return normal
        repaired = []
        for nth, line in enumerate(stretch.split(b"\n")[1:]):
            if not line:
                continue
            number = partial(numbering, at, nth)
            values = line.decode("utf-8", "replace").split("\t")
            if not is_utf8(line):
                self._remarks.add(NOT_UTF8, number)
            missing = len(self.attributes) - len(values)
            if missing:
                self._remarks.add(MISFIT, number)
                values = values[: len(self.attributes)] + [""] * missing
            if not token_lines.clean(values[0]).strip():
                self._remarks.add(NO_WORD, number)
                continue
            repaired.append(token_lines.token(values)[:-1])
        return b"".join([b"\n" + line for line in repaired])


def first_columns(stretches: Sequence[bytes], count: int) -> list[bytes]:
    r"""Return stretches with the first columns of their lines.

    >>> first_columns([b"\na\tb\tc\nd", b"", b"\n\tf\tg"], 2)
    [b'\na\tb\nd', b'', b'\n\tf']
    """
    joined = np.frombuffer(b"".join(stretches), np.uint8)
    tabs = np.cumsum(joined == ord("\t"))
    (starts,) = np.nonzero(joined == token_lines.LINE_FEED)
    before = np.repeat(tabs[starts], np.diff(starts, append=len(joined)))  # tabs of all lines before
    kept = tabs - before < count
    ends = np.concatenate([[0], np.cumsum(kept)])[np.cumsum([0, *map(len, stretches)])].tolist()
    data = joined[kept].tobytes()
    return [data[start:end] for start, end in pairwise(ends)]


def decoded(data: bytes) -> bytes:
    """Return data with the five entities of XML replaced by their characters."""
    return _ENTITY.sub(lambda match: _ENTITIES[match[1]], data) if b"&" in data else data


def _is_clean(data: bytes) -> bool:
    """Return whether data is UTF-8, in NFC, and without controls beyond ASCII."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return unicodedata.is_normalized("NFC", text) and not _WIDE_CONTROLS.search(data.translate(None, _ASCII))
