"""Whether a text is in UTF-8: what is not is refused, as nobody could repair it once it is stored."""

from __future__ import annotations

import numpy as np

from thresher.store.lines import LINE_FEED, count_ends

MOST_BAD = 0.01  # of lines that are not ASCII: so few are damage, more are another encoding …
LEAST_LOST = 5  # … unless hardly a letter is lost
FIRST = 1 << 20  # bytes on which there is a first verdict; the second is at the end
LONGEST = 1 << 16  # bytes of a line that is looked at as a whole
LEAST_ZEROS = 16  # fewer bytes of zero are damage …
SHARE_OF_ZEROS = 0.03  # … and so is a smaller share of the text
ON_ONE_SIDE = 0.9  # of them, in UTF-16, stand at even places, or at odd ones


class Verdict:
    """What the bytes of a text tell of its encoding, taken piece by piece."""

    def __init__(self) -> None:
        self._lines = 0  # that are not ASCII …
        self._bad = 0  # … and, of these, not UTF-8
        self._lost = 0  # letters of those
        self._first_bad = 0  # its number, from 1
        self._passed = 0  # lines
        self._bytes = 0
        self._zeros = [0, 0]  # at even places, and at odd ones
        self._rest = b""

    def take(self, piece: bytes) -> None:
        """One more piece."""
        if self._bytes < FIRST and b"\0" in piece:
            places = np.flatnonzero(np.frombuffer(piece, np.uint8) == 0) + self._bytes
            odd = int(np.count_nonzero(places & 1))
            self._zeros = [self._zeros[0] + len(places) - odd, self._zeros[1] + odd]
        self._bytes += len(piece)
        data = self._rest + piece
        end = data.rfind(b"\n") + 1 or (_whole(data) if len(data) > LONGEST else 0)
        self._count(data[:end])
        self._rest = data[end:]

    def end(self) -> None:
        """There was no more."""
        self._count(self._rest)
        self._rest = b""

    def _count(self, data: bytes) -> None:
        if data.isascii():
            self._passed += count_ends(data)
            return
        try:
            data.decode()
        except UnicodeDecodeError:
            for number, line in enumerate(data.split(b"\n"), self._passed + 1):
                if not line.isascii():
                    self._lines += 1
                    self._look_at(line, number)
        else:
            self._lines += _lines_beyond_ascii(data)
        self._passed += count_ends(data)

    def _look_at(self, line: bytes, number: int) -> None:
        try:
            line.decode()
        except UnicodeDecodeError:
            self._bad += 1
            self._lost += line.decode(errors="replace").count("\ufffd")
            self._first_bad = self._first_bad or number

    @property
    def fault(self) -> str:
        """What is wrong with the text, as far as it is known."""
        zeros = sum(self._zeros)
        is_wide = zeros >= max(LEAST_ZEROS, SHARE_OF_ZEROS * min(self._bytes, FIRST))
        if is_wide and max(self._zeros) >= ON_ONE_SIDE * zeros:
            name = "UTF-16LE" if self._zeros[1] > self._zeros[0] else "UTF-16BE"
            return f"seems to be in {name}; make it UTF-8: iconv -f {name} -t UTF-8"
        if self._bad > MOST_BAD * self._lines and self._lost >= LEAST_LOST:
            return (
                f"is not in UTF-8: so are {self._bad:,} of {self._lines:,} lines that are not ASCII, the first in "
                f"line {self._first_bad:,}; make it UTF-8 from what it is in, for example: iconv -f CP1250 -t UTF-8"
            )
        return ""


def _whole(data: bytes) -> int:
    """Where to cut so that no letter is cut, near the end."""
    for place in range(len(data) - 1, max(len(data) - 4, 0), -1):
        if data[place] & 0xC0 != 0x80:
            return place if data[place] & 0x80 else len(data)
    return len(data)


def _lines_beyond_ascii(data: bytes) -> int:
    """How many lines have bytes beyond ASCII."""
    array = np.frombuffer(data, np.uint8)
    starts = np.flatnonzero(array == LINE_FEED) + 1
    starts = np.concatenate([[0], starts[starts < len(array)]])
    return int(np.count_nonzero(np.maximum.reduceat(array, starts) >= 0x80))
