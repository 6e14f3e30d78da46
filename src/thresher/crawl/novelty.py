"""Which text is new: paragraphs whose runs of words were mostly seen before are dropped (S5).

The runs of kept paragraphs are in the state, a value for each page, so they are as durable as the page itself. In
memory is a filter that grows by itself; it is built from the state on opening. It alone is asked: that it takes
one new run in a thousand for an old one decides nothing where half of a paragraph must be old.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import compress, islice

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from thresher.config import Judging
from thresher.crawl.state import State, after
from thresher.page import Page, Runs, Verdict
from thresher.read.fingerprint import text_hash
from thresher.read.runs import fates

PREFIX = b"n"  # n number of the page -> its runs that were new, 8 bytes each
TOGETHER = 64  # pages whose runs are put into the filter at once on opening

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


class RunFilter:
    """A Bloom filter in layers, each larger than the one before; at its limit it forgets the oldest layer.

    All that a layer knows of a run is in one row of 32 bytes, so a run costs one visit to memory in each layer.
    """

    FIRST = 1 << 17  # runs in the first layer: half a megabyte
    GROWTH = 4  # fewer layers are quicker to ask, smaller steps waste less memory
    PARTS = 4  # of the limit, the largest layer: so much is forgotten at once

    def __init__(self, limit: int = 0) -> None:
        """At most so many bytes, but for the first layer; 0 is no limit."""
        self._limit = limit
        self._layers = deque([_Layer(self.FIRST, 0)])

    def add(self, hashes: Hashes, page: int) -> None:
        """Hold these runs, which stand on the page of that number or on those after it."""
        if self._layers[-1].count + len(hashes) > self._layers[-1].capacity:
            self._grow(len(hashes), page)
        self._layers[-1].add(_rows(hashes), _bits(hashes))

    def may_hold(self, hashes: Hashes) -> Mask:
        """False: certainly not held. True: held, but for one in a thousand."""
        rows, bits = _rows(hashes), _bits(hashes)
        held = self._layers[-1].may_hold(rows, bits)
        for layer in list(self._layers)[:-1]:
            held |= layer.may_hold(rows, bits)
        return held

    def _grow(self, runs: int, page: int) -> None:
        capacity = self.GROWTH * self._layers[-1].capacity
        if self._limit:
            capacity = min(capacity, max(self.FIRST, _Layer.room(self._limit // self.PARTS)))
        layer = _Layer(max(capacity, runs), page)
        while self._limit and self._layers and self.bytes + layer.words.nbytes > self._limit:
            self._layers.popleft()
        self._layers.append(layer)

    @property
    def oldest(self) -> int:
        """The first page whose runs are held; those of all pages before are forgotten."""
        return self._layers[0].page

    def __len__(self) -> int:
        return sum(layer.count for layer in self._layers)

    @property
    def bytes(self) -> int:
        return sum(layer.words.nbytes for layer in self._layers)


class _Layer:
    """Rows of eight words of 32 bits; a run has a row, and in each word of it one bit."""

    ROW_BYTES = 32
    ROW_RUNS = 9  # at which one run in 12,000 is held by mistake: ten full layers err once in a thousand

    def __init__(self, capacity: int, page: int) -> None:
        self.capacity = capacity
        self.page = page  # the first whose runs are here
        self.count = 0
        self.words = np.zeros((-(-capacity // self.ROW_RUNS), self.ROW_BYTES // 8), np.uint64)

    @classmethod
    def room(cls, size: int) -> int:
        """How many runs so many bytes are good for."""
        return size // cls.ROW_BYTES * cls.ROW_RUNS

    def _places(self, rows: Hashes) -> npt.NDArray[np.intp]:
        return (rows * np.uint64(len(self.words)) >> np.uint64(32)).astype(np.intp)

    def add(self, rows: Hashes, bits: Hashes) -> None:
        self.count += len(rows)
        places = self._places(rows)
        while len(places):  # of runs that share a row one is written at a time
            self.words[places] = self.words.take(places, axis=0) | bits
            lost = ((self.words.take(places, axis=0) & bits) != bits).any(axis=1)
            places, bits = places[lost], bits[lost]

    def may_hold(self, rows: Hashes, bits: Hashes) -> Mask:
        held: Mask = ((self.words.take(self._places(rows), axis=0) & bits) == bits).all(axis=1)
        return held


_SHIFTS = np.arange(0, 8 * 5, 5, dtype=np.uint64)


def _rows(hashes: Hashes) -> Hashes:
    """The half of each hash that tells its row."""
    return hashes >> np.uint64(32)


def _bits(hashes: Hashes) -> Hashes:
    """One bit of 32 in each of eight words, five bits of the hash tell which; two words are one number here."""
    chosen = (hashes[:, None] >> _SHIFTS & np.uint64(31)).astype(np.uint32)
    return (np.uint32(1) << chosen).view(np.uint64)


class Novelty:
    """A memory of the runs of words of all kept text, by which pages are rid of what was seen before."""

    def __init__(self, state: State, settings: Judging) -> None:
        self._state = state
        self._settings = settings
        self._filter = RunFilter(settings.near_duplicate_memory)
        self._first = self._next = 0  # the state has the runs of pages from one to before the other
        stored = state.committed(PREFIX, after(PREFIX))
        while some := list(islice(stored, TOGETHER)):
            if not self._next:
                self._first = _number(some[0][0])
            self._filter.add(_hashes(b"".join(value for _, value in some)), _number(some[0][0]))
            self._next = _number(some[-1][0]) + 1
        self._forget()

    def sift(self, page: Page, verdict: Verdict) -> tuple[Page, Verdict]:
        """A page that would be kept, with its new paragraphs alone; or the verdict that too little of it is new.

        What is kept is seen from now on, durable with the next commit. A page that is not kept leaves no trace.
        """
        hashes = _hashes(page.runs.hashes)
        counts = np.maximum(np.array(page.runs.counts, np.intp), 0)
        owners = np.repeat(np.arange(len(counts)), counts)
        seen = self._filter.may_hold(hashes) | _repeated(hashes, owners)
        old = np.bincount(owners[seen], minlength=len(counts)) > self._settings.near_duplicate_share * counts
        sifted = _without(page, old.tolist()) if old.any() else page
        if sifted is not page and len(sifted.text) < max(1, self._settings.min_text_chars):
            return page, replace(verdict, keep=False, reason="near duplicate")
        self._remember(np.unique(hashes[~seen & ~old[owners]]))
        return sifted, verdict

    def _remember(self, hashes: Hashes) -> None:
        if len(hashes):
            self._state.put(_key(self._next), hashes.tobytes())
            self._filter.add(hashes, self._next)
            self._next += 1
            self._forget()

    def _forget(self) -> None:
        """What the filter no longer holds need not be in the state."""
        for number in range(self._first, self._filter.oldest):
            self._state.delete(_key(number))
        self._first = max(self._first, self._filter.oldest)


def _repeated(hashes: Hashes, owners: npt.NDArray[np.intp]) -> Mask:
    """Which runs stood in an earlier paragraph of the same page."""
    _, first, same = np.unique(hashes, return_index=True, return_inverse=True)
    repeated: Mask = owners[first][same] < owners
    return repeated


def _without(page: Page, old: Sequence[bool]) -> Page:
    """The page without its old paragraphs."""
    counts = page.runs.counts
    stays = fates(counts, old)
    said = [stay and count >= 0 for stay, count in zip(stays, counts, strict=True)]
    paragraphs = [block.text for block in compress(page.blocks, said)]
    return replace(
        page,
        blocks=tuple(compress(page.blocks, stays)),
        text="\n".join(paragraphs),
        text_hash=text_hash(paragraphs),
        runs=Runs(),
    )


def _hashes(raw: bytes) -> Hashes:
    return np.frombuffer(raw, np.uint64)


def _key(number: int) -> bytes:
    return PREFIX + number.to_bytes(8, "big")


def _number(key: bytes) -> int:
    return int.from_bytes(key[len(PREFIX) :], "big")
