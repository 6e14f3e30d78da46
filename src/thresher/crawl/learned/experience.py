"""What came of links so far, under every key they had: a memory that fades, of a fixed size, kept in the state."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.crawl.learned import layout as at
from thresher.crawl.learned.forecast import (
    REQUEST,
    SLOT_WIDTH,
    SLOTS,
    TAG,
    WORD_SLOTS,
    WORD_WIDTH,
    credit,
    remember,
)
from thresher.crawl.state import State

SLOT = b"x"  # x number of the slot -> what stands in it
OVERALL = b"m/learned"
LATELY = 50  # pages
FADE = 1.0 - 1.0 / 3_000  # what a page less recent by one counts for the whole crawl
LINE = 64  # bytes that a processor fetches at once

Memory = NDArray[np.float32]


class Overall(Struct, array_like=True):
    """The whole crawl, as far as it is remembered; it starts as if a few pages had brought little."""

    text: float = 1_000.0
    cost: float = 50_000.0
    pages: float = 5.0
    ours: float = 0.2
    spent: float = 0.0  # bytes downloaded in all …
    tried: float = 0.0  # … and of those to try something new
    late_text: float = 0.0  # of the last pages, on average
    late_cost: float = 10_000.0

    @property
    def lately(self) -> float:
        """Text per byte of the last pages."""
        return self.late_text / self.late_cost


class Experience:
    """The memory of a crawl."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.memory = _nothing(SLOTS, SLOT_WIDTH)
        self.words = _nothing(WORD_SLOTS, WORD_WIDTH)
        self._changed: set[int] = set()
        self._slots = np.empty(at.KEYS, np.int64)
        stored = state.get(OVERALL)
        self.overall = msgspec.msgpack.decode(stored, type=Overall) if stored else Overall()
        for key, value in state.scan(SLOT):
            slot = self._slot(int.from_bytes(key[len(SLOT) :], "big"))
            if len(value) == slot.nbytes:  # what another version remembered is learnt anew
                slot[:] = np.frombuffer(value, np.float32)

    def _slot(self, number: int) -> Memory:
        """A slot by its number: those of words are counted on from the others."""
        slot: Memory = self.memory[number] if number < SLOTS else self.words[(number - SLOTS) % WORD_SLOTS]
        return slot

    def add(self, keys: at.Keys, received: int, text: int, ours: bool, guessed: float) -> None:
        """A page came in: `keys` are those of its URL, as the only row; its yield was guessed before."""
        cost = received + REQUEST
        page = float(text), cost, float(ours), guessed
        count = remember(keys, 0, self.memory, self.words, *page, self._slots)
        self._changed.update(self._slots[:count].tolist())
        overall = self.overall
        overall.text = FADE * overall.text + text
        overall.cost = FADE * overall.cost + cost
        overall.pages = FADE * overall.pages + 1
        overall.ours = FADE * overall.ours + ours
        overall.spent += received
        overall.late_text += (text - overall.late_text) / LATELY
        overall.late_cost += (cost - overall.late_cost) / LATELY

    def credit(self, keys: at.Keys, text: float) -> None:
        """A page led to a link that gave text: `keys` are those of the page."""
        count = credit(keys, 0, self.memory, text, self._slots)
        self._changed.update(self._slots[:count].tolist())

    def recall(self, keys: at.Keys) -> Memory:
        """What is remembered under some keys, none of them of words; zeros where it is nothing."""
        places = (keys & np.uint64(SLOTS - 1)).astype(np.int64)
        is_there = self.memory[places, -1] == (keys >> TAG).astype(np.float32)
        return np.where(is_there[:, None], self.memory[places], np.float32(0.0))

    def means(self) -> NDArray[np.float64]:
        """Text per byte and the share of pages in our language, of the whole crawl."""
        overall = self.overall
        return np.array([overall.text / overall.cost, overall.ours / overall.pages])

    def flush(self) -> None:
        """Hand what has changed to the state's next commit."""
        for number in self._changed:
            self._state.put(SLOT + number.to_bytes(4, "big"), self._slot(number).tobytes())
        self._changed.clear()
        self._state.put(OVERALL, msgspec.msgpack.encode(self.overall))


def _nothing(slots: int, width: int) -> Memory:
    """An empty memory whose slots begin where lines do."""
    size = 4 * slots * width
    room = np.zeros(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size].view(np.float32).reshape(slots, width)
