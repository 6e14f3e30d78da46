"""A web in memory with a crawl of it: no sockets, no reader processes, and a clock that only the crawl moves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import xxhash
from msgspec import Struct

from support.clocks import SimulatedClock
from thresher.config import Config, parse
from thresher.crawler.crawl_state import CrawlState
from thresher.crawler.engine import Crawl
from thresher.crawler.parts import CrawlParts
from thresher.crawler.stop_reasons import Ending
from thresher.records import Failure, LanguageShare, Link, ReadResult, Reply

SENTENCE = "Tato věta stojí na stránce, kterou nikdo jiný nemá. "


class MemoryPage(Struct, frozen=True):
    """A page: the size of its markup, its sentences in Czech, its links, or the URL that it redirects to."""

    bytes: int = 10_000
    sentences: int = 40
    links: Sequence[str] = ()
    redirect: str = ""


class MemoryWeb:
    """Fetcher and readers of a web of pages, by URL. Requests are recorded with their times."""

    capacity: int
    backlog = 0

    def __init__(
        self, pages: Mapping[str, MemoryPage], clock: SimulatedClock, *, latency: float, connections: int
    ) -> None:
        self._pages = pages
        self._clock = clock
        self._latency = latency
        self.capacity = connections
        self.requests: list[tuple[str, float]] = []

    async def fetch(self, url: str, *, max_body_bytes: int | None = None) -> Reply | Failure:
        sent = self._clock.wall()
        self.requests.append((url, sent))
        await self._clock.sleep(self._latency)
        page = self._pages.get(url)
        status = 404 if page is None else 301 if page.redirect else 200
        lines = f"HTTP/1.1 {status} X\r\n"
        if page and page.redirect:
            lines += f"Location: {page.redirect}\r\n"
        body = b"x" * page.bytes if page else b""
        return Reply(url, status, lines.encode(), body, sent, self._latency, "192.0.2.1")

    async def start(self) -> None:
        pass

    async def read(self, reply: Reply) -> ReadResult | Failure:
        page = self._pages[reply.url]
        text = reply.url + "\n" + SENTENCE * page.sentences if page.sentences else ""
        return ReadResult(
            reply.url,
            "html",
            html_bytes=page.bytes,
            text=text,
            languages=(LanguageShare("cs", len(text.encode()), 1.0),) if text else (),
            links=tuple(Link(url, "odkaz", 0.25, True) for url in page.links),
            raw_hash=xxhash.xxh3_128_digest(reply.url.encode()),
            text_hash=xxhash.xxh3_128_digest(text.encode()),
        )

    def cpu_seconds(self) -> float:
        return 0.0

    async def close(self) -> None:
        pass


class SimulatedCrawl(Struct, frozen=True):
    """A crawl that has ended."""

    ending: Ending
    web: MemoryWeb
    started: float


def settings(**sections: Any) -> Config:
    """Return settings of a polite crawl that commits at its end."""
    given = {
        "language": "cs",
        "polite": {"delay": 5.0, "load_share": 0.0, "contact": "test@example.org"},
        "store": {"commit_seconds": 1e6, "keep_raw": "none"},
        "fetch": {"connections": 1},
    }
    return parse({**given, **sections})


def simulated_crawl(
    directory: Path,
    config: Config,
    pages: Mapping[str, MemoryPage],
    seeds: Sequence[str],
    latency: float = 0.0,
) -> SimulatedCrawl:
    """Crawl pages in memory into a corpus until the crawl ends."""
    (directory / "corpus.toml").write_text('language = "cs"\n')
    clock = SimulatedClock()
    web = MemoryWeb(pages, clock, latency=latency, connections=config.fetch.connections)
    started = clock.now()

    async def run() -> Ending:
        with closing(CrawlState(directory, config, clock=clock, random=Random(1))) as state:
            async with Crawl(state, CrawlParts(web, web)) as crawl:
                crawl.seed(seeds)
                crawl.commit()
                return await crawl.run()

    return SimulatedCrawl(asyncio.run(run()), web, started)
