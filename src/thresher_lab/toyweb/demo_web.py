"""The toy web of `thresher demo`: sentences that people can read, and an oracle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from thresher.demo import Assessment
from thresher_lab.toyweb.oracle import reachable, seeds, truth
from thresher_lab.toyweb.server import serve
from thresher_lab.toyweb.web import ToyWeb


class ToyDemoWeb(Struct, frozen=True):
    """A readable toy web with the interface that `thresher.demo` expects."""

    web: ToyWeb = ToyWeb.readable(slow_seconds=0.2, drip_seconds=0.4, crawl_delay=0.01)

    @property
    def language(self) -> str:
        """Language of the corpus."""
        return self.web.target

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self.web.hosts

    @property
    def seeds(self) -> list[str]:
        """Front pages in all languages of the web."""
        return [url for urls in seeds(self.web).values() for url in urls]

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve the web on loopback until the block is left; the value is its "ADDRESS:PORT"."""
        with serve(self.web) as server:
            yield server.connect_to

    def assess(self, urls: Iterable[str]) -> Assessment:
        """Compare the URLs of a corpus with the pages that a perfect crawler keeps."""
        wanted = {found.group for _, found in reachable(self.web, self.seeds) if found.keepable}
        kept = {truth(self.web, url).group for url in urls}
        return Assessment(good=len(wanted), found=len(wanted & kept), strange=len(kept - wanted))
