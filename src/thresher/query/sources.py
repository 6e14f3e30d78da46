"""What an index is made of: the documents of a crawl and those that were imported, as tokens."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from math import log2
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from msgspec import Struct
from msgspec.structs import replace

from thresher import url
from thresher.annotate import crowd
from thresher.annotate.annotators import Ready
from thresher.query.build import Source
from thresher.query.manifest import IndexFault
from thresher.store import imports
from thresher.store.corpus import Corpus, paragraphs
from thresher.store.lines import clean, closing, opening, token

WORST = 10.0  # Badness at which quality is half of what it would be
LIGHT = ("url", "seq", "text_hash", "opt_out")  # columns that tell documents apart
NEEDED = (
    *LIGHT, "host", "domain", "fetched", "title", "text", "language", "language_share", "badness", "suspicion",
    "author", "published", "modified", "site_name", "license",
)  # fmt: skip
DETAILS = ("author", "published", "modified", "site_name", "license")  # that become attributes as they are


class Text(Struct, frozen=True):
    """A document that has yet to be annotated."""

    key: int
    paragraphs: tuple[str, ...]
    meta: dict[str, str]
    dimensions: dict[str, float]


class Documents:
    """All documents of a corpus that are to be found."""

    def __init__(
        self, corpus: Corpus, *, annotator: str = "", processes: int = 0, opted_out: bool = False
    ) -> None:
        self._corpus = corpus
        self._annotator = annotator
        self._processes = processes
        self._opted_out = opted_out

    def keys(self) -> set[int]:
        """What tells them apart."""
        found = self.import_keys()
        for batch in self._corpus.batches("docs", LIGHT):
            found.update(key for key in page_keys(batch, self._opted_out) if key is not None)
        return found

    def import_keys(self) -> set[int]:
        """The same of those that were imported as they are."""
        files = imports.files(self._corpus.directory)
        return {_import_key(file, place) for file in files for place in file.places()}

    def new(self, known: Container[int]) -> Iterator[Source]:
        """Those that are not known yet, in the order in which they came: crawled ones, then imports."""
        yield from self._annotated(self._crawled(known), self._corpus.config.language)
        yield from self.imported(known)

    def imported(self, known: Container[int]) -> Iterator[Source]:
        """Those of them that were imported as they are."""
        language = self._corpus.config.language
        for file in imports.files(self._corpus.directory):
            if file.attributes:
                yield from _tokens_of(file, known)
            else:
                yield from self._annotated(_texts_of(file, known), file.language or language)

    # crawled pages

    def _crawled(self, known: Container[int]) -> Iterator[Text]:
        authority: Mapping[str, float] | None = None
        for batch in self._corpus.batches("docs", NEEDED):
            keys = page_keys(batch, self._opted_out)
            fresh = [row for row, key in enumerate(keys) if key is not None and key not in known]
            if not fresh:
                continue
            if authority is None:
                authority = authorities(self._corpus)
            for row, page in zip(fresh, batch.take(fresh).to_pylist(), strict=True):
                found = text_of(keys[row] or 0, page)
                strength = authority.get(page["host"], 0.0)
                yield replace(found, dimensions={**found.dimensions, "authority": strength})

    # annotation

    def _annotated(self, texts: Iterable[Text], language: str) -> Iterator[Source]:
        try:
            yield from crowd.annotated(
                texts,
                source_of,
                _letters,
                language=language,
                annotator_name=self._annotator,
                processes=self._processes,
            )
        except crowd.CrowdFault as fault:
            raise IndexFault(str(fault)) from None


def page_keys(batch: pa.RecordBatch, opted_out: bool) -> list[int | None]:
    """The key of every page; None if its publisher wants it left out, and nobody asks for it all the same."""
    urls, numbers, hashes, objections = (batch.column(name).to_pylist() for name in LIGHT)
    return [
        None if objected and not opted_out else _key(f"{address}\0{number}\0{digest}")
        for address, number, digest, objected in zip(urls, numbers, hashes, objections, strict=True)
    ]


def text_of(key: int, page: Mapping[str, Any]) -> Text:
    """A page to be annotated; its authority is for those to tell who know all links."""
    dimensions = {"quality": quality(page), "recency": _moment(page)}
    return Text(key, tuple(paragraphs(page["text"] or "")), _meta(page), dimensions)


def _letters(text: Text) -> int:
    return sum(map(len, text.paragraphs))


def source_of(text: Text, ready: Ready) -> Source:
    """A text as tokens."""
    lines = b"".join(_lines(paragraph, ready) for paragraph in text.paragraphs)
    return Source(text.key, lines, ready.attributes, text.meta, text.dimensions)


def _lines(paragraph: str, ready: Ready) -> bytes:
    """A paragraph as lines of tokens."""
    parts = [opening("p", {})]
    for sentence in ready(" ".join(paragraph.split())):
        parts.append(opening("s", {}))
        parts.extend(map(token, sentence))
        parts.append(closing("s"))
    parts.append(closing("p"))
    return b"".join(parts)


# imports


def _import_key(file: imports.ImportFile, place: int) -> int:
    return _key(f"{','.join(file.sha256)}\0{place}")


def _rows(file: imports.ImportFile, known: Container[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The key and the values of every document that is not known yet."""
    places = file.places()
    for batch in file.batches():
        keys = [_import_key(file, place) for place in islice(places, batch.num_rows)]
        fresh = [number for number, key in enumerate(keys) if key not in known]
        if fresh:
            yield from zip([keys[number] for number in fresh], batch.take(fresh).to_pylist(), strict=True)


def _tokens_of(file: imports.ImportFile, known: Container[int]) -> Iterator[Source]:
    for key, values in _rows(file, known):
        meta = _import_meta(values)
        yield Source(key, values["tokens"], file.attributes, meta, _import_dimensions(meta))


def _texts_of(file: imports.ImportFile, known: Container[int]) -> Iterator[Text]:
    for key, values in _rows(file, known):
        meta = _import_meta(values)
        yield Text(key, tuple(values["text"].split("\n")), meta, _import_dimensions(meta))


def _import_meta(values: Mapping[str, Any]) -> dict[str, str]:
    return {"id": values["id"], "source": values["source"], **dict(values["meta"] or ())}


def _import_dimensions(meta: Mapping[str, str]) -> dict[str, float]:
    """Numbers that others gave documents: their quality, and when they were written."""
    found = {
        name: number for name in ("quality", "authority") if (number := _number(meta.get(name))) is not None
    }
    for name in ("date", "year", "published"):
        if (year := _year(meta.get(name, ""))) is not None:
            return {**found, "recency": year}
    return found


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


# what is known of documents


def quality(page: Mapping[str, Any]) -> float:
    """How good a text is, from 0 to 1: in its language, made of its words, not by a machine, and not of others.

    What stood in other texts and was left out, only those who looked for it can tell.
    """
    badness = max(page["badness"] or 0.0, 0.0)
    trust = (1.0 - (page["suspicion"] or 0.0)) * (1.0 - (page.get("repeated") or 0.0))
    return float(page["language_share"] or 0.0) * trust / (1.0 + badness / WORST)


def authorities(corpus: Corpus) -> dict[str, float]:
    """For every host, the logarithm of how many other domains link to it."""
    pairs: set[tuple[str, str]] = set()
    for batch in corpus.batches("links", ["source", "target"]):
        hosts = [
            pc.struct_field(_parts(batch.column(name)), ["host"]).to_pylist() for name in ("source", "target")
        ]
        pairs.update(
            (target, domain)
            for source, target in zip(*hosts, strict=True)
            if source and target and (domain := _domain(source)) != _domain(target)
        )
    counts: dict[str, int] = {}
    for target, _ in pairs:
        counts[target] = counts.get(target, 0) + 1
    return {host: log2(1 + count) for host, count in counts.items()}


def _parts(urls: pa.Array[Any]) -> pa.Array[Any]:
    return pc.extract_regex(urls, r"\A[a-z]+://(?P<host>[^/?#]*)")


_DOMAINS: dict[str, str] = {}


def _domain(host: str) -> str:
    if host not in _DOMAINS:
        if len(_DOMAINS) > 100_000:
            _DOMAINS.clear()
        _DOMAINS[host] = url.domain(host)
    return _DOMAINS[host]


def _meta(page: Mapping[str, Any]) -> dict[str, str]:
    """What a crawled page can be asked for."""
    fetched: datetime | None = page["fetched"]
    found = {
        "id": page["url"],
        "url": page["url"],
        "host": page["host"],
        "domain": page["domain"],
        "tld": url.tld(page["host"] or ""),
        "title": page["title"],
        "language": page["language"],
        "language_share": f"{page['language_share'] or 0:.2f}",
        "fetched": fetched.date().isoformat() if fetched else "",
        "year": str(int(_moment(page))) if _moment(page) else "",
        "source": "web",
        **{name: page[name] for name in DETAILS},
    }
    return {name: clean(value) for name, value in found.items() if value}


def _moment(page: Mapping[str, Any]) -> float:
    """When a page was written, in years: as it says, or else when it was seen."""
    for name in ("published", "modified"):
        if (year := _year(page[name] or "")) is not None:
            return year
    fetched: datetime | None = page["fetched"]
    return fetched.year + fetched.timetuple().tm_yday / 366 if fetched else 0.0


def _year(text: str) -> float | None:
    """A date that begins with its year, as a number."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return float(text[:4]) if text[:4].isdecimal() and len(text[:4]) == 4 else None
    return moment.year + moment.timetuple().tm_yday / 366


def _key(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
