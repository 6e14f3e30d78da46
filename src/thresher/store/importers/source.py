"""An input file: its bytes unpacked, in pieces, blocks or lines, and hashed as they come."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import zstandard
from isal import igzip_lib

from thresher.config import MIB
from thresher.store.corpus import CorpusError
from thresher.store.importers.encoding import FIRST, Verdict
from thresher.store.lines import clean, count_ends

STDIN = "-"
BLOCK = 1 << 18  # bytes: what is worked on at a time stays in a processor's cache
PIECE = 1 << 18  # bytes read at a time …
PACKED_PIECE = 1 << 11  # … and unpacked at a time: 2 kB of zstd can hold 64 MB of one letter
LONGEST_LINE = 256 * MIB  # a document of JSON is one line; more is no text but some other kind of file
ZSTD_WINDOW = 1 << 27  # the most that zstd itself unpacks unless it is told more

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


class ImportFault(CorpusError):
    """A file cannot be imported; the message names it, the line and the cure."""


class Unpacker(Protocol):
    """What the decompressors have in common."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, /) -> bytes:
        """What comes out when this is put in."""


def _gzip() -> Unpacker:
    return cast(Unpacker, igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP))


def _zstd() -> Unpacker:
    return cast(Unpacker, zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj())


# Suffix, the bytes that such files start with, and what unpacks one stream; there may be several in a file.
PACKED: dict[str, tuple[re.Pattern[bytes], Callable[[], Unpacker]]] = {
    ".gz": (re.compile(rb"\x1f\x8b\x08"), _gzip),
    ".zst": (re.compile(rb"\x28\xb5\x2f\xfd"), _zstd),
    ".xz": (re.compile(rb"\xfd7zXZ\x00"), lambda: cast(Unpacker, lzma.LZMADecompressor())),
    ".bz2": (re.compile(rb"BZh[1-9]1AY&SY"), lambda: cast(Unpacker, bz2.BZ2Decompressor())),
}
_DAMAGE: tuple[Any, ...] = (
    igzip_lib.error,
    zstandard.ZstdError,
    lzma.LZMAError,
    OSError,
    EOFError,
    ValueError,
)


class Source:
    """An input file or standard input, read once from its beginning to its end."""

    def __init__(self, path: Path, scratch: Path, advance: Callable[[int], None] = lambda _: None) -> None:
        self.path = path
        self.standard = str(path) == STDIN
        self.name = "stdin" if self.standard else clean(path.name)
        self.bytes = 0  # read so far, as they are in the file
        self.passed = 0  # lines before the block that was handed out last
        self._scratch = scratch  # directory for a copy, if one is needed
        self._hash = hashlib.sha256()
        self._advance = advance

    @property
    def sha256(self) -> str:
        """Of all bytes of the file, once it is read to the end."""
        return self._hash.hexdigest()

    def pieces(self) -> Iterator[bytes]:
        """The unpacked bytes in small pieces, none of them empty."""
        with self._opened() as file:
            start = file.read(PIECE)
            pieces = self._counted(start, file)
            unpacker = self._unpacker(start)
            for piece in pieces if unpacker is None else self._unpacked(pieces, unpacker):
                if len(piece) <= PIECE:
                    yield from [piece] if piece else ()
                else:
                    yield from (piece[at : at + PIECE] for at in range(0, len(piece), PIECE))

    def text_pieces(self) -> Iterator[bytes]:
        """The pieces without a mark of UTF-8; ImportFault if it is another encoding, be it only at the end."""
        pieces = self._judged(self.pieces())
        start = b""
        for piece in pieces:
            start += piece
            if len(start) >= len(_UTF8_MARK):
                break
        if start.startswith(_UTF16):
            raise ImportFault(
                f"{self.name} is in UTF-16; make it UTF-8: iconv -f UTF-16 -t UTF-8 {self.name} > NEW"
            )
        yield start.removeprefix(_UTF8_MARK)
        yield from pieces

    def _judged(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces, if they are UTF-8; the first are looked at before anybody else finds fault with them."""
        verdict = Verdict()
        first, size = [], 0
        for piece in pieces:
            verdict.take(piece)
            first.append(piece)
            size += len(piece)
            if size >= FIRST:
                break
        else:
            verdict.end()
        if not (first and first[0].startswith(_UTF16)):  # whose mark tells more
            self._refuse(verdict.fault)
        yield from first
        del first
        if size < FIRST:
            return
        for piece in pieces:
            verdict.take(piece)
            yield piece
        verdict.end()
        self._refuse(verdict.fault)

    def _refuse(self, fault: str) -> None:
        if fault:
            raise ImportFault(f"{self.name} {fault} {self.name} > NEW")

    def blocks(self) -> Iterator[bytes]:
        """The unpacked bytes in blocks of whole lines; the last line is given its end if it has none."""
        gathered: list[bytes] = []
        size = 0
        for piece in self.text_pieces():
            gathered.append(piece)
            size += len(piece)
            end = piece.rfind(b"\n") + 1 if size >= BLOCK else 0
            if end:
                gathered[-1] = piece[:end]
                block = b"".join(gathered)
                yield block
                self.passed += count_ends(block)
                gathered = [piece[end:]]
                size = len(piece) - end
            elif size > LONGEST_LINE:
                raise ImportFault(
                    f"{self.name}, line {self.passed + 1:,} is longer than {LONGEST_LINE // MIB} MiB; "
                    "is the file of another format? Say which with --format"
                )
        if rest := b"".join(gathered):
            yield rest if rest.endswith(b"\n") else rest + b"\n"

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines with their numbers, from 1, without their ends."""
        for block in self.blocks():
            for number, line in enumerate(block.split(b"\n")[:-1], self.passed + 1):
                yield number, line.removesuffix(b"\r")

    def seekable(self) -> BinaryIO:
        """The unpacked bytes as a file that can be read in any order: a copy, unless it is one already."""
        if not self.standard and self.path.is_file() and not packing(self.path):
            for _ in self.pieces():  # to be hashed
                pass
            return opened(self.path)
        copy = cast(BinaryIO, tempfile.TemporaryFile(dir=self._scratch))  # noqa: SIM115 - for the caller to close
        for piece in self.pieces():
            copy.write(piece)
        copy.seek(0)
        return copy

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        if self.standard:
            return nullcontext(sys.stdin.buffer)
        return opened(self.path)

    def _counted(self, start: bytes, file: BinaryIO) -> Iterator[bytes]:
        piece = start
        while piece:
            self._hash.update(piece)
            self.bytes += len(piece)
            self._advance(len(piece))
            yield piece
            piece = file.read(PIECE)

    def _unpacker(self, start: bytes) -> Callable[[], Unpacker] | None:
        """By its suffix; what comes through a pipe has none, and is known by its first bytes."""
        if self.standard or not self.path.is_file():
            return next((unpacker for magic, unpacker in PACKED.values() if magic.match(start)), None)
        suffix = packing(self.path)
        return PACKED[suffix][1] if suffix else None

    def _unpacked(self, pieces: Iterable[bytes], unpacker: Callable[[], Unpacker]) -> Iterator[bytes]:
        stream: Unpacker | None = None
        for piece in pieces:
            for at in range(0, len(piece), PACKED_PIECE):
                rest = piece[at : at + PACKED_PIECE]
                while rest:
                    stream = stream or unpacker()
                    try:
                        yield stream.decompress(rest)
                    except _DAMAGE as fault:
                        raise ImportFault(
                            f"{self.name} cannot be unpacked: {fault}; get it once more, or unpack it first"
                        ) from None
                    rest = stream.unused_data.lstrip(b"\0") if stream.eof else b""  # padding is allowed
                    stream = None if stream.eof else stream
        if stream is not None:
            raise ImportFault(f"{self.name} is cut off: its packed data have no end; get it once more")


def packing(path: Path) -> str:
    """The suffix that tells how a file is packed, or nothing.

    >>> packing(Path("a.vert.ZST")), packing(Path("a.vert"))
    ('.zst', '')
    """
    suffix = path.suffix.lower()
    return suffix if suffix in PACKED else ""


def opened(path: Path) -> BufferedReader:
    """An input file, open to be read; ImportFault if that cannot be."""
    try:
        return path.open("rb")
    except OSError as fault:
        raise ImportFault(
            f"{path} cannot be read: {fault.strerror}; make it readable, or leave it out"
        ) from None


def fingerprint(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
