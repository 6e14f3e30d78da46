"""The guide that learns: what waits is worth what came of links like it, and what was found behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from thresher.crawl.guide import Front, Standing, by_weight
from thresher.crawl.learned import layout as at
from thresher.crawl.learned.clues import Clues, hints
from thresher.crawl.learned.experience import Experience
from thresher.crawl.learned.forecast import BEHIND, HOST_EVIDENCE, IS_NEW, MEASURES, forecast
from thresher.crawl.learned.trees import Trees, shipped
from thresher.crawl.priority import Source
from thresher.crawl.state import State
from thresher.page import Candidate, Link
from thresher.url import host as host_of

LOOKAHEAD = 0.15  # what text behind a page counts, beside its own …
CURIOUS_LOOKAHEAD = 1.0  # … and where something new is to be tried
TRIES = 0.05  # of all bytes, what goes into trying something new
SEED_BONUS = 9.0  # for URLs that somebody chose

# Text counts as found behind the page that led to it: as far as it is more than what the crawl has lately had
# anyway, and with some of what lies behind it in turn.
GAIN, HAD_ANYWAY, ONWARD = 0.5, 0.5, 0.5
# A page that leads to hosts nobody knew need not wait for that: each counts a little, and as a page of text of so
# many bytes if it is likely to be better than others.
NEW_HOST, USUAL_BYTES, MANY_HOSTS = 400.0, 8_000.0, 30

ROOM = 1_024  # for first URLs of lanes, to begin with

Reals = NDArray[np.float64]


class Outlook(NamedTuple):
    """What is to be expected of some links."""

    expected: Reals  # text per byte
    guessed: Reals  # the same before it was corrected by how wrong it was lately
    behind: Reals  # text that lies behind them, per byte
    is_new: Reals  # 1 where nothing of the kind was visited yet
    host_known: NDArray[np.bool_]
    measures: Reals  # all that this was told by

    @property
    def weights(self) -> Reals:
        return self.expected + LOOKAHEAD * self.behind


class Learned:
    """Expects of a link what came of those like it."""

    SWEEP = 16

    def __init__(self, language: str, state: State, trees: Trees | None = None) -> None:
        self.clues = Clues(language)
        self._trees = trees  # None: those that come with the package, once they are needed
        self.experience = Experience(state)
        self._keys: at.Keys = np.zeros((ROOM, at.WIDTH), np.uint64)  # of the first URLs of lanes, …
        self._notes: Reals = np.zeros((ROOM, at.NOTES))
        self._bonus: Reals = np.zeros(ROOM)
        self._free = list(range(ROOM))  # … and which rows of those hold none
        self._leads: dict[str, float] = {}  # by page, what the hosts are worth that it led to
        self._tried: set[str] = set()  # URLs taken to try something new
        self.rank = by_weight

    def outlook(self, keys: at.Keys, notes: Reals, rows: NDArray[np.int64]) -> Outlook:
        """What to expect of the links in some rows."""
        measures, (guessed, expected) = np.empty((len(rows), MEASURES)), np.empty((2, len(rows)))
        known, trees = self.experience, self._trees or shipped()
        memory, tags, means = known.memory, known.tags, known.means()
        forecast(keys, notes, rows, memory, tags, means, *trees, measures, guessed, expected)
        host_known = measures[:, HOST_EVIDENCE] > 0
        return Outlook(expected, guessed, measures[:, BEHIND], measures[:, IS_NEW], host_known, measures)

    # what is found

    def found(
        self, candidates: Sequence[Candidate], source: Source, links: Sequence[Link]
    ) -> list[Candidate]:
        if not candidates:
            return []
        here, kind = host_of(source.url), self.clues.kind(source.url)
        hinted = [
            replace(candidate, hints=self._hints(candidate, source, link, here, kind))
            for candidate, link in zip(candidates, links, strict=True)
        ]
        queued, outlook = self._queued(hinted)
        self._leads[source.url] = self._new_hosts(queued, outlook)
        return queued

    def _new_hosts(self, queued: Sequence[Candidate], outlook: Outlook) -> float:
        """What hosts that nobody knew are worth to those who led there."""
        lately = HAD_ANYWAY * self.experience.overall.lately
        worth: dict[str, float] = {}
        for one, weight, known in zip(queued, outlook.weights.tolist(), outlook.host_known, strict=True):
            if not known:
                host = host_of(one.url)
                worth[host] = max(worth.get(host, 0.0), weight - lately)
        return sum(NEW_HOST + USUAL_BYTES * better for better in sorted(worth.values())[-MANY_HOSTS:])

    def _hints(self, candidate: Candidate, source: Source, link: Link, here: str, kind: bytes) -> bytes:
        return hints(
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
        return self._queued(candidates)[0] if candidates else []

    def _queued(self, candidates: Sequence[Candidate]) -> tuple[list[Candidate], Outlook]:
        keys, notes = self.clues.of([one.url for one in candidates], [one.hints for one in candidates])
        outlook = self.outlook(keys, notes, np.arange(len(keys)))
        lanes, weights = keys[:, at.LANE].tolist(), outlook.expected.tolist()
        queued = [
            replace(one, lane=lane, weight=weight)
            for one, lane, weight in zip(candidates, lanes, weights, strict=True)
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
        if len(self._free) < len(candidates):
            self._grow(len(candidates))
        rows = [self._free.pop() for _ in candidates]
        self._keys[rows], self._notes[rows] = keys, notes
        self._bonus[rows] = [SEED_BONUS * (one.via == "seed") for one in candidates]
        return rows

    def _grow(self, least: int) -> None:
        """Make room for more first URLs: twice as much, or what is needed."""
        room, more = len(self._bonus), max(len(self._bonus), least)
        self._keys = np.concatenate([self._keys, np.zeros((more, at.WIDTH), np.uint64)])
        self._notes = np.concatenate([self._notes, np.zeros((more, at.NOTES))])
        self._bonus = np.concatenate([self._bonus, np.zeros(more)])
        self._free.extend(range(room, room + more))

    def forget(self, front: Front) -> None:
        if front is not None:
            self._free.append(front)

    def standings(self, fronts: Sequence[tuple[str, Front]]) -> list[Standing]:
        if not fronts:
            return []
        rows = np.array([front for _, front in fronts])
        outlook = self.outlook(self._keys, self._notes, rows)
        weights = outlook.weights + self._bonus[rows]
        curiosity = (outlook.expected + CURIOUS_LOOKAHEAD * outlook.behind) * outlook.is_new
        return list(map(Standing, weights.tolist(), curiosity.tolist(), outlook.expected.tolist()))

    def curious(self) -> bool:
        overall = self.experience.overall
        return overall.tried < TRIES * overall.spent

    def taken(self, candidate: Candidate, front: Front, *, curious: bool) -> None:  # noqa: ARG002
        if curious:
            self._tried.add(candidate.url)

    # what came of it

    def learn(self, candidate: Candidate, received: int, text: int, ours: bool) -> None:
        known = self.experience
        keys, notes = self.clues.of(
            [candidate.url, candidate.source or candidate.url], [candidate.hints, b""]
        )
        outlook = self.outlook(keys, notes, np.zeros(1, np.int64))
        if candidate.source:
            better = max(text - HAD_ANYWAY * known.overall.lately * received, 0.0)
            onward = float(outlook.behind[0]) * received
            known.credit(keys[1:], GAIN * (better + ONWARD * onward))
        known.add(keys[:1], received, text, ours, float(outlook.guessed[0]))
        if lead := self._leads.pop(candidate.url, 0.0):
            known.credit(keys[:1], GAIN * lead)
        if candidate.url in self._tried:
            self._tried.remove(candidate.url)
            self.experience.overall.tried += received

    def flush(self) -> None:
        self.experience.flush()
