"""The documents of a corpus as an index takes them: crawled pages and imports, as tokens with metadata."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import date, datetime
from itertools import chain, islice
from math import log2
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from msgspec import Struct
from msgspec.structs import replace

from thresher import urls as url
from thresher.annotate import pool, registry
from thresher.annotate.registry import LoadedAnnotator
from thresher.annotate.user_modules import folders_of
from thresher.search.index.manifest import CorpusIndexError
from thresher.search.index.segment_builder import IndexDocument
from thresher.store import imported_files
from thresher.store.corpus_files import CorpusFiles, paragraphs
from thresher.store.token_lines import clean, closing, opening, token

HALVING_BADNESS = 10.0  # Badness at which the quality of a document is halved
KEY_COLUMNS = ("url", "seq", "text_hash", "opt_out")  # columns of which the key of a document is made
NEEDED = (
    *KEY_COLUMNS, "host", "domain", "fetched", "title", "text", "language", "language_share", "badness",
    "suspicion", "author", "published", "modified", "site_name", "license",
)  # fmt: skip
# Columns that become attributes as they are.
DETAILS = ("author", "published", "modified", "site_name", "license")


class UnannotatedText(Struct, frozen=True):
    """A document that has yet to be annotated."""

    key: int
    paragraphs: tuple[str, ...]
    meta: dict[str, str]
    dimensions: dict[str, float]


class IndexableDocuments:
    """All documents of a corpus that belong in its index."""

    def __init__(
        self,
        corpus: CorpusFiles,
        *,
        annotator: str = "",
        processes: int = 0,
        opted_out: bool = False,
        annotators: Mapping[str, str] | None = None,
        on_annotator: Callable[[str, str], None] = lambda _language, _name: None,
    ) -> None:
        """Prepare to annotate documents.

        Parameters
        ----------
        corpus
            The corpus, of which all documents belong in the index.
        annotator
            Name of the annotator; if empty, the one of `annotators`, or else the best one that is installed.
        processes
            Number of processes; 0 for all processors but one.
        opted_out
            Include pages with an objection to text and data mining.
        annotators
            Names by language, as the index records them.
        on_annotator
            Called with language and name when an annotator gets its first document.
        """
        self._corpus = corpus
        self._annotator = annotator
        self._processes = processes
        self._opted_out = opted_out
        self._annotators = annotators or {}
        self._on_annotator = on_annotator

    def keys(self) -> set[int]:
        """Return the keys of all documents."""
        found = self.import_keys()
        for batch in self._corpus.batches("docs", KEY_COLUMNS):
            found.update(key for key in page_keys(batch, self._opted_out) if key is not None)
        return found

    def import_keys(self) -> set[int]:
        """Return the keys of texts and tokens that were imported as they are."""
        files = imported_files.files(self._corpus.directory)
        return {_import_key(file, place) for file in files for place in file.places()}

    def new(self, known: Container[int]) -> Iterator[IndexDocument]:
        """Yield documents with unknown keys in the order in which they came: crawled ones, then imports."""
        yield from self._annotated(self._crawled(known), self._corpus.config.language)
        yield from self.imported(known)

    def imported(self, known: Container[int]) -> Iterator[IndexDocument]:
        """Yield imports with unknown keys."""
        language = self._corpus.config.language
        for file in imported_files.files(self._corpus.directory):
            if file.attributes:
                yield from _tokens_of(file, known)
            else:
                yield from self._annotated(_texts_of(file, known), file.language or language)

    # crawled pages

    def _crawled(self, known: Container[int]) -> Iterator[UnannotatedText]:
        authority: Mapping[str, float] | None = None
        for batch in self._corpus.batches("docs", NEEDED):
            keys = page_keys(batch, self._opted_out)
            unknown = [row for row, key in enumerate(keys) if key is not None and key not in known]
            if not unknown:
                continue
            if authority is None:
                authority = authorities(self._corpus)
            for row, page in zip(unknown, batch.take(unknown).to_pylist(), strict=True):
                found = text_of(keys[row] or 0, page)
                strength = authority.get(page["host"], 0.0)
                yield replace(found, dimensions={**found.dimensions, "authority": strength})

    # annotation

    def _annotated(self, texts: Iterable[UnannotatedText], language: str) -> Iterator[IndexDocument]:
        waiting = iter(texts)
        if (first := next(waiting, None)) is None:
            return
        name = self._annotator or self._annotators.get(language, "") or registry.name_of(language)
        self._on_annotator(language, name)
        try:
            yield from pool.annotated(
                chain([first], waiting),
                source_of,
                _letters,
                language=language,
                annotator_name=name,
                folders=folders_of(self._corpus.directory),
                processes=self._processes,
            )
        except pool.AnnotationPoolError as fault:
            raise CorpusIndexError(str(fault)) from None


def page_keys(batch: pa.RecordBatch, opted_out: bool) -> list[int | None]:
    """Return the key of every page; None for a page with an objection of its publisher, unless `opted_out`."""
    urls, numbers, hashes, objections = (batch.column(name).to_pylist() for name in KEY_COLUMNS)
    return [
        None if objected and not opted_out else _key(f"{address}\0{number}\0{digest}")
        for address, number, digest, objected in zip(urls, numbers, hashes, objections, strict=True)
    ]


def text_of(key: int, page: Mapping[str, Any]) -> UnannotatedText:
    """Return a page for annotation. The caller adds its authority, which takes the links of the whole corpus."""
    # Without a date, a document counts as older than all others: it comes last in the order of recency.
    dimensions = {"quality": quality(page), "recency": _written(page) or 0.0}
    return UnannotatedText(key, tuple(paragraphs(page["text"] or "")), _meta(page), dimensions)


def _letters(text: UnannotatedText) -> int:
    return sum(map(len, text.paragraphs))


def source_of(text: UnannotatedText, ready: LoadedAnnotator) -> IndexDocument:
    """Return a text as tokens, with its metadata."""
    lines = b"".join(_lines(paragraph, ready) for paragraph in text.paragraphs)
    return IndexDocument(text.key, lines, ready.attributes, text.meta, text.dimensions)


def _lines(paragraph: str, ready: LoadedAnnotator) -> bytes:
    """Return a paragraph as lines of tokens."""
    parts = [opening("p", {})]
    for sentence in ready(" ".join(paragraph.split())):
        parts.append(opening("s", {}))
        parts.extend(map(token, sentence))
        parts.append(closing("s"))
    parts.append(closing("p"))
    return b"".join(parts)


# imports


def _import_key(file: imported_files.ImportFile, place: int) -> int:
    return _key(f"{','.join(file.sha256)}\0{place}")


def _rows(file: imported_files.ImportFile, known: Container[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield key and values of every document with an unknown key."""
    places = file.places()
    for batch in file.batches():
        keys = [_import_key(file, place) for place in islice(places, batch.num_rows)]
        unknown = [number for number, key in enumerate(keys) if key not in known]
        if unknown:
            yield from zip([keys[number] for number in unknown], batch.take(unknown).to_pylist(), strict=True)


def _tokens_of(file: imported_files.ImportFile, known: Container[int]) -> Iterator[IndexDocument]:
    for key, values in _rows(file, known):
        meta = _import_meta(values)
        yield IndexDocument(key, values["tokens"], file.attributes, meta, _import_dimensions(meta))


def _texts_of(file: imported_files.ImportFile, known: Container[int]) -> Iterator[UnannotatedText]:
    for key, values in _rows(file, known):
        meta = _import_meta(values)
        yield UnannotatedText(key, tuple(values["text"].split("\n")), meta, _import_dimensions(meta))


def _import_meta(values: Mapping[str, Any]) -> dict[str, str]:
    return {"id": values["id"], "source": values["source"], **dict(values["meta"] or ())}


def _import_dimensions(meta: Mapping[str, str]) -> dict[str, float]:
    """Return the dimensions that an import brings: quality, authority, and recency from its date."""
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


# metadata and dimensions


def quality(page: Mapping[str, Any]) -> float:
    """Return the quality of a text from 0 to 1.

    It is high if the text is in its language, has low Badness, was not suspected of spam and repeats no other
    text. The share of repeated text is known only after a recipe has removed duplicate paragraphs.
    """
    badness = max(page["badness"] or 0.0, 0.0)
    trust = (1.0 - (page["suspicion"] or 0.0)) * (1.0 - (page.get("repeated") or 0.0))
    return float(page["language_share"] or 0.0) * trust / (1.0 + badness / HALVING_BADNESS)


def authorities(corpus: CorpusFiles) -> dict[str, float]:
    """Return for every host the logarithm of the number of other domains that link to it."""
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
    """Return the attributes of a crawled page; unknown ones are left out, but for the year, which is ""."""
    fetched: datetime | None = page["fetched"]
    written = _written(page)
    values = {
        "id": page["url"],
        "url": page["url"],
        "host": page["host"],
        "domain": page["domain"],
        "tld": url.tld(page["host"] or ""),
        "title": page["title"],
        "language": page["language"],
        "language_share": f"{page['language_share'] or 0:.2f}",
        "fetched": fetched.date().isoformat() if fetched else "",
        "fetched_year": str(fetched.year) if fetched else "",
        "year": str(int(written)) if written else "",
        "source": "web",
        **{name: page[name] and str(page[name]) for name in DETAILS},
    }
    known = {name: clean(str(value)) for name, value in values.items() if value}
    return {"year": "", **known}  # queries by year must work even if no page of a corpus has a date


def _written(page: Mapping[str, Any]) -> float | None:
    """Return the time at which a page was written, in years, or None if the page does not say."""
    years = (_year(page[name]) for name in ("published", "modified"))
    return next((year for year in years if year is not None), None)


def _year(value: str | date | None) -> float | None:
    """Return a date, or a text that begins with a year, as a number of years."""
    if isinstance(value, str):
        return _year_of_text(value)
    return value.year + value.timetuple().tm_yday / 366 if value else None


def _year_of_text(text: str) -> float | None:
    try:
        return _year(datetime.fromisoformat(text))
    except ValueError:
        year = text[:4]
        return float(year) if year.isdecimal() and len(year) == 4 else None


def _key(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
