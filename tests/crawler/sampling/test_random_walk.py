"""The random walk: a sample in which popular pages weigh no more than others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random

import numpy as np
import pytest

from support.webs.toy_webs import all_seeds
from thresher.crawler.sampling.estimate import estimate
from thresher.crawler.sampling.random_walk import RandomWalk, SampledPage, walk
from thresher.urls import host, tld
from thresher_lab.toyweb import ToyWeb, reachable

Graph = Mapping[str, Sequence[str]]
Weights = Mapping[str, float]

WEB = ToyWeb.calm(hosts=30, pages_per_host=(10, 60))
STRATA = 5
TOP = 0.05  # the share of pages that have the most in-links
WALKS = 8

# Bounds of a near-uniform sample: a uniform sample of as many pages stays within both bounds. A walk that is not
# corrected has to fail them, or the test would show nothing.
MAX_DISTANCE = 0.1  # total variation between the sample's and the true shares of pages by in-links
MAX_FAVOUR = 1.5  # times that the most popular pages are more frequent in the sample than among all pages


@pytest.fixture(scope="module")
def graph() -> dict[str, tuple[str, ...]]:
    """Return the pages of a toy web that its seeds lead to, with their links."""
    found = dict(reachable(WEB, all_seeds(WEB)))
    pages = {url for url, known in found.items() if known.status == 200 and known.language}
    return {url: tuple(link for link in found[url].links if link in pages and link != url) for url in pages}


class Popularity:
    """Pages in strata of equal size by their in-links."""

    def __init__(self, graph: Graph) -> None:
        self.links = Counter(link for links in graph.values() for link in links)
        ordered = sorted(graph, key=lambda url: (self.links[url], url))
        self.stratum = {url: place * STRATA // len(ordered) for place, url in enumerate(ordered)}
        self.top = set(ordered[-round(TOP * len(ordered)) :])

    def distance(self, weights: Weights) -> float:
        """Return the total variation between the shares of the strata and the shares of a uniform sample."""
        shares = [0.0] * STRATA
        for url, weight in weights.items():
            shares[self.stratum[url]] += weight
        total = sum(weights.values())
        return sum(abs(share / total - 1 / STRATA) for share in shares) / 2

    def favour(self, weights: Weights) -> float:
        """Return the frequency of the most popular pages relative to a uniform sample."""
        top = sum(weight for url, weight in weights.items() if url in self.top)
        return top / sum(weights.values()) / TOP


def weighed(sample: Sequence[SampledPage]) -> dict[str, float]:
    return {page.url: page.weight for page in sample}


def counted(sample: Sequence[SampledPage]) -> dict[str, float]:
    """Return a plain walk: the weight of a page is the number of its visits."""
    return {page.url: float(page.visits) for page in sample}


def test_the_sample_is_near_uniform_and_the_plain_walk_is_not(graph: Graph) -> None:
    popular = Popularity(graph)
    pages = round(0.3 * len(graph))
    walks = [walk(graph.get, all_seeds(WEB), Random(number), pages=pages).sample() for number in range(WALKS)]
    uniform = [dict.fromkeys(Random(number).sample(sorted(graph), pages), 1.0) for number in range(WALKS)]

    def mean(measure: Callable[[Weights], float], samples: Sequence[Weights]) -> float:
        return float(np.mean([measure(each) for each in samples]))

    corrected, plain = [weighed(each) for each in walks], [counted(each) for each in walks]
    assert mean(popular.distance, uniform) < MAX_DISTANCE
    assert mean(popular.distance, corrected) < MAX_DISTANCE < mean(popular.distance, plain)
    assert mean(popular.favour, uniform) < MAX_FAVOUR
    assert mean(popular.favour, corrected) < MAX_FAVOUR < mean(popular.favour, plain)


def test_the_more_pages_are_visited_the_nearer_is_the_sample_to_uniform(graph: Graph) -> None:
    popular = Popularity(graph)

    def distance(share: float, number: int) -> float:
        found = walk(graph.get, all_seeds(WEB), Random(number), pages=int(share * len(graph)))
        return popular.distance(weighed(found.sample()))

    distances = [np.mean([distance(share, number) for number in range(WALKS)]) for share in (0.1, 0.3, 0.9)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.02


def test_a_page_that_all_link_to_weighs_as_much_as_any_other() -> None:
    hub, leaves = "http://hub/", [f"http://leaf/{number}" for number in range(200)]
    star = {hub: leaves, **{leaf: [hub] for leaf in leaves}}
    walks = [walk(star.get, [hub], Random(number), pages=100).sample() for number in range(20)]
    visits = np.mean(
        [page.visits / sum(each.visits for each in found) for found in walks for page in found[:1]]
    )
    weight = np.mean([weighed(found)[hub] for found in walks])
    assert visits > 0.2
    assert weight == pytest.approx(1 / len(star), rel=0.2)


def test_every_url_is_visited_once_and_urls_without_a_page_are_in_no_sample() -> None:
    asked: Counter[str] = Counter()
    pages = {f"http://a/{n}": [f"http://a/{(n * 7 + k) % 60}" for k in range(1, 5)] for n in range(0, 60, 2)}

    def neighbours(url: str) -> list[str] | None:
        asked[url] += 1
        return pages.get(url)

    found = walk(neighbours, ["http://a/0"], Random(3), pages=1_000)
    assert max(asked.values()) == 1
    assert asked.keys() - pages.keys()
    assert {page.url for page in found.sample()} == asked.keys() & pages.keys()
    assert found.unseen == 0


def test_a_walker_turns_back_from_a_page_without_links() -> None:
    ends = [f"http://end/{number}" for number in range(50)]
    graph: Graph = {"http://a/": ends, **{end: [] for end in ends}}
    walking = RandomWalk(["http://a/"], Random(1), jump=0.0)
    for _ in range(30):
        url = walking.draw(0)
        if not walking.knows(url):
            walking.learn(url, url, graph[url])
        walking.arrive(0, url)
    assert {page.visits for page in walking.sample() if page.url == "http://a/"} == {1}
    assert walking.pages > 15  # with nothing but the one page to come from, and no jumps


def test_the_chances_of_all_urls_that_lead_to_a_page_count_for_it() -> None:
    """A page with many names is found more easily, and must not weigh more for it."""
    names = [f"http://many/{number}" for number in range(40)]
    others = [f"http://one/{number}" for number in range(40)]
    shares = []
    for number in range(20):
        walking = RandomWalk(["http://start/"], Random(number), jump=0.5)
        for _ in range(400):
            url = walking.draw(0)
            if not walking.knows(url):
                page = "http://many/0" if url in names else url
                walking.learn(url, page, [*names, *others])
            walking.arrive(0, url)
        shares.append(weighed(walking.sample())["http://many/0"])
    assert np.mean(shares) == pytest.approx(1 / 42, rel=0.15)


def test_a_redirect_to_a_known_page_is_another_name_for_it() -> None:
    walking = RandomWalk(["http://a/", "http://b/"], Random(1))
    walking.draw(0)
    walking.learn("http://a/", "http://a/", [])
    walking.learn_redirect("http://b/", "http://a/")
    walking.arrive(0, "http://b/")
    assert [page.url for page in walking.sample()] == ["http://a/"]


def test_http_and_https_of_one_address_are_one_page() -> None:
    walking = RandomWalk(["http://a/", "https://a/"], Random(1))
    assert walking.known == 1
    walking.learn("http://a/", "https://a/", [])
    assert walking.knows("https://a/")


def test_memory_is_bounded_by_the_urls_that_may_be_known() -> None:
    walking = RandomWalk(["http://a/"], Random(1), max_known=100)
    walking.learn("http://a/", "http://a/", (f"http://a/{number}" for number in range(10_000)))
    assert walking.known == 100


def test_the_same_chance_gives_the_same_sample(graph: Graph) -> None:
    first, second, other = (
        walk(graph.get, all_seeds(WEB), Random(number), pages=100).sample() for number in (5, 5, 6)
    )
    assert first == second != other
    assert sum(page.weight for page in first) == pytest.approx(1.0)


def test_a_walk_needs_somewhere_to_start() -> None:
    with pytest.raises(ValueError, match="seed"):
        RandomWalk([], Random(1))


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_intervals_hold_the_truth_about_as_often_as_they_say(graph: Graph, share: float) -> None:
    true = Counter(tld(host(url)) for url in graph)
    held = []
    for number in range(20):
        sample = walk(graph.get, all_seeds(WEB), Random(number), pages=round(share * len(graph))).sample()
        found = {each.value: each for each in estimate(sample, [tld(host(page.url)) for page in sample])}
        held += [
            each.low <= true[name] / len(graph) <= each.high for name, each in found.items() if name in true
        ]
    assert np.mean(held) > 0.9


def test_shares_are_ordered_and_lie_in_their_intervals(graph: Graph) -> None:
    sample = walk(graph.get, all_seeds(WEB), Random(1), pages=200).sample()
    found = estimate(sample, [tld(host(page.url)) for page in sample])
    assert [each.share for each in found] == sorted((each.share for each in found), reverse=True)
    assert all(0 <= each.low <= each.share <= each.high <= 1 for each in found)
    assert sum(each.share for each in found) == pytest.approx(1.0)


def test_nothing_is_estimated_from_nothing() -> None:
    assert estimate([], []) == []
