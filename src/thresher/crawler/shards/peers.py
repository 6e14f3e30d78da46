"""Connections between shards: each shard keeps one to every other shard, for its batches of links and its requests.

A connection begins with `Hello` of both sides. A caller is accepted only in the epoch that the coordinator
announced, so a superseded process can neither send links nor get an acknowledgement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from thresher.crawler.clock import SYSTEM_CLOCK, Clock
from thresher.crawler.shards.outbox import Outbox, decode
from thresher.crawler.shards.protocol import (
    MAX_FIRST_FRAME_BYTES,
    Ack,
    ClaimText,
    Frames,
    Hello,
    LinkBatch,
    Peer,
    PeerMessage,
    PeerReply,
    PeerRequest,
    ProtocolError,
    ReserveAddress,
    is_same_token,
)
from thresher.records import Candidate
from thresher.store.shard_layout import Shard

RECONNECT_S = 0.2  # before a broken connection is made again
SEND_WITHIN_S = 0.02  # for which a message may wait for others
SEND_CLAIM_WITHIN_S = 0.5  # for claims of texts, whose caller waits for a commit anyway
HELLO_TIMEOUT_S = 10.0

_frames: Frames[PeerMessage] = Frames(PeerMessage)


class PeerHandler(Protocol):
    """The crawl behind a shard's connections."""

    def receive(self, links: Sequence[Candidate]) -> None:
        """Take links from another shard."""

    def answer(self, request: PeerRequest, reply: Callable[[float | str], None]) -> None:
        """Answer a request: call `reply` once, now or later."""

    def fail(self, fault: BaseException) -> None:
        """End the crawl with a fault that is not one of a connection."""


class _MessageWriter:
    """Writes messages to a connection in groups, since each write costs more than its bytes."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._pending: list[bytes] = []
        self._due: asyncio.TimerHandle | None = None

    def write(self, message: PeerMessage, within: float = SEND_WITHIN_S) -> None:
        """Send a message within some seconds."""
        loop = asyncio.get_running_loop()
        when = loop.time() + within
        if not self._due or when < self._due.when():
            self._cancel_timer()
            self._due = loop.call_at(when, self._flush)
        self._pending.append(_frames.pack(message))

    def _cancel_timer(self) -> None:
        if self._due:
            self._due.cancel()
        self._due = None

    def _flush(self) -> None:
        self._cancel_timer()
        if not self._writer.is_closing():  # otherwise callers repeat their requests on the next connection
            self._writer.write(b"".join(self._pending))
        self._pending.clear()

    async def drain(self) -> None:
        """Send everything and wait until the connection has room."""
        self._flush()
        await self._writer.drain()

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


class PeerExchange:
    """The connections of one shard: a server for the others, and a client to each of them."""

    def __init__(
        self, shard: Shard, epoch: int, token: str, outbox: Outbox, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.shard = shard
        self.epoch = epoch
        self.token = token
        self.outbox = outbox
        self.clock = clock
        self.peers = [Peer(0) for _ in range(shard.count)]
        self._connections = {
            number: _Connection(self, number) for number in range(shard.count) if number != shard.number
        }
        self._callers: dict[int, _MessageWriter] = {}
        self._server: asyncio.Server | None = None
        self._handler: PeerHandler | None = None

    async def serve(self, address: str, handler: PeerHandler) -> int:
        """Accept connections of other shards for a handler; return the port."""
        self._handler = handler
        self._server = await asyncio.start_server(self._serve, address, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def update(self, peers: Sequence[Peer]) -> None:
        """Take the present epochs and addresses: connect to shards that moved, and drop superseded callers."""
        before, self.peers = self.peers, list(peers)
        for number, connection in self._connections.items():
            if before[number] != peers[number]:
                connection.restart()
            if before[number].epoch != peers[number].epoch and (caller := self._callers.pop(number, None)):
                caller.close()

    def durable(self) -> None:
        """Send and acknowledge batches that have become durable."""
        for connection in self._connections.values():
            connection.wake()
        for number, caller in self._callers.items():
            caller.write(Ack(self.outbox.durable_from(number)))

    async def request(self, number: int, about: ReserveAddress | ClaimText) -> float | str:
        """Return another shard's reply; wait while that shard cannot be reached."""
        return await self._connections[number].request(about)

    def fail(self, fault: BaseException) -> None:
        """Report a fault that is not one of a connection."""
        assert self._handler
        self._handler.fail(fault)

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            await connection.close()
        for caller in self._callers.values():
            caller.close()
        if self._server:
            self._server.close()

    # the server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller, messages = -1, _MessageWriter(writer)
        try:
            async with self.clock.timeout(HELLO_TIMEOUT_S):
                caller = self._identify(await _frames.read(reader, MAX_FIRST_FRAME_BYTES))
            self._callers[caller] = messages
            durable = self.outbox.durable_from(caller)
            messages.write(Hello(self.token, self.shard.number, self.epoch, durable))
            while True:
                self._handle(caller, await _frames.read(reader), messages)
        except (TimeoutError, ProtocolError, ConnectionError):
            pass
        # The edge of a connection: a message that cannot be handled now cannot be handled when it is repeated.
        except Exception as fault:
            self.fail(fault)
        if self._callers.get(caller) is messages:
            del self._callers[caller]
        messages.close()

    def _identify(self, hello: PeerMessage) -> int:
        """Return the number of the calling shard; raise ProtocolError for strangers and superseded shards."""
        if not isinstance(hello, Hello) or not is_same_token(hello.token, self.token):
            raise ProtocolError("the caller does not know the token of this crawl")
        if hello.shard not in self._connections or hello.epoch != self.peers[hello.shard].epoch:
            raise ProtocolError(f"shard {hello.shard} is not in epoch {hello.epoch}")
        return hello.shard

    def _handle(self, caller: int, message: PeerMessage, messages: _MessageWriter) -> None:
        assert self._handler
        if isinstance(message, PeerRequest):
            number, within = message.number, _send_within(message)
            self._handler.answer(message, lambda value: messages.write(PeerReply(number, value), within))
        elif isinstance(message, LinkBatch):
            expected = self.outbox.next_from(caller)
            if message.number > expected:
                raise ProtocolError(f"batch {message.number} came before batch {expected}")
            if message.number == expected:
                self._handler.receive(decode(message.candidates))
                self.outbox.receive(caller, expected)
        else:
            raise ProtocolError(f"{type(message).__name__} is out of place")


class _Connection:
    """The connection to another shard: made again whenever it breaks, while that shard has an address."""

    def __init__(self, exchange: PeerExchange, number: int) -> None:
        self._exchange = exchange
        self._number = number
        self._task: asyncio.Task[None] | None = None
        self._more = asyncio.Event()
        self._messages: _MessageWriter | None = None
        self._requests: dict[int, tuple[PeerRequest, asyncio.Future[float | str]]] = {}
        self._last_request = 0

    def restart(self) -> None:
        """Connect to the present address of the other shard."""
        if self._task:
            self._task.cancel()
        peer = self._exchange.peers[self._number]
        self._task = asyncio.create_task(self._keep(peer)) if peer.port else None

    def wake(self) -> None:
        """Look for more batches to send."""
        self._more.set()

    async def request(self, about: ReserveAddress | ClaimText) -> float | str:
        """Return the reply to a request, which is repeated on each new connection until there is one."""
        self._last_request += 1
        request = PeerRequest(self._last_request, about)
        future: asyncio.Future[float | str] = asyncio.get_running_loop().create_future()
        self._requests[request.number] = request, future
        if self._messages:
            self._messages.write(request, _send_within(request))
        try:
            return await future
        finally:
            del self._requests[request.number]

    async def close(self) -> None:
        """Close the connection for good."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self, peer: Peer) -> None:
        while True:
            try:
                await self._connect(peer)
            except (ProtocolError, OSError):
                await self._exchange.clock.sleep(RECONNECT_S)
            except Exception as fault:
                self._exchange.fail(fault)
                return

    async def _connect(self, peer: Peer) -> None:
        exchange = self._exchange
        reader, writer = await asyncio.open_connection(peer.address, peer.port)
        messages = _MessageWriter(writer)
        try:
            messages.write(Hello(exchange.token, exchange.shard.number, exchange.epoch))
            hello = await _frames.read(reader)
            if not isinstance(hello, Hello) or hello.epoch != peer.epoch:
                raise ProtocolError(f"shard {self._number} is not in epoch {peer.epoch}")
            exchange.outbox.acknowledge(self._number, hello.batch)
            for request, _ in self._requests.values():
                messages.write(request)
            self._messages = messages
            sending = asyncio.create_task(self._send(messages, hello.batch))
            sending.add_done_callback(lambda sent: self._sent(sent, messages))
            try:
                while True:
                    self._handle(await _frames.read(reader))
            finally:
                sending.cancel()
        finally:
            self._messages = None
            messages.close()

    def _sent(self, sending: asyncio.Task[None], messages: _MessageWriter) -> None:
        """Close the connection when sending has ended, so that the reader of the connection notices."""
        messages.close()
        if (
            not sending.cancelled()
            and not isinstance(fault := sending.exception(), ConnectionError)
            and fault
        ):
            self._exchange.fail(fault)

    async def _send(self, messages: _MessageWriter, last: int) -> None:
        """Send batches after the last one that is durable there, without waiting for acknowledgements."""
        while True:
            self._more.clear()
            for number, candidates in self._exchange.outbox.to_send(self._number, last):
                messages.write(LinkBatch(number, candidates))
                last = number
                await messages.drain()
            await self._more.wait()

    def _handle(self, message: PeerMessage) -> None:
        if isinstance(message, Ack):
            self._exchange.outbox.acknowledge(self._number, message.number)
        elif isinstance(message, PeerReply):
            _, future = self._requests.get(message.number, (None, None))
            if future and not future.done():  # the caller may have been cancelled
                future.set_result(message.value)
        else:
            raise ProtocolError(f"{type(message).__name__} is out of place")


def _send_within(request: PeerRequest) -> float:
    return SEND_CLAIM_WITHIN_S if isinstance(request.about, ClaimText) else SEND_WITHIN_S
