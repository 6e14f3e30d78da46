"""Seeds from an index of Common Crawl: pages that it found in a language, those of the largest hosts first.

An index is a Parquet file (the columnar index) or a file of CDXJ lines. Both are sorted by host, so a host's pages
come together, and what is known of the largest hosts so far is enough to find the largest of all in one pass. In a
file that is not sorted, hosts that are small where memory ends may be missed.
"""

from __future__ import annotations

import heapq
import re
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct, field
from numpy.typing import NDArray

from thresher.config import ConfigError
from thresher.read.codes import normalise
from thresher.store.importers.source import Source
from thresher.url import canonical, host, tld

MAX_HOSTS = 200_000  # that are remembered at once
BATCH_ROWS = 1 << 16
PAGES = ("text/html", "application/xhtml+xml")

_PARQUET = b"PAR1"
_CDXJ = re.compile(rb"\S+ \d{8,17} \{")
_REMARK = b"!"  # begins lines that tell the version of a file
_PACKED = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")
# Columns of the columnar index; only the first has to be there.
_COLUMNS = (
    "url",
    "url_host_tld",
    "fetch_status",
    "content_mime_detected",
    "content_mime_type",
    "content_languages",
)


class Wishes(Struct, frozen=True):
    """What seeds are wanted."""

    language: str = ""  # code as it is known here; "": any
    tlds: tuple[str, ...] = ()  # empty: any
    per_host: int = 3
    most: int = 10_000


class IndexSeed(Struct, frozen=True):
    """A page that an index knows."""

    url: str
    host: str
    pages: int  # of its host, in the language


class Chosen(Struct, frozen=True):
    """The seeds from an index, the best first."""

    seeds: tuple[IndexSeed, ...]
    rows: int  # that were looked at
    pages: int  # of these, pages as wished
    unknown: int  # pages of which the index does not tell the language
    odd: int  # lines that make no sense


class _Portion(NamedTuple):
    """Some rows of an index."""

    rows: int
    urls: Sequence[str] = ()  # of those that are pages in the language
    unknown: int = 0  # pages of which nobody knows the language
    odd: int = 0


class _Line(Struct, frozen=True):
    """What a line of CDXJ tells, as far as it is needed."""

    url: str
    status: str | int = ""
    mime: str = ""
    detected: str = field(default="", name="mime-detected")
    languages: str = ""


_decode = msgspec.json.Decoder(_Line).decode


def is_index(path: Path) -> bool:
    """Whether a file is an index, by its first bytes."""
    try:
        with path.open("rb") as file:
            start = file.read(1 << 12)
    except OSError:
        return False
    if start.startswith(_PACKED):
        start = next(Source(path, path.parent).pieces(), b"")
    lines = [line for line in start.split(b"\n") if not line.startswith(_REMARK)]
    return start.startswith(_PARQUET) or bool(lines and _CDXJ.match(lines[0]))


def choose(paths: Sequence[Path], wishes: Wishes, progress: Callable[[int], None] = lambda _: None) -> Chosen:
    """Seeds from index files, each read once; `progress` is told how many rows were looked at."""
    if wishes.per_host < 1 or wishes.most < 1:
        raise ConfigError("--per-host and --max-seeds must be 1 or more")
    hosts = _Hosts(wishes)
    rows = pages = unknown = odd = 0
    for path in paths:
        for portion in _portions(path, wishes):
            rows += portion.rows
            unknown += portion.unknown
            odd += portion.odd
            for url in portion.urls:
                if (address := canonical(url)) and _under(address, wishes):
                    hosts.add(address)
                    pages += 1
            progress(rows)
    return Chosen(tuple(hosts.best()), rows, pages, unknown, odd)


def seed_list(seeds: Iterable[IndexSeed]) -> str:
    """A seeds file: each host with a comment, then its URLs."""
    lines: list[str] = []
    last = ""
    for seed in seeds:
        if seed.host != last:
            lines.append(f"# {seed.host}: {seed.pages:,} pages")
            last = seed.host
        lines.append(seed.url)
    return "".join(f"{line}\n" for line in lines)


class _Hosts:
    """The hosts with the most pages so far, and the shortest URLs of each."""

    def __init__(self, wishes: Wishes) -> None:
        self._per_host = wishes.per_host
        self._most = wishes.most
        self._room = max(MAX_HOSTS, 4 * wishes.most)
        self._pages: dict[str, int] = {}
        self._urls: dict[str, list[tuple[int, str]]] = {}

    def add(self, url: str) -> None:
        """One more page."""
        name = host(url)
        if name not in self._pages and len(self._pages) >= self._room:
            self._forget()
        self._pages[name] = self._pages.get(name, 0) + 1
        urls = self._urls.setdefault(name, [])
        ranked = (len(url), url)
        if (len(urls) < self._per_host or ranked < urls[-1]) and ranked not in urls:
            insort(urls, ranked)
            del urls[self._per_host :]

    def _forget(self) -> None:
        """Make room: the smaller half goes."""
        for name in self._ordered()[self._room // 2 :]:
            del self._pages[name], self._urls[name]

    def _ordered(self) -> list[str]:
        return sorted(self._pages, key=lambda name: (-self._pages[name], name))

    def best(self) -> Iterator[IndexSeed]:
        """As many seeds as wanted."""
        largest = heapq.nsmallest(self._most, self._pages, key=lambda name: (-self._pages[name], name))
        left = self._most
        for name in largest:
            for _, url in self._urls[name][:left]:
                yield IndexSeed(url, name, self._pages[name])
            left -= min(left, len(self._urls[name]))


def _under(url: str, wishes: Wishes) -> bool:
    return not wishes.tlds or tld(host(url)) in wishes.tlds


def _portions(path: Path, wishes: Wishes) -> Iterator[_Portion]:
    with path.open("rb") as file:
        columnar = file.read(len(_PARQUET)) == _PARQUET
    return _columnar(path, wishes) if columnar else _cdxj(path, wishes)


# CDXJ


def _cdxj(path: Path, wishes: Wishes) -> Iterator[_Portion]:
    starts = tuple(f"{name},".encode() for name in wishes.tlds)  # of the address turned round: cz,example)/
    source = Source(path, path.parent)
    for block in source.blocks():
        lines = [line for line in block.splitlines() if line.strip() and not line.startswith(_REMARK)]
        urls: list[str] = []
        unknown = odd = 0
        for line in lines:
            if starts and not line.startswith(starts):
                continue
            try:
                known = _decode(line[line.index(b"{") :])
            except (ValueError, msgspec.DecodeError):
                odd += 1
                continue
            mime = (known.detected or known.mime).partition(";")[0].strip()
            if str(known.status) != "200" or mime not in PAGES:
                continue
            spoken = _main_language(known.languages)
            if not wishes.language or spoken == wishes.language:
                urls.append(known.url)
            unknown += bool(wishes.language) and not spoken
        yield _Portion(len(lines), urls, unknown, odd)


@lru_cache(maxsize=10_000)
def _main_language(codes: str) -> str:
    """The first of the languages of a page, by the code that it has here; "" if nobody knows."""
    first = codes.partition(",")[0].strip()
    return (normalise(first) or first) if first else ""


# the columnar index


def _columnar(path: Path, wishes: Wishes) -> Iterator[_Portion]:
    try:
        with pq.ParquetFile(path) as file:
            present = [name for name in _COLUMNS if name in file.schema_arrow.names]
            if "url" not in present:
                raise ConfigError(f"{path} has no column url; is it an index of Common Crawl?")
            if wishes.language and "content_languages" not in present:
                raise ConfigError(
                    f"{path} has no column content_languages, so nobody knows what language its pages are in; "
                    "take the index of a crawl since August 2018"
                )
            for group in range(file.num_row_groups):
                if not _may_have(file, group, wishes.tlds):
                    yield _Portion(file.metadata.row_group(group).num_rows)
                    continue
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=present):
                    yield _portion(batch, wishes)
    except (pa.ArrowException, OSError) as fault:
        raise ConfigError(f"{path} cannot be read: {fault}; get it once more") from None


def _may_have(file: pq.ParquetFile, group: int, tlds: Sequence[str]) -> bool:
    """Whether a row group may have hosts under one of these; what it says of itself spares most of the reading."""
    names = file.schema_arrow.names
    if not tlds or "url_host_tld" not in names:
        return True
    column = file.metadata.row_group(group).column(names.index("url_host_tld"))
    known: Any = column.statistics if column.path_in_schema == "url_host_tld" else None
    if known is None or not known.has_min_max:
        return True
    return any(known.min <= name <= known.max for name in tlds)


def _portion(batch: pa.RecordBatch, wishes: Wishes) -> _Portion:
    names = batch.schema.names

    def where(column: str, sound: Callable[[Any], bool]) -> NDArray[np.bool_]:
        """In which rows a value is sound; each distinct value is asked about once."""
        if column not in names:
            return np.full(batch.num_rows, sound(None))
        coded: Any = pc.dictionary_encode(batch.column(column), null_encoding="encode")
        answers = np.array([sound(value) for value in coded.dictionary.to_pylist()], np.bool_)
        chosen: NDArray[np.bool_] = answers[coded.indices.to_numpy()]
        return chosen

    mime = next((name for name in ("content_mime_detected", "content_mime_type") if name in names), "")
    pages = (
        where("fetch_status", lambda status: status in (200, "200", None))
        & where(mime, lambda kind: kind is None or kind in PAGES)
        & where("url_host_tld", lambda name: name is None or not wishes.tlds or name in wishes.tlds)
    )
    told = where("content_languages", lambda codes: bool(codes) or not wishes.language)
    ours = where(
        "content_languages",
        lambda codes: not wishes.language or _main_language(codes or "") == wishes.language,
    )
    urls = batch.column("url").filter(pa.array(pages & ours)).to_pylist()
    return _Portion(batch.num_rows, [url for url in urls if url], int((pages & ~told).sum()))
