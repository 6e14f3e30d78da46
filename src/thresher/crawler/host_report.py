"""Report on the hosts of a crawl, which may be running: yield, queue and state of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct

from thresher.config import Config, load
from thresher.crawler.frontier.stored_queue import read_hosts
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.policy.yield_stats import DomainClosing, YieldStats, relaxations
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.errors import UsageError
from thresher.store.shard_layout import looked, state_folder
from thresher.urls import domain


class HostReport(Struct, frozen=True):
    """The counts and the state of one host."""

    host: str
    pages: int
    kept: int
    downloaded: int
    text_bytes: int
    rate: float = msgspec.field(name="yield")  # text bytes per byte downloaded
    promise: float = 0.0  # the expected yield of its next page
    queued: int = 0
    state: str = "open"  # or resting, or closed
    reason: str = ""  # why it is closed, or for how long it rests


def hosts(directory: Path, now: float) -> list[HostReport]:
    """Return every host that was ever queued as of the last commit, the highest yield first; `now` is wall time."""
    config = load(directory)

    def look(parts: list[Path]) -> list[list[HostReport]]:
        return [_from_state(state, config, now) for part in parts if (state := state_folder(part)).is_dir()]

    if not (found := looked(directory, config, look)):
        raise UsageError(f"{directory} has no hosts yet; crawl it first: thresher crawl {directory}")
    return sorted(
        chain.from_iterable(found),
        key=lambda host: (-host.rate, -host.text_bytes, host.downloaded, host.host),
    )


def _from_state(folder: Path, config: Config, now: float) -> list[HostReport]:
    """Return the hosts of one state."""
    state = KeyValueState(folder, read_only=True)
    try:
        polite = Politeness(state, config.polite, lambda: now)
        closing = DomainClosing(config.policy, config.budget, relaxations(state))
        return list(_hosts(state, closing, polite))
    finally:
        state.close()


def _hosts(state: KeyValueState, closing: DomainClosing, polite: Politeness) -> Iterator[HostReport]:
    yields = YieldStats(state)
    for name, stored in read_hosts(state):
        tally = yields.hosts[name]
        reason = polite.dead_reason(name) or closing.reason(tally, yields.domains[domain(name)])
        rest = 0.0 if reason else polite.remaining(name)
        yield HostReport(
            host=name,
            pages=tally.pages,
            kept=tally.kept,
            downloaded=tally.bytes,
            text_bytes=tally.text_bytes,
            rate=tally.rate,
            promise=yields.promise(name),
            queued=stored.queued,
            state="closed" if reason else "resting" if rest else "open",
            reason=reason or (f"{rest:.0f} s" if rest else ""),
        )
