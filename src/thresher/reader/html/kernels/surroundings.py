"""Kernel that measures blocks of text: alone, beside their neighbours, and in the tree of the page.

The neighbours of a block are most informative where it is known which of them are text. So a first estimate
is made from measures of each block alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from thresher.jit import FLOATS, GRID, NOTHING, NUMBER, SOURCE, TABLE, inlined, inner, kernel
from thresher.reader.html.kernels import layout as at

SPACELESS = 14  # letters per space, from which on a script is taken to write without spaces
LETTERS_PER_WORD = 3.0  # in such scripts
MAIN_SHARE = 0.6  # of all text on the page: what makes an element the main one
ANCESTORS = 4  # elements around a block that are looked at, from the inside
NEIGHBOURS = 3  # blocks before and after it
MIN_TITLE = 8  # bytes of a block that may repeat the title of its page
SIGNATURE_FACTOR = 0x100000001B3

Bytes = NDArray[np.uint8]
Table = NDArray[np.int64]
Floats = NDArray[np.float64]

# Columns of the measures: of the block by itself.
(
    M_WORDS, M_LENGTH, M_LINKED, M_COMMAS, M_STOPS, M_DIGITS, M_CAPITALS, M_OTHERS, M_ENDS, M_WORD_LENGTH, M_LINKS,
    M_EMPHASIS, M_SENTENCE, M_TITLE, M_POSITION, M_SOURCE, M_DEPTH, M_PLACES,
) = range(18)  # fmt: skip
# Measures of the elements around a block: the shares of text, words and links in each, and its number of blocks.
A_TEXT, A_WORDS, A_LINKED, A_BLOCKS, ANCESTOR_COLUMNS = range(5)
M_ANCESTORS = M_PLACES + at.PLACE_BITS
OWN_MEASURES = M_ANCESTORS
# Measures of the blocks before and after it.
B_WORDS, B_LINKED, B_ENDS, B_LIKELY, B_SAME, NEIGHBOUR_COLUMNS = range(6)
M_NEIGHBOURS = M_ANCESTORS + ANCESTORS * ANCESTOR_COLUMNS
# Measures of its place in the page.
(
    M_LIKELY, M_NEAR_TEXT, M_NEAR_LINKED, M_WIDE_TEXT, M_KIND_TEXT, M_SIGNATURE_TEXT, M_SIGNATURES, M_IN_MAIN,
    M_IN_BEST, M_UP_TO_BEST, M_DOWN_TO_BEST, M_BEST_TEXT, M_COMMON_TEXT, M_MASS, M_BEFORE_TEXT,
    M_AFTER_TEXT, MEASURES,
) = range(
    M_NEIGHBOURS + 2 * NEIGHBOURS * NEIGHBOUR_COLUMNS, M_NEIGHBOURS + 2 * NEIGHBOURS * NEIGHBOUR_COLUMNS + 17
)  # fmt: skip


@inlined
def is_inner(tag_flags):
    """Return True if an element of such a tag is part of a text, so that its parent is the container."""
    return tag_flags & (at.IN_HEADING | at.ITEM | at.PARAGRAPH | at.QUOTE) != 0


@inner
def measure_own(blocks, length, out):
    """Measure each block by itself; the first column holds its words, not yet as a logarithm."""
    count = len(blocks)
    for row in range(count):
        chars = blocks[row, at.B_LENGTH]
        letters = blocks[row, at.B_COUNTS + at.LETTER] + blocks[row, at.B_COUNTS + at.CAPITAL]
        spaces = blocks[row, at.B_COUNTS + at.SPACE] + 1
        words = letters / LETTERS_PER_WORD if letters > SPACELESS * spaces else float(spaces)
        stops = blocks[row, at.B_COUNTS + at.STOP]
        last, before = blocks[row, at.B_LAST], blocks[row, at.B_BEFORE_LAST]
        out[row, M_WORDS] = words
        out[row, M_LENGTH] = np.log1p(chars)
        out[row, M_LINKED] = min(1.0, blocks[row, at.B_LINKED] / chars)
        out[row, M_COMMAS] = min(0.5, blocks[row, at.B_COUNTS + at.COMMA] / words)
        out[row, M_STOPS] = min(1.0, stops / words)
        out[row, M_DIGITS] = blocks[row, at.B_COUNTS + at.DIGIT] / chars
        out[row, M_CAPITALS] = blocks[row, at.B_COUNTS + at.CAPITAL] / chars
        out[row, M_OTHERS] = blocks[row, at.B_COUNTS + at.OTHER] / chars
        out[row, M_ENDS] = last == at.STOP or (last == at.OTHER and before == at.STOP)
        out[row, M_WORD_LENGTH] = letters / words
        out[row, M_LINKS] = blocks[row, at.B_LINKS]
        out[row, M_EMPHASIS] = blocks[row, at.B_EMPHASIS]
        out[row, M_SENTENCE] = words / (stops + 1)
        out[row, M_POSITION] = row / count
        out[row, M_SOURCE] = blocks[row, at.B_SOURCE] / length
        for bit in range(at.PLACE_BITS):
            out[row, M_PLACES + bit] = blocks[row, at.B_CONTEXT] >> bit & 1


@inlined
def small(byte):
    """Return a byte in lower case; letters beyond ASCII are left as they are."""
    return byte + 32 if 65 <= byte <= 90 else byte


@inner
def stands_in(text, start, end, title):
    """Return True if a piece of text occurs in the title, which is in lower case."""
    for first in range(len(title) - (end - start) + 1):
        place = start
        while place < end and small(text[place]) == title[first + place - start]:
            place += 1
        if place == end:
            return True
    return False


@inner
def find_title(text, title, out):
    """Mark blocks that repeat the title of the page or a part of it. A zero ends the text of each."""
    start = 0
    for row in range(len(out)):
        end = start
        while end < len(text) and text[end]:
            end += 1
        out[row, M_TITLE] = end - start > MIN_TITLE and stands_in(text, start, end, title)
        start = end + 1


@inner
def measure_depth(blocks, elements, out, depths):
    """Measure the depth in the tree of each block."""
    depths[0] = 0
    for element in range(1, len(elements)):
        depths[element] = depths[elements[element, at.E_PARENT]] + 1
    for row in range(len(blocks)):
        out[row, M_DEPTH] = depths[blocks[row, at.B_CONTAINER]]


@inner
def sum_up(blocks, elements, likely, out, sums, ends):
    """Sum words, words in links, likely text and blocks of every element, and find its last descendant."""
    count = len(elements)
    for element in range(count):
        for column in range(5):
            sums[element, column] = 0.0
        ends[element] = element + 1
    for row in range(len(blocks)):
        element = blocks[row, at.B_CONTAINER]
        words = out[row, M_WORDS]
        sums[element, 0] += words
        sums[element, 1] += words * out[row, M_LINKED]
        sums[element, 2] += words * likely[row]
        sums[element, 3] += 1.0
        # The element around the paragraph gets credit for the text, and the element around it gets half as much.
        holder = elements[element, at.E_PARENT] if is_inner(elements[element, at.E_PLACES]) else element
        credit = words * likely[row] * (1.0 - out[row, M_LINKED])
        sums[holder, 4] += credit
        if holder:
            sums[elements[holder, at.E_PARENT], 4] += credit / 2
    for element in range(count - 1, 0, -1):  # an element is numbered before all inside it
        parent = elements[element, at.E_PARENT]
        for column in range(4):
            sums[parent, column] += sums[element, column]
        ends[parent] = max(ends[parent], ends[element])


@inner
def slot_of(key, keys):
    """Return the slot of a key in a table of open addresses; insert the key if it is missing."""
    mask = len(keys) - 1
    slot = (key ^ key >> 29) & mask
    while keys[slot] and keys[slot] != key:
        slot = (slot + 1) & mask
    keys[slot] = key
    return slot


@inner
def share_by_key(keys, likely, out, shares, counts):
    """Compute, over all blocks with the same key, their number and the share of their words in likely text."""
    size = 4
    while size < 2 * len(keys):
        size *= 2
    table = np.zeros(size, np.int64)
    sums = np.zeros((size, 3), np.float64)
    for row in range(len(keys)):
        slot = slot_of(keys[row], table)
        words = out[row, M_WORDS]
        sums[slot, 0] += words
        sums[slot, 1] += words * likely[row]
        sums[slot, 2] += 1.0
    for row in range(len(keys)):
        slot = slot_of(keys[row], table)
        shares[row] = sums[slot, 1] / sums[slot, 0]
        counts[row] = np.log(sums[slot, 2])


@inner
def measure_neighbours(blocks, likely, logarithms, out):
    """Measure the blocks before and after each block, given the logarithms of all word counts."""
    count = len(blocks)
    for row in range(count):
        for offset in range(-NEIGHBOURS, NEIGHBOURS + 1):
            if offset == 0:
                continue
            place = offset + NEIGHBOURS - (offset > 0)
            column = M_NEIGHBOURS + NEIGHBOUR_COLUMNS * place
            other = row + offset
            if 0 <= other < count:
                out[row, column + B_WORDS] = logarithms[other]
                out[row, column + B_LINKED] = out[other, M_LINKED]
                out[row, column + B_ENDS] = out[other, M_ENDS]
                out[row, column + B_LIKELY] = likely[other]
                out[row, column + B_SAME] = blocks[other, at.B_CONTEXT] == blocks[row, at.B_CONTEXT]
            else:
                for number in range(NEIGHBOUR_COLUMNS):
                    out[row, column + number] = -1.0
    for row in range(count):
        near_text = near_words = near_linked = wide_text = wide_words = 0.0
        for other in range(max(0, row - 8), min(count, row + 9)):
            if other != row:
                words = out[other, M_WORDS]
                weight = 1.0 / abs(other - row)
                near_text += weight * words * likely[other]
                near_linked += weight * words * out[other, M_LINKED]
                near_words += weight * words
                wide_text += words * likely[other]
                wide_words += words
        out[row, M_NEAR_TEXT] = near_text / (near_words + 1.0)
        out[row, M_NEAR_LINKED] = near_linked / (near_words + 1.0)
        out[row, M_WIDE_TEXT] = wide_text / (wide_words + 1.0)


@inner
def measure_tree(blocks, elements, out, sums, ends, depths, best, main):
    """Measure the position of each block relative to the elements that hold the text of the page."""
    total_words, total_text = sums[0, 0], sums[0, 2] + 1e-9
    for row in range(len(blocks)):
        container = blocks[row, at.B_CONTAINER]
        element = container
        for level in range(ANCESTORS):
            column = M_ANCESTORS + ANCESTOR_COLUMNS * level
            words = sums[element, 0] + 1e-9
            out[row, column + A_TEXT] = sums[element, 2] / total_text
            out[row, column + A_WORDS] = words / total_words
            out[row, column + A_LINKED] = sums[element, 1] / words
            out[row, column + A_BLOCKS] = np.log1p(sums[element, 3])
            element = elements[element, at.E_PARENT]
        out[row, M_IN_MAIN] = main <= container < ends[main]
        out[row, M_IN_BEST] = best <= container < ends[best]
        common = container
        up = 0
        while not common <= best < ends[common]:
            common = elements[common, at.E_PARENT]
            up += 1
        out[row, M_UP_TO_BEST] = up
        out[row, M_DOWN_TO_BEST] = depths[best] - depths[common]
        out[row, M_BEST_TEXT] = sums[best, 2] / total_text
        out[row, M_COMMON_TEXT] = sums[common, 2] / (sums[common, 0] + 1e-9)


@inner
def measure_order(likely, out, sums):
    """Measure how much text, and how much in total, precedes and follows each block."""
    words, text = sums[0, 0], sums[0, 2] + 1e-9
    passed_words = passed_text = 0.0
    for row in range(len(likely)):
        out[row, M_LIKELY] = likely[row]
        out[row, M_MASS] = passed_words / words
        out[row, M_BEFORE_TEXT] = passed_text / text
        passed_words += out[row, M_WORDS]
        passed_text += out[row, M_WORDS] * likely[row]
        out[row, M_AFTER_TEXT] = 1.0 - passed_text / text


@inner
def guess(weights, out, likely):
    """Estimate the probability of text from the measures of each block alone; the last weight is the constant."""
    for row in range(len(likely)):
        odds = weights[OWN_MEASURES]
        for column in range(OWN_MEASURES):
            odds += weights[column] * (np.log(out[row, column]) if column == M_WORDS else out[row, column])
        likely[row] = 1.0 / (1.0 + np.exp(-odds))


@kernel(NOTHING, TABLE, TABLE, SOURCE, SOURCE, FLOATS, NUMBER, GRID)
def measure(
    blocks: Table, elements: Table, text: Bytes, title: Bytes, weights: Floats, length: int, out: Floats
) -> None:
    """Measure all blocks of a page of this length in bytes. `weights` are the weights of the first estimate."""
    likely = np.empty(len(blocks), np.float64)
    sums = np.empty((len(elements), 5), np.float64)
    ends = np.empty(len(elements), np.int64)
    depths = np.empty(len(elements), np.int64)
    keys = np.empty(len(blocks), np.int64)
    logarithms = np.empty(len(blocks), np.float64)
    measure_own(blocks, length, out)
    find_title(text, title, out)
    measure_depth(blocks, elements, out, depths)
    guess(weights, out, likely)
    sum_up(blocks, elements, likely, out, sums, ends)
    best = main = 0
    for element in range(len(elements)):
        if sums[element, 4] > sums[best, 4]:
            best = element
        if sums[element, 2] >= MAIN_SHARE * sums[0, 2]:
            main = element
    for row in range(len(blocks)):
        keys[row] = blocks[row, at.B_CONTEXT] + 1
    share_by_key(keys, likely, out, out[:, M_KIND_TEXT], out[:, M_SIGNATURES])
    for row in range(len(blocks)):
        element = blocks[row, at.B_CONTAINER]
        around = elements[element, at.E_PARENT]
        keys[row] = (
            elements[element, at.E_SIGNATURE] * SIGNATURE_FACTOR ^ elements[around, at.E_SIGNATURE] | 1
        )
    share_by_key(keys, likely, out, out[:, M_SIGNATURE_TEXT], out[:, M_SIGNATURES])
    for row in range(len(blocks)):
        logarithms[row] = np.log(out[row, M_WORDS])
    measure_neighbours(blocks, likely, logarithms, out)
    measure_tree(blocks, elements, out, sums, ends, depths, best, main)
    measure_order(likely, out, sums)
    for row in range(len(blocks)):
        out[row, M_WORDS] = logarithms[row]
