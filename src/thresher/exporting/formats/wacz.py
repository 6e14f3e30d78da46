"""WACZ 1.1.1: the raw pages of documents in a ZIP file that players read in parts.

Records are copied unchanged, one after the other. Indexes and the list of pages, which must be sorted or come last,
are collected in temporary files. So neither much memory nor a second copy of the archive is needed, and the output
may be a pipe.
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
from thresher.exporting.documents import ExportSelection
from thresher.store import warc
from thresher.store.corpus_files import CorpusError
from thresher.store.shard_layout import followed

VERSION = "1.1.1"
LINES_IN_BLOCK = 3_000  # of the index, which a player unpacks to find one line; the convention of players
LINES_IN_MEMORY = 100_000
NOT_KEPT = "raw page was not kept"
ELSEWHERE = "raw page is in an archive that was imported"
COPY_BYTES = 1 << 20  # copied at a time
_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest time in ZIP
_WWW = re.compile(r"^www\d*\.")


class WaczResource(Struct, frozen=True):
    """A file of the archive."""

    name: str
    path: str
    hash: str
    bytes: int


def write_wacz(selection: ExportSelection, out: BinaryIO) -> int:
    """Write raw pages, their index and their list; return the number of pages."""
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
        while data := pages.read(COPY_BYTES):
            listing.write(data)
        package.finish(
            {
                "profile": "data-package",
                "wacz_version": VERSION,
                "title": f"Pages of a corpus in {selection.corpus.config.language}",
                "description": f"{count:,} pages",
                "software": f"thresher {__version__}",
                # The present time would make the bytes of two exports of a corpus differ.
                "created": _moment(last),
            }
        )
    return count


def _write_pages(
    selection: ExportSelection, package: _Package, index: _Sorted, pages: IO[bytes]
) -> tuple[int, datetime | None]:
    """Copy the records of all selected pages; return their number and the latest time of download."""
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
        package.file(f"archive/data-{files:05d}.warc.gz")  # the format requires one
    return count, last


def _record(path: Path, offset: int) -> warc.WarcRecord:
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


def _copy(path: Path, record: warc.WarcRecord, target: _File) -> None:
    with followed(path, lambda path: path.open("rb")) as file:
        file.seek(record.offset)
        left = record.length
        while left and (data := file.read(min(left, COPY_BYTES))):
            target.write(data)
            left -= len(data)


def _line(record: warc.WarcRecord, offset: int, file: str) -> bytes:
    """Return a record as a line of CDXJ."""
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
    """Return a URL with its host reversed and without www, which is the key of players.

    >>> sort_key("https://www.example.cz:8080/A?b=2&a=1")
    'cz,example:8080)/a?a=1&b=2'
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # invalid, but it is in the WARC file
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


def _page(row: dict[str, Any], record: warc.WarcRecord) -> bytes:
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
    """Write the index in blocks, each packed alone; yield the lines that hold the offset of each block."""
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
    """A sorter of lines with bounded memory: sorted runs are kept in temporary files and merged."""

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
    """The files of an archive, written one after the other, and their manifest."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._files: list[_File] = []

    def file(self, path: str, *, packed: bool = False) -> _File:
        """Begin a file, and end the one before."""
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
        """Write the manifest and its checksum."""
        self.close()
        resources = [file.resource() for file in self._files]
        manifest = msgspec.json.format(msgspec.json.encode({**about, "resources": resources}), indent=2)
        self.add("datapackage.json", manifest)
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(manifest).hexdigest()}"}
        self.add("datapackage-digest.json", msgspec.json.encode(digest))
        self.close()

    def close(self) -> None:
        """End the open file, if there is one."""
        if self._files:
            self._files[-1].close()


class _File:
    """A file of the archive while it is written."""

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

    def resource(self) -> WaczResource:
        return WaczResource(self.name, self.path, f"sha256:{self._hash.hexdigest()}", self.bytes)


class _Stream:
    """An output without seek and tell, so that ZIP writes the same bytes to a file as to a pipe."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        self._out.write(data)
        return len(data)

    def flush(self) -> None:
        with contextlib.suppress(AttributeError):
            self._out.flush()
