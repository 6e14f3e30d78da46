"""Where what stands in the tables of the policy that learns: keys, notes, and their order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
# Words and what they are made of; of those less is remembered.
WORDS, MAX_WORDS = 17, 14
GRAMS, MAX_GRAMS = WORDS + MAX_WORDS, 24
KEYS = GRAMS + MAX_GRAMS
LANE = KEYS  # and behind the keys: which URLs of a host are alike
WIDTH = KEYS + 1

# What the URL says of its language, in their order.
SAYS_OURS, SAYS_OTHER, AT_HOME, ABROAD = range(4)
SAYINGS = 4

# Hints, in their order: what the page that links tells of a link, each from 0 to 1.
BOILERPLATE, IN_TEXT, SAME_HOST, KEPT, OURS, YIELD, TOLD_OURS, TOLD_OTHER, LISTED, ANCHOR = range(10)
HINTS = 10
STEPS = 255  # a hint is kept in a byte
MARK = 4  # bytes behind the hints: a mark for the kind of page that links
NOTES = HINTS + SAYINGS  # hints and sayings, side by side
CHOSEN = NOTES  # and behind them: 1 if somebody chose this URL
NOTED = NOTES + 1

LANES = 64  # kinds of URLs of a host that are told apart

Keys = NDArray[np.uint64]
Notes = NDArray[np.float64]
