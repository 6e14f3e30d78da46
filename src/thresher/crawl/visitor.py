"""Visits pages without a crawl: as politely as the crawler, many hosts at once, nothing kept on disk.

    robots.txt ─► the host's turn ─► fetch ─► redirects, or another try ─► read ─► judge ─► Visit

There is no frontier: whoever asks decides which URLs, and waits for what becomes of them.
"""

from __future__ import annotations

import asyncio
import math
import signal
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct

from thresher import config as configuration
from thresher.config import Config, ConfigError
from thresher.crawl.answers import PASSING, REDIRECTS, address_of, fetch_robots, location, received
from thresher.crawl.fetch import Fetcher
from thresher.crawl.politeness import Politeness
from thresher.crawl.resolve import Resolver
from thresher.crawl.robots import DISALLOW_ALL
from thresher.crawl.start import language_code, parse_address
from thresher.crawl.state import State
from thresher.engine.local import Readers
from thresher.judge import judge
from thresher.page import Failure, Page, Reply, Verdict
from thresher.url import host as host_of

HOSTS_PER_CONNECTION = 5  # hosts that take turns at one connection: most of the time a host rests
KNOWN = "leads to a known URL"
STOPPING = (signal.SIGINT, signal.SIGTERM)
COMMIT_EVERY = 1_000  # visits, after which what is known of hosts may leave the memory


class Visit(Struct, frozen=True):
    """What became of one URL: a page and the verdict on it, or why there is none."""

    url: str
    final: str  # where redirects led
    downloaded: int = 0  # body bytes, those of redirects and of tries that failed included
    page: Page | None = None
    verdict: Verdict | None = None
    reason: str = ""  # why there is no page: "disallowed", "http 404", "dns" …
    detail: str = ""


class Terms(Struct, frozen=True):
    """What a user says about visits; the rest is as in a crawl."""

    language: str
    contact: str | None = None
    delay: float | None = None
    connections: int | None = None
    connect_to: str = ""

    def config(self) -> Config:
        """These terms with the crawler's defaults; ConfigError names what cannot be used."""
        if not self.language:
            raise ConfigError("which language? Say it with --lang CODE, for example --lang cs")
        if not self.contact and not self.connect_to:
            raise ConfigError(
                "webmasters must be able to reach you: give --contact with an e-mail address or a URL "
                "(it is sent with every request)"
            )
        if self.delay is not None and not 0 <= self.delay < math.inf:
            raise ConfigError(f"--delay {self.delay} cannot be used; try --delay 5")
        if self.connections is not None and self.connections < 1:
            raise ConfigError(f"--connections {self.connections} is too few; give 1 or more")
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
        """Where every connection goes, if not to the web."""
        return parse_address(self.connect_to) if self.connect_to else None


async def interruptible(work: Coroutine[Any, Any, None]) -> bool:
    """Work until it is done, or until Ctrl-C or a request to terminate; whether it was stopped so."""
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


class Visitor:
    """Fetches, reads and judges URLs, one request at a time to a host. `async with` opens it."""

    def __init__(
        self,
        config: Config,
        *,
        connect_to: tuple[str, int] | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._config = config
        self._connect_to = connect_to
        self._clock = clock
        self._sleep = sleep
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._visits = 0

    async def __aenter__(self) -> Visitor:
        config = self._config
        self._directory = TemporaryDirectory(prefix="thresher-", ignore_cleanup_errors=True)
        self._state = State(Path(self._directory.name))
        self._polite = Politeness(self._state, config.polite, self._clock)
        self._resolver = Resolver(config.fetch)
        self._fetcher = Fetcher.of(config, self._resolver, self._connect_to)
        # Pages that were fetched and not yet read fill the memory: there are no more of them than connections.
        self._places = asyncio.Semaphore(self._fetcher.capacity)
        self._readers = Readers(config.read, config.language)
        await self._readers.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._readers.close()
        await self._fetcher.close()
        await self._resolver.close()
        self._state.close()
        self._directory.cleanup()

    async def visit_all(self, urls: Iterable[str]) -> AsyncGenerator[Visit, None]:
        """Visit canonical URLs, many hosts at once; visits come as they end."""
        lines: dict[str, deque[str]] = {}
        for url in urls:
            lines.setdefault(host_of(url), deque()).append(url)
        waiting = deque(lines.values())
        under_way: dict[asyncio.Task[Visit], deque[str]] = {}
        try:
            while waiting or under_way:
                while waiting and len(under_way) < HOSTS_PER_CONNECTION * self._fetcher.capacity:
                    line = waiting.popleft()
                    under_way[asyncio.create_task(self.visit(line.popleft()))] = line
                ended, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    if line := under_way.pop(task):
                        waiting.append(line)  # behind the others: its host has to rest anyway
                    yield task.result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def visit(self, url: str, *, known: Callable[[str], bool] = lambda _: False) -> Visit:
        """Fetch a canonical URL, follow it where it leads, read and judge what is there.

        A redirect to a URL that is known to whoever asks is not followed: the reason is then KNOWN.
        """
        self._commit_now_and_then()
        at, spent, hops, tries = url, 0, 0, 1
        while True:
            answer, page = await self._take(at)
            spent += received(answer)
            if isinstance(page, Page):
                verdict = judge(page, self._config.language, self._config.judge)
                return Visit(url, at, spent, page, verdict)
            if _passing(answer) and tries < self._config.polite.tries:
                tries += 1
                continue
            onward = location(answer) if isinstance(answer, Reply) and answer.status in REDIRECTS else None
            if onward is None or onward == at or hops == self._config.fetch.max_redirects:
                reason, detail = _why_not(page or answer, onward)
                return Visit(url, at, spent, reason=reason, detail=detail)
            if known(onward):
                return Visit(url, onward, spent, reason=KNOWN)
            at, hops = onward, hops + 1

    async def _take(self, url: str) -> tuple[Reply | Failure, Page | Failure | None]:
        """The answer to one request, when it is the host's turn, and the page if it is one."""
        host = host_of(url)
        turn = self._turns.setdefault(host, asyncio.Lock())
        async with turn:
            if refusal := await self._refusal(url, host):
                return refusal, None
            async with self._places:
                answer = await self._fetcher.fetch(url)
                self._polite.rest(host, answer)
                if isinstance(answer, Failure):
                    self._polite.give_up(host, answer)
                elif answer.status == 200 and not answer.truncated:
                    return answer, await self._readers.read(answer)
                return answer, None

    async def _refusal(self, url: str, host: str) -> Failure | None:
        """Waits until the URL may be asked for, robots.txt known and obeyed; a Failure if that will not be."""
        while True:
            if reason := self._polite.dead(host):
                return Failure(url, reason, "the host was given up")
            rules = self._polite.robots(host)
            if rules and rules is not DISALLOW_ALL and not rules.allows(url):
                return Failure(url, "disallowed", "robots.txt")
            wait = self._polite.robots_wait(host) if rules is DISALLOW_ALL else self._polite.remaining(host)
            if not wait and not self._connect_to:  # else every host stands for an address of its own
                address = await address_of(self._resolver, host)
                wait = self._polite.take_address(address) if address else 0.0
            if wait > self._config.polite.max_crawl_delay:
                unknown = "robots.txt cannot be had" if rules is DISALLOW_ALL else ""
                return Failure(url, unknown or "asked to wait", f"{wait:,.0f} s")
            if wait:
                await self._sleep(wait)
            elif rules is None:
                await self._learn_robots(f"{url.partition(':')[0]}://{host}/robots.txt", host)
            else:
                return None

    async def _learn_robots(self, url: str, host: str) -> None:
        """Spend the host's turn on robots.txt."""
        answer, _ = await fetch_robots(self._fetcher, url, self._pause)
        self._polite.rest(host, answer)
        if not (isinstance(answer, Failure) and self._polite.give_up(host, answer)):
            self._polite.learn_robots(host, answer)

    async def _pause(self, url: str) -> None:
        await self._sleep(self._polite.delay(host_of(url)))

    def _commit_now_and_then(self) -> None:
        self._visits += 1
        if self._visits % COMMIT_EVERY == 0:
            self._polite.flush()
            self._state.commit()


def _passing(answer: Reply | Failure) -> bool:
    """Whether another try may bring more."""
    if isinstance(answer, Failure):
        return answer.transient
    return answer.status in PASSING or answer.truncated == "disconnect"


def _why_not(answer: Reply | Failure, onward: str | None) -> tuple[str, str]:
    """Why an answer is no page: a reason, and what else is to be said."""
    if isinstance(answer, Failure):
        return answer.reason, answer.detail
    if answer.status in REDIRECTS:
        return ("redirect loop", onward) if onward else ("bad redirect", "")
    return ("truncated" if answer.status == 200 else f"http {answer.status}"), answer.truncated
