"""Explanation of the weight of a URL: the evidence from similar URLs, for each kind of feature."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow.compute as pc
from msgspec import Struct

from thresher.config import Config, load
from thresher.crawler.frontier.seen import is_seen
from thresher.crawler.frontier.stored_queue import candidates_of_host, read_host
from thresher.crawler.policy.policy import CrawlPolicy, LaneStanding, make_policy
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.errors import UsageError
from thresher.records import Candidate
from thresher.store.corpus_files import CorpusFiles, of_part
from thresher.store.shard_layout import looked, shard_of, state_folder
from thresher.urls import canonical, key
from thresher.urls import host as host_of


class FeatureEvidence(Struct, frozen=True):
    """The evidence for one feature that a URL shares with others."""

    name: str
    pages: float = 0.0  # visited pages with the feature; older ones count less
    rate: float | None = None  # their text bytes per byte downloaded; None: unknown
    ours: float | None = None  # their share in the language of the corpus
    without: float | None = None  # the predicted yield of the URL without this evidence


class Explanation(Struct, frozen=True):
    """The state of a URL in a crawl, its weight and the evidence behind it."""

    url: str
    state: str  # waiting, visited, seen or unknown
    detail: str  # a sentence
    policy: str
    weight: float  # its value among the URLs that wait
    expected: float  # predicted text bytes per byte downloaded
    behind: float | None = None  # the same for the pages behind it
    features: tuple[FeatureEvidence, ...] = ()


def explain(directory: Path, url: str) -> Explanation:
    """Explain the weight of a URL in a crawl as of the last commit; the URL may be unknown to the crawl.

    UsageError if it is not a URL, or if nothing was crawled yet.
    """
    config = load(directory)
    wanted = canonical(url)
    if wanted is None:
        raise UsageError(f"{url!r} is not a URL that can be crawled; for example https://example.org/")

    def look(parts: list[Path]) -> Explanation | None:
        """Explain it from the state of the shard that owns the host."""
        for part in parts:
            if shard_of(part, config).owns(host_of(wanted)) and state_folder(part).is_dir():
                return _from_state(part, config, wanted)
        return None

    if (found := looked(directory, config, look)) is None:
        raise UsageError(f"{directory} has no URLs yet; crawl it first: thresher crawl {directory}")
    return found


def _from_state(part: Path, config: Config, url: str) -> Explanation:
    state = KeyValueState(state_folder(part), read_only=True)
    try:
        return _explained(part, config, state, url)
    finally:
        state.close()


def _explained(part: Path, config: Config, state: KeyValueState, url: str) -> Explanation:
    yields = YieldStats(state)
    policy = make_policy(config.policy, config.language, state, yields, Random(1))
    candidate, where, detail = _found(of_part(part, config), state, url)
    if candidate is None:
        candidate = policy.weigh_urls([Candidate(url, via="page")])[0]
    front = policy.prepare_fronts([candidate])[0]
    standing = policy.standings([(host_of(url), front)])[0]
    if config.policy.name == "learned":
        return _explained_by_features(url, where, detail, policy, candidate, standing)
    tally = yields.hosts[host_of(url)]
    return Explanation(
        url,
        where,
        detail,
        config.policy.name,
        standing.weight,
        standing.expected,
        features=(FeatureEvidence("its host", tally.pages, tally.rate if tally.bytes else None),),
    )


def _found(corpus: CorpusFiles, state: KeyValueState, url: str) -> tuple[Candidate | None, str, str]:
    """Return the queued candidate, or None; the state of the URL; and a sentence about it."""
    stored = read_host(state, host_of(url))
    wanted = key(url)
    if stored:
        for place, candidate in enumerate(candidates_of_host(state, stored), 1):
            if key(candidate.url) == wanted:
                guessed = f"; guessed from {candidate.source}" if candidate.via == "guess" else ""
                order = f"waits with {stored.queued:,} URLs of its host, {_nth(place)} in its order"
                return candidate, "waiting", order + guessed
    outcomes = corpus.outcomes(["url", "outcome", "reason", "text_bytes", "bytes", "weight"])
    rows = outcomes.filter(pc.field("url") == url).to_pylist()
    if rows:
        row = rows[-1]
        outcome = f"{row['outcome']} {row['reason']}".strip()
        gave = f"{row['text_bytes']:,} bytes of text for {row['bytes']:,} downloaded"
        return None, "visited", f"{outcome}: {gave}; {row['weight']:.3f} was expected"
    if is_seen(state, wanted):
        return None, "seen", "was found, but will not be visited"
    return None, "unknown", "no visited page links to it; the weight is the one that it would have"


def _nth(place: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(place, f"{place:,}th")


def _explained_by_features(
    url: str, where: str, detail: str, policy: CrawlPolicy, candidate: Candidate, standing: LaneStanding
) -> Explanation:
    from thresher.crawler.policy.learned.explanation import explain_features
    from thresher.crawler.policy.learned.learned_policy import LearnedPolicy  # imports numba

    assert isinstance(policy, LearnedPolicy)
    behind, features = explain_features(policy, candidate)
    return Explanation(
        url,
        where,
        detail,
        "learned",
        standing.weight,
        standing.expected,
        behind,
        tuple(FeatureEvidence(*feature) for feature in features),
    )
