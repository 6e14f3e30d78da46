"""What links promise: a table of prioritisers, mixed by configuration, with a user's own among them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import inf, nan
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.config import ConfigError, Policy, dump, load, parse
from thresher.crawl.priority import MIXES, PRIORITIES, Priorities, Source
from thresher.page import Link

GOOD, BAD = Source("http://a.cz/", kept=True, badness=2.0), Source("http://b.cz/", kept=False, badness=40.0)


def link(boilerplate: float = 0.5) -> Link:
    return Link("http://c.cz/", "text", boilerplate, in_text=boilerplate < 0.5)


def mixed(**powers: float) -> Priorities:
    return Priorities(Policy(name="host-yield", priorities=powers))


@pytest.mark.parametrize("name", PRIORITIES)
@settings(deadline=None)  # kernels may have to be compiled
@given(
    badness=st.none() | st.floats(0, 1e6),
    kept=st.booleans(),
    scores=st.lists(st.floats(0, 1), max_size=20),
)
def test_every_prioritiser_has_a_factor_for_each_link(
    name: str, badness: float | None, kept: bool, scores: list[float]
) -> None:
    source = Source("http://a.cz/", kept, badness, language="cs")
    said = PRIORITIES[name](source, [link(score) for score in scores])
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
    said = PRIORITIES["url-language"](source, [Link(url, "", 0.5, False) for url in urls])
    assert said == sorted(said, reverse=True)
    assert len(set(said)) == len(urls)
    marked = Link("http://a.org/1", "", 0.5, False, "alternate hreflang=cs")
    assert PRIORITIES["url-language"](source, [marked])[0] > said[2]


def test_deep_pages_promise_less() -> None:
    links = [
        Link(url, "", 0.5, False) for url in ("http://a.cz/", "http://a.cz/b/c", "http://a.cz/b/c?d=1&e=2")
    ]
    said = PRIORITIES["depth"](GOOD, links)
    assert said == sorted(said, reverse=True)
    assert len(set(said)) == 3


def test_a_mix_under_a_policy_that_has_no_use_for_it_is_told() -> None:
    with pytest.raises(ConfigError, match="host-yield"):
        Priorities(Policy(name="learned", priorities={"link-context": 1.0}))
