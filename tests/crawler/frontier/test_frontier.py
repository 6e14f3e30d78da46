"""The frontier: breadth first in a host, fair turns across hosts, nothing lost in a crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from thresher.config import PolicyName, PolicySettings
from thresher.crawler.frontier import frontier as frontier_module
from thresher.crawler.frontier.frontier import Frontier
from thresher.crawler.frontier.host_scheduler import PatientScheduler, RankedScheduler, make_scheduler
from thresher.crawler.policy.policy import Front, LaneStanding, PlainPolicy, by_weight, make_policy
from thresher.crawler.policy.prioritisers import Priorities
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate
from thresher.urls import host as host_of


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def candidate(host: str, path: int, depth: int = 0) -> Candidate:
    return Candidate(f"http://{host}/{path}", depth=depth)


@pytest.fixture
def state(tmp_path: Path) -> KeyValueState:
    return KeyValueState(tmp_path)


def drain(frontier: Frontier) -> list[str]:
    """Return all URLs in the order in which they are handed out; hosts are free at once."""
    urls = []
    while taken := frontier.take():
        urls.append(taken.url)
        frontier.finish(taken)
        frontier.free(host_of(taken.url), 0.0)
    return urls


def test_a_host_hands_out_its_shallowest_urls_first(state: KeyValueState) -> None:
    frontier = Frontier(state, Clock())
    frontier.add(
        [candidate("a.cz", 1, depth=2), candidate("a.cz", 2, depth=1), candidate("a.cz", 3, depth=1)]
    )
    assert drain(frontier) == ["http://a.cz/2", "http://a.cz/3", "http://a.cz/1"]


def test_hosts_take_turns_however_many_urls_they_have(state: KeyValueState) -> None:
    frontier = Frontier(state, Clock())
    frontier.add([candidate("big.cz", path) for path in range(100)] + [candidate("small.cz", 1)])
    assert "http://small.cz/1" in drain(frontier)[:2]


def test_a_host_is_never_visited_twice_at_once_nor_within_its_delay(state: KeyValueState) -> None:
    clock = Clock()
    frontier = Frontier(state, clock)
    frontier.add([candidate("a.cz", 1), candidate("a.cz", 2)])
    first = frontier.take()
    assert first
    assert frontier.take() is None
    frontier.free("a.cz", clock.now + 5)
    frontier.finish(first)
    assert frontier.take() is None
    assert frontier.next_turn() == clock.now + 5
    clock.now += 5
    assert frontier.take()


def test_a_host_that_ran_empty_still_rests_when_it_gets_a_new_url(state: KeyValueState) -> None:
    clock = Clock()
    frontier = Frontier(state, clock)
    frontier.add([candidate("a.cz", 1)])
    taken = frontier.take()
    assert taken
    frontier.finish(taken)
    frontier.free("a.cz", clock.now + 5)
    frontier.add([candidate("a.cz", 2)])
    assert frontier.take() is None
    clock.now += 5
    assert frontier.take() == candidate("a.cz", 2)


def test_a_url_put_back_is_next_and_one_queued_again_is_last(state: KeyValueState) -> None:
    frontier = Frontier(state, Clock())
    frontier.add([candidate("a.cz", path) for path in range(3)])
    taken = frontier.take()
    assert taken
    frontier.put_back(taken)
    frontier.free("a.cz", 0.0)
    assert frontier.take() == taken
    frontier.requeue(taken, replace(taken, tries=1))
    frontier.free("a.cz", 0.0)
    assert drain(frontier) == ["http://a.cz/1", "http://a.cz/2", "http://a.cz/0"]


def test_a_closed_host_hands_out_nothing_and_counts_as_empty(state: KeyValueState) -> None:
    frontier = Frontier(state, Clock())
    frontier.add([candidate("a.cz", 1), candidate("a.cz", 2), candidate("b.cz", 1)])
    frontier.close("a.cz", "low yield")
    frontier.add([candidate("a.cz", 3)])
    assert len(frontier) == 1
    assert frontier.closed_hosts == 1
    assert drain(frontier) == ["http://b.cz/1"]
    assert frontier.next_turn() is None


def test_when_a_crawl_continues_every_host_rests_first(state: KeyValueState) -> None:
    clock = Clock()
    before = Frontier(state, clock)
    before.add([candidate("a.cz", 1)])
    before.flush()
    state.commit()
    frontier = Frontier(state, clock, first_turn=lambda host: 7.0)
    frontier.add([candidate("new.cz", 1)])  # it may have been visited just before a crash, unrecorded
    assert frontier.take() is None
    assert frontier.next_turn() == clock.now + 7


def test_memory_holds_only_the_head_of_a_long_queue(state: KeyValueState) -> None:
    frontier = Frontier(state, Clock())
    frontier.add([candidate("a.cz", path) for path in range(5000)])
    frontier.flush()
    state.commit()
    frontier.committed()
    (lane,) = frontier._hosts["a.cz"].lanes.values()
    assert len(lane.head) + len(lane.tail) <= frontier_module.MAX_HEAD
    assert len(drain(frontier)) == 5000


def test_the_more_hosts_there_are_the_less_of_each_is_in_memory(
    state: KeyValueState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontier_module, "MAX_IN_MEMORY", 1_000)
    frontier = Frontier(state, Clock())
    for hosts in (range(20), range(20, 200)):  # early hosts have to give way, too
        frontier.add([candidate(f"h{host}.cz", path) for host in hosts for path in range(50)])
        frontier.flush()
        state.commit()
        frontier.committed()
    lanes = [lane for host in frontier._hosts.values() for lane in host.lanes.values()]
    assert sum(len(lane.head) + len(lane.tail) for lane in lanes) <= 2_000
    assert len(drain(frontier)) == 200 * 50


def best_first(state: KeyValueState, promises: dict[str, float], host_power: float = 1.0) -> Frontier:
    priorities = Priorities(PolicySettings(name="host-yield", priorities={"host-yield": host_power}))
    policy = PlainPolicy(priorities, by_weight, lambda host: promises[host])
    return Frontier(state, Clock(), policy, RankedScheduler(Random(1), temperature=0))


def test_hosts_are_equal_without_host_power_and_weights_still_show_the_yield(
    state: KeyValueState,
) -> None:
    frontier = best_first(state, {"poor.cz": 0.1, "good.cz": 0.4}, host_power=0.0)
    frontier.add([Candidate("http://poor.cz/1"), Candidate("http://good.cz/1")])
    first, second = frontier.take(), frontier.take()
    assert first and second
    assert (first.url, first.weight, second.weight) == ("http://poor.cz/1", 0.1, 0.4)


def test_the_best_url_of_the_best_host_is_next_where_that_is_the_policy(state: KeyValueState) -> None:
    promises = {"good.cz": 0.4, "poor.cz": 0.1}
    frontier = best_first(state, promises)
    frontier.add(
        [
            Candidate("http://poor.cz/usual"),
            Candidate("http://poor.cz/best", weight=8.0),
            Candidate("http://good.cz/usual"),
            Candidate("http://good.cz/worst", weight=0.01),
        ]
    )
    first = frontier.take()
    assert first
    assert (first.url, first.weight) == ("http://poor.cz/best", pytest.approx(0.8))
    frontier.finish(first)
    frontier.free("poor.cz", 0.0)
    assert drain(frontier) == ["http://good.cz/usual", "http://poor.cz/usual", "http://good.cz/worst"]


class Weighing(PlainPolicy):
    """A policy that records the lanes it weighs."""

    SWEEP = 8

    def __init__(self) -> None:
        super().__init__(Priorities(PolicySettings(name="bfs")), by_weight)
        self.weighed: list[Front] = []

    def standings(self, fronts: Sequence[tuple[str, Front]]) -> list[LaneStanding]:
        self.weighed += [front for _, front in fronts]
        return super().standings(fronts)


def test_the_lanes_of_a_large_host_are_weighed_some_at_a_time_and_all_in_turn(state: KeyValueState) -> None:
    policy = Weighing()
    frontier = Frontier(state, Clock(), policy)
    lanes = 40
    frontier.add(
        [Candidate(f"http://a.cz/{lane}", lane=lane, weight=1.0 / (lane + 1)) for lane in range(lanes)]
    )
    assert len(policy.weighed) == lanes, "new lanes are weighed at once"
    policy.weighed.clear()
    frontier.reweigh("a.cz")
    assert 1.0 in policy.weighed, "the best lane is always among them"
    assert len(policy.weighed) < lanes / 2
    for _ in range(lanes):
        frontier.reweigh("a.cz")
    assert set(policy.weighed) == {1.0 / (lane + 1) for lane in range(lanes)}


def test_other_hosts_are_weighed_again_in_turn_whenever_one_is(state: KeyValueState) -> None:
    policy = Weighing()
    frontier = Frontier(state, Clock(), policy)
    frontier.add([Candidate(f"http://{host}.cz/", weight=1.0 / (host + 1)) for host in range(40)])
    policy.weighed.clear()
    for _ in range(5):
        frontier.reweigh("0.cz")
    assert set(policy.weighed) == {1.0 / (host + 1) for host in range(40)}


def test_a_host_moves_when_its_record_changes(state: KeyValueState) -> None:
    promises = {"a.cz": 0.4, "b.cz": 0.1}
    frontier = best_first(state, promises)
    frontier.add([Candidate(f"http://{host}/{path}") for host in promises for path in range(3)])
    first = frontier.take()
    assert first
    assert first.url == "http://a.cz/0"
    promises["a.cz"] = 0.01
    frontier.reweigh("a.cz")
    frontier.finish(first)
    frontier.free("a.cz", 0.0)
    assert [host_of(url) for url in drain(frontier)] == ["b.cz"] * 3 + ["a.cz"] * 2


def test_a_retried_url_keeps_its_weight_in_its_host(state: KeyValueState) -> None:
    frontier = best_first(state, {"a.cz": 0.25})
    frontier.add([Candidate("http://a.cz/1", weight=2.0)])
    taken = frontier.take()
    assert taken
    frontier.requeue(taken, replace(taken, tries=1))
    frontier.free("a.cz", 0.0)
    again = frontier.take()
    assert again
    assert (again.tries, again.weight) == (1, taken.weight) == (1, 0.5)


def test_a_refused_host_is_handed_out_when_the_better_one_gave_nothing(
    state: KeyValueState,
) -> None:
    promises = {"good.cz": 0.8, "poor.cz": 0.01}
    policy = PlainPolicy(
        Priorities(PolicySettings(name="host-yield", priorities={"host-yield": 1.0})),
        by_weight,
        promises.__getitem__,
    )
    frontier = Frontier(state, Clock(), policy, PatientScheduler(patience=1.0))
    frontier.add([candidate("good.cz", 1), candidate("good.cz", 2), candidate("poor.cz", 1)])
    for path in (1, 2):
        taken = frontier.take()
        assert taken and taken.url == f"http://good.cz/{path}"
        assert frontier.take() is None
        frontier.finish(taken)
        frontier.free("good.cz", 0.0)
    assert len(frontier) == 1
    refused = frontier.take()
    assert refused and refused.url == "http://poor.cz/1"


class FrontierMachine(RuleBasedStateMachine):
    """The frontier against a model of queued and taken URLs, through crashes."""

    @initialize(head=st.integers(1, 5), name=st.sampled_from(["bfs", "random", "host-yield", "learned"]))
    def start(self, head: int, name: PolicyName) -> None:
        import tempfile

        self.directory = tempfile.TemporaryDirectory()
        self.state = KeyValueState(Path(self.directory.name))
        self.head, frontier_module.MAX_HEAD = frontier_module.MAX_HEAD, head
        self.clock = Clock()
        self.settings = PolicySettings(name=name, patience=0.0)
        self.promises: dict[str, float] = {}
        self.frontier = self.opened()
        self.queued: Counter[str] = Counter()
        self.durable: Counter[str] = Counter()
        self.taken: list[Candidate] = []
        self.visiting: set[str] = set()
        self.paths = 0

    def opened(self) -> Frontier:
        yields = YieldStats(self.state)
        yields.promise = lambda host: self.promises.get(host, 0.1)  # type: ignore[method-assign]
        random = Random(1)
        self.policy = make_policy(self.settings, "cs", self.state, yields, random)
        turns = make_scheduler(self.settings, random)
        return Frontier(self.state, self.clock, self.policy, turns)

    def teardown(self) -> None:
        frontier_module.MAX_HEAD = self.head
        self.state.close()
        self.directory.cleanup()

    @rule(
        host=st.sampled_from(["a.cz", "b.cz", "c.cz"]),
        depths=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    )
    def add(self, host: str, depths: list[int]) -> None:
        new = []
        for depth in depths:
            self.paths += 1
            new.append(candidate(host, self.paths, depth))
        self.frontier.add(self.policy.weigh_urls(new))
        self.queued.update(link.url for link in new)

    @rule()
    def take(self) -> None:
        taken = self.frontier.take()
        waiting = {host_of(url) for url in self.queued} - self.visiting
        waiting = {
            host
            for host in waiting
            if any(host_of(url) == host and url not in {t.url for t in self.taken} for url in self.queued)
        }
        assert (taken is not None) == bool(waiting)
        if taken:
            assert host_of(taken.url) not in self.visiting
            assert self.queued[taken.url] == 1
            assert taken.url not in {t.url for t in self.taken}
            self.taken.append(taken)
            self.visiting.add(host_of(taken.url))

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), ending=st.sampled_from(["finish", "put back", "requeue", "free only"]))
    def end_visit(self, data: st.DataObject, ending: str) -> None:
        taken = data.draw(st.sampled_from(self.taken))
        host = host_of(taken.url)
        if ending == "finish":
            self.frontier.finish(taken)
            del self.queued[taken.url]
        elif ending == "put back":
            self.frontier.put_back(taken)
        elif ending == "requeue":
            self.frontier.requeue(taken, replace(taken, tries=taken.tries + 1))
        if ending != "free only":
            self.taken.remove(taken)
        if host in self.visiting:
            self.frontier.free(host, 0.0)
            self.visiting.discard(host)

    @rule(host=st.sampled_from(["a.cz", "b.cz", "c.cz"]), promise=st.floats(0, 3))
    def reweigh(self, host: str, promise: float) -> None:
        self.promises[host] = promise
        if host in self.frontier.names():
            self.frontier.reweigh(host)

    @rule()
    def commit(self) -> None:
        self.policy.flush()
        self.frontier.flush()
        self.state.commit()
        self.frontier.committed()
        self.durable = self.queued.copy()

    @rule()
    def crash(self) -> None:
        self.state.close()
        self.state = KeyValueState(Path(self.directory.name))
        self.frontier = self.opened()
        self.queued = self.durable.copy()
        self.taken, self.visiting = [], set()

    @invariant()
    def counts_agree(self) -> None:
        if hasattr(self, "frontier"):
            assert len(self.frontier) == sum(self.queued.values())


TestFrontierMachine = pytest.mark.slow(FrontierMachine.TestCase)
TestFrontierMachine.settings = settings(max_examples=60, stateful_step_count=40)
