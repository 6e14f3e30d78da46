"""Crawls in cycles, with a report on each.

Generation cycles: the best URLs of the backlog are chosen and visited, and their links wait in the backlog. When
the frontier is empty, the cycle is over and the next one is chosen. So the frontier holds the URLs of one cycle
only, all of which were queued in one commit, and the URLs of a cycle are the same after any crash.

Cyclic selection: a phase is an ordinary crawl until a number of pages is fetched. Then the frontier is emptied,
and the next phase begins with the best links in good places of good pages. All others are given up: they stay
seen, so no phase visits them.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from thresher.config import CycleSettings
from thresher.crawler.frontier.backlog import Backlog
from thresher.crawler.storage.crawl_writer import CrawlStats
from thresher.crawler.storage.keys import CYCLE_PROGRESS, CYCLES, GOOD_LINKS, after
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate, ReadResult
from thresher.urls import key

SHOWN = 100  # cycles in the status

_encode = msgspec.msgpack.Encoder().encode


class CycleReport(Struct, frozen=True, array_like=True):
    """Statistics of a crawl or of one cycle."""

    fetched: int
    kept: int
    ours: int  # pages in the language of the corpus
    downloaded: int
    text_bytes: int

    @property
    def accuracy(self) -> float:
        """Share of the fetched pages that are in the language of the corpus."""
        return self.ours / self.fetched if self.fetched else 0.0

    @property
    def rate(self) -> float:
        """The yield: bytes of text per byte downloaded."""
        return self.text_bytes / self.downloaded if self.downloaded else 0.0


def report_on(stats: CrawlStats) -> CycleReport:
    """Return the report on the whole crawl so far."""
    kept = stats.outcomes.get("kept", 0)
    return CycleReport(stats.fetched, kept, stats.ours, stats.downloaded, stats.text_bytes)


def good_places(
    badness: float | None, boilerplate: ArrayLike, max_badness: float, max_boilerplate: float
) -> NDArray[np.intp]:
    """Return the indices of links from which a new phase may begin, by the boilerplate scores of their blocks.

    There are none on a page with a too high Badness. Without a model of the language, Badness is None and rejects
    no page.
    """
    if badness is not None and not badness <= max_badness:
        return np.empty(0, np.intp)
    return np.flatnonzero(np.asarray(boilerplate, np.float64) < max_boilerplate)


class CycleProgress(Struct, array_like=True):
    """Progress of a crawl in cycles."""

    number: int = 0  # of the last cycle that has begun
    begun: CycleReport | None = None  # the whole crawl when the present cycle began; None between two cycles
    emptying: bool = False  # the frontier is being emptied and must not be opened


class CycleScheduler:
    """The present cycle and the reports on earlier ones."""

    def __init__(self, state: KeyValueState, settings: CycleSettings, backlog: Backlog) -> None:
        """Open before the frontier, since an interrupted turn of the cycle may have to empty it first."""
        self._state = state
        self._settings = settings
        self._backlog = backlog
        self._progress = msgspec.msgpack.decode(
            state.get(CYCLE_PROGRESS) or _encode(CycleProgress()), type=CycleProgress
        )
        first = CYCLES + max(0, self._progress.number - SHOWN).to_bytes(4, "big")
        self._ended: deque[tuple[int, CycleReport]] = deque(
            (
                (int.from_bytes(name[len(CYCLES) :], "big"), msgspec.msgpack.decode(value, type=CycleReport))
                for name, value in state.committed(first, after(CYCLES))
            ),
            maxlen=SHOWN,
        )
        if self._progress.emptying:
            self.empty()

    @property
    def hold_back(self) -> bool:
        """True if links wait for the next cycle."""
        return self._settings.pages > 0 and not self._settings.selection

    @property
    def under_way(self) -> bool:
        """True if a cycle has begun and is not over."""
        return self._progress.begun is not None

    @property
    def are_enough(self) -> bool:
        """True if the requested number of cycles has begun."""
        return 0 < self._settings.count <= self._progress.number

    def is_full(self, fetched: int) -> bool:
        """Return whether a phase has all its pages when `fetched` pages were fetched in the whole crawl."""
        begun = self._progress.begun
        return (
            self._settings.selection and begun is not None and fetched - begun.fetched >= self._settings.pages
        )

    # from one cycle to the next

    def end(self, stats: CrawlStats, *, emptying: bool) -> None:
        """End the present cycle, if any; with `emptying`, the frontier must be emptied before it is opened."""
        progress = self._progress
        if progress.begun is not None:
            report = _between(progress.begun, report_on(stats))
            self._ended.append((progress.number, report))
            self._state.put(CYCLES + progress.number.to_bytes(4, "big"), _encode(report))
        progress.begun, progress.emptying = None, emptying

    def empty(self) -> None:
        """Empty a frontier that is not open."""
        self._backlog.drain_frontier(self._is_wanted)
        self._progress.emptying = False
        self.flush()
        self._state.commit()

    def _is_wanted(self, candidate: Candidate) -> bool:
        return not self._settings.selection or GOOD_LINKS + key(candidate.url) in self._state

    def begin(self, stats: CrawlStats) -> None:
        """Begin the next cycle."""
        self._progress.number += 1
        self._progress.begun = report_on(stats)

    # selection

    def note_good_links(self, page: ReadResult) -> None:
        """Record the links of a page from which the next phase may begin, even if they were seen before."""
        if not self._settings.selection or page.kind != "html":
            return
        scores = [link.boilerplate for link in page.links]
        settings = self._settings
        for place in good_places(page.badness, scores, settings.max_badness, settings.max_boilerplate):
            self._state.put(GOOD_LINKS + key(page.links[place].url), b"")

    def forget_good_links(self) -> None:
        """Delete the good links of the last phase after the next one has begun."""
        for portion in self._state.portions(GOOD_LINKS):
            for name, _ in portion:
                self._state.delete(name)
            self._state.commit()

    # statistics

    def table(self, stats: CrawlStats) -> list[dict[str, Any]]:
        """Return the reports on the last cycles, the present one included."""
        rows = list(self._ended)
        if self._progress.begun is not None:
            rows.append((self._progress.number, _between(self._progress.begun, report_on(stats))))
        return [_row(*row) for row in rows[-SHOWN:]]

    def flush(self) -> None:
        """Put everything into the state's next commit."""
        self._state.put(CYCLE_PROGRESS, _encode(self._progress))
        self._backlog.flush()


def _between(first: CycleReport, last: CycleReport) -> CycleReport:
    then, now = msgspec.structs.astuple(first), msgspec.structs.astuple(last)
    return CycleReport(*(new - old for old, new in zip(then, now, strict=True)))


def _row(number: int, report: CycleReport) -> dict[str, Any]:
    return {
        "cycle": number,
        **msgspec.structs.asdict(report),
        "accuracy": report.accuracy,
        "yield": report.rate,
    }
