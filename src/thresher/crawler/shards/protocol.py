"""Messages between shards, and between a shard and the coordinator. They travel as MessagePack in frames."""

from __future__ import annotations

import asyncio
import hmac
import socket
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from thresher.crawler.stop_reasons import Ending
from thresher.errors import CrawlError

M = TypeVar("M")

LENGTH = struct.Struct("!I")
MAX_FRAME_BYTES = 256 << 20
MAX_FIRST_FRAME_BYTES = 1 << 20  # of a caller that has not shown the token yet


class ProtocolError(CrawlError):
    """A frame that cannot be read, or a message out of place; the connection is closed."""


# between shards


class Hello(Struct, frozen=True, tag=True):
    """The first message of both sides of a connection: identity, and the last batch that is durable here."""

    token: str
    shard: int
    epoch: int
    batch: int = 0


class LinkBatch(Struct, frozen=True, tag=True):
    """The links of one commit to hosts of the receiver; batches are numbered without a gap."""

    number: int
    candidates: bytes  # as they are in the sender's state


class Ack(Struct, frozen=True, tag=True):
    """All batches up to this one are durable with the receiver."""

    number: int


class ReserveAddress(Struct, frozen=True, tag=True):
    """A request to reserve an address; the reply is the seconds to wait, 0 if the address is reserved."""

    address: str


class ClaimText(Struct, frozen=True, tag=True):
    """A request to claim a text for a URL; the reply is the URL that holds it, "" if the claim is granted."""

    text_hash: bytes
    url: str


class PeerRequest(Struct, frozen=True, tag=True):
    """A request to the shard that decides about an address or a text."""

    number: int
    about: ReserveAddress | ClaimText


class PeerReply(Struct, frozen=True, tag=True):
    """The reply to the request of that number."""

    number: int
    value: float | str


PeerMessage = Hello | LinkBatch | Ack | PeerRequest | PeerReply


# between a shard and the coordinator


class Heartbeat(Struct, frozen=True):
    """The report of a shard about itself; counts include all its runs."""

    token: str
    shard: int
    epoch: int
    port: int = 0  # at which other shards reach it; 0 while it is being opened
    version: int = 0  # of the list of shards that it uses
    fetched: int = 0  # pages
    granted: int = 0  # pages that it may still fetch
    requests_pages: bool = False
    downloaded: int = 0  # bytes
    outcomes: int = 0
    online: bool = False  # whether any host has replied
    idle: Ending | None = None  # why it has nothing to do, None if it has
    received: int = 0  # batches of links
    outbox: int = 0  # batches that are not known to be durable with their receivers
    status: dict[str, Any] | None = None  # its statistics, if they are new


class Peer(Struct, frozen=True):
    """Epoch and address of a shard."""

    epoch: int
    address: str = ""
    port: int = 0  # 0 while it is not running


class HeartbeatReply(Struct, frozen=True):
    """The coordinator's reply to a heartbeat."""

    version: int
    peers: list[Peer] | None = None  # if they are new to the shard
    grant: int = 0  # more pages
    limited: bool = False  # whether pages must be granted at all
    online: bool = False  # whether any host has replied to any shard
    return_pages: bool = False  # return granted pages that are not under way: others request them
    ending: Ending | None = None  # of the whole crawl, or of this shard here


# frames


class Frames(Generic[M]):
    """Messages of one type as frames: four bytes of length, then MessagePack."""

    def __init__(self, type: Any) -> None:
        self._decode: Callable[[bytes], M] = msgspec.msgpack.Decoder(type).decode
        self._encode = msgspec.msgpack.Encoder().encode

    def pack(self, message: Any) -> bytes:
        """Return a message as a frame."""
        body = self._encode(message)
        return LENGTH.pack(len(body)) + body

    async def read(self, reader: asyncio.StreamReader, max_bytes: int = MAX_FRAME_BYTES) -> M:
        """Return the next message; raise ProtocolError if there is none or it cannot be read."""
        try:
            (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
            _check_length(length, max_bytes)
            return self._unpack(await reader.readexactly(length))
        except (OSError, asyncio.IncompleteReadError) as fault:
            raise ProtocolError(str(fault)) from None

    def receive(self, pipe: socket.socket) -> M:
        """Return the next message from a blocking socket; raise ProtocolError as `read` does."""
        try:
            (length,) = LENGTH.unpack(_receive_exactly(pipe, LENGTH.size))
            _check_length(length, MAX_FRAME_BYTES)
            return self._unpack(_receive_exactly(pipe, length))
        except OSError as fault:
            raise ProtocolError(str(fault)) from None

    def _unpack(self, body: bytes) -> M:
        try:
            return self._decode(body)
        except msgspec.DecodeError as fault:
            raise ProtocolError(str(fault)) from None


def _check_length(length: int, max_bytes: int) -> None:
    if length > max_bytes:
        raise ProtocolError(f"a frame of {length:,} bytes; at most {max_bytes:,} are accepted")


def _receive_exactly(pipe: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = pipe.recv(count - len(parts))
        if not part:
            raise ProtocolError("the connection was closed")
        parts += part
    return bytes(parts)


def is_same_token(token: str, other: str) -> bool:
    """Return whether two tokens are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(token.encode(), other.encode())
