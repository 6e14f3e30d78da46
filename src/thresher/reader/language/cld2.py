"""Adapter of CLD2: languages of a text with shares and scores, and their stretches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pycld2

from thresher.reader.normalize import clean

UNKNOWN = "un"

# Codes of the detector that have been replaced since.
MODERN = {"iw": "he", "jw": "jv", "mo": "ro", "sh": "hr", "sr-ME": "cnr", "zh-TW": "zh-Hant"}
# But for a joke, and for scripts that the detector knows no language of.
_CODES = {
    code: UNKNOWN if code.startswith(("zzp", "xx-")) else MODERN.get(code, code)
    for _, code in pycld2.LANGUAGES
}


class DetectedLanguage(NamedTuple):
    """A language that CLD2 found in a text."""

    code: str
    percent: int  # of the text
    score: float  # how well letters fit; texts in other languages that are taken for it have lower ones


class Detection(NamedTuple):
    """Result for one text: the examined bytes, the languages found, and their stretches."""

    utf8: bytes
    found: tuple[DetectedLanguage, ...] = ()  # at most three, the largest first
    spans: tuple[tuple[int, int, str, str], ...] = ()  # start, size, name, code of the detector
    cleaned: bool = False  # characters were left out

    def stretches(self) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and language of each stretch of the text, in order; UNKNOWN is a language here."""
        for start, size, _, code in self.spans:
            yield start, start + size, _CODES.get(code, UNKNOWN)


def ask(text: str, *, where: bool = True) -> Detection:
    """Detect the languages of a text, and if requested their stretches; refused characters are removed first."""
    cleaned = False
    try:
        utf8 = text.encode()
        found, *spans = _detect(utf8, where)
    except (UnicodeEncodeError, pycld2.error):
        cleaned = True
        utf8 = clean(text).encode()
        found, *spans = _detect(utf8, where)
    languages = tuple(
        DetectedLanguage(_CODES[code], percent, score)
        for _, code, percent, score in found
        if percent and _CODES.get(code, UNKNOWN) != UNKNOWN
    )
    return Detection(utf8, languages, spans[0] if where else (), cleaned)


def _detect(utf8: bytes, where: bool) -> Any:
    return pycld2.detect(utf8, isPlainText=True, bestEffort=True, returnVectors=where)[2:]


def best(text: str) -> DetectedLanguage:
    """Return the largest language of a text; its code is UNKNOWN if there is none."""
    found = ask(text, where=False).found
    return found[0] if found else DetectedLanguage(UNKNOWN, 0, 0.0)
