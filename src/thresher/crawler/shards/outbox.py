"""Links for other shards, in numbered batches that are kept in the state until the receiver has acknowledged them.

A batch joins the commit of the pages that its links stand on. It is sent when that commit is durable, and again
whenever a connection is made, from the first batch that the receiver has not acknowledged. The receiver counts the
batches it has in the commit that holds their links. So batches are delivered at least once, and each counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from thresher.crawler.storage.keys import OUTBOX, OUTBOX_COUNTS
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate
from thresher.store.shard_layout import Shard, owner
from thresher.urls import host as host_of

_encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[Candidate]).decode


class OutboxCounts(Struct, array_like=True):
    """Numbers of the last batches to and from each shard."""

    written: dict[int, int] = field(default_factory=dict)  # the last batch to a shard
    acknowledged: dict[int, int] = field(default_factory=dict)  # the last batch that is durable there
    received: dict[int, int] = field(default_factory=dict)  # the last batch from a shard


class Outbox:
    """Batches to other shards, and the numbers of batches from them."""

    def __init__(self, state: KeyValueState, shard: Shard) -> None:
        self._state = state
        self._shard = shard
        stored = state.get(OUTBOX_COUNTS)
        self._counts = msgspec.msgpack.decode(stored, type=OutboxCounts) if stored else OutboxCounts()
        self._open: dict[int, list[Candidate]] = {}  # by shard, links that are in no batch yet
        self._durable = self._copy_of_counts()

    def route(self, links: Sequence[Candidate]) -> list[Candidate]:
        """Put links into the next batches to their shards; return the links to hosts of this shard."""
        own = []
        for link in links:
            number = owner(host_of(link.url), self._shard.count)
            if number == self._shard.number:
                own.append(link)
            else:
                self._open.setdefault(number, []).append(link)
        return own

    def flush(self) -> None:
        """Close the batches and put everything into the state's next commit."""
        for shard, links in self._open.items():
            number = self._counts.written.get(shard, 0) + 1
            self._counts.written[shard] = number
            self._state.put(_key(shard, number), _encode(links))
        self._open = {}
        self._state.put(OUTBOX_COUNTS, _encode(self._counts))

    def committed(self) -> OutboxCounts:
        """Return the counts of the commit just made, for `durable` once it survives a loss of this process."""
        return self._copy_of_counts()

    def durable(self, counts: OutboxCounts) -> None:
        """Allow batches of that commit to be sent, and batches received before it to be acknowledged."""
        self._durable = counts

    def _copy_of_counts(self) -> OutboxCounts:
        return msgspec.msgpack.decode(_encode(self._counts), type=OutboxCounts)

    # to others

    def to_send(self, shard: int, last: int) -> Iterator[tuple[int, bytes]]:
        """Yield number and content of the durable batches to a shard after batch `last`."""
        stored = self._state.committed(
            _key(shard, last + 1), _key(shard, self._durable.written.get(shard, 0) + 1)
        )
        return ((int.from_bytes(key[-8:], "big"), value) for key, value in stored)

    def acknowledge(self, shard: int, number: int) -> None:
        """Delete all batches to a shard up to that number, which are durable there."""
        first = self._counts.acknowledged.get(shard, 0) + 1
        for batch in range(first, min(number, self._counts.written.get(shard, 0)) + 1):
            self._state.delete(_key(shard, batch))
            self._counts.acknowledged[shard] = batch

    @property
    def outstanding(self) -> int:
        """Number of batches, open ones included, that are not acknowledged."""
        written, acknowledged = sum(self._counts.written.values()), sum(self._counts.acknowledged.values())
        return written - acknowledged + len(self._open)

    # from others

    def next_from(self, shard: int) -> int:
        """Return the number of the batch that is expected from a shard."""
        return self._counts.received.get(shard, 0) + 1

    def receive(self, shard: int, number: int) -> None:
        """Count a batch; its links join the next commit."""
        self._counts.received[shard] = number

    def durable_from(self, shard: int) -> int:
        """Return the number of the last batch from a shard that survives a loss of this process."""
        return self._durable.received.get(shard, 0)

    @property
    def received(self) -> int:
        """Number of batches that were received from all shards."""
        return sum(self._counts.received.values())


def _key(shard: int, number: int) -> bytes:
    return OUTBOX + shard.to_bytes(2, "big") + number.to_bytes(8, "big")


def waiting_candidates(state: KeyValueState) -> Iterator[Candidate]:
    """Yield all links that are on their way to other shards, as of the last commit."""
    for _, value in state.entries(OUTBOX):
        yield from decode(value)


def remove(state: KeyValueState, covers: Callable[[str], bool]) -> None:
    """Remove links to covered URLs, and covered URLs of sources, and commit.

    Empty batches stay: the receiver expects their numbers without a gap.
    """
    for key, value in state.entries(OUTBOX):
        links = decode(value)
        left = [
            replace(link, source="") if covers(link.source) else link
            for link in links
            if not covers(link.url)
        ]
        if left != links:
            state.put(key, _encode(left))
    state.commit()
