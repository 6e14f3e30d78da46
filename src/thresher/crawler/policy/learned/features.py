"""Features of a link before it is followed: keys of its URL, and hints from its place on the page.

A key is a hash of a property that other URLs may share: the host, a folder, a word. The results of pages are
remembered under their keys. The features of all links of a page are computed in one call of a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from thresher.crawler.policy.learned import feature_layout as at
from thresher.crawler.policy.learned.tld_languages import GENERIC_CCTLDS, home_tlds
from thresher.crawler.policy.learned.url_features import extract_features
from thresher.reader.language.cld2 import UNKNOWN, best
from thresher.reader.language.codes import country_languages, known_languages, normalise
from thresher.urls import domain as domain_of
from thresher.urls import host as host_of
from thresher.urls import tld

MAX_YIELD_HINT = 3.0  # text per byte downloaded at which the hint of a page's yield saturates
EMPTY_HINTS = bytes([at.STEPS // 2, *[0] * (at.HINTS - 1), *bytes(at.MARK)])
MIN_ANCHOR_LETTERS = 12  # of an anchor in Latin script; the language of a shorter one is not identified
_ANCHOR_CACHE = 50_000


class FeatureExtractor:
    """Computes the features of links for a corpus in one language."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._codes, self._ours = _language_codes(), _number(language)
        self._home_tlds = home_tlds(language)

    def of(self, urls: Sequence[str], hints: Sequence[bytes]) -> tuple[at.Keys, NDArray[np.float64]]:
        """Return the keys of links, and their hints and URL signals as numbers from 0 to 1.

        Hints of the wrong length, which another version may have stored, count as no hints.
        """
        encoded = [url.encode() for url in urls]
        lengths = np.array([len(url) for url in encoded])
        places = np.array([_place(host_of(url), self._home_tlds) for url in urls])
        source = np.frombuffer(b"".join(encoded), np.uint8)
        given = np.frombuffer(
            b"".join([hint if len(hint) == len(EMPTY_HINTS) else EMPTY_HINTS for hint in hints]), np.uint8
        )
        keys: at.Keys = np.zeros((len(urls), at.WIDTH), np.uint64)
        signals: at.Signals = np.zeros((len(urls), at.SIGNAL_COLUMNS))
        extract_features(source, given, lengths, places, self._codes, self._ours, keys, signals)
        return keys, signals

    def language_signals(self, anchor: str, rel: str) -> tuple[bool, bool]:
        """Return whether hreflang or anchor names the language of the corpus, and whether it names another one."""
        _, marked, code = rel.partition("hreflang=")
        language = normalise(code.split()[0]) if marked and code.split() else anchor_language(anchor)
        return language == self._language, bool(language) and language != self._language


def page_mark(keys: at.Keys) -> bytes:
    """Return the mark of the kind of page with such keys; it is stored with the hints of its links."""
    return int(keys[at.PATTERN] >> np.uint64(32)).to_bytes(at.MARK, "little")


def encode_hints(
    *, boilerplate: float, in_text: bool, same_host: bool, kept: bool, ours: bool, rate: float,
    predictions: tuple[bool, bool], listed: bool, anchor: str, kind: bytes,
) -> bytes:  # fmt: skip
    """Encode the hints of a link for the frontier; `rate` is the yield of its page, `kind` the mark of its page."""
    return bytes(
        (
            int(boilerplate * at.STEPS),
            in_text * at.STEPS,
            same_host * at.STEPS,
            kept * at.STEPS,
            ours * at.STEPS,
            int(min(rate / MAX_YIELD_HINT, 1.0) * at.STEPS),
            predictions[0] * at.STEPS,
            predictions[1] * at.STEPS,
            listed * at.STEPS,
            min(len(anchor), at.STEPS),
            *kind,
        )
    )


@lru_cache(maxsize=_ANCHOR_CACHE)
def anchor_language(anchor: str) -> str:
    """Return the language of an anchor, or "" if it is too short or uncertain."""
    if len(anchor) < MIN_ANCHOR_LETTERS and all(ord(letter) < 0x300 for letter in anchor):
        return ""
    found = best(anchor)
    return found.code if found.percent >= 80 and found.code != UNKNOWN else ""


@lru_cache(maxsize=200_000)
def _place(host: str, home_tlds: frozenset[str]) -> int:
    """Return the offset of the domain in a host, and two bits for its TLD; see `extract_features`."""
    name, label = host.partition(":")[0], tld(host)
    at_home = label in home_tlds
    abroad = len(label) == 2 and not at_home and label not in GENERIC_CCTLDS
    return max(len(name) - len(domain_of(host)), 0) << 2 | abroad << 1 | at_home


@cache
def _language_codes() -> NDArray[np.int16]:
    """Return the numbers of languages, indexed by their codes of two or three letters read in base 27."""
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
    """Return the number of a language, from 1, or 0; its scripts are one, since URLs rarely name the script."""
    numbers = {code: number for number, code in enumerate(known_languages(), 1)}
    return numbers.get(language.partition("-")[0], 0)
