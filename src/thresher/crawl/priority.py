"""What links promise. A prioritiser is a function and a row in `PRIORITIES`; a policy is a mix of them.

A prioritiser tells for each link of a page by what factor it is better or worse than a usual one. Factors are
multiplied, each raised to its power in the mix. What a host promises (`host-yield`) has its power there too, but it
changes while URLs wait: so it ranks hosts, in the frontier, and not the URLs of a host.

A prioritiser of your own is named by its place, as in `priorities = {"mymodule:better_near_rivers" = 1.0}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from math import isfinite

from msgspec import Struct

from thresher.config import ConfigError, Policy
from thresher.page import Link

HOST_YIELD = "host-yield"
GOOD_BADNESS = 10.0  # of a page that is neither a good nor a bad sign; the papers' working threshold
LEAST, MOST = 0.25, 2.0  # factors by the Badness of the page that links
KEPT, NOT_KEPT = 1.5, 0.75  # … and by what became of it
IN_TEXT, IN_BOILERPLATE = 2.0, 0.5  # by the block that the link stands in
OURS, OTHERS, SAYINGS = (
    2.0,
    0.5,
    4,
)  # factors for each sign of our language and of another, and signs of a URL
DEEPER = 0.9
TOO_SMALL, TOO_LARGE = 1e-6, 1e6  # what a prioritiser may say


class Source(Struct, frozen=True, gc=False):
    """The page whose links are weighed."""

    url: str
    kept: bool
    badness: float | None = None  # None: unknown
    ours: bool = False  # in the language of the corpus
    rate: float = 0.0  # its yield
    language: str = ""  # of the corpus


Prioritiser = Callable[[Source, Sequence[Link]], Sequence[float]]


def link_context(source: Source, links: Sequence[Link]) -> list[float]:
    """The quality of the linking page, and where on it a link stands (H8)."""
    page = KEPT if source.kept else NOT_KEPT
    if source.badness is not None:
        page *= min(max(2.0 ** (1.0 - source.badness / GOOD_BADNESS), LEAST), MOST)
    return [page * (IN_TEXT + (IN_BOILERPLATE - IN_TEXT) * link.boilerplate) for link in links]


def url_language(source: Source, links: Sequence[Link]) -> list[float]:
    """What the URL and the words of a link say of the language of its target, before anything was learnt (H6)."""
    from thresher.crawl.learned.clues import Clues  # with numba, that the others do without

    if not links:
        return []
    clues = Clues(source.language)
    _, notes = clues.of([link.url for link in links], [b""] * len(links))
    says = notes[:, -SAYINGS:].tolist()
    told = [clues.tells(link.anchor, link.rel) for link in links]
    return [
        OURS ** (ours + at_home + for_ours) * OTHERS ** (other + abroad + for_other)
        for (ours, other, at_home, abroad), (for_ours, for_other) in zip(says, told, strict=True)
    ]


def depth(source: Source, links: Sequence[Link]) -> list[float]:  # noqa: ARG001
    """The deeper in its host a page lies, the less: a little for each folder and each parameter."""
    return [DEEPER ** (link.url.count("/") - 3 + link.url.count("&")) for link in links]


PRIORITIES: dict[str, Prioritiser] = {
    "link-context": link_context,
    "url-language": url_language,
    "depth": depth,
}

MIXES: dict[str, Mapping[str, float]] = {
    "host-yield": {HOST_YIELD: 1.0},
    "heidix": {"link-context": 1.0},
}


class Priorities:
    """The mix of a policy, ready for use."""

    def __init__(self, policy: Policy) -> None:
        if policy.priorities and policy.name not in MIXES:
            raise ConfigError(
                f"policy.priorities have no say under policy {policy.name!r}; "
                f"choose policy.name = {' or '.join(map(repr, MIXES))}"
            )
        mix = policy.priorities or MIXES.get(policy.name, {})
        self.host_power = mix.get(HOST_YIELD, 0.0)  # of what a host promises, among hosts
        self._mix = [(_found(name), power) for name, power in mix.items() if name != HOST_YIELD]

    def factors(self, source: Source, links: Sequence[Link]) -> list[float]:
        """By how much each link is better or worse than a usual one of its host."""
        factors = [1.0] * len(links)
        for prioritiser, power in self._mix:
            said = prioritiser(source, links)
            factors = [factor * _sane(one) ** power for factor, one in zip(factors, said, strict=True)]
        return factors


def _sane(factor: float) -> float:
    return min(max(factor, TOO_SMALL), TOO_LARGE) if isfinite(factor) else 1.0


def _found(name: str) -> Prioritiser:
    """A prioritiser by its name in the table, or by the place of a user's own."""
    if name in PRIORITIES:
        return PRIORITIES[name]
    module, colon, function = name.partition(":")
    cure = f"known are {', '.join((HOST_YIELD, *PRIORITIES))}; your own is named module:function"
    if not colon:
        raise ConfigError(f"policy.priorities: there is no {name!r}; {cure}")
    try:
        own: Prioritiser = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as fault:
        raise ConfigError(f"policy.priorities: {name!r} cannot be imported: {fault}; {cure}") from None
    if not callable(own):
        raise ConfigError(f"policy.priorities: {name!r} is no function; {cure}")
    return own
