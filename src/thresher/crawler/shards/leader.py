"""Decisions of the coordinator, without network and with a clock that is given.

A shard is *vacant* until its process is started, *starting* until that process sends a heartbeat, and *running*
while heartbeats continue. A shard is vacant again when its process died or was silent for longer than its lease,
with the number of a new epoch. Its process is started only when all running shards have confirmed that number:
from then on none of them accepts a message of the earlier process, which may be suspended rather than dead.

The crawl is over when all shards are idle with empty outboxes, and each has reported so in two consecutive rounds
without having received a batch of links in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from thresher.config import BudgetSettings
from thresher.crawler.shards.protocol import Heartbeat, HeartbeatReply, Peer
from thresher.crawler.stop_reasons import NO_HOST_REACHED, Budget, Ending, waiting
from thresher.errors import CrawlError

LEASE_MARGIN = 1.1  # a lease is longer here than at the shard by this factor, since clocks do not run alike
START_TIMEOUT_S = 120.0  # for the engine to place a process and for the process to send a heartbeat
MAX_DEATHS = 4  # of a shard that committed nothing in between
MIN_GRANT, MAX_GRANT = 10, 1_000  # pages that are granted at once
GRANTS_PER_SHARD = 4  # a grant is this part of a shard's share of the pages left


class ShardStatus(Struct):
    """The state of one shard as the coordinator knows it."""

    epoch: int
    standing: Literal["vacant", "starting", "running"] = "vacant"
    heard: float = 0.0  # time of the last heartbeat, or of the start
    address: str = ""
    port: int = 0
    version: int = 0  # of the list of shards that it knows
    deaths: int = 0  # since it last made progress
    outcomes_at_start: int | None = None
    online: bool = False  # whether any host has replied to it
    moves: bool = False  # it is to be started on another machine
    fetched: int = 0
    granted: int = 0  # pages that it may fetch beyond the fetched ones
    starves: bool = False  # it requested pages and got none
    has_begun: bool = False  # it has requested pages, or was idle
    downloaded: int = 0
    idle: Ending | None = None
    received: int = 0  # batches of links
    outbox: int = 0  # batches that may not have arrived
    status: dict[str, Any] | None = None


class Leader:
    """The state of all shards, and the decisions that follow from it."""

    def __init__(
        self,
        epochs: list[int],
        budget: BudgetSettings,
        lease: float,
        clock: Callable[[], float],
        *,
        fetched: list[int] | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Begin with vacant shards; `fetched` and `seconds` were spent by earlier runs of the crawl."""
        self.shards = [ShardStatus(epoch) for epoch in epochs]
        for shard, pages in zip(self.shards, fetched or [0] * len(epochs), strict=True):
            shard.fetched = pages
        self._budget = budget
        self._lease = lease
        self._clock = clock
        self._began = clock() - seconds
        self.version = 1
        self._quiet_since: float | None = None
        self._received: list[int] = []
        self.ending: Ending | None = None

    # processes

    def to_start(self) -> list[int]:
        """Return the vacant shards with epochs that all running shards have confirmed."""
        if self.ending:
            return []
        # A shard without a port accepts no messages yet, and learns of all epochs before it does.
        confirmed = all(
            shard.version == self.version
            for shard in self.shards
            if shard.standing == "running" and shard.port
        )
        return [
            number for number, shard in enumerate(self.shards) if shard.standing == "vacant" and confirmed
        ]

    def started(self, number: int) -> None:
        """Take note that the process of a shard was started."""
        shard = self.shards[number]
        shard.standing, shard.heard, shard.version = "starting", self._clock(), 0

    def vacate(self, number: int, epoch: int, why: str = "") -> None:
        """Give up the process of a shard; the next one works in `epoch`. Raise CrawlError if too many have died."""
        before = self.shards[number]
        if before.deaths + 1 >= MAX_DEATHS:
            raise CrawlError(
                f"shard {number} was lost {MAX_DEATHS} times without any progress"
                f"{f'; the last time, {why}' if why else ''}. Everything reported so far is safe"
            )
        self.shards[number] = ShardStatus(
            epoch, deaths=before.deaths + 1, fetched=before.fetched, status=before.status
        )
        self.version += 1
        self._quiet_since = None

    @property
    def is_stable(self) -> bool:
        """True if all shards are running and the crawl is not ending."""
        return self.ending is None and all(shard.standing == "running" for shard in self.shards)

    def move(self, number: int) -> None:
        """Let a shard commit and end, to be started on another machine."""
        self.shards[number].moves = True

    def silent(self) -> list[int]:
        """Return the shards with an ended lease, or with a process that never sent a heartbeat."""
        now = self._clock()
        patience = {
            "vacant": float("inf"),
            "starting": START_TIMEOUT_S,
            "running": LEASE_MARGIN * self._lease,
        }
        return [
            number for number, shard in enumerate(self.shards) if now - shard.heard > patience[shard.standing]
        ]

    # heartbeats

    def receive(self, heartbeat: Heartbeat, address: str) -> HeartbeatReply | None:
        """Return the reply to a heartbeat, None if its sender is superseded."""
        if not 0 <= heartbeat.shard < len(self.shards):
            return None
        shard = self.shards[heartbeat.shard]
        if shard.epoch != heartbeat.epoch:
            return None
        if (shard.standing, shard.address, shard.port) != ("running", address, heartbeat.port):
            self.version += 1
        shard.standing, shard.heard = "running", self._clock()
        shard.address, shard.port = address, heartbeat.port
        shard.version, shard.idle = heartbeat.version, heartbeat.idle
        shard.has_begun = shard.has_begun or heartbeat.requests_pages or heartbeat.idle is not None
        if heartbeat.port:  # otherwise its state is not open yet, or not any more
            if shard.outcomes_at_start is None:
                shard.outcomes_at_start = heartbeat.outcomes
            elif heartbeat.outcomes > shard.outcomes_at_start:
                shard.deaths = 0
            shard.online = heartbeat.online
            shard.fetched, shard.granted = heartbeat.fetched, heartbeat.granted
            shard.downloaded = heartbeat.downloaded
            shard.received, shard.outbox = heartbeat.received, heartbeat.outbox
            shard.status = heartbeat.status or shard.status
        self.check_end()
        grant = self._grant(heartbeat)
        shard.granted += grant
        shard.starves = heartbeat.requests_pages and not grant
        others_starve = any(other.starves for other in self.shards)
        return HeartbeatReply(
            version=self.version,
            peers=None if heartbeat.version == self.version else self._peers(),
            grant=grant,
            limited=self._budget.max_pages > 0,
            online=self._is_online,
            return_pages=not heartbeat.requests_pages and shard.granted > 0 and others_starve,
            ending=self.ending or (Ending("interrupted") if shard.moves else None),
        )

    @property
    def _is_online(self) -> bool:
        return any(shard.online for shard in self.shards)

    def _is_idle(self, shard: ShardStatus) -> bool:
        """Return whether a shard has nothing to do.

        A shard that reached no host tries again once hosts have replied to others, so it is not idle then.
        """
        is_idle = shard.idle is not None and not (shard.idle == NO_HOST_REACHED and self._is_online)
        return shard.standing == "running" and is_idle and not shard.outbox

    def _peers(self) -> list[Peer]:
        return [Peer(shard.epoch, shard.address, shard.port) for shard in self.shards]

    # budgets

    def _grant(self, heartbeat: Heartbeat) -> int:
        """Return how many more pages a shard may fetch."""
        left = self._budget.max_pages - sum(
            shard.fetched + shard.granted + self._reserved_for(shard) for shard in self.shards
        )
        portion = min(max(left // (GRANTS_PER_SHARD * len(self.shards)), MIN_GRANT), MAX_GRANT)
        return min(portion, left) if heartbeat.port and heartbeat.requests_pages and left > 0 else 0

    def _reserved_for(self, shard: ShardStatus) -> int:
        """Return the pages that are kept for a shard until it begins, so that faster ones do not take all."""
        if shard.has_begun:
            return 0
        return max(self._budget.max_pages // len(self.shards) - shard.fetched - shard.granted, 0)

    def spent(self) -> Budget | None:
        """Return the budget that is spent, None if none is."""
        budget, shards = self._budget, self.shards
        if 0 < budget.max_pages <= sum(shard.fetched for shard in shards):
            return "page budget"
        if 0 < budget.max_bytes <= sum(shard.downloaded for shard in shards):
            return "byte budget"
        return "time budget" if 0 < budget.max_time <= self._clock() - self._began else None

    # the end

    def stop(self) -> None:
        """End now: everything is committed, and URLs under way stay queued."""
        self.ending = self.ending or Ending("interrupted")

    def check_end(self) -> None:
        """Decide whether the crawl is over."""
        if self.ending:
            return
        if spent := self.spent():
            self.ending = Ending(spent)
        elif not all(map(self._is_idle, self.shards)):
            self._quiet_since = None
        elif (
            received := [shard.received for shard in self.shards]
        ) != self._received or self._quiet_since is None:
            self._quiet_since, self._received = self._clock(), received
        elif all(shard.heard > self._quiet_since for shard in self.shards):
            self.ending = _common_ending([shard.idle for shard in self.shards if shard.idle])


def _common_ending(reasons: list[Ending]) -> Ending:
    """Return why a crawl ends when all shards are idle for these reasons."""
    if NO_HOST_REACHED in reasons:
        return NO_HOST_REACHED
    if dry := [each for each in reasons if each.reason == "dry"]:
        return dry[0]
    if resting := [each for each in reasons if each.reason == "waiting"]:
        return waiting(sum(each.urls for each in resting), min(each.seconds for each in resting))
    return reasons[0]
