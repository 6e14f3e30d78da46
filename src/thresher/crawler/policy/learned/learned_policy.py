"""The learned policy: predict the yield of a URL, and the text behind it, from the results of similar links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from thresher.crawler.policy.learned import feature_layout as at
from thresher.crawler.policy.learned.feature_memory import FeatureMemory
from thresher.crawler.policy.learned.features import FeatureExtractor, encode_hints, page_mark
from thresher.crawler.policy.learned.predictor import (
    EXPECTED,
    GUESSED,
    HOST_EVIDENCE,
    LIES_BEHIND,
    MEASURES,
    PREDICTIONS,
    WEIGHT,
    predict,
    predict_chances,
)
from thresher.crawler.policy.learned.trees import PolicyForests, shipped
from thresher.crawler.policy.policy import Front, LaneStanding, WeighedLinks, by_weight
from thresher.crawler.policy.prioritisers import SourcePage
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.crawler.storage.recent_set import RecentSet
from thresher.records import Candidate, Link
from thresher.store.shard_layout import ALONE, Shard
from thresher.urls import host as host_of

EXPLORATION_SHARE = 0.05  # of all bytes downloaded

# Shares of the text of a page that are credited to the page which led to it: BEHIND_CREDIT of the text above
# BASELINE_SHARE of the recent yield of the crawl, plus ONWARD_SHARE of the text predicted behind the page in turn.
BEHIND_CREDIT, BASELINE_SHARE, ONWARD_SHARE = 0.5, 0.5, 0.5
# A page that leads to unknown hosts is credited when its links are found: NEW_HOST_BYTES for each of up to
# MAX_NEW_HOSTS hosts, and more for a host with a predicted yield above the baseline.
NEW_HOST_BYTES, USUAL_TEXT_BYTES, MAX_NEW_HOSTS = 400.0, 8_000.0, 30

INITIAL_ROWS = 1_024  # of the tables for first URLs of lanes; they grow
RECENT_VISITS = 4_096  # predictions that are kept until the result of the visit arrives
RECENT_FOREIGN_HOSTS = 100_000  # hosts of other shards that count as known

Reals = NDArray[np.float64]


class Prediction(NamedTuple):
    """Predictions for some links."""

    predictions: Reals  # a row for each link; columns are defined in `predictor`
    measures: Reals  # the measures behind the predictions

    @property
    def expected(self) -> Reals:
        """The expected text per byte."""
        return self.predictions[:, EXPECTED]

    @property
    def behind(self) -> Reals:
        """The expected text behind the links, per byte."""
        return self.predictions[:, LIES_BEHIND]


class PendingVisit(NamedTuple):
    """A URL that was taken, with its prediction at that time."""

    keys: at.Keys  # in a single row
    guessed: float
    behind: float


class LearnedPolicy:
    """Predicts yields from the results of links that share features, and explores with a share of the bytes."""

    SWEEP = 8

    def __init__(
        self, language: str, state: KeyValueState, forests: PolicyForests | None = None, shard: Shard = ALONE
    ) -> None:
        self.features = FeatureExtractor(language)
        self._shard = shard
        self._led_to = RecentSet(RECENT_FOREIGN_HOSTS)
        self._forests = forests
        self.feature_memory = FeatureMemory(state)
        self._keys: at.Keys = np.zeros((INITIAL_ROWS, at.WIDTH), np.uint64)  # of the first URLs of lanes
        self._signals: Reals = np.zeros((INITIAL_ROWS, at.SIGNAL_COLUMNS))
        self._predictions: Reals = np.zeros((INITIAL_ROWS, PREDICTIONS))
        self._free = list(range(INITIAL_ROWS))  # unused rows of these tables
        self._visits: dict[str, PendingVisit] = {}  # the most recent ones, by URL
        self._leads: dict[str, float] = {}  # by page, the credit for unknown hosts that it links to
        self._tried: set[str] = set()  # URLs taken to explore
        self.rank = by_weight

    @property
    def forests(self) -> PolicyForests:
        """The given trees, or the trees of the package, loaded when first needed."""
        return self._forests or shipped()

    def outlook(self, keys: at.Keys, signals: Reals, rows: NDArray[np.int64]) -> Prediction:
        """Return predictions for the links in some rows of keys and signals."""
        measures, predictions = np.empty((len(rows), MEASURES)), np.empty((len(rows), PREDICTIONS))
        known, trees = self.feature_memory, self.forests.rates
        predict(keys, signals, rows, known.memory, known.words, known.means(), *trees, measures, predictions)
        return Prediction(predictions, measures)

    # links that were found

    def weigh_links(
        self, candidates: Sequence[Candidate], source: SourcePage, links: Sequence[Link]
    ) -> WeighedLinks:
        """Weigh new links of a page, and remember the credit of the page for unknown hosts."""
        if not candidates:
            return WeighedLinks([], [])
        here, kind = host_of(source.url), page_mark(self._page(source.url)[0])
        hints = [
            self._hints(candidate, source, link, here, kind)
            for candidate, link in zip(candidates, links, strict=True)
        ]
        queued, outlook = self._queued(candidates, hints)
        self._leads[source.url] = self._new_hosts(queued, outlook)
        chances = np.empty(len(queued))
        predict_chances(outlook.measures, *self.forests.chances, chances)
        return WeighedLinks(queued, chances.tolist())

    def _new_hosts(self, queued: Sequence[Candidate], outlook: Prediction) -> float:
        """Return the credit of a page for the unknown hosts that it links to."""
        baseline = BASELINE_SHARE * self.feature_memory.overall.recent_rate
        worth: dict[str, float] = {}
        abroad: set[str] = set()
        for row in np.flatnonzero(outlook.measures[:, HOST_EVIDENCE] <= 0).tolist():
            host = host_of(queued[row].url)
            if not self._shard.owns(host):  # its results stay in another shard: it counts as unknown once
                if host.encode() in self._led_to:
                    continue
                abroad.add(host)
            worth[host] = max(worth.get(host, 0.0), float(outlook.predictions[row, WEIGHT]) - baseline)
        for host in abroad:
            self._led_to.add(host.encode())
        return sum(
            NEW_HOST_BYTES + USUAL_TEXT_BYTES * better for better in sorted(worth.values())[-MAX_NEW_HOSTS:]
        )

    def _hints(self, candidate: Candidate, source: SourcePage, link: Link, here: str, kind: bytes) -> bytes:
        return encode_hints(
            boilerplate=link.boilerplate,
            in_text=link.in_text,
            same_host=host_of(link.url) == here,
            kept=source.kept,
            ours=source.ours,
            rate=source.rate,
            predictions=self.features.language_signals(link.anchor, link.rel),
            listed=candidate.via in ("sitemap", "feed"),
            anchor=link.anchor,
            kind=kind,
        )

    def weigh_urls(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return URLs that no page led to, or a redirect, with lanes and weights."""
        return self._queued(candidates, [one.hints for one in candidates])[0] if candidates else []

    def _queued(
        self, candidates: Sequence[Candidate], hints: Sequence[bytes]
    ) -> tuple[list[Candidate], Prediction]:
        keys, signals = self.features.of([one.url for one in candidates], hints)
        outlook = self.outlook(keys, signals, np.arange(len(keys)))
        lanes, weights = keys[:, at.LANE].tolist(), outlook.expected.tolist()
        queued = [
            replace(one, hints=hint, lane=lane, weight=weight)
            for one, hint, lane, weight in zip(candidates, hints, lanes, weights, strict=True)
        ]
        return queued, outlook

    def expected_yields(self, candidates: Sequence[Candidate]) -> list[float]:
        """Return the expected yields of queued URLs, as of when they were queued."""
        return [one.weight for one in candidates]

    # URLs that wait

    def default_standing(self, host: str) -> LaneStanding:  # noqa: ARG002
        """Return the standing of a lane on disk: the mean of the crawl."""
        usual = float(self.feature_memory.means()[0])
        return LaneStanding(usual, 0.0, usual)

    def prepare_fronts(self, candidates: Sequence[Candidate]) -> list[Front]:
        """Compute the features of URLs that became the first of their lanes; return their rows in the tables."""
        if not candidates:
            return []
        keys, signals = self.features.of([one.url for one in candidates], [one.hints for one in candidates])
        signals[:, at.CHOSEN] = [one.via == "seed" for one in candidates]
        if len(self._free) < len(candidates):
            self._grow(len(candidates))
        rows = [self._free.pop() for _ in candidates]
        self._keys[rows], self._signals[rows] = keys, signals
        return rows

    def _grow(self, least: int) -> None:
        """Double the tables of first URLs, or enlarge them by `least` rows if that is more."""
        rows, more = len(self._keys), max(len(self._keys), least)
        self._keys = np.concatenate([self._keys, np.zeros((more, at.WIDTH), np.uint64)])
        self._signals = np.concatenate([self._signals, np.zeros((more, at.SIGNAL_COLUMNS))])
        self._predictions = np.concatenate([self._predictions, np.zeros((more, PREDICTIONS))])
        self._free.extend(range(rows, rows + more))

    def release(self, front: Front) -> None:
        """Free the row of a URL that is no longer the first of its lane."""
        if front is not None:
            self._free.append(front)

    def standings(self, fronts: Sequence[tuple[str, Front]]) -> list[LaneStanding]:
        """Return the present standings of first URLs of lanes, each given with its host."""
        if not fronts:
            return []
        rows = np.array([front for _, front in fronts])
        predictions = self._predictions[rows] = self.outlook(self._keys, self._signals, rows).predictions
        return list(map(LaneStanding._make, predictions[:, : EXPECTED + 1].tolist()))

    def wants_exploration(self) -> bool:
        """Return whether less than the share of bytes for exploration was spent on it."""
        overall = self.feature_memory.overall
        return overall.tried < EXPLORATION_SHARE * overall.spent

    def on_taken(self, candidate: Candidate, front: Front, *, curious: bool) -> None:
        """Remember the prediction for a URL that is visited now."""
        if curious:
            self._tried.add(candidate.url)
        predictions = self._predictions[front]
        self._begin(
            candidate.url,
            PendingVisit(self._keys[[front]], float(predictions[GUESSED]), float(predictions[LIES_BEHIND])),
        )

    def _begin(self, url: str, visit: PendingVisit) -> PendingVisit:
        self._visits[url] = visit
        if len(self._visits) > RECENT_VISITS:
            del self._visits[next(iter(self._visits))]
        return visit

    def _page(self, url: str) -> at.Keys:
        """Return the keys of the URL of a page, in a single row."""
        visit = self._visits.get(url)
        return visit.keys if visit else self.features.of([url], [b""])[0]

    # results

    def learn(self, candidate: Candidate, received: int, text: int, ours: bool) -> None:
        """Add the result of a visit to the memory, and credit the page that led to it."""
        known = self.feature_memory
        visit = self._visits.get(candidate.url) or self._begin(candidate.url, self._visit(candidate))
        if candidate.source:
            better = max(text - BASELINE_SHARE * known.overall.recent_rate * received, 0.0)
            known.credit(
                self._page(candidate.source),
                BEHIND_CREDIT * (better + ONWARD_SHARE * visit.behind * received),
            )
        known.add(visit.keys, received, text, ours, visit.guessed)
        if lead := self._leads.pop(candidate.url, 0.0):
            known.credit(visit.keys, BEHIND_CREDIT * lead)
        if candidate.url in self._tried:
            self._tried.remove(candidate.url)
            self.feature_memory.overall.tried += received

    def _visit(self, candidate: Candidate) -> PendingVisit:
        """Return the present prediction for a URL that was taken before this policy was opened."""
        keys, signals = self.features.of([candidate.url], [candidate.hints])
        ((*_, guessed, behind),) = self.outlook(keys, signals, np.zeros(1, np.int64)).predictions.tolist()
        return PendingVisit(keys, guessed, behind)

    def flush(self) -> None:
        """Add the memory that changed to the next commit of the state."""
        self.feature_memory.flush()
