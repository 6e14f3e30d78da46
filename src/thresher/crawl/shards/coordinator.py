"""The coordinator: starts the shards of a crawl on an engine, hears from them, replaces those that are lost."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from thresher.config import Config
from thresher.crawl.ending import CrawlFault, Ending
from thresher.crawl.shards.epochs import issue
from thresher.crawl.shards.lead import Lead
from thresher.crawl.shards.messages import FIRST, Beat, Broken, Frames, Word, same
from thresher.engine.calls import Call, Engine, Running
from thresher.store import parts
from thresher.store.corpus import Corpus, CorpusError
from thresher.store.figures import merged
from thresher.store.shards import home, newest

WORK = "thresher.crawl.shards.member:work"
TICK = 0.2  # seconds between two looks at what has become of the shards, …
TELL = 1.0  # … between two reports, …
BALANCE = 30.0  # … and between two looks at whether some would have more room elsewhere

_frames: Frames[Beat] = Frames(Beat)


class Coordinator:
    """Leads a crawl in shards until it ends."""

    def __init__(
        self,
        directory: Path,
        config: Config,
        engine: Engine,
        *,
        connect_to: str = "",
        progress: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> None:
        self._directory = directory
        self._config = config
        self._engine = engine
        self._connect_to = connect_to
        self._progress = progress
        self._token = secrets.token_hex()
        self._running: dict[int, Running] = {}
        self._fault: CrawlFault | None = None
        self._place = ("", 0)
        self._connections: set[asyncio.StreamWriter] = set()
        count = config.shards.count
        folders = [newest(home(directory, number)) for number in range(count)]
        before = [(folder and parts.status(folder)) or {} for folder in folders]
        self._lead = Lead(
            [issue(home(directory, number)) for number in range(count)],
            config.budget,
            config.shards.lease,
            time.monotonic,
            fetched=[status.get("pages", {}).get("fetched", 0) for status in before],
            seconds=max((status.get("time", {}).get("wall_s", 0.0) for status in before), default=0.0),
        )

    def stop(self) -> None:
        """Commit and end."""
        self._lead.stop()

    async def run(self) -> Ending:
        """Crawl until nothing is left, a budget is spent or `stop` is called."""
        server = await asyncio.start_server(self._hear, self._engine.address, 0)
        self._place = server.sockets[0].getsockname()[:2]
        told = balanced = time.monotonic()
        try:
            await self._wait_for_forerunners()
            while self._lead.ending is None or self._running:
                await self._start()
                self._look()
                self._at_work().touch()
                if time.monotonic() - told >= TELL:
                    told = time.monotonic()
                    self._tell()
                if time.monotonic() - balanced >= BALANCE:
                    balanced = time.monotonic()
                    self._balance()
                await asyncio.sleep(TICK)
            self._at_work().unlink(missing_ok=True)
        finally:
            for running in self._running.values():
                running.kill()
            for connection in self._connections:
                connection.close()
            server.close()
        if self._fault:
            raise self._fault
        with suppress(CorpusError):  # it was stopped before anything was committed
            self._progress(Corpus(self._directory, self._config).stats())
        return self._lead.ending

    def _at_work(self) -> Path:
        return self._directory / "shards" / "at-work"

    async def _wait_for_forerunners(self) -> None:
        """Shards of one that was killed may not have noticed yet, and nobody is to be visited by two of us."""
        with suppress(FileNotFoundError):
            since = time.time() - self._at_work().stat().st_mtime
            await asyncio.sleep(min(max(self._config.shards.lease - since, 0.0), self._config.shards.lease))

    async def _start(self) -> None:
        for number in self._lead.to_start():
            call = Call(
                WORK,
                {
                    "directory": str(self._directory.absolute()),
                    "number": number,
                    "epoch": self._lead.seats[number].epoch,
                    "address": self._place[0],
                    "port": self._place[1],
                    "token": self._token,
                    "connect_to": self._connect_to,
                },
            )
            # In a thread, for it may take a while to find a place, and shards want to be heard meanwhile.
            self._running[number] = await asyncio.to_thread(self._engine.start, call)
            self._lead.call(number)

    def _look(self) -> None:
        """See who has ended, and who is silent."""
        self._lead.look()
        for number, running in list(self._running.items()):
            ended = running.poll()
            if ended is None:
                continue
            del self._running[number]
            if isinstance(ended.result, dict) and (fault := ended.result.get("fault")):
                self._fail(fault)
            self._replace(number, ended.log)
        for number in self._lead.silent():
            if number in self._running:
                self._running.pop(number).kill()
                self._replace(number, "")

    def _replace(self, number: int, log: str) -> None:
        if self._lead.ending:  # nobody is needed any more
            return
        try:
            self._lead.vacate(number, issue(home(self._directory, number)))
        except CrawlFault as fault:
            self._fail(f"{fault}.\n{log}".strip())

    def _fail(self, message: str) -> None:
        """Let all others commit and end, and tell why then."""
        self._fault = self._fault or CrawlFault(message)
        self._lead.stop()

    def _balance(self) -> None:
        """Move a shard, if one would have more room elsewhere: it commits, ends, and is started there."""
        for number, running in self._running.items():
            if self._lead.is_well and running.is_crowded():
                self._lead.move(number)
                return

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Listen to a shard for as long as it speaks, and is the one that counts."""
        self._connections.add(writer)
        address = writer.get_extra_info("peername")[0]
        with suppress(Broken, OSError):
            while True:
                beat = await _frames.read(reader, FIRST)
                if not same(beat.token, self._token):
                    break
                word: Word | None = self._lead.hear(beat, address)
                if word is None:
                    break
                writer.write(_frames.pack(word))
        self._connections.discard(writer)
        writer.close()

    def _tell(self) -> None:
        statuses = [seat.status for seat in self._lead.seats]
        if any(statuses):
            self._progress(merged(statuses, self._config.budget))
