"""The clock of a crawl: everything that reads the time or waits for it, in one object that a simulation replaces.

Waits for the network are no part of it: timeouts of requests and name servers, and the groups in which messages are
sent to other shards, are real.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager, suppress
from typing import Protocol


class Clock(Protocol):
    """A source of time that can be waited for."""

    def now(self) -> float:
        """Return seconds since some moment, which never go backwards."""

    def wall(self) -> float:
        """Return Unix time, for moments that outlive the process."""

    async def sleep(self, seconds: float) -> None:
        """Wait for some seconds."""

    async def wait(self, event: asyncio.Event, until: float) -> None:
        """Wait for an event, at most until `now` has a value."""

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Return a context that raises TimeoutError if it takes longer than some seconds."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Return the monotonic clock."""
        return time.monotonic()

    def wall(self) -> float:
        """Return Unix time."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait for some seconds."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, until: float) -> None:
        """Wait for an event, at most until a time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - self.now())):
                await event.wait()

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Return a context that raises TimeoutError if it takes longer than some seconds."""
        return asyncio.timeout(seconds)


SYSTEM_CLOCK = SystemClock()
