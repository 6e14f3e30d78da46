"""Records of toy webs: they agree with the oracle, and with records of real crawls of the web."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from support.invariants import SETTINGS
from support.webs.toy_webs import all_seeds
from thresher.cli import app
from thresher.config import PolicySettings, ScopeSettings
from thresher.crawler.api import crawl
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.errors import UsageError
from thresher.simulation.comparison import repeated
from thresher.simulation.record import CrawlRecord, load
from thresher.simulation.simulate import SimulationTerms, ideal, simulate
from thresher.urls import key
from thresher_lab.toyweb import ToyWeb, Truth, answer, reachable, seeds, serve, truth
from thresher_lab.toyweb.hosts import host
from thresher_lab.toyweb.simulation_record import TRAP_URLS, record_of

pytestmark = pytest.mark.slow

WEB = ToyWeb(
    hosts=40,
    pages_per_host=(5, 20),
    page_bytes=(4_000, 8_000),
    slow_seconds=0.05,
    drip_seconds=0.1,
    crawl_delay=0.05,
)
# Hosts of one size: in a small web the few large ones would decide everything.
PAPERS = ToyWeb.papers(hosts=140, pages_per_host=(40, 40), languages=("cs", "en", "ru", "de"))
BFS = PolicySettings(name="bfs")


@pytest.fixture(scope="module")
def record() -> CrawlRecord:
    return record_of(WEB)


@pytest.fixture(scope="module")
def truths(record: CrawlRecord) -> list[Truth]:
    return [truth(WEB, url) for url in record.urls]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> CrawlRecord:
    directory = tmp_path_factory.mktemp("toyrecord") / "corpus"
    with serve(WEB) as server:
        crawl(directory, WEB.target, all_seeds(WEB), settings=SETTINGS, connect_to=server.connect_to)
    return load(directory)


@pytest.fixture(scope="module")
def papers() -> CrawlRecord:
    return record_of(PAPERS)


def common(one: CrawlRecord, other: CrawlRecord) -> tuple[list[int], list[int]]:
    """Return the numbers of the URLs that are in both records."""
    keys = sorted(one.numbers.keys() & other.numbers.keys())
    return [one.numbers[known] for known in keys], [other.numbers[known] for known in keys]


def places(record: CrawlRecord, number: int) -> dict[str, int]:
    """Return the places of the links of a page by their targets."""
    numbers = range(int(record.starts[number]), int(record.starts[number + 1]))
    return {record.urls[record.targets[place]].partition("://")[2]: place for place in numbers}


# Agreement with the oracle.


def test_the_urls_are_the_ones_that_an_obedient_crawler_would_visit() -> None:
    web = ToyWeb(hosts=25, seed=3, pages_per_host=(5, 20), session=0.0)
    scope = UrlScope(ScopeSettings())
    walk = reachable(web, all_seeds(web), follow=lambda url: scope.admits(url, None))
    walked = {key(url) for url, found in walk if not found.trap and found.kind != "robots"}
    recorded = record_of(web)
    assert {key(url) for url in recorded.urls if not truth(web, url).trap} == walked


def test_nothing_is_there_that_robots_txt_forbids(truths: list[Truth]) -> None:
    assert not any(found.disallowed for found in truths)
    assert {"redirect", "chain", "loop", "lost", "error", "file", "sitemap", "feed", "deeper"} <= {
        found.kind for found in truths
    }


def test_every_page_is_worth_the_bytes_of_its_text_if_it_may_be_kept(
    record: CrawlRecord, truths: list[Truth]
) -> None:
    worth = [len(found.text.encode()) if found.keepable else 0 for found in truths]
    assert record.worth.tolist() == worth
    assert sum(bytes_ > 0 for bytes_ in worth) > 50


def test_duplicates_are_the_pages_of_one_group_that_may_be_kept(
    record: CrawlRecord, truths: list[Truth]
) -> None:
    firsts: dict[str, int] = {}
    originals = [
        firsts.setdefault(found.group, number) if found.keepable else number
        for number, found in enumerate(truths)
    ]
    assert record.originals.tolist() == originals
    assert any(original != number for number, original in enumerate(originals))


def test_links_agree_with_the_oracle_and_redirects_are_links(
    record: CrawlRecord, truths: list[Truth]
) -> None:
    for number, found in enumerate(truths):
        named = (*found.links, *found.feeds, found.location)
        followed = () if found.nofollow or found.status == 404 else filter(None, named)
        assert set(record.links(number).tolist()) == set(record.find(followed)), found.url


def test_the_robots_txt_of_a_host_names_its_sitemap(record: CrawlRecord) -> None:
    named = {host(WEB, number).name for number in range(WEB.hosts) if host(WEB, number).sitemap}
    assert named & set(record.hosts) <= set(record.sitemaps)
    for numbers in record.sitemaps.values():
        assert [record.urls[number].rpartition("/")[2] for number in numbers] == ["sitemap.xml"]


def test_sitemaps_and_feeds_are_known_as_such(
    record: CrawlRecord, truths: list[Truth], crawled: CrawlRecord
) -> None:
    kinds = {"sitemap": "sitemap", "sitemap index": "sitemap", "feed": "feed"}
    expected = {number: kinds[found.kind] for number, found in enumerate(truths) if found.kind in kinds}
    assert record.listings == expected
    assert set(expected.values()) == {"sitemap", "feed"}
    for here, there in zip(*common(record, crawled), strict=True):
        assert record.listings.get(here) == crawled.listings.get(there), record.urls[here]


def test_a_simulated_crawl_finds_all_pages(record: CrawlRecord) -> None:
    harvest = simulate(record, BFS, record.find(all_seeds(WEB)))
    assert sorted(harvest.visited.tolist()) == list(range(len(record.urls)))


def test_the_urls_of_every_trap_are_limited() -> None:
    web = ToyWeb.calm(hosts=6, pages_per_host=(5, 8), calendar=0.5, session=0.5)
    recorded = record_of(web, trap_urls=30)
    traps = Counter(
        name for url, name in zip(recorded.urls, recorded.hosts, strict=True) if truth(web, url).trap
    )
    assert set(traps.values()) == {30}
    assert TRAP_URLS == 200


def test_the_same_web_gives_the_same_record() -> None:
    web = ToyWeb(hosts=3, pages_per_host=(3, 5), languages=("cs", "en", "ru"))
    for one, other in zip(record_of(web), record_of(web), strict=True):
        assert np.array_equal(one, other, equal_nan=True) if isinstance(one, np.ndarray) else one == other


# Measures of a sample hold for all pages.


def test_bodies_are_about_as_large_as_they_would_be_received() -> None:
    web = ToyWeb.calm(hosts=9, pages_per_host=(100, 120), languages=("cs", "en", "ru"), gzip=0.5)
    recorded = record_of(web)
    real = np.array([len(answer(web, url, accept_encoding="gzip").body) for url in recorded.urls])
    assert recorded.bytes.sum() == pytest.approx(real.sum(), rel=0.01)
    assert np.abs(recorded.bytes / real - 1).mean() < 0.03


def test_failures_have_the_bytes_of_all_their_tries(record: CrawlRecord, crawled: CrawlRecord) -> None:
    kinds = Counter[str]()
    for here, there in zip(*common(record, crawled), strict=True):
        kind = truth(WEB, record.urls[here]).kind
        if kind in ("redirect", "lost", "gone", "error", "file", "chain", "loop"):
            kinds[kind] += 1
            assert record.bytes[here] == crawled.bytes[there], record.urls[here]
    assert len(kinds) == 7


def test_links_are_scored_as_the_reader_scores_them(record: CrawlRecord, crawled: CrawlRecord) -> None:
    differences, in_text = [], Counter[tuple[bool, bool]]()
    for here, there in zip(*common(record, crawled), strict=True):
        planned, read = places(record, here), places(crawled, there)
        for url in planned.keys() & read.keys():
            differences.append(record.boilerplate[planned[url]] - crawled.boilerplate[read[url]])
            in_text[bool(record.in_text[planned[url]]), bool(crawled.in_text[read[url]])] += 1
    assert np.abs(differences).mean() < 0.03
    assert in_text[True, True] > 100
    assert in_text[False, False] + in_text[True, True] > 0.98 * in_text.total()


def test_anchors_agree_with_the_reader(record: CrawlRecord, crawled: CrawlRecord) -> None:
    same, running = Counter[bool](), 0
    for here, there in zip(*common(record, crawled), strict=True):
        planned, read = places(record, here), places(crawled, there)
        for url in planned.keys() & read.keys():
            same[record.anchors[planned[url]] == crawled.anchors[read[url]]] += 1
            running += bool(record.in_text[planned[url]])
    assert running > 100
    assert same[True] > 0.998 * same.total()


def test_badness_and_language_are_close_to_the_reader(record: CrawlRecord, crawled: CrawlRecord) -> None:
    here, there = common(record, crawled)
    apart = np.abs(record.badness[here] - crawled.badness[there])
    assert np.nanmean(apart) < 3
    assert not np.isnan(apart).all()
    pairs = [
        (record.languages[one], crawled.languages[other]) for one, other in zip(here, there, strict=True)
    ]
    assert np.mean([one == other for one, other in pairs]) > 0.95
    assert {one for one, _ in pairs} >= {"", *WEB.languages}


def test_the_harvest_is_that_of_a_recorded_crawl(record: CrawlRecord, crawled: CrawlRecord) -> None:
    planned, met = ideal(record), ideal(crawled)
    assert len(planned.visited) == len(met.visited)
    assert planned.text[-1] == pytest.approx(met.text[-1], rel=0.02)
    assert planned.downloaded[-1] == pytest.approx(met.downloaded[-1], rel=0.02)
    by_plan, by_crawl = (simulate(web, BFS, web.find(all_seeds(WEB))) for web in (record, crawled))
    assert by_plan.text[-1] == pytest.approx(by_crawl.text[-1], rel=0.02)
    here, there = common(record, crawled)
    assert record.bytes[here].sum() == pytest.approx(crawled.bytes[there].sum(), rel=0.02)
    assert len(here) > 0.95 * len(record.urls)


# The papers' web.


def test_a_plain_crawl_of_the_papers_web_keeps_about_one_byte_in_a_hundred(papers: CrawlRecord) -> None:
    harvest = simulate(papers, BFS, papers.find(all_seeds(PAPERS)))
    assert 0.01 <= harvest.text[-1] / harvest.downloaded[-1] <= 0.03


def test_hosts_of_the_papers_web_differ_by_orders_of_magnitude() -> None:
    pages = sorted(host(ToyWeb.papers(), number).pages for number in range(2_000))
    assert all(smaller <= larger for smaller, larger in pairwise(pages))
    assert pages[-1] > 100 * pages[len(pages) // 2]
    assert 80 < np.mean(pages) < 110


def test_no_power_makes_a_host_larger_than_the_largest() -> None:
    web = ToyWeb(pages_per_host=(5, 20), pages_power=0.0)
    assert {host(web, number).pages for number in range(web.hosts)} == {20}


def test_a_policy_that_learns_from_yields_gets_more_of_the_papers_web(papers: CrawlRecord) -> None:
    rows = {
        row.policy: row
        for row, _ in repeated(
            papers,
            ["bfs", "host-yield"],
            papers.find(seeds(PAPERS)["cs"]),
            SimulationTerms(bytes=3 * int(ideal(papers).downloaded[-1])),
        )
    }
    assert rows["bfs"].area < rows["host-yield"].area < rows["oracle"].area


# The command.


def test_the_command_takes_a_toy_web_instead_of_a_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    app(
        ["simulate", "--toyweb", "12", "--seed", "5", "--policy", "bfs", "--lang", "tr", "--json"],
        result_action="return_value",
    )
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["policy"] for row in rows] == ["bfs", "oracle", "ideal"]
    assert rows[-1]["text_bytes"] > 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--policy", "bfs"], "either the directory of a corpus or"),
        (["corpus", "--toyweb", "5"], "either the directory of a corpus or"),
        (["--toyweb", "0"], "hosts must be at least 1, got 0"),
        (["--toyweb", "2000000"], "at most 20,000, got 2000000"),
        (["--toyweb", "5", "--lang", "sk"], "choose one of cs"),
    ],
)
def test_invalid_webs_are_refused(given: list[str], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        app(["simulate", *given], result_action="return_value")


def test_a_web_without_a_way_in_is_an_empty_record() -> None:
    closed = record_of(ToyWeb(hosts=1, robots_broken=1.0))
    assert closed.urls == []
    with pytest.raises(UsageError, match="has no text in 'cs'"):
        list(repeated(closed, ["bfs"], [], SimulationTerms()))


def test_a_recorded_crawl_has_the_languages_of_its_pages(crawled: CrawlRecord) -> None:
    assert len(crawled.languages) == len(crawled.urls)
    assert {"", *WEB.languages} <= set(crawled.languages)
