"""A set that forgets the keys that were added longest ago, so that its memory is bounded."""

from __future__ import annotations


class RecentSet:
    """The keys that were added last: at least `least` of them, at most twice as many."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()

    def __contains__(self, key: bytes) -> bool:
        return key in self._young or key in self._old

    def add(self, key: bytes) -> None:
        """Add a key."""
        self._young.add(key)
        if len(self._young) > self._least:
            self._old, self._young = self._young, set()
