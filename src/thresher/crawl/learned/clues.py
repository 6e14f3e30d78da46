"""What a link tells before it is followed: its URL taken apart into keys, and hints from where it stands.

A key is a number that stands for something which other URLs have too: the host, the path up to there, a word in
it. What came of those is remembered under it. All URLs of a page are taken apart at once, in one kernel over bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.crawl.learned.homes import NOBODYS, homes
from thresher.read.codes import country_languages, known_languages, normalise
from thresher.read.detector import UNKNOWN, best
from thresher.read.scan.kernel import NOTHING, NUMBER, NUMBERS, SOURCE, inner, kernel
from thresher.url import domain as domain_of
from thresher.url import host as host_of
from thresher.url import tld

# Keys of a URL, in their order; a key of 0 stands for nothing.
DOMAIN, HOST, FIRST_FOLDER, SECOND_FOLDER, THIRD_FOLDER, PATTERN, GLOBAL_PATTERN, CODE, HOST_CODE, TLD = (
    range(10)
)
NAME_LENGTH = 10  # of the last part of the path, on this host
# Keys that are not from the URL: how the link stands on its page, anywhere and on links to this host; how long its
# words are; and what kind of page it stands on.
SETTING, HOST_SETTING, HOST_ANCHOR, HOST_PARENT = range(11, 15)
# Keys under which only the first pages of hosts are remembered: what all that is known of a new host says of its
# language, and its top-level domain.
NEWCOMER, NEWCOMER_TLD = 15, 16
WORDS, MAX_WORDS = 17, 14
GRAMS, MAX_GRAMS = WORDS + MAX_WORDS, 24
KEYS = GRAMS + MAX_GRAMS
LANE = KEYS  # and behind the keys: which URLs of a host are alike
WIDTH = KEYS + 1

# What the URL says of its language, in their order.
SAYS_OURS, SAYS_OTHER, AT_HOME, ABROAD = range(4)
SAYINGS = 4

LANES = 64  # kinds of URLs of a host that are told apart
GRAM = 3
LONG_NUMBER = 3  # digits that make a name a number
MANY_WORDS = 4
NAMES_IN_QUERY = 3

Keys = NDArray[np.uint64]
Sayings = NDArray[np.float64]

_FACTOR = np.uint64(0x100000001B3)
_START = np.uint64(0xCBF29CE484222325)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_KEYS_TYPE = types.Array(types.uint64, 2, "C")
_GRID = types.Array(types.float64, 2, "C")
_SHORT = types.Array(types.int16, 1, "C")

_SLASH, _DOT, _HYPHEN, _UNDERSCORE, _QUESTION, _AND, _EQUALS, _PERCENT, _PLUS, _COLON = (
    ord(c) for c in "/.-_?&=%+:"
)
_ZERO, _NINE, _A, _Z, _CAPITAL_A, _CAPITAL_Z = (ord(c) for c in "09azAZ")


@inner
def mixed(number):
    """The same number, with every bit depending on all others."""
    number ^= number >> np.uint64(33)
    number *= _MIX
    number ^= number >> np.uint64(29)
    return number


@inner
def joined(first, second):
    """One key of two."""
    return mixed(first * _FACTOR ^ second)


@inner
def bucket(length):
    """A coarse measure of length: two steps for twice as much."""
    return int(2 * np.log2(length + 1.0))


@inner
def lower(byte):
    return byte + 32 if _CAPITAL_A <= byte <= _CAPITAL_Z else byte


@inner
def is_digit(byte):
    return _ZERO <= byte <= _NINE


@inner
def is_letter(byte):
    """Whether a byte is part of a word; an escape (%C3) is, for it stands for a letter of another script."""
    return _A <= lower(byte) <= _Z or byte >= 128 or byte == _PERCENT


@inner
def hashed(source, start, end):
    """A number for a piece of a URL, whatever its case; all numbers in it are alike, but not those of escapes."""
    code = _START
    was_digit = False
    escaped = 0
    for place in range(start, end):
        byte = lower(source[place])
        escaped = 2 if byte == _PERCENT else escaped - 1
        if is_digit(byte) and escaped < 0:
            if was_digit:
                continue
            byte = _ZERO
            was_digit = True
        else:
            was_digit = False
        code = (code ^ np.uint64(byte)) * _FACTOR
    return code


@inner
def hashed_name(source, start, end):
    """A number for a name, every character of which counts."""
    code = _START
    for place in range(start, end):
        code = (code ^ np.uint64(source[place])) * _FACTOR
    return code


@inner
def language_at(source, start, end, codes):
    """The number of the language that a piece of a URL is the code of (`cs`, `pt-br`, `zh_CN`), or 0."""
    length = end - start
    if length < 2 or length > 7:
        return 0
    base = length
    for place in range(start, end):
        if source[place] == _HYPHEN or source[place] == _UNDERSCORE:
            base = place - start
            break
    if base < 2 or base > 3 or (base < length and length - base - 1 < 2):
        return 0
    number = 0
    for place in range(start, end):
        if place == start + base:
            continue
        letter = lower(source[place]) - _A
        if letter < 0 or letter > 25:
            return 0
        if place < start + base:
            number = number * 27 + letter + 1
    return codes[number]


@inner
def language_in(source, start, end, codes):
    """The language named by a piece, or by what follows a hyphen in it (`help-cs`, `help-pt-br`), or 0."""
    found = language_at(source, start, end, codes)
    place = end - 1
    while found == 0 and place > start and end - place <= 8:
        if source[place] == _HYPHEN:
            found = language_at(source, place + 1, end, codes)
        place -= 1
    return found


@inner
def put_words(source, start, end, keys, row, count):
    """Keys of the words in a piece; returns how many there are now."""
    place = start
    while place < end and count < MAX_WORDS:
        while place < end and not (is_letter(source[place]) or is_digit(source[place])):
            place += 1
        first = place
        while place < end and (is_letter(source[place]) or is_digit(source[place])):
            place += 1
        if place - first >= 2:
            keys[row, WORDS + count] = mixed(hashed(source, first, place) ^ np.uint64(WORDS))
            count += 1
    return count


@inner
def put_grams(source, start, end, keys, row, count):
    """Keys of every three letters on end in a piece; returns how many there are now."""
    run = escaped = 0
    for place in range(start, end):
        escaped = 2 if source[place] == _PERCENT else escaped - 1
        run = run + 1 if escaped >= 0 or is_letter(source[place]) else 0
        if run >= GRAM and count < MAX_GRAMS:
            keys[row, GRAMS + count] = mixed(hashed(source, place + 1 - GRAM, place + 1) ^ np.uint64(GRAMS))
            count += 1
    return count


@inner
def take_apart(source, start, domain, end, codes, ours, keys, row, sayings):
    """Keys of one URL, and what it says of its language."""
    host_start = start
    while source[host_start] != _COLON:
        host_start += 1
    host_start += 3
    host_end = host_start
    while host_end < end and source[host_end] != _SLASH:
        host_end += 1
    path_end = host_end
    while path_end < end and source[path_end] != _QUESTION:
        path_end += 1
    last_dot = name_end = host_end
    for place in range(host_start, host_end):
        if source[place] == _COLON:
            name_end = min(name_end, place)
        elif source[place] == _DOT:
            last_dot = place

    language = 0
    label = host_start
    for place in range(host_start, last_dot + 1):
        if place == last_dot or source[place] == _DOT:
            found = language_in(source, label, place, codes)
            language = found if found else language
            label = place + 1

    host = hashed_name(source, host_start, host_end)
    folders = 0
    path = host
    last = segment = min(host_end + 1, end)
    for place in range(host_end + 1, path_end):
        if source[place] != _SLASH:
            continue
        folders += 1
        found = language_at(source, segment, place, codes)
        language = found if found else language
        if folders <= 3:
            path = joined(path, hashed(source, segment, place))
            keys[row, FIRST_FOLDER + folders - 1] = mixed(path ^ np.uint64(folders))
        last, segment = segment, place + 1
    for missing in range(min(folders, 3), 3):
        keys[row, FIRST_FOLDER + missing] = mixed(path ^ np.uint64(missing + 1 + 16))
    keys[row, THIRD_FOLDER] = joined(keys[row, THIRD_FOLDER], np.uint64(folders))
    found = language_at(source, segment, path_end, codes)
    language = found if found else language

    extension = path_end
    digits = words = 0
    in_word = False
    for place in range(segment, path_end):
        byte = source[place]
        if byte == _DOT:
            if extension < path_end:
                found = language_at(source, extension + 1, place, codes)
                language = found if found else language
            extension = place
        digits = digits + 1 if is_digit(byte) else (digits if digits >= LONG_NUMBER else 0)
        apart = byte == _HYPHEN or byte == _UNDERSCORE or byte == _PLUS or byte == _PERCENT
        words += not apart and not in_word
        in_word = not apart

    names = np.uint64(0)
    count = 0
    name = path_end + 1
    name_to = -1
    for place in range(path_end + 1, end + 1):
        if place == end or source[place] == _AND:
            if name_to < 0:
                name_to = place
            if count < NAMES_IN_QUERY:
                names += mixed(hashed(source, name, name_to))
                count += 1
            found = language_at(source, name_to + 1, place, codes) if name_to < place else 0
            language = found if found else language
            name, name_to = place + 1, -1
        elif source[place] == _EQUALS and name_to < 0:
            name_to = place

    kind = hashed(source, extension, path_end)
    shape = np.uint64(min(folders, 15) * 64 + (digits >= LONG_NUMBER) * 32 + min(words, MANY_WORDS))
    keys[row, DOMAIN] = mixed(hashed_name(source, domain, name_end) ^ np.uint64(100))
    keys[row, HOST] = mixed(host ^ np.uint64(101))
    keys[row, PATTERN] = joined(joined(joined(host, kind), shape), names)
    keys[row, GLOBAL_PATTERN] = joined(
        joined(np.uint64(102), kind), shape + np.uint64((path_end < end) * 1024)
    )
    keys[row, CODE] = joined(np.uint64(103), np.uint64(language))
    keys[row, HOST_CODE] = joined(host ^ np.uint64(104), np.uint64(language))
    keys[row, NAME_LENGTH] = joined(host ^ np.uint64(106), np.uint64(bucket(path_end - segment)))
    keys[row, TLD] = mixed(hashed(source, last_dot, name_end) ^ np.uint64(105))
    alike = joined(joined(keys[row, SECOND_FOLDER], keys[row, PATTERN]), np.uint64(language))
    keys[row, LANE] = alike % np.uint64(LANES)

    count = put_words(source, host_start, last_dot, keys, row, 0)
    put_words(source, host_end, end, keys, row, count)
    put_grams(source, last, path_end, keys, row, 0)
    sayings[row, SAYS_OURS] = language != 0 and language == ours
    sayings[row, SAYS_OTHER] = language != 0 and language != ours


@kernel(NOTHING, SOURCE, NUMBERS, NUMBERS, _SHORT, NUMBER, _KEYS_TYPE, _GRID)
def take_all_apart(
    source: NDArray[np.uint8],
    ends: NDArray[np.int64],
    domains: NDArray[np.int64],
    codes: NDArray[np.int16],
    ours: int,
    keys: Keys,
    sayings: Sayings,
) -> None:
    """Keys of URLs that stand one after the other, each up to its end, with its registered domain from there on."""
    start = 0
    for row in range(len(ends)):
        take_apart(source, start, start + domains[row], ends[row], codes, ours, keys, row, sayings)
        start = ends[row]


# Hints, in their order: what the page that links tells of a link, each from 0 to 1.
BOILERPLATE, IN_TEXT, SAME_HOST, KEPT, OURS, YIELD, TOLD_OURS, TOLD_OTHER, LISTED, ANCHOR = range(10)
HINTS = 10
MOST_YIELD = 3.0  # text per byte downloaded that counts as all one can hope for
_STEPS = 255  # a hint is kept in a byte
_NO_PARENT = bytes(4)
NOTES = HINTS + SAYINGS
NO_HINTS = bytes([_STEPS // 2, *[0] * (HINTS - 1)])
FEWEST_LETTERS = 12  # of an anchor in Latin letters whose language can be told
_MANY_ANCHORS = 50_000


class Clues:
    """Takes links apart for a corpus in one language."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._codes, self._ours = _language_codes(), _number(language)
        self._homes = homes(language)

    def of(self, urls: Sequence[str], hints: Sequence[bytes]) -> tuple[Keys, NDArray[np.float64]]:
        """The keys of links, and as numbers from 0 to 1 their hints and what their URLs say, side by side."""
        encoded = [url.encode() for url in urls]
        ends = np.cumsum([len(url) for url in encoded])
        places = [_place(host_of(url)) for url in urls]
        keys: Keys = np.zeros((len(urls), WIDTH), np.uint64)
        said = np.zeros((len(urls), SAYINGS))
        source = np.frombuffer(b"".join(encoded), np.uint8)
        starts = np.array(
            [url.index(b"/") + 2 + place for url, (place, _) in zip(encoded, places, strict=True)]
        )
        take_all_apart(source, ends, starts, self._codes, self._ours, keys, said)
        for row, (_, label) in enumerate(places):
            said[row, AT_HOME] = label in self._homes
            said[row, ABROAD] = len(label) == 2 and label not in self._homes and label not in NOBODYS
        told = np.frombuffer(b"".join(hint[:HINTS] or NO_HINTS for hint in hints), np.uint8) / _STEPS
        told = told.reshape(-1, HINTS)
        settings = _setting(told).astype(np.uint64)
        keys[:, SETTING] = _spread(settings)
        hosts = keys[:, HOST]
        keys[:, HOST_SETTING] = _spread(hosts ^ settings)
        anchors = (2 * np.log2(told[:, ANCHOR] * _STEPS + 1)).astype(np.uint64)
        keys[:, HOST_ANCHOR] = _spread(hosts ^ (anchors << np.uint64(8)))
        parents = np.frombuffer(b"".join(hint[HINTS:] or _NO_PARENT for hint in hints), np.uint32).astype(
            np.uint64
        )
        keys[:, HOST_PARENT] = _spread(hosts ^ (parents << np.uint64(16)))
        notes = np.hstack([told, said])
        keys[:, NEWCOMER] = _spread(_newcomer(notes).astype(np.uint64) << np.uint64(32))
        keys[:, NEWCOMER_TLD] = _spread(keys[:, NEWCOMER] ^ keys[:, TLD])
        return keys, notes

    def kind(self, url: str) -> bytes:
        """A mark for pages like this one, to be left with the hints of its links."""
        keys: Keys = np.zeros((1, WIDTH), np.uint64)
        source = np.frombuffer(url.encode(), np.uint8)
        place = np.zeros(1, np.int64)
        take_all_apart(
            source, place + len(source), place, self._codes, self._ours, keys, np.zeros((1, SAYINGS))
        )
        return int(keys[0, PATTERN] >> np.uint64(32)).to_bytes(4, "little")

    def tells(self, anchor: str, rel: str) -> tuple[bool, bool]:
        """Whether the words of a link, or its mark for the language of its target, tell of ours or of another."""
        _, marked, code = rel.partition("hreflang=")
        language = normalise(code.split()[0]) if marked and code.split() else anchor_language(anchor)
        return language == self._language, bool(language) and language != self._language


def hints(
    *, boilerplate: float, in_text: bool, same_host: bool, kept: bool, ours: bool, rate: float,
    told: tuple[bool, bool], listed: bool, anchor: str, kind: bytes,
) -> bytes:  # fmt: skip
    """The hints of a link, for its way through the frontier; `rate` is the yield of the page it stands on."""
    return bytes(
        (
            int(boilerplate * _STEPS),
            in_text * _STEPS,
            same_host * _STEPS,
            kept * _STEPS,
            ours * _STEPS,
            int(min(rate / MOST_YIELD, 1.0) * _STEPS),
            told[0] * _STEPS,
            told[1] * _STEPS,
            listed * _STEPS,
            min(len(anchor), _STEPS),
            *kind,
        )
    )


def _setting(told: NDArray[np.float64]) -> NDArray[np.int64]:
    """A number for how links stand on their pages."""
    sections = np.minimum(told[:, BOILERPLATE] * 4, 3).astype(np.int64)
    marks = np.stack([told[:, SAME_HOST], told[:, KEPT], told[:, OURS], told[:, LISTED]], 1) > 0.5
    settings: NDArray[np.int64] = sections * 16 + marks @ np.array([1, 2, 4, 8])
    return settings


def _newcomer(notes: NDArray[np.float64]) -> NDArray[np.int64]:
    """A number for what speaks for and against the language of a page on a host that nobody knows."""
    telling = (TOLD_OURS, TOLD_OTHER, OURS, SAME_HOST, *(HINTS + saying for saying in range(SAYINGS)))
    numbers: NDArray[np.int64] = (notes[:, telling] > 0.5) @ (1 << np.arange(len(telling)))
    return numbers


def _spread(numbers: Keys) -> Keys:
    """Numbers as keys, with every bit depending on all others."""
    spread: Keys = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    spread = (spread ^ (spread >> np.uint64(31))) * _MIX
    return spread ^ (spread >> np.uint64(29))


@lru_cache(maxsize=_MANY_ANCHORS)
def anchor_language(anchor: str) -> str:
    """The language that the words of a link are surely in, or ""."""
    if len(anchor) < FEWEST_LETTERS and all(ord(letter) < 0x300 for letter in anchor):
        return ""
    found = best(anchor)
    return found.code if found.percent >= 80 and found.code != UNKNOWN else ""


@lru_cache(maxsize=200_000)
def _place(host: str) -> tuple[int, str]:
    """Where in a host the registered domain begins, and the last label."""
    name = host.partition(":")[0]
    return max(len(name) - len(domain_of(host)), 0), tld(host)


@cache
def _language_codes() -> NDArray[np.int16]:
    """Numbers of languages by their codes of two or three letters, read as numbers to the base of 27."""
    table = np.zeros(27**3, np.int16)
    codes = {**country_languages(), **{code: code for code in known_languages()}}
    for code, language in codes.items():
        if len(code) in (2, 3) and code.isascii() and code.isalpha():
            place = 0
            for letter in code:
                place = place * 27 + ord(letter) - _A + 1
            table[place] = _number(language)
    return table


def _number(language: str) -> int:
    """The number of a language, from 1 on, or 0; scripts of a language are one, for URLs hardly tell them apart."""
    numbers = {code: number for number, code in enumerate(known_languages(), 1)}
    return numbers.get(language.partition("-")[0], 0)
