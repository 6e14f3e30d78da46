"""Shards among each other: addresses that hosts of several share, texts that several find, leases that run out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from thresher.config import Budget, Config, parse
from thresher.crawl.ending import Ending
from thresher.crawl.ledger import Ledger
from thresher.crawl.politeness import Politeness
from thresher.crawl.shards.coordinator import Coordinator
from thresher.crawl.shards.epochs import take_over
from thresher.crawl.shards.lease import Superseded
from thresher.crawl.shards.member import Member
from thresher.engine.calls import Call, Ended
from thresher.page import Candidate
from thresher.store.shards import Shard, home

COUNT = 3
CONFIG = parse({"language": "cs", "shards": {"count": COUNT, "lease": 2.0}, "polite": {"ip_delay": 0.5}})


class Asked:
    """An engine that only notes what it should have started."""

    address = "127.0.0.1"

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def run(self, calls: Sequence[Call]) -> None:
        raise NotImplementedError

    def start(self, call: Call) -> Asked:
        self.calls.append(call)
        return self

    def poll(self) -> Ended | None:
        return None

    def is_crowded(self) -> bool:
        return False

    def kill(self) -> None:
        pass

    def close(self) -> None:
        pass


class Moment:
    now = 5_000.0

    def __call__(self) -> float:
        return self.now


class Shards:
    """All shards of a crawl in one process, each with a coordinator to speak to and nothing to crawl."""

    def __init__(self, directory: Path, config: Config) -> None:
        self.directory = directory
        self.config = config
        self.engine = Asked()
        self.clock = Moment()
        self.members: list[Member] = []
        self.ledgers: list[Ledger] = []
        self.received: list[list[str]] = []
        self.faults: list[BaseException] = []

    async def __aenter__(self) -> Shards:
        self.coordinator = Coordinator(self.directory, self.config, self.engine)  # type: ignore[arg-type]
        self.leading = asyncio.create_task(self.coordinator.run())
        await until(lambda: len(self.engine.calls) == COUNT)
        for call in self.engine.calls:
            await self.open(call)
        await until(lambda: all(self.knows_all(member) for member in self.members))
        return self

    async def open(self, call: Call) -> None:
        given = call.arguments
        member = Member(
            self.config,
            Shard(given["number"], COUNT),
            given["epoch"],
            given["token"],
            (given["address"], given["port"]),
        )
        folder = take_over(home(self.directory, given["number"]), given["epoch"])
        ledger = Ledger(folder, self.config, self.clock, member.shard)
        polite = Politeness(ledger.state, self.config.polite, self.clock)
        self.received.append(received := [])
        member.join(
            *(ledger, polite, lambda found: received.extend(one.url for one in found), lambda: None),
            self.faults.append,
        )
        member.lease.start()
        await member.open()
        self.members.append(member)
        self.ledgers.append(ledger)

    def knows_all(self, member: Member) -> bool:
        return all(peer.port for peer in member._exchange.peers)

    def commit(self, number: int) -> None:
        self.members[number].flush()
        self.ledgers[number].commit({})
        self.members[number].committed({})

    async def __aexit__(self, *_: object) -> None:
        self.leading.cancel()
        await asyncio.gather(self.leading, return_exceptions=True)
        for member, ledger in zip(self.members, self.ledgers, strict=True):
            await member.close()
            member.lease.close()
            ledger.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - of several parties, with no event in common
            await asyncio.sleep(0.01)


def talk(directory: Path, conversation: Callable[[Shards], Awaitable[None]], config: Config = CONFIG) -> None:
    async def held() -> None:
        async with Shards(directory, config) as shards:
            await conversation(shards)

    asyncio.run(held())


def test_an_address_is_visited_by_one_of_all_shards_at_a_time(tmp_path: Path) -> None:
    async def conversation(shards: Shards) -> None:
        for address in ("192.0.2.1", "192.0.2.2", "2001:db8::7"):
            waits = await asyncio.gather(*(one.address_wait(address) for one in shards.members * 2))
            assert waits.count(0.0) == 1
            assert all(later - sooner >= 0.5 for sooner, later in pairwise(sorted(waits)))
        shards.clock.now += 60.0
        assert await shards.members[1].address_wait("192.0.2.1") == 0.0
        assert await shards.members[2].address_wait("192.0.2.1") >= 0.5

    talk(tmp_path, conversation)


def test_of_equal_texts_in_different_shards_one_is_the_first(tmp_path: Path) -> None:
    async def conversation(shards: Shards) -> None:
        for number in range(6):
            text = bytes([number]) * 16
            urls = [f"http://{shard}.cz/{number}" for shard in range(COUNT)]
            asking = [
                asyncio.create_task(one.twin(text, url))
                for one, url in zip(shards.members, urls, strict=True)
            ]
            await until(lambda asking=asking: sum(task.done() for task in asking) >= COUNT - 1)
            for shard in range(COUNT):  # nobody is told so before it is on record
                shards.commit(shard)
            answers = await asyncio.gather(*asking)
            assert answers.count(None) == 1, "who keeps the record has it in its own books"
            first = urls[answers.index("")]
            assert [answer for answer in answers if answer] == [first]
            again = asyncio.create_task(shards.members[answers.index("")].twin(text, first))
            keeper = answers.index(None)
            await until(lambda again=again, keeper=keeper: shards.commit(keeper) or again.done())
            assert await again == "", "and it stays so"

    talk(tmp_path, conversation)


def test_links_reach_the_books_of_those_whose_hosts_they_lead_to(tmp_path: Path) -> None:
    async def conversation(shards: Shards) -> None:
        urls = [f"http://host{number}.cz/" for number in range(40)]
        own = shards.members[0].post([Candidate(url) for url in urls])
        shards.commit(0)
        expected = [set(urls) - {one.url for one in own}, *map(set, shards.received[1:])]
        await until(lambda: len(shards.received[1]) + len(shards.received[2]) == len(expected[0]))
        assert set(shards.received[1]) | set(shards.received[2]) == expected[0]
        assert shards.received[0] == []

    talk(tmp_path, conversation)


def test_a_shard_whose_coordinator_is_gone_may_do_nothing_more(tmp_path: Path) -> None:
    async def conversation(shards: Shards) -> None:
        member = shards.members[1]
        member.check()
        assert member.may_fetch(10**9), "there is no budget"
        shards.leading.cancel()
        await until(lambda: not member.lease.holds)
        assert not member.may_fetch(1)
        with pytest.raises(Superseded):
            member.check()
        with pytest.raises(Superseded):
            member.ending(None, 0)

    talk(tmp_path, conversation)


def test_pages_under_way_are_not_waited_for_before_more_are_granted(tmp_path: Path) -> None:
    async def conversation(shards: Shards) -> None:
        for pages in range(1, 3_001, 100):  # and not one of them is fetched yet
            await until(lambda pages=pages: shards.members[1].may_fetch(pages))

    talk(tmp_path, conversation, replace(CONFIG, budget=Budget(pages=100_000)))


def test_those_who_have_nothing_to_do_leave_all_pages_to_the_others(tmp_path: Path) -> None:
    async def conversation(shards: Shards) -> None:
        busy, *idle = shards.members
        for member in idle:  # had something to do until now
            await until(lambda member=member: member.may_fetch(1))

        def turn() -> bool:
            for member in idle:
                member.ending(Ending("done"), 0)
                assert not member.may_fetch(1)
            return busy.may_fetch(30)

        await until(turn)

    talk(tmp_path, conversation, replace(CONFIG, budget=Budget(pages=30)))


def test_those_who_can_visit_nobody_now_return_what_others_want(tmp_path: Path) -> None:
    async def conversation(shards: Shards) -> None:
        busy, resting, idle = shards.members
        await until(lambda: resting.may_fetch(1))
        under_way = 1

        def turn() -> bool:
            idle.ending(Ending("done"), 0)
            resting.ending(None, under_way)
            assert resting.may_fetch(under_way, wanted=False), "what is under way may be ended"
            return busy.may_fetch(29)

        await until(turn)
        assert not resting.may_fetch(under_way + 1, wanted=False)

    talk(tmp_path, conversation, replace(CONFIG, budget=Budget(pages=30)))


def test_the_crawl_ends_when_all_shards_say_they_are_done(tmp_path: Path) -> None:
    async def conversation(shards: Shards) -> None:
        done = Ending("done")

        def all_told() -> bool:
            told = [member.ending(done, 0) for member in shards.members]
            return told == [done] * COUNT

        await until(all_told)

    talk(tmp_path, conversation)
