"""A near-uniform sample of the pages of the web around some seeds: the walk of `walk`, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from random import Random

import uvloop
from msgspec import Struct
from xxhash import xxh3_128_digest

from thresher.config import ConfigError, Scope
from thresher.crawl.estimate import Estimate, estimate
from thresher.crawl.scope import Gate
from thresher.crawl.visitor import KNOWN, Terms, Visitor, interruptible
from thresher.crawl.walk import JUMP, Sampled, Walk
from thresher.page import Page
from thresher.url import host as host_of
from thresher.url import key, tld

WALKERS = 20  # each waits for one host at a time
UNKNOWN = "?"  # a language that cannot be told, the top-level domain of an address
SIZES = ((2_000, "under 2 kB"), (10_000, "2-10 kB"), (50_000, "10-50 kB"), (250_000, "50-250 kB"))
LARGEST = "over 250 kB"


class Row(Struct, frozen=True):
    """A page of the sample, as it is written."""

    url: str
    language: str  # of most of its text, UNKNOWN where there is none
    tld: str
    bytes: int  # of HTML, unpacked
    text_bytes: int
    weight: float  # share of all pages that it stands for


class Sample(Struct, frozen=True):
    """Pages with weights, what they say of all pages, and what they cost."""

    rows: tuple[Row, ...]
    languages: tuple[Estimate, ...] = ()
    tlds: tuple[Estimate, ...] = ()
    sizes: tuple[Estimate, ...] = ()
    known: int = 0  # URLs that the walk has heard of: what the sample is drawn from
    failed: int = 0  # URLs that led to no page
    downloaded: int = 0
    interrupted: bool = False


class _Facts(Struct, frozen=True):
    """What is remembered of a page beside its links."""

    language: str
    bytes: int
    text_bytes: int


class Sampler:
    """Walkers over the web. A page is downloaded once and remembered by its links.

    Only one that a redirect leads to while another walker is on the way there may be downloaded twice.
    """

    def __init__(
        self,
        visitor: Visitor,
        seeds: Iterable[str],
        rng: Random,
        *,
        pages: int,
        walkers: int = WALKERS,
        jump: float = JUMP,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._visitor = visitor
        self._pages = pages
        self._walkers = walkers
        self._gate = Gate(Scope())
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._facts: dict[bytes, _Facts] = {}  # by the key of the page's URL
        self._first: dict[bytes, str] = {}  # what is seen on a host -> where it was seen first
        self._progress = progress
        self.walk = Walk(seeds, rng, walkers=walkers, jump=jump)
        self.failed = 0
        self.downloaded = 0

    async def run(self) -> None:
        """Walk until there are as many pages as asked for, or no more to be found."""
        walkers = [asyncio.create_task(self._go(walker)) for walker in range(self._walkers)]
        try:
            ended, _ = await asyncio.wait(walkers, return_when=asyncio.FIRST_COMPLETED)
            for walker in ended:
                walker.result()  # one of them found that it is over, or a fault of ours
        finally:
            tasks = [*walkers, *self._under_way.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _go(self, walker: int) -> None:
        """The way of one walker."""
        while not self._is_over():
            if self.walk.unseen == len(
                self._under_way
            ):  # nothing new is in reach before one of them is there
                await asyncio.wait(set(self._under_way.values()), return_when=asyncio.FIRST_COMPLETED)
                continue
            url = self.walk.draw(walker)
            if self.walk.knows(url):
                await asyncio.sleep(0)  # a walk over what is known lets the others go on
            else:
                await asyncio.shield(self._looking(url))
            if not self._is_over():  # another walker may have arrived at the last page meanwhile
                self.walk.arrive(walker, url)
                self._progress(self.walk.pages)

    def _is_over(self) -> bool:
        return self.walk.pages >= self._pages or not self.walk.unseen

    def _looking(self, url: str) -> asyncio.Task[None]:
        """The visit of a URL that is under way, begun now if nobody did."""
        if url not in self._under_way:
            self._under_way[url] = asyncio.create_task(self._look(url))
        return self._under_way[url]

    async def _look(self, url: str) -> None:
        """Visit a URL and remember what is there."""
        try:
            visit = await self._visitor.visit(url, known=self.walk.knows)
        finally:
            del self._under_way[url]
        self.downloaded += visit.downloaded
        page = visit.page
        if visit.reason == KNOWN:
            self.walk.learn_redirect(url, visit.final)
            return
        if page is None or page.kind != "html" or page.fault:
            self.failed += 1
            self.walk.learn_nothing(url)
            return
        known_as = self._first.setdefault(_fingerprint(visit.final, page), visit.final)
        self.walk.learn(url, known_as, () if page.nofollow else self._links(page))
        self._facts.setdefault(key(known_as), _facts(page))

    def _links(self, page: Page) -> Iterator[str]:
        """The links that a walker may follow."""
        for link in page.links:
            if "nofollow" not in link.rel and "feed" not in link.rel and self._gate.admits(link.url, None):
                yield link.url

    def sample(self, *, interrupted: bool) -> Sample:
        """The sample so far, and what it says."""
        pages = self.walk.sample()
        rows = tuple(_row(page, self._facts[key(page.url)]) for page in pages)
        return Sample(
            rows,
            languages=tuple(estimate(pages, [row.language for row in rows])),
            tlds=tuple(estimate(pages, [row.tld for row in rows])),
            sizes=tuple(estimate(pages, [size_class(row.bytes) for row in rows])),
            known=self.walk.known,
            failed=self.failed,
            downloaded=self.downloaded,
            interrupted=interrupted,
        )


def size_class(count: int) -> str:
    """The class of page sizes that so many bytes belong to."""
    return next((name for bound, name in SIZES if count < bound), LARGEST)


def _fingerprint(url: str, page: Page) -> bytes:
    """Equal for URLs of one host that show the same: session numbers make endlessly many of one page."""
    visible = "\n".join(block.text for block in page.blocks)
    what = f"{host_of(url)}\n{visible}" if visible else url
    return xxh3_128_digest(what.encode("utf-8", "replace"))


def _facts(page: Page) -> _Facts:
    language = page.languages[0].code if page.languages else UNKNOWN
    return _Facts(language, page.html_bytes, len(page.text.encode("utf-8", "replace")))


def _row(page: Sampled, facts: _Facts) -> Row:
    return Row(
        url=page.url,
        language=facts.language,
        tld=tld(host_of(page.url)) or UNKNOWN,
        bytes=facts.bytes,
        text_bytes=facts.text_bytes,
        weight=page.weight,
    )


def sample(
    seeds: Iterable[str],
    terms: Terms,
    *,
    pages: int,
    walkers: int = WALKERS,
    jump: float = JUMP,
    seed: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Sample:
    """Walk from seeds (canonical URLs) until so many pages were visited; stopped early, what there is so far."""
    for name, value in (("pages", pages), ("walkers", walkers)):
        if value < 1:
            raise ConfigError(f"--{name} {value} is too few; give 1 or more")
    config, address = terms.config(), terms.address()

    async def run() -> Sample:
        async with Visitor(config, connect_to=address) as visitor:
            sampler = Sampler(
                visitor,
                seeds,
                Random(seed),
                pages=pages,
                walkers=min(walkers, pages),
                jump=jump,
                progress=progress,
            )
            interrupted = await interruptible(sampler.run())
            return sampler.sample(interrupted=interrupted)

    return uvloop.run(run())
