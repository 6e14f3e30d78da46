"""Input files: their decompressed bytes in chunks, blocks or lines, hashed while they are read."""

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
from thresher.importing.formats.encoding import FIRST_BYTES, EncodingCheck
from thresher.store.corpus_files import CorpusError
from thresher.store.token_lines import clean, count_ends

STDIN = "-"
BLOCK_BYTES = 1 << 18  # a block that is parsed at once should fit into the cache of a processor
CHUNK_BYTES = 1 << 18  # read at a time
PACKED_BYTES = 1 << 11  # decompressed at a time: 2 kB of zstd can hold 64 MB of one character
MAX_LINE_BYTES = 64 * MIB  # a JSON document is one line; a longer line is not text
ZSTD_WINDOW = 1 << 27  # bytes; the default limit of zstd itself

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"


class ImportFileError(CorpusError):
    """A file that cannot be imported; the message names it, the line and the fix."""


class Unpacker(Protocol):
    """The common interface of the decompressors."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, /) -> bytes:
        """Return the decompressed bytes of the next input."""


def _gzip() -> Unpacker:
    return cast(Unpacker, igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP))


def _zstd() -> Unpacker:
    return cast(Unpacker, zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj())


# By suffix: the first bytes of such files, and the decompressor of one stream; a file may have several streams.
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


class SourceFile:
    """An input file or standard input, read once from its beginning to its end."""

    def __init__(self, path: Path, scratch: Path, advance: Callable[[int], None] = lambda _: None) -> None:
        self.path = path
        self.standard = str(path) == STDIN
        self.name = "stdin" if self.standard else clean(path.name)
        self.bytes = 0  # read from the file so far
        self.passed = 0  # lines before the last block
        self._scratch = scratch  # the directory of a temporary copy, if one is needed
        self._hash = hashlib.sha256()
        self._advance = advance

    @property
    def sha256(self) -> str:
        """The digest of all bytes of the file; complete once it is read to the end."""
        return self._hash.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes in small chunks, none of them empty."""
        with self._opened() as file:
            start = file.read(CHUNK_BYTES)
            chunks = self._counted(start, file)
            unpacker = self._unpacker(start)
            for chunk in chunks if unpacker is None else self._unpacked(chunks, unpacker):
                if len(chunk) <= CHUNK_BYTES:
                    yield from [chunk] if chunk else ()
                else:
                    yield from (chunk[at : at + CHUNK_BYTES] for at in range(0, len(chunk), CHUNK_BYTES))

    def text_chunks(self) -> Iterator[bytes]:
        """Yield the chunks of UTF-8 text without a byte order mark.

        Raise ImportFileError for another encoding, possibly only at the end.
        """
        chunks = self._checked(self.chunks())
        start = b""
        for chunk in chunks:
            start += chunk
            if len(start) >= len(_UTF8_MARK):
                break
        if start.startswith(_UTF16):
            raise ImportFileError(
                f"{self.name} is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {self.name} > NEW"
            )
        yield start.removeprefix(_UTF8_MARK)
        yield from chunks

    def _checked(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield chunks of checked encoding; the first are checked before a parser can fail on them."""
        verdict = EncodingCheck()
        first, size = [], 0
        for chunk in chunks:
            verdict.take(chunk)
            first.append(chunk)
            size += len(chunk)
            if size >= FIRST_BYTES:
                break
        else:
            verdict.end()
        if not (first and first[0].startswith(_UTF16)):  # text_chunks has a better message for these
            self._refuse(verdict.fault)
        yield from first
        del first
        if size < FIRST_BYTES:
            return
        for chunk in chunks:
            verdict.take(chunk)
            yield chunk
        verdict.end()
        self._refuse(verdict.fault)

    def _refuse(self, fault: str) -> None:
        if fault:
            raise ImportFileError(f"{self.name} {fault} {self.name} > NEW")

    def blocks(self) -> Iterator[bytes]:
        """Yield the text in blocks of whole lines; a line feed is added to the last line if it has none."""
        gathered: list[bytes] = []
        size = 0
        for chunk in self.text_chunks():
            gathered.append(chunk)
            size += len(chunk)
            end = chunk.rfind(b"\n") + 1 if size >= BLOCK_BYTES else 0
            if end:
                gathered[-1] = chunk[:end]
                block = b"".join(gathered)
                yield block
                self.passed += count_ends(block)
                gathered = [chunk[end:]]
                size = len(chunk) - end
            elif size > MAX_LINE_BYTES:
                raise ImportFileError(
                    f"{self.name}, line {self.passed + 1:,} is longer than {MAX_LINE_BYTES // MIB} MiB; "
                    "if the file has another format, name it with --format"
                )
        if rest := b"".join(gathered):
            yield rest if rest.endswith(b"\n") else rest + b"\n"

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their numbers, from 1, without their ends."""
        for block in self.blocks():
            for number, line in enumerate(block.split(b"\n")[:-1], self.passed + 1):
                yield number, line.removesuffix(b"\r")

    def seekable(self) -> BinaryIO:
        """Return the decompressed bytes as a seekable file: the file itself, or a copy of a compressed one."""
        if not self.standard and self.path.is_file() and not packing(self.path):
            for _ in self.chunks():  # reads and hashes the file
                pass
            return opened(self.path)
        copy = cast(BinaryIO, tempfile.TemporaryFile(dir=self._scratch))  # noqa: SIM115 - for the caller to close
        for chunk in self.chunks():
            copy.write(chunk)
        copy.seek(0)
        return copy

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        if self.standard:
            return nullcontext(sys.stdin.buffer)
        return opened(self.path)

    def _counted(self, start: bytes, file: BinaryIO) -> Iterator[bytes]:
        chunk = start
        while chunk:
            self._hash.update(chunk)
            self.bytes += len(chunk)
            self._advance(len(chunk))
            yield chunk
            chunk = file.read(CHUNK_BYTES)

    def _unpacker(self, start: bytes) -> Callable[[], Unpacker] | None:
        """Return the decompressor that fits the suffix, or, for a pipe, the first bytes; None for plain files."""
        if self.standard or not self.path.is_file():
            return next((unpacker for magic, unpacker in PACKED.values() if magic.match(start)), None)
        suffix = packing(self.path)
        return PACKED[suffix][1] if suffix else None

    def _unpacked(self, chunks: Iterable[bytes], unpacker: Callable[[], Unpacker]) -> Iterator[bytes]:
        stream: Unpacker | None = None
        for chunk in chunks:
            for at in range(0, len(chunk), PACKED_BYTES):
                rest = chunk[at : at + PACKED_BYTES]
                while rest:
                    stream = stream or unpacker()
                    try:
                        yield stream.decompress(rest)
                    except _DAMAGE as fault:
                        raise ImportFileError(
                            f"{self.name} cannot be decompressed: {fault}; get it once more, or decompress it first"
                        ) from None
                    # Zero bytes may pad a file.
                    rest = stream.unused_data.lstrip(b"\0") if stream.eof else b""
                    stream = None if stream.eof else stream
        if stream is not None:
            raise ImportFileError(
                f"{self.name} is cut off: its compressed data have no end; get it once more"
            )


def packing(path: Path) -> str:
    """Return the suffix of the compression of a file, or "".

    >>> packing(Path("a.vert.ZST")), packing(Path("a.vert"))
    ('.zst', '')
    """
    suffix = path.suffix.lower()
    return suffix if suffix in PACKED else ""


def opened(path: Path) -> BufferedReader:
    """Open an input file; raise ImportFileError if it cannot be read."""
    try:
        return path.open("rb")
    except OSError as fault:
        raise ImportFileError(
            f"{path} cannot be read: {fault.strerror}; make it readable, or leave it out"
        ) from None


def fingerprint(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
