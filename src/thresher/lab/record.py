"""A recorded web: what became of every URL of a crawl, and where its pages lead; to be crawled again on paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.config import ConfigError, Judging
from thresher.judge import judge
from thresher.page import Page
from thresher.read.badness import badness
from thresher.read.trained import badness_model
from thresher.store.corpus import Corpus, Document
from thresher.store.corpus import open as open_corpus
from thresher.url import host

TWIN = "same as "  # begins the detail of a duplicate; the number of another outcome follows

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
    sitemaps: dict[str, list[int]]  # that the robots.txt of a host tells of
    numbers: dict[str, int]  # of URLs without their schemes

    def links(self, number: int) -> Numbers:
        """The URLs that a page leads to, as often as it does."""
        return self.targets[self.starts[number] : self.starts[number + 1]]

    def find(self, urls: Iterable[str]) -> list[int]:
        """The numbers of those URLs that were fetched."""
        return [self.numbers[key] for key in map(_key, urls) if key in self.numbers]


def load(directory: Path, language: str = "") -> Record:
    """The record of a crawl: with what its documents are worth to it, or to a corpus in another language.

    That was judged when the crawl met them, so it has to have kept documents in the other language too.
    """
    corpus = open_corpus(directory)
    outcomes = corpus.outcomes(["url", "host", "bytes", "outcome", "reason", "detail", "depth", "source"])
    urls = _column(outcomes, "url")
    if not urls:
        raise ConfigError(f"{directory} has no pages yet; crawl it first: thresher crawl {directory}")
    numbers = {_key(url): number for number, url in enumerate(urls)}
    worth = np.zeros(len(urls), np.int64)
    for url, text_bytes in _worth(corpus, language):
        worth[numbers[_key(url)]] = text_bytes
    twins = _twins(outcomes)
    starts, targets = _links(corpus, outcomes, numbers)
    return Record(
        urls,
        _column(outcomes, "host"),
        outcomes["bytes"].to_numpy(),
        worth[twins],
        twins,
        starts,
        targets,
        _sitemaps(outcomes),
        numbers,
    )


def _column(table: pa.Table | pa.RecordBatch, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    return values


def _key(url: str) -> str:
    return url.partition("://")[2]


def _worth(corpus: Corpus, language: str) -> Iterator[tuple[str, int]]:
    """Which documents a corpus in that language keeps, and the bytes of their texts."""
    if not language or (language == corpus.config.language and corpus.config.judge.language):
        documents = corpus.docs(["url", "text_bytes"])
        yield from zip(_column(documents, "url"), _column(documents, "text_bytes"), strict=True)
        return
    settings = Judging(min_html_bytes=0, min_text_chars=0)  # these it has passed
    for document in corpus:
        if document.language == language and _keeps(document, language, settings):
            yield document.url, document.text_bytes


def _keeps(document: Document, language: str, settings: Judging) -> bool:
    model = badness_model(language)
    page = Page(
        document.url,
        "html",
        text=document.text,
        languages=document.languages,
        badness=badness(document.text, model) if model else None,
    )
    return judge(page, language, settings).keep


def _twins(outcomes: pa.Table) -> Numbers:
    twins = np.arange(len(outcomes))
    for number, detail in enumerate(_column(outcomes, "detail")):
        if detail.startswith(TWIN):
            twins[number] = twins[int(detail.removeprefix(TWIN))]
    return twins


def _links(corpus: Corpus, outcomes: pa.Table, numbers: dict[str, int]) -> tuple[Numbers, Numbers]:
    """The links of all pages between URLs that were fetched, one page after the other."""
    sources: list[int] = []
    targets: list[int] = []
    ends = zip(_column(outcomes, "outcome"), _column(outcomes, "detail"), strict=True)
    for number, (outcome, detail) in enumerate(ends):
        if outcome == "redirect" and (target := numbers.get(_key(detail))) is not None:
            sources.append(number)
            targets.append(target)
    for batch in corpus.batches("links", ["source", "target", "rel"]):
        columns = (_column(batch, name) for name in ("source", "target", "rel"))
        for source, target, rel in zip(*columns, strict=True):
            first, second = numbers.get(_key(source)), numbers.get(_key(target))
            if first is not None and second is not None and "nofollow" not in (rel or ""):
                sources.append(first)
                targets.append(second)
    order = np.argsort(np.array(sources, np.int64), kind="stable")
    starts = np.searchsorted(np.array(sources, np.int64)[order], np.arange(len(outcomes) + 1))
    return starts, np.array(targets, np.int64)[order]


def _sitemaps(outcomes: pa.Table) -> dict[str, list[int]]:
    """What no page led to, and was no seed either, stood in a robots.txt."""
    found: dict[str, list[int]] = {}
    columns = (_column(outcomes, name) for name in ("url", "source", "depth"))
    for number, (url, source, depth) in enumerate(zip(*columns, strict=True)):
        if not source and depth:
            found.setdefault(host(url), []).append(number)
    return found
