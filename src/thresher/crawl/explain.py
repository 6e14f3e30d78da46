"""Why a URL has its weight: what is known of others like it, and what each kind of clue makes of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow.compute as pc
from msgspec import Struct

from thresher.config import Config, ConfigError, load
from thresher.crawl.frontier import HOSTS, decode_host, waiting
from thresher.crawl.guide import Guide, Standing, guided
from thresher.crawl.seen import PREFIX as SEEN
from thresher.crawl.state import State
from thresher.crawl.yields import Yields
from thresher.page import Candidate
from thresher.store.corpus import Corpus, of_part
from thresher.store.shards import looked, shard_of, state_folder
from thresher.url import canonical, key
from thresher.url import host as host_of


class Clue(Struct, frozen=True):
    """What is known of one thing that a URL shares with others."""

    name: str
    pages: float = 0.0  # visited; older ones count for less
    rate: float | None = None  # text bytes per byte downloaded there; None: nothing is known
    ours: float | None = None  # share of those pages in the language of the corpus
    without: float | None = None  # the yield to expect if nothing were known of it


class Explanation(Struct, frozen=True):
    """All there is to say about a URL."""

    url: str
    state: str  # waiting, visited, seen or unknown
    detail: str  # in words
    policy: str
    weight: float  # by which it is chosen among those that wait
    expected: float  # text bytes per byte downloaded, of itself …
    behind: float | None = None  # … and of what lies behind it
    clues: tuple[Clue, ...] = ()


def explain(directory: Path, url: str) -> Explanation:
    """Why a URL has its weight in a crawl, as of the last commit; also of one that nobody has seen yet."""
    config = load(directory)
    wanted = canonical(url)
    if wanted is None:
        raise ConfigError(f"{url!r} is not a URL that can be crawled; try https://example.org/")

    def look(parts: list[Path]) -> Explanation | None:
        """As the one shard sees it that has the host."""
        for part in parts:
            if shard_of(part, config).owns(host_of(wanted)) and state_folder(part).is_dir():
                return _told(part, config, wanted)
        return None

    if (found := looked(directory, config, look)) is None:
        raise ConfigError(f"{directory} has no URLs yet; crawl it first: thresher crawl {directory}")
    return found


def _told(part: Path, config: Config, url: str) -> Explanation:
    state = State(state_folder(part), read_only=True)
    try:
        return _explained(part, config, state, url)
    finally:
        state.close()


def _explained(part: Path, config: Config, state: State, url: str) -> Explanation:
    yields = Yields(state)
    guide, _ = guided(config.policy, config.language, state, yields, Random(1))
    candidate, where, detail = _found(of_part(part, config), state, url)
    if candidate is None:
        candidate = guide.given([Candidate(url, via="page")])[0]
    front = guide.fronts([candidate])[0]
    standing = guide.standings([(host_of(url), front)])[0]
    if config.policy.name == "learned":
        return _of_learned(url, where, detail, guide, candidate, standing)
    tally = yields.hosts[host_of(url)]
    return Explanation(
        url,
        where,
        detail,
        config.policy.name,
        standing.weight,
        standing.expected,
        clues=(Clue("its host", tally.pages, tally.rate if tally.bytes else None),),
    )


def _found(corpus: Corpus, state: State, url: str) -> tuple[Candidate | None, str, str]:
    """The URL as it is queued, where it is, and that in words."""
    record = state.get(HOSTS + host_of(url).encode())
    wanted = key(url)
    if record:
        number, queued, _ = decode_host(record)
        for place, candidate in enumerate(waiting(state, number), 1):
            if key(candidate.url) == wanted:
                guessed = f"; guessed from {candidate.source}" if candidate.via == "guess" else ""
                order = f"waits with {queued:,} URLs of its host, {_nth(place)} in its order"
                return candidate, "waiting", order + guessed
    outcomes = corpus.outcomes(["url", "outcome", "reason", "text_bytes", "bytes", "weight"])
    rows = outcomes.filter(pc.field("url") == url).to_pylist()
    if rows:
        row = rows[-1]
        said = f"{row['outcome']} {row['reason']}".strip()
        gave = f"{row['text_bytes']:,} bytes of text for {row['bytes']:,} downloaded"
        return None, "visited", f"{said}: {gave}; {row['weight']:.3f} was expected"
    if SEEN + wanted in state:
        return None, "seen", "was found, but is not to be visited"
    return None, "unknown", "nobody has linked to it so far; this is what it would be worth"


def _nth(place: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(place, f"{place:,}th")


def _of_learned(
    url: str, where: str, detail: str, guide: Guide, candidate: Candidate, standing: Standing
) -> Explanation:
    from thresher.crawl.learned.guide import Learned  # with numba, that other policies do without
    from thresher.crawl.learned.reasons import reasons

    assert isinstance(guide, Learned)
    behind, clues = reasons(guide, candidate)
    return Explanation(
        url,
        where,
        detail,
        "learned",
        standing.weight,
        standing.expected,
        behind,
        tuple(Clue(*clue) for clue in clues),
    )
