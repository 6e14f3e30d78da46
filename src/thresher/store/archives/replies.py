"""Replies of servers, as a crawler would have received them, from the records of archives."""

from __future__ import annotations

import email.utils
import re
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from thresher.errors import DataError
from thresher.records import Reply
from thresher.store.archives.packed import leading_dictionary
from thresher.store.archives.records import ArchiveRecord, records
from thresher.urls import canonical

# Kinds of records that are not pages; "" is a page.
REVISIT, OTHER = "revisit", "other"

MAX_HEADERS = 1 << 16  # bytes of an HTTP head
FIRST, LAST = 631_152_000.0, 4_102_444_800.0  # 1990 and 2100; a date outside is an error

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? +(\d{3})(?=\s|\Z)")
_BLANK = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_LINE_END = re.compile(rb"\r?\n")
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]{0,1000})?\r?\n")
_CHUNKED = re.compile(rb"(?:\A|\n)transfer-encoding[ \t]*:[^\r\n]*\bchunked\b", re.IGNORECASE)
_PAGES = ("text/html", "application/xhtml+xml")
# Head of a text that comes without one; a status of 0 means that it is unknown.
_TEXT = b"HTTP/1.1 000\r\nContent-Type: text/plain; charset=utf-8\r\n"


class RefusedRecord(Struct, frozen=True):
    """The reason why a record yields no reply."""

    kind: str  # REVISIT, OTHER, or "" for a page with a fault
    reason: str = ""  # the fault of a page


def reply_of(record: ArchiveRecord, limit: int) -> Reply | RefusedRecord:
    """Return the reply in a record, or the reason to refuse one that is cut or longer than `limit`."""
    if record.kind == "revisit":
        return RefusedRecord(REVISIT)
    mime = record.field("content-type").partition(";")[0].strip().lower()
    url = canonical(record.field("warc-target-uri").strip("<> \t"))
    if record.kind == "conversion":
        return _text(record, url, limit) if mime == "text/plain" else RefusedRecord(OTHER)
    if record.kind == "resource" and mime in _PAGES:
        headers = f"HTTP/1.1 000\r\nContent-Type: {_ascii(record.field('content-type'))}\r\n".encode()
        return _checked(record, url, 0, headers, record.block, limit)
    if record.kind not in ("response", "arc") or record.field("warc-target-uri").startswith("filedesc:"):
        return RefusedRecord(OTHER)
    return _response(record, url, limit)


def _text(record: ArchiveRecord, url: str | None, limit: int) -> Reply | RefusedRecord:
    return _checked(record, url, 0, _TEXT, record.block, limit)


def _response(record: ArchiveRecord, url: str | None, limit: int) -> Reply | RefusedRecord:
    block = record.block
    status = _STATUS.match(block)
    if status is None or url is None:
        return RefusedRecord("", "not http")
    blank = _BLANK.search(block, 0, MAX_HEADERS)
    if blank is None:
        return RefusedRecord("", "truncated")
    head, body = block[: blank.start()], block[blank.end() :]
    if status[1] != b"200":
        return RefusedRecord("", f"http {status[1].decode()}")
    if _CHUNKED.search(head):
        body = unchunked(body)
    headers = _LINE_END.sub(b"\r\n", _FOLD.sub(b" ", head)) + b"\r\n"
    return _checked(record, url, 200, headers, body, limit)


def _checked(
    record: ArchiveRecord, url: str | None, status: int, headers: bytes, body: bytes, limit: int
) -> Reply | RefusedRecord:
    if url is None:
        return RefusedRecord("", "not http")
    if record.cut or len(body) > limit or record.field("warc-truncated"):
        return RefusedRecord("", "truncated")
    reply = Reply(url, status, headers, body, 0.0, 0.0, _ascii(record.field("warc-ip-address")))
    return Reply(url, status, headers, body, _moment(record, reply), 0.0, reply.address)


def unchunked(body: bytes) -> bytes:
    r"""Return a body without its chunk sizes; the rest after an invalid chunk stays unchanged.

    >>> unchunked(b"4\r\nwiki\r\n0\r\n\r\n"), unchunked(b"<p>not chunked")
    (b'wiki', b'<p>not chunked')
    """
    parts: list[bytes] = []
    at = 0
    while size := _CHUNK.match(body, at):
        length = int(size[1], 16)
        if not length:
            return b"".join(parts)
        start = size.end()
        parts.append(body[start : start + length])
        at = start + length
        line_end = _LINE_END.match(body, at)
        at = line_end.end() if line_end else at
    return b"".join([*parts, body[at:]])


def _moment(record: ArchiveRecord, reply: Reply) -> float:
    """Return the time at which a page was fetched, by its record or else its server; 0 if it is unknown."""
    text = record.field("warc-date")
    try:
        if text.isdecimal():  # ARC
            date = datetime.strptime(text[:14].ljust(14, "0"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        else:
            date = datetime.fromisoformat(text)
            date = date if date.tzinfo else date.replace(tzinfo=UTC)
        moment = date.timestamp()
    except (ValueError, OverflowError):
        moment = 0.0
    if not FIRST <= moment < LAST:
        try:
            moment = email.utils.parsedate_to_datetime(reply.header("Date") or "").timestamp()
        except (ValueError, TypeError, OverflowError):
            moment = 0.0
    return moment if FIRST <= moment < LAST else 0.0


def _ascii(text: str) -> str:
    """Return the printable ASCII characters of a text."""
    return "".join(char for char in text if char.isascii() and char.isprintable())


def stored_reply(path: Path, offset: int | None, url: str, fetched: float, limit: int) -> Reply:
    """Return the reply at an offset of an archive; without an offset, the file itself is the page."""
    with path.open("rb") as file:
        if offset is None:
            return saved_reply(url, file.read(limit), path.stat().st_mtime)
        dictionary = leading_dictionary(file)
        file.seek(offset)
        for record in records(file, limit + MAX_HEADERS, offset=offset, dictionary=dictionary):
            if record.offset != offset:
                break  # the reply cannot be in another member
            reply = reply_of(record, limit)
            if isinstance(reply, Reply) and reply.url == url and abs(reply.fetched - fetched) < 1:
                return reply
    raise DataError(f"{path}: no reply of {url} at offset {offset}; the file has changed: restore it")


def saved_reply(url: str, body: bytes, moment: float) -> Reply:
    """Return a saved page as a reply of a server."""
    return Reply(url, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", body, moment, 0.0, "")
