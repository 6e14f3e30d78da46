"""Decoding of a reply into UTF-8: content encodings are undone, characters decoded."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import brotli
import zstandard
from isal import isal_zlib

from thresher.reader.encoding import charset, charset_guess

MAX_LAYERS = 2  # honest servers pack once, a careless proxy perhaps twice
MAX_MEMBERS = 64  # gzip files may be strung together; a body of empty ones would cost quadratic time
PIECE = 4096  # bytes given to a decompressor at a time: what a damaged stream loses at most
PORTION = 1 << 16  # bytes asked of one at a time, so that a bomb is noticed early
ZSTD_WINDOW = 8 << 20  # RFC 9659: the most that a web client has to offer
GZIP_MAGIC = b"\x1f\x8b"
GZIP, ZLIB, RAW_DEFLATE = 31, 15, -15  # zlib's window bits, which also choose the wrapping

# A label is doubted when at least this many characters are broken, and this share of all that are not
# ASCII: a cut or a pasted fragment breaks fewer, a wrong label nearly all.
MIN_BROKEN = 3
BROKEN_SHARE = 0.2
SOUND_SHARE = 0.9  # of the characters beyond ASCII that must be sound UTF-8 if no encoding is declared
CHANCE_BYTES = 12  # a multi-byte encoding may look like UTF-8 by chance, but hardly for so many bytes
HEAD_BYTES = 8_192  # by which most pages that are far from UTF-8 are known
UTF16_SAMPLE = 512

_DAMAGE: tuple[Any, ...] = (
    isal_zlib.error,
    zlib.error,
    brotli.error,
    zstandard.ZstdError,
    EOFError,
)
_ASCII = bytes(range(0x80))
_NOT_LEADING = bytes(range(0xC0))
_REPLACEMENT = "\ufffd".encode()


class Unpacked(NamedTuple):
    """A body without its content encodings, or the fault that prevents it."""

    body: bytes
    fault: str = ""


class DecodedText(NamedTuple):
    """A page's characters as UTF-8, with the declared encoding and the one used."""

    utf8: bytes
    charset: str
    declared: str


def unpack(body: bytes, content_encoding: str, limit: int) -> Unpacked:
    """Undo a Content-Encoding; keep the readable part of a damaged stream, at most `limit` bytes."""
    codings = [name.strip() for name in content_encoding.lower().split(",")]
    codings = [coding for coding in codings if coding not in ("", "identity")]
    if len(codings) > MAX_LAYERS:
        return Unpacked(b"", "too many encodings")
    if any(coding not in _STREAMS for coding in codings):
        return Unpacked(b"", "unknown encoding")
    for coding in reversed(codings):
        unpacked = _drain(_STREAMS[coding](body), limit)
        if unpacked is None:
            return Unpacked(b"", "decompression bomb")
        # Some servers announce a coding and then send plain markup.
        if body and not unpacked and not body.lstrip().startswith(b"<"):
            return Unpacked(b"", "damaged encoding")
        body = unpacked or body
    return Unpacked(body[:limit])


def decode(body: bytes, content_type: str = "", top_level_domain: str = "") -> DecodedText:
    """Return the document in UTF-8, by the standard's order of evidence, unless bytes contradict a label."""
    header_label = charset.label_in(content_type)
    by_header = charset.named(header_label)
    inner_label = "" if by_header else charset.declared_inside(body)
    declared = _clean_label(header_label or inner_label)
    certain = charset.of_byte_order_mark(body) or _utf16_by_its_zeros(body)
    if certain:
        return DecodedText(_transcode(body, certain), certain, declared)
    name = by_header or charset.meant_inside(inner_label)
    if name in ("utf-16le", "utf-16be"):
        name = None  # such markup would have a zero in every other byte
    return _by_evidence(body, name, declared, top_level_domain)


def _by_evidence(body: bytes, name: str | None, declared: str, top_level_domain: str) -> DecodedText:
    """Decode as labelled; but UTF-8 beats other labels, and a label that the text contradicts is dropped."""
    if name == "replacement":
        return DecodedText(_REPLACEMENT, name, declared)
    if body.isascii() and b"\x1b" not in body:
        return DecodedText(body, name or charset.FALLBACK, declared)
    valid = _valid_utf8(body)
    if valid is not None and not _perhaps_by_chance(body, name):
        return DecodedText(valid, "utf-8", declared)
    if name is None or (name != "utf-8" and name not in charset.MULTIBYTE):
        mended = _nearly_utf8(body)
        if mended is not None:
            return DecodedText(mended, "utf-8", declared)
    if name is None:
        name = charset_guess.detect(body, top_level_domain)
    elif name == charset.FALLBACK:  # many servers declare it for pages in any encoding
        name = charset_guess.likelier(body, name, charset_guess.AGAINST_LABEL)
    text = _transcode(body, name)
    if declared and _broken(text):
        other = charset_guess.detect(body, top_level_domain, allow_utf8=name != "utf-8")
        better = _transcode(body, other)
        if better.count(_REPLACEMENT) < text.count(_REPLACEMENT):
            return DecodedText(better, other, declared)
    return DecodedText(text, name, declared)


def _drain(pieces: Iterator[bytes], limit: int) -> bytes | None:
    """Return all output before the end or the damage; None if it exceeds the limit."""
    kept: list[bytes] = []
    size = 0
    try:
        for piece in pieces:
            kept.append(piece)
            size += len(piece)
            if size > limit:
                return None
    except _DAMAGE:
        pass
    return b"".join(kept)


def _inflated(body: bytes, window_bits: int) -> Iterator[bytes]:
    for _ in range(MAX_MEMBERS):
        stream = isal_zlib.decompressobj(wbits=window_bits)
        offset = 0
        while offset < len(body) and not stream.eof:
            yield stream.decompress(body[offset : offset + PIECE])  # deflate grows a piece to 4 MiB at most
            offset += PIECE
        body = stream.unused_data + body[offset:]
        if window_bits != GZIP or not body.startswith(GZIP_MAGIC):
            return


def _deflated(body: bytes) -> Iterator[bytes]:
    """Decompress `deflate` with the wrapping of zlib, or the bare stream that some servers send."""
    wrapped = len(body) >= 2 and body[0] & 0x0F == 8 and int.from_bytes(body[:2]) % 31 == 0
    return _inflated(body, ZLIB if wrapped else RAW_DEFLATE)


def _unbrotlied(body: bytes) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    for offset in range(0, len(body), PIECE):
        yield stream.process(body[offset : offset + PIECE], output_buffer_limit=PORTION)
        while not stream.can_accept_more_data():
            yield stream.process(b"", output_buffer_limit=PORTION)
        if stream.is_finished():
            return


def _unzstded(body: bytes) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
    with decompressor.stream_reader(body, read_across_frames=True) as reader:
        while piece := reader.read(PORTION):
            yield piece


_STREAMS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": partial(_inflated, window_bits=GZIP),
    "x-gzip": partial(_inflated, window_bits=GZIP),
    "deflate": _deflated,
    "br": _unbrotlied,
    "zstd": _unzstded,
}


def _clean_label(label: str) -> str:
    return label.strip()[:40] if label.isascii() and label.isprintable() else ""


def _utf16_by_its_zeros(body: bytes) -> str | None:
    """Return UTF-16 without a mark by its zeros: nearly every other byte of markup."""
    sample = body[:UTF16_SAMPLE]
    if b"\0" not in sample:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    enough = len(sample) * 0.3
    if odd > enough and even < enough / 8:
        return "utf-16le"
    return "utf-16be" if even > enough and odd < enough / 8 else None


def _valid_utf8(body: bytes) -> bytes | None:
    """Return the body if it is UTF-8, less a last character cut in two; otherwise None."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        # Only a sequence that the end cuts short leaves nothing behind it to be wrong.
        if error.reason == "unexpected end of data" and error.end == len(body):
            return body[: error.start]
        return None
    return body


def _perhaps_by_chance(body: bytes, name: str | None) -> bool:
    """Return True if bytes labelled as another encoding could be valid UTF-8 by accident."""
    if name in charset.MULTIBYTE:
        return len(body.translate(None, _ASCII)) < CHANCE_BYTES
    return body.isascii()


def _nearly_utf8(body: bytes) -> bytes | None:
    """Return the body as UTF-8 if only a few characters are broken, as in pages pasted together."""
    head = body[:HEAD_BYTES].translate(None, _ASCII)
    # In UTF-8 one continuation byte or more follows each leading one; letters of single bytes mostly lead.
    if len(head.translate(None, _NOT_LEADING)) > len(head) * (1 + BROKEN_SHARE) / 2:
        return None
    utf8 = _transcode(body, "utf-8")
    beyond_ascii = len(utf8.translate(None, _NOT_LEADING))
    sound = beyond_ascii - utf8.count(_REPLACEMENT)
    return utf8 if sound >= CHANCE_BYTES and sound > SOUND_SHARE * beyond_ascii else None


def _transcode(body: bytes, name: str) -> bytes:
    return charset.decoded(body, name).removeprefix("\ufeff").encode("utf-8", "replace")


def _broken(utf8: bytes) -> bool:
    broken = utf8.count(_REPLACEMENT)
    return broken >= MIN_BROKEN and broken > BROKEN_SHARE * len(utf8.translate(None, _NOT_LEADING))
