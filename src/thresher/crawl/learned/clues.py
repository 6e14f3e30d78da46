"""What a link tells before it is followed: its URL taken apart into keys, and hints from where it stands.

A key is a number that stands for something which other URLs have too: the host, the path up to there, a word in
it. What came of those is remembered under it. All URLs of a page are taken apart at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from thresher.crawl.learned import layout as at
from thresher.crawl.learned.homes import NOBODYS, homes
from thresher.crawl.learned.urls import take_all_apart
from thresher.read.codes import country_languages, known_languages, normalise
from thresher.read.detector import UNKNOWN, best
from thresher.url import domain as domain_of
from thresher.url import host as host_of
from thresher.url import tld

MOST_YIELD = 3.0  # text per byte downloaded that counts as all one can hope for
NO_HINTS = bytes([at.STEPS // 2, *[0] * (at.HINTS - 1), *bytes(at.MARK)])
FEWEST_LETTERS = 12  # of an anchor in Latin letters whose language can be told
_MANY_ANCHORS = 50_000


class Clues:
    """Takes links apart for a corpus in one language."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._codes, self._ours = _language_codes(), _number(language)
        self._homes = homes(language)

    def of(self, urls: Sequence[str], hints: Sequence[bytes]) -> tuple[at.Keys, NDArray[np.float64]]:
        """The keys of links, and as numbers from 0 to 1 their hints and what their URLs say, side by side."""
        encoded = [url.encode() for url in urls]
        lengths = np.array([len(url) for url in encoded])
        places = np.array([_place(host_of(url), self._homes) for url in urls])
        source = np.frombuffer(b"".join(encoded), np.uint8)
        given = np.frombuffer(
            b"".join([hint if len(hint) == len(NO_HINTS) else NO_HINTS for hint in hints]), np.uint8
        )
        keys: at.Keys = np.zeros((len(urls), at.WIDTH), np.uint64)
        notes: at.Notes = np.zeros((len(urls), at.NOTED))
        take_all_apart(source, given, lengths, places, self._codes, self._ours, keys, notes)
        return keys, notes

    def tells(self, anchor: str, rel: str) -> tuple[bool, bool]:
        """Whether the words of a link, or its mark for the language of its target, tell of ours or of another."""
        _, marked, code = rel.partition("hreflang=")
        language = normalise(code.split()[0]) if marked and code.split() else anchor_language(anchor)
        return language == self._language, bool(language) and language != self._language


def mark(keys: at.Keys) -> bytes:
    """A mark for pages whose URLs have such keys, to be left with the hints of their links."""
    return int(keys[at.PATTERN] >> np.uint64(32)).to_bytes(at.MARK, "little")


def as_hints(
    *, boilerplate: float, in_text: bool, same_host: bool, kept: bool, ours: bool, rate: float,
    told: tuple[bool, bool], listed: bool, anchor: str, kind: bytes,
) -> bytes:  # fmt: skip
    """The hints of a link, for its way through the frontier; `rate` is the yield of the page it stands on."""
    return bytes(
        (
            int(boilerplate * at.STEPS),
            in_text * at.STEPS,
            same_host * at.STEPS,
            kept * at.STEPS,
            ours * at.STEPS,
            int(min(rate / MOST_YIELD, 1.0) * at.STEPS),
            told[0] * at.STEPS,
            told[1] * at.STEPS,
            listed * at.STEPS,
            min(len(anchor), at.STEPS),
            *kind,
        )
    )


@lru_cache(maxsize=_MANY_ANCHORS)
def anchor_language(anchor: str) -> str:
    """The language that the words of a link are surely in, or ""."""
    if len(anchor) < FEWEST_LETTERS and all(ord(letter) < 0x300 for letter in anchor):
        return ""
    found = best(anchor)
    return found.code if found.percent >= 80 and found.code != UNKNOWN else ""


@lru_cache(maxsize=200_000)
def _place(host: str, homes: frozenset[str]) -> int:
    """Where in a host its domain begins, and whether that is at home, or abroad; see `take_all_apart`."""
    name, label = host.partition(":")[0], tld(host)
    at_home = label in homes
    abroad = len(label) == 2 and not at_home and label not in NOBODYS
    return max(len(name) - len(domain_of(host)), 0) << 2 | abroad << 1 | at_home


@cache
def _language_codes() -> NDArray[np.int16]:
    """Numbers of languages by their codes of two or three letters, read as numbers to the base of 27."""
    table = np.zeros(27**3, np.int16)
    codes = {**country_languages(), **{code: code for code in known_languages()}}
    for code, language in codes.items():
        if len(code) in (2, 3) and code.isascii() and code.isalpha():
            place = 0
            for letter in code:
                place = place * 27 + ord(letter) - ord("a") + 1
            table[place] = _number(language)
    return table


def _number(language: str) -> int:
    """The number of a language, from 1 on, or 0; scripts of a language are one, for URLs hardly tell them apart."""
    numbers = {code: number for number, code in enumerate(known_languages(), 1)}
    return numbers.get(language.partition("-")[0], 0)
