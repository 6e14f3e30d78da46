"""The kernel that takes URLs apart into keys: one pass over the bytes of all URLs of a page."""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.crawl.learned import layout as at
from thresher.read.scan.kernel import NOTHING, NUMBER, NUMBERS, SOURCE, inner, kernel

GRAM = 3
LONG_NUMBER = 3  # digits that make a name a number
MANY_WORDS = 4
NAMES_IN_QUERY = 3

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
    """Keys of every three letters on end in a piece; returns how many there are now."""
    run = escaped = 0
    for place in range(start, end):
        escaped = 2 if source[place] == _PERCENT else escaped - 1
        run = run + 1 if escaped >= 0 or is_letter(source[place]) else 0
        if run >= GRAM and count < at.MAX_GRAMS:
            keys[row, at.GRAMS + count] = mixed(
                hashed(source, place + 1 - GRAM, place + 1) ^ np.uint64(at.GRAMS)
            )
            count += 1
    return count


@inner
def setting_of(notes, row):
    """A number for how a link stands on its page."""
    section = min(int(notes[row, at.BOILERPLATE] * 4), 3)
    for note in (at.SAME_HOST, at.KEPT, at.OURS, at.LISTED):
        section = 2 * section + (notes[row, note] > 0.5)
    return section


@inner
def newcomer_of(notes, row):
    """A number for what speaks for and against the language of a page on a host that nobody knows."""
    number = 1
    for note in (at.TOLD_OURS, at.TOLD_OTHER, at.OURS, at.SAME_HOST):
        number = 2 * number + (notes[row, note] > 0.5)
    for note in range(at.HINTS, at.NOTES):
        number = 2 * number + (notes[row, note] > 0.5)
    return number


@inner
def take_apart(source, start, labels, end, parent, codes, ours, keys, row, notes):
    """Keys of one URL, and what it says of its language; its domain begins behind `labels` bytes of the host."""
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
    notes[row, at.HINTS + at.SAYS_OURS] = language != 0 and language == ours
    notes[row, at.HINTS + at.SAYS_OTHER] = language != 0 and language != ours

    setting = np.uint64(setting_of(notes, row))
    keys[row, at.SETTING] = joined(np.uint64(107), setting)
    keys[row, at.HOST_SETTING] = joined(host ^ np.uint64(108), setting)
    length = np.uint64(bucket(notes[row, at.ANCHOR] * at.STEPS))
    keys[row, at.HOST_ANCHOR] = joined(host ^ np.uint64(109), length)
    keys[row, at.HOST_PARENT] = joined(host ^ np.uint64(110), parent)
    keys[row, at.NEWCOMER] = joined(np.uint64(111), np.uint64(newcomer_of(notes, row)))
    keys[row, at.NEWCOMER_TLD] = joined(keys[row, at.NEWCOMER], keys[row, at.TLD])


@kernel(NOTHING, SOURCE, SOURCE, NUMBERS, NUMBERS, _SHORT, NUMBER, _KEYS_TYPE, _GRID)
def take_all_apart(
    source: NDArray[np.uint8],
    hints: NDArray[np.uint8],
    lengths: NDArray[np.int64],
    places: NDArray[np.int64],
    codes: NDArray[np.int16],
    ours: int,
    keys: at.Keys,
    notes: at.Notes,
) -> None:
    """Keys and notes of URLs that stand one after the other, as their hints do.

    A place tells where in the host the registered domain begins, times four, and by two bits whether its language
    is at home there or abroad.
    """
    start = hint = 0
    for row in range(len(lengths)):
        for column in range(at.HINTS):
            notes[row, column] = hints[hint + column] / at.STEPS
        parent = np.uint64(0)
        for column in range(at.MARK):
            parent |= np.uint64(hints[hint + at.HINTS + column]) << np.uint64(8 * column)
        hint += at.HINTS + at.MARK
        notes[row, at.HINTS + at.AT_HOME] = places[row] & 1
        notes[row, at.HINTS + at.ABROAD] = places[row] >> 1 & 1
        end = start + lengths[row]
        take_apart(source, start, places[row] >> 2, end, parent, codes, ours, keys, row, notes)
        start = end
