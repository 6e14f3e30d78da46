"""The parts of a crawl that reach out of its process: the fetcher, the resolver and the readers.

They are built here and given to the crawl, so that a test or a simulation can give others.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from msgspec.structs import replace

from thresher.config import Config
from thresher.crawler.clock import SYSTEM_CLOCK, Clock
from thresher.crawler.fetching.dns import Resolver
from thresher.crawler.fetching.fetcher import Fetcher
from thresher.crawler.fetching.page_fetcher import UrlFetcher
from thresher.records import Failure, ReadResult, Reply
from thresher.workers.reader_pool import ReaderPool


class WebFetcher(UrlFetcher, Protocol):
    """A fetcher with a number of connections, as `Fetcher` is."""

    @property
    def capacity(self) -> int:
        """Number of connections that may be open at once."""

    async def close(self) -> None:
        """End all requests."""


class PageReaders(Protocol):
    """Readers of replies, as `ReaderPool` has them."""

    @property
    def backlog(self) -> int:
        """Bytes of replies that wait for a reader or are with one."""

    async def start(self) -> None:
        """Start the readers."""

    async def read(self, reply: Reply) -> ReadResult | Failure:
        """Read a reply; a Failure if it stalls or kills its reader."""

    def cpu_seconds(self) -> float:
        """Return the processor time of the running readers."""

    async def close(self) -> None:
        """End the readers."""


class CrawlParts(NamedTuple):
    """The parts of one crawl process that reach out of it."""

    fetcher: WebFetcher
    readers: PageReaders
    resolver: Resolver | None = None  # None: addresses take no turns, since all connections go to one

    async def close(self) -> None:
        """End readers and connections."""
        await self.readers.close()
        await self.fetcher.close()
        if self.resolver:
            await self.resolver.close()


def crawl_parts(
    config: Config, connect_to: tuple[str, int] | None = None, clock: Clock = SYSTEM_CLOCK
) -> CrawlParts:
    """Return the parts of a crawl of the web, or of the one address that all connections go to."""
    resolver = None if connect_to else Resolver(config.fetch, clock=clock.now)
    shingles = config.judge.near_duplicates or config.read.shingles
    readers = ReaderPool(replace(config.read, shingles=shingles), config.language)
    return CrawlParts(Fetcher.of(config, resolver, connect_to, clock.wall), readers, resolver)
