"""Stretches of token lines in vertical text: taken as they are if all is well, else mended line by line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from thresher.store import lines
from thresher.store.importers.document import NO_WORD, NOT_UTF8, Choices, Remarks, is_utf8
from thresher.store.importers.source import ImportFault

USUAL_COLUMNS = {1: ("word",), 3: ("word", "pos", "lemma")}
MISFIT = "a line with more or fewer columns than there are attributes, cut or filled up"
SURPLUS = "a file with more columns than --attributes names: the first are taken"

_ENTITY = re.compile(rb"&(lt|gt|amp|quot|apos);")
_ENTITIES = {b"lt": b"<", b"gt": b">", b"amp": b"&", b"quot": b'"', b"apos": b"'"}
_ASCII = bytes(range(0x80))
_NO_CONTROLS = bytes(code for code in range(0x100) if code >= 0x20 and code != 0x7F)
_WIDE_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]")  # C1, U+2028, U+2029

# A word of nothing but spaces, which is looked for only where a line begins with one.
_SPACES = rb" |\xc2\xa0|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xaf]|\xe2\x81\x9f|\xe3\x80\x80"
_SPACE_FIRST = re.compile(
    rb"\n[\t \xc2\xe1-\xe3](?:(?<=[\t ])|(?<=\xc2)\xa0|(?<=\xe1)\x9a|(?<=\xe2)[\x80\x81]|(?<=\xe3)\x80)"
)
_NO_WORD = re.compile(rb"\n(?:%b)*(?:\t|(?<!\n)(?=\n|\Z))" % _SPACES)

# The number of a line in the file, by the number of its stretch and its own in there.
Numbering = Callable[[int, int], int]


class Columns:
    """The columns of a file, and all that can be wrong with them.

    A stretch is lines with the line feed in front of each, not behind.
    """

    def __init__(self, name: str, choices: Choices, remarks: Remarks) -> None:
        self.attributes = choices.attributes
        self.entities = choices.entities
        self._name = name
        self._remarks = remarks
        self._is_known = False  # how many columns there are
        self._has_more = False  # … than attributes

    def checked(self, stretches: Sequence[bytes], numbering: Numbering) -> Sequence[bytes]:
        """The same stretches as they may be stored."""
        if self.entities:
            stretches = [decoded(stretch) for stretch in stretches]
        if not self._is_known:
            self._learn(stretches, numbering)
        if self._has_more:
            stretches = first_columns(stretches, len(self.attributes))
        if self._sound(stretches):
            return stretches
        return [
            stretch if self._sound([stretch]) else self._mended(stretch, at, numbering)
            for at, stretch in enumerate(stretches)
        ]

    def _learn(self, stretches: Sequence[bytes], numbering: Numbering) -> None:
        """What the columns of the first token tell: the attributes, or that there are more columns than those."""
        for at, stretch in enumerate(stretches):
            for nth, line in enumerate(stretch.split(b"\n")[1:]):
                if line:
                    self._is_known = True
                    self._learn_from(line.count(b"\t") + 1, numbering(at, nth))
                    return

    def _learn_from(self, columns: int, number: int) -> None:
        wanted = len(self.attributes)
        if not wanted and columns not in USUAL_COLUMNS:
            raise ImportFault(
                f"{self._name}, line {number:,} has {columns} columns; "
                f"say what they are: --attributes word,{','.join('abcdefgh'[: columns - 1])}"
            )
        if not wanted:
            self.attributes = USUAL_COLUMNS[columns]
        elif columns > wanted:
            self._remarks.add(SURPLUS)
            self._has_more = True

    def _sound(self, stretches: Sequence[bytes]) -> bool:
        """Whether every line has the right columns, no controls, is not blank, UTF-8 and in NFC."""
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

    def _mended(self, stretch: bytes, at: int, numbering: Numbering) -> bytes:
        """The lines one by one: blank ones left out, values cut off or filled up, what is forbidden replaced."""
        normal = unicodedata.normalize("NFC", stretch.decode("utf-8", "replace")).encode()
        if is_utf8(stretch) and self._sound(
            [normal]
        ):  # files in which everything is in another form are many
            return normal
        mended = []
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
            if not lines.clean(values[0]).strip():
                self._remarks.add(NO_WORD, number)
                continue
            mended.append(lines.token(values)[:-1])
        return b"".join([b"\n" + line for line in mended])


def first_columns(stretches: Sequence[bytes], count: int) -> list[bytes]:
    """Stretches without what their lines have behind so many columns.

    >>> first_columns([b"\\na\\tb\\tc\\nd", b"", b"\\n\\tf\\tg"], 2)
    [b'\\na\\tb\\nd', b'', b'\\n\\tf']
    """
    joined = np.frombuffer(b"".join(stretches), np.uint8)
    tabs = np.cumsum(joined == ord("\t"))
    (starts,) = np.nonzero(joined == lines.LINE_FEED)
    before = np.repeat(tabs[starts], np.diff(starts, append=len(joined)))  # those of the lines before
    kept = tabs - before < count
    ends = np.concatenate([[0], np.cumsum(kept)])[np.cumsum([0, *map(len, stretches)])].tolist()
    data = joined[kept].tobytes()
    return [data[start:end] for start, end in pairwise(ends)]


def decoded(data: bytes) -> bytes:
    """The five entities of XML as the characters that they stand for."""
    return _ENTITY.sub(lambda match: _ENTITIES[match[1]], data) if b"&" in data else data


def _is_clean(data: bytes) -> bool:
    """Whether it is UTF-8, in NFC, and without the controls beyond ASCII."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return unicodedata.is_normalized("NFC", text) and not _WIDE_CONTROLS.search(data.translate(None, _ASCII))
