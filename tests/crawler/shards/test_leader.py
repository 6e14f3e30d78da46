"""The leader of shards: no replacement goes unnoticed, no budget is exceeded, and nothing ends too early."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.config import BudgetSettings
from thresher.crawler.shards.leader import LEASE_MARGIN, MAX_DEATHS, START_TIMEOUT_S, Leader
from thresher.crawler.shards.protocol import Heartbeat, HeartbeatReply, Peer
from thresher.crawler.stop_reasons import NO_HOST_REACHED, Ending, waiting
from thresher.errors import CrawlError

LEASE = 10.0
DONE = Ending("done")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def lead(count: int = 3, budget: BudgetSettings = BudgetSettings(), **before: object) -> tuple[Leader, Clock]:  # noqa: B008
    clock = Clock()
    return Leader([1] * count, budget, LEASE, clock, **before), clock  # type: ignore[arg-type]


def heartbeat(shard: int, epoch: int = 1, **fields: object) -> Heartbeat:
    return Heartbeat("", shard, epoch, **{"port": 7_000 + shard, "requests_pages": True, **fields})  # type: ignore[arg-type]


def start_all(leader: Leader) -> None:
    for shard in leader.to_start():
        leader.started(shard)
    for _ in range(2):  # in the second round they know each other's addresses
        for number, shard in enumerate(leader.shards):
            assert leader.receive(heartbeat(number, shard.epoch, version=leader.version), f"10.0.0.{number}")


def reply_to(leader: Leader, heartbeat: Heartbeat) -> HeartbeatReply:
    reply = leader.receive(heartbeat, f"10.0.0.{heartbeat.shard}")
    assert reply
    return reply


def test_all_shards_are_started_and_get_the_addresses_of_the_others() -> None:
    leader, _ = lead()
    assert leader.to_start() == [0, 1, 2]
    start_all(leader)
    assert leader.to_start() == []
    reply = reply_to(leader, heartbeat(0))
    assert reply.peers == [Peer(1, f"10.0.0.{shard}", 7_000 + shard) for shard in range(3)]
    assert reply_to(leader, heartbeat(0, version=reply.version)).peers is None, "they are known"


def test_a_shard_that_is_silent_for_longer_than_its_lease_is_to_be_replaced() -> None:
    leader, clock = lead()
    start_all(leader)
    clock.now += LEASE
    assert leader.silent() == []
    reply_to(leader, heartbeat(0))
    clock.now += (LEASE_MARGIN - 1) * LEASE + 0.1
    assert leader.silent() == [1, 2]


def test_a_process_that_never_sends_a_heartbeat_is_to_be_replaced() -> None:
    leader, clock = lead()
    leader.started(1)
    clock.now += START_TIMEOUT_S + 1
    assert leader.silent() == [1]


def test_a_shard_is_replaced_only_after_all_running_shards_have_confirmed_its_epoch() -> None:
    leader, _ = lead()
    start_all(leader)
    leader.vacate(1, epoch=2)
    assert leader.to_start() == []
    for shard in (0, 2):
        reply = reply_to(leader, heartbeat(shard))
        assert reply.peers and reply.peers[1] == Peer(2)
        assert leader.to_start() == []
        reply_to(leader, heartbeat(shard, version=reply.version))
    assert leader.to_start() == [1]


def test_a_superseded_shard_gets_no_reply() -> None:
    leader, _ = lead()
    start_all(leader)
    leader.vacate(1, epoch=2)
    assert leader.receive(heartbeat(1, epoch=1), "10.0.0.1") is None
    assert leader.receive(heartbeat(7), "10.0.0.1") is None


def test_a_shard_that_is_lost_repeatedly_without_a_commit_ends_the_crawl() -> None:
    leader, _ = lead(1)
    for epoch in range(2, MAX_DEATHS + 1):
        leader.vacate(0, epoch)
    with pytest.raises(CrawlError, match="shard 0"):
        leader.vacate(0, MAX_DEATHS + 1)


def test_a_shard_that_makes_progress_may_be_lost_any_number_of_times() -> None:
    leader, _ = lead(1)
    for epoch in range(2, 3 * MAX_DEATHS):
        for outcomes in (epoch, epoch + 1):
            reply_to(leader, heartbeat(0, leader.shards[0].epoch, outcomes=outcomes))
        leader.vacate(0, epoch)


def test_a_shard_that_makes_no_progress_ends_the_crawl_with_the_reason_of_its_last_loss() -> None:
    leader, _ = lead(1)

    def lost(epoch: int) -> None:
        for _ in range(3):  # it commits nothing new
            reply_to(leader, heartbeat(0, leader.shards[0].epoch, outcomes=70))
        leader.vacate(0, epoch, "its process died: SIGKILL")

    for epoch in range(2, MAX_DEATHS + 1):
        lost(epoch)
    with pytest.raises(CrawlError, match="without any progress; the last time, its process died: SIGKILL"):
        lost(MAX_DEATHS + 1)


def test_a_shard_that_is_opening_its_state_does_not_delay_the_start_of_another() -> None:
    leader, _ = lead()
    start_all(leader)
    leader.vacate(1, epoch=2)
    for shard in (0, 2):
        reply_to(leader, heartbeat(shard, version=leader.version))
    leader.started(1)
    reply_to(leader, heartbeat(1, epoch=2, port=0))
    leader.vacate(2, epoch=2)
    reply_to(leader, heartbeat(0, version=leader.version))
    assert leader.to_start() == [2]


def test_a_crawl_without_any_reply_ends_and_one_shard_without_replies_does_not_end_it() -> None:
    leader, clock = lead(2)
    start_all(leader)

    def rounds(**fields: object) -> None:
        for _ in range(3):
            for shard in range(2):
                clock.now += 1
                reply_to(
                    leader,
                    heartbeat(
                        shard, idle=NO_HOST_REACHED if shard else DONE, **(fields if not shard else {})
                    ),
                )

    rounds(online=True)
    assert leader.ending is None, "the shard may try again, since there is a network"
    assert reply_to(leader, heartbeat(1)).online
    leader, clock = lead(2)
    start_all(leader)
    rounds()
    assert leader.ending == NO_HOST_REACHED


def test_fetched_pages_count_while_a_shard_is_opened_or_closed() -> None:
    leader, _ = lead(2, BudgetSettings(max_pages=30), fetched=[10, 15])
    assert reply_to(leader, heartbeat(0, port=0)).grant == 0
    assert (
        sum(reply_to(leader, heartbeat(shard, fetched=pages)).grant for shard, pages in enumerate([10, 15]))
        == 5
    )
    reply_to(leader, heartbeat(1, port=0))
    assert reply_to(leader, heartbeat(0, fetched=15)).grant == 0
    assert leader.ending == Ending("page budget")


def test_shards_that_begin_first_leave_the_others_their_share_of_pages() -> None:
    leader, _ = lead(3, BudgetSettings(max_pages=90))

    def take_all(fetched: int) -> int:
        while grant := reply_to(leader, heartbeat(0, fetched=fetched)).grant:
            fetched += grant
        return fetched

    assert take_all(0) == 30
    for shard in (1, 2):
        reply_to(leader, heartbeat(shard, requests_pages=False))  # their states are open
    assert take_all(30) == 30
    for shard in (1, 2):
        reply_to(leader, heartbeat(shard, requests_pages=False, idle=Ending("done")))
    assert take_all(30) == 90


def test_granted_pages_that_a_shard_cannot_use_go_to_shards_that_can() -> None:
    leader, _ = lead(2, BudgetSettings(max_pages=20))
    held = reply_to(leader, heartbeat(0)).grant
    assert held == 10
    assert reply_to(leader, heartbeat(1)).grant == 10
    for _ in range(2):
        resting = reply_to(leader, heartbeat(0, granted=held, requests_pages=False))
        assert not resting.return_pages, "no other shard requests them"
    hungry = reply_to(leader, heartbeat(1, fetched=10))
    assert (hungry.grant, hungry.return_pages) == (0, False)
    assert reply_to(leader, heartbeat(0, granted=held, requests_pages=False)).return_pages
    reply_to(leader, heartbeat(0, granted=0, requests_pages=False))
    assert reply_to(leader, heartbeat(1, fetched=10)).grant == 10


def test_a_shard_that_moves_ends_and_the_others_continue() -> None:
    leader, _ = lead()
    assert not leader.is_stable, "not all are running"
    start_all(leader)
    assert leader.is_stable
    leader.move(1)
    assert reply_to(leader, heartbeat(1)).ending == Ending("interrupted")
    assert reply_to(leader, heartbeat(0)).ending is None
    leader.vacate(1, epoch=2)
    assert reply_to(leader, heartbeat(1, epoch=2)).ending is None, "the new process continues"
    assert leader.ending is None


def test_bytes_and_seconds_are_sums_over_runs_and_shards() -> None:
    leader, _ = lead(2, BudgetSettings(max_bytes=100))
    reply_to(leader, heartbeat(0, downloaded=60))
    assert leader.ending is None
    assert reply_to(leader, heartbeat(1, downloaded=40)).ending == Ending("byte budget")
    leader, clock = lead(2, BudgetSettings(max_time=60.0), seconds=50.0)
    leader.check_end()
    assert leader.ending is None
    clock.now += 10
    leader.check_end()
    assert leader.ending == Ending("time budget")


@given(
    st.integers(1, 300),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.booleans()), max_size=200),
)
def test_grants_never_exceed_the_budget_and_use_all_of_it_in_the_end(
    pages: int, moves: list[tuple[int, int, bool]]
) -> None:
    leader, _ = lead(3, BudgetSettings(max_pages=pages))
    fetched, limits = [0] * 3, [0] * 3

    def send(shard: int, *, idle: bool) -> None:
        if idle:
            limits[shard] = fetched[shard]
        fields = heartbeat(
            shard, fetched=fetched[shard], granted=limits[shard] - fetched[shard], requests_pages=not idle
        )
        limits[shard] += reply_to(leader, fields).grant
        assert sum(limits) <= pages

    for shard, wanted, idle in moves:
        fetched[shard] = min(fetched[shard] + wanted, limits[shard])
        send(shard, idle=idle)
    for _ in range(100):
        for shard in range(3):
            fetched[shard] = limits[shard]
            send(shard, idle=False)
    assert sum(fetched) == pages
    assert leader.ending == Ending("page budget")


def test_a_crawl_is_over_when_all_shards_were_idle_in_two_rounds() -> None:
    leader, clock = lead(2)
    start_all(leader)
    for _ in range(2):
        for shard in range(2):
            assert leader.ending is None
            clock.now += 1
            reply_to(leader, heartbeat(shard, idle=DONE))
    assert leader.ending == DONE


@pytest.mark.parametrize(
    "between", [{"outbox": 1, "idle": DONE}, {"idle": None}, {"received": 1, "idle": DONE}]
)
def test_a_crawl_is_not_over_while_a_batch_is_under_way_or_was_just_received(
    between: dict[str, object],
) -> None:
    leader, clock = lead(2)
    start_all(leader)
    for fields in ({"idle": DONE}, between):
        for shard in range(2):
            clock.now += 1
            reply_to(leader, heartbeat(shard, **fields))
    assert leader.ending is None


def test_a_crawl_is_not_over_while_a_shard_is_vacant() -> None:
    leader, clock = lead(2)
    start_all(leader)
    leader.vacate(1, epoch=2)
    for _ in range(3):
        clock.now += 1
        reply_to(leader, heartbeat(0, idle=DONE))
    assert leader.ending is None


def test_the_ending_combines_the_reasons_of_all_shards() -> None:
    leader, clock = lead(3)
    start_all(leader)
    reasons = [DONE, waiting(3, 600.0), waiting(4, 500.0)]
    for _ in range(2):
        for shard, reason in enumerate(reasons):
            clock.now += 1
            reply_to(leader, heartbeat(shard, idle=reason))
    assert leader.ending == waiting(7, 500.0)


@given(st.data())
def test_in_any_order_of_batches_a_crawl_is_over_only_when_no_work_is_left(data: st.DataObject) -> None:
    """A crawl of two shards that send batches to each other, and heartbeats, at any moment."""
    leader, clock = lead(2)
    start_all(leader)
    under_way: list[int] = []  # batches, by receiver
    work, received, outbox = [2, 0], [0, 0], [0, 0]
    for _ in range(data.draw(st.integers(5, 60))):
        clock.now += 1
        shard = data.draw(st.integers(0, 1))
        match data.draw(st.sampled_from(["work", "deliver", "heartbeat", "heartbeat"])):
            case "work" if work[shard]:
                work[shard] -= 1
                if data.draw(st.booleans()):
                    under_way.append(1 - shard)
                    outbox[shard] += 1
            case "deliver" if under_way:
                receiver = under_way.pop(0)
                work[receiver] += 1
                received[receiver] += 1
                outbox[1 - receiver] -= 1
            case "heartbeat":
                idle = None if work[shard] else DONE
                reply_to(leader, heartbeat(shard, idle=idle, received=received[shard], outbox=outbox[shard]))
        if leader.ending:
            assert not under_way and work == [0, 0]
            return


def test_the_list_of_shards_has_a_new_version_whenever_it_changes() -> None:
    leader, _ = lead(2)
    versions = [reply_to(leader, heartbeat(0)).version]
    versions.append(reply_to(leader, heartbeat(1)).version)
    leader.vacate(1, epoch=2)
    versions.append(reply_to(leader, heartbeat(0)).version)
    versions.append(reply_to(leader, heartbeat(1, epoch=2, port=9)).version)
    assert all(first < second for first, second in pairwise(versions))
