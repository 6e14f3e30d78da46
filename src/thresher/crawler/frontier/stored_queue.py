"""The frontier on disk: the records of hosts and their queued candidates. No other module knows this format.

A candidate stands under its host, lane, rank and sequence number, so that the entries of a lane are sorted in the
order in which they are handed out. The record of a host counts its candidates and says in which lanes they are;
both are written in one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from thresher.crawler.storage.keys import HOSTS, NEXT_NUMBERS, QUEUE
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate

MAX_LANES = 256  # of a host, since the number of a lane is one byte

encode_candidate = msgspec.msgpack.Encoder().encode
decode_candidate = msgspec.msgpack.Decoder(Candidate).decode
_encode = msgspec.msgpack.Encoder().encode
_decode_numbers = msgspec.msgpack.Decoder(tuple[int, int]).decode


class StoredHost(NamedTuple):
    """The record of a host."""

    number: int
    queued: int  # candidates without an outcome
    lanes: int  # bit set of the lanes that hold them

    def lane_numbers(self) -> list[int]:
        """Return the lanes that hold candidates."""
        return [lane for lane in range(self.lanes.bit_length()) if self.lanes >> lane & 1]


_decode_host = msgspec.msgpack.Decoder(StoredHost).decode


def candidate_key(host: int, lane: int, rank: int, sequence: int) -> bytes:
    """Return the key of a candidate."""
    return lane_start(host, lane) + rank.to_bytes(1, "big") + sequence.to_bytes(8, "big")


def lane_start(host: int, lane: int) -> bytes:
    """Return the prefix of all keys of a lane."""
    return QUEUE + host.to_bytes(4, "big") + lane.to_bytes(1, "big")


def lane_end(host: int, lane: int) -> bytes:
    """Return the first key behind all keys of a lane."""
    return QUEUE + ((host << 8) + lane + 1).to_bytes(5, "big")


def read_hosts(state: KeyValueState) -> Iterator[tuple[str, StoredHost]]:
    """Yield name and record of every host that was ever queued, in no order."""
    for key, record in state.scan(HOSTS):
        yield key[len(HOSTS) :].decode(), _decode_host(record)


def read_host(state: KeyValueState, name: str) -> StoredHost | None:
    """Return the record of a host, None if it was never queued."""
    record = state.get(HOSTS + name.encode())
    return None if record is None else _decode_host(record)


def write_host(state: KeyValueState, name: str, host: StoredHost) -> None:
    """Put the record of a host into the next commit."""
    state.put(HOSTS + name.encode(), _encode(host))


def read_next_numbers(state: KeyValueState) -> tuple[int, int]:
    """Return the numbers of the next host and of the next candidate."""
    stored = state.get(NEXT_NUMBERS)
    return _decode_numbers(stored) if stored else (0, 0)


def write_next_numbers(state: KeyValueState, host: int, sequence: int) -> None:
    """Put the numbers of the next host and of the next candidate into the next commit."""
    state.put(NEXT_NUMBERS, _encode((host, sequence)))


def candidates(state: KeyValueState) -> Iterator[Candidate]:
    """Yield all queued candidates as of the last commit."""
    for _, value in state.entries(QUEUE):
        yield decode_candidate(value)


def candidates_of_host(state: KeyValueState, host: StoredHost) -> Iterator[Candidate]:
    """Yield the queued candidates of a host as of the last commit, lane by lane."""
    for _, value in state.committed(lane_start(host.number, 0), lane_start(host.number + 1, 0)):
        yield decode_candidate(value)


def drain(state: KeyValueState) -> Iterator[list[Candidate]]:
    """Empty all queues and yield their candidates in portions.

    Commit after each portion, with the new places of its candidates. No frontier may be open on the state, and
    after a crash the queues must be drained again before one is opened.
    """
    for portion in state.portions(QUEUE):
        for key, _ in portion:
            state.delete(key)
        yield [decode_candidate(value) for _, value in portion]
    for portion in state.portions(HOSTS):
        for key, record in portion:
            state.put(key, _encode(_decode_host(record)._replace(queued=0, lanes=0)))
        yield []


def remove(state: KeyValueState, covers: Callable[[str], bool], covers_host: Callable[[str], bool]) -> None:
    """Remove candidates with covered URLs, covered URLs of sources, and records of covered hosts.

    Commits host by host, so that the record of each agrees with its queue at any moment.
    """
    for name, host in list(read_hosts(state)):
        removed = left = 0
        for key, value in state.committed(lane_start(host.number, 0), lane_start(host.number + 1, 0)):
            candidate = decode_candidate(value)
            if covers(candidate.url):
                state.delete(key)
                removed += 1
                continue
            left |= 1 << key[len(QUEUE) + 4]
            if covers(candidate.source):
                state.put(key, encode_candidate(replace(candidate, source="")))
        if covers_host(name):
            state.delete(HOSTS + name.encode())
        elif removed:
            write_host(state, name, StoredHost(host.number, host.queued - removed, host.lanes & left))
        state.commit()
