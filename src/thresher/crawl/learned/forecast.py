"""From what came of links like it to what to expect of a link: measures of the evidence, and trees that weigh them.

Evidence is scarce at first, so each mean starts from what is known of something wider: a folder from its host, a
host from its domain, a domain from its top-level domain and the whole crawl. It moves from there as pages come in.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.crawl.learned import layout as at
from thresher.read.scan.forest import add_votes
from thresher.read.scan.kernel import BYTES, FLOATS, GRID, NOTHING, NUMBER, NUMBERS, inner, kernel

# Columns of the memory under a key: sums over pages, of which the older count less and less. The last column of a
# slot tells which key has it. A slot is as long as what a processor fetches at once; words, which are many and tell
# little, have short ones.
TEXT, COST, PAGES, OURS, KEPT, FOUND_BEHIND, SIZE, LATE_TEXT, LATE_COST, LATE_EXPECTED = range(10)
COLUMNS = 10
WORD_COLUMNS = PAGES + 1
SLOTS, SLOT_WIDTH = 1 << 20, 16
WORD_SLOTS, WORD_WIDTH = 1 << 18, 4

REQUEST = 1_000.0  # bytes that a request costs beside the body it brings
FIRM = 15_000.0  # bytes after which a mean is as much its own as what it starts from
USUAL_COST = 8_000.0  # of a page that counts in full
FIRM_PAGES = 3.0
FIRM_BEHIND = 3_000.0
BEHIND_AT_HOME = 0.4  # more, where something speaks for our language
AT_FIRST, BEHIND_AT_FIRST = 0.1, 0.1  # text per byte that is expected of hosts before there were any, …
OURS_AT_FIRST, KEPT_AT_FIRST = 0.2, 0.1  # … and shares of pages
FIRST_PAGES = 2.5  # of a host, those that tell of hosts that are new
MOST_BEHIND = 2.0  # text that lies behind a page, per byte of it, that counts
FADE = 1.0 - 1.0 / 400  # what a page less recent by one counts under the same key …
LATE_FADE = 0.93  # … and in what came of the last ones
SURPRISING = 30_000.0  # bytes of text by which one must be wrong to be half as sure
LOOKAHEAD = 0.15  # what text behind a page counts, beside its own …
CURIOUS_LOOKAHEAD = 1.0  # … and where something new is to be tried
SEED_BONUS = 9.0  # for URLs that somebody chose
KILO = 1_000.0
LITTLE = 0.002  # text per byte that is as good as none

# Measures, in their order: text per byte of pages that a link has something in common with …
(
    OVERALL, BY_DOMAIN, BY_HOST, BY_FIRST_FOLDER, BY_SECOND_FOLDER, BY_FOLDER, BY_PATTERN, BY_FORM, BY_CODE,
    BY_HOST_CODE, BY_TLD, BY_WORDS, BEST_WORD, WORST_WORD, BY_GRAMS, BY_SETTING,
) = range(16)  # fmt: skip
TOLD = 16  # … the notes of the link …
# … how much is known, in how many pages our language was found, what lies behind them …
(
    DOMAIN_EVIDENCE, HOST_EVIDENCE, PATTERN_EVIDENCE, FOLDER_EVIDENCE, CODE_EVIDENCE, HOST_CODE_EVIDENCE,
    OURS_BY_DOMAIN, OURS_BY_HOST, OURS_BY_HOST_CODE, OURS_BY_PATTERN, OURS_BY_FOLDER, OURS_BY_CODE, OURS_OVERALL,
    BEHIND, BEHIND_HOST,
) = range(TOLD + at.NOTES, TOLD + at.NOTES + 15)  # fmt: skip
# … their size in kilobytes, two of the above as multiples of what is usual, whether there are none yet, and on the
# same host those whose links stand alike, have words and names as long, and stood on pages of the same kind; what
# came last; and how many pages were kept.
(
    PAGE_SIZE, FOLDER_RATIO, WORD_RATIO, IS_NEW,
    BY_HOST_SETTING, BY_HOST_ANCHOR, BY_HOST_PARENT, BY_NAME_LENGTH, COMBINED,
    LATE_BY_HOST, LATE_BY_PATTERN, LATE_BY_FOLDER,
    KEPT_BY_HOST, KEPT_BY_PATTERN, KEPT_BY_FOLDER, KEPT_BY_SETTING, KEPT_BY_ANCHOR, KEPT_BY_PARENT,
) = range(BEHIND_HOST + 1, BEHIND_HOST + 19)  # fmt: skip
MEASURES = KEPT_BY_PARENT + 1

# What is told of a link: the weight by which it is chosen, what would be learnt by it, the text per byte to expect
# of it, the same as trees guess it, and what lies behind it.
WEIGHT, CURIOSITY, EXPECTED, GUESSED, LIES_BEHIND = range(5)
TELLINGS = 5

_KEYS = types.Array(types.uint64, 2, "C")
_MEMORY = types.Array(types.float32, 2, "C")
TAG = np.uint64(40)  # what is above are as many bits as a number of a slot can hold
_NONE = np.uint64(0)


@inner
def place_of(key, memory):
    """The slot that a key may have."""
    return key & np.uint64(len(memory) - 1)


@inner
def tag_of(key):
    """What tells a key from others with the same slot."""
    return np.float32(key >> TAG)


@inner
def slot_of(key, memory):
    """Where the memory of a key is, or 0 if there is none."""
    slot = place_of(key, memory)
    return slot if key != _NONE and memory[slot, memory.shape[1] - 1] == tag_of(key) else _NONE


@inner
def mean(memory, slot, before, firm):
    """Text per byte under a key."""
    return (memory[slot, TEXT] + firm * before) / (memory[slot, COST] + firm)


@inner
def share(memory, slot, column, before):
    """The share of pages under a key that are in our language, or were kept."""
    return (memory[slot, column] + FIRM_PAGES * before) / (memory[slot, PAGES] + FIRM_PAGES)


@inner
def behind(memory, slot, before):
    """Text that lies behind pages under a key, per byte of them."""
    return (memory[slot, FOUND_BEHIND] + FIRM_BEHIND * before) / (memory[slot, SIZE] + FIRM_BEHIND)


@inner
def late(memory, slot, before):
    """Text per byte of the last pages under a key."""
    return (memory[slot, LATE_TEXT] + FIRM * before) / (memory[slot, LATE_COST] + FIRM)


@inner
def surprise(memory, slot, before):
    """How many times what was expected of them the last pages under a key gave."""
    return (memory[slot, LATE_TEXT] + SURPRISING * before) / (memory[slot, LATE_EXPECTED] + SURPRISING)


@inner
def evidence(memory, slot):
    return np.log1p(memory[slot, COST] / KILO)


@inner
def measure(keys, row, notes, memory, words, overall, overall_ours, out, to):
    """The evidence for one link, in measures."""
    g = overall
    domain = slot_of(keys[row, at.DOMAIN], memory)
    host = slot_of(keys[row, at.HOST], memory)
    first = slot_of(keys[row, at.FIRST_FOLDER], memory)
    second = slot_of(keys[row, at.SECOND_FOLDER], memory)
    third = slot_of(keys[row, at.THIRD_FOLDER], memory)
    pattern = slot_of(keys[row, at.PATTERN], memory)
    code = slot_of(keys[row, at.CODE], memory)
    host_code = slot_of(keys[row, at.HOST_CODE], memory)
    newcomer = slot_of(keys[row, at.NEWCOMER], memory)
    by_newcomer = mean(memory, newcomer, AT_FIRST, FIRM)
    by_tld = mean(memory, slot_of(keys[row, at.NEWCOMER_TLD], memory), by_newcomer, FIRM)
    by_domain = mean(memory, domain, by_tld, FIRM)
    by_host = mean(memory, host, by_domain, FIRM)
    names_language = notes[row, at.HINTS + at.SAYS_OURS] + notes[row, at.HINTS + at.SAYS_OTHER] > 0.0
    by_code = mean(memory, code, by_newcomer, FIRM) if names_language else by_host
    by_host_code = mean(memory, host_code, 0.5 * (by_host + by_code), FIRM)
    by_first = mean(memory, first, by_host_code, FIRM)
    by_second = mean(memory, second, by_first, FIRM)
    by_pattern = mean(memory, pattern, by_second, FIRM)
    by_third = mean(memory, third, by_pattern, FIRM)
    out[to, OVERALL] = g
    out[to, BY_DOMAIN] = by_domain
    out[to, BY_HOST] = by_host
    out[to, BY_FIRST_FOLDER] = by_first
    out[to, BY_SECOND_FOLDER] = by_second
    out[to, BY_FOLDER] = by_third
    out[to, BY_PATTERN] = by_pattern
    out[to, BY_FORM] = mean(memory, slot_of(keys[row, at.GLOBAL_PATTERN], memory), g, FIRM)
    out[to, BY_CODE] = by_code
    out[to, BY_HOST_CODE] = by_host_code
    out[to, BY_TLD] = by_tld
    total, most, least, count = 0.0, 0.0, 9.0, 0
    for column in range(at.WORDS, at.WORDS + at.MAX_WORDS):
        if keys[row, column] == _NONE:
            break
        one = mean(words, slot_of(keys[row, column], words), g, FIRM)
        total += one
        most = max(most, one)
        least = min(least, one)
        count += 1
    out[to, BY_WORDS] = total / count if count else g
    out[to, BEST_WORD] = most if count else g
    out[to, WORST_WORD] = least if count else g
    total, count = 0.0, 0
    for column in range(at.GRAMS, at.GRAMS + at.MAX_GRAMS):
        if keys[row, column] == _NONE:
            break
        total += mean(words, slot_of(keys[row, column], words), g, FIRM)
        count += 1
    out[to, BY_GRAMS] = total / count if count else g
    out[to, BY_SETTING] = mean(memory, slot_of(keys[row, at.SETTING], memory), g, FIRM)
    for column in range(at.NOTES):
        out[to, TOLD + column] = notes[row, column]
    setting = slot_of(keys[row, at.HOST_SETTING], memory)
    anchor = slot_of(keys[row, at.HOST_ANCHOR], memory)
    parent = slot_of(keys[row, at.HOST_PARENT], memory)
    by_setting = mean(memory, setting, by_host_code, FIRM)
    by_anchor = mean(memory, anchor, by_host_code, FIRM)
    by_parent = mean(memory, parent, by_host_code, FIRM)
    by_length = mean(memory, slot_of(keys[row, at.NAME_LENGTH], memory), by_host_code, FIRM)
    usual = max(by_host_code, LITTLE)
    ratio = max(by_setting, LITTLE) * max(by_anchor, LITTLE) * max(by_parent, LITTLE) * max(by_length, LITTLE)
    out[to, BY_HOST_SETTING] = by_setting
    out[to, BY_HOST_ANCHOR] = by_anchor
    out[to, BY_HOST_PARENT] = by_parent
    out[to, BY_NAME_LENGTH] = by_length
    out[to, COMBINED] = min(by_third * np.sqrt(ratio / usual**4), 3.0)
    out[to, DOMAIN_EVIDENCE] = evidence(memory, domain)
    out[to, HOST_EVIDENCE] = evidence(memory, host)
    out[to, PATTERN_EVIDENCE] = evidence(memory, pattern)
    out[to, FOLDER_EVIDENCE] = evidence(memory, third)
    out[to, CODE_EVIDENCE] = evidence(memory, code)
    out[to, HOST_CODE_EVIDENCE] = evidence(memory, host_code)
    ours_newcomer = share(memory, newcomer, OURS, OURS_AT_FIRST)
    ours_domain = share(memory, domain, OURS, ours_newcomer)
    ours_host = share(memory, host, OURS, ours_domain)
    ours_code = share(memory, code, OURS, ours_newcomer) if names_language else ours_host
    ours_host_code = share(memory, host_code, OURS, 0.5 * (ours_host + ours_code))
    ours_pattern = share(memory, pattern, OURS, ours_host_code)
    out[to, OURS_BY_DOMAIN] = ours_domain
    out[to, OURS_BY_HOST] = ours_host
    out[to, OURS_BY_HOST_CODE] = ours_host_code
    out[to, OURS_BY_PATTERN] = ours_pattern
    out[to, OURS_BY_FOLDER] = share(memory, third, OURS, ours_pattern)
    out[to, OURS_BY_CODE] = ours_code
    out[to, OURS_OVERALL] = overall_ours
    at_home = max(
        notes[row, at.TOLD_OURS], notes[row, at.HINTS + at.SAYS_OURS], notes[row, at.HINTS + at.AT_HOME]
    )
    behind_host = behind(memory, host, BEHIND_AT_FIRST + BEHIND_AT_HOME * at_home)
    behind_pattern = behind(memory, pattern, behind_host)
    out[to, BEHIND] = min(behind(memory, third, behind_pattern), MOST_BEHIND)
    out[to, BEHIND_HOST] = behind_host
    out[to, PAGE_SIZE] = memory[pattern, SIZE] / max(1.0, memory[pattern, PAGES]) / KILO
    out[to, FOLDER_RATIO] = by_third / max(g, 1e-3)
    out[to, WORD_RATIO] = out[to, WORST_WORD] / max(g, 1e-3)
    out[to, LATE_BY_HOST] = late(memory, host, by_host)
    out[to, LATE_BY_PATTERN] = late(memory, pattern, by_pattern)
    out[to, LATE_BY_FOLDER] = late(memory, third, by_third)
    kept_domain = share(memory, domain, KEPT, share(memory, newcomer, KEPT, KEPT_AT_FIRST))
    kept_host = share(memory, host, KEPT, kept_domain)
    kept_pattern = share(memory, pattern, KEPT, share(memory, host_code, KEPT, kept_host))
    out[to, KEPT_BY_HOST] = kept_host
    out[to, KEPT_BY_PATTERN] = kept_pattern
    out[to, KEPT_BY_FOLDER] = share(memory, third, KEPT, kept_pattern)
    out[to, KEPT_BY_SETTING] = share(memory, setting, KEPT, kept_host)
    out[to, KEPT_BY_ANCHOR] = share(memory, anchor, KEPT, kept_host)
    out[to, KEPT_BY_PARENT] = share(memory, parent, KEPT, kept_host)
    out[to, IS_NEW] = memory[pattern, PAGES] < 0.5


@kernel(NOTHING, _KEYS, GRID, NUMBERS, _MEMORY, _MEMORY, FLOATS, NUMBER, BYTES, FLOATS, FLOATS, GRID, GRID)
def forecast(
    keys: at.Keys,
    notes: NDArray[np.float64],
    rows: NDArray[np.int64],
    memory: NDArray[np.float32],
    words: NDArray[np.float32],
    overall: NDArray[np.float64],
    depth: int,
    columns: NDArray[np.uint8],
    bounds: NDArray[np.float64],
    values: NDArray[np.float64],
    measures: NDArray[np.float64],
    told: NDArray[np.float64],
) -> None:
    """What is to be told of some links, and the measures it is told by.

    What trees guess is corrected by how wrong they were lately about the host and the folder.
    """
    for number in range(len(rows)):
        measure(keys, rows[number], notes, memory, words, overall[0], overall[1], measures, number)
    places = np.arange(len(rows)).astype(np.uint64)
    guesses = np.zeros(len(rows))
    add_votes(measures, places, 0, len(values) >> depth, depth, columns, bounds, values, guesses)
    for number in range(len(rows)):
        row = rows[number]
        guessed = max(guesses[number], 0.0)
        folder, host = slot_of(keys[row, at.THIRD_FOLDER], memory), slot_of(keys[row, at.HOST], memory)
        expected = guessed * surprise(memory, folder, surprise(memory, host, 1.0))
        lies_behind = measures[number, BEHIND]
        told[number, WEIGHT] = expected + LOOKAHEAD * lies_behind + SEED_BONUS * notes[row, at.CHOSEN]
        told[number, CURIOSITY] = (expected + CURIOUS_LOOKAHEAD * lies_behind) * measures[number, IS_NEW]
        told[number, EXPECTED] = expected
        told[number, GUESSED] = guessed
        told[number, LIES_BEHIND] = lies_behind


@kernel(NOTHING, GRID, NUMBER, BYTES, FLOATS, FLOATS, FLOATS)
def reckon(
    measures: NDArray[np.float64],
    depth: int,
    columns: NDArray[np.uint8],
    bounds: NDArray[np.float64],
    values: NDArray[np.float64],
    chances: NDArray[np.float64],
) -> None:
    """The chance that each link leads to a page that is kept, by its measures."""
    chances[:] = 0.0
    places = np.arange(len(chances)).astype(np.uint64)
    add_votes(measures, places, 0, len(values) >> depth, depth, columns, bounds, values, chances)
    for row in range(len(chances)):
        chances[row] = 1.0 / (1.0 + np.exp(-chances[row]))


@inner
def claim(memory, slot, key, columns):
    """Whether a key may use its slot: it is free, or has been the key's, or little is left of whose it was."""
    tag = memory.shape[1] - 1
    if memory[slot, tag] == tag_of(key):
        return True
    for each in range(columns):
        memory[slot, each] *= 0.5
    if memory[slot, PAGES] >= 0.5:
        return False
    for each in range(columns):
        memory[slot, each] = 0.0
    memory[slot, tag] = tag_of(key)
    return True


@kernel(NUMBER, _KEYS, NUMBER, _MEMORY, _MEMORY, *[types.float64] * 4, NUMBERS)
def remember(
    keys: at.Keys,
    row: int,
    memory: NDArray[np.float32],
    words: NDArray[np.float32],
    text: float,
    cost: float,
    ours: float,
    guessed: float,
    changed: NDArray[np.int64],
) -> int:
    """Add a page to the memory under each of its keys; `changed` gets the slots, the result is how many.

    Slots of words are counted on from those of the memory.
    A large page counts as one of usual size: it is one piece of evidence, not many. A key whose slot belongs to
    another wears that one down, and has the slot once little is left of it.
    """
    count = 0
    scale = min(1.0, USUAL_COST / cost)
    known = memory[slot_of(keys[row, at.HOST], memory), PAGES] > FIRST_PAGES
    for column in range(at.KEYS):
        key = keys[row, column]
        if key == _NONE or (known and (column == at.NEWCOMER or column == at.NEWCOMER_TLD)):
            continue
        is_word = column >= at.WORDS
        slot = place_of(key, words if is_word else memory)
        number = slot + np.uint64(SLOTS if is_word else 0)
        again = slot == _NONE
        for before in range(count):
            again |= changed[before] == number
        if again:
            continue
        if is_word:
            if claim(words, slot, key, WORD_COLUMNS):
                for each in range(WORD_COLUMNS):
                    words[slot, each] *= FADE
                words[slot, TEXT] += scale * text
                words[slot, COST] += scale * cost
                words[slot, PAGES] += 1.0
        elif claim(memory, slot, key, COLUMNS):
            for each in range(LATE_TEXT):
                memory[slot, each] *= FADE
            for each in range(LATE_TEXT, COLUMNS):
                memory[slot, each] *= LATE_FADE
            memory[slot, TEXT] += scale * text
            memory[slot, COST] += scale * cost
            memory[slot, SIZE] += cost
            memory[slot, LATE_TEXT] += scale * text
            memory[slot, LATE_COST] += scale * cost
            memory[slot, LATE_EXPECTED] += scale * cost * guessed
            memory[slot, PAGES] += 1.0
            memory[slot, OURS] += ours
            memory[slot, KEPT] += text > 0.0
        changed[count] = number
        count += 1
    return count


@kernel(NUMBER, _KEYS, NUMBER, _MEMORY, types.float64, NUMBERS)
def credit(
    keys: at.Keys,
    row: int,
    memory: NDArray[np.float32],
    text: float,
    changed: NDArray[np.int64],
) -> int:
    """Text was found behind a page: remember it under the keys of that; `changed` gets the slots, as above."""
    count = 0
    for column in (at.HOST, at.FIRST_FOLDER, at.SECOND_FOLDER, at.THIRD_FOLDER, at.PATTERN):
        slot = slot_of(keys[row, column], memory)
        again = slot == _NONE
        for before in range(count):
            again |= changed[before] == slot
        if not again:
            memory[slot, FOUND_BEHIND] += text
            changed[count] = slot
            count += 1
    return count
