"""Expansion of a crawl that runs dry: it looks for more URLs around its good pages, in stages.

    1  front pages of hosts with kept pages, and their sitemaps
    2  the folders of kept pages, since good pages stand together
    3  front pages of hosts that linked to kept pages
    4  hosts that were closed for their yield, under lower and lower thresholds

A crawl is dry if nothing is left to visit, or if its last pages gave far less than all of them, or less than the
floor. Each stage begins when the crawl is dry again. Stages 1 to 3 read the outcomes from where they last
stopped, a portion at a time, and guess URLs, which pass scope, seen URLs, robots.txt and policy like all others.
If all stages together brought enough, another round begins with the pages kept since; otherwise the crawl
continues with its queue until that gives less than the floor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field
from msgspec.structs import replace

from thresher.config import Config
from thresher.crawler.manners.robots import Robots
from thresher.crawler.policy.yield_stats import YieldStats, YieldTally
from thresher.crawler.stop_reasons import Ending
from thresher.crawler.storage.keys import EXPANSION
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate
from thresher.store.corpus_files import CorpusFiles, of_part
from thresher.urls import host as host_of

POLICIES = ("learned", "focus", "host-yield", "heidix")  # the others follow their papers exactly

WINDOW = 300  # pages after which a crawl may be dry
DRY_SHARE = 0.1  # a crawl is dry if its last pages gave less than this share of the yield of all
LONG_WINDOW = 1_000  # pages after which a crawl may be below the floor
PORTION = 200  # kept pages per step, about 15 ms of work, after which the loop serves the network

NAMES = (
    "",
    "front pages and sitemaps of good hosts",
    "folders of good pages",
    "hosts that linked to good pages",
    "hosts closed for low yield",
)
CLOSED_HOSTS = len(NAMES) - 1

_encode = msgspec.msgpack.Encoder().encode


class KeptPage(NamedTuple):
    """A kept page."""

    url: str
    source: str  # the page with the link to it; "" for a seed
    depth: int


# guesses


def front_page(url: str) -> str:
    """Return the front page of a URL's host."""
    scheme, _, host = url.split("/", 3)[:3]
    return f"{scheme}//{host}/"


def folders(url: str) -> list[str]:
    """Return a URL without its query, and all folders of its path except the root.

    >>> folders("http://a.cz/x/y/z.php?id=1")
    ['http://a.cz/x/y/z.php', 'http://a.cz/x/y/', 'http://a.cz/x/']
    """
    path = url.partition("?")[0]
    root = front_page(url)
    names = path[len(root) :].split("/")
    above = [f"{root}{'/'.join(names[:count])}/" for count in range(len(names) - 1, 0, -1)]
    return [guess for guess in (path, *above) if guess != url]


def sitemaps(url: str) -> list[str]:
    """Return the usual places of a host's sitemaps."""
    root = front_page(url)
    return [f"{root}sitemap.xml", f"{root}sitemap_index.xml"]


class ExpansionProgress(Struct, array_like=True):
    """Progress of an expansion."""

    stage: int = 0
    at_work: bool = (
        False  # whether the stage still looks for URLs; otherwise the crawl visits the URLs that it found
    )
    through: bool = False  # all stages are over
    # The number of the next outcome, by stage.
    places: list[int] = field(default_factory=lambda: [0] * CLOSED_HOSTS)
    found: int = 0  # URLs queued so far
    found_before: int = 0  # URLs queued when the stage began
    mark: int = 0  # pages of the crawl when a stage that found URLs was over
    first: YieldTally | None = None  # the crawl when it was first expanded
    begun: YieldTally = field(default_factory=YieldTally)  # the crawl when the present round began


class Expansion:
    """The expansion of one crawl."""

    def __init__(
        self,
        directory: Path,
        config: Config,
        state: KeyValueState,
        yields: YieldStats,
        robots: Callable[[str], Robots | None],
    ) -> None:
        self._corpus = of_part(directory, config)
        self._config = config
        self._state = state
        self._yields = yields
        self._robots = robots
        policy = config.policy
        self._is_on = policy.widen and policy.name in POLICIES and not config.cycles.pages
        self._progress = msgspec.msgpack.decode(
            state.get(EXPANSION) or _encode(ExpansionProgress()), type=ExpansionProgress
        )
        self._pages: Iterator[tuple[int, list[KeptPage]]] | None = None
        self.resume()

    def resume(self) -> None:
        """Grant at least a window of pages to a crawl that is continued after all stages were over."""
        if self._progress.through:
            self._progress.mark = self._yields.recent.pages

    # dry or not

    def is_due(self, *, idle: bool) -> bool:
        """Return whether there is something to do now; `idle` says that nothing can be visited for long."""
        if not self._is_on:
            return False
        if self._progress.at_work:
            return True
        return (idle or self._is_dry()) and (not self._progress.through or self._was_worth_it())

    def _is_dry(self) -> bool:
        yields = self._yields
        if yields.recent.pages - self._progress.mark < WINDOW:
            return False
        enough = max(DRY_SHARE * yields.overall.rate, self._config.policy.floor)
        return yields.recent.last(WINDOW).rate < enough

    def _was_worth_it(self) -> bool:
        """Return whether this round brought enough for another one."""
        brought = self._yields.overall.since(self._progress.begun)
        return brought.kept > 0 and brought.rate >= self._config.policy.floor

    @property
    def is_over(self) -> bool:
        """True if all stages are over and the crawl is below the floor."""
        recent, progress = self._yields.recent, self._progress
        return (
            self._is_on
            and progress.through
            and recent.pages - progress.mark >= LONG_WINDOW
            and recent.last(LONG_WINDOW).rate < self._config.policy.floor
        )

    def ending(self, queued: int) -> Ending:
        """Return the ending of a crawl after its expansion."""
        window, floor = self._yields.recent.last(LONG_WINDOW), self._config.policy.floor
        return Ending(
            "dry",
            f"the last {window.pages:,} pages gave {window.rate:.6f} bytes of text for each byte downloaded, less "
            f"than policy.floor = {floor:g}, and there is nowhere else to look. {queued:,} URLs stay queued: "
            f"continue with a lower floor (--floor {floor / 10:g}; 0 visits all URLs) or with more seeds.",
        )

    # stages

    def begin(self, commit: Callable[[], None]) -> None:
        """Begin the next stage, unless one is at work."""
        progress = self._progress
        if progress.at_work:
            return
        if progress.stage == 0 or progress.through:  # the first round, or another one
            progress.stage, progress.through, progress.begun = 0, False, replace(self._yields.overall)
            progress.first = progress.first or progress.begun
        progress.stage = min(progress.stage + 1, CLOSED_HOSTS)
        progress.at_work = True
        progress.found_before = progress.found
        commit()  # the outcomes are read from disk

    @property
    def wants_quiet(self) -> bool:
        """True if closed hosts are to be opened, for which no visit may be under way."""
        return self._is_on and self._progress.at_work and self._progress.stage == CLOSED_HOSTS

    def guesses(self) -> list[Candidate]:
        """Guess URLs from the next portion of kept pages; many may be known already."""
        progress = self._progress
        if self._pages is None:
            self._pages = good_pages(self._corpus, progress.places[progress.stage])
        place, pages = next(self._pages, (0, None))
        if pages is None:
            self._pages = None
            self._stage_is_over(brought=progress.found > progress.found_before)
            return []
        progress.places[progress.stage] = place
        guess = (self._sites, _above, _linking)[progress.stage - 1]
        deepest = self._config.scope.max_depth
        found = {one.url: one for page in pages if page.depth < deepest for one in guess(page)}
        # All guesses stay on the host of a page that was visited: with links inside of hosts, they are in scope.
        return list(found.values()) if self._config.scope.internal else []

    def _sites(self, page: KeptPage) -> Iterator[Candidate]:
        """Yield the front page of a good host, and its sitemaps if robots.txt names none."""
        yield _guess(front_page(page.url), page.url, page)
        rules = self._robots(host_of(page.url)) if self._config.scope.sitemaps else None
        if self._config.scope.sitemaps and not (rules and rules.sitemaps):
            for url in sitemaps(page.url):
                yield _guess(url, page.url, page)

    def found(self, urls: int) -> None:
        """Take note that some of the guesses were unseen and are queued."""
        self._progress.found += urls

    def opened(self, some: bool) -> None:
        """Take note whether some closed hosts were opened, or none can be."""
        self._progress.through = not some
        self._stage_is_over(brought=some)

    def _stage_is_over(self, *, brought: bool) -> None:
        self._progress.at_work = False
        if brought:  # some pages are needed to see the yield of the stage
            self._progress.mark = self._yields.recent.pages

    def flush(self) -> None:
        """Put everything into the state's next commit."""
        self._state.put(EXPANSION, _encode(self._progress))

    def status(self) -> dict[str, Any]:
        """Return the entry "widening" of `thresher status --json`."""
        progress, overall = self._progress, self._yields.overall
        return {
            "stage": progress.stage,
            "name": NAMES[progress.stage],
            "found": progress.found,
            "kept": overall.since(progress.first).kept if progress.first else 0,
            "lately": self._yields.recent.last(WINDOW).rate,
            "floor": self._config.policy.floor,
        }


def good_pages(corpus: CorpusFiles, first: int) -> Iterator[tuple[int, list[KeptPage]]]:
    """Yield kept pages from an outcome on, in portions, each with the number of the outcome after it."""
    for batch in corpus.batches("outcomes", ["seq", "outcome", "url", "source", "depth"]):
        if not batch.num_rows:
            continue
        kept = batch.filter((pc.field("seq") >= first) & (pc.field("outcome") == "kept"))
        for start in range(0, kept.num_rows, PORTION):
            portion = kept.slice(start, PORTION)
            yield portion["seq"][-1].as_py() + 1, _good(portion)
        yield max(first, batch["seq"][-1].as_py() + 1), []


def _good(batch: pa.RecordBatch) -> list[KeptPage]:
    columns = (batch[name].to_pylist() for name in ("url", "source", "depth"))
    return list(map(KeptPage, *columns))


def _above(page: KeptPage) -> Iterator[Candidate]:
    return (_guess(url, page.url, page) for url in folders(page.url))


def _linking(page: KeptPage) -> Iterator[Candidate]:
    if page.source:
        yield _guess(front_page(page.source), page.source, page)


def _guess(url: str, source: str, page: KeptPage) -> Candidate:
    return Candidate(url, source, "guess", page.depth + 1)
