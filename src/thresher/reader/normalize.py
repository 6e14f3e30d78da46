"""Normalisation of text: valid Unicode in normal form, without invisible characters."""

from __future__ import annotations

import re
import unicodedata

_NONCHARACTERS = "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17))
# Controls, surrogates, noncharacters, signs that turn the direction of text, soft hyphens and stray marks of
# byte order. Joiners stay: Persian and Indic words are written with them.
_UNWANTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
    f"\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]+"
)


def clean(text: str) -> str:
    """Return the text in normal form C without invisible characters. Lines and tabs stay."""
    if not text.isprintable():
        text = _UNWANTED.sub("", text)
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def one_line(text: str) -> str:
    """Return clean text with every run of white space as one space."""
    line = " ".join(text.split())
    if line.isprintable():
        return line if line.isascii() else unicodedata.normalize("NFC", line)
    return " ".join(clean(line).split())
