"""Shards speak to each other: every link arrives and counts once, whatever breaks; strangers are not heard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.crawl.shards import exchange
from thresher.crawl.shards.exchange import Exchange
from thresher.crawl.shards.letters import Letters, decode
from thresher.crawl.shards.messages import Beat, Frames, Hello, Letter, MayVisit, Peer, Question, WhoHas, Word
from thresher.crawl.state import State
from thresher.page import Candidate
from thresher.store.shards import Shard, owner
from thresher.url import host

HERE = "127.0.0.1"
URLS = [f"http://host{number}.cz/" for number in range(60)]
ABROAD = [url for url in URLS if owner(host(url), 2) == 1]  # of shard 1, seen from shard 0


def candidates(urls: Sequence[str]) -> list[Candidate]:
    return [Candidate(url) for url in urls]


class Station:
    """A shard of two that only sends and receives."""

    def __init__(self, folder: Path, number: int, epoch: int = 1, token: str = "secret") -> None:
        self.received: list[str] = []
        self.asked: list[Question] = []
        self.state = State(folder)
        self.letters = Letters(self.state, Shard(number, 2))
        self.faults: list[BaseException] = []
        self.exchange = Exchange(
            Shard(number, 2), epoch, token, self.letters, self._receive, self._answer, self.faults.append
        )

    def _receive(self, found: Sequence[Candidate]) -> None:
        self.received += [one.url for one in found]

    def _answer(self, question: Question, answer: Callable[[float | str], None]) -> None:
        self.asked.append(question)
        answer(0.25 if isinstance(question.about, MayVisit) else "http://first.cz/")

    def commit(self) -> None:
        self.letters.flush()
        self.state.commit()
        self.letters.durable(self.letters.committed())
        self.exchange.durable()

    def post(self, *urls: str) -> None:
        self.letters.add(candidates(urls))

    async def close(self) -> None:
        await self.exchange.close()
        self.state.close()


async def introduced(*stations: Station, epochs: tuple[int, int] = (1, 1)) -> None:
    """All know where the others are."""
    ports = [await station.exchange.open(HERE) for station in stations]
    for station in stations:
        station.exchange.update([Peer(epoch, HERE, port) for epoch, port in zip(epochs, ports, strict=True)])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - of several stations, with no event in common
            await asyncio.sleep(0.005)


def test_links_go_to_the_shard_that_has_their_host_and_the_others_stay(tmp_path: Path) -> None:
    async def talk() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(first, second)
        own = first.letters.add(candidates(URLS))
        assert {one.url for one in own} == set(URLS) - set(ABROAD)
        first.commit()
        await until(lambda: second.received == ABROAD)
        assert first.letters.outstanding == 1, "it is not safe there yet"
        second.commit()
        await until(lambda: first.letters.outstanding == 0)
        await first.close()
        await second.close()

    asyncio.run(talk())


def test_letters_do_not_wait_for_receipts(tmp_path: Path) -> None:
    async def talk() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(first, second)
        for url in ABROAD:
            first.post(url)
            first.commit()
        await until(lambda: second.received == ABROAD)
        assert first.letters.outstanding == len(ABROAD), "none is safe there yet"
        await first.close()
        await second.close()

    asyncio.run(talk())


def test_what_cannot_be_heeded_or_read_is_a_fault_of_the_shard_and_not_of_the_line(tmp_path: Path) -> None:
    async def talk() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)

        def refuse(_: object) -> None:
            raise OSError("the disk is broken")

        second._receive = refuse  # type: ignore[method-assign]
        second.exchange._receive = refuse
        await introduced(first, second)
        first.post(*ABROAD)
        first.commit()
        await until(lambda: bool(second.faults))
        assert "the disk is broken" in str(second.faults[0])
        first.letters.to_send = refuse  # type: ignore[method-assign]
        first.post(ABROAD[0])
        first.commit()
        await until(lambda: bool(first.faults))
        await first.close()
        await second.close()

    asyncio.run(talk())


def test_what_is_not_committed_is_not_sent(tmp_path: Path) -> None:
    async def talk() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(first, second)
        first.post(*ABROAD[:3])
        first.commit()
        first.post(*ABROAD[3:])
        first.letters.flush()
        await until(lambda: bool(second.received))
        await first.exchange.ask(1, MayVisit(HERE))  # comes behind all that was sent before
        assert second.received == ABROAD[:3]
        await first.close()
        await second.close()

    asyncio.run(talk())


def test_a_receiver_that_dies_before_its_commit_gets_all_of_it_again(tmp_path: Path) -> None:
    async def talk() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(first, second)
        first.post(ABROAD[0])
        first.commit()
        await until(lambda: len(second.received) == 1)
        second.commit()
        await until(lambda: first.letters.outstanding == 0)
        first.post(ABROAD[1])
        first.commit()
        await until(lambda: len(second.received) == 2)
        await second.close()  # it forgets what it had not committed
        again = Station(tmp_path / "1", 1, epoch=2)
        port = await again.exchange.open(HERE)
        again.exchange.update([Peer(1), Peer(2)])
        first.exchange.update([Peer(1), Peer(2, HERE, port)])
        await until(lambda: again.received == [ABROAD[1]])
        again.commit()
        await until(lambda: first.letters.outstanding == 0)
        await first.close()
        await again.close()

    asyncio.run(talk())


def test_a_sender_that_dies_sends_what_may_not_have_arrived_and_it_counts_once(tmp_path: Path) -> None:
    async def talk() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(first, second)
        for url in ABROAD[:12]:  # more than are under way at once
            first.post(url)
            first.commit()
        await until(lambda: bool(second.received))
        await first.close()
        second.commit()
        again = Station(tmp_path / "0", 0, epoch=2)
        again.post(ABROAD[12])
        port = await again.exchange.open(HERE)
        second.exchange.update([Peer(2, HERE, port), second.exchange.peers[1]])
        again.exchange.update([Peer(2), second.exchange.peers[1]])
        again.commit()

        def all_there() -> bool:
            second.commit()
            return len(second.received) >= 13 and again.letters.outstanding == 0

        await until(all_there)
        assert second.received == ABROAD[:13]
        await again.close()
        await second.close()

    asyncio.run(talk())


def test_one_whose_epoch_is_over_is_heard_no_more(tmp_path: Path) -> None:
    async def talk() -> None:
        old, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(old, second)
        old.post(ABROAD[0])
        old.commit()
        await until(lambda: second.received == ABROAD[:1])
        second.exchange.update([Peer(2), second.exchange.peers[1]])  # another has taken over
        old.post(ABROAD[1])
        old.commit()
        second.commit()
        reader, writer = await asyncio.open_connection(HERE, second.exchange.peers[1].port)
        frames: Frames[Hello] = Frames(Hello)
        writer.write(frames.pack(Hello("secret", 0, 1)))
        assert await reader.read() == b"", "nobody answers"
        writer.close()
        assert second.received == ABROAD[:1]
        assert old.letters.outstanding == 2, "nor gives a receipt"
        await old.close()
        await second.close()

    asyncio.run(talk())


def test_strangers_and_nonsense_are_not_heard(tmp_path: Path) -> None:
    async def talk() -> None:
        first, second = Station(tmp_path / "0", 0, token="another"), Station(tmp_path / "1", 1)
        await introduced(first, second)
        hello: Frames[Hello] = Frames(Hello)
        letter: Frames[Letter] = Frames(Letter)
        before = (b"", hello.pack(Hello("secret", 0, 1)))
        for nonsense in (
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff\xff\xff\xff",
            b"\x00\x00\x00\x01\xc1",
            letter.pack(Letter(9, b"")),
        ):
            for greeting in before:
                reader, writer = await asyncio.open_connection(HERE, second.exchange.peers[1].port)
                writer.write(greeting + nonsense)
                writer.write_eof()
                await reader.read()
                writer.close()
        first.post(ABROAD[0])
        first.commit()
        assert second.received == []
        await first.close()
        await second.close()

    asyncio.run(talk())


def test_questions_are_answered_also_if_the_line_breaks_meanwhile(tmp_path: Path) -> None:
    async def talk() -> None:
        first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        port = await second.exchange.open(HERE)
        asking = asyncio.create_task(first.exchange.ask(1, MayVisit("192.0.2.1")))
        await asyncio.sleep(0)
        second.exchange.update([Peer(1), Peer(1)])
        first.exchange.update([Peer(1), Peer(1, HERE, port)])
        assert await asking == 0.25
        assert await first.exchange.ask(1, WhoHas(b"hash", "http://a.cz/")) == "http://first.cz/"
        await second.close()
        again = Station(tmp_path / "1", 1, epoch=2)
        asking = asyncio.create_task(first.exchange.ask(1, MayVisit("192.0.2.2")))
        port = await again.exchange.open(HERE)
        again.exchange.update([Peer(1), Peer(2)])
        first.exchange.update([Peer(1), Peer(2, HERE, port)])
        assert await asking == 0.25
        await first.close()
        await again.close()

    asyncio.run(talk())


def test_questions_about_texts_wait_for_company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "WHILE", 3_600.0)

    async def talk() -> None:
        stations = first, second = Station(tmp_path / "0", 0), Station(tmp_path / "1", 1)
        await introduced(*stations)
        assert await first.exchange.ask(1, MayVisit("192.0.2.1")) == 0.25
        asking = asyncio.create_task(first.exchange.ask(1, WhoHas(b"hash", "http://a.cz/")))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asking), 10 * exchange.MOMENT)
        assert await first.exchange.ask(1, MayVisit("192.0.2.2")) == 0.25
        assert await asyncio.wait_for(asking, 20) == "http://first.cz/"
        await first.close()
        await second.close()

    asyncio.run(talk())


@given(
    st.lists(
        st.sampled_from(["post", "commit", "send", "commit there", "sender dies", "receiver dies"]),
        max_size=60,
    )
)
def test_whoever_dies_when_each_letter_arrives_in_order_and_is_kept_once(moves: list[str]) -> None:
    """Without a network: what a sender would send, a receiver takes; what neither committed is forgotten."""
    kept: list[str] = []  # at the receiver, committed
    taken: list[str] = []  # … and not committed yet
    written: list[str] = []  # by the sender, committed
    open_: list[str] = []
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        states = [State(Path(folder) / str(number)) for number in range(2)]
        sides = [Letters(states[number], Shard(number, 2)) for number in range(2)]

        def commit(number: int) -> None:
            sides[number].flush()
            states[number].commit()
            sides[number].durable(sides[number].committed())

        def reopen(number: int) -> None:
            states[number].close()
            states[number] = State(Path(folder) / str(number))
            sides[number] = Letters(states[number], Shard(number, 2))

        for move in [*moves, "commit", "send", "commit there", "send", "commit there"]:
            sender, receiver = sides
            match move:
                case "post":
                    url = f"{ABROAD[0]}{len(written) + len(open_)}"
                    sender.add(candidates([url]))
                    open_.append(url)
                case "commit":
                    commit(0)
                    written, open_ = written + open_, []
                case "send":
                    sender.settle(1, receiver.safe_from(0))
                    for number, letter in sender.to_send(1, receiver.safe_from(0)):
                        if number == receiver.next_from(0):
                            taken += [one.url for one in decode(letter)]
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


def test_messages_of_the_coordinator_travel() -> None:
    beats: Frames[Beat] = Frames(Beat)
    words: Frames[Word] = Frames(Word)

    async def read(frames: Frames[object], data: bytes) -> object:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        return await frames.read(reader)

    said = Beat("t", 1, 2, status={"pages": {"kept": 3}})
    answered = Word(4, [Peer(1, HERE, 9)], 5, True)
    assert asyncio.run(read(beats, beats.pack(said))) == said  # type: ignore[arg-type]
    assert asyncio.run(read(words, words.pack(answered))) == answered  # type: ignore[arg-type]
