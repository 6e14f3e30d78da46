"""A pool of reader processes: each page has a deadline, and a reader that dies is replaced."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from thresher import reasons
from thresher.config import ReadSettings
from thresher.errors import EngineError
from thresher.records import Failure, ReadResult, Reply
from thresher.workers.fork_server import ChildHandle, ForkServer, shared
from thresher.workers.protocol import reader_time
from thresher.workers.reader_worker import FRAME

# If loop and reader woke each other for every page, both would find cold caches. So a reader has enough pages in
# its socket to be busy while its answers are gathered in ours.
IN_FLIGHT = 8  # pages with one reader
GATHER_SECONDS = 0.005
# Readers that one page may kill: the first may have been the choice of the out-of-memory killer.
MAX_DEATHS = 2
START_SECONDS = 60.0  # to load the models before the first page
MAX_FAILED_STARTS = 3  # in a row, after which the fault is ours and not a page's

_log = logging.getLogger(__name__)

K = TypeVar("K")

DO_NOT_START = "reader processes do not start; try: thresher read FILE"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ReadResult | Failure).decode


def reader_count(settings: ReadSettings) -> int:
    """Return the number of readers: as set, or one less than there are processors."""
    return settings.processes or max(1, len(os.sched_getaffinity(0)) - 1)


class _Job:
    """A reply on its way to a reader, and the future of its answer."""

    __slots__ = ("answer", "deaths", "frame", "url")

    def __init__(self, reply: Reply, answer: asyncio.Future[ReadResult | Failure]) -> None:
        body = _encode(reply)
        self.frame = FRAME.pack(len(body)) + body
        self.url = reply.url
        self.answer = answer
        self.deaths = 0

    def resolve(self, answer: ReadResult | Failure) -> None:
        if not self.answer.done():  # the caller may have been cancelled
            self.answer.set_result(answer)


class ReaderPool:
    """A pool of reader processes.

    `read` never raises because of a page: a page that kills or stalls its reader becomes a Failure, and other
    pages are read by another process.
    """

    def __init__(self, settings: ReadSettings, language: str, fork_server: ForkServer | None = None) -> None:
        self._settings = settings
        self._language = language
        self._fork_server = fork_server or shared() or ForkServer()
        self._waiting: deque[_Job] = deque()
        self._readers = [_Reader(self) for _ in range(reader_count(settings))]
        self._fault: EngineError | None = None
        self.backlog = 0  # bytes of replies that wait for a reader or are with one

    @property
    def size(self) -> int:
        """The number of readers."""
        return len(self._readers)

    async def start(self) -> None:
        """Request all readers; they load their models while the first pages wait."""
        for reader in self._readers:
            await self.restart(reader)

    async def read(self, reply: Reply) -> ReadResult | Failure:
        """Read a reply in one of the processes; raise EngineError if no reader can be started."""
        job = _Job(reply, asyncio.get_running_loop().create_future())
        self.backlog += len(job.frame)
        try:
            if self._fault:
                raise self._fault
            self._waiting.append(job)
            self.distribute()
            return await job.answer
        finally:
            self.backlog -= len(job.frame)

    async def read_in_order(
        self, replies: Iterable[tuple[K, Reply]], in_flight: int = IN_FLIGHT
    ) -> AsyncGenerator[tuple[K, Reply, ReadResult | Failure], None]:
        """Yield the page of each reply, with its key, in the order of the replies.

        Beside the page that is awaited, up to `in_flight` replies are with the readers; the next one is taken when
        a page was yielded. Close the iterator to cancel the pages that were not yielded.
        """
        pending: deque[tuple[K, Reply, asyncio.Task[ReadResult | Failure]]] = deque()
        try:
            for key, reply in replies:
                pending.append((key, reply, asyncio.create_task(self.read(reply))))
                if len(pending) > in_flight:
                    yield await _finish_oldest(pending)
            while pending:
                yield await _finish_oldest(pending)
        finally:
            for _, _, task in pending:
                task.cancel()
            await asyncio.gather(*(task for _, _, task in pending), return_exceptions=True)

    def distribute(self) -> None:
        """Give waiting pages to readers with room, the least busy first."""
        while self._waiting:
            reader = min(self._readers, key=_Reader.load)
            if reader.load() >= IN_FLIGHT:
                return
            job = self._waiting.popleft()
            if not job.answer.done():
                reader.send(job)

    def return_jobs(self, jobs: deque[_Job]) -> None:
        """Put pages that a lost reader had not begun before all others."""
        self._waiting.extendleft(reversed(jobs))

    async def restart(self, reader: _Reader) -> None:
        """Start a reader process, or give up if the fork server cannot be kept alive."""
        for _ in range(MAX_FAILED_STARTS):
            try:
                ours = self._fork_server.request(self._language, self._settings)
            except ConnectionError:  # the fork server died before it took the request
                continue
            except OSError as fault:
                self.fail(
                    EngineError(f"reader processes cannot be started: {fault}; try: thresher read FILE")
                )
                return
            await reader.start(ours, self._settings.deadline)
            return
        self.fail(EngineError(DO_NOT_START))

    def replace_fork_server(self) -> None:
        """Stop the fork server, which did not deliver a reader in time; the next request starts another."""
        _log.warning("a reader did not start within %.0f s; its fork server is replaced", START_SECONDS)
        self._fork_server.close()

    def fail(self, fault: EngineError) -> None:
        """Let all waiting and future pages fail, since no reader can be started."""
        _log.error("%s", fault)
        self._fault = fault
        for job in self._waiting:
            if not job.answer.done():
                job.answer.set_exception(fault)
        self._waiting.clear()

    def pids(self) -> list[int]:
        """Return the process numbers of the running readers."""
        return [reader.handle.pid for reader in self._readers if reader.handle]

    def cpu_seconds(self) -> float:
        """Return the processor time of the running readers."""
        return sum(map(_cpu_seconds, self.pids()))

    async def close(self) -> None:
        """End all readers, and the fork server if it is not shared."""
        reader_time.cpu_seconds += self.cpu_seconds()
        for reader in self._readers:
            await reader.close()
        if self._fork_server is not shared():
            self._fork_server.close()


async def _finish_oldest(
    pending: deque[tuple[K, Reply, asyncio.Task[ReadResult | Failure]]],
) -> tuple[K, Reply, ReadResult | Failure]:
    key, reply, task = pending[0]
    page = await task
    pending.popleft()
    return key, reply, page


class _Reader(asyncio.Protocol):
    """Our end of one reader process. It answers in order, so it is reading the first unanswered page."""

    def __init__(self, pool: ReaderPool) -> None:
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
        self.handle: ChildHandle | None = None  # set when it is ready

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
        """Give the reader so many seconds from now on; 0 stops the clock."""
        if self._deadline:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._stall) if seconds else None

    def _stall(self) -> None:
        self._stalled = True
        if self.handle:
            self.handle.kill()
        elif self._transport:
            self._pool.replace_fork_server()
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
                self._jobs.popleft().resolve(_decode(frame))
            else:
                with suppress(ProcessLookupError):  # it has died, which its socket will report
                    self.handle = ChildHandle(msgspec.msgpack.decode(frame, type=int))
            self._set_clock(self._seconds if self._jobs else 0.0)
        self._pool.distribute()
        if self._jobs and not self._buffer and self._transport:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(GATHER_SECONDS, self._resume)

    def _resume(self) -> None:
        if self._transport and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, _: Exception | None) -> None:
        """Blame the page that the lost process was reading, unless we closed it, and start another reader."""
        self._transport = None
        jobs, self._jobs = self._jobs, deque()
        self._set_clock(0.0)
        self._failed_starts = 0 if self.handle else self._failed_starts + 1
        self._release()
        if self._closing:
            return
        if self._failed_starts == MAX_FAILED_STARTS:
            self._pool.fail(EngineError(DO_NOT_START))
            return
        if jobs:
            reason = reasons.READER_STALLED if self._stalled else reasons.READER_DIED
            _log.warning("%s at %s; it is restarted", reason, jobs[0].url)
            jobs[0].deaths += 1
            if self._stalled or jobs[0].deaths == MAX_DEATHS:
                job = jobs.popleft()
                job.resolve(Failure(job.url, reason))
        else:
            _log.warning("a reader ended without a page at hand; it is restarted")
        self._pool.return_jobs(jobs)
        self._restart = asyncio.get_running_loop().create_task(self._pool.restart(self))

    async def close(self) -> None:
        self._closing = True
        if self._restart:
            await asyncio.wait([self._restart])
        if self._transport:
            self._transport.abort()
        self._release()

    def _release(self) -> None:
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
