"""Reasons for a crawl to end, and the budgets that are watched."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from thresher.config import BudgetSettings
from thresher.crawler.storage.crawl_writer import CrawlStats

Budget = Literal["page budget", "byte budget", "time budget", "cycle budget"]
StopReason = Literal["done", "dry", "waiting", "interrupted", "no host reached"] | Budget


class Ending(Struct, frozen=True):
    """Why a crawl ended."""

    reason: StopReason
    detail: str = ""
    urls: int = 0  # URLs that wait for hosts
    seconds: float = 0.0  # the shortest time that these hosts asked for


NO_HOST_REACHED = Ending(
    "no host reached",
    "no host could be reached: is there a network, and are the names of the seeds right? "
    "The queue is kept; try again later",
)


def waiting(urls: int, seconds: float) -> Ending:
    """Return the ending of a crawl whose last hosts asked for a long rest."""
    detail = f"{urls:,} URLs wait for hosts that asked for {seconds:,.0f} s or more"
    return Ending("waiting", detail, urls, seconds)


class BudgetMeter:
    """Pages, bytes and seconds that a crawl has spent, earlier runs included."""

    def __init__(
        self, budget: BudgetSettings, stats: CrawlStats, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._budget = budget
        self._stats = stats
        self._clock = clock
        self._wall_before = stats.wall_s
        self._cpu_before = stats.cpu_s
        self._opened = clock()

    @property
    def elapsed(self) -> float:
        """Seconds of this run."""
        return self._clock() - self._opened

    def spent(self, under_way: int = 0) -> Budget | None:
        """Return the budget that is spent, None if none is; visits under way count as pages."""
        budget, stats = self._budget, self._stats
        if 0 < budget.max_pages <= stats.fetched + under_way:
            return "page budget"
        if 0 < budget.max_bytes <= stats.downloaded:
            return "byte budget"
        return "time budget" if 0 < budget.max_time <= self._wall_before + self.elapsed else None

    def record(self, readers_cpu: float) -> None:
        """Enter the time spent so far into the statistics; `readers_cpu` is the time of readers still running."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._stats.wall_s = self._wall_before + self.elapsed
        self._stats.cpu_s = (
            self._cpu_before + time.process_time() + ended.ru_utime + ended.ru_stime + readers_cpu
        )
