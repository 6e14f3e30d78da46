"""A crawl that runs dry looks for more around its good pages, says so, and ends at the floor."""

from __future__ import annotations

import io
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import thresher
from invariants import check_books
from thresher.cli import app
from thresher.config import Config, ConfigError, Policy, Scope, parse
from thresher.crawl import widen
from thresher.crawl.explain import explain
from thresher.crawl.finds import Finds
from thresher.crawl.hosts import hosts
from thresher.crawl.robots import parse as parse_robots
from thresher.crawl.seen import Seen
from thresher.crawl.start import crawl
from thresher.crawl.state import State
from thresher.crawl.widen import Widening, folders, front_page
from thresher.crawl.yields import Lately, Yields
from thresher.store.segments import Segments
from thresher.store.tables import OUTCOMES
from thresher.terminal import Pace, figures, line
from thresher.url import canonical, host, key

SENTENCE = (
    "Byl jednou jeden král a ten měl tři dcery, které se na něj každý den dívaly a ptaly se, co je za den. "
)
SETTINGS: dict[str, dict[str, Any]] = {
    "polite": {"delay": 0.0, "backoff": 0.01},
    "read": {"processes": 1},
    "judge": {"max_badness": 0.0, "min_html_bytes": 0},  # one sentence over and over is no language
}

# a small web, by hand


def text(name: str, *links: str) -> str:
    """A page that is kept."""
    return f"<h1>{name}</h1>" + f"<p>{name} {SENTENCE * 8}</p>" * 2 + listing(*links)


def listing(*links: str) -> str:
    """A page of links that is not kept."""
    return "".join(f'<a href="{url}">{number}</a> ' for number, url in enumerate(links))


def sitemap(*urls: str) -> str:
    return "<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + "</urlset>"


Web = Mapping[str, str]  # body by URL; anything else is not found

SEEDS = ["http://a.cz/blog/2020/one.html", "http://c.cz/links.html"]
HIDDEN: Web = {
    "http://a.cz/blog/2020/one.html": text("one", "two.html?from=one", "http://b.cz/good.html"),
    "http://a.cz/blog/2020/two.html?from=one": text("two"),
    "http://a.cz/blog/2020/two.html": text("the second without its query"),
    "http://a.cz/blog/2020/": listing("forbidden.html"),
    "http://a.cz/blog/2020/forbidden.html": text("forbidden"),
    "http://a.cz/blog/": listing("2019/three.html", "http://away.de/", "http://a.cz/private/page.html"),
    "http://a.cz/blog/2019/three.html": text("three"),
    "http://a.cz/private/page.html": text("private"),
    "http://a.cz/robots.txt": "User-agent: *\nDisallow: /blog/2020/$\n",
    "http://b.cz/good.html": text("good"),
    "http://b.cz/sitemap.xml": sitemap("http://b.cz/a-deep-one/in/the/sitemap.html"),
    "http://b.cz/a-deep-one/in/the/sitemap.html": text("sitemap"),
    "http://c.cz/links.html": listing("http://a.cz/blog/2020/one.html", "http://d.cz/linked.html"),
    "http://c.cz/": listing("http://c.cz/texts/first.html"),
    "http://c.cz/texts/first.html": text("on the front page"),
    "http://c.cz/texts/": listing("http://c.cz/texts/second.html"),
    "http://c.cz/texts/second.html": text("beside it"),
    "http://d.cz/linked.html": text("linked"),
    "http://d.cz/robots.txt": "Sitemap: http://d.cz/other.xml\n",
    "http://d.cz/": listing("http://d.cz/front.html"),
    "http://d.cz/front.html": text("front"),
    "http://away.de/": text("away"),
}
LINKED = {
    "http://a.cz/blog/2020/one.html",
    "http://a.cz/blog/2020/two.html?from=one",
    "http://b.cz/good.html",
    "http://d.cz/linked.html",
}
UNLINKED = {
    "http://a.cz/blog/2019/three.html",  # behind a folder
    "http://a.cz/blog/2020/two.html",  # without its query
    "http://b.cz/a-deep-one/in/the/sitemap.html",
    "http://c.cz/texts/first.html",  # behind the front page of a host that linked to good pages …
    "http://c.cz/texts/second.html",  # … and in the same folder, which it takes another round to find
    "http://d.cz/front.html",  # behind the front page of a good host
}
SCOPE = {"tlds": ["cz"], "exclude": ["/private/"]}


class Site:
    """A web on loopback, with a list of what was asked for."""

    def __init__(self, web: Web) -> None:
        self.asked: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # head and body in one packet

            def do_GET(self) -> None:
                url = f"http://{self.headers['Host']}{self.path}"
                site.asked.append(url)
                found = web.get(url)
                kind = "xml" if url.endswith(".xml") else "plain" if url.endswith(".txt") else "html"
                body = (found or "no").encode()
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.connect_to = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def serving(web: Web) -> Iterator[Site]:
    site = Site(web)
    try:
        yield site
    finally:
        site.close()


def merged(**sections: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: {**SETTINGS.get(name, {}), **sections.get(name, {})} for name in {**SETTINGS, **sections}}


def kept(directory: Path) -> set[str]:
    return set(thresher.open(directory).docs(["url"])["url"].to_pylist())


def order(directory: Path) -> list[str]:
    return thresher.open(directory).outcomes(["url"])["url"].to_pylist()


def widening(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = thresher.open(directory).stats()["widening"]
    return found


# stages


Stages = list[tuple[int, int]]  # at each commit: the stage, and how many requests there were so far


@pytest.fixture(scope="module")
def widened(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], Stages]:
    """A crawl under the default policy, what it asked for, and its stages."""
    directory = tmp_path_factory.mktemp("widened") / "corpus"
    stages: Stages = []
    with serving(HIDDEN) as site:

        def note(status: dict[str, Any]) -> None:
            stages.append((status["widening"]["stage"], len(site.asked)))

        ending = crawl(
            directory, "cs", SEEDS, settings=merged(scope=SCOPE), connect_to=site.connect_to, progress=note
        )
        assert ending.reason == "done"
    return directory, site.asked, stages


def test_pages_that_nobody_links_to_are_found_and_nothing_is_asked_for_that_may_not_be(
    widened: tuple[Path, list[str], Stages],
) -> None:
    directory, asked, _ = widened
    assert kept(directory) == LINKED | UNLINKED
    check_books(directory)
    assert [url for url, count in Counter(asked).items() if count > 1] == []
    assert {host(url) for url in asked} == {"a.cz", "b.cz", "c.cz", "d.cz"}  # none out of scope
    assert not {"http://a.cz/private/page.html", "http://a.cz/blog/2020/"} & set(asked)
    assert "http://d.cz/other.xml" in asked and "http://d.cz/sitemap.xml" not in asked


def test_the_stages_come_one_after_the_other_each_when_the_one_before_has_run_dry(
    widened: tuple[Path, list[str], Stages],
) -> None:
    _, asked, stages = widened
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


def test_status_tells_the_stage_in_figures_and_in_words(widened: tuple[Path, list[str], Stages]) -> None:
    directory, _, _ = widened
    told = widening(directory)
    assert (told["stage"], told["name"]) == (4, "hosts closed for low yield")
    assert told["kept"] == len(UNLINKED)
    links = thresher.open(directory).links(["target"])["target"].to_pylist()
    linked = {*links, *SEEDS, "http://d.cz/other.xml"}
    assert told["found"] == len([url for url in order(directory) if url not in linked])
    status = thresher.open(directory).stats()
    assert "widened to hosts closed for low yield" in line(status, Pace())
    screen = io.StringIO()
    Console(file=screen, width=100).print(figures(status))
    assert f"{told['found']} URLs found so, {len(UNLINKED)} pages kept since" in screen.getvalue()


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        ({"name": "heidix"}, UNLINKED),
        ({"name": "learned", "widen": False}, set()),
        ({"name": "spiderling"}, set()),  # does what its paper says, and no more
    ],
)
def test_not_every_policy_widens(tmp_path: Path, policy: dict[str, object], found: set[str]) -> None:
    with serving(HIDDEN) as site:
        given = merged(policy=policy, scope=SCOPE)
        crawl(tmp_path, "cs", SEEDS, settings=given, connect_to=site.connect_to)
    assert kept(tmp_path) == LINKED | found
    if not found:
        told = {"http://c.cz/links.html", "http://d.cz/other.xml"}
        assert set(order(tmp_path)) == LINKED | told
        assert (widening(tmp_path)["stage"], widening(tmp_path)["found"]) == (0, 0)


# whatever happens


class Crash(BaseException):
    """The end of a process, just after a commit."""


def test_a_crawl_that_dies_again_and_again_while_it_widens_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(widen, "PORTION", 1)
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
    check_books(tmp_path)
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
def test_no_url_is_guessed_twice_however_often_the_crawl_is_begun_anew(
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
        state = State(directory / "state")
        while some := guessed(directory, state, Scope(max_depth=deepest), every):
            found += some
            state.close()  # all that was not committed is forgotten
            state = State(directory / "state")
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
    table = Segments(directory / "outcomes", OUTCOMES, {}, 1 << 20)
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


def guessed(directory: Path, state: State, scope: Scope, steps: int) -> list[str]:
    """What so many steps guess that nobody guessed before."""
    config = Config(language="cs", scope=scope)
    finds = Finds(scope, Seen(state))
    widening = Widening(directory, config, state, Yields(state), lambda _: parse_robots(b""))
    found: list[str] = []
    while widening.is_due(idle=True) and (steps > 0 or not found):
        widening.begin(lambda: None)
        if widening.wants_quiet:
            widening.opened(False)
            continue
        guesses = widening.guesses()
        fresh = finds.fresh([one.url for one in guesses], None)
        assert {one.via for one in guesses} <= {"guess"}
        assert all(0 < one.depth <= scope.max_depth for one in guesses)
        widening.found(len(fresh))
        found += [guesses[place].url for place in fresh]
        steps -= 1
    widening.flush()
    state.commit()
    return found


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
    check_books(tmp_path / "wide")


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
    monkeypatch.setattr(widen, "WINDOW", 20)
    monkeypatch.setattr(widen, "LONG_WINDOW", 60)


def cross(directory: Path, site: Site, **policy: object) -> Any:
    given = merged(policy={"threshold": "", **policy}, fetch={"connections": 4})
    return crawl(directory, "cs", ["http://oasis.cz/water.html"], settings=given, connect_to=site.connect_to)


@pytest.mark.usefixtures("short_windows")
def test_a_crawl_widens_while_poor_urls_are_left_and_ends_where_it_falls_below_the_floor(
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

        with pytest.raises(SystemExit) as left:  # somebody wants it to go on, and gets a window of pages
            app(["crawl", str(tmp_path), "--connect-to", site.connect_to, "--floor", "0.02"])
        assert left.value.code == 0
        assert 60 <= len(order(tmp_path)) - visited <= 60 + 4
        said = " ".join(capsys.readouterr().err.split())
        assert re.search("the crawl has run dry: the last [67][0-9] pages gave 0.000000", said)
        assert "less than policy.floor = 0.02" in said and "--floor 0.002" in said
        assert "widened to hosts closed for low yield" in said

        assert cross(tmp_path, site, floor=0.0).reason == "done"
        assert set(order(tmp_path)) >= set(DESERT_WEB)
    check_books(tmp_path)


def test_only_a_long_window_below_the_floor_ends_a_crawl_and_only_when_all_was_tried(tmp_path: Path) -> None:
    def crossed(pages: int, *, tried: bool = True, **policy: Any) -> bool:
        state = State(tmp_path / str(next(numbers)))
        config = Config(language="cs", policy=Policy(**policy))
        yields = Yields(state)
        one = Widening(tmp_path, config, state, yields, lambda _: None)
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
    rule = "0.5 - 0.6 * min(1, max(0, n - 5))"  # whoever has more than five pages is left alone
    with serving({**DESERT_WEB, **POOR, **start}) as site:
        cross(tmp_path, site, threshold=rule, min_pages=2, min_bytes=20_000, floor=0.01)
    visits = order(tmp_path)
    assert set(POOR) <= kept(tmp_path)
    assert max(map(visits.index, POOR)) < len(visits) - 60
    check_books(tmp_path)


@pytest.mark.parametrize("value", [-0.1, "much"])
def test_a_floor_is_no_negative_number(value: object) -> None:
    with pytest.raises(ConfigError, match=r"policy\.floor = .* try floor = 0\.001"):
        parse({"policy": {"floor": value}})


# figures


def test_the_last_pages_are_those_with_a_body_and_older_ones_are_forgotten() -> None:
    lately = Lately()
    for _ in range(5_000):
        lately.count(1_000, 500)
    lately.count(0, 0)
    assert lately.pages == 5_000
    for _ in range(1_000):
        lately.count(1_000, 0)
    assert lately.last(300).rate == lately.last(1_000).rate == 0.0
    assert 300 <= lately.last(300).pages < 300 + Lately.PORTION
    assert len(lately.portions) <= Lately.PORTIONS


def test_what_came_last_outlives_the_process(tmp_path: Path) -> None:
    state = State(tmp_path)
    yields = Yields(state)
    for number in range(50):
        yields.learn("a.cz", 1_000, 10 * number)
    yields.flush()
    state.commit()
    state.close()
    state = State(tmp_path)
    assert Yields(state).lately == yields.lately
    state.close()


def test_no_sitemap_is_guessed_where_none_are_wanted(tmp_path: Path) -> None:
    write_outcomes(tmp_path, [("http://a.cz/one/two.html", "", 0, True)])
    state = State(tmp_path / "state")
    assert guessed(tmp_path, state, Scope(sitemaps=False), 100) == ["http://a.cz/", "http://a.cz/one/"]
    state.close()


def test_nothing_is_guessed_where_links_inside_a_host_are_not_followed(tmp_path: Path) -> None:
    write_outcomes(tmp_path, [("http://a.cz/one/two.html", "http://b.cz/", 1, True)])
    state = State(tmp_path / "state")
    assert guessed(tmp_path, state, Scope(internal=False), 100) == []
    state.close()


def test_a_crawl_that_no_longer_widens_waits_for_no_quiet(tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    yields = Yields(state)

    def opened(**policy: Any) -> Widening:
        return Widening(tmp_path, Config(policy=Policy(**policy)), state, yields, lambda _: None)

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


def test_the_default_floor_is_far_below_what_domains_are_closed_for() -> None:
    assert Policy().widen and 0 < Policy().floor < 0.01
