"""The languages of a text, and the codes and names by which people call them."""

from __future__ import annotations

import difflib
from functools import cache

import pycld2

from thresher.page import LanguageShare

MAX_CHARACTERS = 100_000  # more of a text does not change its shares
UNKNOWN = "un"

# Codes of the detector that have been replaced since.
_MODERN = {"iw": "he", "jw": "jv", "mo": "ro", "sh": "hr", "sr-ME": "cnr", "zh-TW": "zh-Hant"}
# Codes that people use for what the detector calls otherwise.
_ALIASES = {
    "nb": "no",
    "in": "id",
    "ji": "yi",
    "fil": "tl",
    "cmn": "zh",
    "zh-hans": "zh",
    "zh-cn": "zh",
    "zh-sg": "zh",
    "zh-tw": "zh-Hant",
    "zh-hk": "zh-Hant",
    "zh-mo": "zh-Hant",
    "zh-hant": "zh-Hant",
    "yue": "zh-Hant",
} | {old.lower(): new for old, new in _MODERN.items()}
# Country codes that are taken for languages, as far as they are not codes of other languages.
_COUNTRIES = {
    "cz": "cs",
    "gr": "el",
    "jp": "ja",
    "kr": "ko",
    "cn": "zh",
    "tw": "zh-Hant",
    "dk": "da",
    "se": "sv",
    "ua": "uk",
    "ee": "et",
    "si": "sl",
    "rs": "sr",
    "by": "be",
    "al": "sq",
    "vn": "vi",
    "ir": "fa",
    "il": "he",
    "gb": "en",
    "us": "en",
    "at": "de",
    "br": "pt",
    "ge": "ka",
    "am": "hy",
    "ba": "bs",
    "ph": "tl",
    "my": "ms",
    "in": "hi",
    "pk": "ur",
    "bd": "bn",
    "lk": "si",
    "mm": "my",
    "kh": "km",
    "la": "lo",
    "et": "am",
}
_NAMES = {
    "zh-Hant": "Chinese (traditional)",
    "zh": "Chinese",
    "no": "Norwegian",
    "nn": "Norwegian Nynorsk",
    "rm": "Romansh",
    "lo": "Lao",
    "ug": "Uyghur",
    "ss": "Swati",
    "st": "Sotho",
    "si": "Sinhala",
    "gd": "Scottish Gaelic",
    "war": "Waray",
    "cnr": "Montenegrin",
    "tlh": "Klingon",
}
_NOT_FOR_CORPORA = frozenset({"zzp", "xx-Bugi", "xx-Goth", UNKNOWN})


def languages(text: str) -> tuple[LanguageShare, ...]:
    """Up to three languages of a clean text with their shares, the largest first."""
    sample = text[:MAX_CHARACTERS]
    if not sample:
        return ()
    _, _, found = pycld2.detect(sample, isPlainText=True, bestEffort=True)
    size = len(text.encode())
    return tuple(
        LanguageShare(_MODERN.get(code, code), size * percent // 100, percent / 100)
        for _, code, percent, _ in found
        if percent and code != UNKNOWN
    )


@cache
def known_languages() -> dict[str, str]:
    """Every language that can be told from others: its code and its English name."""
    detected = set(pycld2.DETECTED_LANGUAGES)
    codes = {_MODERN.get(code, code): name for name, code in pycld2.LANGUAGES if name in detected}
    return {
        code: _NAMES.get(code) or name.replace("_", " ").title()
        for code, name in sorted(codes.items())
        if code not in _NOT_FOR_CORPORA
    }


def normalise(code: str) -> str | None:
    """The code under which a language is known here, or None.

    >>> normalise("pt-BR"), normalise("nb"), normalise("cz")
    ('pt', 'no', None)
    """
    asked = code.strip().replace("_", "-").lower()
    while asked:
        found = _ALIASES.get(asked, asked)
        if found in known_languages():
            return found
        asked = asked.rpartition("-")[0]  # a script or region that makes no difference here
    return None


def nearest(code: str) -> list[str]:
    """Codes of the languages that someone who wrote this may have meant, the likeliest first.

    >>> nearest("czech"), nearest("cz")
    (['cs'], ['cs'])
    """
    asked = code.strip().lower()
    by_name = {name.lower(): known for known, name in known_languages().items()}
    if asked in by_name:
        return [by_name[asked]]
    if asked in _COUNTRIES:
        return [_COUNTRIES[asked]]
    names = difflib.get_close_matches(asked, by_name, n=3, cutoff=0.6)
    codes = difflib.get_close_matches(asked, known_languages(), n=3, cutoff=0.6)
    return list(dict.fromkeys([by_name[name] for name in names] + codes))[:3]
