"""Kernels that classify a page, score its blocks and choose the score at which its text is cut.

A tree is complete: node n compares a column with a bound and continues with node 2n + 1, or 2n + 2 if the
value is above. Where fewer questions suffice, the last nodes have a bound that no value exceeds.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from thresher.jit import BYTES, FLOATS, GRID, NOTHING, NUMBER, TABLE, inner, kernel
from thresher.reader.html.kernels import layout as at
from thresher.reader.html.kernels.surroundings import OWN_MEASURES

# Kinds of page with a smaller weight than this get no vote.
LEAST_SHARE = 0.1
# One tree in four votes first. Blocks with log odds beyond SURE are then decided: among 193,000 blocks the other
# trees overturned none of them, and multiplied their log odds by 2.35 on average.
FIRST = 4
SURE = 2.0
IN_ALL = 2.35
# Number of scores at which a page may be cut.
STEPS = 100

# Three rules override the trees, because the gold pages lack such content: menus, teasers and requests for consent.
# A page that is mostly about consent is about something else, such as a recipe for cookies.
# Largest share of a page in a request for consent, and its score.
CONSENT, CONSENT_SCORE = 0.25, 0.95
# Share of words in links from which a block in a <nav> is a menu, and its score.
MENU_LINKS, MENU_SCORE = 0.8, 0.95
# The same for a list item without a full sentence, which leads to a text.
TEASER_LINKS, TEASER_SCORE = 0.3, 0.9
# Share of the likely text in list items from which a page is a list of teasers.
LISTED = 0.5

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Table = NDArray[np.int64]
_REAL = types.float64
_ONE, _TWO = np.uint64(1), np.uint64(2)


@inner
def add_votes(measures, rows, first, last, depth, columns, bounds, values, odds):
    """Add the votes of the trees in [first, last) to the odds of the given rows.

    All rows descend a tree side by side, one level at a time, so no step waits for the one before it. Places
    are unsigned, because numba checks signed indices for values below zero first.
    """
    width = np.uint64(measures.shape[1])
    flat = measures.reshape(-1)
    inner_nodes = (1 << depth) - 1
    nodes = np.empty(len(rows), np.uint64)
    for tree in range(first, last):
        root = np.uint64(tree * inner_nodes)
        leaves = np.uint64(tree << depth) - np.uint64(inner_nodes)
        nodes[:] = 0
        for _ in range(depth):
            for number in range(len(rows)):
                node = nodes[number]
                column = np.uint64(columns[root + node])
                is_above = flat[rows[number] * width + column] > bounds[root + node]
                nodes[number] = _TWO * node + _ONE + np.uint64(is_above)
        for number in range(len(rows)):
            odds[rows[number]] += values[leaves + nodes[number]]


@inner
def ask_trees(measures, first, last, depth, columns, bounds, values, odds):
    """Return the odds of every row by the trees in [first, last)."""
    rows = np.arange(len(odds)).astype(np.uint64)
    odds[:] = 0.0
    middle = first + (last - first) // FIRST
    add_votes(measures, rows, first, middle, depth, columns, bounds, values, odds)
    doubtful = 0
    for row in rows:
        if abs(odds[row]) < SURE:
            rows[doubtful] = row
            doubtful += 1
        else:
            odds[row] *= IN_ALL
    add_votes(measures, rows[:doubtful], middle, last, depth, columns, bounds, values, odds)


@inner
def choose(page, depth, columns, bounds, values, shares):
    """Return the weight of each kind of page for this page; `shares` hold the prior odds of the kinds."""
    kinds = len(shares)
    trees = (len(values) >> depth) // kinds
    only = np.zeros(1, np.uint64)
    for kind in range(kinds):
        first = kind * trees
        add_votes(page, only, first, first + trees, depth, columns, bounds, values, shares[kind : kind + 1])
    highest = shares[0]
    for kind in range(kinds):
        highest = max(highest, shares[kind])
    total = 0.0
    for kind in range(kinds):
        shares[kind] = np.exp(shares[kind] - highest)
        total += shares[kind]
    for kind in range(kinds):
        shares[kind] /= total


@kernel(NOTHING, GRID, FLOATS, NUMBER, BYTES, FLOATS, FLOATS, FLOATS, NUMBER, BYTES, FLOATS, FLOATS, FLOATS)
def vote(
    measures: Floats,
    remarks: Floats,
    page_depth: int,
    page_columns: Bytes,
    page_bounds: Floats,
    page_values: Floats,
    shares: Floats,
    depth: int,
    columns: Bytes,
    bounds: Floats,
    values: Floats,
    scores: Floats,
) -> None:
    """Return the boilerplate score of every block.

    First, trees classify the page by the mean of its blocks and by `remarks`. Then the trees of each kind of
    page score the blocks, weighted by the probability of that kind.
    """
    page = np.empty((1, OWN_MEASURES + len(remarks)))
    for column in range(OWN_MEASURES):
        total = 0.0
        for row in range(len(scores)):
            total += measures[row, column]
        page[0, column] = total / len(scores)
    for number in range(len(remarks)):
        page[0, OWN_MEASURES + number] = remarks[number]
    choose(page, page_depth, page_columns, page_bounds, page_values, shares)
    trees = (len(values) >> depth) // len(shares)
    odds = np.empty(len(scores))
    scores[:] = 0.0
    heard = 0.0
    for kind in range(len(shares)):
        if shares[kind] >= LEAST_SHARE:
            first = kind * trees
            ask_trees(measures, first, first + trees, depth, columns, bounds, values, odds)
            for row in range(len(scores)):
                scores[row] += shares[kind] / (1.0 + np.exp(odds[row]))
            heard += shares[kind]
    for row in range(len(scores)):
        scores[row] /= heard


@inner
def is_teaser(row, blocks):
    """Return True if a block is a list item with many words in links and without a full sentence."""
    last, before = blocks[row, at.B_LAST], blocks[row, at.B_BEFORE_LAST]
    is_sentence = last == at.STOP or (last == at.OTHER and before == at.STOP)
    return (
        blocks[row, at.B_CONTEXT] & at.ITEM != 0
        and blocks[row, at.B_LINKED] > TEASER_LINKS * blocks[row, at.B_LENGTH]
        and not is_sentence
    )


@kernel(NOTHING, TABLE, FLOATS)
def correct(blocks: Table, scores: Floats) -> None:
    """Raise the scores of menus, of requests for consent, and of teasers where they make up much of a page."""
    text = teased = asked = total = 0.0
    for row in range(len(scores)):
        total += blocks[row, at.B_LENGTH]
        if blocks[row, at.B_CONTEXT] & at.SAYS_CONSENT:
            asked += blocks[row, at.B_LENGTH]
    for row in range(len(scores)):
        length, linked = blocks[row, at.B_LENGTH], blocks[row, at.B_LINKED]
        if blocks[row, at.B_CONTEXT] & at.SAYS_CONSENT and asked <= CONSENT * total:
            scores[row] = max(scores[row], CONSENT_SCORE)
        if blocks[row, at.B_CONTEXT] & at.NAV and linked > MENU_LINKS * length:
            scores[row] = max(scores[row], MENU_SCORE)
        text += length * (1.0 - scores[row])
        if is_teaser(row, blocks):
            teased += length * (1.0 - scores[row])
    if teased > LISTED * text:
        for row in range(len(scores)):
            if is_teaser(row, blocks):
                scores[row] = max(scores[row], TEASER_SCORE)


@kernel(_REAL, TABLE, FLOATS, _REAL)
def best_cut(blocks: Table, scores: Floats, beta: float) -> float:
    """Return the score below which blocks should be taken for text, if the scores are right.

    The cut maximises the expected F-measure over characters; `beta` is the weight of recall in it.
    """
    lengths, texts = np.zeros(STEPS + 1), np.zeros(STEPS + 1)
    for row in range(len(scores)):
        step = int(scores[row] * STEPS)
        lengths[step] += blocks[row, at.B_LENGTH]
        texts[step] += blocks[row, at.B_LENGTH] * (1.0 - scores[row])
    wanted = texts.sum()
    taken = found = most = 0.0
    best = 0
    for step in range(STEPS + 1):
        taken += lengths[step]
        found += texts[step]
        expected = found / (taken + beta * beta * wanted + 1e-9)
        if expected > most:
            most, best = expected, step + 1
    return best / STEPS
