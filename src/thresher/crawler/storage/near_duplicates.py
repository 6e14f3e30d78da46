"""Near duplicates: paragraphs with mostly known shingles are dropped.

The shingles of kept paragraphs are in the state, one value per page, so they are as durable as the page. A Bloom
filter in memory, built from the state on opening, answers all questions. It takes one new shingle in a thousand
for an old one, which does not matter where half of a paragraph's shingles must be old.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import compress, islice

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from thresher.config import JudgeSettings
from thresher.crawler.storage.keys import SHINGLES
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.reader.quality.fingerprint import text_hash
from thresher.reader.quality.shingles import fates
from thresher.reasons import NEAR_DUPLICATE
from thresher.records import ReadResult, Shingles, Verdict

PAGES_PER_LOAD = 64  # pages whose shingles are put into the filter at once on opening

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


class ShingleFilter:
    """A Bloom filter in layers, each larger than the one before; at its limit it drops the oldest layer.

    All bits of a shingle in a layer are in one row of 32 bytes, so a look-up costs one access to memory per layer.
    """

    FIRST = 1 << 17  # shingles in the first layer: half a megabyte
    GROWTH = 4  # fewer layers are faster to ask, smaller steps waste less memory
    PARTS = 4  # the largest layer is this part of the limit, since a layer is dropped as a whole

    def __init__(self, limit: int = 0) -> None:
        """Make an empty filter of at most `limit` bytes, the first layer not counted; 0 is no limit."""
        self._limit = limit
        self._layers = deque([_Layer(self.FIRST, 0)])

    def add(self, hashes: Hashes, page: int) -> None:
        """Add shingles of a page; pages are added in the order of their numbers."""
        if self._layers[-1].count + len(hashes) > self._layers[-1].capacity:
            self._grow(len(hashes), page)
        self._layers[-1].add(_rows(hashes), _bits(hashes))

    def may_hold(self, hashes: Hashes) -> Mask:
        """Return for each hash whether it was added: False is certain, True is wrong for one in a thousand."""
        rows, bits = _rows(hashes), _bits(hashes)
        held = self._layers[-1].may_hold(rows, bits)
        for layer in list(self._layers)[:-1]:
            held |= layer.may_hold(rows, bits)
        return held

    def _grow(self, shingles: int, page: int) -> None:
        capacity = self.GROWTH * self._layers[-1].capacity
        if self._limit:
            capacity = min(capacity, max(self.FIRST, _Layer.room(self._limit // self.PARTS)))
        layer = _Layer(max(capacity, shingles), page)
        while self._limit and self._layers and self.bytes + layer.words.nbytes > self._limit:
            self._layers.popleft()
        self._layers.append(layer)

    @property
    def oldest(self) -> int:
        """Number of the first page with shingles in the filter."""
        return self._layers[0].page

    def __len__(self) -> int:
        return sum(layer.count for layer in self._layers)

    @property
    def bytes(self) -> int:
        """Memory of all layers in bytes."""
        return sum(layer.words.nbytes for layer in self._layers)


class _Layer:
    """Rows of eight words of 32 bits; a shingle has a row, and one bit in each of its words."""

    ROW_BYTES = 32
    # At nine shingles per row, one look-up in 12,000 is wrong, so ten full layers are wrong for one in a thousand.
    ROW_SHINGLES = 9

    def __init__(self, capacity: int, page: int) -> None:
        self.capacity = capacity
        self.page = page  # number of the first page in this layer
        self.count = 0
        self.words = np.zeros((-(-capacity // self.ROW_SHINGLES), self.ROW_BYTES // 8), np.uint64)

    @classmethod
    def room(cls, size: int) -> int:
        """Return the number of shingles that a layer of some bytes holds."""
        return size // cls.ROW_BYTES * cls.ROW_SHINGLES

    def _places(self, rows: Hashes) -> npt.NDArray[np.intp]:
        return (rows * np.uint64(len(self.words)) >> np.uint64(32)).astype(np.intp)

    def add(self, rows: Hashes, bits: Hashes) -> None:
        self.count += len(rows)
        places = self._places(rows)
        while len(places):  # of several shingles in one row, one is written per round
            self.words[places] = self.words.take(places, axis=0) | bits
            lost = ((self.words.take(places, axis=0) & bits) != bits).any(axis=1)
            places, bits = places[lost], bits[lost]

    def may_hold(self, rows: Hashes, bits: Hashes) -> Mask:
        held: Mask = ((self.words.take(self._places(rows), axis=0) & bits) == bits).all(axis=1)
        return held


_SHIFTS = np.arange(0, 8 * 5, 5, dtype=np.uint64)


def _rows(hashes: Hashes) -> Hashes:
    """Return the half of each hash that selects its row."""
    return hashes >> np.uint64(32)


def _bits(hashes: Hashes) -> Hashes:
    """Return one bit of 32 for each of eight words, selected by five bits of the hash; two words form a number."""
    chosen = (hashes[:, None] >> _SHIFTS & np.uint64(31)).astype(np.uint32)
    return (np.uint32(1) << chosen).view(np.uint64)


class NearDuplicateFilter:
    """The shingles of all kept text, by which repeated paragraphs are removed from pages."""

    def __init__(self, state: KeyValueState, settings: JudgeSettings) -> None:
        self._state = state
        self._settings = settings
        self._filter = ShingleFilter(settings.near_duplicate_memory)
        self._first = self._next = 0  # the state has the shingles of pages in [first, next)
        stored = state.entries(SHINGLES)
        while some := list(islice(stored, PAGES_PER_LOAD)):
            if not self._next:
                self._first = _number(some[0][0])
            self._filter.add(_hashes(b"".join(value for _, value in some)), _number(some[0][0]))
            self._next = _number(some[-1][0]) + 1
        self._forget()

    def sift(self, page: ReadResult, verdict: Verdict) -> tuple[ReadResult, Verdict]:
        """Return a page that would be kept without repeated paragraphs, and its verdict.

        The verdict is "near duplicate" if too little is left. Paragraphs of a kept page count as seen from now on,
        durable with the next commit; a rejected page leaves no trace.
        """
        hashes = _hashes(page.shingles.hashes)
        counts = np.maximum(np.array(page.shingles.counts, np.intp), 0)
        owners = np.repeat(np.arange(len(counts)), counts)
        seen = self._filter.may_hold(hashes) | _repeated(hashes, owners)
        old = np.bincount(owners[seen], minlength=len(counts)) > self._settings.near_duplicate_share * counts
        sifted = _without(page, old.tolist()) if old.any() else page
        if sifted is not page and len(sifted.text) < max(1, self._settings.min_text_chars):
            return page, replace(verdict, keep=False, reason=NEAR_DUPLICATE)
        self._remember(np.unique(hashes[~seen & ~old[owners]]))
        return sifted, verdict

    def _remember(self, hashes: Hashes) -> None:
        if len(hashes):
            self._state.put(_key(self._next), hashes.tobytes())
            self._filter.add(hashes, self._next)
            self._next += 1
            self._forget()

    def _forget(self) -> None:
        """Delete shingles from the state that the filter has dropped."""
        for number in range(self._first, self._filter.oldest):
            self._state.delete(_key(number))
        self._first = max(self._first, self._filter.oldest)


def _repeated(hashes: Hashes, owners: npt.NDArray[np.intp]) -> Mask:
    """Return for each shingle whether it stood in an earlier paragraph of the same page."""
    _, first, same = np.unique(hashes, return_index=True, return_inverse=True)
    repeated: Mask = owners[first][same] < owners
    return repeated


def _without(page: ReadResult, old: Sequence[bool]) -> ReadResult:
    """Return the page without its old paragraphs."""
    counts = page.shingles.counts
    stays = fates(counts, old)
    kept = [stay and count >= 0 for stay, count in zip(stays, counts, strict=True)]
    paragraphs = [block.text for block in compress(page.blocks, kept)]
    return replace(
        page,
        blocks=tuple(compress(page.blocks, stays)),
        text="\n".join(paragraphs),
        text_hash=text_hash(paragraphs),
        shingles=Shingles(),
    )


def _hashes(raw: bytes) -> Hashes:
    return np.frombuffer(raw, np.uint64)


def _key(number: int) -> bytes:
    return SHINGLES + number.to_bytes(8, "big")


def _number(key: bytes) -> int:
    return int.from_bytes(key[len(SHINGLES) :], "big")
