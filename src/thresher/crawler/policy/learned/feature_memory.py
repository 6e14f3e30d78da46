"""Memory of the learned policy: sums of results under every key of a page, fading, of fixed size, in the state."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.crawler.policy.learned import feature_layout as at
from thresher.crawler.policy.learned.predictor import (
    REQUEST_BYTES,
    SLOT_WIDTH,
    SLOTS,
    TAG,
    WORD_SLOTS,
    WORD_WIDTH,
    add_page,
    credit,
)
from thresher.crawler.storage.keys import FEATURES, FEATURES_OVERALL
from thresher.crawler.storage.kv_state import KeyValueState

RECENT_PAGES = 50  # of the moving average of the crawl's yield
FADE = 1.0 - 1.0 / 3_000  # weight that a page keeps in the totals of the crawl with each later page
CACHE_LINE_BYTES = 64

Memory = NDArray[np.float32]


class CrawlTotals(Struct, array_like=True):
    """Fading totals of the whole crawl; the prior is five pages with little text."""

    text: float = 1_000.0
    cost: float = 50_000.0
    pages: float = 5.0
    ours: float = 0.2
    spent: float = 0.0  # bytes downloaded in all
    tried: float = 0.0  # bytes downloaded to explore
    late_text: float = 0.0  # moving average per page
    late_cost: float = 10_000.0

    @property
    def recent_rate(self) -> float:
        """Text per byte of the most recent pages."""
        return self.late_text / self.late_cost


class FeatureMemory:
    """The memory of one crawl: a hash table of slots for keys, a smaller one for words, and totals."""

    def __init__(self, state: KeyValueState) -> None:
        self._state = state
        self.memory = _nothing(SLOTS, SLOT_WIDTH)
        self.words = _nothing(WORD_SLOTS, WORD_WIDTH)
        self._changed: set[int] = set()
        self._slots = np.empty(at.KEYS, np.int64)
        stored = state.get(FEATURES_OVERALL)
        self.overall = msgspec.msgpack.decode(stored, type=CrawlTotals) if stored else CrawlTotals()
        for key, value in state.scan(FEATURES):
            slot = self._slot(int.from_bytes(key[len(FEATURES) :], "big"))
            if len(value) == slot.nbytes:  # a slot of another version is dropped
                slot[:] = np.frombuffer(value, np.float32)

    def _slot(self, number: int) -> Memory:
        """Return a slot by its number; slots of words are numbered after the others."""
        slot: Memory = self.memory[number] if number < SLOTS else self.words[(number - SLOTS) % WORD_SLOTS]
        return slot

    def add(self, keys: at.Keys, received: int, text: int, ours: bool, guessed: float) -> None:
        """Add a page under all keys of its URL.

        Parameters
        ----------
        keys
            The keys of its URL, in a single row.
        received
            Bytes downloaded.
        text
            Bytes of text that it added to the corpus.
        ours
            Whether it is in the language of the corpus.
        guessed
            The yield that trees predicted for it.
        """
        cost = received + REQUEST_BYTES
        page = float(text), cost, float(ours), guessed
        count = add_page(keys, 0, self.memory, self.words, *page, self._slots)
        self._changed.update(self._slots[:count].tolist())
        overall = self.overall
        overall.text = FADE * overall.text + text
        overall.cost = FADE * overall.cost + cost
        overall.pages = FADE * overall.pages + 1
        overall.ours = FADE * overall.ours + ours
        overall.spent += received
        overall.late_text += (text - overall.late_text) / RECENT_PAGES
        overall.late_cost += (cost - overall.late_cost) / RECENT_PAGES

    def credit(self, keys: at.Keys, text: float) -> None:
        """Credit a page with text that was found behind it; `keys` are the keys of the page."""
        count = credit(keys, 0, self.memory, text, self._slots)
        self._changed.update(self._slots[:count].tolist())

    def recall(self, keys: at.Keys) -> Memory:
        """Return the slots of some keys, none of them keys of words; zeros for unknown keys."""
        places = (keys & np.uint64(SLOTS - 1)).astype(np.int64)
        is_there = self.memory[places, -1] == (keys >> TAG).astype(np.float32)
        return np.where(is_there[:, None], self.memory[places], np.float32(0.0))

    def means(self) -> NDArray[np.float64]:
        """Return text per byte and the share of pages in the language of the corpus, for the whole crawl."""
        overall = self.overall
        return np.array([overall.text / overall.cost, overall.ours / overall.pages])

    def flush(self) -> None:
        """Add the slots that changed to the next commit of the state."""
        for number in self._changed:
            self._state.put(FEATURES + number.to_bytes(4, "big"), self._slot(number).tobytes())
        self._changed.clear()
        self._state.put(FEATURES_OVERALL, msgspec.msgpack.encode(self.overall))


def _nothing(slots: int, width: int) -> Memory:
    """Return an empty memory with slots aligned to cache lines."""
    size = 4 * slots * width
    room = np.zeros(size + CACHE_LINE_BYTES, np.uint8)
    start = -room.ctypes.data % CACHE_LINE_BYTES
    return room[start : start + size].view(np.float32).reshape(slots, width)
