"""A moving window on the unpacked bytes of an archive, for its parser."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from thresher.store.archives.packed import UnpackedBytes

FORGOTTEN = 1_000  # members behind the window that are dropped together


class _Member(NamedTuple):
    position: int  # of its first byte among the unpacked ones
    offset: int  # in the file


class ArchiveStream:
    """A window on unpacked bytes. It never spans a break, where bytes are missing; `cross` continues after it."""

    def __init__(self, pieces: Iterator[UnpackedBytes], *, packed: bool) -> None:
        self.window = bytearray()
        self._pieces = pieces
        self._packed = packed
        self._position = 0  # of the window's first byte among the unpacked ones
        self._members: list[_Member] = []
        self._here = 0  # index of the member in which the window begins
        self._beyond: UnpackedBytes | None = None  # comes after a break
        self._first = 0  # offset of the first member

    @property
    def offset(self) -> int:
        """Offset in the file from which reading leads to the first byte of the window."""
        members = self._members
        while self._here + 1 < len(members) and members[self._here + 1].position <= self._position:
            self._here += 1
        if self._here > FORGOTTEN:
            del members[: self._here]
            self._here = 0
        if not self._packed:
            return self._first + self._position
        return members[self._here].offset if members else 0

    def fill(self, size: int) -> int:
        """Fill the window up to `size` bytes, a break or the end, and return its size."""
        while len(self.window) < size and self._beyond is None:
            piece = next(self._pieces, None)
            if piece is None:
                break
            if piece.broken:
                self._beyond = piece
            else:
                self._append(piece)
        return len(self.window)

    def drop(self, count: int) -> None:
        """Advance the window by `count` bytes."""
        count = min(count, len(self.window))
        del self.window[:count]
        self._position += count

    def cross(self) -> bool:
        """Drop the window and continue after a break; return False at the end of the file."""
        self.drop(len(self.window))
        if self._beyond is None:
            return False
        piece, self._beyond = self._beyond, None
        if piece.data:
            self._append(piece)
        return True

    def starts(self, end: int) -> Iterator[int]:
        """Yield the places in the first `end` bytes of the window at which members begin."""
        _ = self.offset
        for place in count(self._here):
            if place >= len(self._members):
                return
            start = self._members[place].position - self._position
            if start >= end:
                return
            if start >= 0:
                yield start

    def _append(self, piece: UnpackedBytes) -> None:
        if piece.first:
            if not self._members:
                self._first = piece.member
            self._members.append(_Member(self._position + len(self.window), piece.member))
        self.window += piece.data
