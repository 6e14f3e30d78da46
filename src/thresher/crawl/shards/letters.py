"""Links for other shards, in numbered letters: kept in the state until they are safe with those they are for.

A letter is in the commit of the pages that its links stand on. It is sent when that is durable, and again whenever
a connection is made, from the first that the receiver does not have for certain; the receiver counts what it has in
the commit that holds the links. So every link arrives, and none counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct, field

from thresher.crawl.state import State
from thresher.page import Candidate
from thresher.store.shards import Shard, owner
from thresher.url import host as host_of

LETTER = b"o"  # o shard number -> candidates of a letter that may not have arrived
COUNTS = b"m/letters"

_encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[Candidate]).decode


class Counts(Struct, array_like=True):
    """Numbers of letters to and from each shard."""

    written: dict[int, int] = field(default_factory=dict)  # the last one to it
    arrived: dict[int, int] = field(
        default_factory=dict
    )  # … of those, the last that is known to be safe there
    received: dict[int, int] = field(default_factory=dict)  # the last one from it


class Letters:
    """What is for others, and what came from them."""

    def __init__(self, state: State, shard: Shard) -> None:
        self._state = state
        self._shard = shard
        stored = state.get(COUNTS)
        self._counts = msgspec.msgpack.decode(stored, type=Counts) if stored else Counts()
        self._open: dict[int, list[Candidate]] = {}  # by shard, links that no letter holds yet
        self._committed = self._durable = msgspec.convert(msgspec.to_builtins(self._counts), Counts)

    def add(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Put links into the next letters to their shards; returns those that are ours."""
        own = []
        for candidate in candidates:
            number = owner(host_of(candidate.url), self._shard.count)
            if number == self._shard.number:
                own.append(candidate)
            else:
                self._open.setdefault(number, []).append(candidate)
        return own

    def flush(self) -> None:
        """Close the letters, and hand everything to the state's next commit."""
        for shard, candidates in self._open.items():
            number = self._counts.written.get(shard, 0) + 1
            self._counts.written[shard] = number
            self._state.put(_key(shard, number), _encode(candidates))
        self._open = {}
        self._state.put(COUNTS, _encode(self._counts))

    def committed(self) -> Counts:
        """What was flushed is committed: to be told to `durable` once it is safe as well."""
        self._committed = msgspec.msgpack.decode(_encode(self._counts), type=Counts)
        return self._committed

    def durable(self, counts: Counts) -> None:
        """What was committed then survives whatever happens to us: it may be sent, and receipts be given."""
        self._durable = counts

    # to others

    def to_send(self, shard: int, last: int) -> Iterator[tuple[int, bytes]]:
        """The letters to a shard after one, as far as they are durable."""
        stored = self._state.committed(
            _key(shard, last + 1), _key(shard, self._durable.written.get(shard, 0) + 1)
        )
        return ((int.from_bytes(key[-8:], "big"), value) for key, value in stored)

    def settle(self, shard: int, number: int) -> None:
        """All letters to a shard up to that one are safe there."""
        first = self._counts.arrived.get(shard, 0) + 1
        for settled in range(first, min(number, self._counts.written.get(shard, 0)) + 1):
            self._state.delete(_key(shard, settled))
            self._counts.arrived[shard] = settled

    @property
    def outstanding(self) -> int:
        """Letters, and links that no letter holds yet, that may not have arrived."""
        written, arrived = sum(self._counts.written.values()), sum(self._counts.arrived.values())
        return written - arrived + len(self._open)

    # from others

    def next_from(self, shard: int) -> int:
        """The number of the letter that is expected of a shard."""
        return self._counts.received.get(shard, 0) + 1

    def receive(self, shard: int, number: int) -> None:
        """The links of a letter join the next commit."""
        self._counts.received[shard] = number

    def safe_from(self, shard: int) -> int:
        """The last letter of a shard that survives whatever happens to us."""
        return self._durable.received.get(shard, 0)

    @property
    def received(self) -> int:
        """How many letters came in all."""
        return sum(self._counts.received.values())


def _key(shard: int, number: int) -> bytes:
    return LETTER + shard.to_bytes(2, "big") + number.to_bytes(8, "big")
