"""Simulations of a recorded crawl: faithful, reproducible, polite, and never better than the ideal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import thresher
from support.invariants import SETTINGS
from support.webs.paper_web import recorded as web
from support.webs.toy_webs import all_seeds
from thresher.cli import app
from thresher.config import PolicyName, PolicySettings
from thresher.crawler.api import crawl
from thresher.crawler.policy.policy import PlainPolicy, WeighedLinks, by_depth
from thresher.crawler.policy.prioritisers import Priorities, SourcePage
from thresher.errors import UsageError
from thresher.records import Candidate, Link
from thresher.simulation.comparison import repeated
from thresher.simulation.record import CrawlRecord, load
from thresher.simulation.simulate import (
    Simulation,
    SimulationTerms,
    area,
    downloads_for,
    ideal,
    oracle,
    simulate,
)
from thresher_lab.toyweb import ToyWeb, serve, truth

WEB = ToyWeb(
    hosts=15,
    pages_per_host=(5, 15),
    page_bytes=(4_000, 6_000),
    slow_seconds=0.1,
    drip_seconds=0.2,
    crawl_delay=0.1,
)
BFS, SPIDERLING = PolicySettings(name="bfs"), PolicySettings(name="spiderling")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("recorded") / "corpus"
    given = {**SETTINGS, "policy": {"name": "bfs"}}
    with serve(WEB) as server:
        crawl(directory, "cs", all_seeds(WEB), settings=given, connect_to=server.connect_to)
    yield directory


@pytest.fixture(scope="module")
def record(corpus: Path) -> CrawlRecord:
    return load(corpus)


@pytest.mark.slow
def test_a_simulation_of_the_same_policy_finds_the_same_documents(corpus: Path, record: CrawlRecord) -> None:
    seeds = record.find((corpus / "seeds.txt").read_text().split())
    harvest = simulate(record, BFS, seeds)
    assert sorted(harvest.visited.tolist()) == list(range(len(record.urls)))
    stats = thresher.open(corpus).stats()
    assert harvest.text[-1] == stats["bytes"]["text"]
    assert harvest.downloaded[-1] == stats["bytes"]["downloaded"]


def test_a_duplicate_has_the_number_of_its_original(corpus: Path, record: CrawlRecord) -> None:
    outcomes = thresher.open(corpus).outcomes(["outcome", "reason"]).to_pylist()
    duplicates = [number for number, row in enumerate(outcomes) if row["reason"] == "text duplicate"]
    assert duplicates
    for number in duplicates:
        assert outcomes[record.originals[number]]["outcome"] == "kept"
        assert record.worth[number] == record.worth[record.originals[number]] > 0


def test_only_the_first_visited_of_equal_texts_counts() -> None:
    copies = web(
        [("http://a.cz/", 10, 0), ("http://a.cz/1", 10, 7), ("http://b.cz/1", 10, 7)], {0: [2, 1]}, {2: 1}
    )
    assert simulate(copies, BFS, [0]).text.tolist() == [0, 7, 7]
    assert ideal(copies).text.tolist() == [7]


def test_a_polite_crawl_leaves_each_host_its_rest(corpus: Path, record: CrawlRecord) -> None:
    seeds = record.find((corpus / "seeds.txt").read_text().split())
    harvest = simulate(record, BFS, seeds, SimulationTerms(delay=2.0, connections=5, latency=0.25))
    visits: dict[str, list[float]] = {}
    for number, moment in zip(harvest.visited.tolist(), harvest.seconds.tolist(), strict=True):
        visits.setdefault(record.hosts[number], []).append(moment)
    assert all(later - earlier > 2.0 for times in visits.values() for earlier, later in pairwise(times))
    assert any(len(times) > 3 for times in visits.values())
    alone = simulate(record, BFS, seeds, SimulationTerms(delay=2.0, connections=1, latency=0.25))
    assert harvest.seconds[50] < alone.seconds[50]


def test_latencies_vary_around_their_mean_and_are_reproducible_by_a_seed() -> None:
    pages = web([(f"http://a.cz/{number}", 10, 0) for number in range(2_000)], {})
    everything = range(2_000)
    terms = SimulationTerms(connections=1, latency=0.2)
    times = np.diff(simulate(pages, BFS, everything, terms).seconds)
    assert times.mean() == pytest.approx(0.2, rel=0.05)
    assert 0.05 < times.std() < 0.15
    again, other = (simulate(pages, BFS, everything, terms._replace(seed=seed)) for seed in (1, 2))
    assert np.diff(again.seconds).tolist() == times.tolist()
    assert (other.seconds != again.seconds).all()
    assert not simulate(pages, BFS, everything, terms._replace(latency=0.0)).seconds.any()


def test_answers_do_not_come_in_the_order_of_their_requests() -> None:
    pages = web([(f"http://h{number}.cz/", 10, 0) for number in range(100)], {})
    visited = simulate(pages, BFS, range(100), SimulationTerms(connections=100)).visited.tolist()
    assert visited != sorted(visited)
    at_once = simulate(pages, BFS, range(100), SimulationTerms(connections=100, latency=0.0)).visited.tolist()
    assert at_once == sorted(at_once), "unless they come at once"


def test_the_first_turn_of_a_host_goes_to_its_robots_txt() -> None:
    pages = web([("http://a.cz/", 10, 0), ("http://a.cz/1", 10, 0), ("http://b.cz/", 10, 0)], {0: [1, 2]})
    harvest = simulate(pages, BFS, [0], SimulationTerms(delay=10.0, latency=0.0))
    assert harvest.visited.tolist() == [0, 1, 2]
    assert harvest.seconds.tolist() == [10.0, 20.0, 20.0]


class Listening(PlainPolicy):
    """A policy that records the origins of URLs."""

    def __init__(self) -> None:
        super().__init__(Priorities(BFS), by_depth)
        self.ways: dict[str, str] = {}
        self.rels: dict[str, str] = {}

    def weigh_links(
        self, candidates: Sequence[Candidate], source: SourcePage, links: Sequence[Link]
    ) -> WeighedLinks:
        self.rels.update({link.url: link.rel for link in links})
        found = super().weigh_links(candidates, source, links)
        return WeighedLinks(self.weigh_urls(found.queued), found.chances)

    def weigh_urls(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        self.ways.update({one.url: one.via for one in candidates})
        return list(candidates)


def test_links_of_sitemaps_and_feeds_have_their_origin(corpus: Path, record: CrawlRecord) -> None:
    policy = Listening()
    seeds = record.find((corpus / "seeds.txt").read_text().split())
    Simulation(record, BFS, SimulationTerms(), policy).run(seeds)
    kinds = {url: truth(WEB, url).kind for url in record.urls}
    listed = {"sitemap": set[str](), "feed": set[str]()}
    for row in thresher.open(corpus).links().to_pylist():
        if (kind := kinds.get(row["source"], "").partition(" ")[0]) in listed:
            listed[kind].add(row["target"])
    for way, urls in listed.items():
        came = {url for url, via in policy.ways.items() if via == way}
        assert came
        assert came <= urls | {record.urls[number] for named in record.sitemaps.values() for number in named}
    assert {"seed", "page", "redirect", "sitemap", "feed"} == set(policy.ways.values())


def test_links_keep_their_rel(corpus: Path, record: CrawlRecord) -> None:
    policy = Listening()
    Simulation(record, BFS, SimulationTerms(), policy).run(
        record.find((corpus / "seeds.txt").read_text().split())
    )
    marked = {rel for rel in policy.rels.values() if rel}
    assert {"alternate feed", "sitemap"} <= marked


def test_spiderling_closes_a_host_that_gives_nothing() -> None:
    pages = [(f"http://dry.cz/{number}", 70_000, 0) for number in range(20)]
    dry = web([*pages, ("http://wet.cz/", 1_000, 500)], {0: list(range(1, 21))}, {})
    harvest = simulate(dry, SPIDERLING, [0])
    assert harvest.closed_hosts == 1
    assert harvest.text[-1] == 500
    assert len(harvest.visited) == 12  # the threshold of ten pages is nothing, that of eleven is more
    assert len(simulate(dry, BFS, [0]).visited) == 21


@pytest.mark.parametrize("connections", [1, 3])
def test_all_hosts_of_a_poor_domain_are_closed_before_their_first_fetch(connections: int) -> None:
    barren = web([(f"http://h{number}.dry.cz/", 70_000, 0) for number in range(60)], {}, {})
    harvest = simulate(barren, SPIDERLING, range(60), SimulationTerms(connections=connections))
    # The threshold of eleven pages is the first that is not zero; visits under way come to an end.
    assert 11 <= len(harvest.visited) <= 11 + connections - 1
    assert harvest.closed_hosts > 60 - len(harvest.visited), "and the host of the page that decided"


class Weighing(Listening):
    """A policy that gives each link a low weight, and records the targets of redirects as they are queued."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[Candidate] = []

    def weigh_links(
        self, candidates: Sequence[Candidate], source: SourcePage, links: Sequence[Link]
    ) -> WeighedLinks:
        return WeighedLinks([replace(one, weight=0.09) for one in candidates], [None] * len(candidates))

    def weigh_urls(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        self.targets += [one for one in candidates if one.via == "redirect"]
        return list(candidates)


def test_the_target_of_a_redirect_is_weighed_as_a_new_url() -> None:
    pages = [("http://a.cz/", 10, 5), ("http://a.cz/old", 10, 0), ("http://b.cz/new", 10, 5)]
    leading = web(pages, {0: [1], 1: [2]})._replace(redirects=np.array([False, True, False]))
    policy = Weighing()
    assert Simulation(leading, BFS, SimulationTerms(), policy).run([0]).visited.tolist() == [0, 1, 2]
    expected = Candidate("http://b.cz/new", "http://a.cz/old", "redirect", depth=1, weight=1.0, hops=1)
    assert policy.targets == [expected]


class Curious(PlainPolicy):
    """A policy that records the pages that the yields know of when links are weighed."""

    def __init__(self, record: CrawlRecord) -> None:
        super().__init__(Priorities(BFS), by_depth)
        self.simulation = Simulation(record, BFS, SimulationTerms(), self)
        self.pages: list[int] = []

    def weigh_links(
        self, candidates: Sequence[Candidate], source: SourcePage, links: Sequence[Link]
    ) -> WeighedLinks:
        self.pages.append(self.simulation._yields.overall.pages)
        return super().weigh_links(candidates, source, links)


def test_links_are_weighed_before_anything_is_learnt_from_their_page() -> None:
    chain = web([(f"http://a.cz/{number}", 10, 5) for number in range(4)], {0: [1], 1: [2], 2: [3]})
    policy = Curious(chain)
    policy.simulation.run([0])
    assert policy.pages == [0, 1, 2]


@pytest.mark.parametrize("policy", get_args(PolicyName))
def test_every_policy_can_be_replayed_reproducibly(
    corpus: Path, record: CrawlRecord, policy: PolicyName
) -> None:
    seeds = record.find((corpus / "seeds.txt").read_text().split())
    runs = [
        simulate(record, PolicySettings(name=policy), seeds, SimulationTerms(seed=3)).visited.tolist()
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert policy == "spiderling" or sorted(runs[0]) == list(range(len(record.urls)))
    other = simulate(record, PolicySettings(name=policy), seeds, SimulationTerms(seed=4)).visited.tolist()
    assert (other == runs[0]) == (policy in ("bfs", "spiderling", "learned", "focus"))


def test_a_host_that_gives_text_is_visited_before_one_that_gives_none() -> None:
    pages = [
        (f"http://{host}.cz/{n}", 40_000, 0 if host == "dry" else 20_000)
        for host in ("dry", "wet")
        for n in range(30)
    ]
    links = {0: list(range(1, 30)), 30: list(range(31, 60))}
    policy = PolicySettings(name="host-yield", temperature=0.0)
    visited = simulate(web(pages, links, {}), policy, [0, 30]).visited.tolist()
    assert set(visited[5:30]) <= set(range(30, 60))


def test_a_simulation_ends_with_its_budget_of_bytes(corpus: Path, record: CrawlRecord) -> None:
    seeds = record.find((corpus / "seeds.txt").read_text().split())
    harvest = simulate(record, BFS, seeds, SimulationTerms(bytes=20_000))
    assert harvest.downloaded[-2] < 20_000 <= harvest.downloaded[-1]
    assert downloads_for(harvest, harvest.text[-1] + 1) is None


@st.composite
def webs(draw: st.DrawFn) -> CrawlRecord:
    count = draw(st.integers(1, 12))
    pages = [
        (f"http://h{draw(st.integers(0, 3))}.cz/{n}", draw(st.integers(1, 500)), draw(st.integers(0, 200)))
        for n in range(count)
    ]
    number = st.integers(0, count - 1)
    links = {n: draw(st.lists(number, max_size=4)) for n in range(count)}
    originals = {n: n - 1 for n in range(1, count, 2) if draw(st.booleans())}
    pages = [(url, size, pages[originals.get(n, n)][2]) for n, (url, size, _) in enumerate(pages)]
    return web(pages, links, originals)


@settings(max_examples=200)
@given(webs(), st.integers(1, 3), st.sampled_from([0.0, 1.0]))
def test_no_policy_harvests_more_than_the_ideal_or_visits_a_page_twice(
    recorded: CrawlRecord, connections: int, delay: float
) -> None:
    best = ideal(recorded)
    terms = SimulationTerms(delay=delay, connections=connections)
    for harvest in (simulate(recorded, BFS, [0], terms), oracle(recorded, [0]), best):
        assert len(set(harvest.visited.tolist())) == len(harvest.visited)
        assert (np.diff(harvest.text) >= 0).all()
        assert 0 <= area(harvest, best) <= 1 + 1e-9
    if len(best.text):
        assert area(best, best) == pytest.approx(1)
    again = simulate(recorded, BFS, [0], terms)
    assert again.visited.tolist() == simulate(recorded, BFS, [0], terms).visited.tolist()


def test_the_command_compares_policies(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app(["simulate", str(corpus), "--policy", "bfs,spiderling", "--json"], result_action="return_value")
    rows = {row["policy"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(rows) == ["bfs", "spiderling", "oracle", "ideal"]
    assert rows["bfs"]["area"] < rows["oracle"]["area"] < rows["ideal"]["area"] == 1
    assert rows["ideal"]["share"] == 1


def test_invalid_simulations_are_refused(corpus: Path, record: CrawlRecord) -> None:
    with pytest.raises(UsageError, match="choose one of learned"):
        list(repeated(record, ["best"], [0], SimulationTerms()))
    with pytest.raises(UsageError, match="--seeds"):
        list(repeated(record, ["bfs"], [], SimulationTerms()))
    with pytest.raises(UsageError, match="--lang"):
        list(repeated(load(corpus, "sw"), ["bfs"], [0], SimulationTerms()))


def test_a_crawl_for_one_language_is_simulated_for_another(corpus: Path) -> None:
    record = load(corpus, "ja")
    harvest = simulate(record, BFS, record.find(all_seeds(WEB)))
    assert 0 < harvest.text[-1] == ideal(record).text[-1]
