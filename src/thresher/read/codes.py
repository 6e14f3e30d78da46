"""Codes and names by which people call languages."""

from __future__ import annotations

import difflib
from functools import cache

import pycld2

from thresher.read.detector import MODERN, UNKNOWN
from thresher.read.trained import trained_languages

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
} | {old.lower(): new for old, new in MODERN.items()}
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


@cache
def detected_languages() -> dict[str, str]:
    """Every language that the detector knows: its code and its English name."""
    detected = set(pycld2.DETECTED_LANGUAGES)
    codes = {MODERN.get(code, code): name for name, code in pycld2.LANGUAGES if name in detected}
    return {
        code: _NAMES.get(code) or name.replace("_", " ").title()
        for code, name in sorted(codes.items())
        if code not in _NOT_FOR_CORPORA
    }


def country_languages() -> dict[str, str]:
    """Codes of countries that people write where they mean a language, and that language."""
    return dict(_COUNTRIES)


def known_languages() -> dict[str, str]:
    """Every language that can be told from others: its code and its English name, those trained last."""
    return detected_languages() | {name: f"{name} (trained)" for name in trained_languages()}


def normalise(code: str) -> str | None:
    """The code under which a language is known here, or None.

    >>> normalise("pt-BR"), normalise("nb"), normalise("cz")
    ('pt', 'no', None)
    """
    known = known_languages()
    asked = code.strip().replace("_", "-").lower()
    while asked:
        found = _ALIASES.get(asked, asked)
        if found in known:
            return found
        asked = asked.rpartition("-")[0]  # a script or region that makes no difference here
    return None


def nearest(code: str) -> list[str]:
    """Codes of the languages that someone who wrote this may have meant, the likeliest first.

    >>> nearest("czech"), nearest("cz")
    (['cs'], ['cs'])
    """
    asked = code.strip().lower()
    known = known_languages()
    by_name = {name.lower(): code for code, name in known.items()}
    if asked in by_name:
        return [by_name[asked]]
    if asked in _COUNTRIES:
        return [_COUNTRIES[asked]]
    names = difflib.get_close_matches(asked, by_name, n=3, cutoff=0.6)
    codes = difflib.get_close_matches(asked, known, n=3, cutoff=0.6)
    return list(dict.fromkeys([by_name[name] for name in names] + codes))[:3]
