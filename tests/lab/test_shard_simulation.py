"""Simulated crawls in shards: nothing is lost or fetched twice, delays are kept, and work is balanced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from thresher.store.shard_layout import owner
from thresher_lab.shard_simulation.results import CrawlCourse, in_reach, simulate
from thresher_lab.shard_simulation.state import ShardTerms
from thresher_lab.shard_simulation.web import name

DOMAINS, BIGGEST, ENDLESS = 400, 300, 10**6
ROUNDING = 1e-6  # seconds: times are sums of many


def crawl(shards: int = 4, pages: int = ENDLESS, seed: int = 1, **terms: Any) -> CrawlCourse:
    return simulate(DOMAINS, shards, ShardTerms(pages, seeds=20, **terms), biggest=BIGGEST, seed=seed)


def pages_of(course: CrawlCourse) -> list[int]:
    return sorted(course.requests.pages[course.requests.pages >= 0].tolist())


@pytest.mark.parametrize("shards", [1, 4, 16])
def test_every_page_is_fetched_once(shards: int) -> None:
    pages = pages_of(crawl(shards))
    assert len(pages) == len(set(pages)) > 1_000


def test_the_pages_found_do_not_depend_on_the_number_of_shards() -> None:
    alone = crawl(1)
    assert not alone.messages.sent
    for shards in (2, 7, 32):
        several = crawl(shards)
        assert several.messages.sent
        assert pages_of(several) == pages_of(alone)


@pytest.mark.parametrize(("spread", "lend"), [(0, 0.0), (1, 0.0), (1, 10.0), (0, 10.0)])
@pytest.mark.parametrize("shards", [1, 5])
def test_delays_of_hosts_and_addresses_are_kept(shards: int, spread: int, lend: float) -> None:
    course = crawl(shards, delay=5.0, ip_delay=0.5, spread=spread, lend=lend)
    assert course.host_rest() >= 5.0 - ROUNDING
    assert course.address_gap() >= 0.5 - ROUNDING
    assert course.refusals  # addresses were wanted by several hosts at a time


def test_slow_hosts_are_left_alone_for_longer() -> None:
    requests = crawl(delay=1.0, load_share=0.2).requests
    order = np.lexsort((requests.sent, requests.hosts))
    hosts, sent, answered = requests.hosts[order], requests.sent[order], requests.answered[order]
    same = hosts[1:] == hosts[:-1]
    rests, took = (sent[1:] - answered[:-1])[same], (answered - sent)[:-1][same]
    assert took.max() > 1.0
    assert (rests >= np.minimum(took / 0.2, ShardTerms(1).max_delay) - ROUNDING).all()


def test_a_robots_txt_comes_before_every_first_page() -> None:
    requests = crawl().requests
    met: set[int] = set()
    for host, page in zip(requests.hosts.tolist(), requests.pages.tolist(), strict=True):
        assert (page < 0) == (host not in met)
        met.add(host)


def test_no_shard_has_more_connections_than_it_may() -> None:
    course = crawl(connections=3)
    for shard in range(course.shards):
        mine = course.requests.shards == shard
        times = np.concatenate((course.requests.sent[mine], course.requests.answered[mine]))
        steps = np.repeat((1, -1), mine.sum())
        assert np.cumsum(steps[np.lexsort((steps, times))]).max() <= 3
    assert course.idle() < 0.9


def test_a_host_is_visited_by_the_shard_that_owns_its_domain() -> None:
    web = crawl(6).web
    for host in range(0, len(web.domains), 17):
        assert web.shards[host] == owner(f"www.{name(web.domains[host])}", 6)


@pytest.mark.parametrize("recent", [1, 10, 100_000])
def test_every_link_sent_is_received(recent: int) -> None:
    messages = crawl(recent=recent).messages
    assert messages.outward >= messages.sent == messages.received >= messages.new > 0
    assert messages.sent >= messages.messages >= messages.sent / messages.longest_outbox


def test_a_sender_with_more_memory_sends_less_and_no_page_is_missed() -> None:
    forgetful, mindful = crawl(recent=10), crawl(recent=100_000)
    assert mindful.messages.sent < forgetful.messages.sent
    assert pages_of(mindful) == pages_of(forgetful)


def test_a_sender_with_unlimited_memory_sends_no_link_twice() -> None:
    course = crawl(2, recent=100_000)
    # Of two shards, each receives only links that the other has sent.
    assert course.messages.sent <= course.web.pages


def test_different_times_for_waiting_requests_need_fewer_questions() -> None:
    together, in_turn = crawl(spread=0), crawl(spread=1)
    assert in_turn.refusals < together.refusals
    assert in_turn.questions < together.questions


def test_lent_addresses_need_fewer_questions() -> None:
    asked, lent = crawl(lend=0.0), crawl(lend=30.0)
    assert lent.questions < asked.questions
    assert pages_of(lent) == pages_of(asked)


def test_the_same_seed_gives_the_same_crawl_and_another_one_another() -> None:
    one, same, other = crawl(seed=3), crawl(seed=3), crawl(seed=4)
    assert np.array_equal(one.requests.sent, same.requests.sent)
    assert np.array_equal(one.requests.pages, same.requests.pages)
    assert one.messages == same.messages
    assert one.messages != other.messages


@pytest.mark.parametrize("shards", [4, 16])
def test_imbalance_is_bounded_by_the_largest_domain(shards: int) -> None:
    """Domains fall to shards at random, so the deviation of a sum is the root of the sum of squares."""
    course = crawl(shards)
    mean = course.pages / shards
    assert course.fetched.max() - mean < 4 * (course.biggest_domain * mean) ** 0.5


def test_hosts_and_domains_end_with_their_budgets() -> None:
    course = crawl(host_pages=20, domain_pages=30)
    reach, biggest = in_reach(course.web, course.shards, course.terms)
    assert course.biggest_domain == biggest == 30
    assert np.bincount(course.requests.hosts[course.requests.pages >= 0]).max() == 20
    assert (course.fetched <= reach).all()
    assert course.waiting.sum() > 0


def test_a_crawl_ends_soon_after_its_budget() -> None:
    course = crawl(pages=2_000, connections=5)
    # Pages may be fetched before they are reported, or be under way.
    late = course.requests.sent > course.milestones[-1].seconds
    assert not late.any()
    assert 2_000 <= course.pages < 2_000 + 3 * course.shards * course.terms.connections / course.terms.reply
    assert [each.pages for each in course.milestones] == sorted(each.pages for each in course.milestones)
