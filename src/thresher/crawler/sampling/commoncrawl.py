"""Seeds from an index of Common Crawl: its pages in a language, pages of the largest hosts first.

An index is a Parquet file (the columnar index) or a file of CDXJ lines. Both are sorted by host, so the pages of a
host are adjacent, and one pass with a bounded table of hosts finds the largest of all. In a file that is not
sorted, hosts that are among the smaller half when the table is full may be missed.
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

from thresher.errors import UsageError
from thresher.importing.formats.source import SourceFile
from thresher.reader.language.codes import normalise
from thresher.urls import canonical, host, tld

MAX_HOSTS = 200_000  # in memory
BATCH_ROWS = 1 << 16
PAGES = ("text/html", "application/xhtml+xml")

_PARQUET = b"PAR1"
_CDXJ = re.compile(rb"\S+ \d{8,17} \{")
_REMARK = b"!"  # first byte of the lines with the version of a file
_PACKED = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")
# Columns of the columnar index; only the first is required.
_COLUMNS = (
    "url",
    "url_host_tld",
    "fetch_status",
    "content_mime_detected",
    "content_mime_type",
    "content_languages",
)


class SeedCriteria(Struct, frozen=True):
    """Conditions on seeds, and how many are chosen."""

    language: str = ""  # a code of Thresher; "": any
    tlds: tuple[str, ...] = ()  # empty: any
    per_host: int = 3
    max_seeds: int = 10_000


class IndexSeed(Struct, frozen=True):
    """A page of an index."""

    url: str
    host: str
    pages: int  # of its host, in the language


class RankedSeeds(Struct, frozen=True):
    """The seeds chosen from an index, the best first, and counts of its rows."""

    seeds: tuple[IndexSeed, ...]
    rows: int
    pages: int  # rows that meet the criteria
    unknown_language: int
    malformed: int  # lines that cannot be parsed


class _Portion(NamedTuple):
    """Some rows of an index."""

    rows: int
    urls: Sequence[str] = ()  # pages in the language
    unknown_language: int = 0
    malformed: int = 0


class _Line(Struct, frozen=True):
    """The fields of a CDXJ line that are used."""

    url: str
    status: str | int = ""
    mime: str = ""
    detected: str = field(default="", name="mime-detected")
    languages: str = ""


_decode = msgspec.json.Decoder(_Line).decode


def is_index(path: Path) -> bool:
    """Return whether a file is an index of Common Crawl, judged by its first bytes."""
    try:
        with path.open("rb") as file:
            start = file.read(1 << 12)
    except OSError:
        return False
    if start.startswith(_PACKED):
        start = next(SourceFile(path, path.parent).chunks(), b"")
    lines = [line for line in start.split(b"\n") if not line.startswith(_REMARK)]
    return start.startswith(_PARQUET) or bool(lines and _CDXJ.match(lines[0]))


def choose(
    paths: Sequence[Path], criteria: SeedCriteria, progress: Callable[[int], None] = lambda _: None
) -> RankedSeeds:
    """Choose seeds from index files, each read once; `progress` is called with the number of rows so far."""
    if criteria.per_host < 1 or criteria.max_seeds < 1:
        raise UsageError("--per-host and --max-seeds must be 1 or more")
    hosts = _Hosts(criteria)
    rows = pages = unknown_language = malformed = 0
    for path in paths:
        for portion in _portions(path, criteria):
            rows += portion.rows
            unknown_language += portion.unknown_language
            malformed += portion.malformed
            for url in portion.urls:
                if (address := canonical(url)) and _under(address, criteria):
                    hosts.add(address)
                    pages += 1
            progress(rows)
    return RankedSeeds(tuple(hosts.best()), rows, pages, unknown_language, malformed)


def seed_list(seeds: Iterable[IndexSeed]) -> str:
    """Return the text of a seeds file: for each host a comment, then its URLs."""
    lines: list[str] = []
    last = ""
    for seed in seeds:
        if seed.host != last:
            lines.append(f"# {seed.host}: {seed.pages:,} pages")
            last = seed.host
        lines.append(seed.url)
    return "".join(f"{line}\n" for line in lines)


class _Hosts:
    """The hosts with the most pages so far, and the shortest URLs of each, in bounded memory."""

    def __init__(self, criteria: SeedCriteria) -> None:
        self._per_host = criteria.per_host
        self._max_seeds = criteria.max_seeds
        self._capacity = max(MAX_HOSTS, 4 * criteria.max_seeds)
        self._pages: dict[str, int] = {}
        self._urls: dict[str, list[tuple[int, str]]] = {}

    def add(self, url: str) -> None:
        """Count a page of its host."""
        name = host(url)
        if name not in self._pages and len(self._pages) >= self._capacity:
            self._drop_smaller_half()
        self._pages[name] = self._pages.get(name, 0) + 1
        urls = self._urls.setdefault(name, [])
        ranked = (len(url), url)
        if (len(urls) < self._per_host or ranked < urls[-1]) and ranked not in urls:
            insort(urls, ranked)
            del urls[self._per_host :]

    def _drop_smaller_half(self) -> None:
        for name in self._ordered()[self._capacity // 2 :]:
            del self._pages[name], self._urls[name]

    def _ordered(self) -> list[str]:
        return sorted(self._pages, key=lambda name: (-self._pages[name], name))

    def best(self) -> Iterator[IndexSeed]:
        """Yield up to `max_seeds` seeds, largest hosts first."""
        largest = heapq.nsmallest(self._max_seeds, self._pages, key=lambda name: (-self._pages[name], name))
        left = self._max_seeds
        for name in largest:
            for _, url in self._urls[name][:left]:
                yield IndexSeed(url, name, self._pages[name])
            left -= min(left, len(self._urls[name]))


def _under(url: str, criteria: SeedCriteria) -> bool:
    return not criteria.tlds or tld(host(url)) in criteria.tlds


def _portions(path: Path, criteria: SeedCriteria) -> Iterator[_Portion]:
    with path.open("rb") as file:
        columnar = file.read(len(_PARQUET)) == _PARQUET
    return _columnar(path, criteria) if columnar else _cdxj(path, criteria)


# CDXJ


def _cdxj(path: Path, criteria: SeedCriteria) -> Iterator[_Portion]:
    starts = tuple(f"{name},".encode() for name in criteria.tlds)  # of the reversed host name: cz,example)/
    source = SourceFile(path, path.parent)
    for block in source.blocks():
        lines = [line for line in block.splitlines() if line.strip() and not line.startswith(_REMARK)]
        urls: list[str] = []
        unknown_language = malformed = 0
        for line in lines:
            if starts and not line.startswith(starts):
                continue
            try:
                known = _decode(line[line.index(b"{") :])
            except (ValueError, msgspec.DecodeError):
                malformed += 1
                continue
            mime = (known.detected or known.mime).partition(";")[0].strip()
            if str(known.status) != "200" or mime not in PAGES:
                continue
            language = _main_language(known.languages)
            if not criteria.language or language == criteria.language:
                urls.append(known.url)
            unknown_language += bool(criteria.language) and not language
        yield _Portion(len(lines), urls, unknown_language, malformed)


@lru_cache(maxsize=10_000)
def _main_language(codes: str) -> str:
    """Return the first of the languages of a page as a code of Thresher, "" if there is none."""
    first = codes.partition(",")[0].strip()
    return (normalise(first) or first) if first else ""


# the columnar index


def _columnar(path: Path, criteria: SeedCriteria) -> Iterator[_Portion]:
    try:
        with pq.ParquetFile(path) as file:
            present = [name for name in _COLUMNS if name in file.schema_arrow.names]
            if "url" not in present:
                raise UsageError(f"{path} has no column url; is it an index of Common Crawl?")
            if criteria.language and "content_languages" not in present:
                raise UsageError(
                    f"{path} has no column content_languages, so the languages of its pages are unknown; "
                    "use the index of a crawl since August 2018"
                )
            for group in range(file.num_row_groups):
                if not _may_have(file, group, criteria.tlds):
                    yield _Portion(file.metadata.row_group(group).num_rows)
                    continue
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=present):
                    yield _portion(batch, criteria)
    except (pa.ArrowException, OSError) as fault:
        raise UsageError(f"{path} cannot be read: {fault}; download it again") from None


def _may_have(file: pq.ParquetFile, group: int, tlds: Sequence[str]) -> bool:
    """Return whether a row group may hold hosts under these TLDs, judged by its statistics without reading it."""
    names = file.schema_arrow.names
    if not tlds or "url_host_tld" not in names:
        return True
    column = file.metadata.row_group(group).column(names.index("url_host_tld"))
    known: Any = column.statistics if column.path_in_schema == "url_host_tld" else None
    if known is None or not known.has_min_max:
        return True
    return any(known.min <= name <= known.max for name in tlds)


def _portion(batch: pa.RecordBatch, criteria: SeedCriteria) -> _Portion:
    names = batch.schema.names

    def where(column: str, accepts: Callable[[Any], bool]) -> NDArray[np.bool_]:
        """Return in which rows a value is accepted; each distinct value is tested once."""
        if column not in names:
            return np.full(batch.num_rows, accepts(None))
        coded: Any = pc.dictionary_encode(batch.column(column), null_encoding="encode")
        answers = np.array([accepts(value) for value in coded.dictionary.to_pylist()], np.bool_)
        chosen: NDArray[np.bool_] = answers[coded.indices.to_numpy()]
        return chosen

    mime = next((name for name in ("content_mime_detected", "content_mime_type") if name in names), "")
    pages = (
        where("fetch_status", lambda status: status in (200, "200", None))
        & where(mime, lambda kind: kind is None or kind in PAGES)
        & where("url_host_tld", lambda name: name is None or not criteria.tlds or name in criteria.tlds)
    )
    language_known = where("content_languages", lambda codes: bool(codes) or not criteria.language)
    ours = where(
        "content_languages",
        lambda codes: not criteria.language or _main_language(codes or "") == criteria.language,
    )
    urls = batch.column("url").filter(pa.array(pages & ours)).to_pylist()
    return _Portion(batch.num_rows, [url for url in urls if url], int((pages & ~language_known).sum()))
