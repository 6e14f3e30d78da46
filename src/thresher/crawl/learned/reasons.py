"""What the guide that learns knows of a link, clue by clue, and what it would expect without each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thresher.crawl.learned import layout as at
from thresher.crawl.learned.forecast import COST, OURS, PAGES, TEXT
from thresher.crawl.learned.guide import Learned
from thresher.page import Candidate


class Reason(NamedTuple):
    """One kind of clue: what came of pages that share it, and the yield to expect if nothing were known of it."""

    name: str
    pages: float
    rate: float | None
    ours: float | None
    without: float


def _notes(*sayings: int) -> tuple[int, ...]:
    return tuple(at.HINTS + saying for saying in sayings)


# Kinds of clues: in words, the key that tells most of it, all of its keys, and its notes.
KINDS: tuple[tuple[str, int | None, tuple[int, ...], tuple[int, ...]], ...] = (
    ("its host", at.HOST, (at.DOMAIN, at.HOST, at.HOST_CODE), ()),
    ("its folder", at.THIRD_FOLDER, (at.FIRST_FOLDER, at.SECOND_FOLDER, at.THIRD_FOLDER), ()),
    ("URLs of its form", at.PATTERN, (at.PATTERN, at.NAME_LENGTH, at.GLOBAL_PATTERN), ()),
    ("the language that its URL names", at.CODE, (at.CODE,), _notes(at.SAYS_OURS, at.SAYS_OTHER)),
    ("its top-level domain", at.NEWCOMER_TLD, (at.NEWCOMER_TLD,), _notes(at.AT_HOME, at.ABROAD)),
    ("first pages of hosts like its own", at.NEWCOMER, (at.NEWCOMER,), ()),
    ("words of its URL", None, tuple(range(at.WORDS, at.KEYS)), ()),
    (
        "links that stand like it",
        at.HOST_SETTING,
        (at.SETTING, at.HOST_SETTING),
        (at.BOILERPLATE, at.IN_TEXT, at.LISTED),
    ),
    ("pages like the one that links to it", at.HOST_PARENT, (at.HOST_PARENT,), (at.KEPT, at.OURS, at.YIELD)),
    ("words of the link", at.HOST_ANCHOR, (at.HOST_ANCHOR,), (at.TOLD_OURS, at.TOLD_OTHER, at.ANCHOR)),
)


def reasons(guide: Learned, candidate: Candidate) -> tuple[float, list[Reason]]:
    """What lies behind pages like this one, and the kinds of clues there are for it."""
    keys, notes = guide.clues.of([candidate.url], [candidate.hints])
    without = np.repeat(keys, len(KINDS) + 1, axis=0)
    neutral = np.repeat(notes, len(KINDS) + 1, axis=0)
    for row, (_, _, known_by, told_by) in enumerate(KINDS, 1):
        without[row, list(known_by)] = 0
        neutral[row, list(told_by)] = 0.0
    outlook = guide.outlook(without, neutral, np.arange(len(without)))
    found = []
    for row, (name, main, _, _) in enumerate(KINDS, 1):
        pages, rate, ours = _remembered(guide, keys[:, main]) if main is not None else (0.0, None, None)
        found.append(Reason(name, pages, rate, ours, float(outlook.expected[row])))
    return float(outlook.behind[0]), found


def _remembered(guide: Learned, key: at.Keys) -> tuple[float, float | None, float | None]:
    """Pages, yield and share in our language of what is remembered under a key."""
    row = guide.experience.recall(key)[0]
    if row[PAGES] <= 0:
        return 0.0, None, None
    return float(row[PAGES]), float(row[TEXT] / row[COST]), float(row[OURS] / row[PAGES])
