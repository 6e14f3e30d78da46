"""Layout of the tables of the learned policy: columns of keys, hints and signals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Keys of a URL, in column order; 0 means that the URL has no such key.
DOMAIN, HOST, FIRST_FOLDER, SECOND_FOLDER, THIRD_FOLDER, PATTERN, GLOBAL_PATTERN, CODE, HOST_CODE, TLD = (
    range(10)
)
NAME_LENGTH = 10  # of the last segment of the path, on this host
# Keys of the link instead of its URL: its setting on the page (anywhere, and for links to this host), the length
# of its anchor, and the kind of page it stands on.
SETTING, HOST_SETTING, HOST_ANCHOR, HOST_PARENT = range(11, 15)
# Keys under which only the first pages of hosts are remembered: the signals of a host's language, alone and with
# its top-level domain.
NEW_HOST_KEY, NEW_HOST_TLD = 15, 16
# Words and their character trigrams. They are many and weak evidence, so their slots are shorter.
WORDS, MAX_WORDS = 17, 14
GRAMS, MAX_GRAMS = WORDS + MAX_WORDS, 24
KEYS = GRAMS + MAX_GRAMS
LANE = KEYS  # the column behind the keys: the lane of a URL within its host
WIDTH = KEYS + 1

# Signals of the URL about the language of its page, in column order.
URL_OURS, URL_OTHER, AT_HOME, ABROAD = range(4)
URL_SIGNALS = 4

# Hints of the linking page about a link, in column order; each is from 0 to 1.
BOILERPLATE, IN_TEXT, SAME_HOST, KEPT, OURS, YIELD, ANCHOR_OURS, ANCHOR_OTHER, LISTED, ANCHOR = range(10)
HINTS = 10
STEPS = 255  # a hint is stored in a byte
MARK = 4  # bytes behind the hints: the pattern of the linking page's URL
SIGNALS = HINTS + URL_SIGNALS  # hints and URL signals, side by side
CHOSEN = SIGNALS  # the column behind them: 1 for a seed
SIGNAL_COLUMNS = SIGNALS + 1

LANES = 64  # of one host

Keys = NDArray[np.uint64]
Signals = NDArray[np.float64]
