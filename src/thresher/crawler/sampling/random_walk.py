"""A random walk over the web with known probabilities of each step, and a near-uniform sample from it.

A walker follows a random link of its page, or jumps to a random known URL; if there is no page, it stays where it
was. Popular pages are visited too often, as in every such walk (Henzinger et al. 2000). The correction does not
count visits but adds up probabilities: at each step every URL has a probability to be next, by jump and by link.
The sum over all steps is the expected number of visits e of a page, and the page is visited at all with probability
1 - exp(-e). The inverse of this probability is its weight.

Jumps go to all known URLs with equal probability, so that the probabilities of rare pages are large enough to
correct. Jumps to the seeds, or to a random host first, would favour pages near the seeds or on small hosts. Pages
without a link from a visited page remain unknown: the sample is one of the known pages, and the more pages are
visited, the larger a part of the web they are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from random import Random

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.urls import key

JUMP = 0.3  # of steps; anything from 0.05 to 0.5 gives samples as near to uniform
MAX_KNOWN = 2_000_000  # URLs, about 600 MB; later ones are not known
NOWHERE = -1


class SampledPage(Struct, frozen=True):
    """A page of the sample."""

    url: str
    weight: float  # the weights of a sample add up to 1
    visits: int


class RandomWalk:
    """Positions of walkers, known URLs and pages, and the expected visits of each URL. It does no I/O."""

    def __init__(
        self,
        seeds: Iterable[str],
        rng: Random,
        *,
        walkers: int = 1,
        jump: float = JUMP,
        max_known: int = MAX_KNOWN,
    ) -> None:
        self._rng = rng
        self._jump = jump
        self._max_known = max_known
        self._numbers: dict[bytes, int] = {}
        self._urls: list[str] = []
        self._before = np.zeros(1024)  # of each URL: the value of _by_jump when it became known
        self._by_link = np.zeros(1024)  # of each URL: expected visits by links
        self._by_jump = 0.0  # expected visits by jumps of a URL that was known from the start
        self._pages: dict[int, int] = {}  # URL -> the page it leads to, or NOWHERE
        self._links: dict[int, NDArray[np.int32]] = {}  # of each visited page
        self._visits: Counter[int] = Counter()  # of each page
        self._at = [NOWHERE] * walkers
        for url in seeds:
            self._number(url)
        if not self._urls:
            raise ValueError("a walk needs at least one seed")

    @property
    def pages(self) -> int:
        """The number of visited pages."""
        return len(self._visits)

    @property
    def known(self) -> int:
        """The number of known URLs."""
        return len(self._urls)

    @property
    def unseen(self) -> int:
        """The number of known URLs without a known result; if it is 0 the walk cannot find more pages."""
        return len(self._urls) - len(self._pages)

    def draw(self, walker: int) -> str:
        """Return the next URL of a walker. Call a `learn` method unless the URL is known, then `arrive`."""
        links = self._links.get(self._at[walker])
        jump = self._jump if links is not None else 1.0
        self._by_jump += jump / len(self._urls)
        if links is not None:
            self._by_link[links] += (1.0 - jump) / len(links)
        if links is None or self._rng.random() < jump:
            return self._urls[self._rng.randrange(len(self._urls))]
        return self._urls[int(links[self._rng.randrange(len(links))])]

    def knows(self, url: str) -> bool:
        """Return whether the result of a URL is known."""
        return self._numbers.get(key(url), NOWHERE) in self._pages

    def learn(self, url: str, page: str, links: Iterable[str]) -> None:
        """Note that a URL leads to a page with these links; `page` is its URL after redirects."""
        number = self._number(page)
        self._pages[self._number(url)] = self._pages[number] = number
        if number not in self._links:
            found = {self._number(link) for link in links if self._may_know(link)} - {number}
            if found:
                self._links[number] = np.fromiter(sorted(found), np.int32, len(found))

    def learn_redirect(self, url: str, onward: str) -> None:
        """Note that a URL redirects to a known URL."""
        self._pages[self._number(url)] = self._pages[self._number(onward)]

    def learn_nothing(self, url: str) -> None:
        """Note that a URL leads to no page."""
        self._pages[self._number(url)] = NOWHERE

    def arrive(self, walker: int, url: str) -> None:
        """Move a walker to the page of a URL; if there is no page, or it has no links, the walker stays."""
        page = self._pages[self._number(url)]
        if page == NOWHERE:
            return
        self._visits[page] += 1
        if page in self._links:
            self._at[walker] = page

    def sample(self) -> list[SampledPage]:
        """Return all visited pages with their weights, in the order of their first visits."""
        expected = dict.fromkeys(self._visits, 0.0)
        for number, page in self._pages.items():
            if page in expected:
                expected[page] += self._by_jump - float(self._before[number]) + float(self._by_link[number])
        weights = {page: -1.0 / math.expm1(-times) for page, times in expected.items()}
        total = sum(weights.values())
        return [
            SampledPage(self._urls[page], weights[page] / total, visits)
            for page, visits in self._visits.items()
        ]

    def _may_know(self, url: str) -> bool:
        return len(self._urls) < self._max_known or key(url) in self._numbers

    def _number(self, url: str) -> int:
        """Return the number of a URL, which is known from now on; http and https of one address are one URL."""
        number = self._numbers.setdefault(key(url), len(self._urls))
        if number == len(self._urls):
            self._urls.append(url)
            if number == len(self._before):
                self._before = np.concatenate((self._before, np.zeros(number)))
                self._by_link = np.concatenate((self._by_link, np.zeros(number)))
            self._before[number] = self._by_jump
        return number


def walk(
    neighbours: Callable[[str], Sequence[str] | None],
    seeds: Iterable[str],
    rng: Random,
    *,
    pages: int,
    walkers: int = 10,
    jump: float = JUMP,
) -> RandomWalk:
    """Walk until `pages` pages were visited or none are left; `neighbours` returns links, or None for no page.

    >>> graph = {"http://a/": ["http://b/"], "http://b/": []}
    >>> [page.url for page in walk(graph.get, ["http://a/"], Random(1), pages=2).sample()]
    ['http://a/', 'http://b/']
    """
    walk = RandomWalk(seeds, rng, walkers=walkers, jump=jump)
    turns = cycle(range(walkers))
    while walk.pages < pages and walk.unseen:
        walker = next(turns)
        url = walk.draw(walker)
        if not walk.knows(url):
            links = neighbours(url)
            if links is None:
                walk.learn_nothing(url)
            else:
                walk.learn(url, url, links)
        walk.arrive(walker, url)
    return walk
