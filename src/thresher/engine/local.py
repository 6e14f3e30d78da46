"""Readers as processes of this machine: each page under a deadline, each reader replaced when it dies."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec

from thresher.config import Reading
from thresher.engine.calls import elsewhere
from thresher.engine.nursery import Handle, Nursery, lent
from thresher.engine.worker import FRAME
from thresher.page import Failure, Page, Reply

# Loop and reader would wake each other for every page, and find their caches cold. So a reader has enough pages in
# its socket to be busy while its answers gather in ours.
IN_FLIGHT = 8  # pages with one reader
GATHER = 0.005  # seconds
MAX_DEATHS = 2  # readers that one page may take with it: the first may have died of something else
START_SECONDS = 60.0  # to load models before the first page
MAX_FAILED_STARTS = 3  # in a row, before the fault is thought ours and not a page's

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Page | Failure).decode


class EngineFault(Exception):
    """Readers cannot be had; the message says what to look at."""


def reader_count(settings: Reading) -> int:
    """As many as asked for, or one less than there are cores."""
    return settings.processes or max(1, len(os.sched_getaffinity(0)) - 1)


class _Job:
    """A reply on its way to a reader, and who waits for the answer."""

    __slots__ = ("answer", "deaths", "frame", "url")

    def __init__(self, reply: Reply, answer: asyncio.Future[Page | Failure]) -> None:
        body = _encode(reply)
        self.frame = FRAME.pack(len(body)) + body
        self.url = reply.url
        self.answer = answer
        self.deaths = 0

    def settle(self, answer: Page | Failure) -> None:
        if not self.answer.done():  # who asked may have gone
            self.answer.set_result(answer)


class Readers:
    """A pool of reader processes. `read` never raises for what a page does: a page that kills or stalls its
    reader becomes a Failure, and the others are read by another process."""

    def __init__(self, settings: Reading, language: str, nursery: Nursery | None = None) -> None:
        self._settings = settings
        self._language = language
        self._nursery = nursery or lent() or Nursery()
        self._waiting: deque[_Job] = deque()
        self._readers = [_Reader(self) for _ in range(reader_count(settings))]
        self._fault: EngineFault | None = None
        self.backlog = 0  # bytes that wait for a reader or are with one

    @property
    def size(self) -> int:
        """How many readers there are."""
        return len(self._readers)

    async def start(self) -> None:
        for reader in self._readers:
            await self.restart(reader)

    async def read(self, reply: Reply) -> Page | Failure:
        job = _Job(reply, asyncio.get_running_loop().create_future())
        self.backlog += len(job.frame)
        try:
            if self._fault:
                raise self._fault
            self._waiting.append(job)
            self.hand_out()
            return await job.answer
        finally:
            self.backlog -= len(job.frame)

    def hand_out(self) -> None:
        """Give waiting pages to readers that have room, the least busy first."""
        while self._waiting:
            reader = min(self._readers, key=_Reader.load)
            if reader.load() >= IN_FLIGHT:
                return
            job = self._waiting.popleft()
            if not job.answer.done():
                reader.send(job)

    def return_jobs(self, jobs: deque[_Job]) -> None:
        """A reader is gone; what it had not begun is read by another, before everything else."""
        self._waiting.extendleft(reversed(jobs))

    async def restart(self, reader: _Reader) -> None:
        try:
            ours = self._nursery.order(self._language, self._settings)
        except OSError as fault:
            self.fail(EngineFault(f"reader processes cannot be started: {fault}; try: thresher read FILE"))
        else:
            await reader.start(ours, self._settings.deadline)

    def distrust(self) -> None:
        """A reader that was ordered did not come: the next comes from another process."""
        self._nursery.close()

    def fail(self, fault: EngineFault) -> None:
        """No reader can be started: whoever waits is told."""
        self._fault = fault
        for job in self._waiting:
            if not job.answer.done():
                job.answer.set_exception(fault)
        self._waiting.clear()

    def pids(self) -> list[int]:
        """The readers that are running."""
        return [reader.handle.pid for reader in self._readers if reader.handle]

    def cpu_seconds(self) -> float:
        """Processor time of the readers that are running."""
        return sum(map(_cpu_seconds, self.pids()))

    async def close(self) -> None:
        elsewhere.cpu_seconds += self.cpu_seconds()
        for reader in self._readers:
            await reader.close()
        if self._nursery is not lent():
            self._nursery.close()


class _Reader(asyncio.Protocol):
    """Our end of one reader process. It answers in order, so the first unanswered page is the one it is at."""

    def __init__(self, pool: Readers) -> None:
        self._pool = pool
        self._jobs: deque[_Job] = deque()
        self._buffer = bytearray()
        self._deadline: asyncio.TimerHandle | None = None
        self._seconds = 0.0
        self._failed_starts = 0
        self._closing = False
        self._stalled = False
        self._restart: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self.handle: Handle | None = None  # as soon as it is ready

    async def start(self, ours: socket.socket, deadline: float) -> None:
        self._seconds = deadline
        self._stalled = False
        self._buffer.clear()
        self._set_clock(START_SECONDS)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)

    def load(self) -> int:
        return len(self._jobs) if self.handle else IN_FLIGHT

    def send(self, job: _Job) -> None:
        assert self._transport
        self._transport.write(job.frame)
        self._jobs.append(job)
        if len(self._jobs) == 1:
            self._set_clock(self._seconds)

    def _set_clock(self, seconds: float) -> None:
        """From now on the reader has that long; 0: it has nothing to do."""
        if self._deadline:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._stall) if seconds else None

    def _stall(self) -> None:
        self._stalled = True
        if self.handle:
            self.handle.kill()
        elif self._transport:
            self._pool.distrust()
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= FRAME.size:
            (length,) = FRAME.unpack_from(self._buffer)
            end = FRAME.size + length
            if len(self._buffer) < end:
                break
            frame = self._buffer[FRAME.size : end]
            del self._buffer[:end]
            if self.handle:
                self._jobs.popleft().settle(_decode(frame))
            else:
                with suppress(ProcessLookupError):  # it has died already, and its socket will say so
                    self.handle = Handle(msgspec.msgpack.decode(frame, type=int))
            self._set_clock(self._seconds if self._jobs else 0.0)
        self._pool.hand_out()
        if self._jobs and not self._buffer and self._transport:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(GATHER, self._go_on)

    def _go_on(self) -> None:
        if self._transport and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, _: Exception | None) -> None:
        """The process is gone: its page is to blame, unless we let it go."""
        self._transport = None
        jobs, self._jobs = self._jobs, deque()
        self._set_clock(0.0)
        self._failed_starts = 0 if self.handle else self._failed_starts + 1
        self._let_go()
        if self._closing:
            return
        if self._failed_starts == MAX_FAILED_STARTS:
            self._pool.fail(EngineFault("reader processes do not start; try: thresher read FILE"))
            return
        if jobs:
            jobs[0].deaths += 1
            if self._stalled or jobs[0].deaths == MAX_DEATHS:
                job = jobs.popleft()
                job.settle(Failure(job.url, "reader stalled" if self._stalled else "reader died"))
        self._pool.return_jobs(jobs)
        self._restart = asyncio.get_running_loop().create_task(self._pool.restart(self))

    async def close(self) -> None:
        self._closing = True
        if self._restart:
            await asyncio.wait([self._restart])
        if self._transport:
            self._transport.abort()
        self._let_go()

    def _let_go(self) -> None:
        if self.handle:
            self.handle.kill()
            self.handle.close()
        self.handle = None


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
