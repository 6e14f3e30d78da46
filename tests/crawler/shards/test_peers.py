"""Connections between shards: every link arrives and counts once in spite of failures; strangers are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.crawler.shards import peers
from thresher.crawler.shards.outbox import Outbox, decode
from thresher.crawler.shards.peers import PeerExchange
from thresher.crawler.shards.protocol import (
    ClaimText,
    Frames,
    Heartbeat,
    HeartbeatReply,
    Hello,
    LinkBatch,
    Peer,
    PeerRequest,
    ReserveAddress,
)
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate
from thresher.store.shard_layout import Shard, owner
from thresher.urls import host

pytestmark = pytest.mark.slow

HERE = "127.0.0.1"
URLS = [f"http://host{number}.cz/" for number in range(60)]
ABROAD = [url for url in URLS if owner(host(url), 2) == 1]  # of shard 1, seen from shard 0


def candidates(urls: Sequence[str]) -> list[Candidate]:
    return [Candidate(url) for url in urls]


class Station:
    """One of two shards, without a crawl."""

    def __init__(self, folder: Path, number: int, epoch: int = 1, token: str = "secret") -> None:
        self.received: list[str] = []
        self.requests: list[PeerRequest] = []
        self.state = KeyValueState(folder)
        self.outbox = Outbox(self.state, Shard(number, 2))
        self.faults: list[BaseException] = []
        self.exchange = PeerExchange(Shard(number, 2), epoch, token, self.outbox)

    def receive(self, links: Sequence[Candidate]) -> None:
        self.received += [link.url for link in links]

    def answer(self, request: PeerRequest, reply: Callable[[float | str], None]) -> None:
        self.requests.append(request)
        reply(0.25 if isinstance(request.about, ReserveAddress) else "http://first.cz/")

    def fail(self, fault: BaseException) -> None:
        self.faults.append(fault)

    async def serve(self) -> int:
        return await self.exchange.serve(HERE, self)

    def commit(self) -> None:
        self.outbox.flush()
        self.state.commit()
        self.outbox.durable(self.outbox.committed())
        self.exchange.durable()

    def route(self, *urls: str) -> None:
        self.outbox.route(candidates(urls))

    async def close(self) -> None:
        await self.exchange.close()
        self.state.close()


async def introduced(*stations: Station, epochs: tuple[int, int] = (1, 1)) -> None:
    """Let all stations know the addresses of the others."""
    ports = [await station.serve() for station in stations]
    for station in stations:
        station.exchange.update([Peer(epoch, HERE, port) for epoch, port in zip(epochs, ports, strict=True)])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - of several stations, with no event in common
            await asyncio.sleep(0.005)


def test_links_go_to_the_shard_that_has_their_host_and_the_others_stay(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(first, second)
        own = first.outbox.route(candidates(URLS))
        assert {one.url for one in own} == set(URLS) - set(ABROAD)
        first.commit()
        await until(lambda: second.received == ABROAD)
        assert first.outbox.outstanding == 1, "it is not durable there yet"
        second.commit()
        await until(lambda: first.outbox.outstanding == 0)
        await first.close()
        await second.close()

    asyncio.run(run())


def test_batches_do_not_wait_for_acknowledgements(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(first, second)
        for url in ABROAD:
            first.route(url)
            first.commit()
        await until(lambda: second.received == ABROAD)
        assert first.outbox.outstanding == len(ABROAD), "none is durable there yet"
        await first.close()
        await second.close()

    asyncio.run(run())


def test_faults_of_the_crawl_end_it_and_are_not_taken_for_faults_of_the_connection(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)

        def refuse(_: object) -> None:
            raise OSError("the disk is broken")

        second.receive = refuse  # type: ignore[method-assign]
        await introduced(first, second)
        first.route(*ABROAD)
        first.commit()
        await until(lambda: bool(second.faults))
        assert "the disk is broken" in str(second.faults[0])
        first.outbox.to_send = refuse  # type: ignore[method-assign]
        first.route(ABROAD[0])
        first.commit()
        await until(lambda: bool(first.faults))
        await first.close()
        await second.close()

    asyncio.run(run())


def test_uncommitted_links_are_not_sent(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(first, second)
        first.route(*ABROAD[:3])
        first.commit()
        first.route(*ABROAD[3:])
        first.outbox.flush()
        await until(lambda: bool(second.received))
        await first.exchange.request(1, ReserveAddress(HERE))  # comes behind all that was sent before
        assert second.received == ABROAD[:3]
        await first.close()
        await second.close()

    asyncio.run(run())


def test_a_receiver_that_dies_before_its_commit_gets_all_of_it_again(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(first, second)
        first.route(ABROAD[0])
        first.commit()
        await until(lambda: len(second.received) == 1)
        second.commit()
        await until(lambda: first.outbox.outstanding == 0)
        first.route(ABROAD[1])
        first.commit()
        await until(lambda: len(second.received) == 2)
        await second.close()  # changes without a commit are lost
        again = Station(tmp_path / "1", 1, epoch=2)
        port = await again.serve()
        again.exchange.update([Peer(1), Peer(2)])
        first.exchange.update([Peer(1), Peer(2, HERE, port)])
        await until(lambda: again.received == [ABROAD[1]])
        again.commit()
        await until(lambda: first.outbox.outstanding == 0)
        await first.close()
        await again.close()

    asyncio.run(run())


def test_a_restarted_sender_sends_unacknowledged_links_again_and_they_count_once(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(first, second)
        for url in ABROAD[:12]:  # more than are under way at once
            first.route(url)
            first.commit()
        await until(lambda: bool(second.received))
        await first.close()
        second.commit()
        again = Station(tmp_path / "0", 0, epoch=2)
        again.route(ABROAD[12])
        port = await again.serve()
        second.exchange.update([Peer(2, HERE, port), second.exchange.peers[1]])
        again.exchange.update([Peer(2), second.exchange.peers[1]])
        again.commit()

        def all_there() -> bool:
            second.commit()
            return len(second.received) >= 13 and again.outbox.outstanding == 0

        await until(all_there)
        assert second.received == ABROAD[:13]
        await again.close()
        await second.close()

    asyncio.run(run())


def test_a_superseded_shard_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        old, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(old, second)
        old.route(ABROAD[0])
        old.commit()
        await until(lambda: second.received == ABROAD[:1])
        second.exchange.update([Peer(2), second.exchange.peers[1]])  # another process has taken over
        old.route(ABROAD[1])
        old.commit()
        second.commit()
        reader, writer = await asyncio.open_connection(HERE, second.exchange.peers[1].port)
        frames: Frames[Hello] = Frames(Hello)
        writer.write(frames.pack(Hello("secret", 0, 1)))
        assert await reader.read() == b"", "there is no answer"
        writer.close()
        assert second.received == ABROAD[:1]
        assert old.outbox.outstanding == 2, "nor an acknowledgement"
        await old.close()
        await second.close()

    asyncio.run(run())


def test_strangers_and_nonsense_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = Station(tmp_path / "0", 0, token="another"), Station(tmp_path / "1", 1)
        await introduced(first, second)
        hello: Frames[Hello] = Frames(Hello)
        batch: Frames[LinkBatch] = Frames(LinkBatch)
        before = (b"", hello.pack(Hello("secret", 0, 1)))
        for nonsense in (
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff\xff\xff\xff",
            b"\x00\x00\x00\x01\xc1",
            batch.pack(LinkBatch(9, b"")),
        ):
            for greeting in before:
                reader, writer = await asyncio.open_connection(HERE, second.exchange.peers[1].port)
                writer.write(greeting + nonsense)
                writer.write_eof()
                await reader.read()
                writer.close()
        first.route(ABROAD[0])
        first.commit()
        assert second.received == []
        await first.close()
        await second.close()

    asyncio.run(run())


def test_requests_are_answered_even_if_the_connection_breaks(tmp_path: Path) -> None:
    async def run() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        port = await second.serve()
        asking = asyncio.create_task(first.exchange.request(1, ReserveAddress("192.0.2.1")))
        await asyncio.sleep(0)
        second.exchange.update([Peer(1), Peer(1)])
        first.exchange.update([Peer(1), Peer(1, HERE, port)])
        assert await asking == 0.25
        assert await first.exchange.request(1, ClaimText(b"hash", "http://a.cz/")) == "http://first.cz/"
        await second.close()
        again = Station(tmp_path / "1", 1, epoch=2)
        asking = asyncio.create_task(first.exchange.request(1, ReserveAddress("192.0.2.2")))
        port = await again.serve()
        again.exchange.update([Peer(1), Peer(2)])
        first.exchange.update([Peer(1), Peer(2, HERE, port)])
        assert await asking == 0.25
        await first.close()
        await again.close()

    asyncio.run(run())


def test_requests_about_texts_wait_to_be_sent_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "SEND_CLAIM_WITHIN_S", 3_600.0)

    async def run() -> None:
        stations = first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(*stations)
        assert await first.exchange.request(1, ReserveAddress("192.0.2.1")) == 0.25
        asking = asyncio.create_task(first.exchange.request(1, ClaimText(b"hash", "http://a.cz/")))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asking), 10 * peers.SEND_WITHIN_S)
        assert await first.exchange.request(1, ReserveAddress("192.0.2.2")) == 0.25
        assert await asyncio.wait_for(asking, 20) == "http://first.cz/"
        await first.close()
        await second.close()

    asyncio.run(run())


@given(
    st.lists(
        st.sampled_from(["post", "commit", "send", "commit there", "sender dies", "receiver dies"]),
        max_size=60,
    )
)
def test_batches_arrive_in_order_and_count_once_whichever_side_crashes(moves: list[str]) -> None:
    """Two outboxes without a network: the receiver takes the batches of the sender; a crash drops changes."""
    kept: list[str] = []  # at the receiver, committed
    taken: list[str] = []  # at the receiver, not committed yet
    written: list[str] = []  # by the sender, committed
    open_: list[str] = []  # by the sender, not committed yet
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        states = [KeyValueState(Path(folder) / str(number)) for number in range(2)]
        sides = [Outbox(states[number], Shard(number, 2)) for number in range(2)]

        def commit(number: int) -> None:
            sides[number].flush()
            states[number].commit()
            sides[number].durable(sides[number].committed())

        def reopen(number: int) -> None:
            states[number].close()
            states[number] = KeyValueState(Path(folder) / str(number))
            sides[number] = Outbox(states[number], Shard(number, 2))

        for move in [*moves, "commit", "send", "commit there", "send", "commit there"]:
            sender, receiver = sides
            match move:
                case "post":
                    url = f"{ABROAD[0]}{len(written) + len(open_)}"
                    sender.route(candidates([url]))
                    open_.append(url)
                case "commit":
                    commit(0)
                    written, open_ = written + open_, []
                case "send":
                    sender.acknowledge(1, receiver.durable_from(0))
                    for number, batch in sender.to_send(1, receiver.durable_from(0)):
                        if number == receiver.next_from(0):
                            taken += [one.url for one in decode(batch)]
                            receiver.receive(0, number)
                case "commit there":
                    commit(1)
                    kept, taken = kept + taken, []
                case "sender dies":
                    reopen(0)
                    open_ = []
                case "receiver dies":
                    reopen(1)
                    taken = []
            assert kept + taken == written[: len(kept + taken)]
        assert kept == written
        for state in states:
            state.close()


def test_heartbeats_and_replies_survive_their_frames() -> None:
    heartbeats: Frames[Heartbeat] = Frames(Heartbeat)
    replies: Frames[HeartbeatReply] = Frames(HeartbeatReply)

    async def read(frames: Frames[object], data: bytes) -> object:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        return await frames.read(reader)

    heartbeat = Heartbeat("t", 1, 2, status={"pages": {"kept": 3}})
    reply = HeartbeatReply(4, [Peer(1, HERE, 9)], 5, True)
    assert asyncio.run(read(heartbeats, heartbeats.pack(heartbeat))) == heartbeat  # type: ignore[arg-type]
    assert asyncio.run(read(replies, replies.pack(reply))) == reply  # type: ignore[arg-type]
