"""Records of crawls: the outcome and the links of every URL, for the simulator and the experiments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.config import Config, JudgeSettings
from thresher.crawler.storage.crawl_writer import SAME_AS
from thresher.errors import UsageError
from thresher.judge import Judge
from thresher.reader.html.links import UNKNOWN
from thresher.reader.language.badness import badness as badness_of
from thresher.reader.language.custom_models import badness_model
from thresher.records import Link, ReadResult, Via
from thresher.simulation.rejected_pages import reread
from thresher.store.corpus_files import CorpusFiles, Document, documents
from thresher.store.corpus_files import open as open_corpus
from thresher.urls import host

OUTCOME_COLUMNS = (
    "seq",
    "url",
    "host",
    "bytes",
    "outcome",
    "reason",
    "detail",
    "depth",
    "source",
    "language",
)
# Pages that list other pages; the reasons of their outcomes have the same names.
LISTINGS: tuple[Via, ...] = ("sitemap", "feed")
LINK_COLUMNS = ("source", "target", "rel", "anchor", "boilerplate", "in_text", "source_badness")

Numbers = NDArray[np.int64]


class CrawlRecord(NamedTuple):
    """A recorded web: URLs are numbered in the order in which they were fetched."""

    urls: list[str]
    hosts: list[str]
    bytes: Numbers  # received
    worth: Numbers  # bytes of text that the URL adds to the corpus unless it holds an equal text
    originals: Numbers  # the first URL with the same text, or the URL itself
    starts: Numbers  # start of the links of each URL in `targets`, and the end of the last
    targets: Numbers  # a redirect is a link
    anchors: list[str]  # of links, as the next two fields
    boilerplate: NDArray[np.float64]
    in_text: NDArray[np.bool_]
    rels: dict[int, str]  # by the place of the link, where it has one
    badness: NDArray[np.float64]  # of pages, for `language`; NaN: unknown
    redirects: NDArray[np.bool_]
    languages: list[str]  # of pages; "": none
    language: str  # of `worth`: text in it counts
    listings: dict[int, Via]  # URLs that are sitemaps or feeds
    sitemaps: dict[str, list[int]]  # named in the robots.txt of a host
    numbers: dict[str, int]  # of URLs without their schemes

    def links(self, number: int) -> Numbers:
        """Return the targets of the links of a URL, with repetitions."""
        return self.targets[self.starts[number] : self.starts[number + 1]]

    def link(self, place: int) -> Link:
        """Return a link as the reader found it."""
        boilerplate, in_text = float(self.boilerplate[place]), bool(self.in_text[place])
        rel = self.rels.get(place, "")
        return Link(self.urls[self.targets[place]], self.anchors[place], boilerplate, in_text, rel)

    def via(self, number: int) -> Via:
        """Return the origin of URLs that a URL leads to."""
        return "redirect" if self.redirects[number] else self.listings.get(number, "page")

    @property
    def are_pages(self) -> NDArray[np.bool_]:
        """True for each URL that is a page; failures and redirects have neither a language nor links."""
        has_language = np.array([bool(language) for language in self.languages])
        return (has_language | (np.diff(self.starts) > 0)) & ~self.redirects

    def number(self, url: str) -> int:
        """Return the number of a fetched URL; KeyError if it was not fetched."""
        return self.numbers[_key(url)]

    def find(self, urls: Iterable[str]) -> list[int]:
        """Return the numbers of the given URLs that were fetched."""
        return [self.numbers[key] for key in map(_key, urls) if key in self.numbers]

    def gains(self, visited: Numbers) -> Numbers:
        """Return the text that each visit of a crawl adds to the corpus: of equal texts, only the first counts."""
        _, firsts = np.unique(self.originals[visited], return_index=True)
        gained = np.zeros(len(visited), np.int64)
        gained[firsts] = self.worth[visited[firsts]]
        return gained


def load(directory: Path, language: str = "") -> CrawlRecord:
    """Load the record of a crawl; `worth` is for the language of the corpus, or for another one.

    For another language, documents and the raw pages that were rejected for their language are judged again.
    """
    return next(load_each(directory, [language]))


def load_each(directory: Path, languages: Iterable[str]) -> Iterator[CrawlRecord]:
    """Load the record of a crawl for each of some languages; their common part is read once."""
    corpus = open_corpus(directory)
    record = recorded(corpus, corpus.outcomes(OUTCOME_COLUMNS))
    for language in languages:
        yield valued(record, corpus, language)


def recorded(corpus: CorpusFiles, outcomes: pa.Table) -> CrawlRecord:
    """Return the record of these outcomes of a crawl, in which no URL has any worth yet."""
    urls = _column(outcomes, "url")
    if not urls:
        directory = corpus.directory
        raise UsageError(f"{directory} has no pages yet; crawl it first: thresher crawl {directory}")
    numbers = {_key(url): number for number, url in enumerate(urls)}
    starts, targets, anchors, boilerplate, in_text, rels, badness = _links(corpus, outcomes, numbers)
    listings = {kind: kind for kind in LISTINGS}
    return CrawlRecord(
        urls=urls,
        hosts=_column(outcomes, "host"),
        bytes=outcomes["bytes"].to_numpy(),
        worth=np.zeros(len(urls), np.int64),
        originals=_originals(outcomes),
        starts=starts,
        targets=targets,
        anchors=anchors,
        boilerplate=boilerplate,
        in_text=in_text,
        rels=rels,
        badness=badness,
        redirects=np.array([outcome == "redirect" for outcome in _column(outcomes, "outcome")]),
        languages=[language or "" for language in _column(outcomes, "language")],
        language=corpus.config.language,
        listings={
            number: listings[reason]
            for number, reason in enumerate(_column(outcomes, "reason"))
            if reason in listings
        },
        sitemaps=_sitemaps(outcomes),
        numbers=numbers,
    )


def valued(record: CrawlRecord, corpus: CorpusFiles, language: str) -> CrawlRecord:
    """Return a record with the worth of its pages to the corpus, or to a corpus in another language."""
    worth = np.zeros(len(record.urls), np.int64)
    if not language or (language == corpus.config.language and corpus.config.judge.language):
        for batch in corpus.batches("docs", ["url", "text_bytes"], imported=False):
            for url, text_bytes in zip(_column(batch, "url"), _column(batch, "text_bytes"), strict=True):
                if (number := record.numbers.get(_key(url))) is not None:  # newer than the outcomes
                    worth[number] = text_bytes
        return record._replace(worth=worth[record.originals])
    badness = np.full(len(record.urls), np.nan)
    originals = record.originals.copy()
    for document, bad, keep in _judged(corpus, language):
        if (number := record.numbers.get(_key(document.url))) is None:
            continue
        worth[number] = document.text_bytes if keep else 0
        badness[number] = np.nan if bad is None else bad
    same_text: dict[bytes, int] = {}  # the crawl looked for duplicates only among documents in its language
    for url, page, keep in reread(corpus, language):
        if (number := record.numbers.get(_key(url))) is None:
            continue
        badness[number] = np.nan if page.badness is None else page.badness
        if keep:
            worth[number] = len(page.text.encode("utf-8", "replace"))
            originals[number] = same_text.setdefault(page.text_hash, number)
    return record._replace(
        worth=worth[originals], originals=originals, badness=badness[originals], language=language
    )


def _column(table: pa.Table | pa.RecordBatch, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    return values


def _key(url: str) -> str:
    return url.partition("://")[2]


def _judged(corpus: CorpusFiles, language: str) -> Iterator[tuple[Document, float | None, bool]]:
    """Yield documents with their Badness for a language, and whether a new corpus in it would keep them."""
    settings = JudgeSettings(min_html_bytes=0, min_text_chars=0)  # the documents have passed these bounds
    judge = Judge(Config(language=language, judge=settings))
    model = badness_model(language)
    for document in chain.from_iterable(map(documents, corpus.batches("docs", imported=False))):
        bad = badness_of(document.text, model) if model else None
        page = ReadResult(document.url, "html", text=document.text, languages=document.languages, badness=bad)
        yield document, bad, document.language == language and judge.verdict(page).keep


def _originals(outcomes: pa.Table) -> Numbers:
    originals = np.arange(len(outcomes))
    # An original in another shard is named by its URL instead of its number. Some originals may be erased.
    numbers = {str(seq): number for number, seq in enumerate(_column(outcomes, "seq"))}
    numbers |= {url: number for number, url in enumerate(_column(outcomes, "url"))}
    for number, detail in enumerate(_column(outcomes, "detail")):
        if detail.startswith(SAME_AS):
            originals[number] = originals[numbers.get(detail.removeprefix(SAME_AS), number)]
    return originals


def _links(corpus: CorpusFiles, outcomes: pa.Table, numbers: dict[str, int]) -> tuple[Any, ...]:
    """Return the start of the links of each URL, the columns of links between fetched URLs, and Badness."""
    rows: list[tuple[int, int, str, float, bool, str]] = []
    badness = np.full(len(outcomes), np.nan)
    ends = zip(_column(outcomes, "outcome"), _column(outcomes, "detail"), strict=True)
    for number, (outcome, detail) in enumerate(ends):
        if outcome == "redirect" and (target := numbers.get(_key(detail))) is not None:
            rows.append((number, target, "", UNKNOWN, False, ""))
    for batch in corpus.batches("links", LINK_COLUMNS):
        for source, target, rel, anchor, boilerplate, in_text, bad in zip(
            *(_column(batch, name) for name in LINK_COLUMNS), strict=True
        ):
            first, second = numbers.get(_key(source)), numbers.get(_key(target))
            if first is not None and second is not None and "nofollow" not in (rel or ""):
                rows.append((first, second, anchor, boilerplate, in_text, rel or ""))
                badness[first] = np.nan if bad is None else bad
    rows.sort(key=lambda row: row[0])  # stable: a page's links stay in their order
    sources, targets, anchors, scores, in_text, rels = zip(*rows, strict=True) if rows else ((),) * 6
    starts = np.searchsorted(np.array(sources, np.int64), np.arange(len(outcomes) + 1))
    return (
        starts,
        np.array(targets, np.int64),
        list(anchors),
        np.array(scores, np.float64),
        np.array(in_text, np.bool_),
        {place: rel for place, rel in enumerate(rels) if rel},
        badness,
    )


def _sitemaps(outcomes: pa.Table) -> dict[str, list[int]]:
    """Return the URLs that robots.txt named: neither a page led to them, nor are they seeds."""
    found: dict[str, list[int]] = {}
    columns = (_column(outcomes, name) for name in ("url", "source", "depth"))
    for number, (url, source, depth) in enumerate(zip(*columns, strict=True)):
        if not source and depth:
            found.setdefault(host(url), []).append(number)
    return found
