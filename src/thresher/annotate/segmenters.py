"""Libraries that find the words of scripts without spaces.

ICU knows them all, by dictionaries; for Chinese and Japanese there are libraries that know more, and come first.
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
    """What cuts runs of some characters into words."""

    characters: str
    distributions: tuple[str, ...]  # that must be installed
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
    """The best installed segmenter for a language, or None."""
    rows = SEGMENTERS.get(language) or SEGMENTERS.get(language.partition("-")[0], ())
    return next((row for row in rows if are_installed(row.distributions)), None)


def are_installed(distributions: Iterable[str]) -> bool:
    """Whether libraries can be imported; each is named as it is installed."""
    return all(find_spec(name.replace("-", "_")) for name in distributions)


def imported_from_jieba(name: str) -> Any:
    """A module of jieba."""
    with warnings.catch_warnings():
        # jieba asks setuptools for its files, which is deprecated, and has strings of an older Python.
        for message in ("pkg_resources is deprecated", ".*invalid escape sequence"):
            warnings.filterwarnings("ignore", message, category=Warning)
        return import_module(name)


@cache
def jieba_tokenizer() -> Any:
    """jieba with its own dictionary."""
    tokenizer = imported_from_jieba("jieba").Tokenizer()
    # jieba would load the dictionary from a file in /tmp that anybody may have put there.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


@cache
def fugashi_tagger() -> Any:
    """MeCab with the dictionary unidic-lite."""
    import fugashi
    import unidic_lite

    return fugashi.Tagger(f'-r "{unidic_lite.DICDIR}/mecabrc" -d "{unidic_lite.DICDIR}"')
