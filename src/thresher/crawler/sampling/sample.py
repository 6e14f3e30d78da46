"""A near-uniform sample of the pages around some seeds: `random_walk` over HTTP, with several walkers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from random import Random

import uvloop
from msgspec import Struct
from xxhash import xxh3_128_digest

from thresher.config import ScopeSettings
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.crawler.sampling.estimate import Estimate, estimate
from thresher.crawler.sampling.page_visitor import KNOWN, PageVisitor, VisitSettings, interruptible
from thresher.crawler.sampling.random_walk import JUMP, RandomWalk, SampledPage
from thresher.errors import UsageError
from thresher.records import ReadResult
from thresher.urls import host as host_of
from thresher.urls import key, tld

WALKERS = 20  # each waits for one host at a time
UNKNOWN = "?"  # a language that was not identified, the top-level domain of an IP address
SIZES = ((2_000, "under 2 kB"), (10_000, "2-10 kB"), (50_000, "10-50 kB"), (250_000, "50-250 kB"))
LARGEST = "over 250 kB"


class SampleRow(Struct, frozen=True):
    """A page of the sample: a row of its table."""

    url: str
    language: str  # main language of its text, or UNKNOWN
    tld: str
    bytes: int  # of HTML, unpacked
    text_bytes: int
    weight: float  # share of all pages that it represents


class Sample(Struct, frozen=True):
    """Pages with weights, estimates for all pages, and the cost of the sample."""

    rows: tuple[SampleRow, ...]
    languages: tuple[Estimate, ...] = ()
    tlds: tuple[Estimate, ...] = ()
    sizes: tuple[Estimate, ...] = ()
    known: int = 0  # URLs known to the walk; the sample is drawn from them
    failed: int = 0  # URLs that led to no page
    downloaded: int = 0
    interrupted: bool = False


class _PageFacts(Struct, frozen=True):
    """The properties of a page that estimates are made of."""

    language: str
    bytes: int
    text_bytes: int


class Sampler:
    """Walkers over the web. Each page is downloaded once.

    The exception is the target of a redirect that another walker is visiting at the same time.
    """

    def __init__(
        self,
        visitor: PageVisitor,
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
        self._scope = UrlScope(ScopeSettings())
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._facts: dict[bytes, _PageFacts] = {}  # by the key of the page's URL
        self._first: dict[bytes, str] = {}  # fingerprint of host and visible text -> first URL with it
        self._progress = progress
        self.walk = RandomWalk(seeds, rng, walkers=walkers, jump=jump)
        self.failed = 0
        self.downloaded = 0

    async def run(self) -> None:
        """Walk until the sample has the requested number of pages, or no more can be found."""
        walkers = [asyncio.create_task(self._go(walker)) for walker in range(self._walkers)]
        try:
            ended, _ = await asyncio.wait(walkers, return_when=asyncio.FIRST_COMPLETED)
            for walker in ended:
                walker.result()  # raises a fault of ours
        finally:
            tasks = [*walkers, *self._under_way.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _go(self, walker: int) -> None:
        """Walk with one walker until the sample is complete."""
        while not self._is_over():
            if self.walk.unseen == len(self._under_way):  # nothing else is left before one of them ends
                await asyncio.wait(set(self._under_way.values()), return_when=asyncio.FIRST_COMPLETED)
                continue
            url = self.walk.draw(walker)
            if self.walk.knows(url):
                await asyncio.sleep(0)  # known pages need no I/O, so let other walkers run
            else:
                await asyncio.shield(self._visit_of(url))
            if not self._is_over():  # another walker may have completed the sample
                self.walk.arrive(walker, url)
                self._progress(self.walk.pages)

    def _is_over(self) -> bool:
        return self.walk.pages >= self._pages or not self.walk.unseen

    def _visit_of(self, url: str) -> asyncio.Task[None]:
        """Return the visit of a URL that is under way; start it if there is none."""
        if url not in self._under_way:
            self._under_way[url] = asyncio.create_task(self._visit(url))
        return self._under_way[url]

    async def _visit(self, url: str) -> None:
        """Visit a URL and add its result to the walk."""
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

    def _links(self, page: ReadResult) -> Iterator[str]:
        """Yield the links that a walker may follow."""
        for link in page.links:
            if "nofollow" not in link.rel and "feed" not in link.rel and self._scope.admits(link.url, None):
                yield link.url

    def sample(self, *, interrupted: bool) -> Sample:
        """Return the sample so far with its estimates."""
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
    """Return the name of the size class of a page with `count` bytes."""
    return next((name for bound, name in SIZES if count < bound), LARGEST)


def _fingerprint(url: str, page: ReadResult) -> bytes:
    """Return a hash of host and visible text: session numbers make endlessly many URLs of one page."""
    visible = "\n".join(block.text for block in page.blocks)
    identity = f"{host_of(url)}\n{visible}" if visible else url
    return xxh3_128_digest(identity.encode("utf-8", "replace"))


def _facts(page: ReadResult) -> _PageFacts:
    language = page.languages[0].code if page.languages else UNKNOWN
    return _PageFacts(language, page.html_bytes, len(page.text.encode("utf-8", "replace")))


def _row(page: SampledPage, facts: _PageFacts) -> SampleRow:
    return SampleRow(
        url=page.url,
        language=facts.language,
        tld=tld(host_of(page.url)) or UNKNOWN,
        bytes=facts.bytes,
        text_bytes=facts.text_bytes,
        weight=page.weight,
    )


def sample(
    seeds: Iterable[str],
    terms: VisitSettings,
    *,
    pages: int,
    walkers: int = WALKERS,
    jump: float = JUMP,
    seed: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Sample:
    """Take a sample by walking from seeds (canonical URLs); after an interruption return the sample so far."""
    for name, value in (("pages", pages), ("walkers", walkers)):
        if value < 1:
            raise UsageError(f"--{name} must be at least 1, got {value}")
    config, address = terms.config(), terms.address()

    async def run() -> Sample:
        async with PageVisitor(config, connect_to=address) as visitor:
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
