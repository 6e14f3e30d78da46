"""How shards speak to each other: each has a line to every other one, for its letters and its questions.

Whoever calls says in which epoch, and is heeded only if that is the one that the coordinator told of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from thresher.crawl.shards.letters import Letters, decode
from thresher.crawl.shards.messages import (
    FIRST,
    Answer,
    BetweenShards,
    Broken,
    Frames,
    Hello,
    Letter,
    MayVisit,
    Peer,
    Question,
    Receipt,
    WhoHas,
    same,
)
from thresher.page import Candidate
from thresher.store.shards import Shard

AGAIN = 0.2  # seconds before a line that broke is laid anew
MOMENT = 0.02  # seconds that a message may wait for others, …
WHILE = 0.5  # … and one that is in no hurry
HELLO_SECONDS = 10.0  # for somebody to say who they are

_frames: Frames[BetweenShards] = Frames(BetweenShards)


class Answering(Protocol):
    """Who answers what other shards ask."""

    def __call__(self, question: Question, answer: Callable[[float | str], None]) -> None:
        """`answer` is to be called once, now or later."""


class _Pen:
    """Writes messages to a connection, those of a moment together: each time costs more than what is written."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._pending: list[bytes] = []
        self._due: asyncio.TimerHandle | None = None

    def write(self, message: BetweenShards, within: float = MOMENT) -> None:
        """Send a message, within so many seconds."""
        loop = asyncio.get_running_loop()
        when = loop.time() + within
        if not self._due or when < self._due.when():
            self._put_off()
            self._due = loop.call_at(when, self._flush)
        self._pending.append(_frames.pack(message))

    def _put_off(self) -> None:
        if self._due:
            self._due.cancel()
        self._due = None

    def _flush(self) -> None:
        self._put_off()
        if not self._writer.is_closing():  # or whoever is left without an answer asks again
            self._writer.write(b"".join(self._pending))
        self._pending.clear()

    async def drain(self) -> None:
        """Wait until there is room."""
        self._flush()
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()


class Exchange:
    """The lines of one shard, and its door."""

    def __init__(
        self,
        shard: Shard,
        epoch: int,
        token: str,
        letters: Letters,
        receive: Callable[[Sequence[Candidate]], None],
        answering: Answering,
        fail: Callable[[BaseException], None],
    ) -> None:
        """`fail` is told what is no fault of a line."""
        self.shard = shard
        self.epoch = epoch
        self.token = token
        self.letters = letters
        self._receive = receive
        self._answering = answering
        self.fail = fail
        self.peers = [Peer(0) for _ in range(shard.count)]
        self._lines = {number: _Line(self, number) for number in range(shard.count) if number != shard.number}
        self._callers: dict[int, _Pen] = {}
        self._server: asyncio.Server | None = None

    async def open(self, address: str) -> int:
        """Open the door; returns the port."""
        self._server = await asyncio.start_server(self._serve, address, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def update(self, peers: Sequence[Peer]) -> None:
        """Where everybody is now: lines to those who have gone are cut, and they are not heeded any more."""
        before, self.peers = self.peers, list(peers)
        for number, line in self._lines.items():
            if before[number] != peers[number]:
                line.lay()
            if before[number].epoch != peers[number].epoch and (caller := self._callers.pop(number, None)):
                caller.close()

    def durable(self) -> None:
        """More letters may be sent, and more be receipted."""
        for line in self._lines.values():
            line.wake()
        for number, caller in self._callers.items():
            caller.write(Receipt(self.letters.safe_from(number)))

    async def ask(self, number: int, about: MayVisit | WhoHas) -> float | str:
        """What another shard says; while it cannot be reached, this waits."""
        return await self._lines[number].ask(about)

    async def close(self) -> None:
        for line in self._lines.values():
            await line.close()
        for caller in self._callers.values():
            caller.close()
        if self._server:
            self._server.close()

    # who calls

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller, pen = -1, _Pen(writer)
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                caller = self._known(await _frames.read(reader, FIRST))
            self._callers[caller] = pen
            pen.write(Hello(self.token, self.shard.number, self.epoch, self.letters.safe_from(caller)))
            while True:
                self._heed(caller, await _frames.read(reader), pen)
        except (TimeoutError, Broken, ConnectionError):
            pass
        except (
            Exception
        ) as fault:  # the edge: what was said could not be heeded, and would not be the next time
            self.fail(fault)
        if self._callers.get(caller) is pen:
            del self._callers[caller]
        pen.close()

    def _known(self, hello: BetweenShards) -> int:
        """The shard that calls; Broken if it is none, or not in the epoch that counts."""
        if not isinstance(hello, Hello) or not same(hello.token, self.token):
            raise Broken("a stranger")
        if hello.shard not in self._lines or hello.epoch != self.peers[hello.shard].epoch:
            raise Broken(f"shard {hello.shard} is not in epoch {hello.epoch}")
        return hello.shard

    def _heed(self, caller: int, message: BetweenShards, pen: _Pen) -> None:
        if isinstance(message, Question):
            number, within = message.number, _patience(message)
            self._answering(message, lambda value: pen.write(Answer(number, value), within))
        elif isinstance(message, Letter):
            expected = self.letters.next_from(caller)
            if message.number > expected:
                raise Broken(f"letter {message.number} came before letter {expected}")
            if message.number == expected:
                self._receive(decode(message.candidates))
                self.letters.receive(caller, expected)
        else:
            raise Broken("out of place")


class _Line:
    """The line to another shard: laid anew whenever it breaks, as long as there is somewhere to call."""

    def __init__(self, exchange: Exchange, number: int) -> None:
        self._exchange = exchange
        self._number = number
        self._task: asyncio.Task[None] | None = None
        self._more = asyncio.Event()
        self._pen: _Pen | None = None
        self._questions: dict[int, tuple[Question, asyncio.Future[float | str]]] = {}
        self._asked = 0

    def lay(self) -> None:
        """Lay the line to where the other shard is now."""
        if self._task:
            self._task.cancel()
        peer = self._exchange.peers[self._number]
        self._task = asyncio.create_task(self._keep(peer)) if peer.port else None

    def wake(self) -> None:
        self._more.set()

    async def ask(self, about: MayVisit | WhoHas) -> float | str:
        self._asked += 1
        question = Question(self._asked, about)
        future: asyncio.Future[float | str] = asyncio.get_running_loop().create_future()
        self._questions[question.number] = question, future
        if self._pen:
            self._pen.write(question, _patience(question))
        try:
            return await future
        finally:
            del self._questions[question.number]

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self, peer: Peer) -> None:
        while True:
            try:
                await self._talk(peer)
            except (Broken, OSError):
                await asyncio.sleep(AGAIN)
            except Exception as fault:
                self._exchange.fail(fault)
                return

    async def _talk(self, peer: Peer) -> None:
        exchange = self._exchange
        reader, writer = await asyncio.open_connection(peer.address, peer.port)
        pen = _Pen(writer)
        try:
            pen.write(Hello(exchange.token, exchange.shard.number, exchange.epoch))
            hello = await _frames.read(reader)
            if not isinstance(hello, Hello) or hello.epoch != peer.epoch:
                raise Broken("somebody else")
            self._settle(hello.letter)
            for question, _ in self._questions.values():
                pen.write(question)
            self._pen = pen
            sending = asyncio.create_task(self._send(pen, hello.letter))
            sending.add_done_callback(lambda sent: self._sent(sent, pen))
            try:
                while True:
                    self._heed(await _frames.read(reader))
            finally:
                sending.cancel()
        finally:
            self._pen = None
            pen.close()

    def _sent(self, sending: asyncio.Task[None], pen: _Pen) -> None:
        """No more letters are sent: so there is no line, and who reads from it notices."""
        pen.close()
        if (
            not sending.cancelled()
            and not isinstance(fault := sending.exception(), ConnectionError)
            and fault
        ):
            self._exchange.fail(fault)

    async def _send(self, pen: _Pen, last: int) -> None:
        """Letters, from the one after the last that has arrived for certain."""
        while True:
            self._more.clear()
            for number, candidates in self._exchange.letters.to_send(self._number, last):
                pen.write(Letter(number, candidates))
                last = number
                await pen.drain()
            await self._more.wait()

    def _heed(self, message: BetweenShards) -> None:
        if isinstance(message, Receipt):
            self._settle(message.number)
        elif isinstance(message, Answer):
            _, future = self._questions.get(message.number, (None, None))
            if future and not future.done():  # who asked may have gone
                future.set_result(message.value)
        else:
            raise Broken("out of place")

    def _settle(self, number: int) -> None:
        self._exchange.letters.settle(self._number, number)


def _patience(question: Question) -> float:
    """Whoever asks for a text waits for a commit anyway."""
    return WHILE if isinstance(question.about, WhoHas) else MOMENT
