"""Manners: robots.txt by RFC 9309, delays, back-off, and all of it over restarts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.config import PoliteSettings
from thresher.crawler.manners.politeness import Politeness, retry_after
from thresher.crawler.manners.robots import ALLOW_ALL, DISALLOW_ALL
from thresher.crawler.storage.kv_state import KeyValueState, NullState
from thresher.records import Failure, Reply

HOST = "a.cz"


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def reply(status: int = 200, body: bytes = b"", headers: str = "", elapsed: float = 0.0) -> Reply:
    head = f"HTTP/1.1 {status} X\r\n{headers}".encode()
    return Reply("http://a.cz/robots.txt", status, head, body, 0.0, elapsed, "192.0.2.1")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def state(tmp_path: Path) -> Iterator[KeyValueState]:
    state = KeyValueState(tmp_path)
    yield state
    state.close()


@pytest.fixture
def polite(state: KeyValueState, clock: Clock) -> Politeness:
    return Politeness(state, PoliteSettings(delay=5.0), clock)


def test_a_host_without_known_rules_is_asked_for_robots_txt_first(polite: Politeness) -> None:
    assert polite.robots(HOST) is None


def test_rules_are_believed_for_a_day_and_then_fetched_again(polite: Politeness, clock: Clock) -> None:
    polite.learn_robots(HOST, reply(body=b"User-agent: *\nDisallow: /private"))
    rules = polite.robots(HOST)
    assert rules and not rules.allows("http://a.cz/private/x") and rules.allows("http://a.cz/x")
    clock.now += 86_399
    assert polite.robots(HOST) is not None
    clock.now += 1
    assert polite.robots(HOST) is None


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 301])
def test_robots_txt_that_is_not_there_allows_everything(polite: Politeness, status: int) -> None:
    assert polite.learn_robots(HOST, reply(status)) is ALLOW_ALL
    assert polite.robots(HOST) is ALLOW_ALL


@pytest.mark.parametrize(
    "answer",
    [reply(500), reply(503), reply(429), Failure("u", "timeout", transient=True), Failure("u", "connect")],
)
def test_an_unreachable_robots_txt_forbids_everything_and_is_requested_again(
    polite: Politeness, clock: Clock, answer: Reply | Failure
) -> None:
    assert polite.learn_robots(HOST, answer) is DISALLOW_ALL
    assert polite.robots(HOST) is DISALLOW_ALL
    clock.now += polite.robots_wait(HOST)
    assert polite.robots(HOST) is None


def test_robots_txt_that_fails_again_and_again_is_left_for_an_hour(polite: Politeness) -> None:
    waits = []
    for _ in range(4):
        polite.learn_robots(HOST, reply(500))
        waits.append(polite.robots_wait(HOST))
    assert waits == [30.0, 60.0, 3600.0, 3600.0]


def test_rules_and_waits_survive_a_restart(state: KeyValueState, clock: Clock) -> None:
    before = Politeness(state, PoliteSettings(delay=1.0), clock)
    before.learn_robots(HOST, reply(body=b"User-agent: *\nCrawl-delay: 20\nDisallow: /x"))
    before.rest(HOST, reply(503, headers="Retry-After: 100\r\n"))
    before.flush()
    state.commit()
    clock.now += 30
    after = Politeness(state, PoliteSettings(delay=1.0), clock)
    rules = after.robots(HOST)
    assert rules and not rules.allows("http://a.cz/x")
    assert after.delay(HOST) == 20.0
    assert after.rest_on_opening(HOST) == 70.0
    clock.now -= 86_400  # a clock set back does not make the wait longer than it was
    assert after.rest_on_opening(HOST) == 100.0
    clock.now += 2 * 86_400
    assert after.rest_on_opening(HOST) == 20.0


def test_the_delay_is_the_longest_of_ours_the_hosts_and_its_load(polite: Politeness) -> None:
    assert polite.rest(HOST, reply()) == 5.0
    assert polite.rest(HOST, reply(elapsed=2.0)) == 10.0  # a fifth of its time at most
    assert polite.rest(HOST, reply(elapsed=900.0)) == 60.0
    polite.learn_robots(HOST, reply(body=b"User-agent: *\nCrawl-delay: 30"))
    assert polite.rest(HOST, reply(elapsed=2.0)) == 30.0


def test_a_huge_crawl_delay_is_obeyed(polite: Politeness) -> None:
    polite.learn_robots(HOST, reply(body=b"User-agent: *\nCrawl-delay: 86400"))
    assert polite.rest(HOST, reply()) == 86_400.0


def test_back_off_doubles_and_ends_with_the_first_good_answer(polite: Politeness) -> None:
    waits = [polite.rest(HOST, reply(503)) for _ in range(3)]
    assert waits == [30.0, 60.0, 120.0]
    assert polite.rest(HOST, reply(200)) == 5.0
    assert polite.rest(HOST, reply(429)) == 30.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        ("Wed, 15 Nov 2023 00:00:00 GMT", 1_700_006_400.0 - 1_700_000_000.0),
        ("-5", None),
        ("garbage", None),
        ("nan", None),
        ("1e999", None),
        ("Wed, 15 Nov 1995 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_a_number_or_a_date_and_nonsense_is_ignored(value: str, seconds: float | None) -> None:
    assert retry_after(reply(503, headers=f"Retry-After: {value}\r\n"), 1_700_000_000.0) == seconds


def test_ten_years_of_retry_after_are_cut_to_a_month(polite: Politeness) -> None:
    assert polite.rest(HOST, reply(503, headers="Retry-After: 315360000\r\n")) == 30 * 86_400.0


def test_two_hosts_of_one_address_share_its_turns(polite: Politeness, clock: Clock) -> None:
    assert polite.take_address("192.0.2.1") == 0.0
    assert polite.take_address("192.0.2.1") == pytest.approx(0.5)
    assert polite.take_address("192.0.2.2") == 0.0
    clock.now += 0.5
    assert polite.take_address("192.0.2.1") == 0.0


def test_after_a_restart_every_address_rests_first(state: KeyValueState, clock: Clock) -> None:
    before = Politeness(state, PoliteSettings(ip_delay=0.5), clock)
    assert before.take_address("192.0.2.1") == 0.0, "no address was visited before"
    state.put(b"s/", b"seeds are committed before the first visit")
    state.commit()
    clock.now += 0.25
    after = Politeness(state, PoliteSettings(ip_delay=0.5), clock)
    first, second = after.take_address("192.0.2.1"), after.take_address("192.0.2.1")
    assert first == pytest.approx(0.5) and second >= 1.0, "one after the other"
    assert after.take_address("192.0.2.2") == pytest.approx(0.5)
    clock.now += 0.5
    assert after.take_address("192.0.2.1") == 0.0
    clock.now -= 86_400
    assert after.take_address("192.0.2.3") == 0.0


@given(st.lists(st.floats(0.0, 0.04), min_size=1, max_size=40), st.floats(0.0, 0.2))
def test_requests_that_wait_for_an_address_get_different_times(late: list[float], slack: float) -> None:
    """All are a little late, none must wait twice, and the address has its rest."""
    clock = Clock()
    polite = Politeness(NullState(), PoliteSettings(ip_delay=0.5), clock)
    began = clock.now
    assert polite.take_address("192.0.2.1", slack) == 0.0
    visits, waits = [began], [polite.take_address("192.0.2.1", slack) for _ in late]
    for wait, delayed in zip(waits, late, strict=True):
        clock.now = began + wait + delayed
        again = polite.take_address("192.0.2.1", slack)
        if again:  # but for a moment
            assert again <= 0.05
            clock.now += again + 1e-6
            assert polite.take_address("192.0.2.1", slack) == 0.0
        visits.append(clock.now)
    assert all(second - first > 0.5 - 1e-3 for first, second in pairwise(visits))


def test_a_host_that_does_not_exist_is_given_up_and_stays_so(state: KeyValueState, clock: Clock) -> None:
    polite = Politeness(state, PoliteSettings(), clock)
    assert polite.give_up(HOST, Failure("u", "dns", "NXDOMAIN"))
    polite.flush()
    state.commit()
    assert Politeness(state, PoliteSettings(), clock).dead_reason(HOST) == "dns"


def test_a_host_is_given_up_only_after_many_passing_failures_in_a_row(
    state: KeyValueState, clock: Clock
) -> None:
    polite = Politeness(state, PoliteSettings(host_failures=3), clock)
    failure = Failure("u", "timeout", transient=True)
    results = []
    for _ in range(3):
        polite.rest(HOST, failure)
        results.append(polite.give_up(HOST, failure))
    assert results == [False, False, True]
