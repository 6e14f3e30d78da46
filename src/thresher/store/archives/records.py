"""Parser of WARC and ARC files of any writer; damaged records are cut or skipped, and counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from msgspec import Struct

from thresher.store.archives.packed import READ_BYTES, Dictionary, PackedStream, is_plain, unpacked
from thresher.store.archives.stream import ArchiveStream

MAX_HEAD = 1 << 16  # bytes of the head of a record
_VERSION_BYTES = len("WARC/")
STRIDE = 1 << 20  # bytes that are searched at a time
LONGEST_LINE = 1 << 12  # bytes by which strides overlap, so that no head is missed between them

_VERSION = re.compile(rb"WARC/(\d\.\d+)[ \t]*\r?\n")
# A head after a line that was cut off, as by a killed writer, is recognised by the field that follows it.
_GLUED = rb"WARC/\d\.\d+[ \t]*\r?\n(?=(?i:warc-|content-))"
# In a head, a version after a blank or a colon is part of the value of a field.
_HEAD_END = re.compile(
    rb"\r?\n[ \t]*\r?\n|\n(?P<next>WARC/\d\.\d+[ \t]*\r?\n)|(?<![ \t:])(?P<glued>%b)" % _GLUED
)
_ARC_LINE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]{1,20}:[^\r\n]{1,4000}\r?\n")
_ARC_ADDRESS = re.compile(rb"[\dA-Fa-f.:]{3,45}")
_ARC_DATE = re.compile(rb"\d{8,20}")
_NEXT_WARC = re.compile(rb"(?<=\n)WARC/\d\.\d+[ \t]*\r?\n|%b" % _GLUED)
_NEXT_ARC = re.compile(rb"(?<=\n)(?:https?|ftp|dns|filedesc):[^\r\n]{1,4000}\d\r?\n")
# The part of the head of an ARC record after its URL; such a head may follow a line that was cut off.
_ARC_TAIL = re.compile(rb" [\dA-Fa-f.:]{3,45} \d{8,20} [^\r\n]{0,300}\d\r?\n")
_ARC_URL = re.compile(rb"(?:https?|ftp|dns|filedesc):[^\s\"<>]{1,4000}\Z")
_LONGEST_URL = 4_000
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
_LINE_ENDS = re.compile(rb"[\r\n]+")
_WARC_END, _ARC_END = re.compile(rb"\r?\n\r?\n"), re.compile(rb"\r?\n")  # line ends after a block


class ArchiveRecord(Struct, frozen=True):
    """One record of an archive."""

    number: int  # from 1
    offset: int  # in the file, of the record or of its packed member
    kind: str  # WARC-Type in lower case, or "arc"
    fields: dict[str, str]  # by name in lower case
    block: bytes
    cut: bool  # a part of the block is missing

    def field(self, name: str) -> str:
        """Return the value of a field, "" if there is none."""
        return self.fields.get(name, "")


class ArchiveCounts(Struct):
    """Counts of records and of damage in an archive."""

    records: int = 0
    damaged: int = 0  # records that are cut off or have no valid head
    # Bytes without a readable record: packed ones of damaged members, unpacked ones of others.
    bytes_skipped: int = 0


def records(
    file: BinaryIO,
    limit: int,
    counts: ArchiveCounts | None = None,
    on_read: Callable[[bytes], None] = lambda _: None,
    offset: int = 0,
    dictionary: Dictionary | None = None,
) -> Iterator[ArchiveRecord]:
    """Yield the records of a file from an offset on, with at most `limit` bytes of each block.

    `counts` is updated before each record is yielded, and `on_read` is called with the bytes of the file as they
    are read. A file that is not read from its beginning needs the `dictionary` of its frames, if it has one.
    """
    source = PackedStream(file, on_read, offset)
    return _Archive(source, limit, counts or ArchiveCounts(), dictionary).records()


class _Archive:
    """The state of the parser of one archive."""

    def __init__(
        self, source: PackedStream, limit: int, counts: ArchiveCounts, dictionary: Dictionary | None
    ) -> None:
        self._source = source
        plain = is_plain(source.peek(READ_BYTES))
        self._stream = ArchiveStream(unpacked(source, dictionary), packed=not plain)
        self._limit = limit
        self._counts = counts
        self._garbage = 0  # unpacked bytes
        self._next = _NEXT_WARC  # pattern of the next record, where one is missing

    def records(self) -> Iterator[ArchiveRecord]:
        """Yield the records."""
        stream = self._stream
        while True:
            self._pass_line_ends()
            if not stream.fill(1):
                if not stream.cross():
                    break
                continue
            offset = stream.offset
            fields = self._head()
            if fields is None:
                self._find_next()
                continue
            block, cut = self._block(fields)
            self._counts.records += 1
            self._counts.damaged += cut
            self._count_skipped()
            kind = fields.get("warc-type", "").lower() if self._next is _NEXT_WARC else "arc"
            yield ArchiveRecord(
                self._counts.records, offset, kind, fields, block, cut or len(block) < int(fields[LENGTH])
            )
        self._count_skipped()

    def _count_skipped(self) -> None:
        self._counts.bytes_skipped = self._garbage + self._source.skipped

    def _pass_line_ends(self) -> None:
        stream = self._stream
        while stream.fill(1) and (ends := _LINE_ENDS.match(stream.window)):
            stream.drop(ends.end())

    def _head(self) -> dict[str, str] | None:
        """Return the fields of the record that begins here; if there is none, skip a byte and return None."""
        stream = self._stream
        stream.fill(16)
        if _VERSION.match(stream.window):
            return self._warc_head()
        stream.fill(2 * LONGEST_LINE)
        if line := _arc_line(stream.window):
            return self._arc_head(line)
        self._garbage += 1
        stream.drop(1)
        return None

    def _warc_head(self) -> dict[str, str] | None:
        stream = self._stream
        self._next = _NEXT_WARC
        blank = None
        for size in (LONGEST_LINE, MAX_HEAD):
            have = stream.fill(size)
            blank = _HEAD_END.search(stream.window, _VERSION_BYTES, size)
            if blank or have < size:
                break
        ends = blank is not None and not blank["next"] and not blank["glued"]
        fields = _fields(bytes(stream.window[: blank.start()])) if blank and ends else {}
        if blank is None or not _DIGITS.fullmatch(fields.get(LENGTH, "")):
            self._counts.damaged += 1
            stream.drop(_VERSION_BYTES)  # the search must not find this head again
            self._garbage += _VERSION_BYTES
            return None
        stream.drop(blank.end())
        return fields

    def _arc_head(self, line: _ArcLine) -> dict[str, str] | None:
        self._next = _NEXT_ARC
        self._stream.drop(line.size)
        if not _DIGITS.fullmatch(line.length):
            self._counts.damaged += 1
            self._garbage += line.size
            return None
        return {
            "warc-type": "arc",
            "warc-target-uri": line.url,
            "warc-ip-address": line.address,
            "warc-date": line.date,
            "content-type": line.mime,
            LENGTH: line.length,
        }

    def _block(self, fields: dict[str, str]) -> tuple[bytes, bool]:
        """Return the block of a record up to the limit and whether it was cut off, and advance after the block."""
        stream = self._stream
        length = int(fields[LENGTH])
        if length > self._limit + STRIDE:
            return self._long_block(length)
        have = min(stream.fill(length), length)
        border = self._border(have)
        whole = have == length
        if border is not None:
            have = border
        elif not whole or not self._ends_well(length):
            # Search a little further than the block, since a head may lie across its end.
            have = min(self._next_head(have + LONGEST_LINE, have), have)
            whole = whole and self._is_closed(length)
        block = bytes(stream.window[: min(have, self._limit)])
        stream.drop(have)
        return block, have < length or not whole

    def _long_block(self, length: int) -> tuple[bytes, bool]:
        """Return the beginning of a block over the limit; skip the rest up to the head of another record."""
        stream = self._stream
        block = b""
        passed = 0
        while passed < length:
            size = STRIDE if passed else max(self._limit, STRIDE)
            have = min(stream.fill(min(size, length - passed) + LONGEST_LINE), length - passed)
            border = self._border(have)
            # Search a little further than this stride, since a head may lie across its end.
            end = min(self._next_head(have + LONGEST_LINE, have), have) if border is None else border
            if not passed:
                block = bytes(stream.window[: min(end, self._limit)])
            stream.drop(end)
            passed += end
            if end < size and passed < length:  # a head, a break or the end
                return block, True
        return block, False

    def _border(self, end: int) -> int | None:
        """Return the place before `end` of a packed member that begins with a head: no record reaches over it."""
        for start in self._stream.starts(end):
            self._stream.fill(start + 2 * LONGEST_LINE)
            if _VERSION.match(self._stream.window, start) or _arc_line(self._stream.window, start):
                return start
        return None

    def _ends_well(self, length: int) -> bool:
        """Return whether line ends, and then a head or the end, follow a block of that length."""
        stream = self._stream
        if stream.fill(length + 2 * LONGEST_LINE) == length:
            return True
        behind = bytes(stream.window[length : length + 2 * LONGEST_LINE])
        rest = behind.lstrip(b"\r\n")
        return not rest or bool(_VERSION.match(rest) if self._next is _NEXT_WARC else _arc_line(rest))

    def _is_closed(self, length: int) -> bool:
        """Return whether the line ends of a record follow a block of that length, even if garbage follows them."""
        closed = _WARC_END if self._next is _NEXT_WARC else _ARC_END
        return closed.match(self._stream.window, length) is not None

    def _next_head(self, end: int, otherwise: int) -> int:
        """Return the place before `end` of the next head, in a block whose declared length may be wrong."""
        window = self._stream.window
        if self._next is _NEXT_ARC:
            return min(self._next_arc(end, otherwise), _glued_arc(window, end, otherwise))
        if _VERSION.match(window):
            return 0
        head = _NEXT_WARC.search(window, 0, end)
        return head.start() if head else otherwise

    def _next_arc(self, end: int, otherwise: int) -> int:
        window = self._stream.window
        heads = (head.start() for head in _NEXT_ARC.finditer(window, 0, end))
        return next((start for start in heads if _arc_line(window, start)), otherwise)

    def _find_next(self) -> None:
        """Advance to the next place at which a record may begin."""
        stream = self._stream
        while True:
            size = stream.fill(STRIDE)
            head = self._next_head(size, size)
            border = self._border(head)
            place = head if border is None else border
            if place < size:
                self._garbage += place
                stream.drop(place)
                return
            rest = size if size < STRIDE else size - LONGEST_LINE
            self._garbage += rest
            stream.drop(rest)
            if size < STRIDE:
                return


LENGTH = "content-length"


class _ArcLine(NamedTuple):
    """The head of an ARC record."""

    url: str
    address: str
    date: str
    mime: str
    length: str
    size: int  # of the line


def _glued_arc(window: bytearray, end: int, otherwise: int) -> int:
    """Return the place before `end` of the head of an ARC record after a line that was cut off."""
    for tail in _ARC_TAIL.finditer(window, 0, end):
        start = max(tail.start() - _LONGEST_URL, 0)
        url = _ARC_URL.search(bytes(window[start : tail.start()]))
        if url and _arc_line(window, start + url.start()):
            return start + url.start()
    return otherwise


def _arc_line(window: bytes | bytearray, at: int = 0) -> _ArcLine | None:
    r"""Return the head of an ARC record, None if none begins here.

    It has URL, address, date, type and length, in version 2 five more before the length. URLs may hold spaces.

    >>> _arc_line(b"http://a/b c 192.0.2.7 20260301000000 text/html 12\n")
    _ArcLine(url='http://a/b c', address='192.0.2.7', date='20260301000000', mime='text/html', length='12', size=51)
    """
    line = _ARC_LINE.match(window, at)
    if line is None:
        return None
    words = line[0].rstrip().split(b" ")
    for place in range(2, len(words) - 1):
        if _ARC_DATE.fullmatch(words[place]) and _ARC_ADDRESS.fullmatch(words[place - 1]):
            known = [
                b" ".join(words[: place - 1]),
                words[place - 1],
                words[place],
                words[place + 1],
                words[-1],
            ]
            if len(words) == place + 2:  # no type
                known[3] = b""
            url, address, date, mime, length = map(_text, known)
            return _ArcLine(url, address, date, mime, length, line.end() - at)
    return None


def _fields(head: bytes) -> dict[str, str]:
    """Return the fields of a head, with continued lines joined; the first field of a name counts."""
    found: dict[str, str] = {}
    name = ""
    for line in re.split(r"\r?\n", _text(head))[1:]:
        if line[:1] in (" ", "\t") and name:
            found[name] += " " + line.strip()
            continue
        label, colon, value = line.partition(":")
        name = label.strip().lower() if colon else ""
        if name in found:
            name = ""
        elif name:
            found[name] = value.strip()
    return found


def _text(data: bytes) -> str:
    """Return bytes decoded as UTF-8, as the standard says, or otherwise as Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
