"""Yields of sibling pages: pages of a host in the same folder, or with names of the same shape.

Keys and memory are shared with the learned policy, so a crawl that is continued under that policy can use them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from thresher.crawler.policy.learned import feature_layout as at
from thresher.crawler.policy.learned.feature_memory import FeatureMemory
from thresher.crawler.policy.learned.features import FeatureExtractor
from thresher.crawler.policy.learned.predictor import COST, NEGLIGIBLE_YIELD, PRIOR_BYTES, TEXT
from thresher.crawler.storage.kv_state import KeyValueState

KNOWN = (at.HOST, at.PATTERN, at.FIRST_FOLDER, at.SECOND_FOLDER)
# The column of the third folder holds a key of folder and shape together.
SIBLINGS = at.THIRD_FOLDER

Reals = NDArray[np.float64]


class SiblingStats:
    """Compares a link with its siblings on the same host."""

    def __init__(self, state: KeyValueState) -> None:
        self._features = FeatureExtractor("")  # folders and shapes are the same in all languages
        self._feature_memory = FeatureMemory(state)

    def add(self, url: str, received: int, text: int) -> None:
        """Add a page that was downloaded."""
        self._feature_memory.add(self._keys([url]), received, text, text > 0, 0.0)

    def compared(self, urls: Sequence[str]) -> list[float]:
        """Return for each URL the expected yield as a multiple of the yield of its host."""
        if not urls:
            return []
        keys = self._keys(urls)
        overall = np.full(len(urls), self._feature_memory.means()[0])
        usual = rate = self._rates(keys[:, at.HOST], overall)
        for column in (*KNOWN[1:], SIBLINGS):  # from the widest group to the closest
            rate = self._rates(keys[:, column], rate)
        compared: list[float] = ((rate + NEGLIGIBLE_YIELD) / (usual + NEGLIGIBLE_YIELD)).tolist()
        return compared

    def _keys(self, urls: Sequence[str]) -> at.Keys:
        """Return the keys of URLs that siblings share; all other columns are 0 and not remembered."""
        keys, _ = self._features.of(urls, [b""] * len(urls))
        wanted = np.zeros_like(keys)
        wanted[:, KNOWN] = keys[:, KNOWN]
        wanted[:, SIBLINGS] = keys[:, at.THIRD_FOLDER] ^ keys[:, at.PATTERN]
        return wanted

    def _rates(self, keys: at.Keys, before: Reals) -> Reals:
        """Return text per byte under keys, shrunk towards `before` where there is little evidence."""
        text, cost = self._feature_memory.recall(keys)[:, (TEXT, COST)].T
        rates: Reals = (text + PRIOR_BYTES * before) / (cost + PRIOR_BYTES)
        return rates

    def flush(self) -> None:
        """Add the slots that changed to the next commit of the state."""
        self._feature_memory.flush()
