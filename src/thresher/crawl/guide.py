"""What URLs promise while they wait: the part of a policy that the frontier and the loop ask.

The plain policies promise by host: what it gave so far, times what was thought of the link when it was found. The
one that learns has its own guide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log2
from random import Random
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from thresher.config import Policy
from thresher.crawl.priority import Priorities, Source
from thresher.crawl.state import State
from thresher.crawl.turns import RANKS, BestTurns, RankedTurns, Turning, Turns
from thresher.crawl.yields import Yields
from thresher.page import Candidate, Link
from thresher.store.shards import ALONE, Shard
from thresher.url import host as host_of


class Standing(NamedTuple):
    """Where the first URL of a lane stands."""

    weight: float  # by which it is chosen
    curiosity: float  # what would be learnt by it
    expected: float  # the yield to expect of it


class Found(NamedTuple):
    """Links of a page that are new."""

    queued: list[Candidate]  # as they are to be queued, with lanes and weights
    chances: Sequence[float | None]  # that each leads to a page that is kept; None: nobody can tell


Front = Any  # what a guide keeps of the first URL of a lane; None: nothing yet
FOREIGN = 1e-3  # what a link on a page in another language counts, where one in ours counts 1
USUAL = 32  # the rank in its lane of a URL that promises what its host does


class Guide(Protocol):
    """Tells the frontier what waits where, and learns from what became of it."""

    SWEEP: int  # lanes that are weighed again with every page, in turn

    def found(self, candidates: Sequence[Candidate], source: Source, links: Sequence[Link]) -> Found:
        """New links of a page, and what is thought of them."""

    def given(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """URLs that no page led to, or a redirect, as they are to be queued."""

    def rank(self, candidate: Candidate) -> int:
        """The place of a URL in its lane."""

    def unopened(self, host: str) -> Standing:
        """Where a lane on disk stands whose first URL is not known."""

    def fronts(self, candidates: Sequence[Candidate]) -> list[Front]:
        """What is to be kept of URLs that are now the first of their lanes."""

    def forget(self, front: Front) -> None:
        """A URL is no longer the first of its lane."""

    def standings(self, fronts: Sequence[tuple[str, Front]]) -> list[Standing]:
        """What the first URLs of lanes promise now, each with its host."""

    def taken(self, candidate: Candidate, front: Front, *, curious: bool) -> None:
        """A URL is visited now, out of curiosity or for its weight."""

    def curious(self) -> bool:
        """Whether it is time to try something new."""

    def weights(self, candidates: Sequence[Candidate]) -> list[float]:
        """The yield to expect of URLs that are queued."""

    def learn(self, candidate: Candidate, received: int, text: int, ours: bool) -> None:
        """A visit brought so many bytes, so much new text, and something in our language or not."""

    def flush(self) -> None:
        """Hand what was learnt to the state's next commit."""


class Plain:
    """A host promises what it gave; its URLs wait in one lane, in the order in which the policy ranks them."""

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

    def found(self, candidates: Sequence[Candidate], source: Source, links: Sequence[Link]) -> Found:
        factors = self._priorities.factors(source, links)
        queued = [
            replace(one, weight=factor) if factor != 1.0 else one
            for one, factor in zip(candidates, factors, strict=True)
        ]
        return Found(queued, [None] * len(queued))

    def given(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        return list(candidates)

    def unopened(self, host: str) -> Standing:
        return self.standings([(host, 1.0)])[0]

    def fronts(self, candidates: Sequence[Candidate]) -> list[Front]:
        return [candidate.weight for candidate in candidates]

    def forget(self, front: Front) -> None:
        pass

    def standings(self, fronts: Sequence[tuple[str, Front]]) -> list[Standing]:
        return [Standing(self._standing(host, one), 0.0, self._promise(host) * one) for host, one in fronts]

    def _standing(self, host: str, factor: float) -> float:
        power = self._priorities.host_power
        return factor * self._promise(host) ** power if power else factor

    def taken(self, candidate: Candidate, front: Front, *, curious: bool) -> None:
        pass

    def weights(self, candidates: Sequence[Candidate]) -> list[float]:
        return [self._promise(host_of(one.url)) * one.weight for one in candidates]

    def curious(self) -> bool:
        return False

    def learn(self, candidate: Candidate, received: int, text: int, ours: bool) -> None:  # noqa: ARG002
        self._priorities.learn(candidate.url, received, text)

    def flush(self) -> None:
        self._priorities.flush()


class Focus(Plain):
    """The simplest that works: a link is as good as the language of its page and the share of hits of its host."""

    def __init__(self, yields: Yields) -> None:
        super().__init__(Priorities(Policy(name="bfs")), by_weight, yields.promise)
        self._yields = yields

    def found(self, candidates: Sequence[Candidate], source: Source, *_: object) -> Found:
        queued = [replace(one, weight=1.0 if source.ours else FOREIGN) for one in candidates]
        return Found(queued, [None] * len(queued))

    def standings(self, fronts: Sequence[tuple[str, Front]]) -> list[Standing]:
        return [Standing(factor + self._hits(host), 0.0, self._promise(host)) for host, factor in fronts]

    def _hits(self, host: str) -> float:
        tally = self._yields.hosts[host]
        return (tally.kept + 0.5) / (tally.pages + 1)


def by_depth(candidate: Candidate) -> int:
    """The rank of a URL in its lane, where queues are breadth first."""
    return candidate.depth


def by_weight(candidate: Candidate) -> int:
    """The rank of a URL in its lane, where the best is first: two ranks for half the weight."""
    return USUAL - round(2 * log2(max(candidate.weight, 1e-9)))


def guided(
    policy: Policy, language: str, state: State, yields: Yields, random: Random, shard: Shard = ALONE
) -> tuple[Guide, Turning]:
    """The guide of a policy, and how hosts take turns under it."""
    if policy.name == "learned":
        from thresher.crawl.learned.guide import Learned  # with numba, that the others do without

        return Learned(language, state, shard=shard), BestTurns(policy.patience)
    priorities = Priorities(policy, state)
    if policy.name == "focus":
        return Focus(yields), BestTurns(0.0)
    if policy.name == "random":
        return Plain(priorities, lambda _: random.randrange(RANKS), yields.promise), RankedTurns(random, inf)
    if policy.name in ("host-yield", "heidix"):
        return Plain(priorities, by_weight, yields.promise), RankedTurns(random, policy.temperature)
    return Plain(priorities, by_depth, yields.promise), Turns()
