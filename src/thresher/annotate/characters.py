"""Classes of characters by their function in a text, as parts of regular expressions."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# Scripts that put no spaces between words.
HAN = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
HIRAGANA = "\u3041-\u3096\u309d-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
BOPOMOFO = "\u3105-\u312f\u31a0-\u31bf"
THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
LAO = "\u0e81-\u0ece\u0edc-\u0edf"
KHMER = "\u1780-\u17d3\u17d7\u17dc\u17dd"
BURMESE = "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
TIBETAN = "\u0f00\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0fbc\u0fc6"
YI = "\ua000-\ua48c"
TAI_THAM, BALINESE, JAVANESE = "\u1a20-\u1a7c\u1aa7", "\u1b00-\u1b4c", "\ua980-\ua9c0"
UNSPACED = (
    HAN
    + HIRAGANA
    + KATAKANA
    + BOPOMOFO
    + YI
    + THAI
    + LAO
    + KHMER
    + BURMESE
    + TIBETAN
    + TAI_THAM
    + BALINESE
    + JAVANESE
)

JOINERS = "\u200c\u200d"  # join parts of Persian and Indic words, and of composed emoji
# Signs inside words: Armenian question and exclamation marks, Hebrew and Mongolian signs.
_INSIDE_WORDS = "\u055a-\u055c\u055e\u055f\u05f3\u05f4\u180e"
# Beyond the basic plane, blocks of scripts are taken as a whole. They hold little else, and only short classes of
# characters are fast there.
_HIGH_LETTERS = "\U00010000-\U0001cfff\U0001d400-\U0001d7ff\U0001df00-\U0001efff"
_HIGH_MARKS = "\U000e0100-\U000e01ef"  # variants of Chinese characters
# Characters that follow an emoji and belong to it.
_SKIN_TONES, _TAGS = "\U0001f3fb-\U0001f3ff", "\U000e0020-\U000e007f"

_CONTROLS = "\x00-\x1f\x7f-\x9f\u200b\u2028\u2029"  # with the zero-width space that ends a word in Khmer
# Soft hyphens, writing directions and byte-order marks concern the layout; they are not part of words.
_LAYOUT = "\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
_CONTROL = re.compile(f"[{_CONTROLS}]+")
_LAYOUT_RUN = re.compile(f"[{_LAYOUT}]+")
_STRAY_JOINERS = re.compile(rf"(?:^|(?<=[\s!-/:-@\[-`{{-~]))[{JOINERS}]+")  # without a character to join


def clean(text: str) -> str:
    """Replace control characters by spaces, and remove layout characters and stray joiners."""
    if text.isprintable():
        return text
    return _STRAY_JOINERS.sub("", _LAYOUT_RUN.sub("", _CONTROL.sub(" ", text)))


@cache
def marks() -> str:
    """Return the characters that belong to the character before them."""
    return _category("M") + _HIGH_MARKS + _SKIN_TONES + _TAGS


@cache
def letters() -> str:
    """Return the letters of scripts that put spaces between words."""
    return "A-Za-z" + _spaced("L") + _HIGH_LETTERS


@cache
def word_characters() -> str:
    """Return the characters of words in such scripts: letters, digits, marks and some signs."""
    signs = _INSIDE_WORDS + JOINERS + _HIGH_MARKS
    return "0-9_" + letters() + _spaced("N") + _category("M") + signs


@cache
def capitals() -> str:
    """Return capital letters, with which sentences begin in scripts that have them."""
    return "A-Z" + _category("Lu") + _category("Lt")


@cache
def small_letters() -> str:
    """Return small letters, with which no sentence begins."""
    return "a-z" + _category("Ll")


def _spaced(beginning: str) -> str:
    return _category(beginning, but_not=re.compile(f"[{UNSPACED}]"))


def _category(beginning: str, but_not: re.Pattern[str] | None = None) -> str:
    """Return ranges of the characters of the basic plane, without ASCII, whose category begins so."""
    ranges: list[list[int]] = []
    for code, category in enumerate(_categories(), 0x80):
        if not category.startswith(beginning) or (but_not and but_not.match(chr(code))):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join([f"{chr(first)}-{chr(last)}" for first, last in ranges])


@cache
def _categories() -> list[str]:
    return [unicodedata.category(chr(code)) for code in range(0x80, 0x10000)]
