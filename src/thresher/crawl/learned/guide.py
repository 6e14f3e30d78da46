"""The guide that learns: what waits is worth what came of links like it, and what was found behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from thresher.crawl.guide import Found, Front, Standing, by_weight
from thresher.crawl.learned import layout as at
from thresher.crawl.learned.clues import Clues, as_hints, mark
from thresher.crawl.learned.experience import Experience
from thresher.crawl.learned.forecast import (
    EXPECTED,
    GUESSED,
    HOST_EVIDENCE,
    LIES_BEHIND,
    MEASURES,
    TELLINGS,
    WEIGHT,
    forecast,
    reckon,
)
from thresher.crawl.learned.trees import Forests, shipped
from thresher.crawl.priority import Source
from thresher.crawl.seen import Recent
from thresher.crawl.state import State
from thresher.page import Candidate, Link
from thresher.store.shards import ALONE, Shard
from thresher.url import host as host_of

TRIES = 0.05  # of all bytes, what goes into trying something new

# Text counts as found behind the page that led to it: as far as it is more than what the crawl has lately had
# anyway, and with some of what lies behind it in turn.
GAIN, HAD_ANYWAY, ONWARD = 0.5, 0.5, 0.5
# A page that leads to hosts nobody knew need not wait for that: each counts a little, and as a page of text of so
# many bytes if it is likely to be better than others.
NEW_HOST, USUAL_BYTES, MANY_HOSTS = 400.0, 8_000.0, 30

ROOM = 1_024  # for first URLs of lanes, to begin with
RECENT = 4_096  # pages of which is known what was thought of them
MET_HOSTS = 100_000  # of other shards, that somebody was led to

Reals = NDArray[np.float64]


class Outlook(NamedTuple):
    """What is to be expected of some links."""

    told: Reals  # a row for each link; for its columns see `forecast`
    measures: Reals  # all that this was told by

    @property
    def expected(self) -> Reals:
        """Text per byte."""
        return self.told[:, EXPECTED]

    @property
    def behind(self) -> Reals:
        """Text that lies behind them, per byte."""
        return self.told[:, LIES_BEHIND]


class Visit(NamedTuple):
    """A URL that was taken, and what was thought of it then."""

    keys: at.Keys  # in a single row
    guessed: float
    behind: float


class Learned:
    """Expects of a link what came of those like it."""

    SWEEP = 8

    def __init__(
        self, language: str, state: State, forests: Forests | None = None, shard: Shard = ALONE
    ) -> None:
        self.clues = Clues(language)
        self._shard = shard
        self._led_to = Recent(MET_HOSTS)
        self._forests = forests
        self.experience = Experience(state)
        self._keys: at.Keys = np.zeros((ROOM, at.WIDTH), np.uint64)  # of the first URLs of lanes, …
        self._notes: Reals = np.zeros((ROOM, at.NOTED))
        self._told: Reals = np.zeros((ROOM, TELLINGS))
        self._free = list(range(ROOM))  # … and which rows of those hold none
        self._visits: dict[str, Visit] = {}  # the last ones
        self._leads: dict[str, float] = {}  # by page, what the hosts are worth that it led to
        self._tried: set[str] = set()  # URLs taken to try something new
        self.rank = by_weight

    @property
    def forests(self) -> Forests:
        """The trees that were given, or those that come with the package, once they are needed."""
        return self._forests or shipped()

    def outlook(self, keys: at.Keys, notes: Reals, rows: NDArray[np.int64]) -> Outlook:
        """What to expect of the links in some rows."""
        measures, told = np.empty((len(rows), MEASURES)), np.empty((len(rows), TELLINGS))
        known, trees = self.experience, self.forests.rates
        forecast(keys, notes, rows, known.memory, known.words, known.means(), *trees, measures, told)
        return Outlook(told, measures)

    # what is found

    def found(self, candidates: Sequence[Candidate], source: Source, links: Sequence[Link]) -> Found:
        if not candidates:
            return Found([], [])
        here, kind = host_of(source.url), mark(self._page(source.url)[0])
        hints = [
            self._hints(candidate, source, link, here, kind)
            for candidate, link in zip(candidates, links, strict=True)
        ]
        queued, outlook = self._queued(candidates, hints)
        self._leads[source.url] = self._new_hosts(queued, outlook)
        chances = np.empty(len(queued))
        reckon(outlook.measures, *self.forests.chances, chances)
        return Found(queued, chances.tolist())

    def _new_hosts(self, queued: Sequence[Candidate], outlook: Outlook) -> float:
        """What hosts that nobody knew are worth to those who led there."""
        lately = HAD_ANYWAY * self.experience.overall.lately
        worth: dict[str, float] = {}
        abroad: set[str] = set()
        for row in np.flatnonzero(outlook.measures[:, HOST_EVIDENCE] <= 0).tolist():
            host = host_of(queued[row].url)
            if not self._shard.owns(host):  # of which nothing will ever be known here: it is new but once
                if host.encode() in self._led_to:
                    continue
                abroad.add(host)
            worth[host] = max(worth.get(host, 0.0), float(outlook.told[row, WEIGHT]) - lately)
        for host in abroad:
            self._led_to.add(host.encode())
        return sum(NEW_HOST + USUAL_BYTES * better for better in sorted(worth.values())[-MANY_HOSTS:])

    def _hints(self, candidate: Candidate, source: Source, link: Link, here: str, kind: bytes) -> bytes:
        return as_hints(
            boilerplate=link.boilerplate,
            in_text=link.in_text,
            same_host=host_of(link.url) == here,
            kept=source.kept,
            ours=source.ours,
            rate=source.rate,
            told=self.clues.tells(link.anchor, link.rel),
            listed=candidate.via in ("sitemap", "feed"),
            anchor=link.anchor,
            kind=kind,
        )

    def given(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        return self._queued(candidates, [one.hints for one in candidates])[0] if candidates else []

    def _queued(
        self, candidates: Sequence[Candidate], hints: Sequence[bytes]
    ) -> tuple[list[Candidate], Outlook]:
        keys, notes = self.clues.of([one.url for one in candidates], hints)
        outlook = self.outlook(keys, notes, np.arange(len(keys)))
        lanes, weights = keys[:, at.LANE].tolist(), outlook.expected.tolist()
        queued = [
            replace(one, hints=hint, lane=lane, weight=weight)
            for one, hint, lane, weight in zip(candidates, hints, lanes, weights, strict=True)
        ]
        return queued, outlook

    def weights(self, candidates: Sequence[Candidate]) -> list[float]:
        return [one.weight for one in candidates]

    # what waits

    def unopened(self, host: str) -> Standing:  # noqa: ARG002
        usual = float(self.experience.means()[0])
        return Standing(usual, 0.0, usual)

    def fronts(self, candidates: Sequence[Candidate]) -> list[Front]:
        if not candidates:
            return []
        keys, notes = self.clues.of([one.url for one in candidates], [one.hints for one in candidates])
        notes[:, at.CHOSEN] = [one.via == "seed" for one in candidates]
        if len(self._free) < len(candidates):
            self._grow(len(candidates))
        rows = [self._free.pop() for _ in candidates]
        self._keys[rows], self._notes[rows] = keys, notes
        return rows

    def _grow(self, least: int) -> None:
        """Make room for more first URLs: twice as much, or what is needed."""
        room, more = len(self._keys), max(len(self._keys), least)
        self._keys = np.concatenate([self._keys, np.zeros((more, at.WIDTH), np.uint64)])
        self._notes = np.concatenate([self._notes, np.zeros((more, at.NOTED))])
        self._told = np.concatenate([self._told, np.zeros((more, TELLINGS))])
        self._free.extend(range(room, room + more))

    def forget(self, front: Front) -> None:
        if front is not None:
            self._free.append(front)

    def standings(self, fronts: Sequence[tuple[str, Front]]) -> list[Standing]:
        if not fronts:
            return []
        rows = np.array([front for _, front in fronts])
        told = self._told[rows] = self.outlook(self._keys, self._notes, rows).told
        return list(map(Standing._make, told[:, : EXPECTED + 1].tolist()))

    def curious(self) -> bool:
        overall = self.experience.overall
        return overall.tried < TRIES * overall.spent

    def taken(self, candidate: Candidate, front: Front, *, curious: bool) -> None:
        if curious:
            self._tried.add(candidate.url)
        told = self._told[front]
        self._begin(candidate.url, Visit(self._keys[[front]], float(told[GUESSED]), float(told[LIES_BEHIND])))

    def _begin(self, url: str, visit: Visit) -> Visit:
        self._visits[url] = visit
        if len(self._visits) > RECENT:
            del self._visits[next(iter(self._visits))]
        return visit

    def _page(self, url: str) -> at.Keys:
        """The keys of a page's URL, in a single row."""
        visit = self._visits.get(url)
        return visit.keys if visit else self.clues.of([url], [b""])[0]

    # what came of it

    def learn(self, candidate: Candidate, received: int, text: int, ours: bool) -> None:
        known = self.experience
        visit = self._visits.get(candidate.url) or self._begin(candidate.url, self._visit(candidate))
        if candidate.source:
            better = max(text - HAD_ANYWAY * known.overall.lately * received, 0.0)
            known.credit(self._page(candidate.source), GAIN * (better + ONWARD * visit.behind * received))
        known.add(visit.keys, received, text, ours, visit.guessed)
        if lead := self._leads.pop(candidate.url, 0.0):
            known.credit(visit.keys, GAIN * lead)
        if candidate.url in self._tried:
            self._tried.remove(candidate.url)
            self.experience.overall.tried += received

    def _visit(self, candidate: Candidate) -> Visit:
        """What is thought now of a URL that was taken before this guide was there."""
        keys, notes = self.clues.of([candidate.url], [candidate.hints])
        ((*_, guessed, behind),) = self.outlook(keys, notes, np.zeros(1, np.int64)).told.tolist()
        return Visit(keys, guessed, behind)

    def flush(self) -> None:
        self.experience.flush()
