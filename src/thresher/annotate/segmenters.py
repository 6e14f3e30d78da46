"""Segmenters: libraries that find the words of scripts without spaces.

ICU has dictionaries for all of these scripts. For Chinese and Japanese, more accurate libraries come first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from msgspec import Struct

from thresher.annotate.characters import BURMESE, HAN, HIRAGANA, KATAKANA, KHMER, LAO, THAI

Cut = Callable[[str], Iterable[str]]

JAPANESE = HAN + HIRAGANA + KATAKANA


class Segmenter(Struct, frozen=True):
    """A library that splits runs of some characters into words: a row of `SEGMENTERS`."""

    characters: str
    distributions: tuple[str, ...]  # libraries that must be installed
    make: Callable[[], Cut]


def _with_icu(language: str) -> Callable[[], Cut]:
    def make() -> Cut:
        from icu4py.breakers import WordBreaker

        return lambda run: WordBreaker(run, language)

    return make


def _with_jieba() -> Cut:
    cut: Cut = jieba_tokenizer().lcut
    return cut


def _with_fugashi() -> Cut:
    tagger = fugashi_tagger()
    return lambda run: [node.surface for node in tagger(run)]


_JIEBA = Segmenter(HAN, ("jieba",), _with_jieba)
_ICU_FOR_CHINESE = Segmenter(HAN, ("icu4py",), _with_icu("zh"))
SEGMENTERS: dict[str, tuple[Segmenter, ...]] = {
    "zh": (_JIEBA, _ICU_FOR_CHINESE),
    "zh-Hant": (_ICU_FOR_CHINESE, _JIEBA),  # jieba's dictionary has few words in traditional characters
    "ja": (
        Segmenter(JAPANESE, ("fugashi", "unidic-lite"), _with_fugashi),
        Segmenter(JAPANESE, ("icu4py",), _with_icu("ja")),
    ),
    "th": (Segmenter(THAI, ("icu4py",), _with_icu("th")),),
    "lo": (Segmenter(LAO, ("icu4py",), _with_icu("lo")),),
    "km": (Segmenter(KHMER, ("icu4py",), _with_icu("km")),),
    "my": (Segmenter(BURMESE, ("icu4py",), _with_icu("my")),),
}


def segmenter(language: str) -> Segmenter | None:
    """Return the best segmenter that is installed for a language, or None."""
    rows = SEGMENTERS.get(language) or SEGMENTERS.get(language.partition("-")[0], ())
    return next((row for row in rows if are_installed(row.distributions)), None)


def are_installed(distributions: Iterable[str]) -> bool:
    """Return whether libraries, named as they are installed, can be imported."""
    return all(find_spec(name.replace("-", "_")) for name in distributions)


def imported_from_jieba(name: str) -> Any:
    """Import a module of jieba without its warnings."""
    with warnings.catch_warnings():
        # jieba finds its files by a deprecated function, and has strings of an older Python.
        for message in ("pkg_resources is deprecated", ".*invalid escape sequence"):
            warnings.filterwarnings("ignore", message, category=Warning)
        return import_module(name)


@cache
def jieba_tokenizer() -> Any:
    """Return a tokenizer of jieba with its own dictionary."""
    tokenizer = imported_from_jieba("jieba").Tokenizer()
    # By default jieba loads a cached dictionary from /tmp, where any user can put another one.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


@cache
def fugashi_tagger() -> Any:
    """Return MeCab with the dictionary unidic-lite."""
    import fugashi
    import unidic_lite

    return fugashi.Tagger(f'-r "{unidic_lite.DICDIR}/mecabrc" -d "{unidic_lite.DICDIR}"')
