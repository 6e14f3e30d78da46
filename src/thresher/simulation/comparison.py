"""Comparison of policies on one recorded web: means and ranges over runs with different random seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple, get_args

import msgspec
from msgspec import Struct

from thresher.config import PolicyName, PolicySettings
from thresher.errors import UsageError
from thresher.simulation.record import CrawlRecord
from thresher.simulation.simulate import (
    Harvest,
    SimulationTerms,
    area,
    downloads_for,
    ideal,
    oracle,
    simulate,
)

TEXT_GOAL = 0.9  # share of all text; the download until it is reached is reported
MAX_RUNS = 1_000  # of one policy
SHOWN_LANGUAGES = 5


class PolicySummary(Struct, frozen=True):
    """Results of one policy: means of its runs, and the range of their areas."""

    policy: str
    pages: int
    downloaded: int
    text_bytes: int
    share: float  # of all text on record
    area: float  # under its harvest, as a share of the area of the ideal
    downloaded_for_most: int | None  # bytes until 90 % of all text; None: not every run got there
    closed_hosts: int
    seconds: float  # simulated
    runs: int
    area_min: float
    area_max: float


class PolicyResult(NamedTuple):
    """Results of one policy, with the harvest of its first run."""

    row: PolicySummary
    harvest: Harvest


def repeated(
    record: CrawlRecord, policies: Sequence[str], seeds: Sequence[int], terms: SimulationTerms, times: int = 1
) -> Iterator[PolicyResult]:
    """Simulate each policy `times` times, with consecutive random seeds; then the oracle and the ideal.

    UsageError, before the first simulation, if there is no text, no seed, or a policy is unknown.
    """
    best = ideal(record)
    if not len(best.text):
        pages = Counter(filter(None, record.languages)).most_common(SHOWN_LANGUAGES)
        found = ", ".join(f"{code} ({count:,} pages)" for code, count in pages) or "none"
        raise UsageError(
            f"the record has no text in {record.language!r} that a corpus would keep; "
            f"languages on record: {found}; choose one with --lang"
        )
    if not seeds:
        raise UsageError("no seed was fetched when this web was recorded; give fetched URLs with --seeds")
    if not 1 <= times <= MAX_RUNS:
        raise UsageError(f"--repeat must be from 1 to {MAX_RUNS:,}, got {times}; for example --repeat 5")
    named = [PolicySettings(name=known_policy(name)) for name in policies]
    for policy in named:
        harvests = [
            simulate(record, policy, seeds, terms._replace(seed=terms.seed + run)) for run in range(times)
        ]
        yield PolicyResult(_row(policy.name, harvests, best), harvests[0])
    for name, harvest in (("oracle", oracle(record, seeds, terms.bytes)), ("ideal", best)):
        yield PolicyResult(_row(name, [harvest], best), harvest)


def known_policy(name: str) -> PolicyName:
    """Return the name of a policy; UsageError lists the policies if it is unknown."""
    try:
        known: PolicyName = msgspec.convert(name, PolicyName)
        return known
    except msgspec.ValidationError:
        raise UsageError(
            f"unknown policy {name!r}; choose one of {', '.join(get_args(PolicyName))}"
        ) from None


def _row(policy: str, harvests: Sequence[Harvest], best: Harvest) -> PolicySummary:
    """Summarise harvests by their means; the download until TEXT_GOAL is None unless every run got there."""
    areas = [area(harvest, best) for harvest in harvests]
    text = fmean(float(harvest.text[-1]) for harvest in harvests)
    needed = [downloads_for(harvest, TEXT_GOAL * best.text[-1]) for harvest in harvests]
    reached = [one for one in needed if one is not None]
    return PolicySummary(
        policy,
        round(fmean(len(harvest.visited) for harvest in harvests)),
        round(fmean(float(harvest.downloaded[-1]) for harvest in harvests)),
        round(text),
        text / float(best.text[-1]),
        fmean(areas),
        round(fmean(reached)) if len(reached) == len(harvests) else None,
        round(fmean(harvest.closed_hosts for harvest in harvests)),
        fmean(float(harvest.seconds[-1]) for harvest in harvests),
        len(harvests),
        min(areas),
        max(areas),
    )
