"""The unpacked bytes of an archive as its parser goes through them: a window that moves on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from thresher.store.archives.packed import Piece

FORGOTTEN = 1_000  # members behind the window that are forgotten together


class _Member(NamedTuple):
    position: int  # of its first byte among the unpacked ones
    offset: int  # in the file


class Stream:
    """A window on unpacked bytes. It never spans a break, where bytes are missing: `cross` goes on behind it."""

    def __init__(self, pieces: Iterator[Piece], *, packed: bool) -> None:
        self.window = bytearray()
        self._pieces = pieces
        self._packed = packed
        self._position = 0  # of the window's first byte among the unpacked ones
        self._members: list[_Member] = []
        self._here = 0  # which of them the window begins in
        self._beyond: Piece | None = None  # comes after a break
        self._first = 0  # offset of the first member

    @property
    def offset(self) -> int:
        """Where in the file to begin to read in order to come to the window's first byte."""
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
        """Make the window that large, or as large as it can be before a break or the end; returns its size."""
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
        """Go on by so many bytes of the window."""
        count = min(count, len(self.window))
        del self.window[:count]
        self._position += count

    def cross(self) -> bool:
        """Go on behind a break, without what is left of the window; False if there is none: the end."""
        self.drop(len(self.window))
        if self._beyond is None:
            return False
        piece, self._beyond = self._beyond, None
        if piece.data:
            self._append(piece)
        return True

    def starts(self, end: int) -> Iterator[int]:
        """Where in the first `end` bytes of the window members begin."""
        _ = self.offset
        for place in count(self._here):
            if place >= len(self._members):
                return
            start = self._members[place].position - self._position
            if start >= end:
                return
            if start >= 0:
                yield start

    def _append(self, piece: Piece) -> None:
        if piece.first:
            if not self._members:
                self._first = piece.member
            self._members.append(_Member(self._position + len(self.window), piece.member))
        self.window += piece.data
