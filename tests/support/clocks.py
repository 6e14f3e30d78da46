"""Clocks that tests move: waiting takes no real time."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

START = 1_000_000.0
ROUNDS_TO_SETTLE = 50  # of the event loop, in which tasks without real input and output come to rest


class SleepingClock:
    """A clock that one sleeper at a time moves, by sleeping."""

    def __init__(self) -> None:
        self.time = START
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    async def wait(self, event: asyncio.Event, until: float) -> None:
        raise NotImplementedError

    def timeout(self, seconds: float) -> asyncio.Timeout:
        return asyncio.timeout(None)


class SimulatedClock:
    """A clock for many tasks: while one of them waits for an event, time passes as soon as all others wait, too."""

    def __init__(self) -> None:
        self.time = START
        self._numbers = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.time + seconds, next(self._numbers), future))
        await future

    async def wait(self, event: asyncio.Event, until: float) -> None:
        while True:
            for _ in range(ROUNDS_TO_SETTLE):
                await asyncio.sleep(0)
                if event.is_set():
                    return
            if self.time >= until:
                return
            self._advance(until)

    def _advance(self, until: float) -> None:
        """Move to the next sleeper's time, or to `until` if that is sooner."""
        self.time = min(until, self._sleepers[0][0] if self._sleepers else math.inf)
        assert self.time < math.inf, "everything waits for ever"
        while self._sleepers and self._sleepers[0][0] <= self.time:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():  # its task may have been cancelled
                future.set_result(None)

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[None]:
        async with asyncio.timeout(None) as limit:

            async def expire() -> None:
                await self.sleep(seconds)
                limit.reschedule(asyncio.get_running_loop().time())

            expiring = asyncio.create_task(expire())
            try:
                yield
            finally:
                expiring.cancel()
