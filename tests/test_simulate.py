"""A recorded web, crawled again on paper: as it was, under other policies, politely, never beyond the ideal."""

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

import thresher
from invariants import SETTINGS, start
from paper import recorded as web
from thresher.cli import app
from thresher.config import ConfigError, Policy, PolicyName
from thresher.crawl.guide import Found, Plain, by_depth
from thresher.crawl.priority import Priorities, Source
from thresher.crawl.start import crawl
from thresher.lab.comparison import repeated
from thresher.lab.record import Record, load
from thresher.lab.simulate import Simulation, Terms, area, downloads_for, ideal, oracle, simulate
from thresher.lab.toyweb import ToyWeb, serve, truth
from thresher.page import Candidate, Link

WEB = ToyWeb(
    hosts=15,
    pages_per_host=(5, 15),
    page_bytes=(4_000, 6_000),
    slow_seconds=0.1,
    drip_seconds=0.2,
    crawl_delay=0.1,
)
BFS, SPIDERLING = Policy(name="bfs"), Policy(name="spiderling")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("recorded") / "corpus"
    given = {**SETTINGS, "policy": {"name": "bfs"}}
    with serve(WEB) as server:
        crawl(directory, "cs", start(WEB), settings=given, connect_to=server.connect_to)
    yield directory


@pytest.fixture(scope="module")
def record(corpus: Path) -> Record:
    return load(corpus)


def test_the_same_policy_finds_on_paper_what_it_found_on_the_web(corpus: Path, record: Record) -> None:
    seeds = record.find((corpus / "seeds.txt").read_text().split())
    harvest = simulate(record, BFS, seeds)
    assert sorted(harvest.visited.tolist()) == list(range(len(record.urls)))
    stats = thresher.open(corpus).stats()
    assert harvest.text[-1] == stats["bytes"]["text"]
    assert harvest.downloaded[-1] == stats["bytes"]["downloaded"]


def test_a_duplicate_tells_which_page_it_equals(corpus: Path, record: Record) -> None:
    outcomes = thresher.open(corpus).outcomes(["outcome", "reason"]).to_pylist()
    duplicates = [number for number, row in enumerate(outcomes) if row["reason"] == "text duplicate"]
    assert duplicates
    for number in duplicates:
        assert outcomes[record.twins[number]]["outcome"] == "kept"
        assert record.worth[number] == record.worth[record.twins[number]] > 0


def test_of_equal_texts_the_first_that_is_met_counts() -> None:
    copies = web(
        [("http://a.cz/", 10, 0), ("http://a.cz/1", 10, 7), ("http://b.cz/1", 10, 7)], {0: [2, 1]}, {2: 1}
    )
    assert simulate(copies, BFS, [0]).text.tolist() == [0, 7, 7]
    assert ideal(copies).text.tolist() == [7]


def test_a_polite_crawl_leaves_each_host_its_rest(corpus: Path, record: Record) -> None:
    seeds = record.find((corpus / "seeds.txt").read_text().split())
    harvest = simulate(record, BFS, seeds, Terms(delay=2.0, connections=5, latency=0.25))
    visits: dict[str, list[float]] = {}
    for number, moment in zip(harvest.visited.tolist(), harvest.seconds.tolist(), strict=True):
        visits.setdefault(record.hosts[number], []).append(moment)
    assert all(later - earlier > 2.0 for times in visits.values() for earlier, later in pairwise(times))
    assert any(len(times) > 3 for times in visits.values())
    alone = simulate(record, BFS, seeds, Terms(delay=2.0, connections=1, latency=0.25))
    assert harvest.seconds[50] < alone.seconds[50]


def test_answers_take_different_times_around_their_mean_and_chance_has_a_seed() -> None:
    pages = web([(f"http://a.cz/{number}", 10, 0) for number in range(2_000)], {})
    everything = range(2_000)
    terms = Terms(connections=1, latency=0.2)
    times = np.diff(simulate(pages, BFS, everything, terms).seconds)
    assert times.mean() == pytest.approx(0.2, rel=0.05)
    assert 0.05 < times.std() < 0.15
    again, other = (simulate(pages, BFS, everything, terms._replace(seed=seed)) for seed in (1, 2))
    assert np.diff(again.seconds).tolist() == times.tolist()
    assert (other.seconds != again.seconds).all()
    assert not simulate(pages, BFS, everything, terms._replace(latency=0.0)).seconds.any()


def test_answers_do_not_come_in_the_order_of_their_requests() -> None:
    pages = web([(f"http://h{number}.cz/", 10, 0) for number in range(100)], {})
    visited = simulate(pages, BFS, range(100), Terms(connections=100)).visited.tolist()
    assert visited != sorted(visited)
    at_once = simulate(pages, BFS, range(100), Terms(connections=100, latency=0.0)).visited.tolist()
    assert at_once == sorted(at_once), "unless they come at once"


def test_the_first_turn_of_a_host_goes_to_its_robots_txt() -> None:
    pages = web([("http://a.cz/", 10, 0), ("http://a.cz/1", 10, 0), ("http://b.cz/", 10, 0)], {0: [1, 2]})
    harvest = simulate(pages, BFS, [0], Terms(delay=10.0, latency=0.0))
    assert harvest.visited.tolist() == [0, 1, 2]
    assert harvest.seconds.tolist() == [10.0, 20.0, 20.0]


class Listening(Plain):
    """Notes how URLs come."""

    def __init__(self) -> None:
        super().__init__(Priorities(BFS), by_depth)
        self.ways: dict[str, str] = {}
        self.rels: dict[str, str] = {}

    def found(self, candidates: Sequence[Candidate], source: Source, links: Sequence[Link]) -> Found:
        self.rels.update({link.url: link.rel for link in links})
        found = super().found(candidates, source, links)
        return Found(self.given(found.queued), found.chances)

    def given(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        self.ways.update({one.url: one.via for one in candidates})
        return list(candidates)


def test_what_sitemaps_and_feeds_list_comes_that_way(corpus: Path, record: Record) -> None:
    guide = Listening()
    seeds = record.find((corpus / "seeds.txt").read_text().split())
    Simulation(record, BFS, Terms(), guide).run(seeds)
    kinds = {url: truth(WEB, url).kind for url in record.urls}
    listed = {"sitemap": set[str](), "feed": set[str]()}
    for row in thresher.open(corpus).links().to_pylist():
        if (kind := kinds.get(row["source"], "").partition(" ")[0]) in listed:
            listed[kind].add(row["target"])
    for way, urls in listed.items():
        came = {url for url, via in guide.ways.items() if via == way}
        assert came
        assert came <= urls | {record.urls[number] for named in record.sitemaps.values() for number in named}
    assert {"seed", "page", "redirect", "sitemap", "feed"} == set(guide.ways.values())


def test_links_come_with_their_marks(corpus: Path, record: Record) -> None:
    guide = Listening()
    Simulation(record, BFS, Terms(), guide).run(record.find((corpus / "seeds.txt").read_text().split()))
    marked = {rel for rel in guide.rels.values() if rel}
    assert {"alternate feed", "sitemap"} <= marked


def test_spiderling_closes_a_host_that_gives_nothing() -> None:
    pages = [(f"http://dry.cz/{number}", 70_000, 0) for number in range(20)]
    dry = web([*pages, ("http://wet.cz/", 1_000, 500)], {0: list(range(1, 21))}, {})
    harvest = simulate(dry, SPIDERLING, [0])
    assert harvest.closed_hosts == 1
    assert harvest.text[-1] == 500
    assert len(harvest.visited) == 12  # the threshold of ten pages is nothing, that of eleven is more
    assert len(simulate(dry, BFS, [0]).visited) == 21


@pytest.mark.parametrize("policy", get_args(PolicyName))
def test_every_policy_can_be_replayed_and_chance_has_a_seed(
    corpus: Path, record: Record, policy: PolicyName
) -> None:
    seeds = record.find((corpus / "seeds.txt").read_text().split())
    runs = [simulate(record, Policy(name=policy), seeds, Terms(seed=3)).visited.tolist() for _ in range(2)]
    assert runs[0] == runs[1]
    assert policy == "spiderling" or sorted(runs[0]) == list(range(len(record.urls)))
    other = simulate(record, Policy(name=policy), seeds, Terms(seed=4)).visited.tolist()
    assert (other == runs[0]) == (policy in ("bfs", "spiderling", "learned", "focus"))


def test_a_host_that_gives_text_is_visited_before_one_that_gives_none() -> None:
    pages = [
        (f"http://{host}.cz/{n}", 40_000, 0 if host == "dry" else 20_000)
        for host in ("dry", "wet")
        for n in range(30)
    ]
    links = {0: list(range(1, 30)), 30: list(range(31, 60))}
    policy = Policy(name="host-yield", temperature=0.0)
    visited = simulate(web(pages, links, {}), policy, [0, 30]).visited.tolist()
    assert set(visited[5:30]) <= set(range(30, 60))


def test_a_crawl_on_paper_ends_with_its_bytes(corpus: Path, record: Record) -> None:
    seeds = record.find((corpus / "seeds.txt").read_text().split())
    harvest = simulate(record, BFS, seeds, Terms(bytes=20_000))
    assert harvest.downloaded[-2] < 20_000 <= harvest.downloaded[-1]
    assert downloads_for(harvest, harvest.text[-1] + 1) is None


@st.composite
def webs(draw: st.DrawFn) -> Record:
    count = draw(st.integers(1, 12))
    pages = [
        (f"http://h{draw(st.integers(0, 3))}.cz/{n}", draw(st.integers(1, 500)), draw(st.integers(0, 200)))
        for n in range(count)
    ]
    number = st.integers(0, count - 1)
    links = {n: draw(st.lists(number, max_size=4)) for n in range(count)}
    twins = {n: n - 1 for n in range(1, count, 2) if draw(st.booleans())}
    pages = [(url, size, pages[twins.get(n, n)][2]) for n, (url, size, _) in enumerate(pages)]
    return web(pages, links, twins)


@settings(max_examples=200)
@given(webs(), st.integers(1, 3), st.sampled_from([0.0, 1.0]))
def test_nobody_harvests_more_than_the_ideal_nor_visits_a_page_twice(
    recorded: Record, connections: int, delay: float
) -> None:
    best = ideal(recorded)
    terms = Terms(delay=delay, connections=connections)
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


def test_what_cannot_be_simulated_is_told(corpus: Path, record: Record) -> None:
    with pytest.raises(ConfigError, match="choose from learned"):
        list(repeated(record, ["best"], [0], Terms()))
    with pytest.raises(ConfigError, match="--seeds"):
        list(repeated(record, ["bfs"], [], Terms()))
    with pytest.raises(ConfigError, match="--lang"):
        list(repeated(load(corpus, "ja"), ["bfs"], [0], Terms()))
