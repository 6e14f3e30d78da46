"""From the record of an archive to the reply of a server, as a crawler would have got it; or why there is none."""

from __future__ import annotations

import email.utils
import re
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from thresher.page import Reply
from thresher.store.archives.packed import leading_dictionary
from thresher.store.archives.records import Record, records
from thresher.store.files import StoreError
from thresher.url import canonical

# What a record is, apart from pages; "" is a page.
REVISIT, OTHER = "revisit", "other"

MAX_HEADERS = 1 << 16  # bytes of an HTTP head
FIRST, LAST = 631_152_000.0, 4_102_444_800.0  # 1990 and 2100: a date outside is none

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? +(\d{3})(?=\s|\Z)")
_BLANK = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(rb"\r?\n[ \t]+")
_LINE_END = re.compile(rb"\r?\n")
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]{0,1000})?\r?\n")
_CHUNKED = re.compile(rb"(?:\A|\n)transfer-encoding[ \t]*:[^\r\n]*\bchunked\b", re.IGNORECASE)
_PAGES = ("text/html", "application/xhtml+xml")
# What a text without its HTTP head is given instead; a status of 0 says that nobody knows it.
_TEXT = b"HTTP/1.1 000\r\nContent-Type: text/plain; charset=utf-8\r\n"


class Refused(Struct, frozen=True):
    """Why a record is no page that could be read."""

    kind: str  # REVISIT, OTHER, or "": it is a page, and
    reason: str = ""  # this is what is wrong with it


def reply_of(record: Record, limit: int) -> Reply | Refused:
    """The reply in a record; one that is not whole, or longer than `limit`, is refused, as in a crawl."""
    if record.kind == "revisit":
        return Refused(REVISIT)
    mime = record.field("content-type").partition(";")[0].strip().lower()
    url = canonical(record.field("warc-target-uri").strip("<> \t"))
    if record.kind == "conversion":
        return _text(record, url, limit) if mime == "text/plain" else Refused(OTHER)
    if record.kind == "resource" and mime in _PAGES:
        headers = f"HTTP/1.1 000\r\nContent-Type: {_ascii(record.field('content-type'))}\r\n".encode()
        return _checked(record, url, 0, headers, record.block, limit)
    if record.kind not in ("response", "arc") or record.field("warc-target-uri").startswith("filedesc:"):
        return Refused(OTHER)
    return _response(record, url, limit)


def _text(record: Record, url: str | None, limit: int) -> Reply | Refused:
    return _checked(record, url, 0, _TEXT, record.block, limit)


def _response(record: Record, url: str | None, limit: int) -> Reply | Refused:
    block = record.block
    status = _STATUS.match(block)
    if status is None or url is None:
        return Refused("", "not http")
    blank = _BLANK.search(block, 0, MAX_HEADERS)
    if blank is None:
        return Refused("", "truncated")
    head, body = block[: blank.start()], block[blank.end() :]
    if status[1] != b"200":
        return Refused("", f"http {status[1].decode()}")
    if _CHUNKED.search(head):
        body = unchunked(body)
    headers = _LINE_END.sub(b"\r\n", _FOLD.sub(b" ", head)) + b"\r\n"
    return _checked(record, url, 200, headers, body, limit)


def _checked(
    record: Record, url: str | None, status: int, headers: bytes, body: bytes, limit: int
) -> Reply | Refused:
    if url is None:
        return Refused("", "not http")
    if record.cut or len(body) > limit or record.field("warc-truncated"):
        return Refused("", "truncated")
    reply = Reply(url, status, headers, body, 0.0, 0.0, _ascii(record.field("warc-ip-address")))
    return Reply(url, status, headers, body, _moment(record, reply), 0.0, reply.address)


def unchunked(body: bytes) -> bytes:
    """A body without its chunks; from where they make no sense on, as it is.

    >>> unchunked(b"4\\r\\nwiki\\r\\n0\\r\\n\\r\\n"), unchunked(b"<p>not chunked")
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


def _moment(record: Record, reply: Reply) -> float:
    """When a page was fetched, by its record or else by its server; 0 if neither tells."""
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
    """Without what would break a line or a terminal."""
    return "".join(char for char in text if char.isascii() and char.isprintable())


def stored_reply(path: Path, offset: int | None, url: str, fetched: float, limit: int) -> Reply:
    """The reply that stands in an archive at an offset; with none, the file itself is the page."""
    with path.open("rb") as file:
        if offset is None:
            return saved_reply(url, file.read(limit), path.stat().st_mtime)
        dictionary = leading_dictionary(file)
        file.seek(offset)
        for record in records(file, limit + MAX_HEADERS, offset=offset, dictionary=dictionary):
            if record.offset != offset:
                break  # it would be in another member
            reply = reply_of(record, limit)
            if isinstance(reply, Reply) and reply.url == url and abs(reply.fetched - fetched) < 1:
                return reply
    raise StoreError(f"{path}: no reply of {url} at offset {offset}; the file has changed: restore it")


def saved_reply(url: str, body: bytes, moment: float) -> Reply:
    """A saved page as a server would have sent it."""
    return Reply(url, 200, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", body, moment, 0.0, "")
