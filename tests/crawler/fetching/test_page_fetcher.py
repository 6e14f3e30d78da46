"""The state machine of a polite fetch: permission, robots.txt, turns, retries and redirects, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.clocks import SleepingClock
from thresher.config import Config, parse
from thresher.crawler.fetching.dns import Resolver
from thresher.crawler.fetching.page_fetcher import (
    REASON_NO_NETWORK,
    REASON_NO_ROBOTS,
    REASON_RESTING,
    Allowed,
    Disallowed,
    FetchedPage,
    FetchFailure,
    HostLost,
    PageFetcher,
    Redirect,
    Retry,
    RobotsFetched,
    Wait,
)
from thresher.crawler.manners.addresses import LocalAddresses
from thresher.crawler.manners.network_status import NetworkStatus
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.shards.heartbeat import Superseded
from thresher.crawler.storage.kv_state import NullState
from thresher.records import Failure, Reply
from thresher.urls import host

ROBOTS = b"user-agent: *\ndisallow: /private\nsitemap: http://a.cz/map.xml"
TRANSIENT = Failure("", "timeout", transient=True)
NO_SUCH_HOST = Failure("", "dns", "no such host")
Answer = Reply | Failure


def reply(status: int = 200, body: bytes = b"<p>text", *headers: str, truncated: str = "") -> Reply:
    lines = "\r\n".join((f"HTTP/1.1 {status} X", *headers)) + "\r\n"
    return Reply("", status, lines.encode(), body, 0.0, 0.1, "192.0.2.1", truncated)  # type: ignore[arg-type]


def redirect(target: str, status: int = 302) -> Reply:
    return reply(status, b"", f"Location: {target}")


class ScriptedWeb:
    """A fetcher with given answers that records the time of each request."""

    def __init__(self, clock: SleepingClock, answers: dict[str, Answer | list[Answer]]) -> None:
        self._clock = clock
        self._answers = answers
        self.requests: list[tuple[str, float]] = []

    async def fetch(self, url: str, *, max_body_bytes: int | None = None) -> Answer:
        self.requests.append((url, self._clock.now()))
        answer = self._answers.get(url, reply(404, b""))
        if isinstance(answer, list):
            answer = answer.pop(0)
        kind, known = (Reply, answer) if isinstance(answer, Reply) else (Failure, answer)
        fields = {name: getattr(known, name) for name in kind.__struct_fields__}
        return kind(**{**fields, "url": url})

    @property
    def urls(self) -> list[str]:
        return [url for url, _ in self.requests]


class Setting:
    """A page fetcher with a scripted web, its clock and its politeness."""

    def __init__(
        self,
        answers: dict[str, Answer | list[Answer]],
        *,
        addresses: dict[str, str] | None = None,
        network: NetworkStatus | None = None,
        check: Callable[[], None] = lambda: None,
        **polite: Any,
    ) -> None:
        self.clock = SleepingClock()
        self.web = ScriptedWeb(self.clock, answers)
        self.config: Config = parse(
            {
                "language": "cs",
                "polite": {"delay": 5.0, "ip_delay": 1.0, "backoff": 30.0, "load_share": 0.0, **polite},
            }
        )
        self.politeness = Politeness(NullState(), self.config.polite, self.clock.wall)
        self.network = network
        resolver = None
        if addresses is not None:

            async def lookup(name: str) -> list[str]:
                return [addresses[name]] if name in addresses else []

            resolver = Resolver(self.config.fetch, lookup=lookup, allow=lambda _: "", clock=self.clock.now)
        self.pages = PageFetcher(
            self.config,
            self.web,
            self.politeness,
            LocalAddresses(self.politeness),
            resolver=resolver,
            network=network,
            check=check,
            host_rest=self.politeness.remaining,
            clock=self.clock,
        )

    def permission(self, url: str) -> Any:
        return asyncio.run(self.pages.permission(url))

    def fetch(self, url: str, **options: int) -> Any:
        return asyncio.run(self.pages.fetch_page(url, **options))

    def permitted(self, url: str) -> None:
        """Ask for permission until the URL is allowed, and sleep as long as each answer requires."""

        async def ask() -> None:
            while not isinstance(permission := await self.pages.permission(url), Allowed):
                assert isinstance(permission, Wait | RobotsFetched)
                await self.clock.sleep(
                    permission.seconds if isinstance(permission, Wait) else permission.rest_s
                )

        asyncio.run(ask())


# permission


def test_robots_txt_is_fetched_before_the_first_page_and_uses_the_hosts_turn() -> None:
    setting = Setting({"http://a.cz/robots.txt": reply(200, ROBOTS)})
    first = setting.permission("http://a.cz/page")
    assert isinstance(first, RobotsFetched)
    assert first.robots.sitemaps == ("http://a.cz/map.xml",)
    assert (first.rest_s, first.received) == (5.0, len(ROBOTS))
    assert setting.permission("http://a.cz/page") == Wait(5.0, REASON_RESTING)
    setting.clock.time += 5.0
    assert isinstance(setting.permission("http://a.cz/page"), Allowed)
    assert setting.web.urls == ["http://a.cz/robots.txt"]


def test_a_disallowed_url_is_refused_without_waiting() -> None:
    setting = Setting({"http://a.cz/robots.txt": reply(200, ROBOTS)})
    setting.permission("http://a.cz/private/1")
    assert setting.permission("http://a.cz/private/1") == Disallowed()


def test_a_missing_robots_txt_allows_everything() -> None:
    setting = Setting({})
    setting.permitted("http://a.cz/private/1")


@pytest.mark.parametrize(
    "answer", [reply(503, b""), TRANSIENT, reply(200, ROBOTS, truncated="disconnect"), reply(429, b"")]
)
def test_a_robots_txt_that_cannot_be_had_allows_nothing(answer: Answer) -> None:
    setting = Setting({"http://a.cz/robots.txt": answer})
    assert isinstance(setting.permission("http://a.cz/"), RobotsFetched)
    refusal = setting.permission("http://a.cz/")
    assert isinstance(refusal, Wait) and refusal.reason == REASON_NO_ROBOTS and refusal.seconds > 0
    assert setting.web.urls == ["http://a.cz/robots.txt"]


def test_a_robots_txt_behind_redirects_is_obeyed_and_all_bytes_are_counted() -> None:
    setting = Setting(
        {
            "http://a.cz/robots.txt": reply(301, b"moved", "Location: http://b.cz/r"),
            "http://b.cz/r": reply(200, ROBOTS),
        }
    )
    fetched = setting.permission("http://a.cz/private/1")
    assert isinstance(fetched, RobotsFetched) and fetched.received == len(b"moved") + len(ROBOTS)
    assert not fetched.robots.allows("http://a.cz/private/1")


def test_a_redirected_robots_txt_waits_for_the_address_of_the_other_host() -> None:
    setting = Setting(
        {"http://a.cz/robots.txt": redirect("http://b.cz/robots.txt"), "http://b.cz/robots.txt": reply()},
        addresses={"a.cz": "192.0.2.1", "b.cz": "192.0.2.2"},
        delay=0.0,
        ip_delay=20.0,
    )
    setting.politeness.take_address("192.0.2.2")  # another host there was visited just now
    begun = setting.clock.time
    setting.permission("http://a.cz/page")
    assert setting.web.urls == ["http://a.cz/robots.txt", "http://b.cz/robots.txt"]
    assert setting.web.requests[1][1] - begun >= 20.0


def test_hosts_at_one_address_take_turns() -> None:
    setting = Setting({}, addresses={"a.cz": "192.0.2.1", "b.cz": "192.0.2.1"}, ip_delay=3.0)
    assert isinstance(setting.permission("http://a.cz/"), RobotsFetched)
    waiting = setting.permission("http://b.cz/")
    assert isinstance(waiting, Wait) and waiting.seconds == pytest.approx(3.0)
    assert setting.web.urls == ["http://a.cz/robots.txt"]


def test_a_host_whose_name_does_not_exist_is_lost_with_its_robots_txt() -> None:
    setting = Setting({"http://a.cz/robots.txt": NO_SUCH_HOST})
    lost = setting.permission("http://a.cz/")
    assert isinstance(lost, HostLost) and lost.failure.reason == "dns"
    assert isinstance(setting.permission("http://a.cz/other"), HostLost)
    assert setting.web.urls == ["http://a.cz/robots.txt"]


# answers


def test_a_complete_reply_is_a_page() -> None:
    setting = Setting({"http://a.cz/": reply()})
    result = setting.fetch("http://a.cz/")
    assert isinstance(result, FetchedPage)
    assert (result.answer.body, result.rest_s) == (b"<p>text", 5.0)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (reply(404), "http 404"),
        (reply(204, b""), "http 204"),
        (reply(truncated="length"), "truncated"),
        (reply(301, b""), "redirect loop"),  # without a target, to itself
        (redirect("javascript:alert(1)"), "bad redirect"),
        (redirect("http://a.cz/"), "redirect loop"),
        (Failure("", "tls"), "tls"),
    ],
)
def test_answers_that_give_no_page_are_final_with_a_reason(answer: Answer, reason: str) -> None:
    result = Setting({"http://a.cz/": answer}).fetch("http://a.cz/")
    assert isinstance(result, FetchFailure)
    assert (result.reason, result.host_lost) == (reason, False)


@pytest.mark.parametrize(
    "answer", [reply(503), reply(408), TRANSIENT, reply(truncated="disconnect"), reply(429)]
)
def test_a_passing_failure_is_tried_again_until_no_try_is_left(answer: Answer) -> None:
    setting = Setting({"http://a.cz/": answer}, tries=3)
    assert isinstance(setting.fetch("http://a.cz/", tries=0), Retry)
    assert isinstance(setting.fetch("http://a.cz/", tries=1), Retry)
    assert isinstance(setting.fetch("http://a.cz/", tries=2), FetchFailure)


def test_a_host_rests_longer_after_each_failure_and_is_given_up_in_the_end() -> None:
    setting = Setting({"http://a.cz/": TRANSIENT}, host_failures=3, tries=9)
    first, second, third = (setting.fetch("http://a.cz/", tries=number) for number in range(3))
    assert first.rest_s < second.rest_s < third.rest_s
    assert isinstance(third, FetchFailure) and third.host_lost
    assert isinstance(setting.permission("http://a.cz/"), HostLost)


def test_a_host_that_asks_for_time_rests_as_long() -> None:
    setting = Setting({"http://a.cz/": reply(503, b"", "Retry-After: 77")})
    assert setting.fetch("http://a.cz/").rest_s == 77.0
    assert setting.permission("http://a.cz/") == Wait(77.0, REASON_RESTING)


def test_redirects_are_values_and_limited() -> None:
    setting = Setting({"http://a.cz/": redirect("/next"), "http://a.cz/next": redirect("/")})
    result = setting.fetch("http://a.cz/")
    assert isinstance(result, Redirect) and result.target == "http://a.cz/next"
    limit = setting.config.fetch.max_redirects
    assert isinstance(setting.fetch("http://a.cz/next", hops=limit - 1), Redirect)
    last = setting.fetch("http://a.cz/next", hops=limit)
    assert isinstance(last, FetchFailure) and (last.reason, last.detail) == ("redirect loop", "http://a.cz/")


# the network, and other processes


def test_without_a_network_no_host_is_blamed_and_no_try_is_counted() -> None:
    network = NetworkStatus()
    setting = Setting({"http://a.cz/": NO_SUCH_HOST, "http://a.cz/robots.txt": TRANSIENT}, network=network)
    for _ in range(50):
        assert setting.permission("http://a.cz/") == Wait(30.0, REASON_NO_NETWORK)
        result = setting.fetch("http://a.cz/", tries=0)
        assert isinstance(result, Retry) and not result.counts and result.rest_s == 30.0
    assert network.is_unreachable
    assert setting.politeness.dead_reason("a.cz") == ""


def test_after_the_first_reply_failures_count() -> None:
    network = NetworkStatus()
    setting = Setting({"http://a.cz/": reply(404), "http://b.cz/": NO_SUCH_HOST}, network=network)
    setting.fetch("http://a.cz/")
    assert network.online and not network.is_unreachable
    lost = setting.fetch("http://b.cz/")
    assert isinstance(lost, FetchFailure) and lost.host_lost


def test_a_superseded_process_sends_no_request() -> None:
    def check() -> None:
        raise Superseded("another process takes over")

    setting = Setting({"http://a.cz/": reply()}, check=check)
    with pytest.raises(Superseded):
        setting.fetch("http://a.cz/")
    with pytest.raises(Superseded):
        setting.permission("http://a.cz/")
    assert setting.web.requests == []


ANSWERS = st.sampled_from(
    [reply(), reply(404), reply(503, b"", "Retry-After: 9"), TRANSIENT, redirect("/2"), reply(429)]
)


@given(st.lists(st.tuples(st.sampled_from(["http://a.cz/1", "http://b.cz/1"]), ANSWERS), max_size=12))
def test_a_host_is_never_requested_twice_within_its_delay(visits: list[tuple[str, Answer]]) -> None:
    answers: dict[str, Answer | list[Answer]] = {
        url: [answer for at, answer in visits if at == url] for url in ("http://a.cz/1", "http://b.cz/1")
    }
    setting = Setting(answers, host_failures=1_000, tries=1)
    for url, _ in visits:
        setting.permitted(url)
        setting.fetch(url)
    last: dict[str, float] = {}
    for url, moment in setting.web.requests:
        assert moment - last.get(host(url), float("-inf")) >= 5.0
        last[host(url)] = moment
