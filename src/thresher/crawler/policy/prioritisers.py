"""Prioritisers: functions that value the links of a page. Each is a row in `PRIORITIES`; a policy mixes several.

A prioritiser returns for each link a factor by which it is better or worse than an average link. Factors are
multiplied, each raised to its power in the mix. The yield of the host (`host-yield`) has a power in the mix as
well, but it changes while URLs wait, so it ranks hosts in the frontier instead of links.

A prioritiser that learns is a class with `learn` and `flush` (`LearningPrioritiser`). It is constructed with the
state of the crawl and keeps its memory there until the crawl resumes.

A prioritiser of your own is named by module and function: `priorities = {"mymodule:better_near_rivers" = 1.0}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from importlib import import_module
from math import isfinite
from typing import Protocol, runtime_checkable

from msgspec import Struct

from thresher.config import PolicySettings
from thresher.crawler.storage.kv_state import KeyValueState, NullState
from thresher.errors import UsageError
from thresher.reader.language.codes import normalise
from thresher.records import Link

HOST_YIELD = "host-yield"
NEUTRAL_BADNESS = 10.0  # Badness of a linking page for which the factor is 1; the papers' working threshold
MIN_BADNESS_FACTOR, MAX_BADNESS_FACTOR = 0.25, 2.0
KEPT_FACTOR, NOT_KEPT_FACTOR = 1.5, 0.75  # by the verdict on the linking page
TEXT_FACTOR, BOILERPLATE_FACTOR = 2.0, 0.5  # for boilerplate scores 0 and 1 of the link's block
OWN_LANGUAGE_FACTOR, OTHER_LANGUAGE_FACTOR = 2.0, 0.5  # for each signal
DEPTH_FACTOR = 0.9  # for each folder and each parameter
MIN_SIBLINGS_FACTOR, MAX_SIBLINGS_FACTOR = 0.125, 8.0
NEWEST_FACTOR, OLDEST_FACTOR = 1.5, 0.5  # for the newest link of a page, and the least for older ones
YEAR_FACTOR = 0.8  # for each year that a link is older than the newest
SITEMAP_PRIORITY_FACTOR = 1.25  # for priority 1 in a sitemap; its inverse for priority 0
CHANGE_FACTORS = {"always": 1.1, "hourly": 1.1, "daily": 1.1, "yearly": 0.9, "never": 0.9}
MAX_CODE_CHARS = 35  # of a language code; RFC 5646 asks for no more
MIN_FACTOR, MAX_FACTOR = 1e-6, 1e6  # of one prioritiser


class SourcePage(Struct, frozen=True, gc=False):
    """The page that the links to be valued stand on."""

    url: str
    kept: bool
    badness: float | None = None  # None: unknown
    ours: bool = False  # in the language of the corpus
    rate: float = 0.0  # its yield
    language: str = ""  # of the corpus


Prioritiser = Callable[[SourcePage, Sequence[Link]], Sequence[float]]


@runtime_checkable
class LearningPrioritiser(Protocol):
    """A prioritiser that learns from the results of visits."""

    def __call__(self, source: SourcePage, links: Sequence[Link]) -> Sequence[float]:
        """Return a factor for each link of a page."""

    def learn(self, url: str, received: int, text: int) -> None:
        """Learn from a visit: the bytes downloaded, and the bytes of text that it added to the corpus."""

    def flush(self) -> None:
        """Add changes to the next commit of the state."""


def link_context(source: SourcePage, links: Sequence[Link]) -> list[float]:
    """Value links by the quality of their page, and by the boilerplate score of their block."""
    page = KEPT_FACTOR if source.kept else NOT_KEPT_FACTOR
    if source.badness is not None:
        page *= min(
            max(2.0 ** (1.0 - source.badness / NEUTRAL_BADNESS), MIN_BADNESS_FACTOR), MAX_BADNESS_FACTOR
        )
    return [page * (TEXT_FACTOR + (BOILERPLATE_FACTOR - TEXT_FACTOR) * link.boilerplate) for link in links]


def url_language(source: SourcePage, links: Sequence[Link]) -> list[float]:
    """Value links by the signals of language in URL, top-level domain, anchor and hreflang."""
    from thresher.crawler.policy.learned.feature_layout import HINTS, SIGNALS
    from thresher.crawler.policy.learned.features import FeatureExtractor  # imports numba

    if not links:
        return []
    features = FeatureExtractor(source.language)
    _, values = features.of([link.url for link in links], [b""] * len(links))
    url_signals = values[:, HINTS:SIGNALS].tolist()
    signals = [features.language_signals(link.anchor, link.rel) for link in links]
    return [
        OWN_LANGUAGE_FACTOR ** (ours + at_home + for_ours)
        * OTHER_LANGUAGE_FACTOR ** (other + abroad + for_other)
        for (ours, other, at_home, abroad), (for_ours, for_other) in zip(url_signals, signals, strict=True)
    ]


def depth(source: SourcePage, links: Sequence[Link]) -> list[float]:  # noqa: ARG001
    """Value links by the depth of their URL: the fewer folders and parameters, the better."""
    return [DEPTH_FACTOR ** (link.url.count("/") - 3 + link.url.count("&")) for link in links]


class SiblingPrioritiser:
    """Values links by the yield of their siblings: pages of the host in one folder, or with names of one shape."""

    def __init__(self, state: KeyValueState) -> None:
        from thresher.crawler.policy.learned.siblings import SiblingStats  # imports numba

        self._siblings = SiblingStats(state)

    def __call__(self, source: SourcePage, links: Sequence[Link]) -> list[float]:  # noqa: ARG002
        """Return for each link the expected yield as a multiple of the yield of its host, within bounds."""
        compared = self._siblings.compared([link.url for link in links])
        return [min(max(one, MIN_SIBLINGS_FACTOR), MAX_SIBLINGS_FACTOR) for one in compared]

    def learn(self, url: str, received: int, text: int) -> None:
        """Add the result of a visit."""
        self._siblings.add(url, received, text)

    def flush(self) -> None:
        """Add changes to the next commit of the state."""
        self._siblings.flush()


def hints(source: SourcePage, links: Sequence[Link]) -> list[float]:
    """Value links by hints of sitemaps and feeds: date, language, and a little by priority and change frequency.

    Dates are compared with the newest date on the same page, so the result does not depend on a clock. If all dates
    are equal they do not count.
    """
    signals = [dict(mark.split("=", 1) for mark in link.rel.split() if "=" in mark) for link in links]
    days = [_day(marks.get("lastmod", "")) for marks in signals]
    known = [day for day in days if day]
    newest = max(known) if known and min(known) < max(known) else 0
    return [
        _freshness(newest, day)
        * _language(marks.get("hreflang", "")[:MAX_CODE_CHARS], source.language)
        * _importance(marks.get("priority", ""))
        * CHANGE_FACTORS.get(marks.get("changefreq", ""), 1.0)
        for marks, day in zip(signals, days, strict=True)
    ]


def _day(text: str) -> int:
    """Return the ordinal of an ISO date, or 0 if it cannot be parsed."""
    try:
        return date.fromisoformat(text).toordinal()
    except ValueError:
        return 0


def _freshness(newest: int, day: int) -> float:
    return (
        max(NEWEST_FACTOR * YEAR_FACTOR ** ((newest - day) / 365), OLDEST_FACTOR) if newest and day else 1.0
    )


@lru_cache(maxsize=1_000)
def _language(code: str, ours: str) -> float:
    named = normalise(code)
    return 1.0 if not named or not ours else OWN_LANGUAGE_FACTOR if named == ours else OTHER_LANGUAGE_FACTOR


def _importance(text: str) -> float:
    try:
        return float(SITEMAP_PRIORITY_FACTOR ** (2.0 * min(1.0, max(0.0, float(text))) - 1.0))
    except ValueError:
        return 1.0


PRIORITIES: dict[str, Prioritiser | type[LearningPrioritiser]] = {
    "link-context": link_context,
    "url-language": url_language,
    "depth": depth,
    "siblings": SiblingPrioritiser,
    "hints": hints,
}

MIXES: dict[str, Mapping[str, float]] = {
    "host-yield": {HOST_YIELD: 1.0},
    "heidix": {"link-context": 1.0},
}


class Priorities:
    """The prioritisers of a policy, mixed by their powers."""

    def __init__(self, policy: PolicySettings, state: KeyValueState | None = None) -> None:
        """Construct the prioritisers; without a state, their memory ends with the process."""
        if policy.priorities and policy.name not in MIXES:
            raise UsageError(
                f"policy.priorities has no effect under policy {policy.name!r}; "
                f"choose policy.name = {' or '.join(map(repr, MIXES))}"
            )
        mix = policy.priorities or MIXES.get(policy.name, {})
        self.host_power = mix.get(HOST_YIELD, 0.0)  # of the expected yield of a host, among hosts
        remembered = state or NullState()
        self._mix = [
            (_prioritiser(name, remembered), power) for name, power in mix.items() if name != HOST_YIELD
        ]
        self._learners = [each for each, _ in self._mix if isinstance(each, LearningPrioritiser)]

    def factors(self, source: SourcePage, links: Sequence[Link]) -> list[float]:
        """Return for each link the factor by which it is better or worse than an average link."""
        factors = [1.0] * len(links)
        for prioritiser, power in self._mix:
            values = prioritiser(source, links)
            factors = [factor * _bounded(one) ** power for factor, one in zip(factors, values, strict=True)]
        return factors

    def learn(self, url: str, received: int, text: int) -> None:
        """Pass the result of a visit to the prioritisers that learn."""
        for learner in self._learners:
            learner.learn(url, received, text)

    def flush(self) -> None:
        """Add changes to the next commit of the state."""
        for learner in self._learners:
            learner.flush()


def _bounded(factor: float) -> float:
    return min(max(factor, MIN_FACTOR), MAX_FACTOR) if isfinite(factor) else 1.0


def _prioritiser(name: str, state: KeyValueState) -> Prioritiser:
    """Return a prioritiser by its name in `PRIORITIES`, or import the user's own by module and function."""
    found = PRIORITIES[name] if name in PRIORITIES else _imported(name)
    return found(state) if isinstance(found, type) else found


def _imported(name: str) -> Prioritiser | type[LearningPrioritiser]:
    module, colon, function = name.partition(":")
    choice = f"known are {', '.join((HOST_YIELD, *PRIORITIES))}; your own is named module:function"
    if not colon:
        raise UsageError(f"policy.priorities: unknown prioritiser {name!r}; {choice}")
    try:
        own: Prioritiser | type[LearningPrioritiser] = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as fault:
        raise UsageError(f"policy.priorities: {name!r} cannot be imported: {fault}; {choice}") from None
    if not callable(own):
        raise UsageError(f"policy.priorities: {name!r} is not a function; {choice}")
    if isinstance(own, type) and not issubclass(own, LearningPrioritiser):
        raise UsageError(
            f"policy.priorities: {name!r} is a class without __call__, learn and flush; {choice}"
        )
    return own
