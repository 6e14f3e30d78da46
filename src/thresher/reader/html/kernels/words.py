"""Kernels that cut a text into words and count them, with the tables of characters they need.

A word is a number made of its first letters; where words are written without spaces, every character is a
word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.jit import BYTES, FLOATS, NUMBER, NUMBERS, SOURCE, inlined, inner, kernel
from thresher.reader.html.kernels.text import HASH_FACTOR, HASH_SEED, find_key

STEM = 7  # letters by which words are distinguished, so that the forms of a word count as one
LONG = 4  # letters of words that hardly ever are function words
FEWEST_WORDS = 60  # of which something can be said
MOST_WORDS = 2_000  # that can be counted, or pairs of characters where these stand in for words

_CODES = types.Array(types.uint32, 1, "C", readonly=True)
_HASHES = types.Array(types.uint64, 1, "C")

# ── Tables ──

# Kinds of characters; 0 is the kind of all others.
_STRAIGHT, _OPENS, _CLOSES, _FIRST_MARK = 1, 2, 3, 4
_WORD, _CHARACTER = 254, 255
_LAST = 0x20000  # all further characters are Chinese, like this one
_MARKS = "()[]«»„“”「」『』（）《》【】"
_PAIRS = "() [] «» „“ „” “” 「」 『』 （） 《》 【】"
# Thai, Lao, Burmese, Khmer, Tai Tham, Balinese, Javanese, kana, Han, Yi: no spaces between words.
_SPACELESS = (
    "0e01-0e4e 0e81-0edf 1000-1049 1050-109f 1780-17d3 1a20-1aaf 1b00-1b7f 3005-3007 3041-312f 31a0-31bf "
    "31f0-31ff 3400-4dbf 4e00-a4cf a980-a9df f900-faff ff66-ff9d 20000-20000"
)
_STOPS = "՚՛՜՝՞՟։־׀׃׳״،؛؟٪۔।॥፠፡።፣፤፥፦፧፨་།༎༏༐༑၊။។៕៖᙮"  # further ends of words
_SIGNS = (
    *range(0x250),
    *range(0x2000, 0x2C00),
    *range(0x3000, 0x3041),
    *range(0xFE30, 0xFF66),
    *map(ord, _STOPS),
)

ODD = np.uint64(0x9E3779B97F4A7C15)  # multiplied by it, numbers that are near each other fly apart
NONE = np.uint64(2**64 - 1)  # in the place of the least run of words, where there is none
NO_CLASSES = np.empty(0, dtype=np.uint64)
CLASSES = 64  # of runs of words, one for each bit of a sketch
FIGURES = 8
# A run is as long as seven words. Where there are no spaces between words it is measured in characters: about four
# letters are a word (Thai, Lao, Khmer, Burmese), or two signs for a syllable or a meaning (kana, Han).
WORD_WEIGHT, SIGN_WEIGHT, LETTER_WEIGHT = 4, 2, 1
RUN_WEIGHT = 7 * WORD_WEIGHT
_FIRST_SIGN = 0x3000  # spaceless characters before it are letters, but for Javanese ones, which are rare
_TWO, _THREE = 2, 3
_ONE, _HALF, _SOME = np.uint64(1), np.uint64(32), np.uint64(29)
_SLOTS = 4_096  # more than MOST_WORDS, so that there always is a free one
_TO_SLOT = np.uint64(64 - 12)
_GROUPS = 8_192  # slots for groups of three characters; the few that share one do no harm
_TO_GROUP, _CHARACTER_BITS = np.uint64(64 - 13), np.uint64(21)
_MOST = 1_023  # times that a group is counted
_POWERS = np.array([pow(int(ODD), n, 1 << 64) for n in range(RUN_WEIGHT + 1)], dtype=np.uint64)
_LOGARITHMS = (16 * np.log2(np.maximum(1, np.arange(_MOST + 1)))).astype(np.uint8)  # of counts


def _kinds() -> NDArray[np.uint8]:
    """Return the kind of every character: in a word, a word by itself, a paired mark, or neither."""
    kinds = np.full(_LAST + 1, _WORD, dtype=np.uint8)
    kinds[[code for code in _SIGNS if not chr(code).isalnum()]] = 0
    for first, last in (stretch.split("-") for stretch in _SPACELESS.split()):
        kinds[int(first, 16) : int(last, 16) + 1] = _CHARACTER
    for kind, mark in enumerate(_MARKS, _FIRST_MARK):
        kinds[ord(mark)] = kind
    kinds[ord('"')] = _STRAIGHT
    return kinds


def _partners() -> list[tuple[bytes, bytes, bytes]]:
    """Return opening and closing marks by their kinds, with all kinds but these two."""
    kinds = {mark: bytes([kind]) for kind, mark in enumerate(_MARKS, _FIRST_MARK)}
    pairs = [(kinds[pair[0]], kinds[pair[1]]) for pair in _PAIRS.split()]
    every = bytes(range(256))
    straight = (bytes([_OPENS]), bytes([_CLOSES]))
    return [(a, b, every.translate(None, a + b)) for a, b in (straight, *pairs)]


KINDS = _kinds()
PARTNERS = _partners()

# ── Kernels ──


@inner
def cut(codes: Any, kinds: Any, words: Any, lengths: Any, marks: Any) -> tuple[int, int, int]:
    """Assign numbers to the words of a text; return the counts of words, marks, and words of one character."""
    size = found = characters = length = before = earlier = 0
    number = np.uint64(0)
    for code in codes:
        kind = int(kinds[min(int(code), _LAST)])
        if before == _STRAIGHT and kind == _WORD:  # it opens before a word; inside one it is no mark at all
            marks[found - 1] = _OPENS
            found -= earlier == _WORD
        if kind == _WORD:
            if length < STEM:
                number = (number ^ np.uint64(code)) * ODD
            length += 1
        elif length:
            words[size], lengths[size] = number, length
            size += 1
            length = 0
            number = np.uint64(0)
        if kind == _CHARACTER:
            words[size], lengths[size] = np.uint64(code) * ODD, 1
            size += 1
            characters += 1
        elif 0 < kind < _WORD:
            marks[found] = _CLOSES if kind == _STRAIGHT else kind
            found += 1
        earlier, before = before, kind
    if length:
        words[size], lengths[size] = number, length
        size += 1
    return size, found, characters


@inner
def recur(words: Any, lengths: Any) -> tuple[float, float, float]:
    """Return the shares of distinct words, of distinct long words, and of letters in the commonest long word."""
    size = len(words)
    slots = np.zeros(_SLOTS, dtype=np.int32)
    firsts = np.empty(size, dtype=np.int64)  # of each distinct word
    counts = np.zeros(size, dtype=np.int64)
    distinct = letters = 0
    for place in range(size):
        slot = np.int64(words[place] * ODD >> _TO_SLOT)
        while slots[slot] and words[firsts[slots[slot] - 1]] != words[place]:
            slot = (slot + 1) % _SLOTS
        if not slots[slot]:
            firsts[distinct] = place
            distinct += 1
            slots[slot] = distinct
        counts[slots[slot] - 1] += 1
        letters += lengths[place]
    long = distinct_long = most = 0
    for word in range(distinct):
        if lengths[firsts[word]] >= LONG:
            long += counts[word]
            distinct_long += 1
            most = max(most, counts[word] * lengths[firsts[word]])
    return distinct / size, distinct_long / max(1, long), most / letters


@inner
def repeat(words: Any, length: int, least: Any) -> tuple[float, float]:
    """Return the shares of the most frequent and of the repeated sequences of `length` words.

    Where classes are requested, the least hash of each class is written as well.
    """
    size = len(words) - length + 1
    runs = np.empty(_SLOTS, dtype=np.uint64)
    counts = np.zeros(_SLOTS, dtype=np.int32)
    most = distinct = 0
    for start in range(size):
        run = words[start]
        for place in range(start + 1, start + length):
            run = (run ^ run >> _HALF) * ODD + words[place]
        run = (run ^ run >> _HALF) * ODD
        slot = np.int64(run >> _TO_SLOT)
        while counts[slot] and runs[slot] != run:
            slot = (slot + 1) % _SLOTS
        distinct += counts[slot] == 0
        runs[slot] = run
        counts[slot] += 1
        most = max(most, counts[slot])
        if len(least):
            kind = np.int64(run % np.uint64(len(least)))
            least[kind] = min(least[kind], run)
    return most / size, 1 - distinct / size


@inner
def sketch(least: Any) -> Any:
    """Return one bit of the least hash of each class: similar texts have most bits in common."""
    bits, known = np.uint64(0), 0
    for run in least:
        bits = bits << _ONE
        if run != NONE:
            known += 1
            bits |= run >> _HALF & _ONE
    return max(bits, _ONE) if 2 * known > len(least) else np.uint64(0)


@kernel(types.uint64, _CODES, BYTES, BYTES, FLOATS)
def weigh(codes: Any, kinds: Any, marks: Any, figures: Any) -> Any:
    """Count the words of a text into `figures`, write its marks, and return its sketch.

    The figures are: words, marks, whether words are pairs of characters; and, for enough words, the results
    of `recur`, the share of the most frequent pair of words, and the share of repeated sequences of three
    words.
    """
    words = np.empty(len(codes), dtype=np.uint64)
    lengths = np.empty(len(codes), dtype=np.int64)
    size, found, characters = cut(codes, kinds, words, lengths, marks)
    spaceless = 2 * characters > size
    size = min(size - int(spaceless), MOST_WORDS)
    for place in range(size if spaceless else 0):
        words[place] = words[place] * ODD + words[place + 1]
        lengths[place] = LONG
    figures[:] = 0.0
    figures[0], figures[1], figures[2] = size, found, spaceless
    if size < FEWEST_WORDS:
        return np.uint64(0)
    words, lengths = words[:size], lengths[:size]
    figures[3], figures[4], figures[5] = recur(words, lengths)
    figures[6] = repeat(words, _TWO, NO_CLASSES.copy())[0]
    least = np.full(CLASSES, NONE)
    figures[7] = repeat(words, _THREE, least)[1]
    return sketch(least)


@kernel(NUMBER, SOURCE, BYTES, NUMBERS, NUMBERS, FLOATS)
def count_known(text: Any, ends: Any, keys: Any, columns: Any, counts: Any) -> int:
    """Count the words of a text that are in a table of open addresses; return the number of all words.

    `ends` marks bytes that are in no word; each key has a column that it is counted in.
    """
    size = 0
    value = HASH_SEED
    in_word = False
    for place in range(len(text) + 1):
        if place < len(text) and not ends[text[place]]:
            value = (value ^ text[place]) * HASH_FACTOR
            in_word = True
        elif in_word:
            row = find_key(keys, 0, len(keys), value)
            if row >= 0:
                counts[columns[row]] += 1.0
            size += 1
            value = HASH_SEED
            in_word = False
    return size


@kernel(NUMBER, _CODES, NUMBER)
def oddest(codes: Any, width: int) -> int:
    """Return the start of the stretch of `width` characters with the rarest trigrams of the text."""
    slots = np.empty(len(codes), dtype=np.int32)
    counts = np.zeros(_GROUPS, dtype=np.int32)
    group = np.uint64(0)
    for place in range(len(codes)):
        group = group << _CHARACTER_BITS | np.uint64(codes[place])
        slots[place] = np.int32((group << _ONE) * ODD >> _TO_GROUP)  # without the fourth character
        counts[slots[place]] += 1
    found = common = least = 0
    for place in range(len(codes)):
        common += _LOGARITHMS[min(counts[slots[place]], _MOST)]
        if place < width:
            least = common
        else:
            common -= _LOGARITHMS[min(counts[slots[place - width]], _MOST)]
            if common < least:
                least, found = common, place - width + 1
    return found


@inlined
def mixed(number: Any) -> Any:
    """Return a hash of a number; every bit depends on all bits of the number."""
    number = (number ^ number >> _HALF) * ODD
    number = (number ^ number >> _SOME) * ODD
    return number ^ number >> _HALF


@inner
def measure_words(codes: Any, kinds: Any, sums: Any, reach: Any) -> int:
    """Assign numbers to the words of a paragraph, sum them and their weights; return the number of words."""
    size = 0
    number, in_word = np.uint64(0), False
    for place in range(len(codes) + 1):
        code = np.int64(codes[place]) if place < len(codes) else 0
        kind = int(kinds[min(code, _LAST)]) if place < len(codes) else 0
        if kind == _WORD:
            number = (number ^ np.uint64(code)) * ODD
            in_word = True
            continue
        if in_word:
            sums[size + 1] = sums[size] * ODD + mixed(number)
            reach[size + 1] = reach[size] + WORD_WEIGHT
            size += 1
            number, in_word = np.uint64(0), False
        if kind == _CHARACTER:
            sums[size + 1] = sums[size] * ODD + mixed(np.uint64(code))
            reach[size + 1] = reach[size] + (LETTER_WEIGHT if code < _FIRST_SIGN else SIGN_WEIGHT)
            size += 1
    return size


@kernel(NUMBER, _CODES, BYTES, NUMBERS, NUMBERS, NUMBERS, _HASHES)
def hash_runs(codes: Any, kinds: Any, lengths: Any, counts: Any, weights: Any, hashes: Any) -> int:
    """Hash the shingles of each paragraph, which follow each other in `codes`; return their number.

    From every word a shingle reaches as far as RUN_WEIGHT; words too near the end of a paragraph begin none.
    """
    sums, reach = np.zeros(len(codes) + 1, dtype=np.uint64), np.zeros(len(codes) + 1, dtype=np.int64)
    begin = found = 0
    for paragraph in range(len(lengths)):
        end = begin + lengths[paragraph]
        size = measure_words(codes[begin:end], kinds, sums, reach)
        begin = end
        weights[paragraph] = reach[size]
        first = 0
        for last in range(1, size + 1):
            while reach[last] - reach[first] >= RUN_WEIGHT:
                hashes[found + first] = mixed(sums[last] - sums[first] * _POWERS[last - first])
                first += 1
        counts[paragraph] = first
        found += first
    return found
