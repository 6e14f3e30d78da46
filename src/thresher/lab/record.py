"""A recorded web: what became of every URL of a crawl, and where its pages lead; to be crawled again on paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.config import ConfigError, Judging
from thresher.crawl.ledger import TWIN
from thresher.judge import judge
from thresher.page import Link, Page, Via
from thresher.read.badness import badness as badness_of
from thresher.read.links import UNKNOWN
from thresher.read.trained import badness_model
from thresher.store.corpus import Corpus, Document, documents
from thresher.store.corpus import open as open_corpus
from thresher.url import host

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
LISTINGS: tuple[Via, ...] = (
    "sitemap",
    "feed",
)  # pages that only list others; so they are called as outcomes, too
LINK_COLUMNS = ("source", "target", "rel", "anchor", "boilerplate", "in_text", "source_badness")

Numbers = NDArray[np.int64]


class Record(NamedTuple):
    """Every URL by a number, in the order in which they were fetched."""

    urls: list[str]
    hosts: list[str]
    bytes: Numbers  # received
    worth: Numbers  # bytes of text that the URL adds to the corpus if nothing equal is there yet
    twins: Numbers  # the first URL with the same text, or the URL itself
    starts: Numbers  # where the links of each URL begin in `targets`, and where the last ones end
    targets: Numbers  # a redirect is a link
    anchors: list[str]  # of links, like the next two
    boilerplate: NDArray[np.float64]
    in_text: NDArray[np.bool_]
    rels: dict[int, str]  # by the places of those links that have one
    badness: NDArray[np.float64]  # of pages, for the language of the crawl or of `worth`; NaN where unknown
    redirects: NDArray[np.bool_]
    languages: list[str]  # of pages, "" where there is none
    language: str  # that `worth` is for
    listings: dict[int, Via]  # which URLs are sitemaps and feeds
    sitemaps: dict[str, list[int]]  # that the robots.txt of a host tells of
    numbers: dict[str, int]  # of URLs without their schemes

    def links(self, number: int) -> Numbers:
        """The URLs that a page leads to, as often as it does."""
        return self.targets[self.starts[number] : self.starts[number + 1]]

    def link(self, place: int) -> Link:
        """A link as it stands on its page."""
        boilerplate, in_text = float(self.boilerplate[place]), bool(self.in_text[place])
        rel = self.rels.get(place, "")
        return Link(self.urls[self.targets[place]], self.anchors[place], boilerplate, in_text, rel)

    def via(self, number: int) -> Via:
        """How URLs come that this one leads to."""
        return "redirect" if self.redirects[number] else self.listings.get(number, "page")

    @property
    def are_pages(self) -> NDArray[np.bool_]:
        """Which URLs gave a page: what failed or led elsewhere has neither a language nor links."""
        says = np.array([bool(language) for language in self.languages])
        return (says | (np.diff(self.starts) > 0)) & ~self.redirects

    def number(self, url: str) -> int:
        """The number of a URL that was fetched."""
        return self.numbers[_key(url)]

    def find(self, urls: Iterable[str]) -> list[int]:
        """The numbers of those URLs that were fetched."""
        return [self.numbers[key] for key in map(_key, urls) if key in self.numbers]


def load(directory: Path, language: str = "") -> Record:
    """The record of a crawl: with what its documents are worth to it, or to a corpus in another language.

    That was judged when the crawl met them, so it has to have kept documents in the other language too.
    """
    return next(load_each(directory, [language]))


def load_each(directory: Path, languages: Iterable[str]) -> Iterator[Record]:
    """The record of a crawl for each of some languages, all that they share read once."""
    corpus = open_corpus(directory)
    record = recorded(corpus, corpus.outcomes(OUTCOME_COLUMNS))
    for language in languages:
        yield valued(record, corpus, language)


def recorded(corpus: Corpus, outcomes: pa.Table) -> Record:
    """The record of these outcomes of a crawl, whose pages nobody has valued yet."""
    urls = _column(outcomes, "url")
    if not urls:
        directory = corpus.directory
        raise ConfigError(f"{directory} has no pages yet; crawl it first: thresher crawl {directory}")
    numbers = {_key(url): number for number, url in enumerate(urls)}
    starts, targets, anchors, boilerplate, in_text, rels, badness = _links(corpus, outcomes, numbers)
    listings = {kind: kind for kind in LISTINGS}
    return Record(
        urls=urls,
        hosts=_column(outcomes, "host"),
        bytes=outcomes["bytes"].to_numpy(),
        worth=np.zeros(len(urls), np.int64),
        twins=_twins(outcomes),
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


def valued(record: Record, corpus: Corpus, language: str) -> Record:
    """A record with what its pages are worth to the corpus, or to one in another language."""
    worth = np.zeros(len(record.urls), np.int64)
    if not language or (language == corpus.config.language and corpus.config.judge.language):
        for batch in corpus.batches("docs", ["url", "text_bytes"], imported=False):
            for url, text_bytes in zip(_column(batch, "url"), _column(batch, "text_bytes"), strict=True):
                if (number := record.numbers.get(_key(url))) is not None:  # a crawl at work goes on
                    worth[number] = text_bytes
        return record._replace(worth=worth[record.twins])
    badness = np.full(len(record.urls), np.nan)
    for document, bad, keep in _judged(corpus, language):
        if (number := record.numbers.get(_key(document.url))) is None:
            continue
        worth[number] = document.text_bytes if keep else 0
        badness[number] = np.nan if bad is None else bad
    return record._replace(worth=worth[record.twins], badness=badness[record.twins], language=language)


def _column(table: pa.Table | pa.RecordBatch, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    return values


def _key(url: str) -> str:
    return url.partition("://")[2]


def _judged(corpus: Corpus, language: str) -> Iterator[tuple[Document, float | None, bool]]:
    """Documents with Badness for that language, and whether a corpus in it keeps them.

    They are judged as a new corpus judges, for nobody has yet.
    """
    settings = Judging(min_html_bytes=0, min_text_chars=0)  # these they have passed
    model = badness_model(language)
    for document in chain.from_iterable(map(documents, corpus.batches("docs", imported=False))):
        bad = badness_of(document.text, model) if model else None
        page = Page(document.url, "html", text=document.text, languages=document.languages, badness=bad)
        yield document, bad, document.language == language and judge(page, language, settings).keep


def _twins(outcomes: pa.Table) -> Numbers:
    twins = np.arange(len(outcomes))
    # Of another shard, the URL is known and not the number; and some may be forgotten.
    numbers = {str(seq): number for number, seq in enumerate(_column(outcomes, "seq"))}
    numbers |= {url: number for number, url in enumerate(_column(outcomes, "url"))}
    for number, detail in enumerate(_column(outcomes, "detail")):
        if detail.startswith(TWIN):
            twins[number] = twins[numbers.get(detail.removeprefix(TWIN), number)]
    return twins


def _links(corpus: Corpus, outcomes: pa.Table, numbers: dict[str, int]) -> tuple[Any, ...]:
    """Where the links of each page begin, the columns of links between URLs that were fetched, and Badness."""
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
    """What no page led to, and was no seed either, stood in a robots.txt."""
    found: dict[str, list[int]] = {}
    columns = (_column(outcomes, name) for name in ("url", "source", "depth"))
    for number, (url, source, depth) in enumerate(zip(*columns, strict=True)):
        if not source and depth:
            found.setdefault(host(url), []).append(number)
    return found
