"""Pages that the coordinator has granted to a shard."""

from __future__ import annotations

import threading
from collections.abc import Callable


class PageGrants:
    """The count of granted pages, used by the loop and by the thread of the lease."""

    def __init__(self, fetched: int) -> None:
        self._limit = fetched  # pages that may have been fetched in all
        self._low = 0  # more are requested when this number of pages or fewer is left
        self.requested = False
        self._lock = threading.Lock()

    def allow(self, pages: int) -> bool:
        """Return whether that many pages may have been fetched in all."""
        return pages <= self._limit

    def are_low(self, pages: int) -> bool:
        """Return whether more pages should be requested when that many are fetched or under way."""
        return pages + self._low > self._limit and not self.requested

    def left(self, stats: Callable[[], int]) -> tuple[int, int]:
        """Return the number of fetched pages and of pages still granted, as of one moment."""
        with self._lock:
            fetched = stats()
            return fetched, max(self._limit - fetched, 0)

    def add(self, pages: int) -> None:
        """Take a grant; without one, the request stands and the next heartbeat repeats it."""
        with self._lock:
            self._limit += pages
            if pages:
                self._low, self.requested = pages // 2, False

    def give_back(self, fetched: int) -> None:
        """Return all pages beyond the ones that are fetched or under way."""
        with self._lock:
            self._limit, self.requested = min(self._limit, fetched), False
