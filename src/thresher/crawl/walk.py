"""A random walk over the web whose every step has a known chance, and the near-uniform sample made of it.

A walker follows a random link of the page it is at, or jumps to any URL that the walk has heard of; where there
is nothing, it turns back. Popular pages are visited too often, as in every such walk (Henzinger et al. 2000).
The correction does not count visits, it adds up their chances: at each step, whoever stands where, every URL has
a chance to be next, by the jump and by the link. The sum over all steps is how often a page was to be expected,
and a page that was to be expected e times was come across at all with the chance 1 - exp(-e). One over that is
its weight.

Jumps go to all URLs heard of alike. That is what makes the chances of rare pages large enough to correct: a
jump to the seeds, or to a host first, would favour what is near the seeds, or small hosts. What remains is
that nobody hears of a page that no visited page links to: the sample is one of the pages heard of, and the more
are visited, the more of the web these are.
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

from thresher.url import key

JUMP = 0.3  # of steps; anything from 0.05 to 0.5 gives samples as near to uniform
MAX_KNOWN = 2_000_000  # URLs, about 600 MB; beyond, the sample is one of those heard of first
NOWHERE = -1


class Sampled(Struct, frozen=True):
    """A page of the sample."""

    url: str
    weight: float  # all together 1
    visits: int


class Walk:
    """Where walkers are, what they have seen, and the chance that each URL had. Knows no network."""

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
        self._before = np.zeros(1024)  # of each URL: the chance of jumps from before it was heard of
        self._by_link = np.zeros(1024)  # of each URL: the sum of its chances to be reached by a link
        self._by_jump = 0.0  # the same by jumps, of a URL that was known from the start
        self._pages: dict[int, int] = {}  # URL -> the page it leads to, or NOWHERE
        self._links: dict[int, NDArray[np.int32]] = {}  # of each page that was visited
        self._visits: Counter[int] = Counter()  # of each page
        self._at = [NOWHERE] * walkers
        for url in seeds:
            self._number(url)
        if not self._urls:
            raise ValueError("a walk starts somewhere: give a seed")

    @property
    def pages(self) -> int:
        """How many pages were visited."""
        return len(self._visits)

    @property
    def known(self) -> int:
        """How many URLs the walk has heard of."""
        return len(self._urls)

    @property
    def unseen(self) -> int:
        """How many of them nobody has looked at; with none left, nothing new can come."""
        return len(self._urls) - len(self._pages)

    def draw(self, walker: int) -> str:
        """The URL that the walker goes to next: `learn` what is there unless it is known, then `arrive`."""
        links = self._links.get(self._at[walker])
        jump = self._jump if links is not None else 1.0
        self._by_jump += jump / len(self._urls)
        if links is not None:
            self._by_link[links] += (1.0 - jump) / len(links)
        if links is None or self._rng.random() < jump:
            return self._urls[self._rng.randrange(len(self._urls))]
        return self._urls[int(links[self._rng.randrange(len(links))])]

    def knows(self, url: str) -> bool:
        """Whether it is known where a URL leads."""
        return self._numbers.get(key(url), NOWHERE) in self._pages

    def learn(self, url: str, page: str, links: Iterable[str]) -> None:
        """The URL leads to a page (at another URL where it was redirected) that has these links."""
        number = self._number(page)
        self._pages[self._number(url)] = self._pages[number] = number
        if number not in self._links:
            found = {self._number(link) for link in links if self._may_know(link)} - {number}
            if found:
                self._links[number] = np.fromiter(sorted(found), np.int32, len(found))

    def learn_redirect(self, url: str, onward: str) -> None:
        """The URL leads where another leads that is known."""
        self._pages[self._number(url)] = self._pages[self._number(onward)]

    def learn_nothing(self, url: str) -> None:
        """The URL leads to no page."""
        self._pages[self._number(url)] = NOWHERE

    def arrive(self, walker: int, url: str) -> None:
        """The walker visits the page that the URL leads to; where there is none, it is back where it was."""
        page = self._pages[self._number(url)]
        if page == NOWHERE:
            return
        self._visits[page] += 1
        if page in self._links:  # else it turns back here, too
            self._at[walker] = page

    def sample(self) -> list[Sampled]:
        """Every page visited with its weight, in the order of the first visits."""
        expected = dict.fromkeys(self._visits, 0.0)
        for number, page in self._pages.items():
            if page in expected:
                expected[page] += self._by_jump - float(self._before[number]) + float(self._by_link[number])
        weights = {page: -1.0 / math.expm1(-times) for page, times in expected.items()}
        total = sum(weights.values())
        return [
            Sampled(self._urls[page], weights[page] / total, visits) for page, visits in self._visits.items()
        ]

    def _may_know(self, url: str) -> bool:
        return len(self._urls) < self._max_known or key(url) in self._numbers

    def _number(self, url: str) -> int:
        """The number of a URL; from now on it is known. http and https of one address are one."""
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
) -> Walk:
    """Walk until so many pages were visited or none are left. `neighbours` gives a page's links, None for no page.

    >>> graph = {"http://a/": ["http://b/"], "http://b/": []}
    >>> [page.url for page in walk(graph.get, ["http://a/"], Random(1), pages=2).sample()]
    ['http://a/', 'http://b/']
    """
    walking = Walk(seeds, rng, walkers=walkers, jump=jump)
    turns = cycle(range(walkers))
    while walking.pages < pages and walking.unseen:
        walker = next(turns)
        url = walking.draw(walker)
        if not walking.knows(url):
            links = neighbours(url)
            if links is None:
                walking.learn_nothing(url)
            else:
                walking.learn(url, url, links)
        walking.arrive(walker, url)
    return walking
