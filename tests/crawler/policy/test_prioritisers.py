"""Prioritisers: the table of functions, mixes by configuration, and functions of users."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import inf, isfinite, nan
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from support.invariants import SETTINGS, check_crawl
from support.webs.paper_web import recorded
from support.webs.toy_webs import all_seeds
from thresher.config import PolicySettings, dump, load, parse
from thresher.crawler.api import crawl
from thresher.crawler.policy.policy import make_policy
from thresher.crawler.policy.prioritisers import MIXES, PRIORITIES, Priorities, SourcePage
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.errors import UsageError
from thresher.reader import read
from thresher.records import Candidate, Link, Reply
from thresher.simulation.simulate import SimulationTerms, simulate
from thresher_lab.toyweb import ToyWeb, serve

WEB = ToyWeb.calm(hosts=6, licensed=0.0, pages_per_host=(10, 20), page_bytes=(4_000, 6_000))
GOOD, BAD = (
    SourcePage("http://a.cz/", kept=True, badness=2.0),
    SourcePage("http://b.cz/", kept=False, badness=40.0),
)


def link(boilerplate: float = 0.5) -> Link:
    return Link("http://c.cz/", "text", boilerplate, in_text=boilerplate < 0.5)


def mixed(**powers: float) -> Priorities:
    return Priorities(PolicySettings(name="host-yield", priorities=powers))


@pytest.mark.parametrize("name", PRIORITIES)
@given(
    badness=st.none() | st.floats(0, 1e6),
    kept=st.booleans(),
    scores=st.lists(st.floats(0, 1), max_size=20),
)
def test_every_prioritiser_has_a_factor_for_each_link(
    name: str, badness: float | None, kept: bool, scores: list[float]
) -> None:
    source = SourcePage("http://a.cz/", kept, badness, language="cs")
    factors = mixed(**{name: 1.0}).factors(source, [link(score) for score in scores])
    assert len(factors) == len(scores)
    assert all(0 < factor < inf for factor in factors)


def test_links_in_the_text_of_good_pages_have_the_highest_factors() -> None:
    weigh = Priorities(PolicySettings(name="heidix")).factors
    good, in_menu = weigh(GOOD, [link(0.1), link(0.9)])
    bad, *_ = weigh(BAD, [link(0.1)])
    assert good > in_menu > bad


def test_factors_are_multiplied_each_with_its_power() -> None:
    once, thrice = (mixed(**{"link-context": power}).factors(GOOD, [link(0.1)])[0] for power in (1.0, 3.0))
    assert thrice == pytest.approx(once**3)
    assert mixed(**{"link-context": 0.0}).factors(GOOD, [link(0.1)]) == [1.0]


def test_the_yield_of_the_host_has_a_power_in_the_mix() -> None:
    assert mixed(**{"host-yield": 0.5}).host_power == 0.5
    assert mixed(**{"link-context": 1.0}).host_power == 0.0


def test_a_prioritiser_of_your_own_is_named_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_length(source: SourcePage, links: Sequence[Link]) -> list[float]:
        return [float(len(each.anchor)) for each in links]

    own = ModuleType("rivers")
    monkeypatch.setattr(own, "by_length", by_length, raising=False)
    monkeypatch.setattr(own, "mad", lambda _, links: [nan, inf, -1.0][: len(links)], raising=False)
    monkeypatch.setitem(sys.modules, "rivers", own)
    assert mixed(**{"rivers:by_length": 2.0}).factors(GOOD, [link()]) == [16.0]
    assert mixed(**{"rivers:mad": 1.0}).factors(GOOD, [link()] * 3) == [1.0, 1.0, 1e-6]


@pytest.mark.parametrize("name", ["host-yeild", "no.such.module:f", "sys:no_such_function", "sys:path", ":"])
def test_an_unknown_prioritiser_is_refused_with_a_list_of_the_known(name: str) -> None:
    with pytest.raises(UsageError, match="link-context"):
        mixed(**{name: 1.0})


def test_a_mix_is_kept_in_the_corpus(tmp_path: Path) -> None:
    config = parse({"language": "cs", "policy": {"priorities": {"host-yield": 1.0, "mine:f": 0.5}}})
    (tmp_path / "corpus.toml").write_text(dump(config))
    assert load(tmp_path).policy.priorities == {"host-yield": 1.0, "mine:f": 0.5}


def test_every_mix_is_of_known_prioritisers() -> None:
    for name in MIXES:
        priorities = Priorities(parse({"policy": {"name": name}}).policy)
        assert isfinite(priorities.factors(GOOD, [link()])[0])


def test_signals_of_the_language_raise_a_factor_and_signals_of_others_lower_it() -> None:
    urls = (
        "http://a.cz/cs/1",
        "http://a.org/cs/1",
        "http://a.org/1",
        "http://a.org/de/1",
        "http://a.de/de/1",
    )
    source = SourcePage("http://b.org/", kept=True, language="cs")
    weigh = mixed(**{"url-language": 1.0}).factors
    factors = weigh(source, [Link(url, "", 0.5, False) for url in urls])
    assert factors == sorted(factors, reverse=True)
    assert len(set(factors)) == len(urls)
    marked = Link("http://a.org/1", "", 0.5, False, "alternate hreflang=cs")
    assert weigh(source, [marked])[0] > factors[2]


def test_deep_pages_have_lower_factors() -> None:
    links = [
        Link(url, "", 0.5, False) for url in ("http://a.cz/", "http://a.cz/b/c", "http://a.cz/b/c?d=1&e=2")
    ]
    factors = mixed(depth=1.0).factors(GOOD, links)
    assert factors == sorted(factors, reverse=True)
    assert len(set(factors)) == 3


def test_priorities_are_refused_under_a_policy_that_ignores_them() -> None:
    with pytest.raises(UsageError, match="host-yield"):
        Priorities(PolicySettings(name="learned", priorities={"link-context": 1.0}))


# Siblings


def learnt(state: KeyValueState | None = None) -> Priorities:
    """Return a mix of siblings after pages of a host: news with text, and tags without."""
    priorities = Priorities(PolicySettings(name="host-yield", priorities={"siblings": 1.0}), state)
    for number in range(10):
        priorities.learn(f"http://a.cz/zpravy/{number}/clanek.html", 10_000, 5_000)
        priorities.learn(f"http://a.cz/tag/{number}", 10_000, 0)
    return priorities


def of_siblings(priorities: Priorities, *urls: str) -> list[float]:
    return priorities.factors(GOOD, [Link(url, "", 0.5, False) for url in urls])


def test_a_link_is_as_good_as_pages_of_its_host_in_the_same_folder() -> None:
    news, tag, other, elsewhere = of_siblings(
        learnt(),
        "http://a.cz/zpravy/99/clanek.html",
        "http://a.cz/tag/99",
        "http://a.cz/",
        "http://b.cz/tag/99",
    )
    assert news > 1.5
    assert tag < 0.5
    assert tag < other < news
    assert elsewhere == 1.0, "results of one host are no evidence for another"


def test_names_of_one_shape_are_siblings_too() -> None:
    priorities = mixed(siblings=1.0)
    for number in range(10):
        priorities.learn(f"http://a.cz/{number}00-tri-slova-tady.html", 10_000, 5_000)
        priorities.learn(f"http://a.cz/list?page={number}", 10_000, 0)
    article, listing = of_siblings(
        priorities, "http://a.cz/777-jina-slova-zde.html", "http://a.cz/list?page=77"
    )
    assert article > 1.5
    assert listing < 0.5


def test_factors_are_neutral_before_any_sibling_is_known() -> None:
    assert of_siblings(mixed(siblings=1.0), "http://a.cz/zpravy/1", "http://a.cz/") == [1.0, 1.0]


def test_old_results_of_siblings_fade() -> None:
    priorities = learnt()
    for number in range(400):
        priorities.learn(f"http://a.cz/zpravy/{number}/clanek.html", 10_000, 0)
        priorities.learn(f"http://a.cz/tag/{number}", 10_000, 5_000)
    news, tag = of_siblings(priorities, "http://a.cz/zpravy/99/clanek.html", "http://a.cz/tag/99")
    assert news < 0.5
    assert tag > 1.5


def test_results_of_siblings_are_part_of_the_commit(tmp_path: Path) -> None:
    urls = ("http://a.cz/zpravy/99/clanek.html", "http://a.cz/tag/99")
    state = KeyValueState(tmp_path)
    priorities = learnt(state)
    priorities.flush()
    state.commit()
    before = of_siblings(priorities, *urls)
    priorities.learn(urls[0], 1_000_000, 0)  # and then the power fails
    state.close()
    again = Priorities(
        PolicySettings(name="host-yield", priorities={"siblings": 1.0}), KeyValueState(tmp_path)
    )
    assert of_siblings(again, *urls) == pytest.approx(before, rel=1e-5)


def test_a_policy_that_learns_from_siblings_gathers_more() -> None:
    """Each article leads to two tags and the next article, and tags lead to nothing."""
    urls = [f"http://a.cz/clanek/{number}.html" for number in range(100)]
    urls += [f"http://a.cz/tag/{number}" for number in range(200)]
    links = {number: [100 + 2 * number, 101 + 2 * number, number + 1] for number in range(99)}
    worth = dict.fromkeys(range(100), 6_000)
    record = recorded([(url, 10_000, worth.get(number, 0)) for number, url in enumerate(urls)], links)
    plain, learning = (
        simulate(
            record, PolicySettings(name="host-yield", priorities=mix), [0], SimulationTerms(bytes=1_000_000)
        ).text[-1]
        for mix in ({"host-yield": 1.0}, {"host-yield": 1.0, "siblings": 1.0})
    )
    assert learning > 2 * plain


@pytest.mark.slow
def test_a_resumed_crawl_knows_the_results_of_siblings(tmp_path: Path) -> None:
    mix = {"host-yield": 1.0, "siblings": 1.0, "hints": 1.0}
    asked = {**SETTINGS, "policy": {"name": "host-yield", "priorities": mix}, "budget": {"max_pages": 60}}
    with serve(WEB) as server:
        crawl(tmp_path, "cs", all_seeds(WEB), settings=asked, connect_to=server.connect_to)
        urls = thresher.open(tmp_path).outcomes(["url"])["url"].to_pylist()
        links = [Link(url, "", 0.5, False) for url in urls]
        state = KeyValueState(tmp_path / "state", read_only=True)
        weigh = Priorities(PolicySettings(name="host-yield", priorities={"siblings": 1.0}), state).factors
        assert len(set(weigh(GOOD, links))) > 10
        state.close()
        ending = crawl(tmp_path, settings={"budget": {"max_pages": 0}}, connect_to=server.connect_to)
    assert ending.reason == "done"
    check_crawl(tmp_path, WEB)


def test_a_prioritiser_of_your_own_may_learn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Counts:
        def __init__(self, state: KeyValueState) -> None:
            self._state, self.pages = state, len(state.get(b"mine") or b"")

        def __call__(self, source: SourcePage, links: Sequence[Link]) -> list[float]:
            return [1.0 + self.pages] * len(links)

        def learn(self, url: str, received: int, text: int) -> None:
            self.pages += text > 0

        def flush(self) -> None:
            self._state.put(b"mine", bytes(self.pages))

    own = ModuleType("mine")
    monkeypatch.setattr(own, "Counts", Counts, raising=False)
    monkeypatch.setattr(own, "Forgets", type("Forgets", (), {}), raising=False)
    monkeypatch.setitem(sys.modules, "mine", own)
    settings, state = (
        PolicySettings(name="host-yield", priorities={"mine:Counts": 1.0}),
        KeyValueState(tmp_path),
    )
    policy = make_policy(settings, "cs", state, YieldStats(state), Random(1))
    for text in (5, 0, 7):
        policy.learn(Candidate("http://a.cz/"), 10, text, text > 0)
    policy.flush()
    state.commit()
    assert Priorities(settings, state).factors(GOOD, [link()]) == [3.0]
    with pytest.raises(UsageError, match="learn and flush"):
        mixed(**{"mine:Forgets": 1.0})


# Hints


def hinted(*rels: str, language: str = "cs") -> list[float]:
    source = SourcePage("http://a.cz/sitemap.xml", kept=False, language=language)
    links = [Link(f"http://a.cz/{number}", "", 0.5, False, rel) for number, rel in enumerate(rels)]
    return mixed(hints=1.0).factors(source, links)


def test_newer_links_of_a_sitemap_are_better() -> None:
    new, younger, undated, old, ancient = hinted(
        "lastmod=2026-01-02", "lastmod=2025-12-01", "", "lastmod=2021-01-02", "lastmod=1995-01-02"
    )
    assert new > younger > undated > old
    assert old == ancient, "the factor has a lower bound"
    assert undated == 1.0


def test_equal_or_invalid_dates_do_not_change_factors() -> None:
    assert hinted("lastmod=2026-01-02", "lastmod=2026-01-02", "") == [1.0] * 3
    assert hinted("lastmod=soon", "lastmod=", "lastmod=2026-02-31", "lastmod", "==") == [1.0] * 5


def test_links_marked_for_the_language_are_better_and_links_for_others_worse() -> None:
    ours, region, none, unknown, other = hinted(
        *("alternate hreflang=cs", "alternate hreflang=cs-cz", "alternate", "hreflang=qqq", "hreflang=de")
    )
    assert ours == region > 1.0 == none == unknown > other
    assert hinted("hreflang=de", language="") == [1.0]


def test_priority_and_change_frequency_of_a_sitemap_count_a_little() -> None:
    high, usual, low = hinted("priority=1.0", "priority=0.5", "priority=.0")
    assert 2 > high > usual == 1.0 > low > 0.5
    assert hinted("priority=1e999") == hinted("priority=1"), "more than everything is everything"
    assert hinted("priority=high") == [1.0]
    assert hinted("priority=nan hreflang=cs")[0] > 1.0, "an invalid number hides no other hint"
    often, seldom, never = hinted("changefreq=hourly", "changefreq=monthly", "changefreq=never")
    assert often > seldom == 1.0 > never


def test_hints_come_from_the_sitemap_that_is_read() -> None:
    body = b"""<urlset><url><loc>http://a.cz/1</loc><lastmod>2026-01-02</lastmod></url>
        <url><loc>http://a.cz/2</loc><lastmod>2016-01-02</lastmod><priority>0.1</priority>
        <xhtml:link rel="alternate" hreflang="de" href="http://a.cz/3"/></url></urlset>"""
    reply = Reply("http://a.cz/sitemap.xml", 200, b"HTTP/1.1 200 OK\r\n", body, 1.8e9, 0.1, "192.0.2.1")
    source = SourcePage(reply.url, kept=False, language="cs")
    new, old, german = mixed(hints=1.0).factors(source, read(reply).links)
    assert new > 1 > german > old
