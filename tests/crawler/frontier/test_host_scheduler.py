"""Turns of hosts: none before its time, none twice, better ones sooner, and each at some time."""

from __future__ import annotations

from collections import Counter
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.crawler.frontier.host_scheduler import (
    RANKS,
    HostScheduler,
    PatientScheduler,
    RankedScheduler,
    RoundRobinScheduler,
)


def weight(rank: int) -> float:
    """Return the weight for a rank; two weights have half of it."""
    return 2.0 ** (-rank / 2)


def test_the_host_that_waits_longest_is_next() -> None:
    turns = RoundRobinScheduler()
    for host, time in (("late", 3.0), ("early", 1.0), ("early too", 1.0)):
        turns.put(host, time)
    assert turns.next_time() == 1.0
    assert [turns.take(2.0), turns.take(2.0), turns.take(2.0)] == ["early", "early too", None]
    assert turns.next_time() == 3.0


def test_ready_hosts_are_drawn_with_a_chance_that_falls_with_their_rank() -> None:
    turns = RankedScheduler(Random(1))
    ranks = {"first": 0, "second": 1, "fourth": 3, "tenth": 9}
    drawn: Counter[str] = Counter()
    for host, rank in ranks.items():
        turns.put(host, 0.0, weight(rank))
    for _ in range(20_000):
        host = turns.take(0.0)
        assert host
        drawn[host] += 1
        turns.put(host, 0.0, weight(ranks[host]))
    chances = {host: 1 / (rank + 1) for host, rank in ranks.items()}
    for host, chance in chances.items():
        assert drawn[host] / drawn.total() == pytest.approx(chance / sum(chances.values()), rel=0.06)


def test_hosts_of_one_rank_take_turns() -> None:
    turns = RankedScheduler(Random(1))
    for host in "abc":
        turns.put(host, 0.0, weight(5))
    order = []
    for _ in range(6):
        host = turns.take(0.0)
        assert host
        order.append(host)
        turns.put(host, 0.0, weight(5))
    assert order == ["a", "b", "c", "a", "b", "c"]


def test_at_no_temperature_the_best_is_next_and_without_bound_all_are_alike() -> None:
    cold, hot = RankedScheduler(Random(1), 0), RankedScheduler(Random(1), inf)
    for turns in (cold, hot):
        for rank in range(RANKS):
            turns.put(f"{rank}", 0.0, weight(rank))
    assert [cold.take(0.0) for _ in range(RANKS)] == [f"{rank}" for rank in range(RANKS)]
    assert sum(int(hot.take(0.0) or 0) for _ in range(8)) > 40  # the best eight have 28


def test_lines_do_not_grow_with_changes_of_mind() -> None:
    turns = RankedScheduler(Random(1))
    turns.put("a", 0.0, weight(1))
    turns.put("b", 0.0, weight(1))
    assert turns.take(0.0)
    for number in range(10_000):
        for host in "ab":
            turns.rerank(host, weight(number % 2 + 5))
    assert sum(map(len, turns._ready)) < 500


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "rerank", "remove", "take"]),
            st.sampled_from("abcd"),
            st.integers(0, 5),
            st.integers(0, RANKS - 1),
        ),
        max_size=60,
    ),
    st.sampled_from([None, 0.0, 1.0, inf, "best"]),
)
def test_every_host_in_the_line_comes_once_and_not_before_its_time(
    steps: list[tuple[str, str, int, int]], kind: float | str | None
) -> None:
    turns: HostScheduler = RoundRobinScheduler() if kind is None else PatientScheduler(0.0)
    if isinstance(kind, float):
        turns = RankedScheduler(Random(1), kind)
    waiting: dict[str, int] = {}
    for now, (step, host, wait, rank) in enumerate(steps):
        if step == "put":
            turns.put(host, now + wait, weight(rank))
            waiting[host] = now + wait
        elif step == "rerank":
            turns.rerank(host, weight(rank))
        elif step == "remove":
            turns.remove(host)
            waiting.pop(host, None)
        else:
            ready = {name for name, time in waiting.items() if time <= now}
            taken = turns.take(now)
            assert (taken in ready) if ready else taken is None
            if taken:
                del waiting[taken]
        assert {name for name in "abcd" if name in turns} == set(waiting)
    assert {turns.take(1_000) for _ in range(len(waiting))} == set(waiting)
    assert turns.take(1_000) is None
    assert turns.next_time() is None


def used_to(turns: PatientScheduler, weight: float) -> None:
    """Let many hosts of that weight have their turns, and leave."""
    for number in range(4 * PatientScheduler.MEMORY):
        turns.put(f"{number}", 0.0, weight)
        assert turns.take(0.0)
        turns.remove(f"{number}")


def test_the_best_host_is_next_after_any_changes() -> None:
    turns = PatientScheduler(0.0)
    for host, promise in (("a", 0.1), ("b", 0.5), ("c", 0.3)):
        turns.put(host, 0.0, promise)
    assert turns.take(0.0) == "b"
    turns.rerank("a", 0.9)
    turns.rerank("c", 0.05)
    assert [turns.take(0.0), turns.take(0.0), turns.take(0.0)] == ["a", "c", None]


def test_poor_hosts_wait_for_a_good_one_that_returns_soon() -> None:
    turns = PatientScheduler(1.0)
    used_to(turns, 0.5)
    turns.put("good", 5.0, 0.5)
    turns.put("poor", 0.0, 0.1)
    assert turns.take(1.0) is None
    assert turns.waiting_for == 0.5
    assert turns.next_time() == 5.0
    assert turns.take(5.0) == "good"
    assert turns.take(5.0) is None, "it is being visited, and will be back"
    assert turns.next_time() is None
    turns.remove("good")
    assert turns.next_time() == -inf, "it has nothing more"
    assert turns.take(5.0) == "poor"
    assert turns.waiting_for == 0


def test_no_host_waits_for_one_that_rests_for_long_or_does_not_return() -> None:
    turns = PatientScheduler(1.0)
    used_to(turns, 0.5)
    turns.put("good", 10 * PatientScheduler.RETURN_WINDOW_S, 0.5)
    turns.put("poor", 0.0, 0.1)
    assert turns.take(0.0) == "poor"
    turns.put("visited", 0.0, 0.5)
    assert turns.take(0.0) == "visited"
    turns.put("poor", 0.0, 0.1)
    assert turns.take(0.0) is None
    assert turns.take(2 * PatientScheduler.RETURN_WINDOW_S) == "poor"


def test_without_patience_nothing_waits_and_the_fewer_good_hosts_there_are_the_less_is_waited_for() -> None:
    for patience, poor, waits in ((0.0, 0.01, False), (0.8, 0.35, True), (0.8, 0.45, False)):
        turns = PatientScheduler(patience)
        used_to(turns, 0.5)
        turns.put("good", 5.0, 0.5)
        turns.put("poor", 0.0, poor)
        assert (turns.take(0.0) is None) == waits
    alone = PatientScheduler(0.8)
    for _ in range(4 * PatientScheduler.MEMORY):
        alone.put("only", 0.0, 0.5)
        assert alone.take(0.0)
    alone.put("only", 5.0, 0.5)
    alone.put("poor", 0.0, 0.35)
    assert alone.take(0.0) == "poor"


def test_out_of_curiosity_another_host_may_be_next_than_the_best() -> None:
    turns = PatientScheduler(1.0)
    turns.put("best", 0.0, 0.9)
    turns.put("new", 0.0, 0.1, 0.4)
    turns.put("newest", 0.0, 0.1, 0.6)
    assert turns.take(0.0, curious=True) == "newest"
    turns.rerank("new", 0.1, 0.0)
    assert turns.take(0.0, curious=True) == "best", "where nothing is new"


def test_a_host_that_stays_away_far_longer_than_usual_holds_up_no_others() -> None:
    """The others return at once; the best asked for a rest of a second."""
    turns = PatientScheduler(0.8)
    now = 0.0
    for _ in range(40):
        turns.put("good", now, 0.5)
        assert turns.take(now) == "good"
        now += 0.01
    turns.put("slow", now + 1.0, 0.9)
    turns.put("poor", now, 0.1)
    since = now
    while turns.take(now) is None:
        now += 0.01
    assert now - since < 0.2


def test_hosts_that_are_all_away_for_the_delay_are_waited_for() -> None:
    turns = PatientScheduler(0.8)
    now = 0.0
    for number in range(40):
        turns.put(f"good{number % 8}", now, 0.5)
        now += 5.0
        assert turns.take(now) is not None
        turns.put(f"good{number % 8}", now, 0.5)
    turns.put("poor", now, 0.1)
    for number in range(8):
        turns.put(f"good{number}", now + 4.0, 0.5)
    assert turns.take(now) is None and turns.waiting_for == 0.5
    assert turns.take(now + 4.0) == "good0"


def test_the_hosts_that_rest_are_counted() -> None:
    for turns in (PatientScheduler(0.8), RoundRobinScheduler()):
        for number in range(5):
            turns.put(f"host{number}", 10.0 + number, 0.5)
        turns.put("ready", 0.0, 0.5)
        turns.take(0.0)
        hosts, sample = turns.resting(3)
        assert hosts == 5 and "host0" in sample and len(sample) <= 3
