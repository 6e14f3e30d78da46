"""Whoever leads the shards: none is replaced unnoticed, no budget is overdrawn, and nothing ends too early."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.config import Budget
from thresher.crawl.ending import NOBODY_REACHED, CrawlFault, Ending, waiting
from thresher.crawl.shards.lead import CALLED_SECONDS, MARGIN, MAX_DEATHS, Lead
from thresher.crawl.shards.messages import Beat, Peer, Word

LEASE = 10.0
DONE = Ending("done")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def lead(count: int = 3, budget: Budget = Budget(), **before: object) -> tuple[Lead, Clock]:  # noqa: B008
    clock = Clock()
    return Lead([1] * count, budget, LEASE, clock, **before), clock  # type: ignore[arg-type]


def beat(shard: int, epoch: int = 1, **said: object) -> Beat:
    return Beat("", shard, epoch, **{"port": 7_000 + shard, "asks": True, **said})  # type: ignore[arg-type]


def everybody_comes(led: Lead) -> None:
    for shard in led.to_start():
        led.call(shard)
    for _ in range(2):  # the second time they know of each other
        for shard, seat in enumerate(led.seats):
            assert led.hear(beat(shard, seat.epoch, version=led.version), f"10.0.0.{shard}")


def told(led: Lead, said: Beat) -> Word:
    word = led.hear(said, f"10.0.0.{said.shard}")
    assert word
    return word


def test_all_are_started_and_told_where_the_others_are() -> None:
    led, _ = lead()
    assert led.to_start() == [0, 1, 2]
    everybody_comes(led)
    assert led.to_start() == []
    word = told(led, beat(0))
    assert word.peers == [Peer(1, f"10.0.0.{shard}", 7_000 + shard) for shard in range(3)]
    assert told(led, beat(0, version=word.version)).peers is None, "they know by now"


def test_one_that_is_silent_for_longer_than_its_lease_is_to_be_replaced() -> None:
    led, clock = lead()
    everybody_comes(led)
    clock.now += LEASE
    assert led.silent() == []
    told(led, beat(0))
    clock.now += (MARGIN - 1) * LEASE + 0.1
    assert led.silent() == [1, 2]


def test_one_that_is_called_and_never_comes_is_to_be_replaced() -> None:
    led, clock = lead()
    led.call(1)
    clock.now += CALLED_SECONDS + 1
    assert led.silent() == [1]


def test_one_is_replaced_only_when_all_who_are_there_know_not_to_heed_its_forerunner() -> None:
    led, _ = lead()
    everybody_comes(led)
    led.vacate(1, epoch=2)
    assert led.to_start() == []
    for shard in (0, 2):
        word = told(led, beat(shard))
        assert word.peers and word.peers[1] == Peer(2)
        assert led.to_start() == []
        told(led, beat(shard, version=word.version))
    assert led.to_start() == [1]


def test_one_whose_epoch_is_over_is_told_nothing() -> None:
    led, _ = lead()
    everybody_comes(led)
    led.vacate(1, epoch=2)
    assert led.hear(beat(1, epoch=1), "10.0.0.1") is None
    assert led.hear(beat(7), "10.0.0.1") is None


def test_one_that_is_lost_again_and_again_without_a_commit_ends_the_crawl() -> None:
    led, _ = lead(1)
    for epoch in range(2, MAX_DEATHS + 1):
        led.vacate(0, epoch)
    with pytest.raises(CrawlFault, match="shard 0"):
        led.vacate(0, MAX_DEATHS + 1)


def test_one_that_has_committed_something_may_be_lost_as_often_as_it_likes() -> None:
    led, _ = lead(1)
    for epoch in range(2, 3 * MAX_DEATHS):
        for outcomes in (epoch, epoch + 1):
            told(led, beat(0, led.seats[0].epoch, outcomes=outcomes))
        led.vacate(0, epoch)


def test_one_that_only_comes_again_and_gets_nothing_done_ends_the_crawl_and_why_is_told() -> None:
    led, _ = lead(1)

    def lost(epoch: int) -> None:
        for _ in range(3):  # it commits what it has, which is nothing new
            told(led, beat(0, led.seats[0].epoch, outcomes=70))
        led.vacate(0, epoch, "its process died: SIGKILL")

    for epoch in range(2, MAX_DEATHS + 1):
        lost(epoch)
    with pytest.raises(
        CrawlFault, match="without having done anything; the last time, its process died: SIGKILL"
    ):
        lost(MAX_DEATHS + 1)


def test_one_that_is_still_opening_its_books_does_not_keep_another_from_being_started() -> None:
    led, _ = lead()
    everybody_comes(led)
    led.vacate(1, epoch=2)
    for shard in (0, 2):
        told(led, beat(shard, version=led.version))
    led.call(1)
    told(led, beat(1, epoch=2, port=0))
    led.vacate(2, epoch=2)
    told(led, beat(0, version=led.version))
    assert led.to_start() == [2]


def test_what_nobody_reaches_ends_the_crawl_unless_others_reach_something() -> None:
    led, clock = lead(2)
    everybody_comes(led)

    def rounds(**said: object) -> None:
        for _ in range(3):
            for shard in range(2):
                clock.now += 1
                told(led, beat(shard, idle=NOBODY_REACHED if shard else DONE, **(said if not shard else {})))

    rounds(reached=True)
    assert led.ending is None, "the one may try again, for the network is there"
    assert told(led, beat(1)).reached
    led, clock = lead(2)
    everybody_comes(led)
    rounds()
    assert led.ending == NOBODY_REACHED


def test_what_was_fetched_counts_also_while_a_shard_is_opened_or_closed() -> None:
    led, _ = lead(2, Budget(pages=30), fetched=[10, 15])
    assert told(led, beat(0, port=0)).grant == 0
    assert sum(told(led, beat(shard, fetched=pages)).grant for shard, pages in enumerate([10, 15])) == 5
    told(led, beat(1, port=0))
    assert told(led, beat(0, fetched=15)).grant == 0
    assert led.ending == Ending("page budget")


def test_those_who_come_first_leave_the_others_their_part_of_the_pages() -> None:
    led, _ = lead(3, Budget(pages=90))

    def takes_all_it_gets(fetched: int) -> int:
        while grant := told(led, beat(0, fetched=fetched)).grant:
            fetched += grant
        return fetched

    assert takes_all_it_gets(0) == 30
    for shard in (1, 2):
        told(led, beat(shard, asks=False))  # its books are open, no more
    assert takes_all_it_gets(30) == 30
    for shard in (1, 2):
        told(led, beat(shard, asks=False, idle=Ending("done")))
    assert takes_all_it_gets(30) == 90


def test_pages_that_one_holds_and_cannot_use_go_to_those_who_can() -> None:
    led, _ = lead(2, Budget(pages=20))
    held = told(led, beat(0)).grant
    assert held == 10
    assert told(led, beat(1)).grant == 10
    for _ in range(2):
        resting = told(led, beat(0, holds=held, asks=False))
        assert not resting.returns, "nobody else wants them"
    hungry = told(led, beat(1, fetched=10))
    assert (hungry.grant, hungry.returns) == (0, False)
    assert told(led, beat(0, holds=held, asks=False)).returns
    told(led, beat(0, holds=0, asks=False))
    assert told(led, beat(1, fetched=10)).grant == 10


def test_one_that_is_to_move_is_told_to_end_and_the_others_are_not() -> None:
    led, _ = lead()
    assert not led.is_well, "not all are there"
    everybody_comes(led)
    assert led.is_well
    led.move(1)
    assert told(led, beat(1)).ending == Ending("interrupted")
    assert told(led, beat(0)).ending is None
    led.vacate(1, epoch=2)
    assert told(led, beat(1, epoch=2)).ending is None, "it has arrived"
    assert led.ending is None


def test_bytes_and_seconds_are_those_of_all_runs_and_shards() -> None:
    led, _ = lead(2, Budget(bytes=100))
    told(led, beat(0, downloaded=60))
    assert led.ending is None
    assert told(led, beat(1, downloaded=40)).ending == Ending("byte budget")
    led, clock = lead(2, Budget(seconds=60.0), seconds=50.0)
    led.look()
    assert led.ending is None
    clock.now += 10
    led.look()
    assert led.ending == Ending("time budget")


@given(
    st.integers(1, 300),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.booleans()), max_size=200),
)
def test_no_more_pages_are_granted_than_there_are_and_all_of_them_are_in_the_end(
    pages: int, moves: list[tuple[int, int, bool]]
) -> None:
    led, _ = lead(3, Budget(pages=pages))
    fetched, limits = [0] * 3, [0] * 3

    def speak(shard: int, *, idle: bool) -> None:
        if idle:
            limits[shard] = fetched[shard]
        said = beat(shard, fetched=fetched[shard], holds=limits[shard] - fetched[shard], asks=not idle)
        limits[shard] += told(led, said).grant
        assert sum(limits) <= pages

    for shard, wanted, idle in moves:
        fetched[shard] = min(fetched[shard] + wanted, limits[shard])
        speak(shard, idle=idle)
    for _ in range(100):
        for shard in range(3):
            fetched[shard] = limits[shard]
            speak(shard, idle=False)
    assert sum(fetched) == pages
    assert led.ending == Ending("page budget")


def test_it_is_over_when_all_have_said_twice_that_they_have_nothing_to_do() -> None:
    led, clock = lead(2)
    everybody_comes(led)
    for _ in range(2):
        for shard in range(2):
            assert led.ending is None
            clock.now += 1
            told(led, beat(shard, idle=DONE))
    assert led.ending == DONE


@pytest.mark.parametrize(
    "between", [{"outbox": 1, "idle": DONE}, {"idle": None}, {"received": 1, "idle": DONE}]
)
def test_it_is_not_over_while_a_letter_is_on_its_way_or_somebody_has_received_one(
    between: dict[str, object],
) -> None:
    led, clock = lead(2)
    everybody_comes(led)
    for said in ({"idle": DONE}, between):
        for shard in range(2):
            clock.now += 1
            told(led, beat(shard, **said))
    assert led.ending is None


def test_it_is_not_over_while_one_is_away() -> None:
    led, clock = lead(2)
    everybody_comes(led)
    led.vacate(1, epoch=2)
    for _ in range(3):
        clock.now += 1
        told(led, beat(0, idle=DONE))
    assert led.ending is None


def test_why_it_ends_is_told_of_all() -> None:
    led, clock = lead(3)
    everybody_comes(led)
    reasons = [DONE, waiting(3, 600.0), waiting(4, 500.0)]
    for _ in range(2):
        for shard, reason in enumerate(reasons):
            clock.now += 1
            told(led, beat(shard, idle=reason))
    assert led.ending == waiting(7, 500.0)


@given(st.data())
def test_whatever_order_letters_go_in_it_is_over_only_when_none_is_left(data: st.DataObject) -> None:
    """A crawl of two shards that send each other letters, and speak, at any moment."""
    led, clock = lead(2)
    everybody_comes(led)
    under_way: list[int] = []  # letters, by receiver
    work, received, outbox = [2, 0], [0, 0], [0, 0]
    for _ in range(data.draw(st.integers(5, 60))):
        clock.now += 1
        shard = data.draw(st.integers(0, 1))
        match data.draw(st.sampled_from(["work", "deliver", "speak", "speak"])):
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
            case "speak":
                idle = None if work[shard] else DONE
                told(led, beat(shard, idle=idle, received=received[shard], outbox=outbox[shard]))
        if led.ending:
            assert not under_way and work == [0, 0]
            return


def test_the_list_of_shards_has_a_new_version_whenever_it_changes() -> None:
    led, _ = lead(2)
    versions = [told(led, beat(0)).version]
    versions.append(told(led, beat(1)).version)
    led.vacate(1, epoch=2)
    versions.append(told(led, beat(0)).version)
    versions.append(told(led, beat(1, epoch=2, port=9)).version)
    assert all(first < second for first, second in pairwise(versions))
