"""Kernel that computes keys and signals of URLs in one pass over the bytes of all links of a page."""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.crawler.policy.learned import feature_layout as at
from thresher.jit import NOTHING, NUMBER, NUMBERS, SOURCE, inner, kernel

GRAM_LETTERS = 3
MIN_NUMBER_DIGITS = 3  # of a name that counts as numbered
MAX_NAME_WORDS = 4  # names with more words count as one shape
MAX_QUERY_NAMES = 3  # parameters of a query that take part in the pattern

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
    """Return a bijective hash in which every bit depends on all bits of the number."""
    number ^= number >> np.uint64(33)
    number *= _MIX
    number ^= number >> np.uint64(29)
    return number


@inner
def joined(first, second):
    """Return one key for a pair of keys."""
    return mixed(first * _FACTOR ^ second)


@inner
def bucket(length):
    """Return a logarithmic bucket of a length: two buckets for each doubling."""
    return int(2 * np.log2(length + 1.0))


@inner
def lower(byte):
    """Return an ASCII letter in lower case, any other byte as it is."""
    return byte + 32 if _CAPITAL_A <= byte <= _CAPITAL_Z else byte


@inner
def is_digit(byte):
    """Return whether a byte is an ASCII digit."""
    return _ZERO <= byte <= _NINE


@inner
def is_letter(byte):
    """Return whether a byte belongs to a word; `%` does, since an escape (%C3) encodes a letter."""
    return _A <= lower(byte) <= _Z or byte >= 128 or byte == _PERCENT


@inner
def hashed(source, start, end):
    """Return a hash of a part of a URL without its case; runs of digits are equal, except in escapes."""
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
    """Return a hash of a host name in which every byte counts."""
    code = _START
    for place in range(start, end):
        code = (code ^ np.uint64(source[place])) * _FACTOR
    return code


@inner
def language_at(source, start, end, codes):
    """Return the number of a language if a part of a URL is its code (`cs`, `pt-br`, `zh_CN`), else 0."""
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
    """Return the language named by a part of a host, or by its end after a hyphen (`help-pt-br`), or 0."""
    found = language_at(source, start, end, codes)
    place = end - 1
    while found == 0 and place > start and end - place <= 8:
        if source[place] == _HYPHEN:
            found = language_at(source, place + 1, end, codes)
        place -= 1
    return found


@inner
def put_words(source, start, end, keys, row, count):
    """Write keys of the words in a part of a URL; return the number of keys of words so far."""
    place = start
    while place < end and count < at.MAX_WORDS:
        while place < end and not (is_letter(source[place]) or is_digit(source[place])):
            place += 1
        first = place
        while place < end and (is_letter(source[place]) or is_digit(source[place])):
            place += 1
        if place - first >= 2:
            keys[row, at.WORDS + count] = mixed(hashed(source, first, place) ^ np.uint64(at.WORDS))
            count += 1
    return count


@inner
def put_grams(source, start, end, keys, row, count):
    """Write keys of the character trigrams in a part of a URL; return the number of keys of trigrams so far."""
    run = escaped = 0
    for place in range(start, end):
        escaped = 2 if source[place] == _PERCENT else escaped - 1
        run = run + 1 if escaped >= 0 or is_letter(source[place]) else 0
        if run >= GRAM_LETTERS and count < at.MAX_GRAMS:
            keys[row, at.GRAMS + count] = mixed(
                hashed(source, place + 1 - GRAM_LETTERS, place + 1) ^ np.uint64(at.GRAMS)
            )
            count += 1
    return count


@inner
def setting_number(signals, row):
    """Return a number for the setting of a link on its page."""
    section = min(int(signals[row, at.BOILERPLATE] * 4), 3)
    for signal in (at.SAME_HOST, at.KEPT, at.OURS, at.LISTED):
        section = 2 * section + (signals[row, signal] > 0.5)
    return section


@inner
def new_host_number(signals, row):
    """Return a number for the signals of language of a link to an unknown host."""
    number = 1
    for signal in (at.ANCHOR_OURS, at.ANCHOR_OTHER, at.OURS, at.SAME_HOST):
        number = 2 * number + (signals[row, signal] > 0.5)
    for signal in range(at.HINTS, at.SIGNALS):
        number = 2 * number + (signals[row, signal] > 0.5)
    return number


@inner
def extract_url(source, start, labels, end, parent, codes, ours, keys, row, signals):
    """Write keys and signals of one URL; its registered domain begins after `labels` bytes of the host."""
    host_start = start
    while source[host_start] != _COLON:
        host_start += 1
    host_start += 3
    domain = host_start + labels
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
            keys[row, at.FIRST_FOLDER + folders - 1] = mixed(path ^ np.uint64(folders))
        last, segment = segment, place + 1
    for missing in range(min(folders, 3), 3):
        keys[row, at.FIRST_FOLDER + missing] = mixed(path ^ np.uint64(missing + 1 + 16))
    keys[row, at.THIRD_FOLDER] = joined(keys[row, at.THIRD_FOLDER], np.uint64(folders))
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
        digits = digits + 1 if is_digit(byte) else (digits if digits >= MIN_NUMBER_DIGITS else 0)
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
            if count < MAX_QUERY_NAMES:
                names += mixed(hashed(source, name, name_to))
                count += 1
            found = language_at(source, name_to + 1, place, codes) if name_to < place else 0
            language = found if found else language
            name, name_to = place + 1, -1
        elif source[place] == _EQUALS and name_to < 0:
            name_to = place

    kind = hashed(source, extension, path_end)
    shape = np.uint64(min(folders, 15) * 64 + (digits >= MIN_NUMBER_DIGITS) * 32 + min(words, MAX_NAME_WORDS))
    keys[row, at.DOMAIN] = mixed(hashed_name(source, domain, name_end) ^ np.uint64(100))
    keys[row, at.HOST] = mixed(host ^ np.uint64(101))
    keys[row, at.PATTERN] = joined(joined(joined(host, kind), shape), names)
    keys[row, at.GLOBAL_PATTERN] = joined(
        joined(np.uint64(102), kind), shape + np.uint64((path_end < end) * 1024)
    )
    keys[row, at.CODE] = joined(np.uint64(103), np.uint64(language))
    keys[row, at.HOST_CODE] = joined(host ^ np.uint64(104), np.uint64(language))
    keys[row, at.NAME_LENGTH] = joined(host ^ np.uint64(106), np.uint64(bucket(path_end - segment)))
    keys[row, at.TLD] = mixed(hashed(source, last_dot, name_end) ^ np.uint64(105))
    alike = joined(joined(keys[row, at.SECOND_FOLDER], keys[row, at.PATTERN]), np.uint64(language))
    keys[row, at.LANE] = alike % np.uint64(at.LANES)

    count = put_words(source, host_start, last_dot, keys, row, 0)
    put_words(source, host_end, end, keys, row, count)
    put_grams(source, last, path_end, keys, row, 0)
    signals[row, at.HINTS + at.URL_OURS] = language != 0 and language == ours
    signals[row, at.HINTS + at.URL_OTHER] = language != 0 and language != ours

    setting = np.uint64(setting_number(signals, row))
    keys[row, at.SETTING] = joined(np.uint64(107), setting)
    keys[row, at.HOST_SETTING] = joined(host ^ np.uint64(108), setting)
    length = np.uint64(bucket(signals[row, at.ANCHOR] * at.STEPS))
    keys[row, at.HOST_ANCHOR] = joined(host ^ np.uint64(109), length)
    keys[row, at.HOST_PARENT] = joined(host ^ np.uint64(110), parent)
    keys[row, at.NEW_HOST_KEY] = joined(np.uint64(111), np.uint64(new_host_number(signals, row)))
    keys[row, at.NEW_HOST_TLD] = joined(keys[row, at.NEW_HOST_KEY], keys[row, at.TLD])


@kernel(NOTHING, SOURCE, SOURCE, NUMBERS, NUMBERS, _SHORT, NUMBER, _KEYS_TYPE, _GRID)
def extract_features(
    source: NDArray[np.uint8],
    hints: NDArray[np.uint8],
    lengths: NDArray[np.int64],
    places: NDArray[np.int64],
    codes: NDArray[np.int16],
    ours: int,
    keys: at.Keys,
    signals: at.Signals,
) -> None:
    """Write keys and signals of URLs; their bytes are concatenated in `source`, their hints in `hints`.

    A place is the offset of the registered domain in the host, times four. Its lowest bit says that the top-level
    domain is a home of the language, the next that it belongs to another country.
    """
    start = hint = 0
    for row in range(len(lengths)):
        for column in range(at.HINTS):
            signals[row, column] = hints[hint + column] / at.STEPS
        parent = np.uint64(0)
        for column in range(at.MARK):
            parent |= np.uint64(hints[hint + at.HINTS + column]) << np.uint64(8 * column)
        hint += at.HINTS + at.MARK
        signals[row, at.HINTS + at.AT_HOME] = places[row] & 1
        signals[row, at.HINTS + at.ABROAD] = places[row] >> 1 & 1
        end = start + lengths[row]
        extract_url(source, start, places[row] >> 2, end, parent, codes, ours, keys, row, signals)
        start = end
