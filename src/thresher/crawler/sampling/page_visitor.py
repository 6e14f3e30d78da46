"""Visits to a list of URLs without a crawl: as polite as the crawl, many hosts at once, nothing kept on disk.

    permission ─► fetch ─► redirects and retries ─► read ─► judge ─► VisitResult

Permission, robots.txt, turns of addresses and the classes of answers come from `PageFetcher`. There is no
frontier: the visitor holds the turn of a host by a lock, sleeps while it has to wait, and follows redirects itself.
"""

from __future__ import annotations

import asyncio
import math
import signal
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct

from thresher import config as configuration
from thresher.config import Config, parse_address
from thresher.crawler.clock import SYSTEM_CLOCK, Clock
from thresher.crawler.fetching.dns import Resolver
from thresher.crawler.fetching.fetcher import Fetcher
from thresher.crawler.fetching.page_fetcher import (
    Allowed,
    Disallowed,
    FetchedPage,
    FetchFailure,
    FetchResult,
    HostLost,
    PageFetcher,
    Redirect,
    Retry,
    RobotsFetched,
    Wait,
)
from thresher.crawler.fetching.responses import received
from thresher.crawler.manners.addresses import LocalAddresses
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.manners.robots import Robots
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.errors import UsageError
from thresher.judge import Judge
from thresher.reader.language.codes import language_code
from thresher.records import Failure, ReadResult, Reply, Verdict, with_opt_outs
from thresher.urls import host as host_of
from thresher.workers.reader_pool import ReaderPool

HOSTS_PER_CONNECTION = 5  # hosts that take turns at one connection, since most of the time a host rests
KNOWN = "leads to a known URL"
UNREACHABLE = ("dns", "connect")  # reasons of a Failure for which the network may be missing
STOPPING = (signal.SIGINT, signal.SIGTERM)
COMMIT_EVERY = 1_000  # visits, after which records of hosts may leave the memory


class VisitResult(Struct, frozen=True):
    """The result for one URL: a page and its verdict, or the reason why there is none."""

    url: str
    final: str  # the URL that redirects led to
    downloaded: int = 0  # body bytes, with redirects and failed tries
    page: ReadResult | None = None
    verdict: Verdict | None = None
    reason: str = ""  # why there is no page, such as "disallowed", "http 404", "dns"
    detail: str = ""


class VisitSettings(Struct, frozen=True):
    """The settings of visits that users choose; all others have the defaults of a crawl."""

    language: str
    contact: str | None = None
    delay: float | None = None
    connections: int | None = None
    connect_to: str = ""

    def config(self) -> Config:
        """Return these settings with the crawl's defaults; raise UsageError for values that cannot be used."""
        if not self.language:
            raise UsageError("which language? Say it with --lang CODE, for example --lang cs")
        if not self.contact and not self.connect_to:
            raise UsageError(
                "webmasters must be able to reach you: give --contact with an e-mail address or a URL "
                "(it is sent with every request)"
            )
        if self.contact:
            configuration.check_contact(self.contact)
        if self.delay is not None and not 0 <= self.delay < math.inf:
            raise UsageError(f"--delay {self.delay} cannot be used; try --delay 5")
        if self.connections is not None and self.connections < 1:
            raise UsageError(f"--connections {self.connections} is too few; give 1 or more")
        polite = {"contact": self.contact, "delay": self.delay}
        fetch = {"connections": self.connections}
        return configuration.parse(
            {
                "language": language_code(self.language),
                "polite": {name: value for name, value in polite.items() if value is not None},
                "fetch": {name: value for name, value in fetch.items() if value is not None},
            },
            "settings",
        )

    def address(self) -> tuple[str, int] | None:
        """Return the address that all connections go to, None for the web."""
        return parse_address(self.connect_to) if self.connect_to else None


async def interruptible(work: Coroutine[Any, Any, None]) -> bool:
    """Run a coroutine until it is done or a signal asks to stop; return whether it was stopped."""
    task = asyncio.create_task(work)
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in STOPPING:
        loop.add_signal_handler(name, asked.set)
    stop = asyncio.create_task(asked.wait())
    try:
        await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for name in STOPPING:
            loop.remove_signal_handler(name)
        interrupted = not task.done()
        for each in (task, stop):
            each.cancel()
        await asyncio.gather(task, stop, return_exceptions=True)
    if not interrupted:
        task.result()
    return interrupted


class PageVisitor:
    """Fetches, reads and judges URLs, one request at a time to a host. `async with` opens it."""

    def __init__(
        self,
        config: Config,
        *,
        connect_to: tuple[str, int] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Prepare visits of the web, or of one address that all connections go to."""
        self._config = config
        self._connect_to = connect_to
        self._clock = clock
        self._judge = Judge(config)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._visits = 0
        # Set by visit_all once it has tried as many hosts as it visits at once and none of them could be reached.
        self.offline = asyncio.Event()
        self._unreachable: set[str] | None = set()  # hosts; None after the first that was reached
        self._hosts_at_once = math.inf

    async def __aenter__(self) -> PageVisitor:
        config = self._config
        self._directory = TemporaryDirectory(prefix="thresher-", ignore_cleanup_errors=True)
        self._state = KeyValueState(Path(self._directory.name))
        self._politeness = Politeness(self._state, config.polite, self._clock.wall)
        self._resolver = Resolver(config.fetch, clock=self._clock.now)
        self._fetcher = Fetcher.of(config, self._resolver, self._connect_to, self._clock.wall)
        self._pages = PageFetcher(
            config,
            self,
            self._politeness,
            LocalAddresses(self._politeness),
            resolver=None if self._connect_to else self._resolver,
            host_rest=self._politeness.remaining,
            clock=self._clock,
        )
        # Replies that wait for a reader fill the memory, so there are no more of them than connections.
        self._places = asyncio.Semaphore(self._fetcher.capacity)
        self._readers = ReaderPool(config.read, config.language)
        await self._readers.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._readers.close()
        await self._fetcher.close()
        await self._resolver.close()
        self._state.close()
        self._directory.cleanup()

    async def visit_all(self, urls: Iterable[str]) -> AsyncGenerator[VisitResult, None]:
        """Visit canonical URLs, many hosts at once; yield results as visits end."""
        lines: dict[str, deque[str]] = {}
        for url in urls:
            lines.setdefault(host_of(url), deque()).append(url)
        waiting = deque(lines.values())
        self._hosts_at_once = min(len(lines), HOSTS_PER_CONNECTION * self._fetcher.capacity)
        under_way: dict[asyncio.Task[VisitResult], deque[str]] = {}
        try:
            while waiting or under_way:
                while waiting and len(under_way) < HOSTS_PER_CONNECTION * self._fetcher.capacity:
                    line = waiting.popleft()
                    under_way[asyncio.create_task(self.visit(line.popleft()))] = line
                ended, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    if line := under_way.pop(task):
                        waiting.append(line)  # behind the others, since its host has to rest anyway
                    yield task.result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def visit(self, url: str, *, known: Callable[[str], bool] = lambda _: False) -> VisitResult:
        """Fetch a canonical URL, follow its redirects, and read and judge the page.

        A redirect to a URL for which `known` is true is not followed; the reason is KNOWN then.
        """
        self._commit_now_and_then()
        at, spent, hops, tries = url, 0, 0, 0
        while True:
            result, page = await self._take_turn(at, hops, tries)
            if isinstance(result, Failure):
                return VisitResult(url, at, spent, reason=result.reason, detail=result.detail)
            spent += received(result.answer)
            match result:
                case FetchedPage() if isinstance(page, ReadResult):
                    verdict = self._judge.verdict(page, result.answer)
                    return VisitResult(url, at, spent, page, verdict)
                case FetchedPage():
                    assert isinstance(page, Failure)
                    return VisitResult(url, at, spent, reason=page.reason, detail=page.detail)
                case Retry():
                    tries += 1
                case Redirect(target=target) if known(target):
                    return VisitResult(url, target, spent, reason=KNOWN)
                case Redirect(target=target):
                    at, hops = target, hops + 1
                case FetchFailure():
                    return VisitResult(url, at, spent, reason=result.reason, detail=result.detail)

    async def _take_turn(
        self, url: str, hops: int, tries: int
    ) -> tuple[FetchResult | Failure, ReadResult | Failure | None]:
        """Request a URL in the turn of its host, and read the page; a Failure says why there was no request."""
        turn = self._turns.setdefault(host_of(url), asyncio.Lock())
        async with turn:
            robots = await self._permit(url)
            if isinstance(robots, Failure):
                return robots, None
            async with self._places:
                result = await self._pages.fetch_page(url, hops=hops, tries=tries)
                page = await self._readers.read(result.answer) if isinstance(result, FetchedPage) else None
                return result, with_opt_outs(page, robots.opt_outs) if isinstance(page, ReadResult) else page

    async def _permit(self, url: str) -> Robots | Failure:
        """Wait until the URL may be requested and return the rules of its host, or return why it never will be."""
        while True:
            permission = await self._pages.permission(url)
            match permission:
                case Allowed(robots):
                    return robots
                case Disallowed():
                    return Failure(url, "disallowed", "robots.txt")
                case HostLost(failure):
                    return Failure(url, failure.reason, failure.detail)
                case Wait(seconds, reason) if seconds > self._config.polite.max_crawl_delay:
                    return Failure(url, reason, f"{seconds:,.0f} s")
                case Wait(seconds):
                    await self._clock.sleep(seconds)
                case RobotsFetched():
                    pass  # the host has to rest, which the next permission says

    async def fetch(self, url: str, *, max_body_bytes: int | None = None) -> Reply | Failure:
        """Send a request for the page fetcher, and note whether its host could be reached."""
        answer = await self._fetcher.fetch(url, max_body_bytes=max_body_bytes)
        self._note_reached(host_of(url), answer)
        return answer

    def _note_reached(self, host: str, answer: Reply | Failure) -> None:
        if self._unreachable is None:
            return
        if isinstance(answer, Failure) and answer.reason in UNREACHABLE:
            self._unreachable.add(host)
            if len(self._unreachable) >= self._hosts_at_once:
                self.offline.set()
        else:
            self._unreachable = None

    def _commit_now_and_then(self) -> None:
        self._visits += 1
        if self._visits % COMMIT_EVERY == 0:
            self._politeness.flush()
            self._state.commit()
