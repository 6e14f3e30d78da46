"""Kind of a reply by its bytes: page, sitemap, feed or something else."""

from __future__ import annotations

import re
from typing import NamedTuple

from thresher.reader import feeds
from thresher.records import Kind

SNIFFED = 1445  # bytes: what the MIME standard lets a browser look at
BINARY_SHARE = 0.1  # of control bytes, from which on something that claims to be text is not

_MAGIC = (
    b"%PDF-",
    b"%!PS",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"Rar!\x1a",
    b"7z\xbc\xaf\x27\x1c",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd",
    b"\x89PNG\r\n",
    b"GIF8",
    b"\xff\xd8\xff",
    b"RIFF",
    b"\x00\x00\x01\x00",
    b"ID3",
    b"OggS",
    b"fLaC",
    b"\x1aE\xdf\xa3",
    b"\x7fELF",
    b"MZ\x90",
    b"wOFF",
    b"wOF2",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"SQLite format 3",
    b"\xca\xfe\xba\xbe",
)
_PAGE_TYPES = frozenset(["text/html", "application/xhtml+xml"])
_XML_TYPES = frozenset(["text/xml", "application/xml"])
_GZIP_TYPES = frozenset(["application/gzip", "application/x-gzip"])  # packed, which is undone by now
_VAGUE_TYPES = (
    _XML_TYPES | _GZIP_TYPES | {"", "text/plain", "application/octet-stream", "unknown/unknown", "*/*"}
)
_BEGINS_A_PAGE = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|title|script|meta|div|table|h1|p)"
    rb"(?=[\s>])",
    re.IGNORECASE | re.DOTALL,
)
# The beginning of nearly all pages; such a page is not tested for being a feed.
_BEGINS_AS_USUAL = re.compile(rb"\s*(?:<!doctype\s[^<>\[]*>\s*)?<html[\s>]", re.IGNORECASE)
_CONTROLS = bytes([*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])


class SniffedType(NamedTuple):
    """Kind of a body, and its contradiction to the declared type, or ""."""

    kind: Kind
    fault: str = ""


def sniff_kind(body: bytes, content_type: str) -> SniffedType:
    """Determine the kind of a body by its first bytes, and by its Content-Type if they do not decide."""
    mime = content_type.partition(";")[0].strip().lower()
    claims_page = mime in _PAGE_TYPES
    head = body[:SNIFFED]
    if head.startswith(_MAGIC) or head[4:8] == b"ftyp":
        return SniffedType("other", "binary" if claims_page else "")
    may_be_feed = claims_page or mime in _VAGUE_TYPES or mime.endswith("xml")
    if may_be_feed and not _BEGINS_AS_USUAL.match(head) and (root := feeds.kind_of(head)):
        return SniffedType(root)
    if claims_page or (mime in _VAGUE_TYPES and _BEGINS_A_PAGE.match(head)):
        return SniffedType("other", "binary") if _is_binary(head) else SniffedType("html")
    return SniffedType("other")


def _is_binary(head: bytes) -> bool:
    """Return True if bytes are no text in any encoding; UTF-16 has zeros at every other place only."""
    zeros = head.count(0)
    wide = zeros > 0.3 * len(head) and min(head[0::2].count(0), head[1::2].count(0)) < zeros / 8
    printable = len(head.translate(None, _CONTROLS))
    return not wide and len(head) - printable > BINARY_SHARE * len(head)
