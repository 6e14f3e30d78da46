"""A crawl that runs dry looks for more URLs around its good pages, in stages."""

from __future__ import annotations

import io
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import thresher
from support.invariants import check_stats
from support.webs.small_sites import (
    HIDDEN,
    LINKED,
    SCOPE,
    SEEDS,
    UNLINKED,
    kept,
    merged,
    order,
    serving,
    widening,
)
from thresher.cli.views.terminal import CrawlPace, line, status_tables
from thresher.config import Config, PolicySettings, ScopeSettings
from thresher.crawler.api import crawl
from thresher.crawler.explain import explain
from thresher.crawler.frontier import expansion
from thresher.crawler.frontier.expansion import Expansion, folders, front_page
from thresher.crawler.frontier.link_filter import LinkFilter
from thresher.crawler.frontier.seen import SeenUrls
from thresher.crawler.manners.robots import parse as parse_robots
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.store.schemas import OUTCOMES
from thresher.store.table_segments import TableSegments
from thresher.urls import canonical, host, key

pytestmark = pytest.mark.slow

# stages


Stages = list[tuple[int, int]]  # at each commit: the stage, and how many requests there were so far


@pytest.fixture(scope="module")
def expanded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], Stages]:
    """Crawl under the default policy; return the corpus, the requests and the stages."""
    directory = tmp_path_factory.mktemp("expanded") / "corpus"
    stages: Stages = []
    with serving(HIDDEN) as site:

        def note(status: dict[str, Any]) -> None:
            stages.append((status["widening"]["stage"], len(site.requests)))

        ending = crawl(
            directory, "cs", SEEDS, settings=merged(scope=SCOPE), connect_to=site.connect_to, progress=note
        )
        assert ending.reason == "done"
    return directory, site.requests, stages


def test_pages_without_links_to_them_are_found_within_scope_and_robots_txt(
    expanded: tuple[Path, list[str], Stages],
) -> None:
    directory, asked, _ = expanded
    assert kept(directory) == LINKED | UNLINKED
    check_stats(directory)
    assert [url for url, count in Counter(asked).items() if count > 1] == []
    assert {host(url) for url in asked} == {"a.cz", "b.cz", "c.cz", "d.cz"}  # none out of scope
    assert not {"http://a.cz/private/page.html", "http://a.cz/blog/2020/"} & set(asked)
    assert "http://d.cz/other.xml" in asked and "http://d.cz/sitemap.xml" not in asked


def test_each_stage_begins_when_the_one_before_has_run_dry(
    expanded: tuple[Path, list[str], Stages],
) -> None:
    _, asked, stages = expanded
    first_round = stages[: 1 + next(n for n, (stage, _) in enumerate(stages) if stage == 4)]
    assert sorted({stage for stage, _ in first_round}) == [0, 1, 2, 3, 4]
    assert first_round == sorted(first_round)

    def stage_of(url: str) -> int:
        before = asked.index(url)
        return next(stage for stage, requests in reversed(first_round) if requests <= before)

    assert stage_of("http://b.cz/good.html") == 0
    assert stage_of("http://d.cz/") == stage_of("http://b.cz/sitemap.xml") == 1
    assert stage_of("http://a.cz/blog/") == 2
    assert stage_of("http://c.cz/") == 3


def test_status_shows_the_stage_in_numbers_and_words(expanded: tuple[Path, list[str], Stages]) -> None:
    directory, _, _ = expanded
    shown = widening(directory)
    assert (shown["stage"], shown["name"]) == (4, "hosts closed for low yield")
    assert shown["kept"] == len(UNLINKED)
    links = thresher.open(directory).links(["target"])["target"].to_pylist()
    linked = {*links, *SEEDS, "http://d.cz/other.xml"}
    assert shown["found"] == len([url for url in order(directory) if url not in linked])
    status = thresher.open(directory).stats()
    assert "widened to hosts closed for low yield" in line(status, CrawlPace())
    screen = io.StringIO()
    Console(file=screen, width=100).print(status_tables(status))
    assert f"{shown['found']} URLs found so, {len(UNLINKED)} pages kept since" in screen.getvalue()


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        ({"name": "heidix"}, UNLINKED),
        ({"name": "learned", "widen": False}, set()),
        ({"name": "spiderling"}, set()),  # follows its paper exactly
    ],
)
def test_only_some_policies_expand(tmp_path: Path, policy: dict[str, object], found: set[str]) -> None:
    with serving(HIDDEN) as site:
        given = merged(policy=policy, scope=SCOPE)
        crawl(tmp_path, "cs", SEEDS, settings=given, connect_to=site.connect_to)
    assert kept(tmp_path) == LINKED | found
    if not found:
        shown = {"http://c.cz/links.html", "http://d.cz/other.xml"}
        assert set(order(tmp_path)) == LINKED | shown
        assert (widening(tmp_path)["stage"], widening(tmp_path)["found"]) == (0, 0)


# crashes


class Crash(BaseException):
    """The end of a process just after a commit."""


def test_a_crawl_that_is_killed_repeatedly_while_it_expands_finds_the_same_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "PORTION", 1)
    given = merged(scope=SCOPE, store={"commit_seconds": 0.0})
    found: dict[int, int] = {}  # by stage, URLs found before it
    cut_short: list[int] = []
    begun: list[int] = []  # the stage at which each crawl began

    def die(status: dict[str, Any]) -> None:
        stage, urls = status["widening"]["stage"], status["widening"]["found"]
        if len(begun) == len(cut_short):
            begun.append(stage)
        if urls > found.setdefault(stage, urls) and stage in {1, 2} - set(cut_short):
            cut_short.append(stage)
            raise Crash

    with serving(HIDDEN) as site:

        def go_on() -> str:
            return crawl(
                tmp_path, "cs", SEEDS, settings=given, connect_to=site.connect_to, progress=die
            ).reason

        for stage in (1, 2):
            with pytest.raises(Crash):
                go_on()
            assert cut_short[-1] == stage
            if stage == 2:
                guess = explain(tmp_path, "http://a.cz/blog/")
                assert (guess.state, guess.detail.endswith(f"guessed from {SEEDS[0]}")) == ("waiting", True)
        assert go_on() == "done"
    assert begun == [0, 1, 2]
    assert kept(tmp_path) == LINKED | UNLINKED
    check_stats(tmp_path)
    assert [url for url, count in Counter(map(key, order(tmp_path))).items() if count > 1] == []


PAGES = st.lists(
    st.tuples(
        st.sampled_from(["http://a.cz", "https://a.cz", "http://b.cz:8080"]),
        st.lists(st.sampled_from(["x", "y", "z.html", "", "%C3%A1"]), max_size=4),
        st.sampled_from(["", "?p=1", "?p=2&q="]),
        st.sampled_from(["", "http://c.cz/links/", "http://d.cz/?all"]),
        st.integers(0, 4),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=20)
@given(PAGES, st.integers(1, 5), st.integers(0, 4))
def test_no_url_is_guessed_twice_however_often_the_crawl_is_restarted(
    pages: list[tuple[str, list[str], str, str, int, bool]], every: int, deepest: int
) -> None:
    rows = [
        ("/".join([origin, *names]) + ("/" if not names else "") + query, source, depth, good)
        for origin, names, query, source, depth, good in pages
    ]
    rows = [(url, *rest) for url, *rest in rows if canonical(url) == url]
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        write_outcomes(directory, rows)
        found: list[str] = []
        state = KeyValueState(directory / "state")
        while some := guessed(directory, state, ScopeSettings(max_depth=deepest), every):
            found += some
            state.close()  # all that was not committed is forgotten
            state = KeyValueState(directory / "state")
        state.close()
    assert len(set(map(key, found))) == len(found)
    assert {host(url) for url in found} <= {"a.cz", "b.cz:8080", "c.cz", "d.cz"}
    assert all(canonical(url) == url for url in found)
    wanted = {
        guess
        for url, source, depth, good in rows
        if good and depth < deepest
        for guess in (front_page(url), *folders(url), *([front_page(source)] if source else []))
    }
    assert set(map(key, wanted)) <= set(map(key, found))


def write_outcomes(directory: Path, rows: list[Any]) -> None:
    (directory / "outcomes").mkdir()
    table = TableSegments(directory / "outcomes", OUTCOMES, {}, 1 << 20)
    for seq, (url, source, depth, good) in enumerate(rows):
        row = dict.fromkeys(OUTCOMES.names, None) | {
            "seq": seq,
            "url": url,
            "source": source,
            "depth": depth,
            "outcome": "kept" if good else "rejected",
            "time": 0.0,
        }
        table.append(*row.values())
        if seq % 3 == 0:
            table.flush()
    table.flush()
    table.close()


def guessed(directory: Path, state: KeyValueState, scope: ScopeSettings, steps: int) -> list[str]:
    """Return the unseen URLs that some steps guess."""
    config = Config(language="cs", scope=scope)
    link_filter = LinkFilter(scope, SeenUrls(state))
    one = Expansion(directory, config, state, YieldStats(state), lambda _: parse_robots(b""))
    found: list[str] = []
    while one.is_due(idle=True) and (steps > 0 or not found):
        one.begin(lambda: None)
        if one.wants_quiet:
            one.opened(False)
            continue
        guesses = one.guesses()
        unseen = link_filter.unseen([one.url for one in guesses], None)
        assert {one.via for one in guesses} <= {"guess"}
        assert all(0 < one.depth <= scope.max_depth for one in guesses)
        one.found(len(unseen))
        found += [guesses[place].url for place in unseen]
        steps -= 1
    one.flush()
    state.commit()
    return found


def test_no_sitemap_is_guessed_where_none_are_wanted(tmp_path: Path) -> None:
    write_outcomes(tmp_path, [("http://a.cz/one/two.html", "", 0, True)])
    state = KeyValueState(tmp_path / "state")
    assert guessed(tmp_path, state, ScopeSettings(sitemaps=False), 100) == [
        "http://a.cz/",
        "http://a.cz/one/",
    ]
    state.close()


def test_nothing_is_guessed_where_links_inside_a_host_are_not_followed(tmp_path: Path) -> None:
    write_outcomes(tmp_path, [("http://a.cz/one/two.html", "http://b.cz/", 1, True)])
    state = KeyValueState(tmp_path / "state")
    assert guessed(tmp_path, state, ScopeSettings(internal=False), 100) == []
    state.close()


def test_a_crawl_without_expansion_does_not_wait_for_closed_hosts(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path / "state")
    yields = YieldStats(state)

    def opened(**policy: Any) -> Expansion:
        return Expansion(tmp_path, Config(policy=PolicySettings(**policy)), state, yields, lambda _: None)

    one = opened()
    while not one.wants_quiet:
        one.begin(lambda: None)
        if not one.wants_quiet:
            one.guesses()
    one.flush()
    assert opened().wants_quiet
    assert not opened(widen=False).wants_quiet
    assert not opened(name="bfs").wants_quiet
    state.close()


def test_the_default_floor_is_far_below_the_closing_threshold() -> None:
    assert PolicySettings().widen and 0 < PolicySettings().floor < 0.01
