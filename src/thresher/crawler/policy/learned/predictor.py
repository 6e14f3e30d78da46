"""Kernels of the learned policy: measures of the evidence for a link, and predictions by trees over the measures.

Evidence is scarce at first, so each mean is shrunk towards the mean of a wider group: a folder towards its host, a
host towards its domain, a domain towards its top-level domain and the whole crawl. The more pages, the less it is
shrunk.

The effect of the constants below is measured together by `python -m bench.policy` (bench/RESULTS.md). The trees
were trained with them: after a change, train again with `thresher_lab.training.train_policy`.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.crawler.policy.learned import feature_layout as at
from thresher.jit import BYTES, FLOATS, GRID, NOTHING, NUMBER, NUMBERS, inner, kernel
from thresher.reader.html.kernels.forest import add_votes

# Columns of a slot: fading sums over the pages with its key. The last column holds the tag of the key. A slot is as
# long as a cache line. Words, which are many and weak evidence, have short slots.
TEXT, COST, PAGES, OURS, KEPT, FOUND_BEHIND, SIZE, LATE_TEXT, LATE_COST, LATE_EXPECTED = range(10)
COLUMNS = 10
WORD_COLUMNS = PAGES + 1
SLOTS, SLOT_WIDTH = 1 << 20, 16
WORD_SLOTS, WORD_WIDTH = 1 << 18, 4

REQUEST_BYTES = 1_000.0  # cost of a request beside the body it brings
PRIOR_BYTES = 15_000.0  # weight of the prior of a yield: with as many bytes downloaded, both count the same
USUAL_PAGE_BYTES = 8_000.0  # a larger page counts like a page of this size
PRIOR_PAGES = 3.0  # weight of the prior of a share of pages
PRIOR_BEHIND_BYTES = 3_000.0  # weight of the prior of the text behind pages
PRIOR_BEHIND_AT_HOME = 0.4  # added to PRIOR_BEHIND if a signal speaks for the language of the corpus
PRIOR_YIELD, PRIOR_BEHIND = 0.1, 0.1  # text per byte expected before there is any evidence
PRIOR_OURS, PRIOR_KEPT = 0.2, 0.1  # shares of pages expected before there is any evidence
# Fading count of pages of a host after which its pages are no evidence about new hosts.
FIRST_HOST_PAGES = 2.5
MAX_BEHIND = 2.0  # cap on the text behind a page, per byte of the page
FADE = 1.0 - 1.0 / 400  # weight that a page keeps with each later page under the same key
LATE_FADE = 0.93  # the same for the sums of the most recent pages
SURPRISE_BYTES = 30_000.0  # weight of the prior of the correction factor, in bytes of text
LOOKAHEAD = 0.15  # value of a byte of text behind a page; a byte of its own text has value 1
CURIOUS_LOOKAHEAD = 1.0  # the same where the crawl explores
SEED_BONUS = 9.0  # added to the weight of a seed, so that seeds come first
BYTES_PER_KB = 1_000.0
NEGLIGIBLE_YIELD = 0.002  # text per byte; keeps ratios of yields finite

# Measures, in column order. First, the text per byte of pages that share a feature with the link.
(
    OVERALL, BY_DOMAIN, BY_HOST, BY_FIRST_FOLDER, BY_SECOND_FOLDER, BY_FOLDER, BY_PATTERN, BY_FORM, BY_CODE,
    BY_HOST_CODE, BY_TLD, BY_WORDS, BEST_WORD, WORST_WORD, BY_GRAMS, BY_SETTING,
) = range(16)  # fmt: skip
SIGNALS_START = 16  # Then, the hints and signals of the link.
# Then, the amount of evidence, the share of pages in the language of the corpus, and the text behind pages.
(
    DOMAIN_EVIDENCE, HOST_EVIDENCE, PATTERN_EVIDENCE, FOLDER_EVIDENCE, CODE_EVIDENCE, HOST_CODE_EVIDENCE,
    OURS_BY_DOMAIN, OURS_BY_HOST, OURS_BY_HOST_CODE, OURS_BY_PATTERN, OURS_BY_FOLDER, OURS_BY_CODE, OURS_OVERALL,
    BEHIND, BEHIND_HOST,
) = range(SIGNALS_START + at.SIGNALS, SIGNALS_START + at.SIGNALS + 15)  # fmt: skip
# Then, the mean size of pages in kilobytes, two of the above relative to the mean of the crawl, and whether the
# pattern is new; yields by features of the link on the same host (its setting, the lengths of its anchor and its
# name, the kind of its page); yields of the most recent pages; and shares of pages kept.
(
    PAGE_SIZE, FOLDER_RATIO, WORD_RATIO, IS_NEW,
    BY_HOST_SETTING, BY_HOST_ANCHOR, BY_HOST_PARENT, BY_NAME_LENGTH, COMBINED,
    LATE_BY_HOST, LATE_BY_PATTERN, LATE_BY_FOLDER,
    KEPT_BY_HOST, KEPT_BY_PATTERN, KEPT_BY_FOLDER, KEPT_BY_SETTING, KEPT_BY_ANCHOR, KEPT_BY_PARENT,
) = range(BEHIND_HOST + 1, BEHIND_HOST + 19)  # fmt: skip
MEASURES = KEPT_BY_PARENT + 1

# Columns of predictions: the weight by which a link is chosen, its value for exploration, the expected text per
# byte, the same before the correction by recent errors, and the text behind its page.
WEIGHT, CURIOSITY, EXPECTED, GUESSED, LIES_BEHIND = range(5)
PREDICTIONS = 5

_KEYS = types.Array(types.uint64, 2, "C")
_MEMORY = types.Array(types.float32, 2, "C")
TAG = np.uint64(40)  # shift that leaves the 24 bits of a key which a float32 holds exactly
_NONE = np.uint64(0)


@inner
def place_of(key, memory):
    """Return the slot of a key, which another key may occupy."""
    return key & np.uint64(len(memory) - 1)


@inner
def tag_of(key):
    """Return the tag of a key, which distinguishes it from other keys of the same slot."""
    return np.float32(key >> TAG)


@inner
def slot_of(key, memory):
    """Return the slot that holds a key, or 0 if no slot does."""
    slot = place_of(key, memory)
    return slot if key != _NONE and memory[slot, memory.shape[1] - 1] == tag_of(key) else _NONE


@inner
def mean(memory, slot, before, prior_bytes):
    """Return text per byte under a key, shrunk towards `before`."""
    return (memory[slot, TEXT] + prior_bytes * before) / (memory[slot, COST] + prior_bytes)


@inner
def share(memory, slot, column, before):
    """Return a column as a share of the pages under a key, shrunk towards `before`."""
    return (memory[slot, column] + PRIOR_PAGES * before) / (memory[slot, PAGES] + PRIOR_PAGES)


@inner
def behind(memory, slot, before):
    """Return the text found behind pages under a key, per byte of the pages, shrunk towards `before`."""
    return (memory[slot, FOUND_BEHIND] + PRIOR_BEHIND_BYTES * before) / (
        memory[slot, SIZE] + PRIOR_BEHIND_BYTES
    )


@inner
def late(memory, slot, before):
    """Return text per byte of the most recent pages under a key, shrunk towards `before`."""
    return (memory[slot, LATE_TEXT] + PRIOR_BYTES * before) / (memory[slot, LATE_COST] + PRIOR_BYTES)


@inner
def surprise(memory, slot, before):
    """Return the text of the most recent pages under a key as a multiple of the predicted text."""
    return (memory[slot, LATE_TEXT] + SURPRISE_BYTES * before) / (
        memory[slot, LATE_EXPECTED] + SURPRISE_BYTES
    )


@inner
def evidence(memory, slot):
    """Return the amount of evidence under a key, on a logarithmic scale."""
    return np.log1p(memory[slot, COST] / BYTES_PER_KB)


@inner
def measure(keys, row, signals, memory, words, overall, overall_ours, out, to):
    """Compute the measures of one link into row `to` of `out`."""
    g = overall
    domain = slot_of(keys[row, at.DOMAIN], memory)
    host = slot_of(keys[row, at.HOST], memory)
    first = slot_of(keys[row, at.FIRST_FOLDER], memory)
    second = slot_of(keys[row, at.SECOND_FOLDER], memory)
    third = slot_of(keys[row, at.THIRD_FOLDER], memory)
    pattern = slot_of(keys[row, at.PATTERN], memory)
    code = slot_of(keys[row, at.CODE], memory)
    host_code = slot_of(keys[row, at.HOST_CODE], memory)
    new_host = slot_of(keys[row, at.NEW_HOST_KEY], memory)
    by_new_host = mean(memory, new_host, PRIOR_YIELD, PRIOR_BYTES)
    by_tld = mean(memory, slot_of(keys[row, at.NEW_HOST_TLD], memory), by_new_host, PRIOR_BYTES)
    by_domain = mean(memory, domain, by_tld, PRIOR_BYTES)
    by_host = mean(memory, host, by_domain, PRIOR_BYTES)
    names_language = signals[row, at.HINTS + at.URL_OURS] + signals[row, at.HINTS + at.URL_OTHER] > 0.0
    by_code = mean(memory, code, by_new_host, PRIOR_BYTES) if names_language else by_host
    by_host_code = mean(memory, host_code, 0.5 * (by_host + by_code), PRIOR_BYTES)
    by_first = mean(memory, first, by_host_code, PRIOR_BYTES)
    by_second = mean(memory, second, by_first, PRIOR_BYTES)
    by_pattern = mean(memory, pattern, by_second, PRIOR_BYTES)
    by_third = mean(memory, third, by_pattern, PRIOR_BYTES)
    out[to, OVERALL] = g
    out[to, BY_DOMAIN] = by_domain
    out[to, BY_HOST] = by_host
    out[to, BY_FIRST_FOLDER] = by_first
    out[to, BY_SECOND_FOLDER] = by_second
    out[to, BY_FOLDER] = by_third
    out[to, BY_PATTERN] = by_pattern
    out[to, BY_FORM] = mean(memory, slot_of(keys[row, at.GLOBAL_PATTERN], memory), g, PRIOR_BYTES)
    out[to, BY_CODE] = by_code
    out[to, BY_HOST_CODE] = by_host_code
    out[to, BY_TLD] = by_tld
    total, best, worst, count = 0.0, 0.0, 9.0, 0
    for column in range(at.WORDS, at.WORDS + at.MAX_WORDS):
        if keys[row, column] == _NONE:
            break
        one = mean(words, slot_of(keys[row, column], words), g, PRIOR_BYTES)
        total += one
        best = max(best, one)
        worst = min(worst, one)
        count += 1
    out[to, BY_WORDS] = total / count if count else g
    out[to, BEST_WORD] = best if count else g
    out[to, WORST_WORD] = worst if count else g
    total, count = 0.0, 0
    for column in range(at.GRAMS, at.GRAMS + at.MAX_GRAMS):
        if keys[row, column] == _NONE:
            break
        total += mean(words, slot_of(keys[row, column], words), g, PRIOR_BYTES)
        count += 1
    out[to, BY_GRAMS] = total / count if count else g
    out[to, BY_SETTING] = mean(memory, slot_of(keys[row, at.SETTING], memory), g, PRIOR_BYTES)
    for column in range(at.SIGNALS):
        out[to, SIGNALS_START + column] = signals[row, column]
    setting = slot_of(keys[row, at.HOST_SETTING], memory)
    anchor = slot_of(keys[row, at.HOST_ANCHOR], memory)
    parent = slot_of(keys[row, at.HOST_PARENT], memory)
    by_setting = mean(memory, setting, by_host_code, PRIOR_BYTES)
    by_anchor = mean(memory, anchor, by_host_code, PRIOR_BYTES)
    by_parent = mean(memory, parent, by_host_code, PRIOR_BYTES)
    by_length = mean(memory, slot_of(keys[row, at.NAME_LENGTH], memory), by_host_code, PRIOR_BYTES)
    usual = max(by_host_code, NEGLIGIBLE_YIELD)
    ratio = (
        max(by_setting, NEGLIGIBLE_YIELD)
        * max(by_anchor, NEGLIGIBLE_YIELD)
        * max(by_parent, NEGLIGIBLE_YIELD)
        * max(by_length, NEGLIGIBLE_YIELD)
    )
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
    ours_new_host = share(memory, new_host, OURS, PRIOR_OURS)
    ours_domain = share(memory, domain, OURS, ours_new_host)
    ours_host = share(memory, host, OURS, ours_domain)
    ours_code = share(memory, code, OURS, ours_new_host) if names_language else ours_host
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
        signals[row, at.ANCHOR_OURS],
        signals[row, at.HINTS + at.URL_OURS],
        signals[row, at.HINTS + at.AT_HOME],
    )
    behind_host = behind(memory, host, PRIOR_BEHIND + PRIOR_BEHIND_AT_HOME * at_home)
    behind_pattern = behind(memory, pattern, behind_host)
    out[to, BEHIND] = min(behind(memory, third, behind_pattern), MAX_BEHIND)
    out[to, BEHIND_HOST] = behind_host
    out[to, PAGE_SIZE] = memory[pattern, SIZE] / max(1.0, memory[pattern, PAGES]) / BYTES_PER_KB
    out[to, FOLDER_RATIO] = by_third / max(g, 1e-3)
    out[to, WORD_RATIO] = out[to, WORST_WORD] / max(g, 1e-3)
    out[to, LATE_BY_HOST] = late(memory, host, by_host)
    out[to, LATE_BY_PATTERN] = late(memory, pattern, by_pattern)
    out[to, LATE_BY_FOLDER] = late(memory, third, by_third)
    kept_domain = share(memory, domain, KEPT, share(memory, new_host, KEPT, PRIOR_KEPT))
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
def predict(
    keys: at.Keys,
    signals: NDArray[np.float64],
    rows: NDArray[np.int64],
    memory: NDArray[np.float32],
    words: NDArray[np.float32],
    overall: NDArray[np.float64],
    depth: int,
    columns: NDArray[np.uint8],
    bounds: NDArray[np.float64],
    values: NDArray[np.float64],
    measures: NDArray[np.float64],
    predictions: NDArray[np.float64],
) -> None:
    """Compute the measures and predictions of the links in some rows.

    The prediction of the trees is corrected by their recent error on the host and the folder.
    """
    for number in range(len(rows)):
        measure(keys, rows[number], signals, memory, words, overall[0], overall[1], measures, number)
    places = np.arange(len(rows)).astype(np.uint64)
    guesses = np.zeros(len(rows))
    add_votes(measures, places, 0, len(values) >> depth, depth, columns, bounds, values, guesses)
    for number in range(len(rows)):
        row = rows[number]
        guessed = max(guesses[number], 0.0)
        folder, host = slot_of(keys[row, at.THIRD_FOLDER], memory), slot_of(keys[row, at.HOST], memory)
        expected = guessed * surprise(memory, folder, surprise(memory, host, 1.0))
        lies_behind = measures[number, BEHIND]
        predictions[number, WEIGHT] = (
            expected + LOOKAHEAD * lies_behind + SEED_BONUS * signals[row, at.CHOSEN]
        )
        predictions[number, CURIOSITY] = (expected + CURIOUS_LOOKAHEAD * lies_behind) * measures[
            number, IS_NEW
        ]
        predictions[number, EXPECTED] = expected
        predictions[number, GUESSED] = guessed
        predictions[number, LIES_BEHIND] = lies_behind


@kernel(NOTHING, GRID, NUMBER, BYTES, FLOATS, FLOATS, FLOATS)
def predict_chances(
    measures: NDArray[np.float64],
    depth: int,
    columns: NDArray[np.uint8],
    bounds: NDArray[np.float64],
    values: NDArray[np.float64],
    chances: NDArray[np.float64],
) -> None:
    """Compute the chance that each link leads to a page that is kept, from its measures."""
    chances[:] = 0.0
    places = np.arange(len(chances)).astype(np.uint64)
    add_votes(measures, places, 0, len(values) >> depth, depth, columns, bounds, values, chances)
    for row in range(len(chances)):
        chances[row] = 1.0 / (1.0 + np.exp(-chances[row]))


@inner
def claim_slot(memory, slot, key, columns):
    """Return whether a key owns its slot; the slot of another key is halved, and taken over when nearly empty."""
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
def add_page(
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
    """Add a page under each of its keys; write the slots that changed to `changed` and return their number.

    Slots of words are numbered after the other slots. A page larger than USUAL_PAGE_BYTES counts as one of that
    size, since it is one piece of evidence. The slot of another key is halved, and taken over when nearly empty.
    """
    count = 0
    scale = min(1.0, USUAL_PAGE_BYTES / cost)
    known = memory[slot_of(keys[row, at.HOST], memory), PAGES] > FIRST_HOST_PAGES
    for column in range(at.KEYS):
        key = keys[row, column]
        if key == _NONE or (known and (column == at.NEW_HOST_KEY or column == at.NEW_HOST_TLD)):
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
            if claim_slot(words, slot, key, WORD_COLUMNS):
                for each in range(WORD_COLUMNS):
                    words[slot, each] *= FADE
                words[slot, TEXT] += scale * text
                words[slot, COST] += scale * cost
                words[slot, PAGES] += 1.0
        elif claim_slot(memory, slot, key, COLUMNS):
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
    """Add text that was found behind a page under the keys of the page; `changed` is as in `add_page`."""
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
