"""Crawl policies: the value of URLs while they wait, for the frontier and the crawl's loop.

The plain policies multiply the expected yield of a host by the weight that a link had when it was found. The
learned policy has a package of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2
from random import Random
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from thresher.config import PolicySettings
from thresher.crawler.policy.prioritisers import Priorities, SourcePage
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate, Link
from thresher.store.shard_layout import ALONE, Shard
from thresher.urls import host as host_of


class LaneStanding(NamedTuple):
    """The value of the first URL of a lane, which stands for the lane."""

    weight: float  # by which it is chosen
    curiosity: float  # its value for exploration
    expected: float  # its expected yield


class WeighedLinks(NamedTuple):
    """New links of a page, ready to be queued."""

    queued: list[Candidate]  # with lanes and weights
    chances: Sequence[
        float | None
    ]  # that each leads to a page that is kept; None: the policy does not predict it


Front = Any  # data of a policy for the first URL of a lane; None: nothing yet
# Weight of a link on a page in another language, relative to one in the corpus's language.
FOREIGN_LINK_WEIGHT = 1e-3
RANK_OF_WEIGHT_1 = 32  # rank in its lane of a URL with weight 1
RANDOM_RANKS = 24  # of URLs under the policy `random`


class CrawlPolicy(Protocol):
    """Contract of a policy: it values URLs for the frontier, and learns from the results of visits.

    The frontier keeps the URLs of a host in lanes. It asks for the standing of the first URL of each lane only, so
    a policy may keep data for these URLs (`Front`) and no others.
    """

    SWEEP: int  # lanes weighed again after each page, in rotation

    def weigh_links(
        self, candidates: Sequence[Candidate], source: SourcePage, links: Sequence[Link]
    ) -> WeighedLinks:
        """Return new links of a page with lanes and weights, and their chances to be kept."""

    def weigh_urls(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return URLs that no page led to, or a redirect, with lanes and weights."""

    def rank(self, candidate: Candidate) -> int:
        """Return the rank of a URL in its lane; lower ranks are visited first."""

    def default_standing(self, host: str) -> LaneStanding:
        """Return the standing of a lane on disk while its first URL is not in memory."""

    def prepare_fronts(self, candidates: Sequence[Candidate]) -> list[Front]:
        """Return the data to keep for URLs that became the first of their lanes."""

    def release(self, front: Front) -> None:
        """Drop the data of a URL that is no longer the first of its lane."""

    def standings(self, fronts: Sequence[tuple[str, Front]]) -> list[LaneStanding]:
        """Return the present standings of first URLs of lanes, each given with its host."""

    def on_taken(self, candidate: Candidate, front: Front, *, curious: bool) -> None:
        """Note that a URL is visited now, to explore or for its weight."""

    def wants_exploration(self) -> bool:
        """Return whether the next URL should be taken to explore."""

    def expected_yields(self, candidates: Sequence[Candidate]) -> list[float]:
        """Return the expected yields of queued URLs."""

    def learn(self, candidate: Candidate, received: int, text: int, ours: bool) -> None:
        """Learn from a visit.

        Parameters
        ----------
        candidate
            The URL that was visited.
        received
            Bytes downloaded.
        text
            Bytes of text that it added to the corpus.
        ours
            Whether the page is in the language of the corpus.
        """

    def flush(self) -> None:
        """Add changes to the next commit of the state."""


class PlainPolicy:
    """A policy that expects of a host its past yield; its URLs wait in one lane, in the order of `rank`."""

    SWEEP = 0

    def __init__(
        self,
        priorities: Priorities,
        rank: Callable[[Candidate], int],
        promise: Callable[[str], float] = lambda _: 1.0,
    ) -> None:
        self._priorities = priorities
        self.rank = rank
        self._promise = promise

    def weigh_links(
        self, candidates: Sequence[Candidate], source: SourcePage, links: Sequence[Link]
    ) -> WeighedLinks:
        """Return new links of a page, weighted by the prioritisers."""
        factors = self._priorities.factors(source, links)
        queued = [
            replace(one, weight=factor) if factor != 1.0 else one
            for one, factor in zip(candidates, factors, strict=True)
        ]
        return WeighedLinks(queued, [None] * len(queued))

    def weigh_urls(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the URLs as they are."""
        return list(candidates)

    def default_standing(self, host: str) -> LaneStanding:
        """Return the standing of a URL of weight 1 on the host."""
        return self.standings([(host, 1.0)])[0]

    def prepare_fronts(self, candidates: Sequence[Candidate]) -> list[Front]:
        """Return the weights of URLs that became the first of their lanes."""
        return [candidate.weight for candidate in candidates]

    def release(self, front: Front) -> None:
        """Do nothing: a front is only a number."""

    def standings(self, fronts: Sequence[tuple[str, Front]]) -> list[LaneStanding]:
        """Return the standings of first URLs of lanes, each given with its host."""
        return [
            LaneStanding(self._standing(host, one), 0.0, self._promise(host) * one) for host, one in fronts
        ]

    def _standing(self, host: str, factor: float) -> float:
        power = self._priorities.host_power
        return factor * self._promise(host) ** power if power else factor

    def on_taken(self, candidate: Candidate, front: Front, *, curious: bool) -> None:
        """Do nothing: plain policies do not learn from single URLs."""

    def expected_yields(self, candidates: Sequence[Candidate]) -> list[float]:
        """Return the expected yields of the hosts, times the weights of the URLs."""
        return [self._promise(host_of(one.url)) * one.weight for one in candidates]

    def wants_exploration(self) -> bool:
        """Return False: plain policies do not explore."""
        return False

    def learn(self, candidate: Candidate, received: int, text: int, ours: bool) -> None:  # noqa: ARG002
        """Pass the result of a visit to the prioritisers that learn."""
        self._priorities.learn(candidate.url, received, text)

    def flush(self) -> None:
        """Add changes of prioritisers to the next commit of the state."""
        self._priorities.flush()


class FocusPolicy(PlainPolicy):
    """A baseline: the value of a link is the language of its page plus the share of kept pages of its host."""

    def __init__(self, yields: YieldStats) -> None:
        super().__init__(Priorities(PolicySettings(name="bfs")), by_weight, yields.promise)
        self._yields = yields

    def weigh_links(self, candidates: Sequence[Candidate], source: SourcePage, *_: object) -> WeighedLinks:
        """Return new links of a page with weight 1 if the page is in the language of the corpus."""
        queued = [replace(one, weight=1.0 if source.ours else FOREIGN_LINK_WEIGHT) for one in candidates]
        return WeighedLinks(queued, [None] * len(queued))

    def standings(self, fronts: Sequence[tuple[str, Front]]) -> list[LaneStanding]:
        """Return the weights of first URLs of lanes plus the shares of kept pages of their hosts."""
        return [LaneStanding(factor + self._hits(host), 0.0, self._promise(host)) for host, factor in fronts]

    def _hits(self, host: str) -> float:
        tally = self._yields.hosts[host]
        return (tally.kept + 0.5) / (tally.pages + 1)


def by_depth(candidate: Candidate) -> int:
    """Return the rank of a URL in a breadth-first queue: its depth."""
    return candidate.depth


def by_weight(candidate: Candidate) -> int:
    """Return the rank of a URL by its weight: two ranks for each halving."""
    return RANK_OF_WEIGHT_1 - round(2 * log2(max(candidate.weight, 1e-9)))


def make_policy(
    policy: PolicySettings,
    language: str,
    state: KeyValueState,
    yields: YieldStats,
    random: Random,
    shard: Shard = ALONE,
) -> CrawlPolicy:
    """Return the policy of some settings, which keeps its memory in the state."""
    if policy.name == "learned":
        # This imports numba, which other policies do not need.
        from thresher.crawler.policy.learned.learned_policy import LearnedPolicy

        return LearnedPolicy(language, state, shard=shard)
    priorities = Priorities(policy, state)
    if policy.name == "focus":
        return FocusPolicy(yields)
    if policy.name == "random":
        return PlainPolicy(priorities, lambda _: random.randrange(RANDOM_RANKS), yields.promise)
    rank = by_weight if policy.name in ("host-yield", "heidix") else by_depth
    return PlainPolicy(priorities, rank, yields.promise)
