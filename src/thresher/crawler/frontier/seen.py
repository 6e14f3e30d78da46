"""The set of all URLs that were ever queued: a Bloom filter that grows, in front of the exact set on disk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from thresher.crawler.storage.keys import SEEN
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.crawler.storage.recent_set import RecentSet

Keys = npt.NDArray[np.uint64]  # one row of two halves per key


class BloomFilter:
    """A scalable Bloom filter: layers that double in size, each with half the error of the one before."""

    def __init__(self, capacity: int = 1 << 16, error: float = 1e-3) -> None:
        self._layers = [_Layer(capacity, error / 2)]

    def add(self, keys: Keys) -> None:
        """Add keys."""
        layer = self._layers[-1]
        if layer.count + len(keys) > layer.capacity:
            # A layer is sized so that even one that is filled by a single call keeps its error.
            layer = _Layer(max(2 * layer.capacity, len(keys)), layer.error / 2)
            self._layers.append(layer)
        layer.add(keys)

    def may_hold(self, keys: Keys) -> npt.NDArray[np.bool_]:
        """Return for each key whether it was added: False is certain, True is wrong for one in a thousand."""
        held = self._layers[0].may_hold(keys)
        for layer in self._layers[1:]:
            held |= layer.may_hold(keys)
        return held

    def __len__(self) -> int:
        return sum(layer.count for layer in self._layers)

    @property
    def bytes(self) -> int:
        """Memory of all layers in bytes."""
        return sum(layer.bits.nbytes for layer in self._layers)


class _Layer:
    """A plain Bloom filter with a power of two as its size, so that a mask does the modulo."""

    def __init__(self, capacity: int, error: float) -> None:
        self.capacity = capacity
        self.error = error
        self.count = 0
        self.hashes = max(1, round(-np.log2(error)))
        needed = capacity * self.hashes / np.log(2)
        size = 1 << int(np.ceil(np.log2(needed)))
        self.bits = np.zeros(size // 8, np.uint8)
        self._mask = np.uint64(size - 1)
        self._steps = np.arange(self.hashes, dtype=np.uint64)

    def _places(self, keys: Keys) -> tuple[Keys, npt.NDArray[np.uint8]]:
        bits = (keys[:, :1] + self._steps * (keys[:, 1:] | np.uint64(1))) & self._mask
        return bits >> np.uint64(3), np.uint8(1) << (bits & np.uint64(7)).astype(np.uint8)

    def add(self, keys: Keys) -> None:
        places, masks = self._places(keys)
        np.bitwise_or.at(self.bits, places, masks)
        self.count += len(keys)

    def may_hold(self, keys: Keys) -> npt.NDArray[np.bool_]:
        places, masks = self._places(keys)
        held: npt.NDArray[np.bool_] = ((self.bits[places] & masks) != 0).all(axis=1)
        return held


class SeenUrls:
    """The exact set of all keys ever added; errors of the filter are corrected on disk."""

    RECENT = 100_000  # keys in memory, since most links of a page are menus of the page before

    def __init__(self, state: KeyValueState) -> None:
        self._state = state
        self._filter = BloomFilter()
        self._recent = RecentSet(self.RECENT)
        self.count = 0
        stored = (key[len(SEEN) :] for key, _ in state.entries(SEEN))
        while some := list(islice(stored, self.RECENT)):
            self._filter.add(_as_keys(some))
            self.count += len(some)

    def unseen(self, keys: Sequence[bytes]) -> list[int]:
        """Return the indices of keys that were never added, each key once."""
        places: dict[bytes, int] = {}
        for place, key in enumerate(keys):
            if key not in self._recent and key not in places:
                places[key] = place
        if not places:
            return []
        doubtful = self._filter.may_hold(_as_keys(list(places))).tolist()
        unseen = []
        for (key, place), doubt in zip(places.items(), doubtful, strict=True):
            if doubt and SEEN + key in self._state:
                self._recent.add(key)
            else:
                unseen.append(place)
        return unseen

    def add(self, keys: Sequence[bytes]) -> None:
        """Add keys, none of which was added before."""
        if not keys:
            return
        self._filter.add(_as_keys(keys))
        self.count += len(keys)
        for key in keys:
            self._state.put(SEEN + key, b"")
            self._recent.add(key)


def _as_keys(keys: Sequence[bytes]) -> Keys:
    return np.frombuffer(b"".join(keys), np.uint64).reshape(-1, 2)


def is_seen(state: KeyValueState, key: bytes) -> bool:
    """Return whether a key was ever added, without opening the filter."""
    return SEEN + key in state
