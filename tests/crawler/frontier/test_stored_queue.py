"""The frontier on disk: records of hosts agree with their queues, after removals and after draining."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.crawler.frontier import backlog, stored_queue
from thresher.crawler.frontier.backlog import Backlog
from thresher.crawler.frontier.frontier import Frontier
from thresher.crawler.shards import outbox
from thresher.crawler.shards.outbox import Outbox
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate
from thresher.store.shard_layout import Shard
from thresher.urls import host as host_of

URLS = [f"http://{name}.cz/{path}" for name in "abc" for path in range(6)]


def queued(directory: Path, candidates: list[Candidate]) -> KeyValueState:
    """Return a state with a frontier of some candidates, committed."""
    state = KeyValueState(directory)
    frontier = Frontier(state, lambda: 0.0)
    frontier.add(candidates)
    frontier.flush()
    state.commit()
    return state


def handed_out(state: KeyValueState) -> list[Candidate]:
    """Return all candidates that a frontier on a state hands out."""
    frontier = Frontier(state, lambda: 0.0)
    taken = []
    while candidate := frontier.take():
        taken.append(candidate)
        frontier.finish(candidate)
        frontier.free(host_of(candidate.url), 0.0)
    return taken


def without(covered: frozenset[str]) -> Callable[[str], bool]:
    return lambda url: url in covered


@given(
    st.lists(
        st.tuples(st.sampled_from(URLS), st.integers(0, 3), st.integers(0, 5)), unique_by=lambda x: x[0]
    ),
    st.frozensets(st.sampled_from(URLS)),
)
def test_after_a_removal_a_frontier_hands_out_all_other_urls(
    tmp_path_factory: pytest.TempPathFactory,
    found: list[tuple[str, int, int]],
    covered: frozenset[str],
) -> None:
    candidates = [Candidate(url, depth=depth, lane=lane) for url, lane, depth in found]
    state = queued(tmp_path_factory.mktemp("state"), candidates)
    stored_queue.remove(state, without(covered), lambda _: False)
    left = {candidate.url for candidate in candidates} - covered
    assert {candidate.url for candidate in stored_queue.candidates(state)} == left
    for name, stored in stored_queue.read_hosts(state):
        waiting = list(stored_queue.candidates_of_host(state, stored))
        assert stored.queued == len(waiting)
        assert set(stored.lane_numbers()) >= {candidate.lane for candidate in waiting}
        assert {host_of(candidate.url) for candidate in waiting} <= {name}
    assert {candidate.url for candidate in handed_out(state)} == left
    state.close()


def test_covered_sources_and_hosts_leave_the_frontier(tmp_path: Path) -> None:
    covered = frozenset({"http://a.cz/1"})
    state = queued(tmp_path, [Candidate("http://a.cz/1"), Candidate("http://b.cz/1", "http://a.cz/1")])
    stored_queue.remove(state, without(covered), lambda name: name == "a.cz")
    assert [name for name, _ in stored_queue.read_hosts(state)] == ["b.cz"]
    assert [candidate.source for candidate in stored_queue.candidates(state)] == [""]
    state.close()


def test_draining_empties_the_queues_and_keeps_the_numbers_of_hosts(tmp_path: Path) -> None:
    state = queued(tmp_path, [Candidate(url) for url in URLS])
    numbers = {name: stored.number for name, stored in stored_queue.read_hosts(state)}
    drained = []
    for portion in stored_queue.drain(state):
        drained += [candidate.url for candidate in portion]
        state.commit()
    assert sorted(drained) == URLS
    assert {name: stored.number for name, stored in stored_queue.read_hosts(state)} == numbers
    assert handed_out(state) == []
    state.close()


def test_covered_urls_leave_the_backlog_and_its_counts(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    waiting = Backlog(state)
    waiting.add([Candidate(url) for url in URLS])
    waiting.flush()
    state.commit()
    backlog.remove(state, without(frozenset(URLS[:4])))
    assert [candidate.url for candidate in backlog.candidates(state)] == URLS[4:]
    assert len(Backlog(state)) == len(URLS) - 4
    state.close()


def test_covered_links_leave_the_outbox_and_its_batches_keep_their_numbers(tmp_path: Path) -> None:
    state = KeyValueState(tmp_path)
    links = Outbox(state, Shard(0, 2))
    own = {link.url for link in links.route([Candidate(url) for url in URLS])}
    abroad = [url for url in URLS if url not in own]
    assert abroad
    links.flush()
    state.commit()
    outbox.remove(state, without(frozenset(abroad)))
    assert list(outbox.waiting_candidates(state)) == []
    again = Outbox(state, Shard(0, 2))
    again.durable(again.committed())
    assert [number for number, _ in again.to_send(1, 0)] == [1]
    state.close()
