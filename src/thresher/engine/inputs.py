"""Where pages come from that others fetched: archives, and pages saved as files."""

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

from thresher.config import ConfigError, Fetch
from thresher.page import Reply
from thresher.store.archives.packed import READ_BYTES, Packed, unpacked
from thresher.store.archives.records import Counts, records
from thresher.store.archives.replies import Refused, reply_of, saved_reply
from thresher.store.importers.formats import SUFFIXES
from thresher.store.importers.source import STDIN, fingerprint, opened
from thresher.store.lines import clean
from thresher.store.pages import Figures
from thresher.url import canonical

PACKINGS = (".gz", ".zst", ".lz4")
ARCHIVES = (".warc", ".arc", ".wet", ".wat")
SAVED = (".html", ".htm", ".xhtml")
STDIN_PLACE = Path("/dev/stdin")
HEAD_BYTES = 1 << 18  # of a saved page, in which it may say where it was

_ARCHIVE = re.compile(rb"WARC/\d\.\d+\r?\n|filedesc://")
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html)\b",
    re.I | re.S,
)
_TAG = re.compile(rb"<(?:link|meta)\s([^>]{1,4000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([a-zA-Z:-]{1,20})\s{0,20}=\s{0,20}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_SAVED_FROM = re.compile(rb"<!--\s{0,20}saved from url=\(\d{1,6}\)([^\s>]{1,4000})", re.IGNORECASE)


class Found(Struct, frozen=True):
    """A page that can be read."""

    number: int  # of its record, from 1
    reply: Reply
    raw: tuple[str, int | None] | None  # where it stands; None: it cannot be found again


class Input(Protocol):
    """Pages that are imported together, all of them or none."""

    format: str
    name: str
    given: tuple[str, ...]  # names of the files or folders that it was given as
    bytes: int
    figures: Figures

    @property
    def sha256(self) -> str:
        """Of all that it has, once all events were asked for."""

    def known(self, sizes: set[int], digests: set[str]) -> str:
        """Its digest if it is one of those, as far as that can be told before it is read; or ""."""

    def events(self, advance: Callable[[int], None]) -> Iterator[Found | Refused]:
        """The pages in order, and what else there is; `advance` is told of bytes read."""


def page_format(path: Path, asked: str | None) -> str:
    """Whether a file is an archive ("warc") or a saved page ("html"), by its name or, failing that, its content.

    A directory is a folder of saved pages. "": something else.
    """
    if asked is not None:
        return asked if asked in ("warc", "html") else ""
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
    first = next(unpacked(Packed(io.BytesIO(start))), None)
    return "warc" if first is not None and _ARCHIVE.match(first.data) else ""


class Archive:
    """A WARC, WET or ARC file."""

    format = "warc"

    def __init__(self, path: Path, limits: Fetch) -> None:
        self.path = path
        self.bytes = 0
        self.figures = Figures()
        self._standard = str(path) == STDIN
        self.name = "stdin" if self._standard else clean(path.name)
        self.given: tuple[str, ...] = (self.name,)
        self._limits = limits
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Of its bytes, once they are read."""
        return self._hash.hexdigest()

    def known(self, sizes: set[int], digests: set[str]) -> str:
        """Its digest if it was imported before, as far as that can be told now."""
        if self._standard or not self.path.is_file() or self.path.stat().st_size not in sizes:
            return ""
        digest = fingerprint(self.path)
        return digest if digest in digests else ""

    def events(self, advance: Callable[[int], None]) -> Iterator[Found | Refused]:
        """What every record is. All bytes of the file are read and hashed."""
        body = self._limits.max_body_bytes
        counts = Counts()
        place = None if self._standard or not self.path.is_file() else str(self.path.resolve())

        def told(data: bytes) -> None:
            self._hash.update(data)
            self.bytes += len(data)
            advance(len(data))

        with self._opened() as file:
            for record in records(file, body + self._limits.max_header_bytes, counts, told):
                reply = reply_of(record, body)
                raw = None if place is None else (place, record.offset)
                yield Found(record.number, reply, raw) if isinstance(reply, Reply) else reply
            while rest := file.read(READ_BYTES):  # nothing, unless what unpacks it gave up
                told(rest)
        self.figures.records = counts.records
        self.figures.damaged = counts.damaged
        self.figures.bytes_skipped = counts.bytes_skipped

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        return opened_input(self.path)


def opened_input(path: Path) -> AbstractContextManager[BinaryIO]:
    """A file or standard input; that without a buffer, for a process cannot end while a thread waits in one."""
    if str(path) != STDIN:
        return opened(path)
    return cast(BinaryIO, io.FileIO(sys.stdin.fileno(), closefd=False))


class SavedPages:
    """Pages saved as files, one after the other."""

    format = "html"

    def __init__(self, given: Sequence[Path], limits: Fetch) -> None:
        self.bytes = 0
        self.figures = Figures()
        self._paths = saved_paths(given)
        self.given = tuple("stdin" if str(path) == STDIN else clean(path.name) for path in given)
        self.name = self.given[0] if len(given) == 1 else f"{len(self._paths):,} saved pages"
        self._limit = limits.max_body_bytes
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Of the digests of all its files, once they are read."""
        return self._hash.hexdigest()

    def known(self, sizes: set[int], digests: set[str]) -> str:
        """Its digest if it was imported before, as far as that can be told now."""
        if any(str(path) == STDIN for path in self._paths):
            return ""
        if sum(path.stat().st_size for path in self._paths) not in sizes:
            return ""
        whole = hashlib.sha256()
        for path in self._paths:
            whole.update(bytes.fromhex(fingerprint(path)))
        return whole.hexdigest() if whole.hexdigest() in digests else ""

    def events(self, advance: Callable[[int], None]) -> Iterator[Found | Refused]:
        """Every page, with the address that it claims to have been at, or else that of the file."""
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
            self.figures.records += 1
            advance(size)
            if size > self._limit:
                yield Refused("", "truncated")
                continue
            body = b"".join(parts)
            place = STDIN_PLACE if standard else path.resolve()
            raw = None if standard else (str(place), None)
            yield Found(number, saved_reply(address(body) or place.as_uri(), body, moment), raw)


def saved_paths(given: Sequence[Path]) -> list[Path]:
    """All saved pages among files and in folders; ConfigError if a folder has none."""
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
            raise ConfigError(
                f"{path} is a directory without saved pages ({', '.join(SAVED)}); "
                f"to import other files, give them: {path}/*"
            )
        found += pages
    return found


def address(page: bytes) -> str | None:
    """Where a page says it is to be found: its canonical link, its og:url, or what a browser noted on saving it.

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
