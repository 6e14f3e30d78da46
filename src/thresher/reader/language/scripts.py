"""The script of a text, and the scripts of languages."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

MAX_SCRIPT_CHARS = 200  # characters of a text
REMEMBERED = 20_000  # letters whose script is kept at hand
SOME = 0.1  # of the letters: Japanese is mostly Chinese characters, but has so many kana

# First and last code point and script of the blocks of letters, in order.
_BLOCKS = (
    (0x0041, 0x024F, "Latn"),
    (0x0250, 0x02AF, "Latn"),
    (0x0370, 0x03FF, "Grek"),
    (0x0400, 0x052F, "Cyrl"),
    (0x0530, 0x058F, "Armn"),
    (0x0590, 0x05FF, "Hebr"),
    (0x0600, 0x06FF, "Arab"),
    (0x0700, 0x074F, "Syrc"),
    (0x0750, 0x077F, "Arab"),
    (0x0780, 0x07BF, "Thaa"),
    (0x08A0, 0x08FF, "Arab"),
    (0x0900, 0x097F, "Deva"),
    (0x0980, 0x09FF, "Beng"),
    (0x0A00, 0x0A7F, "Guru"),
    (0x0A80, 0x0AFF, "Gujr"),
    (0x0B00, 0x0B7F, "Orya"),
    (0x0B80, 0x0BFF, "Taml"),
    (0x0C00, 0x0C7F, "Telu"),
    (0x0C80, 0x0CFF, "Knda"),
    (0x0D00, 0x0D7F, "Mlym"),
    (0x0D80, 0x0DFF, "Sinh"),
    (0x0E00, 0x0E7F, "Thai"),
    (0x0E80, 0x0EFF, "Laoo"),
    (0x0F00, 0x0FFF, "Tibt"),
    (0x1000, 0x109F, "Mymr"),
    (0x10A0, 0x10FF, "Geor"),
    (0x1100, 0x11FF, "Hang"),
    (0x1200, 0x139F, "Ethi"),
    (0x13A0, 0x13FF, "Cher"),
    (0x1400, 0x167F, "Cans"),
    (0x1780, 0x17FF, "Khmr"),
    (0x1800, 0x18AF, "Mong"),
    (0x1900, 0x194F, "Limb"),
    (0x1C90, 0x1CBF, "Geor"),
    (0x1E00, 0x1EFF, "Latn"),
    (0x1F00, 0x1FFF, "Grek"),
    (0x2D00, 0x2D2F, "Geor"),
    (0x2D30, 0x2D7F, "Tfng"),
    (0x2D80, 0x2DDF, "Ethi"),
    (0x3040, 0x30FF, "Kana"),
    (0x3130, 0x318F, "Hang"),
    (0x3400, 0x9FFF, "Hani"),
    (0xA720, 0xA7FF, "Latn"),
    (0xA980, 0xA9DF, "Java"),
    (0xAA60, 0xAA7F, "Mymr"),
    (0xAB70, 0xABBF, "Cher"),
    (0xAC00, 0xD7AF, "Hang"),
    (0xF900, 0xFAFF, "Hani"),
    (0xFB1D, 0xFB4F, "Hebr"),
    (0xFB50, 0xFDFF, "Arab"),
    (0xFE70, 0xFEFF, "Arab"),
    (0xFF21, 0xFF5A, "Latn"),
    (0xFF66, 0xFF9D, "Kana"),
    (0x20000, 0x323AF, "Hani"),
)
_STARTS = [first for first, _, _ in _BLOCKS]

# Scripts that decide: of the languages that are known here, one alone is written in them.
LONE = {
    "Armn": "hy",
    "Cans": "iu",
    "Cher": "chr",
    "Geor": "ka",
    "Grek": "el",
    "Gujr": "gu",
    "Guru": "pa",
    "Hang": "ko",
    "Kana": "ja",
    "Khmr": "km",
    "Knda": "kn",
    "Laoo": "lo",
    "Limb": "lif",
    "Mlym": "ml",
    "Mymr": "my",
    "Orya": "or",
    "Sinh": "si",
    "Syrc": "syr",
    "Taml": "ta",
    "Telu": "te",
    "Thaa": "dv",
    "Thai": "th",
}
# Languages that are written in other scripts than Latin; where Latin is one of theirs, it is listed, too.
_WRITTEN = {
    "Arab": "ar fa ur ps ug sd ks ku az ms pa tk uz kk ky ha so",
    "Beng": "bn as",
    "Cyrl": "ru uk be bg mk sr bs cnr kk ky tg mn tt ba ab uz az tk ug ro",
    "Deva": "hi mr ne bh sa ks sd",
    "Ethi": "am ti",
    "Hani": "zh zh-Hant ja ko",
    "Hebr": "he yi",
    "Java": "jv su",
    "Latn": "sr bs cnr az uz tk tt kk ug ku ms ha so jv su iu tl ro ks",
    "Mong": "mn",
    "Tibt": "bo dz",
} | {script: code for script, code in LONE.items() if script != "Hang"}


def _by_language() -> dict[str, set[str]]:
    found = {"ko": {"Hang", "Hani"}, "ja": {"Kana", "Hani"}}
    for script, codes in _WRITTEN.items():
        for code in codes.split():
            found.setdefault(code, set()).add(script)
    return found


_SCRIPTS = _by_language()
_LATIN = frozenset({"Latn"})


class _Scripts(dict[str, str]):
    """Cache of the script of each letter; "" for characters that are no letters."""

    def __missing__(self, character: str) -> str:
        if len(self) >= REMEMBERED:
            self.clear()
        point = ord(character)
        _, last, script = _BLOCKS[max(0, bisect_right(_STARTS, point) - 1)]
        self[character] = found = script if point <= last and character.isalpha() else ""
        return found


_SCRIPT_OF_LETTER = _Scripts()


def scripts_of(text: str) -> Counter[str]:
    """Count the letters of each script ("Cyrl", "Deva", …) at the beginning of a text."""
    found = Counter(map(_SCRIPT_OF_LETTER.__getitem__, text[:MAX_SCRIPT_CHARS]))
    del found[""]
    return found


def script_of(text: str) -> str:
    """Return the script of most letters at the beginning of a text, or "" if it has none."""
    found = scripts_of(text)
    if not found.total():
        return ""
    if found["Kana"] > SOME * found.total():
        return "Kana"
    return found.most_common(1)[0][0]


def is_written_in(code: str, script: str) -> bool:
    """Return True if a language can be written in a script; a text in Cyrillic is not Czech."""
    return script in _SCRIPTS.get(code, _LATIN)


def may_be(code: str, scripts: Counter[str]) -> bool:
    """Return True if a text with these scripts can be in a language, including names in other scripts."""
    mine = sum(count for script, count in scripts.items() if is_written_in(code, script))
    return mine >= SOME * scripts.total()
