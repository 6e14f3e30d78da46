"""Visits without a crawl: the manners of the crawler, and one result for every URL."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from invariants import check_journal, start
from thresher.config import Config, ConfigError, parse
from thresher.crawl.start import parse_address
from thresher.crawl.visitor import Terms, Visit, Visitor
from thresher.lab.toyweb import Server, ToyWeb, reachable, serve, truth
from thresher.url import host

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


def visits(server: Server, urls: list[str], settings: Config | None = None, **options: Any) -> list[Visit]:
    async def run() -> list[Visit]:
        address = parse_address(server.connect_to)
        async with (
            Visitor(settings or config(), connect_to=address, **options) as visitor,
            aclosing(visitor.visit_all(urls)) as ended,
        ):
            return [visit async for visit in ended]

    return asyncio.run(run())


def candidates(web: ToyWeb, count: int) -> list[str]:
    """URLs of every kind, those included that nobody may visit."""
    found: dict[str, None] = {}
    for url, what in reachable(web, start(web), host_pages=20):
        found |= dict.fromkeys((url, *what.links))
    urls = [url for url in found if not url.endswith("/robots.txt")]
    return urls[:: max(1, len(urls) // count)]


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Visit], list[str], Path]:
    """A web's visits by URL, the URLs that were asked for, and the server's journal."""
    urls = candidates(WEB, 150)
    journal = tmp_path_factory.mktemp("nasty") / "journal"
    with serve(WEB, journal=journal) as server:
        return {visit.url: visit for visit in visits(server, urls)}, urls, journal


def test_every_url_has_exactly_one_result(nasty: tuple[dict[str, Visit], list[str], Path]) -> None:
    found, urls, _ = nasty
    assert sorted(found) == sorted(urls)
    assert all((visit.page is None) == bool(visit.reason) for visit in found.values())


def test_what_is_found_is_what_the_oracle_knows(nasty: tuple[dict[str, Visit], list[str], Path]) -> None:
    found, _, _ = nasty
    kinds = set()
    for url, visit in found.items():
        known = truth(WEB, url)
        kinds.add(known.kind)
        if known.disallowed:
            assert visit.reason in ("disallowed", "robots.txt cannot be had"), url
        elif known.location:
            assert visit.final != url or visit.reason == "redirect loop", url
        elif known.status == 200:
            assert visit.page is not None and visit.final == url, (url, visit.reason)
            assert visit.verdict is not None and visit.downloaded > 0
        else:
            assert visit.reason == f"http {known.status}", url
    assert {"text", "redirect", "lost", "flaky", "error"} <= kinds


def test_a_redirect_is_followed_and_a_loop_of_them_is_named(
    nasty: tuple[dict[str, Visit], list[str], Path],
) -> None:
    found, _, _ = nasty
    followed = [visit for visit in found.values() if visit.page and visit.final != visit.url]
    assert followed
    for visit in followed:
        assert visit.page and visit.page.url == visit.final
    assert any(visit.reason == "redirect loop" for visit in found.values())


def test_robots_txt_is_asked_for_first_and_obeyed_also_behind_redirects(
    nasty: tuple[dict[str, Visit], list[str], Path],
) -> None:
    _, _, journal = nasty
    requests = check_journal(journal, WEB, delay=0.0)  # which looks for disallowed URLs
    first: dict[str, str] = {}
    for url in requests:
        first.setdefault(host(url), url)
    assert all(url.endswith("/robots.txt") for url in first.values())


def test_a_host_is_never_asked_twice_within_its_delay(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    urls = candidates(CALM, 30)
    with serve(CALM, journal=journal) as server:
        assert len(visits(server, urls, config(delay=0.05, load_share=0.0))) == len(urls)
    assert sum(check_journal(journal, CALM, delay=0.05).values()) > len(urls)


class Time:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture(scope="module")
def busy() -> Iterator[tuple[Server, list[str]]]:
    """A web that answers "later" at first, and URLs of several hosts there."""
    web = ToyWeb.calm(hosts=6, pages_per_host=(5, 10), flaky=1.0, retry_after=77)
    urls = {host(url): url for url, what in reachable(web, start(web)) if what.kind == "flaky"}
    with serve(web) as server:
        yield server, list(urls.values())


def test_a_host_that_asks_for_time_is_given_it_and_then_visited(busy: tuple[Server, list[str]]) -> None:
    server, (url, *_) = busy
    time = Time()
    (visit,) = visits(server, [url], clock=time, sleep=time.sleep)
    assert visit.page is not None
    assert [seconds for seconds in time.slept if seconds > 1] == pytest.approx([77])


def test_hosts_that_ask_for_too_much_time_or_do_not_exist_are_reasons(busy: tuple[Server, list[str]]) -> None:
    server, (_, url, *_) = busy
    nowhere = "http://no-such-host.example/"
    time = Time()
    found = visits(server, [url, nowhere], config(max_crawl_delay=60.0), clock=time, sleep=time.sleep)
    assert all(visit.page is None for visit in found)
    reasons = {visit.url: visit.reason for visit in found}
    assert reasons == {url: "asked to wait", nowhere: "robots.txt cannot be had"}
    assert sum(time.slept) < 60


def test_a_server_that_is_not_there_is_a_reason_not_a_fault() -> None:
    time = Time()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        (visit,) = visits(Server(address, ()), ["http://a.cz/"], clock=time, sleep=time.sleep)
    assert visit.page is None and visit.reason == "robots.txt cannot be had"


def test_whoever_stops_listening_leaves_nothing_behind(busy: tuple[Server, list[str]]) -> None:
    server, urls = busy

    async def run() -> int:
        async with Visitor(config(), connect_to=parse_address(server.connect_to)) as visitor:
            front_pages = [f"http://{host(url)}/" for url in urls]
            async with aclosing(visitor.visit_all(front_pages)) as ended:
                async for _ in ended:
                    break
            return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (Terms(""), "--lang"),
        (Terms("cs"), "--contact"),
        (Terms("xx-no-such", connect_to="127.0.0.1:1"), "unknown language"),
        (Terms("cs", delay=-1.0, connect_to="127.0.0.1:1"), "--delay"),
        (Terms("cs", delay=float("nan"), connect_to="127.0.0.1:1"), "--delay"),
        (Terms("cs", connections=0, connect_to="127.0.0.1:1"), "--connections"),
        (Terms("cs", connect_to="nonsense"), "ADDR:PORT"),
    ],
)
def test_terms_that_cannot_be_used_are_named(terms: Terms, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        terms.config(), terms.address()
