"""What links promise. A prioritiser is a function and a row in `PRIORITIES`; a policy is a mix of them.

A prioritiser tells for each link of a page by what factor it is better or worse than a usual one. Factors are
multiplied, each raised to its power in the mix. What a host promises (`host-yield`) has its power there too, but it
changes while URLs wait: so it ranks hosts, in the frontier, and not the URLs of a host.

A prioritiser that learns is a class with `learn` and `flush` (`Learner`). It is made with the state of the crawl,
and keeps there what it is to know when the crawl goes on.

A prioritiser of your own is named by its place, as in `priorities = {"mymodule:better_near_rivers" = 1.0}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from importlib import import_module
from math import isfinite
from typing import Protocol, runtime_checkable

from msgspec import Struct

from thresher.config import ConfigError, Policy
from thresher.crawl.state import Nowhere, State
from thresher.page import Link
from thresher.read.codes import normalise

HOST_YIELD = "host-yield"
GOOD_BADNESS = 10.0  # of a page that is neither a good nor a bad sign; the papers' working threshold
LEAST, MOST = 0.25, 2.0  # factors by the Badness of the page that links
KEPT, NOT_KEPT = 1.5, 0.75  # … and by what became of it
IN_TEXT, IN_BOILERPLATE = 2.0, 0.5  # by the block that the link stands in
OURS, OTHERS = 2.0, 0.5  # for each sign of our language, and of another
DEEPER = 0.9
ALIKE, UNLIKE = 8.0, 0.125  # the most and the least by which siblings make a link better or worse
NEWEST, OLDEST, YEAR_OLDER = 1.5, 0.5, 0.8  # by the dates of a page's links: at most, at least, for each year
RANKED = 1.25  # by the priority that a sitemap gives: times or divided by that at the most
CHANGES = {"always": 1.1, "hourly": 1.1, "daily": 1.1, "yearly": 0.9, "never": 0.9}
LONGEST_CODE = 35  # characters of a language's code
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


@runtime_checkable
class Learner(Protocol):
    """A prioritiser that learns from what came of pages."""

    def __call__(self, source: Source, links: Sequence[Link]) -> Sequence[float]: ...

    def learn(self, url: str, received: int, text: int) -> None:
        """A visit brought so many bytes, and so much new text."""

    def flush(self) -> None:
        """Hand what was learnt to the state's next commit."""


def link_context(source: Source, links: Sequence[Link]) -> list[float]:
    """The quality of the linking page, and where on it a link stands (H8)."""
    page = KEPT if source.kept else NOT_KEPT
    if source.badness is not None:
        page *= min(max(2.0 ** (1.0 - source.badness / GOOD_BADNESS), LEAST), MOST)
    return [page * (IN_TEXT + (IN_BOILERPLATE - IN_TEXT) * link.boilerplate) for link in links]


def url_language(source: Source, links: Sequence[Link]) -> list[float]:
    """What the URL and the words of a link say of the language of its target, before anything was learnt (H6)."""
    from thresher.crawl.learned.clues import Clues  # with numba, that the others do without
    from thresher.crawl.learned.layout import HINTS, NOTES

    if not links:
        return []
    clues = Clues(source.language)
    _, notes = clues.of([link.url for link in links], [b""] * len(links))
    says = notes[:, HINTS:NOTES].tolist()
    told = [clues.tells(link.anchor, link.rel) for link in links]
    return [
        OURS ** (ours + at_home + for_ours) * OTHERS ** (other + abroad + for_other)
        for (ours, other, at_home, abroad), (for_ours, for_other) in zip(says, told, strict=True)
    ]


def depth(source: Source, links: Sequence[Link]) -> list[float]:  # noqa: ARG001
    """The deeper in its host a page lies, the less: a little for each folder and each parameter."""
    return [DEEPER ** (link.url.count("/") - 3 + link.url.count("&")) for link in links]


class Siblings:
    """Pages of a host under one folder, or with names of one shape, do alike: a link is as good as those were."""

    def __init__(self, state: State) -> None:
        from thresher.crawl.learned.kin import Kin  # with numba, that the others do without

        self._kin = Kin(state)

    def __call__(self, source: Source, links: Sequence[Link]) -> list[float]:  # noqa: ARG002
        compared = self._kin.compared([link.url for link in links])
        return [min(max(one, UNLIKE), ALIKE) for one in compared]

    def learn(self, url: str, received: int, text: int) -> None:
        self._kin.add(url, received, text)

    def flush(self) -> None:
        self._kin.flush()


def hints(source: Source, links: Sequence[Link]) -> list[float]:
    """What sitemaps and feeds tell: newer is better, our language is, and a little what they call important.

    Dates are compared with the newest on the same page, so no clock is asked; where all are the same they tell
    nothing.
    """
    told = [dict(mark.split("=", 1) for mark in link.rel.split() if "=" in mark) for link in links]
    days = [_day(marks.get("lastmod", "")) for marks in told]
    known = [day for day in days if day]
    newest = max(known) if known and min(known) < max(known) else 0
    return [
        _freshness(newest, day)
        * _language(marks.get("hreflang", "")[:LONGEST_CODE], source.language)
        * _importance(marks.get("priority", ""))
        * CHANGES.get(marks.get("changefreq", ""), 1.0)
        for marks, day in zip(told, days, strict=True)
    ]


def _day(text: str) -> int:
    """The number of a day, or 0."""
    try:
        return date.fromisoformat(text).toordinal()
    except ValueError:
        return 0


def _freshness(newest: int, day: int) -> float:
    return max(NEWEST * YEAR_OLDER ** ((newest - day) / 365), OLDEST) if newest and day else 1.0


@lru_cache(maxsize=1_000)
def _language(code: str, ours: str) -> float:
    named = normalise(code)
    return 1.0 if not named or not ours else OURS if named == ours else OTHERS


def _importance(text: str) -> float:
    try:
        return float(RANKED ** (2.0 * min(1.0, max(0.0, float(text))) - 1.0))
    except ValueError:
        return 1.0


PRIORITIES: dict[str, Prioritiser | type[Learner]] = {
    "link-context": link_context,
    "url-language": url_language,
    "depth": depth,
    "siblings": Siblings,
    "hints": hints,
}

MIXES: dict[str, Mapping[str, float]] = {
    "host-yield": {HOST_YIELD: 1.0},
    "heidix": {"link-context": 1.0},
}


class Priorities:
    """The mix of a policy, ready for use."""

    def __init__(self, policy: Policy, state: State | None = None) -> None:
        """`state` is where those that learn keep what they know."""
        if policy.priorities and policy.name not in MIXES:
            raise ConfigError(
                f"policy.priorities have no say under policy {policy.name!r}; "
                f"choose policy.name = {' or '.join(map(repr, MIXES))}"
            )
        mix = policy.priorities or MIXES.get(policy.name, {})
        self.host_power = mix.get(HOST_YIELD, 0.0)  # of what a host promises, among hosts
        remembered = state or Nowhere()
        self._mix = [(_found(name, remembered), power) for name, power in mix.items() if name != HOST_YIELD]
        self._learners = [each for each, _ in self._mix if isinstance(each, Learner)]

    def factors(self, source: Source, links: Sequence[Link]) -> list[float]:
        """By how much each link is better or worse than a usual one of its host."""
        factors = [1.0] * len(links)
        for prioritiser, power in self._mix:
            said = prioritiser(source, links)
            factors = [factor * _sane(one) ** power for factor, one in zip(factors, said, strict=True)]
        return factors

    def learn(self, url: str, received: int, text: int) -> None:
        """A visit brought so many bytes, and so much new text."""
        for learner in self._learners:
            learner.learn(url, received, text)

    def flush(self) -> None:
        """Hand what was learnt to the state's next commit."""
        for learner in self._learners:
            learner.flush()


def _sane(factor: float) -> float:
    return min(max(factor, TOO_SMALL), TOO_LARGE) if isfinite(factor) else 1.0


def _found(name: str, state: State) -> Prioritiser:
    """A prioritiser by its name in the table, or by the place of a user's own."""
    found = PRIORITIES[name] if name in PRIORITIES else _own(name)
    return found(state) if isinstance(found, type) else found


def _own(name: str) -> Prioritiser | type[Learner]:
    module, colon, function = name.partition(":")
    cure = f"known are {', '.join((HOST_YIELD, *PRIORITIES))}; your own is named module:function"
    if not colon:
        raise ConfigError(f"policy.priorities: there is no {name!r}; {cure}")
    try:
        own: Prioritiser | type[Learner] = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as fault:
        raise ConfigError(f"policy.priorities: {name!r} cannot be imported: {fault}; {cure}") from None
    if not callable(own):
        raise ConfigError(f"policy.priorities: {name!r} is no function; {cure}")
    if isinstance(own, type) and not issubclass(own, Learner):
        raise ConfigError(f"policy.priorities: {name!r} is a class without __call__, learn and flush; {cure}")
    return own
