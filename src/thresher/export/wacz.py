"""WACZ 1.1.1: the raw pages of documents in a ZIP file that players read piece by piece.

Records are copied as they are, one after the other. What must be sorted or comes last (indexes and pages) waits in
temporary files, so that neither memory nor a second copy of the archive is needed, and a pipe will do.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import re
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from isal import isal_zlib
from msgspec import Struct

from thresher._version import __version__
from thresher.export.selection import Selection
from thresher.store import warc
from thresher.store.corpus import CorpusError
from thresher.store.shards import followed

VERSION = "1.1.1"
LINES_IN_BLOCK = 3_000  # of the index that a player unpacks to find one: a convention among players
LINES_IN_MEMORY = 100_000
NOT_KEPT = "raw page was not kept"
ELSEWHERE = "raw page is in an archive that was imported"
PIECE = 1 << 20
_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the first that ZIP knows
_WWW = re.compile(r"^www\d*\.")


class Resource(Struct, frozen=True):
    """A file of the archive."""

    name: str
    path: str
    hash: str
    bytes: int


def write_wacz(selection: Selection, out: BinaryIO) -> int:
    """Raw pages, their index and a list of them."""
    with (
        tempfile.TemporaryFile() as pages,
        _Sorted() as index,
        zipfile.ZipFile(cast(IO[bytes], _Stream(out)), "w", allowZip64=True) as archive,
        contextlib.closing(_Package(archive)) as package,
    ):
        count, last = _write_pages(selection, package, index, pages)
        blocks = package.file("indexes/index.cdx.gz")
        places = _index(index, blocks)
        package.add("indexes/index.idx", "".join(places).encode())
        pages.seek(0)
        listing = package.file("pages/pages.jsonl", packed=True)
        listing.write(b'{"format":"json-pages-1.0","id":"pages","title":"All Pages"}\n')
        while piece := pages.read(PIECE):
            listing.write(piece)
        package.finish(
            {
                "profile": "data-package",
                "wacz_version": VERSION,
                "title": f"Pages of a corpus in {selection.corpus.config.language}",
                "description": f"{count:,} pages",
                "software": f"thresher {__version__}",
                # Not the time of now: the same corpus gives the same bytes.
                "created": _moment(last),
            }
        )
    return count


def _write_pages(
    selection: Selection, package: _Package, index: _Sorted, pages: IO[bytes]
) -> tuple[int, datetime | None]:
    """Copy the records of all chosen pages; how many there are, and when the last was fetched."""
    count, files = 0, 0
    source = ""
    last: datetime | None = None
    target: _File | None = None
    for batch in selection.pages():
        for row in batch.select(["url", "title", "fetched", "warc_file", "warc_offset"]).to_pylist():
            if row["warc_file"] is None or row["warc_offset"] is None:
                selection.left_out[NOT_KEPT] += 1
                continue
            if Path(row["warc_file"]).is_absolute():
                selection.left_out[ELSEWHERE] += 1
                continue
            path = selection.corpus.warc_path(row["warc_file"])
            if path.name != source or target is None:
                source = path.name
                target = package.file(f"archive/data-{files:05d}.warc.gz")
                files += 1
                _copy_warcinfo(path, target)
            record = _record(path, row["warc_offset"])
            offset = target.bytes
            _copy(path, record, target)
            index.add(_line(record, offset, target.name))
            pages.write(_page(row, record))
            count += 1
            fetched = datetime.fromtimestamp(record.fetched, UTC)
            last = max(last or fetched, fetched)
    if target is None:
        package.file(f"archive/data-{files:05d}.warc.gz")  # there must be one
    return count, last


def _record(path: Path, offset: int) -> warc.Record:
    try:
        record = followed(path, lambda path: next(warc.records(path, offset), None))
    except FileNotFoundError:
        raise CorpusError(f"{path} is missing; restore it to export raw pages") from None
    if record is None:
        raise CorpusError(f"{path} has no record at {offset}; restore it")
    return record


def _copy_warcinfo(path: Path, target: _File) -> None:
    record = _record(path, 0)
    if record.kind == "warcinfo":
        _copy(path, record, target)


def _copy(path: Path, record: warc.Record, target: _File) -> None:
    with followed(path, lambda path: path.open("rb")) as file:
        file.seek(record.offset)
        left = record.length
        while left and (piece := file.read(min(left, PIECE))):
            target.write(piece)
            left -= len(piece)


def _line(record: warc.Record, offset: int, file: str) -> bytes:
    """A record as a line of CDXJ."""
    reply = record.reply()
    digest = hashlib.sha256(reply.body).hexdigest()
    about = {
        "url": record.url,
        "mime": _mime(reply.headers),
        "status": str(reply.status),
        "digest": f"sha256:{digest}",
        "length": str(record.length),
        "offset": str(offset),
        "filename": file,
    }
    moment = datetime.fromtimestamp(record.fetched, UTC).strftime("%Y%m%d%H%M%S")
    return f"{sort_key(record.url)} {moment} ".encode() + msgspec.json.encode(about) + b"\n"


def sort_key(url: str) -> str:
    """A URL with its host turned around, as players look it up; without a leading www.

    >>> sort_key("https://www.example.cz:8080/A?b=2&a=1")
    'cz,example:8080)/a?a=1&b=2'
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # no URL of ours, but the WARC file has it
        return url.lower().replace(" ", "%20")
    host, colon, port = parts.netloc.rpartition("@")[2].partition(":")
    turned = ",".join(reversed(_WWW.sub("", host).split(".")))
    query = urlencode(sorted(parse_qsl(parts.query, keep_blank_values=True))) if parts.query else ""
    return f"{turned}{colon}{port}){parts.path or '/'}{'?' if query else ''}{query}".lower().replace(
        " ", "%20"
    )


def _mime(headers: bytes) -> str:
    for line in headers.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-type":
            return value.partition(b";")[0].strip().decode("latin-1") or "unk"
    return "unk"


def _page(row: dict[str, Any], record: warc.Record) -> bytes:
    about = {
        "id": hashlib.sha256(f"{record.url}\0{record.fetched}".encode()).hexdigest()[:20],
        "url": record.url,
        "ts": _moment(datetime.fromtimestamp(record.fetched, UTC)),
        "title": " ".join((row["title"] or "").split()),
    }
    return msgspec.json.encode(about) + b"\n"


def _moment(time: datetime | None) -> str:
    return (time or datetime.fromtimestamp(0, UTC)).isoformat(timespec="seconds").replace("+00:00", "Z")


def _index(lines: _Sorted, out: _File) -> Iterator[str]:
    """Write the index in blocks that are packed one by one; the lines that tell where each begins."""
    yield '!meta 0 {"format":"cdxj-gzip-1.0","filename":"index.cdx.gz"}\n'
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if len(block) == LINES_IN_BLOCK:
            yield _block(block, out)
            block = []
    if block:
        yield _block(block, out)


def _block(lines: list[bytes], out: _File) -> str:
    packed = isal_zlib.compress(b"".join(lines), 2, wbits=31)
    about = {
        "offset": out.bytes,
        "length": len(packed),
        "digest": f"sha256:{hashlib.sha256(packed).hexdigest()}",
        "filename": "index.cdx.gz",
    }
    out.write(packed)
    first = lines[0].decode().split(" ", 2)
    return f"{first[0]} {first[1]} {msgspec.json.encode(about).decode()}\n"


class _Sorted:
    """Lines that come in any order and go in theirs; many of them wait in files."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._runs: list[IO[bytes]] = []

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) >= LINES_IN_MEMORY:
            run = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
            run.writelines(sorted(self._lines))
            self._runs.append(run)
            self._lines = []

    def __iter__(self) -> Iterator[bytes]:
        for run in self._runs:
            run.seek(0)
        return heapq.merge(*self._runs, sorted(self._lines))

    def __enter__(self) -> _Sorted:
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._runs:
            run.close()


class _Package:
    """The files of an archive, one after the other, and what the manifest says of them."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._files: list[_File] = []

    def file(self, path: str, *, packed: bool = False) -> _File:
        """A file that ends where the next begins."""
        self.close()
        info = zipfile.ZipInfo(path, _NO_TIME)
        info.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        info.external_attr = 0o644 << 16
        file = _File(path, self._archive.open(info, "w", force_zip64=True))
        self._files.append(file)
        return file

    def add(self, path: str, data: bytes) -> None:
        self.file(path, packed=True).write(data)

    def finish(self, about: dict[str, Any]) -> None:
        """The manifest, and its own checksum."""
        self.close()
        resources = [file.resource() for file in self._files]
        manifest = msgspec.json.format(msgspec.json.encode({**about, "resources": resources}), indent=2)
        self.add("datapackage.json", manifest)
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(manifest).hexdigest()}"}
        self.add("datapackage-digest.json", msgspec.json.encode(digest))
        self.close()

    def close(self) -> None:
        """End the file that is open, whatever happened."""
        if self._files:
            self._files[-1].close()


class _File:
    """A file of the archive as it is written."""

    def __init__(self, path: str, out: IO[bytes]) -> None:
        self.path = path
        self.name = path.rpartition("/")[2]
        self.bytes = 0
        self._out = out
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self._out.write(data)
        self._hash.update(data)
        self.bytes += len(data)

    def close(self) -> None:
        self._out.close()

    def resource(self) -> Resource:
        return Resource(self.name, self.path, f"sha256:{self._hash.hexdigest()}", self.bytes)


class _Stream:
    """An output of which ZIP may not think that it can go back: a file then has the bytes that a pipe gets."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        self._out.write(data)
        return len(data)

    def flush(self) -> None:
        with contextlib.suppress(AttributeError):
            self._out.flush()
