"""The state of a crawl without some URLs: what waits, what is known of hosts, which pages were first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

import msgspec
from msgspec.structs import replace

from thresher.crawl.frontier import HOSTS, QUEUE, decode_host
from thresher.crawl.ledger import CLAIMED, FILES, RAW, TEXT
from thresher.crawl.shards.letters import LETTER
from thresher.crawl.shards.letters import decode as decode_letter
from thresher.crawl.stash import COUNTS, WAITS, Counts
from thresher.crawl.state import State, after
from thresher.page import Candidate
from thresher.store.forgotten import Meant

OF_HOSTS, OF_DOMAINS = (b"yh/", b"p/"), b"yd/"  # what hosts and domains gave, and how they are to be treated
COMMITTED_AT_ONCE = 50_000  # changes that are in memory

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Candidate).decode
_number = msgspec.msgpack.Decoder(int).decode


def count_waiting(state: State, meant: Meant) -> int:
    """How many of the URLs that wait are meant."""
    return sum(meant.covers(candidate.url) for _, candidate in _waiting(state))


def clear_queues(state: State, meant: Meant) -> None:
    """Take URLs that are meant out of all queues, and what is known of their hosts; committed as it goes.

    A kill in between leaves queues that are as good as before: whoever begins anew comes to the same end.
    """
    _clear_stash(state, meant)
    _clear_frontier(state, meant)
    _clear_letters(state, meant)
    for key, url in _entries(state, CLAIMED):
        if meant.covers(url.decode()):
            state.delete(key)
    for prefix in (HOSTS, *OF_HOSTS, OF_DOMAINS):
        covers = meant.covers_domain if prefix == OF_DOMAINS else meant.covers_host
        for key, _ in _entries(state, prefix):
            if covers(key[len(prefix) :].decode()):
                state.delete(key)
    state.commit()


def _clear_frontier(state: State, meant: Meant) -> None:
    """Host by host, so that the record of each tells at any moment what waits there."""
    for host_key, record in list(_entries(state, HOSTS)):
        number, queued, lanes = decode_host(record)
        first = QUEUE + number.to_bytes(4, "big")
        gone, left = 0, 0
        for key, value in state.committed(first, QUEUE + (number + 1).to_bytes(4, "big")):
            candidate = _decode(value)
            if meant.covers(candidate.url):
                state.delete(key)
                gone += 1
                continue
            left |= 1 << key[len(first)]
            if meant.covers(candidate.source):
                state.put(key, _encode(replace(candidate, source="")))
        if gone:
            state.put(host_key, _encode((number, queued - gone, lanes & left)))
        state.commit()


def _clear_stash(state: State, meant: Meant) -> None:
    counts = msgspec.msgpack.decode(state.get(COUNTS) or _encode(Counts()), type=Counts)
    entries = _entries(state, WAITS)
    while portion := list(islice(entries, COMMITTED_AT_ONCE)):
        for key, value in portion:
            candidate = _decode(value)
            if meant.covers(candidate.url):
                state.delete(key)
                counts.waiting -= 1
                counts.closed = min(counts.closed, counts.waiting)
            elif meant.covers(candidate.source):
                state.put(key, _encode(replace(candidate, source="")))
        state.put(COUNTS, _encode(counts))
        state.commit()


def _clear_letters(state: State, meant: Meant) -> None:
    """What is on its way to other shards; a letter stays, if only as a number."""
    for key, value in _entries(state, LETTER):
        found = decode_letter(value)
        left = [
            replace(one, source="") if meant.covers(one.source) else one
            for one in found
            if not meant.covers(one.url)
        ]
        if left != found:
            state.put(key, _encode(left))
    state.commit()


def commit_files(state: State, files: Mapping[str, int | None], numbers: Collection[int]) -> None:
    """From now on these files count, and the pages with these numbers were never seen: all of it at once."""
    for prefix in (RAW, TEXT):
        for key, value in _entries(state, prefix):
            if _number(value) in numbers:
                state.delete(key)
    state.put(FILES, _encode(dict(files)))
    state.commit()


def _waiting(state: State) -> Iterator[tuple[bytes, Candidate]]:
    for prefix in (QUEUE, WAITS):
        for key, value in _entries(state, prefix):
            yield key, _decode(value)
    for key, value in _entries(state, LETTER):
        for candidate in decode_letter(value):
            yield key, candidate


def _entries(state: State, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    return state.committed(prefix, after(prefix))
