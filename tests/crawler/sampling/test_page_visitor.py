"""Visits without a crawl: the manners of the crawler, and one result for every URL."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from support.clocks import SleepingClock
from support.invariants import check_journal
from support.webs.small_sites import Site, serving, text
from support.webs.toy_webs import all_seeds
from thresher.config import Config, parse, parse_address
from thresher.crawler.clock import SystemClock
from thresher.crawler.sampling.page_visitor import PageVisitor, VisitResult, VisitSettings
from thresher.errors import UsageError
from thresher.urls import host
from thresher_lab.toyweb import Server, ToyWeb, reachable, serve, truth

pytestmark = pytest.mark.slow

# Everything nasty that the toy web has, in a small and quick edition.
WEB = ToyWeb(
    hosts=30,
    pages_per_host=(5, 15),
    page_bytes=(4_000, 8_000),
    slow_seconds=0.05,
    drip_seconds=0.1,
    crawl_delay=0.05,
    robots_broken=0.1,
    error=0.06,
    flaky=0.05,
    redirect=0.1,
    loop=0.03,
    private=0.2,
)
CALM = ToyWeb.calm(hosts=6, pages_per_host=(5, 10), page_bytes=(4_000, 6_000))


def config(**polite: Any) -> Config:
    manners = {"delay": 0.0, "contact": "test@example.org", "backoff": 0.05, "robots_retry": 600.0}
    return parse({"language": "cs", "polite": {**manners, **polite}, "read": {"processes": 1}})


def visits(
    server: Server | Site, urls: list[str], settings: Config | None = None, **options: Any
) -> list[VisitResult]:
    async def run() -> list[VisitResult]:
        address = parse_address(server.connect_to)
        async with (
            PageVisitor(settings or config(), connect_to=address, **options) as visitor,
            aclosing(visitor.visit_all(urls)) as ended,
        ):
            return [visit async for visit in ended]

    return asyncio.run(run())


def candidates(web: ToyWeb, count: int) -> list[str]:
    """Return URLs of every kind, disallowed ones included."""
    found: dict[str, None] = {}
    for url, known in reachable(web, all_seeds(web), host_pages=20):
        found |= dict.fromkeys((url, *known.links))
    urls = [url for url in found if not url.endswith("/robots.txt")]
    return urls[:: max(1, len(urls) // count)]


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, VisitResult], list[str], Path]:
    """Return a web's visits by URL, the URLs that were asked for, and the server's journal."""
    urls = candidates(WEB, 150)
    journal = tmp_path_factory.mktemp("nasty") / "journal"
    with serve(WEB, journal=journal) as server:
        return {visit.url: visit for visit in visits(server, urls)}, urls, journal


def test_every_url_has_exactly_one_result(nasty: tuple[dict[str, VisitResult], list[str], Path]) -> None:
    found, urls, _ = nasty
    assert sorted(found) == sorted(urls)
    assert all((visit.page is None) == bool(visit.reason) for visit in found.values())


def test_results_agree_with_the_oracle(
    nasty: tuple[dict[str, VisitResult], list[str], Path],
) -> None:
    found, _, _ = nasty
    kinds = set()
    for url, visit in found.items():
        known = truth(WEB, url)
        kinds.add(known.kind)
        if known.disallowed:
            assert visit.reason in ("disallowed", "robots.txt is unavailable"), url
        elif known.location:
            assert visit.final != url or visit.reason == "redirect loop", url
        elif known.status == 200:
            assert visit.page is not None and visit.final == url, (url, visit.reason)
            assert visit.verdict is not None and visit.downloaded > 0
        else:
            assert visit.reason == f"http {known.status}", url
    assert {"text", "redirect", "lost", "flaky", "error"} <= kinds


def test_a_redirect_is_followed_and_a_loop_of_them_is_named(
    nasty: tuple[dict[str, VisitResult], list[str], Path],
) -> None:
    found, _, _ = nasty
    followed = [visit for visit in found.values() if visit.page and visit.final != visit.url]
    assert followed
    for visit in followed:
        assert visit.page and visit.page.url == visit.final
    assert any(visit.reason == "redirect loop" for visit in found.values())


def test_robots_txt_is_asked_for_first_and_obeyed_also_behind_redirects(
    nasty: tuple[dict[str, VisitResult], list[str], Path],
) -> None:
    _, _, journal = nasty
    requests = check_journal(journal, WEB, delay=0.0)  # which looks for disallowed URLs
    first: dict[str, str] = {}
    for url in requests:
        first.setdefault(host(url), url)
    assert all(url.endswith("/robots.txt") for url in first.values())


def test_a_visited_page_has_the_opt_outs_of_its_robots_txt() -> None:
    url = "http://a.cz/page"
    web = {
        url: text("page"),
        "http://a.cz/robots.txt": "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n",
    }
    with serving(web) as site:
        (visit,) = visits(site, [url])
    assert visit.page is not None
    assert visit.page.opt_out == ("content-signal: ai-train=no",)


def test_a_host_is_never_asked_twice_within_its_delay(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    urls = candidates(CALM, 30)
    with serve(CALM, journal=journal) as server:
        assert len(visits(server, urls, config(delay=0.05, load_share=0.0))) == len(urls)
    assert sum(check_journal(journal, CALM, delay=0.05).values()) > len(urls)


@pytest.fixture(scope="module")
def busy() -> Iterator[tuple[Server, list[str]]]:
    """Yield a web that answers "later" at first, and URLs of several hosts there."""
    web = ToyWeb.calm(hosts=6, pages_per_host=(5, 10), flaky=1.0, retry_after=77)
    urls = {host(url): url for url, known in reachable(web, all_seeds(web)) if known.kind == "flaky"}
    with serve(web) as server:
        yield server, list(urls.values())


def test_a_host_that_asks_for_time_is_given_it_and_then_visited(busy: tuple[Server, list[str]]) -> None:
    server, (url, *_) = busy
    time = SleepingClock()
    (visit,) = visits(server, [url], clock=time)
    assert visit.page is not None
    assert [seconds for seconds in time.slept if seconds > 1] == pytest.approx([77])


def test_hosts_that_ask_for_too_much_time_or_do_not_exist_are_reasons(busy: tuple[Server, list[str]]) -> None:
    server, (_, url, *_) = busy
    nowhere = "http://no-such-host.example/"
    time = SleepingClock()
    found = visits(server, [url, nowhere], config(max_crawl_delay=60.0), clock=time)
    assert all(visit.page is None for visit in found)
    reasons = {visit.url: visit.reason for visit in found}
    assert reasons == {url: "asked to wait", nowhere: "robots.txt is unavailable"}
    assert sum(time.slept) < 60


@pytest.fixture
def refused() -> Iterator[str]:
    """Yield an address at which connections are refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nothing listens there
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_server_that_is_not_there_is_a_reason_not_a_fault(refused: str) -> None:
    time = SleepingClock()
    (visit,) = visits(Server(refused, ()), ["http://a.cz/"], clock=time)
    assert visit.page is None and visit.reason == "robots.txt is unavailable"


def test_a_missing_network_is_noticed_as_soon_as_every_host_was_tried_once(refused: str) -> None:
    class StandingClock(SystemClock):
        async def sleep(self, seconds: float) -> None:
            await asyncio.Event().wait()  # the back-off before a second try never ends

    async def run() -> None:
        async with PageVisitor(config(), connect_to=parse_address(refused), clock=StandingClock()) as visitor:
            visiting = asyncio.create_task(anext(visitor.visit_all(["http://a.cz/", "http://b.cz/"])))
            await asyncio.wait_for(visitor.offline.wait(), 60)
            visiting.cancel()
            await asyncio.gather(visiting, return_exceptions=True)

    asyncio.run(run())


def test_a_network_with_one_host_that_answers_is_not_missing(busy: tuple[Server, list[str]]) -> None:
    server, urls = busy
    time = SleepingClock()

    async def run() -> bool:
        address = parse_address(server.connect_to)
        async with PageVisitor(config(), connect_to=address, clock=time) as visitor:
            async with aclosing(visitor.visit_all([urls[0], "http://no-such-host.example/"])) as ended:
                assert len([visit async for visit in ended]) == 2
            return visitor.offline.is_set()

    assert not asyncio.run(run())


def test_a_caller_that_stops_early_leaves_no_tasks_behind(busy: tuple[Server, list[str]]) -> None:
    server, urls = busy

    async def run() -> int:
        async with PageVisitor(config(), connect_to=parse_address(server.connect_to)) as visitor:
            front_pages = [f"http://{host(url)}/" for url in urls]
            async with aclosing(visitor.visit_all(front_pages)) as ended:
                async for _ in ended:
                    break
            return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (VisitSettings(""), "--lang"),
        (VisitSettings("cs"), "--contact"),
        (VisitSettings("xx-no-such", connect_to="127.0.0.1:1"), "unknown language"),
        (VisitSettings("cs", delay=-1.0, connect_to="127.0.0.1:1"), "--delay"),
        (VisitSettings("cs", delay=float("nan"), connect_to="127.0.0.1:1"), "--delay"),
        (VisitSettings("cs", connections=0, connect_to="127.0.0.1:1"), "--connections"),
        (VisitSettings("cs", connect_to="nonsense"), "ADDR:PORT"),
    ],
)
def test_terms_that_cannot_be_used_are_named(terms: VisitSettings, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        terms.config(), terms.address()
