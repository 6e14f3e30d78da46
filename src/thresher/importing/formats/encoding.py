"""The check that a text is UTF-8; other encodings are refused, as stored text could not be repaired later."""

from __future__ import annotations

import numpy as np

from thresher.store.token_lines import LINE_FEED, count_ends

# A file is refused if more than this share of its lines beyond ASCII is not UTF-8, and if at least so many
# characters would be lost; less is damage.
MAX_BAD_LINES = 0.01
MIN_LOST_CHARACTERS = 5
FIRST_BYTES = 1 << 20  # of a text, after which there is a first verdict; the second one is at the end
MAX_LINE_BYTES = 1 << 16  # a longer line is checked in parts
# A text is UTF-16 if it has so many zero bytes, if they are such a share of it, and if so many of them are all at
# even or all at odd places.
MIN_ZEROS = 16
MIN_ZERO_SHARE = 0.03
MIN_ON_ONE_SIDE = 0.9


class EncodingCheck:
    """A check of the encoding of a text, which is passed in chunks."""

    def __init__(self) -> None:
        self._lines = 0  # lines beyond ASCII
        self._bad = 0  # lines that are not UTF-8
        self._lost = 0  # characters that would be lost in them
        self._first_bad = 0  # the number of the first bad line, from 1
        self._passed = 0  # lines
        self._bytes = 0
        self._zeros = [0, 0]  # at even and at odd places
        self._rest = b""

    def take(self, chunk: bytes) -> None:
        """Check the next chunk of the text."""
        if self._bytes < FIRST_BYTES and b"\0" in chunk:
            places = np.flatnonzero(np.frombuffer(chunk, np.uint8) == 0) + self._bytes
            odd = int(np.count_nonzero(places & 1))
            self._zeros = [self._zeros[0] + len(places) - odd, self._zeros[1] + odd]
        self._bytes += len(chunk)
        data = self._rest + chunk
        end = data.rfind(b"\n") + 1 or (_whole(data) if len(data) > MAX_LINE_BYTES else 0)
        self._count(data[:end])
        self._rest = data[end:]

    def end(self) -> None:
        """End the text."""
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
                    self._check_line(line, number)
        else:
            self._lines += _lines_beyond_ascii(data)
        self._passed += count_ends(data)

    def _check_line(self, line: bytes, number: int) -> None:
        try:
            line.decode()
        except UnicodeDecodeError:
            self._bad += 1
            self._lost += line.decode(errors="replace").count("\ufffd")
            self._first_bad = self._first_bad or number

    @property
    def fault(self) -> str:
        """The fault of the text so far, with the fix; "" if there is none."""
        zeros = sum(self._zeros)
        is_wide = zeros >= max(MIN_ZEROS, MIN_ZERO_SHARE * min(self._bytes, FIRST_BYTES))
        if is_wide and max(self._zeros) >= MIN_ON_ONE_SIDE * zeros:
            name = "UTF-16LE" if self._zeros[1] > self._zeros[0] else "UTF-16BE"
            return f"seems to be in {name}; convert it: iconv -f {name} -t UTF-8"
        if self._bad > MAX_BAD_LINES * self._lines and self._lost >= MIN_LOST_CHARACTERS:
            return (
                f"is not UTF-8: {self._bad:,} of {self._lines:,} lines beyond ASCII are not, the first of them "
                f"line {self._first_bad:,}; convert it from its encoding, for example: iconv -f CP1250 -t UTF-8"
            )
        return ""


def _whole(data: bytes) -> int:
    """Return the last place at which data can be cut between two characters."""
    for place in range(len(data) - 1, max(len(data) - 4, 0), -1):
        if data[place] & 0xC0 != 0x80:
            return place if data[place] & 0x80 else len(data)
    return len(data)


def _lines_beyond_ascii(data: bytes) -> int:
    """Return the number of lines with bytes beyond ASCII."""
    array = np.frombuffer(data, np.uint8)
    starts = np.flatnonzero(array == LINE_FEED) + 1
    starts = np.concatenate([[0], starts[starts < len(array)]])
    return int(np.count_nonzero(np.maximum.reduceat(array, starts) >= 0x80))
