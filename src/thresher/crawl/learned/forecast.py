"""From what came of links like it to what to expect of a link: measures of the evidence, and trees that weigh them.

Evidence is scarce at first, so each mean starts from what is known of something wider: a folder from its host, a
host from its domain, a domain from its top-level domain and the whole crawl. It moves from there as pages come in.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.crawl.learned import clues as at
from thresher.read.scan.forest import add_votes
from thresher.read.scan.kernel import BYTES, FLOATS, GRID, NOTHING, NUMBER, NUMBERS, inner, kernel

# Columns of the memory under a key: sums over pages, of which the older count less and less.
TEXT, COST, PAGES, OURS, FOUND_BEHIND = range(5)
COLUMNS = 5
SLOTS = 1 << 21

REQUEST = 1_000.0  # bytes that a request costs beside the body it brings
FIRM = 15_000.0  # bytes after which a mean is as much its own as what it starts from
FIRM_PAGES = 3.0
FIRM_BEHIND = 3_000.0
AT_FIRST, OURS_AT_FIRST, BEHIND_AT_FIRST = 0.1, 0.2, 0.1  # what is thought of hosts before there were any
FIRST_PAGES = 2.5  # of a host, those that tell of hosts that are new
MOST_BEHIND = 2.0  # text that lies behind a page, per byte of it, that counts
FADE = 1.0 - 1.0 / 400  # what a page less recent by one counts under the same key
KILO = 1_000.0
LITTLE = 0.002  # text per byte that is as good as none

MEASURES = 54

_KEYS = types.Array(types.uint64, 2, "C")
_MEMORY = types.Array(types.float32, 2, "C")
_TAGS = types.Array(types.uint32, 1, "C")
_MASK = np.uint64(SLOTS - 1)
_TAG = np.uint64(32)
_NONE = np.uint64(0)


@inner
def slot_of(key, tags):
    """Where the memory of a key is, or 0 if there is none."""
    slot = key & _MASK
    return slot if key != _NONE and tags[slot] == np.uint32(key >> _TAG) else _NONE


@inner
def mean(memory, slot, before, firm):
    """Text per byte under a key."""
    return (memory[slot, TEXT] + firm * before) / (memory[slot, COST] + firm)


@inner
def share(memory, slot, before):
    """The share of pages in our language under a key."""
    return (memory[slot, OURS] + FIRM_PAGES * before) / (memory[slot, PAGES] + FIRM_PAGES)


@inner
def behind(memory, slot, before):
    """Text that lies behind pages under a key, per byte of them."""
    return (memory[slot, FOUND_BEHIND] + FIRM_BEHIND * before) / (memory[slot, COST] + FIRM_BEHIND)


@inner
def evidence(memory, slot):
    return np.log1p(memory[slot, COST] / KILO)


@inner
def measure(keys, row, notes, memory, tags, overall, overall_ours, out, to):
    """The evidence for one link, in measures; see MEASURED for what each is."""
    g = overall
    domain = slot_of(keys[row, at.DOMAIN], tags)
    host = slot_of(keys[row, at.HOST], tags)
    first = slot_of(keys[row, at.FIRST_FOLDER], tags)
    second = slot_of(keys[row, at.SECOND_FOLDER], tags)
    third = slot_of(keys[row, at.THIRD_FOLDER], tags)
    pattern = slot_of(keys[row, at.PATTERN], tags)
    code = slot_of(keys[row, at.CODE], tags)
    host_code = slot_of(keys[row, at.HOST_CODE], tags)
    newcomer = slot_of(keys[row, at.NEWCOMER], tags)
    by_newcomer = mean(memory, newcomer, AT_FIRST, FIRM)
    by_tld = mean(memory, slot_of(keys[row, at.NEWCOMER_TLD], tags), by_newcomer, FIRM)
    by_domain = mean(memory, domain, by_tld, FIRM)
    by_host = mean(memory, host, by_domain, FIRM)
    names_language = notes[row, at.HINTS + at.SAYS_OURS] + notes[row, at.HINTS + at.SAYS_OTHER] > 0.0
    by_code = mean(memory, code, by_newcomer, FIRM) if names_language else by_host
    by_host_code = mean(memory, host_code, 0.5 * (by_host + by_code), FIRM)
    by_first = mean(memory, first, by_host_code, FIRM)
    by_second = mean(memory, second, by_first, FIRM)
    by_pattern = mean(memory, pattern, by_second, FIRM)
    by_third = mean(memory, third, by_pattern, FIRM)
    out[to, 0] = g
    out[to, 1] = by_domain
    out[to, 2] = by_host
    out[to, 3] = by_first
    out[to, 4] = by_second
    out[to, 5] = by_third
    out[to, 6] = by_pattern
    out[to, 7] = mean(memory, slot_of(keys[row, at.GLOBAL_PATTERN], tags), g, FIRM)
    out[to, 8] = by_code
    out[to, 9] = by_host_code
    out[to, 10] = by_tld
    total, most, least, count = 0.0, 0.0, 9.0, 0
    for column in range(at.WORDS, at.WORDS + at.MAX_WORDS):
        if keys[row, column] == _NONE:
            break
        one = mean(memory, slot_of(keys[row, column], tags), g, FIRM)
        total += one
        most = max(most, one)
        least = min(least, one)
        count += 1
    out[to, 11] = total / count if count else g
    out[to, 12] = most if count else g
    out[to, 13] = least if count else g
    total, count = 0.0, 0
    for column in range(at.GRAMS, at.GRAMS + at.MAX_GRAMS):
        if keys[row, column] == _NONE:
            break
        total += mean(memory, slot_of(keys[row, column], tags), g, FIRM)
        count += 1
    out[to, 14] = total / count if count else g
    out[to, 15] = mean(memory, slot_of(keys[row, at.SETTING], tags), g, FIRM)
    for column in range(at.NOTES):
        out[to, 16 + column] = notes[row, column]
    by_setting = mean(memory, slot_of(keys[row, at.HOST_SETTING], tags), by_host_code, FIRM)
    by_anchor = mean(memory, slot_of(keys[row, at.HOST_ANCHOR], tags), by_host_code, FIRM)
    by_parent = mean(memory, slot_of(keys[row, at.HOST_PARENT], tags), by_host_code, FIRM)
    by_length = mean(memory, slot_of(keys[row, at.NAME_LENGTH], tags), by_host_code, FIRM)
    usual = max(by_host_code, LITTLE)
    ratio = max(by_setting, LITTLE) * max(by_anchor, LITTLE) * max(by_parent, LITTLE) * max(by_length, LITTLE)
    out[to, 49] = by_setting
    out[to, 50] = by_anchor
    out[to, 51] = by_parent
    out[to, 52] = by_length
    out[to, 53] = min(by_third * np.sqrt(ratio / usual**4), 3.0)
    out[to, 30] = evidence(memory, domain)
    out[to, 31] = evidence(memory, host)
    out[to, 32] = evidence(memory, pattern)
    out[to, 33] = evidence(memory, third)
    out[to, 34] = evidence(memory, code)
    out[to, 35] = evidence(memory, host_code)
    ours_newcomer = share(memory, newcomer, OURS_AT_FIRST)
    ours_domain = share(memory, domain, ours_newcomer)
    ours_host = share(memory, host, ours_domain)
    ours_code = share(memory, code, ours_newcomer) if names_language else ours_host
    ours_host_code = share(memory, host_code, 0.5 * (ours_host + ours_code))
    ours_pattern = share(memory, pattern, ours_host_code)
    out[to, 36] = ours_domain
    out[to, 37] = ours_host
    out[to, 38] = ours_host_code
    out[to, 39] = ours_pattern
    out[to, 40] = share(memory, third, ours_pattern)
    out[to, 41] = ours_code
    out[to, 42] = overall_ours
    behind_host = behind(memory, host, behind(memory, newcomer, BEHIND_AT_FIRST))
    behind_pattern = behind(memory, pattern, behind_host)
    out[to, 43] = min(behind(memory, third, behind_pattern), MOST_BEHIND)
    out[to, 44] = behind_host
    out[to, 45] = memory[pattern, COST] / max(1.0, memory[pattern, PAGES]) / KILO
    out[to, 46] = by_third / max(g, 1e-3)
    out[to, 47] = out[to, 13] / max(g, 1e-3)
    out[to, 48] = memory[pattern, PAGES] < 0.5


HOST_EVIDENCE, BEHIND, IS_NEW = 31, 43, 48

MEASURED = (
    "all pages of this crawl",
    "its domain",
    "its host",
    "its first folder",
    "its first two folders",
    "its folder",
    "URLs of its form on this host",
    "URLs of its form anywhere",
    "URLs that name the same language",
    "URLs of its host that name the same language",
    "its top-level domain",
    "words of its URL, on average",
    "the best word of its URL",
    "the worst word of its URL",
    "three letters on end of its URL, on average",
    "links that stand like it",
)


@kernel(NOTHING, _KEYS, GRID, NUMBERS, _MEMORY, _TAGS, FLOATS, NUMBER, BYTES, FLOATS, FLOATS, GRID, FLOATS)
def forecast(
    keys: at.Keys,
    notes: NDArray[np.float64],
    rows: NDArray[np.int64],
    memory: NDArray[np.float32],
    tags: NDArray[np.uint32],
    overall: NDArray[np.float64],
    depth: int,
    columns: NDArray[np.uint8],
    bounds: NDArray[np.float64],
    values: NDArray[np.float64],
    measures: NDArray[np.float64],
    expected: NDArray[np.float64],
) -> None:
    """The text per byte to expect of some links, and the measures it was told by."""
    for number in range(len(rows)):
        measure(keys, rows[number], notes, memory, tags, overall[0], overall[1], measures, number)
    places = np.arange(len(rows)).astype(np.uint64)
    inner_nodes = (1 << depth) - 1
    trees = len(columns) // inner_nodes
    expected[:] = 0.0
    add_votes(measures, places, 0, trees, depth, columns, bounds, values, expected)
    for number in range(len(rows)):
        expected[number] = max(expected[number], 0.0)


@kernel(
    NUMBER, _KEYS, NUMBER, _MEMORY, _TAGS, types.float64, types.float64, types.float64, types.float64, NUMBERS
)
def remember(
    keys: at.Keys,
    row: int,
    memory: NDArray[np.float32],
    tags: NDArray[np.uint32],
    text: float,
    cost: float,
    ours: float,
    found_behind: float,
    changed: NDArray[np.int64],
) -> int:
    """Add a page to the memory under each of its keys; `changed` gets the slots, the result is how many.

    A key whose slot belongs to another wears that one down, and has the slot once little is left of it.
    """
    count = 0
    known = memory[slot_of(keys[row, at.HOST], tags), PAGES] > FIRST_PAGES
    for column in range(at.KEYS):
        key = keys[row, column]
        if key == _NONE or (known and (column == at.NEWCOMER or column == at.NEWCOMER_TLD)):
            continue
        slot = key & _MASK
        again = False
        for before in range(count):
            again |= changed[before] == slot
        if slot == _NONE or again:
            continue
        tag = np.uint32(key >> _TAG)
        if tags[slot] != tag:
            for each in range(COLUMNS):
                memory[slot, each] *= 0.5
            if memory[slot, PAGES] < 0.5:
                tags[slot] = tag
                for each in range(COLUMNS):
                    memory[slot, each] = 0.0
        if tags[slot] == tag:
            for each in range(COLUMNS):
                memory[slot, each] *= FADE
            memory[slot, TEXT] += text
            memory[slot, COST] += cost
            memory[slot, PAGES] += 1.0
            memory[slot, OURS] += ours
            memory[slot, FOUND_BEHIND] += found_behind
        changed[count] = slot
        count += 1
    return count
