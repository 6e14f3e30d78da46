"""A crawl process for one shard: takes over the shard's files, crawls, and reports to the coordinator."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from socket import gethostname
from typing import Any, NamedTuple, Protocol

import uvloop
from msgspec.structs import replace

from thresher.config import Config, load, parse_address
from thresher.crawler.clock import SYSTEM_CLOCK, Clock
from thresher.crawler.coordination import Coordination
from thresher.crawler.crawl_state import CrawlState
from thresher.crawler.engine import Crawl
from thresher.crawler.manners.network_status import NetworkStatus
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.parts import crawl_parts
from thresher.crawler.process_limits import fault_of_disk, raise_file_limit
from thresher.crawler.seeds import known_seeds
from thresher.crawler.shards.heartbeat import ShardLease, Superseded, Unreachable
from thresher.crawler.shards.outbox import Outbox, OutboxCounts
from thresher.crawler.shards.page_grants import PageGrants
from thresher.crawler.shards.peers import PeerExchange
from thresher.crawler.shards.protocol import Heartbeat, HeartbeatReply, PeerRequest, ReserveAddress
from thresher.crawler.shards.reservations import SharedAddresses, SharedTexts
from thresher.crawler.shards.takeover import EpochSnapshots, take_over
from thresher.crawler.stop_reasons import Ending
from thresher.crawler.storage.crawl_writer import CrawlWriter
from thresher.errors import CrawlError, DataError, EngineError, UsageError
from thresher.files.log_files import LogFormat, log_to_files
from thresher.records import Candidate
from thresher.store.shard_layout import Shard, home

IDLE_SNAPSHOT_S = 1.0  # between snapshots of an idle shard whose links others wait for
# With more processes than processors, the loop runs after its readers: then it finds more to do and
# wakes them less often. Four shards on two processors needed a tenth less processor time per page.
LOOP_NICENESS = 5

_log = logging.getLogger(__name__)


def work(
    directory: str,
    number: int,
    epoch: int,
    address: str,
    port: int,
    token: str,
    connect_to: str,
    log_format: LogFormat | None = None,
) -> dict[str, str]:
    """Crawl one shard until the coordinator at an address and a port ends it.

    Returns {} then, and also if another process has taken over; {"lost": reason} if another process may succeed,
    {"fault": message} if the crawl cannot continue.

    This is the entry of a process. With `log_format`, its log goes to a file of this epoch alone, since shards run
    on several machines, and a stale process may still be writing.
    """
    name = f"shard-{number:02d}-e{epoch:06d}"
    with log_to_files(Path(directory), name, log_format=log_format) if log_format else nullcontext():
        return _work_and_report(directory, number, epoch, (address, port), token, connect_to)


def _work_and_report(
    directory: str, number: int, epoch: int, address: tuple[str, int], token: str, connect_to: str
) -> dict[str, str]:
    try:
        config = _config(Path(directory))
        shard = Shard(number, config.shards.count)
        lease = ShardLease(address, config.shards.lease, Heartbeat(token, number, epoch))
        lease.start()
        try:
            uvloop.run(_work(Path(directory), config, shard, epoch, lease, connect_to))
        finally:
            lease.close()
    except Superseded as fault:
        _log.warning("%s", fault)
        return {}
    except Unreachable as fault:
        return {"lost": str(fault)}
    except OSError as fault:
        return {"fault": f"shard {number}: {fault_of_disk(Path(directory), fault)}"}
    except (CrawlError, UsageError, DataError, EngineError) as fault:
        return {"fault": str(fault)}
    except Exception as fault:  # the edge of the process: it would fail in the same way elsewhere
        return {"fault": f"shard {number}: {fault}\n{traceback.format_exc()}"}
    return {}


def _config(directory: Path) -> Config:
    try:
        return load(directory)
    except UsageError as fault:
        raise UsageError(
            f"{fault}\n(on {gethostname()}: all machines must see the corpus under one path, {directory})"
        ) from None


async def _work(
    directory: Path, config: Config, shard: Shard, epoch: int, lease: ShardLease, connect_to: str
) -> None:
    """Take over the shard's files and crawl, in the corpus or in a scratch folder of this machine."""
    scratch = Path(config.shards.scratch) if config.shards.scratch else None
    shard_home = home(directory, shard.number)
    # Taking over and opening may take long; the thread of the lease sends heartbeats meanwhile.
    folder = take_over(shard_home, epoch, scratch)
    snapshots = EpochSnapshots(folder, shard_home, epoch) if scratch else None
    try:
        await _crawl(directory, folder, config, shard, epoch, lease, snapshots, connect_to)
    except Superseded:  # committed pages were copied, or belong to another process
        _remove(scratch, folder)
        raise
    _remove(scratch, folder)


def _remove(scratch: Path | None, folder: Path) -> None:
    if scratch:
        shutil.rmtree(folder.parent, ignore_errors=True)


async def _crawl(
    directory: Path,
    folder: Path,
    config: Config,
    shard: Shard,
    epoch: int,
    lease: ShardLease,
    snapshots: EpochSnapshots | None,
    connect_to: str,
) -> None:
    # The coordinator watches the budgets, which are for the whole crawl.
    own = replace(
        config,
        budget=replace(config.budget, max_pages=0, max_bytes=0, max_time=0.0),
        read=replace(config.read, processes=config.read.processes or 1),
    )
    raise_file_limit(own.fetch.connections)
    target = parse_address(connect_to) if connect_to else None
    with closing(CrawlState(folder, own, shard=shard, root=directory)) as state:
        worker = ShardWorker(config, epoch, lease, state.writer, state.politeness, shard, snapshots)
        async with Crawl(state, crawl_parts(own, target), coordination=worker.coordination) as crawl:
            # After the readers were started, which keep their place, as does the thread of the lease.
            os.nice(LOOP_NICENESS)
            try:
                await worker.serve(crawl)
                crawl.seed(known_seeds(directory))
                crawl.commit()
                await crawl.run()
            finally:
                try:
                    with suppress(Superseded):  # then all files belong to another process
                        await worker.finish()
                finally:
                    await worker.close()


class CrawlControl(Protocol):
    """The crawl behind a shard's connections."""

    def receive(self, links: Sequence[Candidate]) -> None:
        """Queue links from another shard."""

    def wake(self) -> None:
        """Look whether there is something to do."""

    def fail(self, fault: BaseException) -> None:
        """End with a fault."""


class _LoopReport(NamedTuple):
    """The loop's report about itself, as of one moment."""

    idle: Ending | None = None  # why there is nothing to do
    received: int = 0  # batches of links
    outbox: int = 0


class ShardWorker:
    """One shard among others: the lifecycle of its crawl, its heartbeats, and its connections to other shards."""

    def __init__(
        self,
        config: Config,
        epoch: int,
        lease: ShardLease,
        writer: CrawlWriter,
        politeness: Politeness,
        shard: Shard,
        snapshots: EpochSnapshots | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Connect an open state with a running lease. `snapshots` copies commits from a scratch folder."""
        self._snapshot_seconds = config.shards.snapshot
        self._shard = shard
        self._lease = lease
        self._writer = writer
        self._snapshots = snapshots
        self._clock = clock
        self._opening = lease.opening
        self.outbox = Outbox(writer.kv, shard)
        self.exchange = PeerExchange(shard, epoch, lease.opening.token, self.outbox, clock)
        self._addresses = SharedAddresses(shard, politeness, self.exchange, clock)
        self._texts = SharedTexts(shard, writer, self.exchange, clock)
        self._network = NetworkStatus()
        self.coordination = Coordination(
            self.outbox, self._addresses, self._texts, self, self._network, shard
        )
        self._grants = PageGrants(writer.stats.fetched)
        self._crawl: CrawlControl | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._port = 0
        self._reply = HeartbeatReply(0, limited=True)
        self._report = _LoopReport()
        self._status: dict[str, Any] | None = None
        self._commits = 0
        self._copied = clock.now()
        self._held = OutboxCounts()  # as of the last snapshot
        self._copying: tuple[Future[None], OutboxCounts] | None = None
        self._copier = ThreadPoolExecutor(1, thread_name_prefix="snapshot")

    async def serve(self, crawl: CrawlControl) -> None:
        """Accept connections of other shards for a crawl, and report it to the coordinator from now on."""
        self._crawl = crawl
        self._port = await self.exchange.serve(self._lease.address, self)
        self._loop = asyncio.get_running_loop()
        self._lease.reporter = self
        self._lease.hurry()

    async def finish(self) -> None:
        """Copy the last commit out of the scratch folder; raise Superseded if another process has taken over."""
        if self._snapshots and self._commits:
            if self._copying:
                await asyncio.wrap_future(self._copying[0])
            self._writer.kv.forget_pending()
            await asyncio.to_thread(self._snapshots.take(self._writer.kv))

    async def close(self) -> None:
        """Close all connections; the lease is not ended."""
        self._lease.reporter = None
        self._loop = None
        await self.exchange.close()
        self._copier.shutdown(wait=True)

    # heartbeats, in the thread of the lease

    def heartbeat(self) -> Heartbeat:
        """Return the report to the coordinator."""
        stats, report = self._writer.stats, self._report
        status, self._status = self._status, None
        fetched, granted = self._grants.left(lambda: stats.fetched)
        return replace(
            self._opening,
            port=self._port,
            version=self._reply.version,
            fetched=fetched,
            granted=granted,
            requests_pages=self._grants.requested,
            downloaded=stats.downloaded,
            idle=report.idle,
            received=report.received,
            outbox=report.outbox,
            outcomes=sum(stats.outcomes.values()),
            online=self._network.online,
            status=status,
        )

    def receive_reply(self, reply: HeartbeatReply) -> None:
        """Take a grant at once, since the next heartbeat reports it, and the rest of the reply in the loop."""
        self._grants.add(reply.grant)
        if self._loop:
            self._loop.call_soon_threadsafe(self._take_reply, reply)

    def _take_reply(self, reply: HeartbeatReply) -> None:
        if reply.peers is not None:
            self.exchange.update(reply.peers)
        self._network.online = self._network.online or reply.online
        self._reply = reply
        self._wake()

    def lease_lost(self) -> None:
        """Let the loop notice that the lease has ended."""
        if self._loop:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._crawl:
            self._crawl.wake()

    # lifecycle, in the loop

    def check(self) -> None:
        """Raise Superseded if the lease has ended, and faults of the last snapshot."""
        if not self._lease.holds:
            raise Superseded(f"shard {self._shard.number} lost its lease; another process takes it over")
        if self._copying and self._copying[0].done():
            self._copying[0].result()

    def may_fetch(self, pages: int, wanted: bool = True) -> bool:
        """Return whether that many pages may have been fetched; request more before they are used up."""
        if not self._lease.holds or not self._reply.version:
            return False
        if not self._reply.limited:
            return True
        if wanted and not self._report.idle and self._grants.are_low(pages):
            self._grants.requested = True
            self._lease.hurry()
        return self._grants.allow(pages)

    def ending(self, reason: Ending | None, under_way: int) -> Ending | None:
        """Report whether this shard is idle; return the coordinator's decision."""
        self.check()
        idle = None if under_way else reason
        if idle:  # other shards get all pages, also pages that were requested before and granted since
            self._grants.give_back(self._writer.stats.fetched)
        elif self._reply.return_pages:
            self._grants.give_back(self._writer.stats.fetched + under_way)
            self._reply = replace(self._reply, return_pages=False)
            self._lease.hurry()
        if bool(idle) != bool(self._report.idle):
            self._lease.hurry()
        self._report = _LoopReport(idle, self.outbox.received, self.outbox.outstanding)
        return self._reply.ending

    def flush(self) -> None:
        """Put the outbox into the next commit."""
        self.outbox.flush()

    def committed(self, status: dict[str, Any]) -> None:
        """Send grants of texts and, once the commit is durable, links and acknowledgements."""
        self._commits += 1
        self._status = status
        counts = self.outbox.committed()
        self._texts.committed()
        if self._snapshots:
            self._copy(self._snapshots, counts)
        else:
            self._make_durable(counts)

    def _make_durable(self, counts: OutboxCounts) -> None:
        self.outbox.durable(counts)
        self.exchange.durable()

    def _copy(self, snapshots: EpochSnapshots, counts: OutboxCounts) -> None:
        """Take a snapshot if it is time; the commit of the last one is durable when it is copied."""
        if self._copying and self._copying[0].done():
            self._copying[0].result()
            self._make_durable(self._copying[1])
            self._copying = None
        if not self._copying and self._clock.now() - self._copied >= self._snapshot_interval(counts):
            self._copied, self._held = self._clock.now(), counts
            self._copying = self._copier.submit(snapshots.take(self._writer.kv)), counts

    def _snapshot_interval(self, counts: OutboxCounts) -> float:
        """Return the seconds between two snapshots: few if this shard is idle and others wait for its links."""
        is_waited_for = self._report.idle is not None and counts != self._held
        return min(IDLE_SNAPSHOT_S, self._snapshot_seconds) if is_waited_for else self._snapshot_seconds

    # messages of other shards

    def receive(self, links: Sequence[Candidate]) -> None:
        """Queue links from another shard."""
        assert self._crawl
        self._crawl.receive(links)

    def answer(self, request: PeerRequest, reply: Callable[[float | str], None]) -> None:
        """Answer another shard's request for an address or a text."""
        about = request.about
        if isinstance(about, ReserveAddress):
            reply(self._addresses.answer(about))
        else:
            self._texts.answer(about, reply)

    def fail(self, fault: BaseException) -> None:
        """End the crawl with a fault."""
        assert self._crawl
        self._crawl.fail(fault)
