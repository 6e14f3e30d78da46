"""Evidence of a crawl for experiments: its record, and for each URL kind, gain, parent and depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.config import Config
from thresher.errors import UsageError
from thresher.report.experiments.figures import VisitSeries
from thresher.simulation.record import OUTCOME_COLUMNS, CrawlRecord, recorded, valued
from thresher.store.corpus_files import open as open_corpus

NO_PARENT = -1  # of a URL that no page led to
MAX_REDIRECTS = 10

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Evidence(NamedTuple):
    """A crawl to experiment on; arrays are indexed by the numbers of its record."""

    directory: Path
    config: Config
    record: CrawlRecord
    documents: Flags  # whether a page was read, kept or not
    gained: Numbers  # bytes of text that each URL added to the corpus
    domains: list[str]
    parents: Numbers  # the URL of the page that led to each, or NO_PARENT
    depths: Numbers

    @property
    def seeds(self) -> list[int]:
        """The URLs that the crawl began with."""
        return np.flatnonzero((self.parents == NO_PARENT) & (self.depths == 0)).tolist()

    def visits(self, visited: Numbers) -> VisitSeries:
        """Return the visits of a crawl of these URLs in this order."""
        return VisitSeries(self.record.bytes[visited], self.documents[visited], self.record.gains(visited))

    def landing(self, number: int) -> int:
        """Return the page that a URL leads to through redirects, or the last URL on the way."""
        for _ in range(MAX_REDIRECTS):
            links = self.record.links(number)
            if self.documents[number] or not len(links):
                break
            number = int(links[0])
        return number

    def need_links(self) -> None:
        """Raise UsageError if no link between two fetched URLs is on record."""
        if not len(self.record.targets):
            raise UsageError(
                f"{self.directory} has no links between pages it fetched, and this experiment follows them; "
                "crawl with links = true in [store] of corpus.toml, and more than the seeds"
            )

    def need_seeds(self) -> list[int]:
        """Return the seeds; UsageError if none was fetched."""
        if not (seeds := self.seeds):
            raise UsageError(
                f"{self.directory} has no outcome of a seed; add seeds: "
                f"thresher crawl {self.directory} --seeds FILE"
            )
        return seeds


def gather(directory: Path, language: str = "") -> Evidence:
    """Return the evidence of a crawl; text is counted for the language of the corpus, or for another one."""
    corpus = open_corpus(directory)
    outcomes = corpus.outcomes([*OUTCOME_COLUMNS, "domain"])
    record = valued(recorded(corpus, outcomes), corpus, language)
    kinds = np.array(_column(outcomes, "outcome"))
    return Evidence(
        directory,
        corpus.config,
        record,
        (kinds == "kept") | (kinds == "rejected"),
        record.gains(np.arange(len(record.urls))),
        _column(outcomes, "domain"),
        _parents(record, _column(outcomes, "source")),
        outcomes["depth"].to_numpy(),
    )


def _parents(record: CrawlRecord, sources: list[str | None]) -> Numbers:
    keys = ((url or "").partition("://")[2] for url in sources)
    return np.array([record.numbers.get(key, NO_PARENT) for key in keys], np.int64)


def _column(table: pa.Table, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    return values
