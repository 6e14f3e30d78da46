"""A shard at work: a crawl like any other, with company."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from socket import gethostname
from typing import Any, NamedTuple

import uvloop
import xxhash
from msgspec.structs import replace

from thresher.config import Config, ConfigError, load
from thresher.crawl.company import Company, Receive
from thresher.crawl.ending import CrawlFault, Ending
from thresher.crawl.ledger import Ledger
from thresher.crawl.loop import Crawl
from thresher.crawl.politeness import Politeness
from thresher.crawl.seeds import known_seeds
from thresher.crawl.shards.epochs import Snapshots, take_over
from thresher.crawl.shards.exchange import Exchange
from thresher.crawl.shards.lease import Lease, Superseded, Unreachable
from thresher.crawl.shards.letters import Counts, Letters
from thresher.crawl.shards.messages import Beat, MayVisit, Question, WhoHas, Word
from thresher.crawl.start import fault_of_disk, parse_address, raise_file_limit
from thresher.engine.local import EngineFault
from thresher.page import Candidate
from thresher.store.files import StoreError
from thresher.store.shards import Shard, home

CLAIM_PATIENCE = 30.0  # seconds for another shard to say whether a text is new; then it is thought so
IDLE_SNAPSHOT = 1.0  # … between snapshots of one that has nothing to do
ADDRESS_SLACK = 0.25  # … and whether an address may be visited, which is an answer only for so long; …
ADDRESS_WAIT = 1.0  # … then it is asked again after so many
# Where processes are more than processors, the loop's turn comes after its readers': then it finds more to do, and
# wakes them less often (four shards on two processors: a tenth less processor time for a page).
BEHIND_READERS = 5  # as `nice` has it


def work(
    directory: str,
    number: int,
    epoch: int,
    address: str,
    port: int,
    token: str,
    connect_to: str,
) -> dict[str, str]:
    """Crawl one shard until the coordinator at an address and a port says that it is enough.

    Returns {} then, and also if another has taken over; {"lost": …} if it may do better elsewhere or later;
    {"fault": …} if the crawl cannot go on.
    """
    try:
        config = _config(Path(directory))
        member = Member(config, Shard(number, config.shards.count), epoch, token, (address, port))
        member.lease.start()
        try:
            uvloop.run(_work(Path(directory), config, member, connect_to))
        finally:
            member.lease.close()
    except Superseded:
        return {}
    except Unreachable as fault:
        return {"lost": str(fault)}
    except OSError as fault:
        return {"fault": f"shard {number}: {fault_of_disk(Path(directory), fault)}"}
    except (CrawlFault, ConfigError, StoreError, EngineFault) as fault:
        return {"fault": str(fault)}
    except Exception as fault:  # the edge: it would be the same in another process
        return {"fault": f"shard {number}: {fault}\n{traceback.format_exc()}"}
    return {}


def _config(directory: Path) -> Config:
    try:
        return load(directory)
    except ConfigError as fault:
        raise ConfigError(
            f"{fault}\n(on {gethostname()}: all machines must see the corpus under one path, {directory})"
        ) from None


async def _work(directory: Path, config: Config, member: Member, connect_to: str) -> None:
    terms = config.shards
    place = home(directory, member.shard.number)
    scratch = Path(terms.scratch) if terms.scratch else None
    # Opening may take long; the lease is a thread's, which speaks meanwhile.
    folder = take_over(place, member.epoch, scratch)
    if scratch:
        member.snapshots = Snapshots(folder, place, member.epoch)
    try:
        await _crawl(directory, folder, config, member, connect_to)
    except Superseded:  # what was committed has been copied, or all is another's
        _leave(scratch, folder)
        raise
    _leave(scratch, folder)


def _leave(scratch: Path | None, folder: Path) -> None:
    if scratch:
        shutil.rmtree(folder.parent, ignore_errors=True)


async def _crawl(directory: Path, folder: Path, config: Config, member: Member, connect_to: str) -> None:
    # Budgets are those of the whole crawl, which the coordinator sees to.
    own = replace(
        config,
        budget=replace(config.budget, pages=0, bytes=0, seconds=0.0),
        read=replace(config.read, processes=config.read.processes or 1),
    )
    raise_file_limit(own.fetch.connections)
    target = parse_address(connect_to) if connect_to else None
    async with Crawl(folder, own, connect_to=target, company=member, root=directory) as crawl:
        os.nice(BEHIND_READERS)  # now, for they have been started; the lease's thread keeps its place
        try:
            await member.open()
            crawl.seed(known_seeds(directory))
            crawl.commit()
            await crawl.run()
        finally:
            try:
                with suppress(Superseded):  # then all is another's
                    await member.finish()
            finally:
                await member.close()


class _Said(NamedTuple):
    """What the loop says of itself, all at one moment."""

    idle: Ending | None = None  # why there is nothing to do
    received: int = 0  # letters
    outbox: int = 0


class Member(Company):
    """One shard among others: what its loop may do, what it says, and what it is told."""

    def __init__(
        self, config: Config, shard: Shard, epoch: int, token: str, coordinator: tuple[str, int]
    ) -> None:
        self.shard = shard
        self.epoch = epoch
        self.snapshots: Snapshots | None = None
        self._config = config
        self._token = token
        self._port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._word = Word(0, limited=True)
        self._limit = 0  # pages that may have been fetched in all …
        self._limiting = threading.Lock()  # … as the loop and the thread of the lease agree …
        self._low = 0  # … where as many or fewer are left to be started, …
        self._asks = False  # … more are asked for
        self._said = _Said()
        self._commits = 0
        self._status: dict[str, Any] | None = None
        self._claims: list[Callable[[float | str], None]] = []  # to be answered after the next commit
        self._copied = time.monotonic()
        self._held = Counts()  # of letters, as of the last snapshot
        self._copying: tuple[Future[None], Counts] | None = None
        self._copier = ThreadPoolExecutor(1, thread_name_prefix="snapshot")
        self.lease = Lease(coordinator, config.shards.lease, self._beat, self._heed, self._wake)

    def join(
        self,
        ledger: Ledger,
        polite: Politeness,
        receive: Receive,
        news: Callable[[], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._polite = polite
        self._news = news
        self._letters = Letters(ledger.state, self.shard)
        self._exchange = Exchange(
            self.shard, self.epoch, self._token, self._letters, receive, self._answer, fail
        )

    async def open(self) -> None:
        """Be there for others."""
        self._limit = self._ledger.figures.fetched
        self._port = await self._exchange.open(self.lease.address)
        self._loop = asyncio.get_running_loop()
        self.lease.hurry()

    async def finish(self) -> None:
        """Make last what was committed; Superseded if another has taken over."""
        if self.snapshots and self._commits:
            if self._copying:
                await asyncio.wrap_future(self._copying[0])
            self._ledger.state.forget_pending()
            await asyncio.to_thread(self.snapshots.take(self._ledger.state))

    async def close(self) -> None:
        self._loop = None
        await self._exchange.close()
        self._copier.shutdown(wait=True)

    # the coordinator; in the thread of the lease

    def _beat(self) -> Beat:
        if not self._loop:
            return Beat(self._token, self.shard.number, self.epoch)
        figures, said = self._ledger.figures, self._said
        status, self._status = self._status, None
        with self._limiting:
            fetched = figures.fetched
            holds = max(self._limit - fetched, 0)
        return Beat(
            token=self._token,
            shard=self.shard.number,
            epoch=self.epoch,
            port=self._port,
            version=self._word.version,
            fetched=fetched,
            holds=holds,
            asks=self._asks,
            downloaded=figures.downloaded,
            idle=said.idle,
            received=said.received,
            outbox=said.outbox,
            outcomes=sum(figures.outcomes.values()),
            reached=self.somebody_answers,
            status=status,
        )

    def _heed(self, word: Word) -> None:
        with self._limiting:  # here, for the next beat is to tell of it
            self._limit += word.grant
            if word.grant:  # where nothing is left, the next beat asks again
                self._low, self._asks = word.grant // 2, False
        if self._loop:
            self._loop.call_soon_threadsafe(self._take, word)

    def _take(self, word: Word) -> None:
        """In the loop again."""
        if word.peers is not None:
            self._exchange.update(word.peers)
        self.somebody_answers = self.somebody_answers or word.reached
        self._word = word
        self._news()

    def _wake(self) -> None:
        if self._loop:
            self._loop.call_soon_threadsafe(self._news)

    # the loop

    def check(self) -> None:
        if not self.lease.holds:
            raise Superseded(f"shard {self.shard.number} was not heard of, and is another's by now")
        if self._copying and self._copying[0].done():
            self._copying[0].result()

    def may_fetch(self, pages: int, wanted: bool = True) -> bool:
        if not self.lease.holds or not self._word.version:
            return False
        if not self._word.limited:
            return True
        # In time, for those under way are not to be waited for.
        if wanted and pages + self._low > self._limit and not self._asks and not self._said.idle:
            self._asks = True
            self.lease.hurry()
        return pages <= self._limit

    def ending(self, reason: Ending | None, under_way: int) -> Ending | None:
        self.check()
        idle = None if under_way else reason
        if idle:  # what is left is for others, also what was asked for before and granted since
            self._give_back(0)
        elif self._word.returns:
            self._give_back(under_way)
            self._word = replace(self._word, returns=False)
            self.lease.hurry()
        if bool(idle) != bool(self._said.idle):
            self.lease.hurry()
        self._said = _Said(idle, self._letters.received, self._letters.outstanding)
        return self._word.ending

    def _give_back(self, under_way: int) -> None:
        """All pages that may be fetched but those that are being fetched."""
        with self._limiting:
            self._limit, self._asks = min(self._limit, self._ledger.figures.fetched + under_way), False

    def flush(self) -> None:
        self._letters.flush()

    def committed(self, status: dict[str, Any]) -> None:
        self._commits += 1
        self._status = status
        counts = self._letters.committed()
        for answer in self._claims:
            answer("")
        self._claims = []
        if not self.snapshots:
            self._letters.durable(counts)
            self._exchange.durable()
        else:
            self._copy(self.snapshots, counts)

    def _copy(self, snapshots: Snapshots, counts: Counts) -> None:
        """Take a snapshot if it is time; what the last one held is durable when it is copied."""
        if self._copying and self._copying[0].done():
            self._copying[0].result()
            self._letters.durable(self._copying[1])
            self._exchange.durable()
            self._copying = None
        if not self._copying and time.monotonic() - self._copied >= self._snapshot_after(counts):
            self._copied, self._held = time.monotonic(), counts
            self._copying = self._copier.submit(snapshots.take(self._ledger.state)), counts

    def _snapshot_after(self, counts: Counts) -> float:
        """Seconds between two snapshots: fewer where others wait for the letters of one that has nothing to do."""
        usual = self._config.shards.snapshot
        is_waited_for = self._said.idle is not None and counts != self._held
        return min(IDLE_SNAPSHOT, usual) if is_waited_for else usual

    # others

    def post(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return self._letters.add(candidates)

    async def address_wait(self, address: str) -> float:
        owner = _owner(address.encode(), self.shard.count)
        if owner == self.shard.number:
            return self._polite.take_address(address)
        try:
            async with asyncio.timeout(ADDRESS_SLACK):
                return float(await self._exchange.ask(owner, MayVisit(address)))
        except TimeoutError:  # too late: others may be on their way by now
            return ADDRESS_WAIT

    async def twin(self, text_hash: bytes, url: str) -> str | None:
        owner = _owner(text_hash, self.shard.count)
        if owner == self.shard.number:
            return None
        try:
            async with asyncio.timeout(CLAIM_PATIENCE):
                return str(await self._exchange.ask(owner, WhoHas(text_hash, url)))
        except TimeoutError:  # a copy more is for a later step to find; a text less would be lost
            return None

    def _answer(self, question: Question, answer: Callable[[float | str], None]) -> None:
        about = question.about
        if isinstance(about, MayVisit):
            answer(self._polite.take_address(about.address, ADDRESS_SLACK))
        elif first := self._ledger.claim(about.text_hash, about.url):
            answer(first)
        else:
            # Who is told so counts on our remembering it, as long as our disk lives.
            self._claims.append(answer)


def _owner(about: bytes, count: int) -> int:
    return xxhash.xxh3_64_intdigest(about) % count
