"""What experiments know of a crawl: its record, what each URL was and added, and how it was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.config import Config, ConfigError
from thresher.lab.experiments.figures import Visits
from thresher.lab.record import OUTCOME_COLUMNS, Record, recorded, valued
from thresher.store.corpus import open as open_corpus

NOBODY = -1  # the parent of a URL that no page led to
HOPS = 10  # redirects that are followed

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Evidence(NamedTuple):
    """A crawl to experiment on; arrays go by the numbers of its record."""

    directory: Path
    config: Config
    record: Record
    documents: Flags  # a page was read there, kept or not; failures, redirects and robots.txt's noes are none
    gained: Numbers  # bytes of text that each URL added to the corpus: of equal texts, the first counts
    domains: list[str]
    parents: Numbers  # the URL whose page led to each
    depths: Numbers

    @property
    def seeds(self) -> list[int]:
        """Where the crawl began."""
        return np.flatnonzero((self.parents == NOBODY) & (self.depths == 0)).tolist()

    def visits(self, visited: Numbers) -> Visits:
        """A crawl of these URLs in this order."""
        return Visits(self.record.bytes[visited], self.documents[visited], gains(self.record, visited))

    def landing(self, number: int) -> int:
        """The page that a URL leads to, through redirects."""
        for _ in range(HOPS):
            links = self.record.links(number)
            if self.documents[number] or not len(links):
                break
            number = int(links[0])
        return number

    def need_links(self) -> None:
        """ConfigError where no link between two fetched URLs is on record."""
        if not len(self.record.targets):
            raise ConfigError(
                f"{self.directory} has no links between pages it fetched, and this experiment follows them; "
                "crawl with links = true in [store] of corpus.toml, and more than the seeds"
            )

    def need_seeds(self) -> list[int]:
        """The seeds; ConfigError where none was fetched."""
        if not (seeds := self.seeds):
            raise ConfigError(
                f"{self.directory} has no outcome of a seed; give it some: "
                f"thresher crawl {self.directory} --seeds FILE"
            )
        return seeds


def gather(directory: Path, language: str = "") -> Evidence:
    """The evidence of a crawl, its text counted for its own language or for another."""
    corpus = open_corpus(directory)
    outcomes = corpus.outcomes([*OUTCOME_COLUMNS, "domain"])
    record = valued(recorded(corpus, outcomes), corpus, language)
    kinds = np.array(_column(outcomes, "outcome"))
    return Evidence(
        directory,
        corpus.config,
        record,
        (kinds == "kept") | (kinds == "rejected"),
        gains(record, np.arange(len(record.urls))),
        _column(outcomes, "domain"),
        _parents(record, _column(outcomes, "source")),
        outcomes["depth"].to_numpy(),
    )


def gains(record: Record, visited: Numbers) -> Numbers:
    """The text that each visit of a crawl added: of equal texts, the first counts."""
    _, firsts = np.unique(record.twins[visited], return_index=True)
    gained = np.zeros(len(visited), np.int64)
    gained[firsts] = record.worth[visited[firsts]]
    return gained


def _parents(record: Record, sources: list[str | None]) -> Numbers:
    keys = ((url or "").partition("://")[2] for url in sources)
    return np.array([record.numbers.get(key, NOBODY) for key in keys], np.int64)


def _column(table: pa.Table, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    return values
