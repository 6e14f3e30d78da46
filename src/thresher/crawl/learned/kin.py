"""What pages of a host gave that are like a link: under its folder, with a name of its shape.

The keys and the memory are those of the policy that learns, so a crawl that goes on under that one has use for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from thresher.crawl.learned import layout as at
from thresher.crawl.learned.clues import Clues
from thresher.crawl.learned.experience import Experience
from thresher.crawl.learned.forecast import COST, FIRM, LITTLE, TEXT
from thresher.crawl.state import State

KNOWN = (at.HOST, at.PATTERN, at.FIRST_FOLDER, at.SECOND_FOLDER)
SIBLINGS = at.THIRD_FOLDER  # where that would stand: its folder and its shape in one key

Reals = NDArray[np.float64]


class Kin:
    """Compares links with what came of others of their hosts."""

    def __init__(self, state: State) -> None:
        self._clues = Clues("")  # folders and shapes are the same in all languages
        self._experience = Experience(state)

    def add(self, url: str, received: int, text: int) -> None:
        """A page came in."""
        self._experience.add(self._keys([url]), received, text, text > 0, 0.0)

    def compared(self, urls: Sequence[str]) -> list[float]:
        """How many times what its host gave so far is to be expected of each URL."""
        if not urls:
            return []
        keys = self._keys(urls)
        overall = np.full(len(urls), self._experience.means()[0])
        usual = rate = self._rates(keys[:, at.HOST], overall)
        for column in (*KNOWN[1:], SIBLINGS):  # ever closer relatives
            rate = self._rates(keys[:, column], rate)
        compared: list[float] = ((rate + LITTLE) / (usual + LITTLE)).tolist()
        return compared

    def _keys(self, urls: Sequence[str]) -> at.Keys:
        """The keys of URLs that are asked for here; none of the others goes into the memory."""
        keys, _ = self._clues.of(urls, [b""] * len(urls))
        wanted = np.zeros_like(keys)
        wanted[:, KNOWN] = keys[:, KNOWN]
        wanted[:, SIBLINGS] = keys[:, at.THIRD_FOLDER] ^ keys[:, at.PATTERN]
        return wanted

    def _rates(self, keys: at.Keys, before: Reals) -> Reals:
        """Text per byte under keys; where little is known, about what was thought before."""
        text, cost = self._experience.recall(keys)[:, (TEXT, COST)].T
        rates: Reals = (text + FIRM * before) / (cost + FIRM)
        return rates

    def flush(self) -> None:
        """Hand what was learnt to the state's next commit."""
        self._experience.flush()
