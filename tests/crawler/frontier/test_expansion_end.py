"""An expanded crawl opens closed hosts, and ends when it falls below the floor."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

import thresher
from support.invariants import check_stats
from support.webs.small_sites import (
    Site,
    Web,
    kept,
    listing,
    merged,
    order,
    serving,
    sitemap,
    text,
)
from thresher.cli import app
from thresher.config import Config, PolicySettings, parse
from thresher.crawler.api import crawl
from thresher.crawler.frontier import expansion
from thresher.crawler.frontier.expansion import Expansion
from thresher.crawler.host_report import hosts
from thresher.crawler.policy.yield_stats import RecentYield, YieldStats
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.errors import UsageError

pytestmark = pytest.mark.slow

# hosts that were closed

POOR = {f"http://poor.cz/{n}": text(f"{n}") + "<!-- - -->" * 600 for n in range(12)}
JUNK = {f"http://junk.cz/{n}": listing() + "<!-- - -->" * 600 for n in range(12)}
POOR_WEB: Web = {
    "http://rich.cz/": text("rich", *POOR, *JUNK),
    **POOR,
    **JUNK,
}


def test_a_host_that_was_closed_for_its_yield_is_opened_again_but_none_below_the_floor(
    tmp_path: Path,
) -> None:
    rule = {"threshold": "0.5", "min_pages": 2, "min_bytes": 1}
    with serving(POOR_WEB) as site:

        def run(directory: Path, **policy: object) -> None:
            given = merged(policy={**rule, **policy}, fetch={"connections": 1})
            ending = crawl(directory, "cs", ["http://rich.cz/"], settings=given, connect_to=site.connect_to)
            assert ending.reason == "done"

        run(tmp_path / "narrow", widen=False)
        run(tmp_path / "wide")
    assert 2 <= len(kept(tmp_path / "narrow") & set(POOR)) <= 3
    assert set(POOR) <= kept(tmp_path / "wide")
    assert len(set(order(tmp_path / "wide")) & set(JUNK)) == len(set(order(tmp_path / "narrow")) & set(JUNK))
    states = {one.host: (one.state, one.reason) for one in hosts(tmp_path / "wide", time.time())}
    assert states["poor.cz"] == ("open", "")
    assert states["junk.cz"] == ("closed", "low yield")
    check_stats(tmp_path / "wide")


# the floor

DESERT = 240
DESERT_WEB: Web = {
    "http://oasis.cz/water.html": text("water", "http://desert.cz/0"),
    "http://oasis.cz/sitemap.xml": sitemap("http://oasis.cz/well.html"),
    "http://oasis.cz/well.html": text("well"),
    **{
        f"http://desert.cz/{n}": listing(*(f"/{m}" for m in range(2 * n + 1, 2 * n + 3) if m < DESERT))
        + "<!-- sand -->" * 200
        for n in range(DESERT)
    },
}


@pytest.fixture
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "WINDOW", 20)
    monkeypatch.setattr(expansion, "LONG_WINDOW", 60)


def cross(directory: Path, site: Site, **policy: object) -> Any:
    given = merged(policy={"threshold": "", **policy}, fetch={"connections": 4})
    return crawl(directory, "cs", ["http://oasis.cz/water.html"], settings=given, connect_to=site.connect_to)


@pytest.mark.usefixtures("short_windows")
def test_a_crawl_expands_while_poor_urls_are_left_and_ends_below_the_floor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(DESERT_WEB) as site:
        assert cross(tmp_path, site, floor=0.01).reason == "dry"
        assert "http://oasis.cz/well.html" in kept(tmp_path)
        visited = len(order(tmp_path))
        assert 60 <= visited < DESERT
        status = thresher.open(tmp_path).stats()
        assert (status["widening"]["stage"], status["widening"]["floor"]) == (4, 0.01)
        assert status["queue"] > 0

        with pytest.raises(SystemExit) as left:  # a continued crawl gets a window of pages
            app(["crawl", str(tmp_path), "--connect-to", site.connect_to, "--floor", "0.02"])
        assert left.value.code == 0
        assert 60 <= len(order(tmp_path)) - visited <= 60 + 4
        errors = " ".join(capsys.readouterr().err.split())
        assert re.search("the crawl has run dry: the last [67][0-9] pages gave 0.000000", errors)
        assert "less than policy.floor = 0.02" in errors and "--floor 0.002" in errors
        assert "widened to hosts closed for low yield" in errors

        assert cross(tmp_path, site, floor=0.0).reason == "done"
        assert set(order(tmp_path)) >= set(DESERT_WEB)
    check_stats(tmp_path)


def test_only_a_long_window_below_the_floor_ends_a_crawl_and_only_when_all_was_tried(tmp_path: Path) -> None:
    def crossed(pages: int, *, tried: bool = True, **policy: Any) -> bool:
        state = KeyValueState(tmp_path / str(next(numbers)))
        config = Config(language="cs", policy=PolicySettings(**policy))
        yields = YieldStats(state)
        one = Expansion(tmp_path, config, state, yields, lambda _: None)
        while tried and one.is_due(idle=True):
            one.begin(lambda: None)
            if one.wants_quiet:
                one.opened(False)
            else:
                one.guesses()
        for _ in range(pages):
            yields.learn("a.cz", 1_000, 0)
        state.close()
        return one.is_over

    numbers = iter(range(100))
    assert crossed(1_000)
    assert not crossed(999)  # small crawls never end so
    assert not crossed(5_000, tried=False)
    assert not crossed(5_000, floor=0.0)
    assert not crossed(5_000, widen=False)
    assert not crossed(5_000, name="spiderling")


@pytest.mark.usefixtures("short_windows")
def test_closed_hosts_are_opened_while_others_are_being_visited(tmp_path: Path) -> None:
    start = {"http://oasis.cz/water.html": text("water", "http://desert.cz/0", *POOR)}
    rule = "0.5 - 0.6 * min(1, max(0, n - 5))"  # hosts with more than five pages stay open
    with serving({**DESERT_WEB, **POOR, **start}) as site:
        cross(tmp_path, site, threshold=rule, min_pages=2, min_bytes=20_000, floor=0.01)
    visits = order(tmp_path)
    assert set(POOR) <= kept(tmp_path)
    assert max(map(visits.index, POOR)) < len(visits) - 60
    check_stats(tmp_path)


@pytest.mark.parametrize("value", [-0.1, "much"])
def test_a_floor_is_no_negative_number(value: object) -> None:
    with pytest.raises(UsageError, match=r"policy\.floor must be a number of at least 0, .* floor = 0\.001"):
        parse({"policy": {"floor": value}})


# figures


def test_recent_yield_counts_the_last_pages_with_a_body() -> None:
    lately = RecentYield()
    for _ in range(5_000):
        lately.count(1_000, 500)
    lately.count(0, 0)
    assert lately.pages == 5_000
    for _ in range(1_000):
        lately.count(1_000, 0)
    assert lately.last(300).rate == lately.last(1_000).rate == 0.0
    assert 300 <= lately.last(300).pages < 300 + RecentYield.PORTION
    assert len(lately.portions) <= RecentYield.PORTIONS


def test_recent_yield_outlives_the_process(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    yields = YieldStats(state)
    for number in range(50):
        yields.learn("a.cz", 1_000, 10 * number)
    yields.flush()
    state.commit()
    state.close()
    state = KeyValueState(tmp_path)
    assert YieldStats(state).recent == yields.recent
    state.close()
