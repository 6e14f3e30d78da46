"""Who leads the shards of a crawl, as far as it is a matter of deciding: no network, and no clock but one given.

A shard is *vacant* until it is started, *called* until it speaks, then *present* while it does so again and again.
One that has died, or was not heard of for longer than its lease, is vacant, under the number of a new epoch. It is
started anew when all that are present know of that number: from then on nobody heeds its forerunner, who may only
have slept.

A crawl is over when all have nothing to do and no letter is on its way, and every one of them has said so twice
without having received a letter in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from thresher.config import Budget
from thresher.crawl.ending import NOBODY_REACHED, CrawlFault, Ending, waiting
from thresher.crawl.shards.messages import Beat, Peer, Word

MARGIN = 1.1  # by which a lease is longer here than there: clocks do not run alike
CALLED_SECONDS = 120.0  # for a process to be found a place and to start
MAX_DEATHS = 4  # of a shard that committed nothing in between
LEAST, MOST = 10, 1_000  # pages that are granted at once …
PORTIONS = 4  # … or so many times as much is left for each shard


class Seat(Struct):
    """One shard, as it is known here."""

    epoch: int
    standing: Literal["vacant", "called", "present"] = "vacant"
    heard: float = 0.0  # when it last spoke, or was called
    address: str = ""
    port: int = 0
    version: int = 0  # of the list of shards that it knows
    deaths: int = 0  # since it last got anything done
    begun_with: int | None = None  # outcomes, when its books were opened
    reached: bool = False  # whether any host has answered
    moves: bool = False  # is to be started elsewhere
    fetched: int = 0
    granted: int = 0  # pages it may fetch beyond those
    starves: bool = False  # asked for more, and there were none
    begun: bool = False  # has asked for some, or had nothing to do
    downloaded: int = 0
    idle: Ending | None = None
    received: int = 0  # letters …
    outbox: int = 0  # … and those it has sent that may still be on their way
    status: dict[str, Any] | None = None


class Lead:
    """What is known of all shards, and what follows from it."""

    def __init__(
        self,
        epochs: list[int],
        budget: Budget,
        lease: float,
        clock: Callable[[], float],
        *,
        fetched: list[int] | None = None,
        seconds: float = 0.0,
    ) -> None:
        """`fetched`, `seconds`: what the crawl had already spent when it was last stopped."""
        self.seats = [Seat(epoch) for epoch in epochs]
        for seat, pages in zip(self.seats, fetched or [0] * len(epochs), strict=True):
            seat.fetched = pages
        self._budget = budget
        self._lease = lease
        self._clock = clock
        self._began = clock() - seconds
        self.version = 1
        self._quiet_since: float | None = None
        self._received: list[int] = []
        self.ending: Ending | None = None

    # who is there

    def to_start(self) -> list[int]:
        """Shards that may be started: all others know that whoever had their hosts before is not to be heeded."""
        if self.ending:
            return []
        # Who has no port yet hears nobody, and learns of all before it does.
        known = all(
            seat.version == self.version for seat in self.seats if seat.standing == "present" and seat.port
        )
        return [number for number, seat in enumerate(self.seats) if seat.standing == "vacant" and known]

    def call(self, number: int) -> None:
        """A shard was started."""
        seat = self.seats[number]
        seat.standing, seat.heard, seat.version = "called", self._clock(), 0

    def vacate(self, number: int, epoch: int, why: str = "") -> None:
        """A shard is no more; the next one has that epoch."""
        before = self.seats[number]
        if before.deaths + 1 >= MAX_DEATHS:
            raise CrawlFault(
                f"shard {number} was lost {MAX_DEATHS} times without having done anything"
                f"{f'; the last time, {why}' if why else ''}. Everything reported so far is safe"
            )
        self.seats[number] = Seat(
            epoch, deaths=before.deaths + 1, fetched=before.fetched, status=before.status
        )
        self.version += 1
        self._quiet_since = None

    @property
    def is_well(self) -> bool:
        """Whether all are there, and nothing is to end."""
        return self.ending is None and all(seat.standing == "present" for seat in self.seats)

    def move(self, number: int) -> None:
        """Have a shard commit and end, to be started elsewhere."""
        self.seats[number].moves = True

    def silent(self) -> list[int]:
        """Shards whose lease is over, or that were called and never came."""
        now = self._clock()
        patience = {"vacant": float("inf"), "called": CALLED_SECONDS, "present": MARGIN * self._lease}
        return [
            number for number, seat in enumerate(self.seats) if now - seat.heard > patience[seat.standing]
        ]

    # what they say

    def hear(self, beat: Beat, address: str) -> Word | None:
        """What a shard is told in return; None: it is not that shard any more."""
        if not 0 <= beat.shard < len(self.seats) or self.seats[beat.shard].epoch != beat.epoch:
            return None
        seat = self.seats[beat.shard]
        if (seat.standing, seat.address, seat.port) != ("present", address, beat.port):
            self.version += 1
        seat.standing, seat.heard, seat.address, seat.port = "present", self._clock(), address, beat.port
        seat.version, seat.idle = beat.version, beat.idle
        seat.begun = seat.begun or beat.asks or beat.idle is not None
        if beat.port:  # or its books are not open yet, or not any more
            if seat.begun_with is None:
                seat.begun_with = beat.outcomes
            elif beat.outcomes > seat.begun_with:
                seat.deaths = 0
            seat.reached = beat.reached
            seat.fetched, seat.granted, seat.downloaded = beat.fetched, beat.holds, beat.downloaded
            seat.received, seat.outbox = beat.received, beat.outbox
            seat.status = beat.status or seat.status
        self.look()
        grant = self._grant(beat)
        seat.granted += grant
        seat.starves = beat.asks and not grant
        return Word(
            self.version,
            None if beat.version == self.version else self._peers(),
            grant,
            self._budget.pages > 0,
            self._is_reached,
            not beat.asks and seat.granted > 0 and any(other.starves for other in self.seats),
            self.ending or (Ending("interrupted") if seat.moves else None),
        )

    @property
    def _is_reached(self) -> bool:
        return any(seat.reached for seat in self.seats)

    def _is_idle(self, seat: Seat) -> bool:
        """Whether a shard has nothing to do; what it could not reach it tries again where others have answers."""
        is_idle = seat.idle is not None and not (seat.idle == NOBODY_REACHED and self._is_reached)
        return seat.standing == "present" and is_idle and not seat.outbox

    def _peers(self) -> list[Peer]:
        return [Peer(seat.epoch, seat.address, seat.port) for seat in self.seats]

    # budgets

    def _grant(self, beat: Beat) -> int:
        """Pages that a shard may fetch beyond those it was granted before."""
        left = self._budget.pages - sum(
            seat.fetched + seat.granted + self._kept_for(seat) for seat in self.seats
        )
        portion = min(max(left // (PORTIONS * len(self.seats)), LEAST), MOST)
        return min(portion, left) if beat.port and beat.asks and left > 0 else 0

    def _kept_for(self, seat: Seat) -> int:
        """Pages that are left to a shard until it begins: others that begin sooner shall not take all."""
        return (
            0 if seat.begun else max(self._budget.pages // len(self.seats) - seat.fetched - seat.granted, 0)
        )

    def spent(self) -> str:
        """The budget that is spent, or ""."""
        budget, seats = self._budget, self.seats
        if 0 < budget.pages <= sum(seat.fetched for seat in seats):
            return "page budget"
        if 0 < budget.bytes <= sum(seat.downloaded for seat in seats):
            return "byte budget"
        return "time budget" if 0 < budget.seconds <= self._clock() - self._began else ""

    # the end

    def stop(self) -> None:
        """End now: everything is committed, and what is under way stays queued."""
        self.ending = self.ending or Ending("interrupted")

    def look(self) -> None:
        """See whether the crawl is over."""
        if self.ending:
            return
        if spent := self.spent():
            self.ending = Ending(spent)
        elif not all(map(self._is_idle, self.seats)):
            self._quiet_since = None
        elif (
            received := [seat.received for seat in self.seats]
        ) != self._received or self._quiet_since is None:
            self._quiet_since, self._received = self._clock(), received
        elif all(seat.heard > self._quiet_since for seat in self.seats):
            self.ending = _together([seat.idle for seat in self.seats if seat.idle])


def _together(reasons: list[Ending]) -> Ending:
    """Why a crawl ends, of why its shards do."""
    if NOBODY_REACHED in reasons:
        return NOBODY_REACHED
    if dry := [each for each in reasons if each.reason == "dry"]:
        return dry[0]
    if resting := [each for each in reasons if each.reason == "waiting"]:
        return waiting(sum(each.urls for each in resting), min(each.seconds for each in resting))
    return reasons[0]
