"""How a crawl comes to its end: the reasons, and the budgets that are watched."""

from __future__ import annotations

import resource
import time

from msgspec import Struct

from thresher.config import Budget
from thresher.crawl.ledger import Figures


class CrawlFault(Exception):
    """The crawl cannot go on; the message says why and what to do."""


class Ending(Struct, frozen=True):
    """Why a crawl ended."""

    reason: str  # done, dry, waiting, interrupted, or the budget that was spent
    detail: str = ""
    urls: int = 0  # that wait for hosts …
    seconds: float = 0.0  # … which asked for as much, at least


NOBODY_REACHED = Ending(
    "nobody reached",
    "no host could be reached: is there a network, and are the names of the seeds right? "
    "The queue is kept; try again later",
)


def waiting(urls: int, seconds: float) -> Ending:
    """A crawl whose last hosts asked to be left alone for long."""
    told = f"{urls:,} URLs wait for hosts that asked for {seconds:,.0f} s or more"
    return Ending("waiting", told, urls, seconds)


class Meter:
    """What a crawl has spent, the runs before this one included."""

    def __init__(self, budget: Budget, figures: Figures) -> None:
        self._budget = budget
        self._figures = figures
        self._wall_before = figures.wall_s
        self._cpu_before = figures.cpu_s
        self._opened = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds of this run."""
        return time.monotonic() - self._opened

    def spent(self, under_way: int = 0) -> str:
        """The budget that is spent, counting visits under way as pages, or ""."""
        budget, figures = self._budget, self._figures
        if 0 < budget.pages <= figures.fetched + under_way:
            return "page budget"
        if 0 < budget.bytes <= figures.downloaded:
            return "byte budget"
        return "time budget" if 0 < budget.seconds <= self._wall_before + self.elapsed else ""

    def tell(self, readers_cpu: float) -> None:
        """Enter the time that was spent into the figures; `readers_cpu` is that of readers still at work."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._figures.wall_s = self._wall_before + self.elapsed
        self._figures.cpu_s = (
            self._cpu_before + time.process_time() + ended.ru_utime + ended.ru_stime + readers_cpu
        )
