"""What links promise: a table of prioritisers, mixed by configuration, with a user's own among them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import inf, nan
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import thresher
from invariants import SETTINGS, check_crawl, start
from paper import recorded
from thresher.config import ConfigError, Policy, dump, load, parse
from thresher.crawl.guide import guided
from thresher.crawl.priority import MIXES, PRIORITIES, Priorities, Source
from thresher.crawl.start import crawl
from thresher.crawl.state import State
from thresher.crawl.yields import Yields
from thresher.lab.simulate import Terms, simulate
from thresher.lab.toyweb import ToyWeb, serve
from thresher.page import Candidate, Link, Reply
from thresher.read import read

WEB = ToyWeb.calm(hosts=6, licensed=0.0, pages_per_host=(10, 20), page_bytes=(4_000, 6_000))
GOOD, BAD = Source("http://a.cz/", kept=True, badness=2.0), Source("http://b.cz/", kept=False, badness=40.0)


def link(boilerplate: float = 0.5) -> Link:
    return Link("http://c.cz/", "text", boilerplate, in_text=boilerplate < 0.5)


def mixed(**powers: float) -> Priorities:
    return Priorities(Policy(name="host-yield", priorities=powers))


@pytest.mark.parametrize("name", PRIORITIES)
@given(
    badness=st.none() | st.floats(0, 1e6),
    kept=st.booleans(),
    scores=st.lists(st.floats(0, 1), max_size=20),
)
def test_every_prioritiser_has_a_factor_for_each_link(
    name: str, badness: float | None, kept: bool, scores: list[float]
) -> None:
    source = Source("http://a.cz/", kept, badness, language="cs")
    said = mixed(**{name: 1.0}).factors(source, [link(score) for score in scores])
    assert len(said) == len(scores)
    assert all(0 < factor < inf for factor in said)


def test_links_in_the_text_of_good_pages_promise_most() -> None:
    weigh = Priorities(Policy(name="heidix")).factors
    good, in_menu = weigh(GOOD, [link(0.1), link(0.9)])
    bad, *_ = weigh(BAD, [link(0.1)])
    assert good > in_menu > bad


def test_factors_are_multiplied_each_with_its_power() -> None:
    once, thrice = (mixed(**{"link-context": power}).factors(GOOD, [link(0.1)])[0] for power in (1.0, 3.0))
    assert thrice == pytest.approx(once**3)
    assert mixed(**{"link-context": 0.0}).factors(GOOD, [link(0.1)]) == [1.0]


def test_what_a_host_promises_has_its_power_too() -> None:
    assert mixed(**{"host-yield": 0.5}).host_power == 0.5
    assert mixed(**{"link-context": 1.0}).host_power == 0.0


def test_a_prioritiser_of_your_own_is_named_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_length(source: Source, links: Sequence[Link]) -> list[float]:
        return [float(len(each.anchor)) for each in links]

    own = ModuleType("rivers")
    monkeypatch.setattr(own, "by_length", by_length, raising=False)
    monkeypatch.setattr(own, "mad", lambda _, links: [nan, inf, -1.0][: len(links)], raising=False)
    monkeypatch.setitem(sys.modules, "rivers", own)
    assert mixed(**{"rivers:by_length": 2.0}).factors(GOOD, [link()]) == [16.0]
    assert mixed(**{"rivers:mad": 1.0}).factors(GOOD, [link()] * 3) == [1.0, 1.0, 1e-6]


@pytest.mark.parametrize("name", ["host-yeild", "no.such.module:f", "sys:no_such_function", "sys:path", ":"])
def test_a_name_that_leads_nowhere_is_told_with_those_that_do(name: str) -> None:
    with pytest.raises(ConfigError, match="link-context"):
        mixed(**{name: 1.0})


def test_a_mix_is_kept_in_the_corpus(tmp_path: Path) -> None:
    config = parse({"policy": {"priorities": {"host-yield": 1.0, "mine:f": 0.5}}})
    (tmp_path / "corpus.toml").write_text(dump(config))
    assert load(tmp_path).policy.priorities == {"host-yield": 1.0, "mine:f": 0.5}


def test_every_mix_is_of_known_prioritisers() -> None:
    for name in MIXES:
        Priorities(parse({"policy": {"name": name}}).policy)


def test_signs_of_the_language_in_a_url_and_its_words_raise_it_and_those_of_others_lower_it() -> None:
    urls = (
        "http://a.cz/cs/1",
        "http://a.org/cs/1",
        "http://a.org/1",
        "http://a.org/de/1",
        "http://a.de/de/1",
    )
    source = Source("http://b.org/", kept=True, language="cs")
    weigh = mixed(**{"url-language": 1.0}).factors
    said = weigh(source, [Link(url, "", 0.5, False) for url in urls])
    assert said == sorted(said, reverse=True)
    assert len(set(said)) == len(urls)
    marked = Link("http://a.org/1", "", 0.5, False, "alternate hreflang=cs")
    assert weigh(source, [marked])[0] > said[2]


def test_deep_pages_promise_less() -> None:
    links = [
        Link(url, "", 0.5, False) for url in ("http://a.cz/", "http://a.cz/b/c", "http://a.cz/b/c?d=1&e=2")
    ]
    said = mixed(depth=1.0).factors(GOOD, links)
    assert said == sorted(said, reverse=True)
    assert len(set(said)) == 3


def test_a_mix_under_a_policy_that_has_no_use_for_it_is_told() -> None:
    with pytest.raises(ConfigError, match="host-yield"):
        Priorities(Policy(name="learned", priorities={"link-context": 1.0}))


# Siblings


def learnt(state: State | None = None) -> Priorities:
    """A mix of siblings, after pages of a host with news that gave text and tags that gave none."""
    priorities = Priorities(Policy(name="host-yield", priorities={"siblings": 1.0}), state)
    for number in range(10):
        priorities.learn(f"http://a.cz/zpravy/{number}/clanek.html", 10_000, 5_000)
        priorities.learn(f"http://a.cz/tag/{number}", 10_000, 0)
    return priorities


def of_siblings(priorities: Priorities, *urls: str) -> list[float]:
    return priorities.factors(GOOD, [Link(url, "", 0.5, False) for url in urls])


def test_a_link_is_as_good_as_pages_of_its_host_under_the_same_folder() -> None:
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
    assert elsewhere == 1.0, "what one host does says nothing of another"


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


def test_nothing_is_known_of_siblings_at_first() -> None:
    assert of_siblings(mixed(siblings=1.0), "http://a.cz/zpravy/1", "http://a.cz/") == [1.0, 1.0]


def test_what_siblings_gave_long_ago_fades() -> None:
    priorities = learnt()
    for number in range(400):
        priorities.learn(f"http://a.cz/zpravy/{number}/clanek.html", 10_000, 0)
        priorities.learn(f"http://a.cz/tag/{number}", 10_000, 5_000)
    news, tag = of_siblings(priorities, "http://a.cz/zpravy/99/clanek.html", "http://a.cz/tag/99")
    assert news < 0.5
    assert tag > 1.5


def test_what_siblings_gave_is_in_the_commit(tmp_path: Path) -> None:
    urls = ("http://a.cz/zpravy/99/clanek.html", "http://a.cz/tag/99")
    state = State(tmp_path)
    priorities = learnt(state)
    priorities.flush()
    state.commit()
    before = of_siblings(priorities, *urls)
    priorities.learn(urls[0], 1_000_000, 0)  # and then the power fails
    state.close()
    again = Priorities(Policy(name="host-yield", priorities={"siblings": 1.0}), State(tmp_path))
    assert of_siblings(again, *urls) == pytest.approx(before, rel=1e-5)


def test_a_policy_that_learns_from_siblings_gathers_more() -> None:
    """Each article leads to two tags and the next article, and tags lead to nothing."""
    urls = [f"http://a.cz/clanek/{number}.html" for number in range(100)]
    urls += [f"http://a.cz/tag/{number}" for number in range(200)]
    links = {number: [100 + 2 * number, 101 + 2 * number, number + 1] for number in range(99)}
    worth = dict.fromkeys(range(100), 6_000)
    record = recorded([(url, 10_000, worth.get(number, 0)) for number, url in enumerate(urls)], links)
    plain, learning = (
        simulate(record, Policy(name="host-yield", priorities=mix), [0], Terms(bytes=1_000_000)).text[-1]
        for mix in ({"host-yield": 1.0}, {"host-yield": 1.0, "siblings": 1.0})
    )
    assert learning > 2 * plain


def test_a_crawl_that_goes_on_knows_what_siblings_gave(tmp_path: Path) -> None:
    mix = {"host-yield": 1.0, "siblings": 1.0, "hints": 1.0}
    asked = {**SETTINGS, "policy": {"name": "host-yield", "priorities": mix}, "budget": {"pages": 60}}
    with serve(WEB) as server:
        crawl(tmp_path, "cs", start(WEB), settings=asked, connect_to=server.connect_to)
        urls = thresher.open(tmp_path).outcomes(["url"])["url"].to_pylist()
        links = [Link(url, "", 0.5, False) for url in urls]
        state = State(tmp_path / "state", read_only=True)
        weigh = Priorities(Policy(name="host-yield", priorities={"siblings": 1.0}), state).factors
        assert len(set(weigh(GOOD, links))) > 10
        state.close()
        ending = crawl(tmp_path, settings={"budget": {"pages": 0}}, connect_to=server.connect_to)
    assert ending.reason == "done"
    check_crawl(tmp_path, WEB)


def test_a_prioritiser_of_your_own_may_learn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Counts:
        def __init__(self, state: State) -> None:
            self._state, self.pages = state, len(state.get(b"mine") or b"")

        def __call__(self, source: Source, links: Sequence[Link]) -> list[float]:
            return [1.0 + self.pages] * len(links)

        def learn(self, url: str, received: int, text: int) -> None:
            self.pages += text > 0

        def flush(self) -> None:
            self._state.put(b"mine", bytes(self.pages))

    own = ModuleType("mine")
    monkeypatch.setattr(own, "Counts", Counts, raising=False)
    monkeypatch.setattr(own, "Forgets", type("Forgets", (), {}), raising=False)
    monkeypatch.setitem(sys.modules, "mine", own)
    policy, state = Policy(name="host-yield", priorities={"mine:Counts": 1.0}), State(tmp_path)
    guide, _ = guided(policy, "cs", state, Yields(state), Random(1))
    for text in (5, 0, 7):
        guide.learn(Candidate("http://a.cz/"), 10, text, text > 0)
    guide.flush()
    state.commit()
    assert Priorities(policy, state).factors(GOOD, [link()]) == [3.0]
    with pytest.raises(ConfigError, match="learn and flush"):
        mixed(**{"mine:Forgets": 1.0})


# Hints


def hinted(*rels: str, language: str = "cs") -> list[float]:
    source = Source("http://a.cz/sitemap.xml", kept=False, language=language)
    links = [Link(f"http://a.cz/{number}", "", 0.5, False, rel) for number, rel in enumerate(rels)]
    return mixed(hints=1.0).factors(source, links)


def test_newer_links_of_a_sitemap_are_better() -> None:
    new, younger, untold, old, ancient = hinted(
        "lastmod=2026-01-02", "lastmod=2025-12-01", "", "lastmod=2021-01-02", "lastmod=1995-01-02"
    )
    assert new > younger > untold > old
    assert old == ancient, "what is old is old"
    assert untold == 1.0


def test_dates_that_are_all_the_same_or_no_dates_tell_nothing() -> None:
    assert hinted("lastmod=2026-01-02", "lastmod=2026-01-02", "") == [1.0] * 3
    assert hinted("lastmod=soon", "lastmod=", "lastmod=2026-02-31", "lastmod", "==") == [1.0] * 5


def test_links_marked_for_our_language_are_better_and_those_for_others_worse() -> None:
    ours, region, none, nobody, other = hinted(
        *("alternate hreflang=cs", "alternate hreflang=cs-cz", "alternate", "hreflang=qqq", "hreflang=de")
    )
    assert ours == region > 1.0 == none == nobody > other
    assert hinted("hreflang=de", language="") == [1.0]


def test_what_a_sitemap_calls_important_is_a_little_better() -> None:
    high, usual, low = hinted("priority=1.0", "priority=0.5", "priority=.0")
    assert 2 > high > usual == 1.0 > low > 0.5
    assert hinted("priority=1e999") == hinted("priority=1"), "more than everything is everything"
    assert hinted("priority=high") == [1.0]
    assert hinted("priority=nan hreflang=cs")[0] > 1.0, "what is no number hides nothing else"
    often, seldom, never = hinted("changefreq=hourly", "changefreq=monthly", "changefreq=never")
    assert often > seldom == 1.0 > never


def test_hints_come_from_the_sitemap_that_is_read() -> None:
    body = b"""<urlset><url><loc>http://a.cz/1</loc><lastmod>2026-01-02</lastmod></url>
        <url><loc>http://a.cz/2</loc><lastmod>2016-01-02</lastmod><priority>0.1</priority>
        <xhtml:link rel="alternate" hreflang="de" href="http://a.cz/3"/></url></urlset>"""
    reply = Reply("http://a.cz/sitemap.xml", 200, b"HTTP/1.1 200 OK\r\n", body, 1.8e9, 0.1, "192.0.2.1")
    source = Source(reply.url, kept=False, language="cs")
    new, old, german = mixed(hints=1.0).factors(source, read(reply).links)
    assert new > 1 > german > old
