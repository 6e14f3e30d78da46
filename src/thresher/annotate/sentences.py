"""Split the tokens of a paragraph into sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from thresher.annotate import characters
from thresher.annotate.abbreviations import abbreviations

T = TypeVar("T")

LONGEST_SENTENCE = 500  # tokens; lists and tables without full stops are split there
LONGEST_ORDINAL = 2  # digits: a year may end a sentence, days and centuries are ordinals

# Full stops of all scripts that have no other use, so that they always end a sentence.
_FULL_STOPS = "。．｡！？؟۔।॥።፧፨။។៕༎།᠃᠉։܀܁܂߹᙮᭞᭟꓿꛳꛷꧈꧉꫰꫱꯫‼⁇⁈⁉෴๚๛\U000111c5\U00011141"
_POSSIBLE_STOPS = ".!?…፡"  # signs that may also stand inside a sentence
_BRACKETS = frozenset(")]}）］｝」』】〉》〕〗〙〛")
# Quotation marks that may close, each with one that opens; of a sign that does both, every second one closes.
_PAIRS = """ "" '' ”“ ”„ ”” ’‘ ’‚ ’’ “„ ‘‚ »« «» ›‹ ‹› ＂＂ 〞〝 """
_CLOSING: dict[str, str] = {}
for _pair in _PAIRS.split():
    _CLOSING[_pair[0]] = _CLOSING.get(_pair[0], "") + _pair[1]
_SMALL, _CAPITAL = re.compile(f"[{characters.small_letters()}]"), re.compile(f"[{characters.capitals()}]")
_OPENING = frozenset("([{（［「『【«»‹›„“‚‘\"'¿¡–—-•*`<")
_SMILE = re.compile("[:;]['’^o-]?[()DPp]$|[\u2600-\u27bf\U0001f300-\U0001faff]")
_INITIALS = re.compile(rf"(?:[{characters.capitals()}]\.)+")
_ROMAN = re.compile("[IVXLCDM]+")
# Languages that write "3." for "third": a capital may follow, as in "am 3. Oktober".
_WITH_ORDINALS = (
    "bs cnr cs da de dsb et eu fi fo gsw hr hsb hu is lb lv nb nds nn no pl se sh sk sl sq sr szl tr"
)
_ORDINALS = frozenset(_WITH_ORDINALS.split())
_MORE_FULL_STOPS = {"el": ";;"}  # the Greek question mark, and the semicolon that is typed for it


def sentences(words: Sequence[str], language: str = "") -> list[list[str]]:
    """Return the tokens of a paragraph, sentence by sentence.

    >>> sentences(["Dr.", "Novák", "přišel", "3", ".", "května", ".", "Kdo", "ví", "?"], "cs")
    [['Dr.', 'Novák', 'přišel', '3', '.', 'května', '.'], ['Kdo', 'ví', '?']]
    """
    return cut(words, ends(words, language))


def cut(tokens: Sequence[T], places: Sequence[int]) -> list[list[T]]:
    """Split tokens at sorted places."""
    return [list(tokens[start:end]) for start, end in pairwise([0, *places])]


def ends(words: Sequence[str], language: str = "") -> list[int]:
    """Return for each sentence the number of tokens up to its end."""
    language = language.partition("-")[0]
    full_stops = _FULL_STOPS + _MORE_FULL_STOPS.get(language, "")
    possible = frozenset(full_stops + _POSSIBLE_STOPS)
    found, start, after = [], 0, 0
    for place in [place for place, word in enumerate(words) if word[-1] in possible]:
        if place < after:  # already part of the end of a sentence
            continue
        after = _after_closing(words, place + 1, possible)
        if words[place][-1] in full_stops or _is_over(words, start, place, after, language):
            found += _bounded(start, after)
            start = after
    return found + _bounded(start, len(words))


def _bounded(start: int, end: int) -> list[int]:
    """Return the end of a sentence, or the ends of its parts if it is too long."""
    return [*range(start + LONGEST_SENTENCE, end, LONGEST_SENTENCE), *([end] if end > start else [])]


def _after_closing(words: Sequence[str], after: int, possible: frozenset[str]) -> int:
    """Return the place after the closing brackets, quotes, full stops and smileys that belong to a sentence."""
    while after < len(words):
        word = words[after]
        if (
            word[0] not in possible
            and word not in _BRACKETS
            and not _SMILE.match(word)
            and not _closes(words, after)
        ):
            break
        after += 1
    return after


def _closes(words: Sequence[str], place: int) -> bool:
    """Return whether a quotation mark is the second of a pair; the first may be some sentences before."""
    sign = words[place]
    if sign not in _CLOSING:
        return False
    before = words[max(0, place - LONGEST_SENTENCE) : place]  # bounded, since many quotes are never closed
    opened, closed = sum(map(before.count, _CLOSING[sign])), before.count(sign)
    return opened % 2 == 1 if sign in _CLOSING[sign] else opened > closed


def _is_over(words: Sequence[str], start: int, place: int, after: int, language: str) -> bool:
    """Return whether a sentence ends with a sign that may also stand inside one."""
    if after == len(words):
        return True
    word = words[place]
    if word[-1] == "፡":
        return len(word) > 1  # two colons are a full stop in Ethiopic, one is a space
    follows = next((word for word in words[after : after + 3] if word not in _OPENING), "")
    if _SMALL.match(follows):
        return False
    if word[-1] != "." or word.startswith(".."):
        return True
    before = word[:-1] or (words[place - 1] if place > start else "")
    if before.isdecimal():
        is_number_of_a_list = place - start <= 1
        return not is_number_of_a_list and not (len(before) <= LONGEST_ORDINAL and language in _ORDINALS)
    if word == ".":
        return not (language in _ORDINALS and _ROMAN.fullmatch(before))
    if _INITIALS.fullmatch(word) or before.lower() in abbreviations(language).before_more:
        return False
    return bool(_CAPITAL.match(follows))
