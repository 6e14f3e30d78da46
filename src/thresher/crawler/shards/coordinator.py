"""The coordinator of a crawl in shards: starts processes on an engine and replaces lost ones.

All decisions are made by `Leader`; this module gives it network, processes and a clock.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from thresher.config import Config
from thresher.crawler.clock import SYSTEM_CLOCK, Clock
from thresher.crawler.shards.leader import Leader
from thresher.crawler.shards.protocol import (
    MAX_FIRST_FRAME_BYTES,
    Frames,
    Heartbeat,
    HeartbeatReply,
    ProtocolError,
    is_same_token,
)
from thresher.crawler.shards.takeover import issue
from thresher.crawler.stop_reasons import NO_HOST_REACHED, Ending
from thresher.errors import CrawlError
from thresher.files.log_files import format_in_use
from thresher.store import partition
from thresher.store.corpus_files import CorpusError, CorpusFiles
from thresher.store.shard_layout import home, newest
from thresher.store.status_totals import merged
from thresher.workers.protocol import Call, Engine, RunningCall

WORK = "thresher.crawler.shards.worker:work"
TICK_S = 0.2  # between two looks at the processes
PROGRESS_S = 1.0  # between two reports of progress
BALANCE_S = 30.0  # between two looks at whether a shard would have more room on another machine

_frames: Frames[Heartbeat] = Frames(Heartbeat)
_log = logging.getLogger(__name__)


class Coordinator:
    """The coordinator of one crawl."""

    def __init__(
        self,
        directory: Path,
        config: Config,
        engine: Engine,
        *,
        connect_to: str = "",
        progress: Callable[[dict[str, Any]], None] = lambda _: None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Prepare the shards of a corpus in new epochs; `progress` is called with the statistics of all."""
        self._directory = directory
        self._config = config
        self._engine = engine
        self._connect_to = connect_to
        self._progress = progress
        self._clock = clock
        self._token = secrets.token_hex()
        self._running: dict[int, RunningCall] = {}
        self._fault: CrawlError | None = None
        self._address = ("", 0)
        self._connections: set[asyncio.StreamWriter] = set()
        count = config.shards.count
        folders = [newest(home(directory, number)) for number in range(count)]
        before = [(folder and partition.status(folder)) or {} for folder in folders]
        self._leader = Leader(
            [issue(home(directory, number)) for number in range(count)],
            config.budget,
            config.shards.lease,
            clock.now,
            fetched=[status.get("pages", {}).get("fetched", 0) for status in before],
            seconds=max((status.get("time", {}).get("wall_s", 0.0) for status in before), default=0.0),
        )

    def stop(self) -> None:
        """Let all shards commit and end."""
        self._leader.stop()

    async def run(self) -> Ending:
        """Crawl until nothing is left, a budget is spent or `stop` is called."""
        server = await asyncio.start_server(self._receive, self._engine.address, 0)
        self._address = server.sockets[0].getsockname()[:2]
        reported = balanced = self._clock.now()
        try:
            await self._wait_for_earlier_shards()
            while self._leader.ending is None or self._running:
                await self._start()
                self._check_processes()
                self._at_work().touch()
                if self._clock.now() - reported >= PROGRESS_S:
                    reported = self._clock.now()
                    self._report_progress()
                if self._clock.now() - balanced >= BALANCE_S:
                    balanced = self._clock.now()
                    self._balance()
                await self._clock.sleep(TICK_S)
            self._at_work().unlink(missing_ok=True)
        finally:
            for running in self._running.values():
                running.kill()
            for connection in self._connections:
                connection.close()
            server.close()
        if self._fault:
            raise self._fault
        if self._leader.ending == NO_HOST_REACHED:
            raise CrawlError(NO_HOST_REACHED.detail)
        with suppress(CorpusError):  # it was stopped before the first commit
            self._progress(CorpusFiles(self._directory, self._config).stats())
        return self._leader.ending

    def _at_work(self) -> Path:
        """Return the file that a working coordinator touches."""
        return self._directory / "shards" / "at-work"

    async def _wait_for_earlier_shards(self) -> None:
        """Wait for the leases under a killed coordinator to end: no host is visited by two processes."""
        with suppress(FileNotFoundError):
            since = self._clock.wall() - self._at_work().stat().st_mtime
            await self._clock.sleep(
                min(max(self._config.shards.lease - since, 0.0), self._config.shards.lease)
            )

    async def _start(self) -> None:
        for number in self._leader.to_start():
            call = Call(
                WORK,
                {
                    "directory": str(self._directory.absolute()),
                    "number": number,
                    "epoch": self._leader.shards[number].epoch,
                    "address": self._address[0],
                    "port": self._address[1],
                    "token": self._token,
                    "connect_to": self._connect_to,
                    "log_format": format_in_use(),
                },
            )
            # In a thread: an engine may need a while to place a process, and heartbeats must be answered meanwhile.
            self._running[number] = await asyncio.to_thread(self._engine.start, call)
            self._leader.started(number)

    def _check_processes(self) -> None:
        """Replace processes that have ended or are silent."""
        self._leader.check_end()
        for number, running in list(self._running.items()):
            ended = running.poll()
            if ended is None:
                continue
            del self._running[number]
            result = ended.result if isinstance(ended.result, dict) else {}
            if fault := result.get("fault"):
                self._fail(fault)
            self._replace(number, result.get("lost", ended.fault), ended.log)
        for number in self._leader.silent():
            if number in self._running:
                self._running.pop(number).kill()
                self._replace(number, "no heartbeat for longer than its lease", "")

    def _replace(self, number: int, why: str, log: str) -> None:
        """Give up the process of a shard that has ended; `why` is "" if it ended as it should."""
        if self._leader.ending:  # no shard is needed any more
            if why:
                self._fail(f"shard {number} was lost at the end ({why}); all its commits are safe")
            return
        epoch = issue(home(self._directory, number))
        if why:
            _log.warning("shard %d was lost (%s); epoch %d takes over", number, why, epoch)
        else:
            _log.info("shard %d moves; it continues in epoch %d", number, epoch)
        try:
            self._leader.vacate(number, epoch, why)
        except CrawlError as fault:
            self._fail(f"{fault}\n{log}".strip())

    def _fail(self, message: str) -> None:
        """Let all other shards commit and end; then the crawl fails with this message."""
        self._fault = self._fault or CrawlError(message)
        self._leader.stop()

    def _balance(self) -> None:
        """Move a shard that would have more room on another machine: it commits, ends, and is started there."""
        for number, running in self._running.items():
            if self._leader.is_stable and running.is_crowded():
                self._leader.move(number)
                return

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the heartbeats of a shard until it is silent or superseded."""
        self._connections.add(writer)
        address = writer.get_extra_info("peername")[0]
        with suppress(ProtocolError, OSError):
            while True:
                heartbeat = await _frames.read(reader, MAX_FIRST_FRAME_BYTES)
                if not is_same_token(heartbeat.token, self._token):
                    break
                reply: HeartbeatReply | None = self._leader.receive(heartbeat, address)
                if reply is None:
                    break
                writer.write(_frames.pack(reply))
        self._connections.discard(writer)
        writer.close()

    def _report_progress(self) -> None:
        statuses = [shard.status for shard in self._leader.shards]
        if any(statuses):
            self._progress(merged(statuses, self._config.budget))
