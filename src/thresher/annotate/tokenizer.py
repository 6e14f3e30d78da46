"""Tokenizer for any script: words and signs by Unicode's word boundaries, adapted to corpus linguistics.

A language has a row in the tables where it differs from the rest. Words of scripts without spaces are found by
libraries (`segmenters`) in texts of their own language. Elsewhere, and without a library, tokens are single Chinese
characters, runs of kana, and probable syllables in Thai, Lao, Khmer, Burmese, Tibetan and Javanese.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache

from thresher.annotate import characters
from thresher.annotate.abbreviations import abbreviations
from thresher.annotate.segmenters import segmenter

Tokeniser = Callable[[str], list[str]]

LONGEST_RUN = 1_000  # characters that a segmenter gets at a time, since some take quadratic time
LONGEST_NAME = 64  # characters before the @ of an e-mail address, by RFC 5321
LONGEST_BRACKET = 200  # characters in brackets inside a URL

_WORD, _MARK, _LETTER = (
    f"[{characters.word_characters()}]",
    f"[{characters.marks()}]",
    f"[{characters.letters()}]",
)
_CAPITAL, _SMALL = f"[{characters.capitals()}]", f"[{characters.small_letters()}]"

_LIKE_ITALIAN = ("co", "fur", "it", "lij", "lmo", "nap", "pms", "rm", "sc", "scn", "vec")
_LIKE_DUTCH = ("af", "fy", "li", "nds", "nl")
# Elided words before an apostrophe, which are tokens of their own in some languages.
_ELIDED = {
    "fr": "[cdjlmnstCDJLMNST]|(?:[Jj]us|[Ll]ors|[Pp]uis|[Qq]uoi)?qu|Qu",
    "ca": "[dlmnstDLMNST]",
    "oc": "[cdjlmnstCDJLMNST]|[Qq]u",
    "pt": "[dD]",
    **dict.fromkeys(_LIKE_ITALIAN, f"{_LETTER}{{1,12}}+"),  # dell'arte
}
# Words that begin or end with an apostrophe.
_CLIPPED = {
    "it": f"[Pp]o['’](?!{_WORD})",
    **dict.fromkeys(_LIKE_DUTCH, f"['’][kmnrstKMNRST](?!{_WORD})"),  # 's avonds
}
# Signs that join letters in some languages, besides hyphens and apostrophes.
_ALSO_JOINS = {
    **dict.fromkeys(("sv", "fi"), f"(?<={_LETTER}):(?={_LETTER})"),  # EU:s
    **dict.fromkeys(("he", "yi"), '(?<=[א-ת])"(?=[א-ת])'),  # צה"ל
}


def tokens(text: str, language: str = "") -> list[str]:
    """Return the words and signs of a text. Joined, they are the text without white space and control characters.

    >>> tokens("L'été, j'ai payé 3.50 € (e-mail : a@b.fr)…", "fr")
    ["L'", 'été', ',', "j'", 'ai', 'payé', '3.50', '€', '(', 'e-mail', ':', 'a@b.fr', ')', '…']
    """
    return tokeniser(language)(text)


@cache
def tokeniser(language: str = "") -> Tokeniser:
    """Return the tokenizer of a language; unknown languages get the general one."""
    library, primary = segmenter(language), language.partition("-")[0]
    if not library:
        return splitter(primary)
    split, is_run = splitter(primary, library.characters), re.compile(f"[{library.characters}]+").fullmatch
    cut = library.make()

    def segmented(text: str) -> list[str]:
        found: list[str] = []
        for token in split(text):
            if is_run(token):
                found += cut(token)
            else:
                found.append(token)
        return found

    return segmented


def splitter(language: str, whole: str = "") -> Tokeniser:
    """Return a tokenizer that leaves runs of the characters `whole` undivided, up to LONGEST_RUN."""
    plain = re.compile(_pattern(language, whole)).findall
    with_addresses = re.compile(_pattern(language, whole, addresses=True)).findall

    def split(text: str) -> list[str]:
        text = characters.clean(text).rstrip()
        if "@" in text or "://" in text or "www." in text:
            return with_addresses(text)
        return plain(text)

    return split


@cache
def _pattern(language: str, whole: str, addresses: bool = False) -> str:
    """Return the expression for a token with the space before it, which is faster than a search for the next token.

    All repetition is possessive or bounded, so that the time is linear in the length of any text.
    """
    core = _core(_ALSO_JOINS.get(language, ""))
    either = [
        *([_URL, _EMAIL] if addresses else []),
        *([f"[{whole}]{{1,{LONGEST_RUN}}}(?!{_MARK})"] if whole else []),
        *([f"(?:{_ELIDED[language]})['’](?={_WORD})"] if language in _ELIDED else []),
        *([_CLIPPED[language]] if language in _CLIPPED else []),
        _DOTTED,
        "[0-9#*]\ufe0f?\u20e3",  # keys
        core + _dot(language),
        f"[@#](?!{_MARK}){core}",
        _SYLLABLE,
        _REPEATED,
        f"[:;]['’^o-]?[()DPp](?!{_WORD})",  # smileys
        "[\U0001f1e6-\U0001f1ff]{2}",  # flags
        rf"\S(?:{_MARK}|\u200d[^\s{characters.word_characters()}])*+",
    ]
    return rf"\s*+((?:{'|'.join(either)}){_MARK}*+)"


# U.S.A., e.g., Ph.D.
_DOTTED = rf"{_LETTER}{_MARK}*+(?:\.{_LETTER}{_MARK}*+(?!{_WORD}))++\.?|(?:{_CAPITAL}{_LETTER}?\.){{2,}}+"


def _core(also_joins: str) -> str:
    """Return the expression for a word or number with the signs that join its parts."""
    joints = [
        "['’‘·‐‑-]",
        rf"(?<!\d)\.(?={_SMALL})",  # index.html, but not 3.května, which lacks a space
        r"(?<=\d)[.,:/٫٬](?=\d)",
        *([also_joins] if also_joins else []),
    ]
    return rf"{_WORD}++(?:(?=['’‘·‐‑\-.,:/٫٬\"])(?:{'|'.join(joints)}){_WORD}++)*+"


def _dot(language: str) -> str:
    """Return the expression for the dot of an abbreviation or an initial."""
    by_length: dict[int, list[str]] = {}
    for word in sorted(frozenset().union(*abbreviations(language))):
        by_length.setdefault(len(word), []).append(re.escape(word))
    known = [rf"(?<=\b(?i:{'|'.join(words)})\.)" for words in by_length.values()]
    not_a_pronoun = r"(?<!I\.)" if language == "en" else ""
    initial = rf"(?<=\b{_CAPITAL}\.){not_a_pronoun}(?=\s?{_CAPITAL})"
    return rf"(?:\.(?:{'|'.join([*known, initial])}))?+"


def _repeated(signs: Iterable[str]) -> str:
    return "|".join([*(f"{re.escape(sign)}{{2,}}+" for sign in signs), "[!?]{2,}+"])


_REPEATED = _repeated(".…-—=*~+_•|/\\<>#^'`፡")  # signs that are one token together: ... -- <<
# Consonants of Khmer, Tai Tham, Balinese and Javanese, and the signs that stack the next consonant below.
_STACKED, _STACKER = "ក-ឳ\u1a20-\u1a54\u1b05-\u1b33\ua984-\ua9b2", "\u17d2\u1a60\u1b44\ua9c0"
_SYLLABLES = (
    f"[{characters.HAN}{characters.YI}]",
    f"[{characters.HIRAGANA}ー]++",
    f"[{characters.KATAKANA}]++",
    f"[{characters.BOPOMOFO}]++",
    # A vowel that is written before its consonant, the consonant, and the signs around and after it.
    "[เ-ไເ-ໄ]?[ก-ฮກ-ຮໜ-ໟ][ะ-ฺๅ็-๎ະ-ຽ່-໎]*+",
    f"[{_STACKED}](?:[{_STACKER}][{_STACKED}]|{_MARK})*+",
    # In Burmese, consonants that are stacked below or end the syllable are part of it.
    f"[က-ဪဿၐ-ၕ](?:္[က-အ]|{_MARK}|[က-အ](?=့?်))*+",
    f"[{characters.TIBETAN}]++[་༌]?+",
    ".",
)
_SYLLABLE = f"(?=[{characters.UNSPACED}])(?:{'|'.join(_SYLLABLES)})"

# These signs are part of a URL only if more of it follows; at its end they belong to the sentence.
_ENDS_NO_URL = ".,;:!?'*"
_IN_URL = rf"""[^\s()<>\[\]{{}}|^`"«»‹›„“”‚‘’、。「」『』（），！？；：{_ENDS_NO_URL}{characters.UNSPACED}]"""
_URL = (
    r"(?:[A-Za-z][A-Za-z0-9+.-]{1,15}+://|www\.)"
    rf"(?:{_IN_URL}++|[{_ENDS_NO_URL}]{{1,8}}+(?={_IN_URL})|\((?:{_IN_URL}|[{_ENDS_NO_URL}]){{0,{LONGEST_BRACKET}}}+\))++"
)
_LABEL = f"{_WORD}++(?:-{_WORD}++)*+"
_EMAIL = rf"{_WORD}[{characters.word_characters()}.+%-]{{0,{LONGEST_NAME - 1}}}+@{_LABEL}(?:\.{_LABEL})++"
