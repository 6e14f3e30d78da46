"""The hosts of a crawl: what each gave, what waits there, and whether it is visited still; also from outside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct

from thresher.config import Config, ConfigError, load
from thresher.crawl.frontier import HOSTS, decode_host
from thresher.crawl.politeness import Politeness
from thresher.crawl.state import State
from thresher.crawl.yields import Closing, Yields, eased
from thresher.store.shards import looked, state_folder
from thresher.url import domain


class Host(Struct, frozen=True):
    """One host in figures."""

    host: str
    pages: int
    kept: int
    downloaded: int
    text_bytes: int
    rate: float = msgspec.field(name="yield")  # text bytes per byte downloaded
    promise: float = 0.0  # the yield to expect of its next page
    queued: int = 0
    state: str = "open"  # or resting, or closed
    reason: str = ""  # why it is closed, or for how long it rests


def hosts(directory: Path, now: float) -> list[Host]:
    """Every host that was ever queued, those with the highest yield first, as of the last commit."""
    config = load(directory)

    def look(parts: list[Path]) -> list[list[Host]]:
        return [_told(state, config, now) for part in parts if (state := state_folder(part)).is_dir()]

    if not (found := looked(directory, config, look)):
        raise ConfigError(f"{directory} has no hosts yet; crawl it first: thresher crawl {directory}")
    return sorted(
        chain.from_iterable(found),
        key=lambda host: (-host.rate, -host.text_bytes, host.downloaded, host.host),
    )


def _told(folder: Path, config: Config, now: float) -> list[Host]:
    """The hosts that one state knows."""
    state = State(folder, read_only=True)
    try:
        polite = Politeness(state, config.polite, lambda: now)
        closing = Closing(config.policy, config.budget, eased(state))
        return list(_hosts(state, closing, polite))
    finally:
        state.close()


def _hosts(state: State, closing: Closing, polite: Politeness) -> Iterator[Host]:
    yields = Yields(state)
    for key, record in state.scan(HOSTS):
        name = key[len(HOSTS) :].decode()
        _, queued, _ = decode_host(record)
        tally = yields.hosts[name]
        reason = polite.dead(name) or closing.reason(tally, yields.domains[domain(name)])
        rest = 0.0 if reason else polite.remaining(name)
        yield Host(
            host=name,
            pages=tally.pages,
            kept=tally.kept,
            downloaded=tally.bytes,
            text_bytes=tally.text_bytes,
            rate=tally.rate,
            promise=yields.promise(name),
            queued=queued,
            state="closed" if reason else "resting" if rest else "open",
            reason=reason or (f"{rest:.0f} s" if rest else ""),
        )
