"""The inputs of an import of pages: archives, and pages saved as files."""

from __future__ import annotations

import hashlib
import html
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from msgspec import Struct

from thresher.config import FetchSettings
from thresher.errors import UsageError
from thresher.importing.formats.registry import SUFFIXES
from thresher.importing.formats.source import STDIN, fingerprint, opened
from thresher.records import Reply
from thresher.store.archives.packed import READ_BYTES, PackedStream, unpacked
from thresher.store.archives.records import ArchiveCounts, records
from thresher.store.archives.replies import RefusedRecord, reply_of, saved_reply
from thresher.store.imported_files import PageFileStats
from thresher.store.token_lines import clean
from thresher.urls import canonical

PACKINGS = (".gz", ".zst", ".lz4")
ARCHIVES = (".warc", ".arc", ".wet", ".wat")
SAVED = (".html", ".htm", ".xhtml")
STDIN_PLACE = Path("/dev/stdin")
HEAD_BYTES = 1 << 18  # of a saved page, in which its address is looked for

_ARCHIVE = re.compile(rb"WARC/\d\.\d+\r?\n|filedesc://")
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html)\b",
    re.I | re.S,
)
_TAG = re.compile(rb"<(?:link|meta)\s([^>]{1,4000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([a-zA-Z:-]{1,20})\s{0,20}=\s{0,20}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_SAVED_FROM = re.compile(rb"<!--\s{0,20}saved from url=\(\d{1,6}\)([^\s>]{1,4000})", re.IGNORECASE)


class FoundPage(Struct, frozen=True):
    """A page of an input, with its reply."""

    number: int  # of its record, from 1
    reply: Reply
    raw: tuple[str, int | None] | None  # its file and offset; None if it came through a pipe


class PageInput(Protocol):
    """An input; its pages are imported together, all of them or none."""

    format: str
    name: str
    given: tuple[str, ...]  # names of its files or folders, as they were given
    bytes: int
    stats: PageFileStats

    @property
    def sha256(self) -> str:
        """The digest of the input; complete after the last event."""

    def known(self, sizes: set[int], digests: set[str]) -> str:
        """Return its digest if that is one of `digests`, as far as it can be known before reading, or else ""."""

    def events(self, advance: Callable[[int], None]) -> Iterator[FoundPage | RefusedRecord]:
        """Yield the pages and other records in order; `advance` is called with the bytes that were read."""


def page_format(path: Path, given: str | None) -> str:
    """Return "warc" for an archive, "html" for a saved page or a folder, and "" for anything else.

    The format is the given one, if any, or else follows from the name, or else from the content.
    """
    if given is not None:
        return given if given in ("warc", "html") else ""
    if path.is_dir():
        return "html"
    if path.suffix.lower() in SAVED:
        return "html"
    last = (path.with_suffix("") if path.suffix.lower() in PACKINGS else path).suffix.lower()
    if last in ARCHIVES:
        return "warc"
    return _format_by_content(path) if path.is_file() and last not in SUFFIXES else ""


def _format_by_content(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(READ_BYTES)
    if _PAGE.match(start):
        return "html"
    first = next(unpacked(PackedStream(io.BytesIO(start))), None)
    return "warc" if first is not None and _ARCHIVE.match(first.data) else ""


class Archive:
    """An archive: a WARC, WET or ARC file."""

    format = "warc"

    def __init__(self, path: Path, limits: FetchSettings) -> None:
        self.path = path
        self.bytes = 0
        self.stats = PageFileStats()
        self._standard = str(path) == STDIN
        self.name = "stdin" if self._standard else clean(path.name)
        self.given: tuple[str, ...] = (self.name,)
        self._limits = limits
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The digest of its bytes; complete after the last event."""
        return self._hash.hexdigest()

    def known(self, sizes: set[int], digests: set[str]) -> str:
        """Return its digest if that is one of `digests`, as far as it can be known before reading, or else ""."""
        if self._standard or not self.path.is_file() or self.path.stat().st_size not in sizes:
            return ""
        digest = fingerprint(self.path)
        return digest if digest in digests else ""

    def events(self, advance: Callable[[int], None]) -> Iterator[FoundPage | RefusedRecord]:
        """Yield the pages and other records in order; all bytes of the file are read and hashed."""
        body = self._limits.max_body_bytes
        counts = ArchiveCounts()
        place = None if self._standard or not self.path.is_file() else str(self.path.resolve())

        def on_bytes(data: bytes) -> None:
            self._hash.update(data)
            self.bytes += len(data)
            advance(len(data))

        with self._opened() as file:
            for record in records(file, body + self._limits.max_header_bytes, counts, on_bytes):
                reply = reply_of(record, body)
                raw = None if place is None else (place, record.offset)
                yield FoundPage(record.number, reply, raw) if isinstance(reply, Reply) else reply
            while rest := file.read(READ_BYTES):  # bytes that remain if unpacking was given up
                on_bytes(rest)
        self.stats.records = counts.records
        self.stats.damaged = counts.damaged
        self.stats.bytes_skipped = counts.bytes_skipped

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        return opened_input(self.path)


def opened_input(path: Path) -> AbstractContextManager[BinaryIO]:
    """Open a file or standard input.

    Standard input has no buffer: a process cannot end while a thread waits for a lock of a buffer.
    """
    if str(path) != STDIN:
        return opened(path)
    return cast(BinaryIO, io.FileIO(sys.stdin.fileno(), closefd=False))


class SavedPages:
    """Pages saved as files, imported together."""

    format = "html"

    def __init__(self, given: Sequence[Path], limits: FetchSettings) -> None:
        self.bytes = 0
        self.stats = PageFileStats()
        self._paths = saved_paths(given)
        self.given = tuple("stdin" if str(path) == STDIN else clean(path.name) for path in given)
        self.name = self.given[0] if len(given) == 1 else f"{len(self._paths):,} saved pages"
        self._limit = limits.max_body_bytes
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The digest of the digests of all files; complete after the last event."""
        return self._hash.hexdigest()

    def known(self, sizes: set[int], digests: set[str]) -> str:
        """Return its digest if that is one of `digests`, as far as it can be known before reading, or else ""."""
        if any(str(path) == STDIN for path in self._paths):
            return ""
        if sum(path.stat().st_size for path in self._paths) not in sizes:
            return ""
        whole = hashlib.sha256()
        for path in self._paths:
            whole.update(bytes.fromhex(fingerprint(path)))
        return whole.hexdigest() if whole.hexdigest() in digests else ""

    def events(self, advance: Callable[[int], None]) -> Iterator[FoundPage | RefusedRecord]:
        """Yield the pages in order, each with the address that it claims, or else that of its file."""
        for number, path in enumerate(self._paths, 1):
            standard = str(path) == STDIN
            digest = hashlib.sha256()
            parts, size = [], 0
            with opened_input(path) as file:
                moment = os.fstat(file.fileno()).st_mtime
                while part := file.read(READ_BYTES):
                    digest.update(part)
                    parts += [part] if size <= self._limit else []
                    size += len(part)
            self._hash.update(digest.digest())
            self.bytes += size
            self.stats.records += 1
            advance(size)
            if size > self._limit:
                yield RefusedRecord("", "truncated")
                continue
            body = b"".join(parts)
            place = STDIN_PLACE if standard else path.resolve()
            raw = None if standard else (str(place), None)
            yield FoundPage(number, saved_reply(address(body) or place.as_uri(), body, moment), raw)


def saved_paths(given: Sequence[Path]) -> list[Path]:
    """Return all saved pages among files and in folders; raise UsageError if a folder has none."""
    found: list[Path] = []
    for path in given:
        if str(path) == STDIN or not path.is_dir():
            found.append(path)
            continue
        inside = [
            Path(folder) / name
            for folder, _, names in os.walk(path)
            for name in names
            if name.lower().endswith(SAVED)
        ]
        pages = sorted(page for page in inside if page.is_file())
        if not pages:
            raise UsageError(
                f"{path} is a directory without saved pages ({', '.join(SAVED)}); "
                f"to import other files, give them: {path}/*"
            )
        found += pages
    return found


def address(page: bytes) -> str | None:
    """Return the address that a page claims: its canonical link, its og:url, or the comment of a browser.

    >>> address(b'<link href="https://example.cz/a" rel=canonical>')
    'https://example.cz/a'
    """
    start = page[:HEAD_BYTES]
    claims: dict[str, str] = {}
    for tag in _TAG.finditer(start):
        known = {
            name.lower(): html.unescape(double or single or bare)
            for name, double, single, bare in _ATTRIBUTE.findall(tag[1].decode("utf-8", "replace"))
        }
        if "canonical" in known.get("rel", "").lower().split():
            claims.setdefault("canonical", known.get("href", ""))
        elif known.get("property", known.get("name", "")).lower() == "og:url":
            claims.setdefault("og:url", known.get("content", ""))
    if noted := _SAVED_FROM.search(start):
        claims["saved from"] = noted[1].decode("utf-8", "replace")
    urls = (canonical(claims.get(name, "")) for name in ("canonical", "og:url", "saved from"))
    return next(filter(None, urls), None)
