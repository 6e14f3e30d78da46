"""Signals of machine-made text: repetition, keyword stuffing, word lists, Markov chains, link farms.

No signal depends on a language. The text is cut into words, or into pairs of characters where words are
written without spaces, and each word becomes a number; the rest is counting. Every signal is 0 where good
texts are and rises to 1 where hardly any good text is. All signals need a minimum length of text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

from thresher.reader.html.kernels.words import FEWEST_WORDS, FIGURES, KINDS, LONG, PARTNERS, weigh
from thresher.reader.quality.fingerprint import FULL_PARAGRAPH
from thresher.records import Link, SpamSignals
from thresher.urls import domain

MAX_SIGNAL_CHARS = 5_000  # characters of a text, from its beginning
MAX_SIGNAL_LINKS = 500

# Values of a measure at which a signal rises above 0, which one good page in some hundreds reaches, and is 1.
REPEATED = (0.35, 0.65)  # share of sequences of three words that stood there before
COVERED = (0.13, 0.25)  # share of all letters that are in the most frequent long word
PAIRED = (0.05, 0.10)  # share of all pairs of words that are the most frequent one
FEW_TYPES = (0.16, 0.06)  # distinct words, as a share of all
FULL = (0.0, 0.4)  # share of the text in full paragraphs: lists may well repeat a name
NEW_WORDS = (0.00, 0.10)  # distinct words beyond what the length explains
FARM_DENSITY = (20.0, 60.0)  # other sites linked to per 1,000 characters of text
FARM_SITES = (20.0, 60.0)  # number of other sites linked to
FARM_ANCHORS = (0.35, 0.65)  # share of the words of their anchors that stood in another one
DOOR_WORD = (0.05, 0.10)  # share of all letters that are in the most frequent long word
DOOR_LINKS = (15.0, 45.0)  # different anchors with one long word in common
DOOR_SHARE = (0.4, 0.8)  # of all different anchors
PADDING = 500  # characters that every page is taken to have besides its main text

# Logistic regression: good pages against chains and bags of words, of one half of the sites; the constant is
# such that one good page in a thousand gets to 0.5.
INCOHERENCE = {
    "constant": -13.5,
    "length": 0.75,
    "long_types": 12.0,
    "types": 3.1,
    "runs_again": 7.9,
    "broken": 6.7,
    "spaceless": -2.0,
}
USUAL_LENGTH = 300  # words
FEW_MARKS = 6  # brackets; the share of broken ones means little among so many


class SpamMeasures(NamedTuple):
    """Counts of a text from which the signals are computed."""

    words: int  # or pairs of characters; the others are 0 if there are few
    types: float = 0.0  # distinct words, as a share of all
    long_types: float = 0.0  # distinct long words, as a share of all long ones
    cover: float = 0.0  # share of all letters that are in the most frequent long word
    pair: float = 0.0  # share of the most frequent pair of words
    runs_again: float = 0.0  # share of runs of three words that stood there before
    marks: int = 0  # brackets and quotation marks
    broken: int = 0  # brackets and quotation marks without a partner
    spaceless: bool = False
    sketch: int = 0


def spam_signals(paragraphs: Sequence[str], links: Sequence[Link], page_url: str) -> SpamSignals:
    """Return the signals of a page's main text and links. The function is total."""
    found = measure(_beginning(paragraphs))
    lengths = list(map(len, paragraphs))
    some = links[:MAX_SIGNAL_LINKS]
    return SpamSignals(
        repetition=_ramp(found.runs_again, REPEATED),
        stuffing=_stuffing(found, lengths),
        flatness=_flatness(found),
        incoherence=_incoherence(found),
        link_farm=_link_farm(some, page_url, sum(lengths)),
        doorway=_doorway(some, found),
        sketch=found.sketch,
    )


# ── From counts to signs ──


def _stuffing(found: SpamMeasures, lengths: Sequence[int]) -> float:
    """Return the signal for one word, phrase or handful of words in paragraph after paragraph."""
    if found.words < FEWEST_WORDS:
        return 0.0
    parts = 2 if found.spaceless else 1  # a word has several pairs of characters, which share what it has
    cover, pair = (parts * _at_least(share, found.words) for share in (found.cover, found.pair))
    stuffed = max(_ramp(cover, COVERED), _ramp(pair, PAIRED), _ramp(found.types, FEW_TYPES))
    full = sum(length for length in lengths if length >= FULL_PARAGRAPH) / sum(lengths)
    return stuffed * _ramp(full, FULL)


def _at_least(share: float, words: int) -> float:
    """Return the lower bound of a share, allowing for chance: it matters for small shares of few words."""
    return share - sqrt(share / words)


def _flatness(found: SpamMeasures) -> float:
    """Return the signal for texts that hardly repeat words; longer good texts repeat more."""
    if found.words < FEWEST_WORDS:
        return 0.0
    most = 1.1 - 0.03 * log(found.words) if found.spaceless else 1.4 - 0.105 * log(found.words)
    return _ramp(found.types - most, NEW_WORDS)


def _incoherence(found: SpamMeasures) -> float:
    """Return the signal for Markov chains: only the chained sequences recur, and brackets are broken."""
    if found.words < FEWEST_WORDS:
        return 0.0
    weight = INCOHERENCE
    evidence = (
        weight["constant"]
        + weight["length"] * log(found.words / USUAL_LENGTH)
        + weight["long_types"] * found.long_types
        + weight["types"] * found.types
        + weight["runs_again"] * found.runs_again
        + weight["broken"] * found.broken / (found.marks + FEW_MARKS)
        + weight["spaceless"] * found.spaceless
    )
    return 1 / (1 + exp(-evidence))


def _link_farm(links: Sequence[Link], page_url: str, length: int) -> float:
    """Return the signal for links to many sites by the same few words; link lists name each site."""
    if not _link_count_score(len(links), length):
        return 0.0  # nearly all pages end here, before their links are looked at
    home = _host(page_url)
    name = home.removeprefix("www.")
    at_home = tuple(f"{start}{name}/" for start in ("http://www.", "https://www.", "http://", "https://"))
    away = [link for link in links if not link.url.startswith(at_home)]
    if not _link_count_score(len(away), length):
        return 0.0
    sites = {host: domain(host) for host in {_host(link.url) for link in away}}
    outside = [
        (site, link.anchor)
        for link in away
        if link.anchor and (site := sites[_host(link.url)]) != domain(home)
    ]
    score = _link_count_score(len({site for site, _ in outside}), length)
    said = "\n".join({anchor.lower() for _, anchor in outside}).split() if score else []
    return min(score, _ramp(1 - len(set(said)) / len(said), FARM_ANCHORS)) if said else 0.0


def _link_count_score(sites: int, length: int) -> float:
    """Return how far a page leads to many sites, in total and for its length."""
    density = 1_000 * sites / (length + PADDING)
    return min(_ramp(sites, FARM_SITES), _ramp(density, FARM_DENSITY))


def _doorway(links: Sequence[Link], found: SpamMeasures) -> float:
    """Return the signal for `plumber in Bath`, `plumber in Hull` … on a page full of plumbers."""
    word = _ramp(found.cover, DOOR_WORD)
    if not word or len(links) < DOOR_LINKS[0]:
        return 0.0
    anchors = set("\n".join(link.anchor for link in links if " " in link.anchor).lower().split("\n"))
    shared = Counter(filter(_is_long, "\n".join(anchors).split()))
    if not shared:
        return 0.0
    times = max(shared.values())
    return min(word, _ramp(times, DOOR_LINKS), _ramp(times / len(anchors), DOOR_SHARE))


def _is_long(word: str) -> bool:
    return len(word) >= LONG


def _host(url: str) -> str:
    return url.partition("//")[2].partition("/")[0]  # "" of what is no URL


def _ramp(value: float, between: tuple[float, float]) -> float:
    low, high = between
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _beginning(paragraphs: Iterable[str]) -> str:
    """Return as many paragraphs as are examined."""
    taken: list[str] = []
    left = MAX_SIGNAL_CHARS
    for paragraph in paragraphs:
        taken.append(paragraph[:left])
        left -= len(paragraph) + 1
        if left <= 0:
            break
    return "\n".join(taken)


# ── Counting ──


def measure(text: str) -> SpamMeasures:
    """Count the words, pairs and sequences of words and the brackets of a text."""
    codes = np.frombuffer(
        text[:MAX_SIGNAL_CHARS].lower()[:MAX_SIGNAL_CHARS].encode("utf-32-le", "replace"), dtype=np.uint32
    )
    marks, figures = np.empty(len(codes), dtype=np.uint8), np.empty(FIGURES)
    sketch = weigh(codes, KINDS, marks, figures)
    words, found, spaceless, types, long_types, cover, pair, runs_again = figures.tolist()
    if words < FEWEST_WORDS:
        return SpamMeasures(int(words), spaceless=bool(spaceless))
    brackets, broken = _brackets(marks[: int(found)].tobytes())
    return SpamMeasures(
        words=int(words),
        types=types,
        long_types=long_types,
        cover=cover,
        pair=pair,
        runs_again=runs_again,
        marks=brackets,
        broken=broken,
        spaceless=bool(spaceless),
        sketch=int(sketch),
    )


def _brackets(line: bytes) -> tuple[int, int]:
    """Return the number of brackets and quotation marks, and the number of unmatched ones.

    Lists count `1)`, smileys end in `:)` and long quotations reopen with every paragraph: such use is
    unmatched on one side only. So brackets count as broken only as far as both sides have unmatched ones.
    """
    marks = broken = 0
    for opening, closing, others in PARTNERS:
        if opening in line and closing in line:
            both = line.translate(None, others)
            pair = opening + closing if both.startswith(opening) else closing + opening  # »so« or «so»
            left = both.replace(pair, b"")
            nested = left.count(pair)
            marks += len(both)
            broken += 2 * (min(left.count(opening), left.count(closing)) - nested)
            line = line.translate(None, opening + closing)  # “ may close as well as open, but not both
    return marks, broken
