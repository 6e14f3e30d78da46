"""What is said between shards, and between a shard and the coordinator; and how it travels: msgpack in frames."""

from __future__ import annotations

import asyncio
import hmac
import socket
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from thresher.crawl.ending import Ending

M = TypeVar("M")

LENGTH = struct.Struct("!I")
LONGEST = 256 << 20  # bytes of a frame; a longer one is nobody's we know …
FIRST = 1 << 20  # … and of the first frame of somebody whose token was not seen yet


class Broken(Exception):
    """What came is nothing that we say; the connection is of no use any more."""


# between shards


class Hello(Struct, frozen=True, tag=True):
    """Who is calling, and in which epoch; answered by the same, with the last letter that is safe there."""

    token: str
    shard: int
    epoch: int
    letter: int = 0


class Letter(Struct, frozen=True, tag=True):
    """Links to hosts of the other shard: all that one commit held, numbered without a gap."""

    number: int
    candidates: bytes  # as they stand in the sender's state


class Receipt(Struct, frozen=True, tag=True):
    """All letters up to this one are safe with the receiver."""

    number: int


class MayVisit(Struct, frozen=True, tag=True):
    """Whether a request may go to an address now; the answer: seconds to wait, and if there are none, it goes."""

    address: str


class WhoHas(Struct, frozen=True, tag=True):
    """Who was the first with a text; the answer: nobody (""), and from now on it is that URL."""

    text_hash: bytes
    url: str


class Question(Struct, frozen=True, tag=True):
    """Something that only the other shard can tell."""

    number: int
    about: MayVisit | WhoHas


class Answer(Struct, frozen=True, tag=True):
    number: int
    value: float | str


BetweenShards = Hello | Letter | Receipt | Question | Answer


# between a shard and the coordinator


class Beat(Struct, frozen=True):
    """What a shard says of itself, once a second or so."""

    token: str
    shard: int
    epoch: int
    port: int = 0  # where other shards reach it; 0: it is still being opened
    version: int = 0  # of the list of shards that it goes by
    fetched: int = 0  # pages, of all its runs …
    holds: int = 0  # … and how many more it may fetch
    asks: bool = False  # for more
    downloaded: int = 0  # bytes
    outcomes: int = 0  # of URLs, of all its runs
    reached: bool = False  # whether any host has answered
    idle: Ending | None = None  # why it has nothing to do, if that is so
    received: int = 0  # letters, of all its runs
    outbox: int = 0  # letters not known to be safe with their receivers
    status: dict[str, Any] | None = None  # its figures, if they are new


class Peer(Struct, frozen=True):
    """Where a shard is."""

    epoch: int
    address: str = ""
    port: int = 0  # 0: nowhere just now


class Word(Struct, frozen=True):
    """What the coordinator says in return."""

    version: int
    peers: list[Peer] | None = None  # if they are new to the shard
    grant: int = 0  # pages more
    limited: bool = False  # whether pages must be granted at all
    reached: bool = False  # whether any host has answered any shard
    returns: bool = False  # those granted before that are not under way: others want them
    ending: Ending | None = None  # of the whole crawl, or of this shard here


# how it travels


class Frames(Generic[M]):
    """Messages of a kind as frames: four bytes of length, then msgpack."""

    def __init__(self, kind: Any) -> None:
        self._decode: Callable[[bytes], M] = msgspec.msgpack.Decoder(kind).decode
        self._encode = msgspec.msgpack.Encoder().encode

    def pack(self, message: Any) -> bytes:
        body = self._encode(message)
        return LENGTH.pack(len(body)) + body

    async def read(self, reader: asyncio.StreamReader, longest: int = LONGEST) -> M:
        """The next message. Broken: there is none, or nothing that we know."""
        try:
            (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
            _check(length, longest)
            return self._unpack(await reader.readexactly(length))
        except (OSError, asyncio.IncompleteReadError) as fault:
            raise Broken(str(fault)) from None

    def receive(self, pipe: socket.socket) -> M:
        """The next message of a socket that blocks."""
        try:
            (length,) = LENGTH.unpack(_exactly(pipe, LENGTH.size))
            _check(length, LONGEST)
            return self._unpack(_exactly(pipe, length))
        except OSError as fault:
            raise Broken(str(fault)) from None

    def _unpack(self, body: bytes) -> M:
        try:
            return self._decode(body)
        except msgspec.DecodeError as fault:
            raise Broken(str(fault)) from None


def _check(length: int, longest: int) -> None:
    if length > longest:
        raise Broken(f"a frame of {length:,} bytes")


def _exactly(pipe: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = pipe.recv(count - len(parts))
        if not part:
            raise Broken("the other side has gone")
        parts += part
    return bytes(parts)


def same(token: str, other: str) -> bool:
    """Whether somebody knows the token, told in a time that gives nothing away."""
    return hmac.compare_digest(token.encode(), other.encode())
