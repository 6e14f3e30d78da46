"""An archive's bytes unpacked, member after member; where a member is damaged, on from the next good one.

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

READ_BYTES = 1 << 16
PIECE = 1 << 11  # bytes that are unpacked at a time: how far behind damage it is noticed
PORTION = 1 << 18  # bytes that are unpacked at a time, however much a member promises
ZSTD_PIECE = 512  # bytes: what zstd unpacks at a time cannot be bounded otherwise; these hold 16 MB at most
ZSTD_WINDOW = 1 << 27
MAX_DICTIONARY = 16 << 20
MAX_LZ4_BLOCK = (4 << 20) + 4  # with its checksum; a longer one is damaged
HISTORY = 1 << 18  # bytes that are looked at again where a member turns out to be damaged …
STEPS_BACK, FREE_STEPS_BACK = 16, 1 << 20  # … in all no more than so many times the file, and so many besides
# A member of which so much is unpacked, and so many times its size, is a bomb.
BOMB_BYTES, BOMB_RATIO = 1 << 28, 200
LOOKED_AT = 1 << 12  # bytes after a sign of a member that tell whether it is one

# How a record begins; what comes after damage must begin like that.
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
        self.skipped = 0  # bytes in which no member could be read
        self._file = file
        self._told = told
        self._window = b""
        self._base = offset  # of the window's first byte, in the file
        self._at = 0  # in the window: the next byte
        self._mark = 0  # in the window, or before it
        self._stepped_back = 0

    @property
    def offset(self) -> int:
        """Where in the file the next byte is."""
        return self._base + self._at

    def read(self) -> bytes:
        """The next bytes, b"" at the end."""
        if self._at == len(self._window):
            self._load(1)
        data = self._window[self._at : self._at + PIECE]
        self._at += len(data)
        return data

    def unread(self, data: bytes) -> None:
        """Give the last bytes back."""
        self._at -= len(data)

    def peek(self, count: int) -> bytes:
        """The next bytes, as many as asked for or as there are, without going on."""
        if len(self._window) - self._at < count:
            self._load(count)
        return self._window[self._at : self._at + count]

    def mark(self) -> None:
        """A member begins here."""
        self._mark = self._at

    def step_back(self) -> None:
        """Go back to just behind the mark, as far as that is still known and affordable."""
        affordable = STEPS_BACK * self.offset + FREE_STEPS_BACK - self._stepped_back
        steps = min(self._at - max(self._mark + 1, 0), affordable)
        if steps > 0:
            self._stepped_back += steps
            self._at -= steps

    def _load(self, count: int) -> None:
        """Have so many bytes ahead, and behind what may be asked for again."""
        keep = min(max(self._mark, self._at - HISTORY, 0), self._at)
        parts = [self._window[keep:]]
        ahead = len(self._window) - self._at
        while ahead < count and (data := self._file.read(READ_BYTES)):
            self._told(data)
            parts.append(data)
            ahead += len(data)
        self._window = b"".join(parts)
        self._base += keep
        self._at -= keep
        self._mark -= keep


Unpack = Callable[
    [Packed], Iterator[bytes]
]  # one member; Damage, or what its library raises, if it has no end


def unpacked(packed: Packed, dictionary: Dictionary | None = None) -> Iterator[Piece]:
    """The pieces of all members that can be read. Each file is read to its end.

    Where it is not read from its beginning, the dictionary of its frames has to be told, if there is one.
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
                yield Piece(data, begins, first, broken)
                first = broken = False
                size += len(data)
                if size > max(BOMB_BYTES, BOMB_RATIO * (packed.offset - begins)):
                    raise Damage
        except (Damage, *_FAULTS):
            packed.step_back()
            yield Piece(b"", packed.offset, False, True)
            broken = members.seek_next(family)
            if not broken:
                return


def is_plain(start: bytes) -> bool:
    """Whether a file that begins like that is not packed; there may be garbage before its first record."""
    if _family(start) is not None:
        return False
    return bool(BEGINS.search(start)) or not any(magic.search(start) for magic in _FAMILIES)


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

    def __init__(self, packed: Packed, dictionary: Dictionary | None) -> None:
        self._packed = packed
        self._dictionary = dictionary

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
            else:
                return True  # four bytes are hardly there by chance, and a frame tells nothing before it is whole
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


def leading_dictionary(file: BinaryIO) -> Dictionary | None:
    """The dictionary that a file begins with; None if there is none, or none that could be read."""
    head = file.read(8)
    size = int.from_bytes(head[4:], "little")
    if not head.startswith(_DICTIONARY_MAGIC) or size > MAX_DICTIONARY:
        return None
    try:
        return zstandard.ZstdCompressionDict(_dictionary(file.read(size)))
    except _FAULTS:
        return None


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
    stream = pa.CompressedInputStream(pa.PythonFile(_Frame(packed), "r"), "lz4")
    while piece := stream.read(PORTION):
        yield piece


class _Frame(io.RawIOBase):
    """One frame of lz4 as a file, which ends where the frame does: what unpacks it would go on."""

    def __init__(self, packed: Packed) -> None:
        self._bytes = _lz4_frame(packed)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Some bytes, not always as many as asked for; b"" at the end."""
        data = self._rest or next(self._bytes, b"")
        self._rest = data[size:] if size >= 0 else b""
        return data[: len(data) - len(self._rest)]


def _lz4_frame(packed: Packed) -> Iterator[bytes]:
    """The bytes of one frame: its head, and blocks until one of no length; how long it is stands nowhere."""
    head = _exactly(packed, 6)
    yield head
    flags = head[4]
    yield _exactly(packed, 1 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0))
    while True:
        told = _exactly(packed, 4)
        yield told
        size = int.from_bytes(told, "little")
        if not size:
            break
        left = (size & 0x7FFFFFFF) + (4 if flags & 0x10 else 0)
        if left > MAX_LZ4_BLOCK:
            raise Damage
        while left > 0:
            data = _exactly(packed, min(left, PIECE))
            yield data
            left -= len(data)
    if flags & 0x04:
        yield _exactly(packed, 4)


def _exactly(packed: Packed, count: int) -> bytes:
    """The next bytes; Damage if there are no more so many."""
    data = b""
    while len(data) < count:
        more = packed.read()
        if not more:
            raise Damage
        packed.unread(more[count - len(data) :])
        data += more[: count - len(data)]
    return data


_FAMILIES = (_GZIP, _ZSTD, _LZ4)
