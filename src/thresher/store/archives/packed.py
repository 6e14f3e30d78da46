"""Unpacking of archives, member after member; reading continues after a damaged member with the next good one.

Archives are packed record by record, as members of gzip or frames of zstd or lz4, or not at all.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import zstandard
from isal import isal_zlib

from thresher.errors import DataError

READ_BYTES = 1 << 16
PIECE = 1 << 11  # packed bytes given to a decompressor at a time: the most that is lost before damage
PORTION = 1 << 18  # unpacked bytes taken at a time, so that a member cannot fill the memory
ZSTD_PIECE = 512  # packed bytes at a time; zstd has no bound on its output, and these hold 16 MB at most
ZSTD_WINDOW = 1 << 27
MAX_DICTIONARY = 16 << 20
MAX_LZ4_BLOCK = (4 << 20) + 4  # with its checksum; a longer one is damaged
HISTORY = 1 << 18  # bytes that are searched again after a damaged member
# The bytes searched again are at most STEPS_BACK times the bytes read and FREE_STEPS_BACK more.
STEPS_BACK, FREE_STEPS_BACK = 16, 1 << 20
# A member that unpacks to more bytes than this, and to more times its size than this, is a bomb.
BOMB_BYTES, BOMB_RATIO = 1 << 28, 200
PROBE_BYTES = 1 << 12  # bytes after the magic number of a member that decide whether it is one

# The beginning of a record; a member after a damaged one must begin like that.
BEGINS = re.compile(rb"WARC/\d\.\d+\r?\n|filedesc://|(?:https?://|dns:)[^\r\n]{1,4000} \d{1,20}\r?\n")

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


Dictionary = zstandard.ZstdCompressionDict


class DamagedArchive(DataError):
    """A member that is cut off, damaged or a bomb."""


class UnpackedBytes(NamedTuple):
    """Some unpacked bytes."""

    data: bytes
    member: int  # offset in the file of their member
    first: bool  # they are the first bytes of their member
    broken: bool = False  # bytes are missing before them


class PackedStream:
    """A file that is read once from front to back, with its offset and a bounded history to step back."""

    def __init__(
        self, file: BinaryIO, on_read: Callable[[bytes], None] = lambda _: None, offset: int = 0
    ) -> None:
        self.skipped = 0  # bytes in which no member could be read
        self._file = file
        self._on_read = on_read
        self._window = b""
        self._base = offset  # in the file, of the first byte of the window
        self._at = 0  # in the window: the next byte
        self._mark = 0  # in the window, or before it
        self._stepped_back = 0

    @property
    def offset(self) -> int:
        """Offset of the next byte in the file."""
        return self._base + self._at

    def read(self) -> bytes:
        """Return the next bytes, b"" at the end."""
        if self._at == len(self._window):
            self._load(1)
        data = self._window[self._at : self._at + PIECE]
        self._at += len(data)
        return data

    def unread(self, data: bytes) -> None:
        """Step back over the last bytes."""
        self._at -= len(data)

    def peek(self, count: int) -> bytes:
        """Return up to `count` next bytes without advancing."""
        if len(self._window) - self._at < count:
            self._load(count)
        return self._window[self._at : self._at + count]

    def mark(self) -> None:
        """Remember this place as the beginning of a member."""
        self._mark = self._at

    def step_back(self) -> None:
        """Go back to the byte after the mark, as far as the history and the budget of steps allow."""
        affordable = STEPS_BACK * self.offset + FREE_STEPS_BACK - self._stepped_back
        steps = min(self._at - max(self._mark + 1, 0), affordable)
        if steps > 0:
            self._stepped_back += steps
            self._at -= steps

    def _load(self, count: int) -> None:
        """Load `count` bytes ahead, and keep the history behind."""
        keep = min(max(self._mark, self._at - HISTORY, 0), self._at)
        parts = [self._window[keep:]]
        ahead = len(self._window) - self._at
        while ahead < count and (data := self._file.read(READ_BYTES)):
            self._on_read(data)
            parts.append(data)
            ahead += len(data)
        self._window = b"".join(parts)
        self._base += keep
        self._at -= keep
        self._mark -= keep


Unpack = Callable[
    [PackedStream], Iterator[bytes]
]  # one member; raises DamagedArchive, or an exception of its library, if it is damaged


def unpacked(packed: PackedStream, dictionary: Dictionary | None = None) -> Iterator[UnpackedBytes]:
    """Yield the unpacked bytes of all members that can be read, to the end of the file.

    A file that is not read from its beginning needs the dictionary of its frames, if it has one.
    """
    start = packed.peek(READ_BYTES)
    family = _family(start)
    if is_plain(start):
        yield from _plain(packed)
        return
    members = _Members(packed, dictionary)
    broken = False
    while packed.peek(1):
        unpack = members.unpacker()
        if unpack is None:
            if not members.seek_next(family):
                return
            broken = True
            continue
        family = _family(packed.peek(_MAGIC_BYTES))
        begins, first, size = packed.offset, True, 0
        packed.mark()
        try:
            for data in unpack(packed):
                yield UnpackedBytes(data, begins, first, broken)
                first = broken = False
                size += len(data)
                if size > max(BOMB_BYTES, BOMB_RATIO * (packed.offset - begins)):
                    raise DamagedArchive
        except (DamagedArchive, *_FAULTS):
            packed.step_back()
            yield UnpackedBytes(b"", packed.offset, False, True)
            broken = members.seek_next(family)
            if not broken:
                return


def is_plain(start: bytes) -> bool:
    """Return whether a file with this beginning is not packed; there may be garbage before its first record."""
    if _family(start) is not None:
        return False
    return bool(BEGINS.search(start)) or not any(magic.search(start) for magic in _FAMILIES)


def _plain(packed: PackedStream) -> Iterator[UnpackedBytes]:
    """Yield the bytes of a file that is not packed, as one member."""
    first, begins = True, packed.offset
    while data := packed.read():
        packed.mark()
        yield UnpackedBytes(data, begins, first)
        first = False


def _family(start: bytes) -> re.Pattern[bytes] | None:
    """Return the magic number at the beginning of a file or member, None for others."""
    return next((magic for magic in _FAMILIES if magic.match(start)), None)


class _Members:
    """The decompressors of the members of a file; zstd may have a dictionary in its first frame."""

    def __init__(self, packed: PackedStream, dictionary: Dictionary | None) -> None:
        self._packed = packed
        self._dictionary = dictionary

    def unpacker(self) -> Unpack | None:
        """Return the decompressor of the member that begins here, None if there is no member."""
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
        """Advance to the next member that begins with a record; return False at the end of the file."""
        magic = family or _GZIP
        while window := self._packed.peek(READ_BYTES + PROBE_BYTES):
            last = len(window) < READ_BYTES + PROBE_BYTES
            for found in magic.finditer(window, 0, len(window) if last else READ_BYTES + _MAGIC_BYTES):
                if self._begins_record(window[found.start() : found.start() + PROBE_BYTES]):
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
        """Return whether the first bytes of a member unpack to the beginning of a record."""
        try:
            if start.startswith(b"\x1f\x8b"):
                out = isal_zlib.decompressobj(wbits=31).decompress(start, PROBE_BYTES)
            else:
                return True  # the four bytes are rare, and an incomplete frame cannot be checked
        except _FAULTS:
            return False
        return BEGINS.match(out) is not None

    def _zstd(self) -> Any:
        return zstandard.ZstdDecompressor(
            dict_data=self._dictionary, max_window_size=ZSTD_WINDOW
        ).decompressobj()

    def _unzstded(self, packed: PackedStream) -> Iterator[bytes]:
        stream = self._zstd()
        while data := packed.read():
            for at in range(0, len(data), ZSTD_PIECE):
                if piece := stream.decompress(data[at : at + ZSTD_PIECE]):
                    yield piece
                if stream.eof:
                    packed.unread(stream.unused_data + data[at + ZSTD_PIECE :])
                    return
        raise DamagedArchive

    def _skipped(self, packed: PackedStream) -> Iterator[bytes]:
        """Skip a frame without data; keep the dictionary that it may hold."""
        head = packed.peek(8)
        if len(head) < 8:
            raise DamagedArchive
        left = 8 + int.from_bytes(head[4:], "little")
        keep = head.startswith(_DICTIONARY_MAGIC) and left <= MAX_DICTIONARY
        parts: list[bytes] = []
        while left > 0:
            data = packed.read()
            if not data:
                raise DamagedArchive
            packed.unread(data[left:])
            parts += [data[:left]] if keep else []
            left -= len(data)
        if keep:
            self._dictionary = zstandard.ZstdCompressionDict(_dictionary(b"".join(parts)[8:]))
        yield from ()


def leading_dictionary(file: BinaryIO) -> Dictionary | None:
    """Return the dictionary at the beginning of a file, None if there is none that can be read."""
    head = file.read(8)
    size = int.from_bytes(head[4:], "little")
    if not head.startswith(_DICTIONARY_MAGIC) or size > MAX_DICTIONARY:
        return None
    try:
        return zstandard.ZstdCompressionDict(_dictionary(file.read(size)))
    except _FAULTS:
        return None


def _dictionary(data: bytes) -> bytes:
    """Return a dictionary unpacked, if it is packed."""
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return (
            zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).stream_reader(data).read(MAX_DICTIONARY)
        )
    return data


def _gunzipped(packed: PackedStream) -> Iterator[bytes]:
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
    raise DamagedArchive


def _unlz4ed(packed: PackedStream) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.PythonFile(_Frame(packed), "r"), "lz4")
    while piece := stream.read(PORTION):
        yield piece


class _Frame(io.RawIOBase):
    """One frame of lz4 as a file that ends with the frame; the decompressor alone would read on."""

    def __init__(self, packed: PackedStream) -> None:
        self._bytes = _lz4_frame(packed)
        self._rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes, b"" at the end."""
        data = self._rest or next(self._bytes, b"")
        self._rest = data[size:] if size >= 0 else b""
        return data[: len(data) - len(self._rest)]


def _lz4_frame(packed: PackedStream) -> Iterator[bytes]:
    """Yield the bytes of one frame: its head, and blocks up to an empty one, since no length is given."""
    head = _exactly(packed, 6)
    yield head
    flags = head[4]
    yield _exactly(packed, 1 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0))
    while True:
        length = _exactly(packed, 4)
        yield length
        size = int.from_bytes(length, "little")
        if not size:
            break
        left = (size & 0x7FFFFFFF) + (4 if flags & 0x10 else 0)
        if left > MAX_LZ4_BLOCK:
            raise DamagedArchive
        while left > 0:
            data = _exactly(packed, min(left, PIECE))
            yield data
            left -= len(data)
    if flags & 0x04:
        yield _exactly(packed, 4)


def _exactly(packed: PackedStream, count: int) -> bytes:
    """Return exactly `count` bytes; raise DamagedArchive if the file has fewer."""
    data = b""
    while len(data) < count:
        more = packed.read()
        if not more:
            raise DamagedArchive
        packed.unread(more[count - len(data) :])
        data += more[: count - len(data)]
    return data


_FAMILIES = (_GZIP, _ZSTD, _LZ4)
