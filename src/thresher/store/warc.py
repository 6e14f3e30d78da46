"""Raw pages as WARC 1.1; every record is a gzip member, so that it can be read at its offset."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import struct
import uuid
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast
from urllib.parse import quote

from isal import isal_zlib
from msgspec import Struct

from thresher.errors import DataError
from thresher.files.durable_files import AppendFile, adopt, numbered
from thresher.records import Reply, Truncated
from thresher.store.shard_layout import ALONE, Shard

NAMING = re.compile(r"thresher-(\d{5,})\.warc\.gz")
MAX_RECORD_BYTES = 1 << 30  # unpacked bytes at which reading stops: the record is a gzip bomb
READ_BYTES = 1 << 16

_STATUS_LINE = re.compile(rb"HTTP/1\.[01] \d{3}(?: .*)?")
_ADDRESS = re.compile(r"[0-9A-Fa-f.:]+")
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
_VISIBLE_ASCII = re.compile(rb"[!-~]")
_PLAIN = bytes([*range(0x20, 0x7F), 0x09])
_WITHOUT_CONTROLS = bytes(0x20 if code < 0x20 or code == 0x7F else code for code in range(256))
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"  # no time, no name: the same bytes every time
_STORED_BLOCK = 0xFFFF  # bytes that one uncompressed deflate block can hold

Kind = Literal["warcinfo", "response"]


def file_name(number: int) -> str:
    """Return the name of a file by its number.

    >>> file_name(7)
    'thresher-00007.warc.gz'
    """
    return f"thresher-{number:05d}.warc.gz"


class WarcError(DataError):
    """A record cannot be read."""


class WarcRecord(Struct, frozen=True):
    """One record of a WARC file that this module wrote."""

    offset: int
    length: int  # in the file, compressed
    kind: Kind
    url: str
    fetched: float
    address: str
    truncated: Truncated
    block: bytes  # HTTP head and body

    def reply(self) -> Reply:
        """Return the stored reply; its duration is not stored, so `elapsed` is 0."""
        head, _, body = self.block.partition(b"\r\n\r\n")
        status = head[9:12]
        return Reply(
            url=self.url,
            status=int(status) if status.isdigit() else 0,
            headers=head + b"\r\n",
            body=body,
            fetched=self.fetched,
            elapsed=0.0,
            address=self.address,
            truncated=self.truncated,
        )


class WarcWriter:
    """A writer of raw pages in files of about `max_bytes`; it follows the commit protocol of `durable_files`."""

    def __init__(
        self,
        directory: Path,
        committed: Mapping[str, int | None],
        max_bytes: int,
        software: str,
        description: Mapping[str, str],
        shard: Shard = ALONE,
    ) -> None:
        self._shard = shard
        self._directory = directory
        self._max_bytes = max_bytes
        self._about = {"software": software, "format": "WARC File Format 1.1", **description}
        adopt(directory, committed, NAMING)
        files = numbered(committed, NAMING)
        self._finished = [file_name(number) for number, length in files if length is None]
        self._full: list[AppendFile] = []  # complete, but perhaps not durable yet
        growing = [(number, length) for number, length in files if length is not None]
        if len(growing) > 1:
            raise DataError(
                f"{directory}: two WARC files were committed as growing; the state is not of this corpus"
            )
        last = files[-1][0] if files else 0
        self._number, length = growing[0] if growing else (shard.next_file(last), 0)
        self._file = AppendFile(self._path(self._number), length)

    def _path(self, number: int) -> Path:
        return self._directory / file_name(number)

    @property
    def pending(self) -> int:
        """Number of bytes in memory that wait for the next flush."""
        return sum(file.end - file.length for file in [*self._full, self._file])

    def add(self, reply: Reply) -> tuple[str, int]:
        """Add a reply, and return the file name and the offset of its record."""
        head, opaque = http_head(reply)
        fields = [
            ("WARC-Type", "response"),
            *_reply_fields(reply),
            ("WARC-Block-Digest", _sha1(head, reply.body)),
            ("WARC-Payload-Digest", _sha1(reply.body)),
        ]
        if reply.truncated:
            fields.append(("WARC-Truncated", reply.truncated))
        fields.append(("Content-Type", "application/http;msgtype=response"))
        return self._add(_member(_warc_head(fields, len(head) + len(reply.body)) + head, reply.body, opaque))

    def _add(self, member: bytes) -> tuple[str, int]:
        if self._file.end >= self._max_bytes:
            self._full.append(self._file)
            self._number = self._shard.next_file(self._number)
            self._file = AppendFile(self._path(self._number), 0)
        if self._file.end == 0:
            self._file.append(self._warcinfo())
        return self._file.path.name, self._file.append(member)

    def _warcinfo(self) -> bytes:
        block = "".join(f"{name}: {_one_line(value)}\r\n" for name, value in self._about.items()).encode()
        fields = [
            ("WARC-Type", "warcinfo"),
            ("WARC-Record-ID", f"<urn:uuid:{uuid.uuid4()}>"),
            ("WARC-Date", _date(datetime.now(UTC).timestamp())),
            ("WARC-Filename", self._file.path.name),
            ("WARC-Block-Digest", _sha1(block)),
            ("Content-Type", "application/warc-fields"),
        ]
        return _member(_warc_head(fields, len(block)) + block, b"", opaque=False)

    def flush(self) -> None:
        """Make all records durable. After an OSError nothing is lost: flush again when there is room."""
        while self._full:
            self._full[0].flush()
            self._full[0].close()
            self._finished.append(self._full[0].path.name)
            del self._full[0]
        self._file.flush()

    def lengths(self) -> dict[str, int | None]:
        """Return the files to commit with their lengths; None stands for a file that never changes."""
        lengths: dict[str, int | None] = dict.fromkeys(self._finished)
        if self._file.length:
            lengths[self._file.path.name] = self._file.length
        return lengths

    def retire(self) -> None:
        """Do nothing: a commit supersedes no WARC file."""

    def close(self) -> None:
        """Close the files; records that were not flushed are dropped."""
        for file in [*self._full, self._file]:
            file.close()


def http_head(reply: Reply) -> tuple[bytes, bool]:
    """Return the head of a reply in a form that all readers understand, and whether the body is compressed.

    The body is stored without its transfer encoding, so that header is renamed to X-Crawler-Transfer-Encoding. A
    Content-Length that differs from the length of the body is renamed as well, and the right one is added.
    """
    status_line, *lines = _header_lines(reply.headers) or [b""]
    if not _STATUS_LINE.fullmatch(status_line):
        status_line = b"HTTP/1.1 %03d" % min(max(reply.status, 0), 999)
    length = b"%d" % len(reply.body)
    lengths = []
    opaque = False
    for i, line in enumerate(lines):
        name, _, value = line.partition(b":")
        name = name.strip().lower()
        if name == b"content-length":
            lengths.append((i, value.strip()))
        elif name == b"transfer-encoding":
            lines[i] = b"X-Crawler-" + line
        elif name == b"content-encoding":
            opaque = value.strip().lower() not in (b"", b"identity")
    if [value for _, value in lengths] != [length]:
        for i, _ in lengths:
            lines[i] = b"X-Crawler-" + lines[i]
        lines.append(b"Content-Length: " + length)
    return b"\r\n".join([status_line, *lines, b"", b""]), opaque


def _header_lines(headers: bytes) -> list[bytes]:
    """Return header lines without control characters, continuations and blank lines, on which readers disagree."""
    lines = headers.removesuffix(b"\r\n").split(b"\r\n")
    plain = headers.translate(None, _PLAIN) == b"\r\n" * headers.count(b"\r\n")
    if plain and all(lines) and b"\r\n " not in headers and b"\r\n\t" not in headers:
        return lines
    cleaned: list[bytes] = []
    for line in lines:
        text = line.translate(_WITHOUT_CONTROLS).rstrip()
        # A line of U+0085 or U+00A0 alone is blank for readers that decode before they split lines.
        if not _VISIBLE_ASCII.search(text):
            continue
        if text.startswith(b" ") and cleaned:
            cleaned[-1] += b" " + text.strip()
        else:
            cleaned.append(text.strip())
    return cleaned


def _reply_fields(reply: Reply) -> list[tuple[str, str]]:
    fields = [
        ("WARC-Record-ID", f"<urn:uuid:{uuid.uuid4()}>"),
        ("WARC-Date", _date(reply.fetched)),
        ("WARC-Target-URI", _uri(reply.url)),
    ]
    if _ADDRESS.fullmatch(reply.address):
        fields.append(("WARC-IP-Address", reply.address))
    return fields


def _warc_head(fields: list[tuple[str, str]], length: int) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in fields])
    return f"WARC/1.1\r\n{lines}Content-Length: {length}\r\n\r\n".encode("ascii")


def _uri(url: str) -> str:
    """Return the URL in visible ASCII, so that no part of it looks like another header."""
    return quote(url, safe=_VISIBLE, errors="replace")


def _date(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _sha1(*parts: bytes) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    return f"sha1:{base64.b32encode(digest.digest()).decode('ascii')}"


def _one_line(text: str) -> str:
    return " ".join(text.encode("utf-8", "replace").translate(_WITHOUT_CONTROLS).decode().split())


def _member(head: bytes, body: bytes, opaque: bool) -> bytes:
    """Return a record as a gzip member; a body that is compressed already is stored without compression."""
    tail = b"\r\n\r\n"
    if not opaque:
        return isal_zlib.compress(head + body + tail, 1, wbits=31)
    compressor = isal_zlib.compressobj(1, wbits=-15)
    parts = [_GZIP_HEADER, compressor.compress(head), compressor.flush(isal_zlib.Z_SYNC_FLUSH)]
    for start in range(0, len(body), _STORED_BLOCK):
        parts += _stored(body[start : start + _STORED_BLOCK], last=False)
    parts += _stored(tail, last=True)
    checksum = isal_zlib.crc32(tail, isal_zlib.crc32(body, isal_zlib.crc32(head)))
    size = len(head) + len(body) + len(tail)
    return b"".join([*parts, struct.pack("<II", checksum, size & 0xFFFFFFFF)])


def _stored(data: bytes, *, last: bool) -> tuple[bytes, bytes]:
    """Return data as an uncompressed deflate block (RFC 1951, 3.2.4)."""
    return struct.pack("<BHH", last, len(data), len(data) ^ 0xFFFF), data


def read_record(path: Path, offset: int) -> Reply:
    """Return the reply whose record begins at an offset."""
    for record in records(path, offset):
        if record.kind == "warcinfo":
            break
        return record.reply()
    raise WarcError(f"{path}: no reply at offset {offset}; the table and the WARC files are not of one crawl")


def records(path: Path, start: int = 0, end: int | None = None) -> Iterator[WarcRecord]:
    """Yield the records of a file that this module wrote, from one offset to another, the committed length."""
    offset = start
    for member, length in _members(path, start, end):
        try:
            yield _parse(member, offset, length)
        except (ValueError, KeyError) as error:
            raise WarcError(
                f"{path}: the record at {offset} is damaged: {error}; restore the file"
            ) from error
        offset += length


def copy_without(path: Path, end: int, target: Path, dropped: Collection[int]) -> dict[int, int]:
    """Copy a file without the records at some offsets; return the new offset of each other record by its old one.

    If no record is left, there is no new file. The new file is durable, but its name is not.
    """
    places: dict[int, int] = {}
    at = 0
    with path.open("rb") as file, target.open("wb") as out:
        for record in records(path, 0, end):
            if record.kind == "warcinfo":
                data = _renamed(record, target.name)
            elif record.offset in dropped:
                continue
            else:
                file.seek(record.offset)
                data = file.read(record.length)
                places[record.offset] = at
            out.write(data)
            at += len(data)
        out.flush()
        os.fsync(out.fileno())
    if not places:
        target.unlink()
    return places


def _renamed(info: WarcRecord, new: str) -> bytes:
    """Return the first record of a file, with another file name in it."""
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", f"<urn:uuid:{uuid.uuid4()}>"),
        ("WARC-Date", _date(info.fetched)),
        ("WARC-Filename", new),
        ("WARC-Block-Digest", _sha1(info.block)),
        ("Content-Type", "application/warc-fields"),
    ]
    return _member(_warc_head(fields, len(info.block)) + info.block, b"", opaque=False)


def _members(path: Path, start: int, end: int | None) -> Iterator[tuple[bytes, int]]:
    """Yield each gzip member unpacked, with its length in the file."""
    with path.open("rb") as file:
        file.seek(start)
        offset, data = start, b""
        while (end is None or offset < end) and (data or (data := file.read(READ_BYTES))):
            inflater = isal_zlib.decompressobj(wbits=31)
            parts: list[bytes] = []
            size = consumed = 0
            while not inflater.eof:
                if not data and not (data := file.read(READ_BYTES)):
                    raise WarcError(f"{path}: the record at {offset} is cut off; restore the file")
                try:
                    parts.append(inflater.decompress(data, MAX_RECORD_BYTES + 1 - size))
                except isal_zlib.IsalError as error:  # type: ignore[misc]  # the stub calls it an instance
                    raise WarcError(f"{path}: no record at {offset} ({error})") from error
                size += len(parts[-1])
                if size > MAX_RECORD_BYTES:
                    raise WarcError(f"{path}: the record at {offset} is larger than {MAX_RECORD_BYTES} bytes")
                rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
                consumed += len(data) - len(rest)
                data = rest
            yield b"".join(parts), consumed
            offset += consumed


def _parse(member: bytes, offset: int, length: int) -> WarcRecord:
    head, blank, rest = member.partition(b"\r\n\r\n")
    version, *lines = head.decode("utf-8").split("\r\n")
    if not blank or not version.startswith("WARC/1."):
        raise ValueError("it does not begin with WARC/1.x")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    size = int(fields["content-length"])
    if rest[size:] != b"\r\n\r\n":
        raise ValueError("its length is not the one it declares")
    if fields["warc-type"] not in ("warcinfo", "response"):
        raise ValueError(f"its type is {fields['warc-type']!r}")
    return WarcRecord(
        offset=offset,
        length=length,
        kind=cast(Kind, fields["warc-type"]),
        url=fields.get("warc-target-uri", ""),
        fetched=datetime.fromisoformat(fields["warc-date"]).timestamp(),
        address=fields.get("warc-ip-address", ""),
        truncated=cast(Truncated, fields.get("warc-truncated", "")),
        block=rest[:size],
    )
