"""An archive's bytes unpacked, member after member; where a member is damaged, on from the next good one.

Archives are packed record by record, as members of gzip or frames of zstd or lz4, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import zstandard
from isal import isal_zlib

READ_BYTES = 1 << 16
PORTION = 1 << 18  # bytes that are unpacked at a time, however much a member promises
ZSTD_PIECE = 512  # bytes: what zstd unpacks at a time cannot be bounded otherwise; these hold 16 MB at most
ZSTD_WINDOW = 1 << 27
MAX_DICTIONARY = 16 << 20
MAX_LZ4_FRAME = 64 << 20  # packed; a longer one is damaged
HISTORY = 1 << 18  # bytes that are looked at again where a member turns out to be damaged …
FREE_STEPS_BACK = 1 << 20  # … of which no more in all than the file has bytes, and so many
LOOKED_AT = 1 << 12  # bytes after a sign of a member that tell whether it is one

# How a record begins; what comes after damage must begin like that.
BEGINS = re.compile(
    rb"WARC/\d\.\d+\r?\n|filedesc://|[a-z]{3,8}:[^\r\n]{1,2000} [\d.]{7,15} \d{8,17} [^\r\n]*\n"
)

_GZIP = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]")
_ZSTD = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)
_LZ4 = re.compile(rb"\x04\x22\x4d\x18")
_MAGIC_BYTES = 4
_DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"

_FAULTS: tuple[Any, ...] = (
    isal_zlib.error,
    zstandard.ZstdError,
    pa.ArrowException,
    OSError,
    EOFError,
    ValueError,
)


class Damage(Exception):
    """A member ends before its end, or is none."""


class Piece(NamedTuple):
    """Some unpacked bytes."""

    data: bytes
    member: int  # where in the file their member begins
    first: bool  # they are the first of their member
    broken: bool = False  # bytes are missing before them


class Packed:
    """A file read once from front to back, with its place and a short way back."""

    def __init__(
        self, file: BinaryIO, told: Callable[[bytes], None] = lambda _: None, offset: int = 0
    ) -> None:
        self.offset = offset  # of the next byte
        self.skipped = 0  # bytes in which no member could be read
        self._file = file
        self._told = told
        self._ahead = b""
        self._recent = bytearray()  # what was read since the last mark, no more than HISTORY
        self._stepped_back = 0

    def read(self) -> bytes:
        """The next bytes, b"" at the end."""
        data = self._ahead or self._more()
        self._ahead = b""
        self.offset += len(data)
        self._recent += data
        if len(self._recent) > 2 * HISTORY:
            del self._recent[:-HISTORY]
        return data

    def unread(self, data: bytes) -> None:
        """Give the last bytes back."""
        if data:
            self._ahead = data + self._ahead
            self.offset -= len(data)
            del self._recent[-len(data) :]

    def peek(self, count: int) -> bytes:
        """The next bytes, as many as asked for or as there are, without going on."""
        if len(self._ahead) < count:
            parts = [self._ahead]
            size = len(self._ahead)
            while size < count and (data := self._more()):
                parts.append(data)
                size += len(data)
            self._ahead = b"".join(parts)
        return self._ahead[:count]

    def mark(self) -> None:
        """A member begins here."""
        self._recent.clear()

    def step_back(self) -> None:
        """Go back to just behind the mark, as far as that is still known and affordable."""
        affordable = self.offset + FREE_STEPS_BACK - self._stepped_back
        known = bytes(self._recent[1:][-HISTORY:])
        if known and affordable > 0:
            known = known[-affordable:]
            self._stepped_back += len(known)
            self.unread(known)

    def _more(self) -> bytes:
        data = self._file.read(READ_BYTES)
        self._told(data)
        return data


Unpack = Callable[
    [Packed], Iterator[bytes]
]  # one member; Damage, or what its library raises, if it has no end


def unpacked(packed: Packed) -> Iterator[Piece]:
    """The pieces of all members that can be read. Each file is read to its end."""
    start = packed.peek(READ_BYTES)
    family = _family(start)
    if family is None and (BEGINS.search(start) or not any(magic.search(start) for magic in _FAMILIES)):
        yield from _plain(packed)
        return
    members = _Members(packed)
    broken = False
    while packed.peek(1):
        unpack = members.unpacker()
        if unpack is None:
            if not members.seek_next(family):
                return
            broken = True
            continue
        family = _family(packed.peek(_MAGIC_BYTES))
        begins, first = packed.offset, True
        packed.mark()
        try:
            for data in unpack(packed):
                yield Piece(data, begins, first, broken)
                first = broken = False
        except (Damage, *_FAULTS):
            packed.step_back()
            yield Piece(b"", packed.offset, False, True)
            broken = members.seek_next(family)
            if not broken:
                return


def _plain(packed: Packed) -> Iterator[Piece]:
    """A file that is not packed: one member."""
    first, begins = True, packed.offset
    while data := packed.read():
        packed.mark()
        yield Piece(data, begins, first)
        first = False


def _family(start: bytes) -> re.Pattern[bytes] | None:
    """The magic that a file or member begins with."""
    return next((magic for magic in _FAMILIES if magic.match(start)), None)


class _Members:
    """How the members of a file are unpacked; zstd may have a dictionary that comes first."""

    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        self._dictionary: zstandard.ZstdCompressionDict | None = None

    def unpacker(self) -> Unpack | None:
        """What unpacks the member that begins here; None if none does."""
        magic = self._packed.peek(_MAGIC_BYTES)
        family = _family(magic)
        if family is _GZIP:
            return _gunzipped
        if family is _LZ4:
            return _unlz4ed
        if family is _ZSTD:
            return self._unzstded if magic[0] == 0x28 else self._skipped
        return None

    def seek_next(self, family: re.Pattern[bytes] | None) -> bool:
        """Go to the next member that begins with a record; False, at the end, if there is none."""
        magic = family or _GZIP
        while window := self._packed.peek(READ_BYTES + LOOKED_AT):
            last = len(window) < READ_BYTES + LOOKED_AT
            for found in magic.finditer(window, 0, len(window) if last else READ_BYTES + _MAGIC_BYTES):
                if self._begins_record(window[found.start() : found.start() + LOOKED_AT]):
                    self._pass(found.start())
                    return True
            self._pass(len(window) if last else READ_BYTES)
        return False

    def _pass(self, count: int) -> None:
        while count > 0 and (data := self._packed.read()):
            self._packed.unread(data[count:])
            self._packed.skipped += min(count, len(data))
            count -= len(data)
        self._packed.mark()

    def _begins_record(self, start: bytes) -> bool:
        """Whether a record comes out of these first bytes of a member."""
        try:
            if start.startswith(b"\x1f\x8b"):
                out = isal_zlib.decompressobj(wbits=31).decompress(start, LOOKED_AT)
            elif start.startswith(b"\x04\x22"):
                return True  # its frames have checksums of their own
            else:
                out = self._zstd().decompress(start[:ZSTD_PIECE])
        except _FAULTS:
            return False
        return BEGINS.match(out) is not None

    def _zstd(self) -> Any:
        return zstandard.ZstdDecompressor(
            dict_data=self._dictionary, max_window_size=ZSTD_WINDOW
        ).decompressobj()

    def _unzstded(self, packed: Packed) -> Iterator[bytes]:
        stream = self._zstd()
        while data := packed.read():
            for at in range(0, len(data), ZSTD_PIECE):
                if piece := stream.decompress(data[at : at + ZSTD_PIECE]):
                    yield piece
                if stream.eof:
                    packed.unread(stream.unused_data + data[at + ZSTD_PIECE :])
                    return
        raise Damage

    def _skipped(self, packed: Packed) -> Iterator[bytes]:
        """A frame that holds no data, but may hold the dictionary of all others."""
        head = packed.peek(8)
        if len(head) < 8:
            raise Damage
        left = 8 + int.from_bytes(head[4:], "little")
        keep = head.startswith(_DICTIONARY_MAGIC) and left <= MAX_DICTIONARY
        parts: list[bytes] = []
        while left > 0:
            data = packed.read()
            if not data:
                raise Damage
            packed.unread(data[left:])
            parts += [data[:left]] if keep else []
            left -= len(data)
        if keep:
            self._dictionary = zstandard.ZstdCompressionDict(_dictionary(b"".join(parts)[8:]))
        yield from ()


def _dictionary(data: bytes) -> bytes:
    """A dictionary, which may itself be packed."""
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return (
            zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).stream_reader(data).read(MAX_DICTIONARY)
        )
    return data


def _gunzipped(packed: Packed) -> Iterator[bytes]:
    stream = isal_zlib.decompressobj(wbits=31)
    while data := packed.read():
        while True:
            piece = stream.decompress(data, PORTION)
            if piece:
                yield piece
            data = stream.unconsumed_tail
            if stream.eof:
                packed.unread(stream.unused_data)
                return
            if not data and len(piece) < PORTION:
                break
    raise Damage


def _unlz4ed(packed: Packed) -> Iterator[bytes]:
    frame = _lz4_frame(packed)
    stream = pa.CompressedInputStream(pa.BufferReader(frame), "lz4")
    while piece := stream.read(PORTION):
        yield piece


def _lz4_frame(packed: Packed) -> bytes:
    """The bytes of one frame: its head, and blocks until one of no length; how long it is stands nowhere."""
    frame = bytearray()

    def take(count: int) -> int:
        """The next bytes; the number that they are."""
        if len(frame) + count > MAX_LZ4_FRAME:
            raise Damage
        wanted, start = count, len(frame)
        while wanted > 0:
            data = packed.read()
            if not data:
                raise Damage
            packed.unread(data[wanted:])
            frame.extend(data[:wanted])
            wanted -= len(data)
        return int.from_bytes(frame[start : start + 4], "little")

    take(6)
    flags = frame[4]
    take(1 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0))
    while size := take(4):
        take((size & 0x7FFFFFFF) + (4 if flags & 0x10 else 0))
    if flags & 0x04:
        take(4)
    return bytes(frame)


_FAMILIES = (_GZIP, _ZSTD, _LZ4)
