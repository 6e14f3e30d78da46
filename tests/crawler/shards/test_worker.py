"""Shards of one crawl: shared addresses, equal texts, page grants, and leases that end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from thresher.config import BudgetSettings, Config, parse
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.shards.coordinator import Coordinator
from thresher.crawler.shards.heartbeat import ShardLease, Superseded
from thresher.crawler.shards.protocol import Heartbeat
from thresher.crawler.shards.takeover import take_over
from thresher.crawler.shards.worker import ShardWorker
from thresher.crawler.stop_reasons import Ending
from thresher.crawler.storage.crawl_writer import CrawlWriter
from thresher.judge import CLAIM_GRANTED, CLAIM_NOT_NEEDED
from thresher.records import Candidate
from thresher.store.shard_layout import Shard, home
from thresher.workers.protocol import Call, CallResult

pytestmark = pytest.mark.slow

COUNT = 3
CONFIG = parse({"language": "cs", "shards": {"count": COUNT, "lease": 2.0}, "polite": {"ip_delay": 0.5}})


class RecordingEngine:
    """An engine that records the calls it should start."""

    address = "127.0.0.1"

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def run(self, calls: Sequence[Call]) -> None:
        raise NotImplementedError

    def start(self, call: Call) -> RecordingEngine:
        self.calls.append(call)
        return self

    def poll(self) -> CallResult | None:
        return None

    def is_crowded(self) -> bool:
        return False

    def kill(self) -> None:
        pass

    def close(self) -> None:
        pass


class Clock:
    now = 5_000.0

    def __call__(self) -> float:
        return self.now


class RecordingCrawl:
    """A crawl that records the links it receives."""

    def __init__(self) -> None:
        self.received: list[str] = []

    def receive(self, links: Sequence[Candidate]) -> None:
        self.received.extend(link.url for link in links)

    def wake(self) -> None:
        pass

    def fail(self, fault: BaseException) -> None:
        raise fault


class Shards:
    """All shards of a crawl in one process, with a coordinator and nothing to crawl."""

    def __init__(self, directory: Path, config: Config) -> None:
        self.directory = directory
        self.config = config
        self.engine = RecordingEngine()
        self.clock = Clock()
        self.leases: list[ShardLease] = []
        self.workers: list[ShardWorker] = []
        self.writers: list[CrawlWriter] = []
        self.crawls: list[RecordingCrawl] = []

    async def __aenter__(self) -> Shards:
        self.coordinator = Coordinator(self.directory, self.config, self.engine)  # type: ignore[arg-type]
        self.leading = asyncio.create_task(self.coordinator.run())
        await until(lambda: len(self.engine.calls) == COUNT)
        for call in self.engine.calls:
            await self.open(call)
        await until(lambda: all(self.knows_all(worker) for worker in self.workers))
        return self

    async def open(self, call: Call) -> None:
        given = call.arguments
        number, epoch = given["number"], given["epoch"]
        lease = ShardLease(
            (given["address"], given["port"]),
            self.config.shards.lease,
            Heartbeat(given["token"], number, epoch),
        )
        lease.start()
        folder = take_over(home(self.directory, number), epoch)
        writer = CrawlWriter(folder, self.config, self.clock, Shard(number, COUNT))
        politeness = Politeness(writer.kv, self.config.polite, self.clock)
        worker = ShardWorker(self.config, epoch, lease, writer, politeness, Shard(number, COUNT))
        crawl = RecordingCrawl()
        await worker.serve(crawl)
        self.leases.append(lease)
        self.workers.append(worker)
        self.writers.append(writer)
        self.crawls.append(crawl)

    def knows_all(self, worker: ShardWorker) -> bool:
        return all(peer.port for peer in worker.exchange.peers)

    def commit(self, number: int) -> None:
        self.workers[number].flush()
        self.writers[number].commit({})
        self.workers[number].committed({})

    async def __aexit__(self, *_: object) -> None:
        self.leading.cancel()
        await asyncio.gather(self.leading, return_exceptions=True)
        for worker, lease, writer in zip(self.workers, self.leases, self.writers, strict=True):
            await worker.close()
            lease.close()
            writer.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - of several parties, with no event in common
            await asyncio.sleep(0.01)


def crawl_together(
    directory: Path, run: Callable[[Shards], Awaitable[None]], config: Config = CONFIG
) -> None:
    async def session() -> None:
        async with Shards(directory, config) as shards:
            await run(shards)

    asyncio.run(session())


def test_an_address_is_reserved_by_one_shard_at_a_time(tmp_path: Path) -> None:
    async def run(shards: Shards) -> None:
        for address in ("192.0.2.1", "192.0.2.2", "2001:db8::7"):
            waits = await asyncio.gather(
                *(one.coordination.addresses.reserve(address) for one in shards.workers * 2)
            )
            assert waits.count(0.0) == 1
            assert all(later - sooner >= 0.5 for sooner, later in pairwise(sorted(waits)))
        shards.clock.now += 60.0
        assert await shards.workers[1].coordination.addresses.reserve("192.0.2.1") == 0.0
        assert await shards.workers[2].coordination.addresses.reserve("192.0.2.1") >= 0.5

    crawl_together(tmp_path, run)


def test_equal_texts_in_several_shards_are_granted_to_one_page(tmp_path: Path) -> None:
    async def run(shards: Shards) -> None:
        for number in range(6):
            text = bytes([number]) * 16
            urls = [f"http://{shard}.cz/{number}" for shard in range(COUNT)]
            claims = [
                asyncio.create_task(one.coordination.texts.claim(text, url))
                for one, url in zip(shards.workers, urls, strict=True)
            ]
            await until(lambda claims=claims: sum(task.done() for task in claims) >= COUNT - 1)
            for shard in range(COUNT):  # no claim is granted before it is committed
                shards.commit(shard)
            answers = await asyncio.gather(*claims)
            assert answers.count(CLAIM_NOT_NEEDED) == 1, "the deciding shard has the text in its own state"
            granted = answers.index(CLAIM_GRANTED)
            assert {answer.owner for answer in answers} == {"", urls[granted]}
            again = asyncio.create_task(shards.workers[granted].coordination.texts.claim(text, urls[granted]))
            decider = answers.index(CLAIM_NOT_NEEDED)
            await until(lambda again=again, decider=decider: shards.commit(decider) or again.done())
            assert await again == CLAIM_GRANTED, "a repeated claim is granted again"

    crawl_together(tmp_path, run)


def test_links_reach_the_shards_that_own_their_hosts(tmp_path: Path) -> None:
    async def run(shards: Shards) -> None:
        urls = [f"http://host{number}.cz/" for number in range(40)]
        own = shards.workers[0].coordination.links.route([Candidate(url) for url in urls])
        shards.commit(0)
        expected = [
            set(urls) - {one.url for one in own},
            *(set(crawl.received) for crawl in shards.crawls[1:]),
        ]
        await until(
            lambda: len(shards.crawls[1].received) + len(shards.crawls[2].received) == len(expected[0])
        )
        assert set(shards.crawls[1].received) | set(shards.crawls[2].received) == expected[0]
        assert shards.crawls[0].received == []

    crawl_together(tmp_path, run)


def test_a_shard_without_a_coordinator_stops_visiting(tmp_path: Path) -> None:
    async def run(shards: Shards) -> None:
        worker = shards.workers[1]
        worker.check()
        assert worker.may_fetch(10**9), "there is no budget"
        shards.leading.cancel()
        await until(lambda: not shards.leases[1].holds)
        assert not worker.may_fetch(1)
        with pytest.raises(Superseded):
            worker.check()
        with pytest.raises(Superseded):
            worker.ending(None, 0)

    crawl_together(tmp_path, run)


def test_pages_under_way_are_not_waited_for_before_more_are_granted(tmp_path: Path) -> None:
    async def run(shards: Shards) -> None:
        for pages in range(1, 3_001, 100):  # and not one of them is fetched yet
            await until(lambda pages=pages: shards.workers[1].may_fetch(pages))

    crawl_together(tmp_path, run, replace(CONFIG, budget=BudgetSettings(max_pages=100_000)))


def test_idle_shards_leave_all_pages_to_the_others(tmp_path: Path) -> None:
    async def run(shards: Shards) -> None:
        busy, *idle = shards.workers
        for worker in idle:  # all have been granted pages
            await until(lambda worker=worker: worker.may_fetch(1))

        def round_of_reports() -> bool:
            for worker in idle:
                worker.ending(Ending("done"), 0)
                assert not worker.may_fetch(1)
            return busy.may_fetch(30)

        await until(round_of_reports)

    crawl_together(tmp_path, run, replace(CONFIG, budget=BudgetSettings(max_pages=30)))


def test_a_resting_shard_returns_pages_that_others_request(tmp_path: Path) -> None:
    async def run(shards: Shards) -> None:
        busy, resting, idle = shards.workers
        await until(lambda: resting.may_fetch(1))
        under_way = 1

        def round_of_reports() -> bool:
            idle.ending(Ending("done"), 0)
            resting.ending(None, under_way)
            assert resting.may_fetch(under_way, wanted=False), "the visit under way may end"
            return busy.may_fetch(29)

        await until(round_of_reports)
        assert not resting.may_fetch(under_way + 1, wanted=False)

    crawl_together(tmp_path, run, replace(CONFIG, budget=BudgetSettings(max_pages=30)))


def test_the_crawl_ends_when_all_shards_are_done(tmp_path: Path) -> None:
    async def run(shards: Shards) -> None:
        done = Ending("done")

        def all_done() -> bool:
            endings = [worker.ending(done, 0) for worker in shards.workers]
            return endings == [done] * COUNT

        await until(all_done)

    crawl_together(tmp_path, run)
