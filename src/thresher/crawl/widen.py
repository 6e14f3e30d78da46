"""A crawl that runs dry looks for more around what was good so far, in stages, each of them when it is dry again.

    1  front pages of hosts with kept pages, and their sitemaps
    2  the folders in which kept pages stand: where one is, there are others
    3  front pages of hosts that linked to kept pages
    4  hosts that were closed for their yield, under ever lower thresholds

Dry is a crawl with nothing left to visit, or whose last pages gave far less than all of them did, or less than
the floor. Stages 1 to 3 read the outcomes from where they last were, a portion at a time, and guess URLs; these
go through scope, `Seen`, robots.txt and the policy like any others. Where all stages together brought enough,
another round begins with the pages kept since; where they did not, the crawl goes on with what is queued until
that gives less than the floor.
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
from thresher.crawl.ending import Ending
from thresher.crawl.robots import Robots
from thresher.crawl.state import State
from thresher.crawl.yields import Tally, Yields
from thresher.page import Candidate
from thresher.store.corpus import Corpus, of_part
from thresher.url import host as host_of

PROGRESS = b"m/widening"
POLICIES = ("learned", "focus", "host-yield", "heidix")  # the others do what their papers say, and no more

WINDOW = 300  # pages by which it is told that a crawl is dry …
FAR_LESS = 0.1  # … because they gave less than this share of what the crawl as a whole did
LONG_WINDOW = 1_000  # pages by which it is told that it is below the floor
PORTION = 200  # kept pages that are looked at between two looks at the network: some 15 ms of work

NAMES = (
    "",
    "front pages and sitemaps of good hosts",
    "folders of good pages",
    "hosts that linked to good pages",
    "hosts closed for low yield",
)
CLOSED_HOSTS = len(NAMES) - 1

_encode = msgspec.msgpack.Encoder().encode


class Good(NamedTuple):
    """A kept page."""

    url: str
    source: str  # the page that led to it; "" for a seed
    depth: int


# guesses


def front_page(url: str) -> str:
    """The front page of a URL's host."""
    scheme, _, host = url.split("/", 3)[:3]
    return f"{scheme}//{host}/"


def folders(url: str) -> list[str]:
    """A URL without its query, and every folder up its path except the root.

    >>> folders("http://a.cz/x/y/z.php?id=1")
    ['http://a.cz/x/y/z.php', 'http://a.cz/x/y/', 'http://a.cz/x/']
    """
    path = url.partition("?")[0]
    root = front_page(url)
    names = path[len(root) :].split("/")
    above = [f"{root}{'/'.join(names[:count])}/" for count in range(len(names) - 1, 0, -1)]
    return [guess for guess in (path, *above) if guess != url]


def sitemaps(url: str) -> list[str]:
    """Where most sites have their sitemaps."""
    root = front_page(url)
    return [f"{root}sitemap.xml", f"{root}sitemap_index.xml"]


class Progress(Struct, array_like=True):
    """How far a crawl has widened."""

    stage: int = 0
    at_work: bool = False  # on that stage; otherwise it is over and the crawl lives on what it brought
    through: bool = False  # all stages are over
    places: list[int] = field(default_factory=lambda: [0] * CLOSED_HOSTS)  # the next outcome, by stage
    found: int = 0  # URLs queued so far …
    found_before: int = 0  # … and when the stage began
    mark: int = 0  # pages of the crawl when a stage that brought something was over
    first: Tally | None = None  # the crawl when it began to widen …
    begun: Tally = field(default_factory=Tally)  # … and when the present round began


class Widening:
    """Whether a crawl is dry, and what to do about it."""

    def __init__(
        self,
        directory: Path,
        config: Config,
        state: State,
        yields: Yields,
        robots: Callable[[str], Robots | None],
    ) -> None:
        self._corpus = of_part(directory, config)
        self._config = config
        self._state = state
        self._yields = yields
        self._robots = robots
        policy = config.policy
        self._is_on = policy.widen and policy.name in POLICIES and not config.cycles.pages
        self._progress = msgspec.msgpack.decode(state.get(PROGRESS) or _encode(Progress()), type=Progress)
        self._pages: Iterator[tuple[int, list[Good]]] | None = None
        self.go_on()

    def go_on(self) -> None:
        """Whoever lets a crawl go on that had tried everything wants some pages at least."""
        if self._progress.through:
            self._progress.mark = self._yields.lately.pages

    # dry or not

    def is_due(self, *, idle: bool) -> bool:
        """Whether there is something to do now; `idle`: nothing is left to visit, or not for long."""
        if not self._is_on:
            return False
        if self._progress.at_work:
            return True
        return (idle or self._is_dry()) and (not self._progress.through or self._was_worth_it())

    def _is_dry(self) -> bool:
        yields = self._yields
        if yields.lately.pages - self._progress.mark < WINDOW:
            return False
        enough = max(FAR_LESS * yields.overall.rate, self._config.policy.floor)
        return yields.lately.last(WINDOW).rate < enough

    def _was_worth_it(self) -> bool:
        """Whether this round brought enough for another one."""
        brought = self._yields.overall.since(self._progress.begun)
        return brought.kept > 0 and brought.rate >= self._config.policy.floor

    @property
    def is_over(self) -> bool:
        """Whether all was tried and the crawl is below the floor."""
        lately, progress = self._yields.lately, self._progress
        return (
            self._is_on
            and progress.through
            and lately.pages - progress.mark >= LONG_WINDOW
            and lately.last(LONG_WINDOW).rate < self._config.policy.floor
        )

    def ending(self, queued: int) -> Ending:
        """Why a crawl ends that is over."""
        window, floor = self._yields.lately.last(LONG_WINDOW), self._config.policy.floor
        return Ending(
            "dry",
            f"the last {window.pages:,} pages gave {window.rate:.6f} bytes of text for each byte downloaded, less "
            f"than policy.floor = {floor:g}, and there is nowhere else to look. {queued:,} URLs stay queued: go on "
            f"with a lower floor (--floor {floor / 10:g}; 0: to the last URL) or with more seeds.",
        )

    # stages

    def begin(self, commit: Callable[[], None]) -> None:
        """Begin the next stage, unless one is being worked on."""
        progress = self._progress
        if progress.at_work:
            return
        if progress.stage == 0 or progress.through:  # the first round, or another one
            progress.stage, progress.through, progress.begun = 0, False, replace(self._yields.overall)
            progress.first = progress.first or progress.begun
        progress.stage = min(progress.stage + 1, CLOSED_HOSTS)
        progress.at_work = True
        progress.found_before = progress.found
        commit()  # only what was committed can be read

    @property
    def wants_quiet(self) -> bool:
        """Whether closed hosts are to be opened, which takes a moment without visits."""
        return self._is_on and self._progress.at_work and self._progress.stage == CLOSED_HOSTS

    def guesses(self) -> list[Candidate]:
        """Guess some URLs from the next kept pages; most of them may be known already."""
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

    def _sites(self, page: Good) -> Iterator[Candidate]:
        """The front page of a good host, and its sitemaps, where robots.txt did not tell of any."""
        yield _guess(front_page(page.url), page.url, page)
        rules = self._robots(host_of(page.url)) if self._config.scope.sitemaps else None
        if self._config.scope.sitemaps and not (rules and rules.sitemaps):
            for url in sitemaps(page.url):
                yield _guess(url, page.url, page)

    def found(self, urls: int) -> None:
        """So many of the guesses were new and are queued."""
        self._progress.found += urls

    def opened(self, some: bool) -> None:
        """Hosts were opened again, or none is left that could be."""
        self._progress.through = not some
        self._stage_is_over(brought=some)

    def _stage_is_over(self, *, brought: bool) -> None:
        self._progress.at_work = False
        if brought:  # it takes some pages to tell what it was worth
            self._progress.mark = self._yields.lately.pages

    def flush(self) -> None:
        """Hand everything to the state's next commit."""
        self._state.put(PROGRESS, _encode(self._progress))

    def status(self) -> dict[str, Any]:
        """For `thresher status --json`."""
        progress, overall = self._progress, self._yields.overall
        return {
            "stage": progress.stage,
            "name": NAMES[progress.stage],
            "found": progress.found,
            "kept": overall.since(progress.first).kept if progress.first else 0,
            "lately": self._yields.lately.last(WINDOW).rate,
            "floor": self._config.policy.floor,
        }


def good_pages(corpus: Corpus, first: int) -> Iterator[tuple[int, list[Good]]]:
    """Pages that were kept, in portions, from an outcome on; each with the number of the outcome to go on from."""
    for batch in corpus.batches("outcomes", ["seq", "outcome", "url", "source", "depth"]):
        if not batch.num_rows:
            continue
        kept = batch.filter((pc.field("seq") >= first) & (pc.field("outcome") == "kept"))
        for start in range(0, kept.num_rows, PORTION):
            portion = kept.slice(start, PORTION)
            yield portion["seq"][-1].as_py() + 1, _good(portion)
        yield max(first, batch["seq"][-1].as_py() + 1), []


def _good(batch: pa.RecordBatch) -> list[Good]:
    columns = (batch[name].to_pylist() for name in ("url", "source", "depth"))
    return list(map(Good, *columns))


def _above(page: Good) -> Iterator[Candidate]:
    return (_guess(url, page.url, page) for url in folders(page.url))


def _linking(page: Good) -> Iterator[Candidate]:
    if page.source:
        yield _guess(front_page(page.source), page.source, page)


def _guess(url: str, source: str, page: Good) -> Candidate:
    return Candidate(url, source, "guess", page.depth + 1)
