"""Policies on the same web, each as often as one likes with other chance: means, ranges and harvests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple, get_args

import msgspec
from msgspec import Struct

from thresher.config import ConfigError, Policy, PolicyName
from thresher.lab.record import Record
from thresher.lab.simulate import (
    Harvest,
    Terms,
    area,
    downloads_for,
    ideal,
    oracle,
    simulate,
)

MOST = 0.9  # of all text
MANY = 1_000  # runs of one policy


class Row(Struct, frozen=True):
    """One policy in figures: the means of its runs, and the range of its areas."""

    policy: str
    pages: int
    downloaded: int
    text_bytes: int
    share: float  # of all the text there is
    area: float  # under its harvest, as a share of the ideal's
    downloaded_for_most: int | None  # bytes until it had 90 % of all text; None: it never had
    closed_hosts: int
    seconds: float  # of the web's time
    runs: int
    area_min: float
    area_max: float


class Result(NamedTuple):
    """A policy with the harvest of its first run."""

    row: Row
    harvest: Harvest


def repeated(
    record: Record, policies: Sequence[str], seeds: Sequence[int], terms: Terms, times: int = 1
) -> Iterator[Result]:
    """Each policy so many times, chance beginning with the seed of the terms; then the oracle and the ideal."""
    best = ideal(record)
    if not len(best.text):
        raise ConfigError("there is nothing to harvest: the record has no text in that language; try --lang")
    if not seeds:
        raise ConfigError("no seed was fetched when this web was recorded; give others with --seeds")
    if not 1 <= times <= MANY:
        raise ConfigError(f"--repeat {times} is no number from 1 to {MANY:,}; try 5")
    named = [Policy(name=known_policy(name)) for name in policies]  # before the first, that may take long
    for policy in named:
        harvests = [
            simulate(record, policy, seeds, terms._replace(seed=terms.seed + run)) for run in range(times)
        ]
        yield Result(_row(policy.name, harvests, best), harvests[0])
    for name, harvest in (("oracle", oracle(record, seeds, terms.bytes)), ("ideal", best)):
        yield Result(_row(name, [harvest], best), harvest)


def known_policy(name: str) -> PolicyName:
    """The name of a policy; ConfigError tells which there are."""
    try:
        known: PolicyName = msgspec.convert(name, PolicyName)
        return known
    except msgspec.ValidationError:
        raise ConfigError(
            f"there is no policy {name!r}; choose from {', '.join(get_args(PolicyName))}"
        ) from None


def _row(policy: str, harvests: Sequence[Harvest], best: Harvest) -> Row:
    """The means of some harvests. Nearly all text was had if every run had it."""
    areas = [area(harvest, best) for harvest in harvests]
    text = fmean(float(harvest.text[-1]) for harvest in harvests)
    needed = [downloads_for(harvest, MOST * best.text[-1]) for harvest in harvests]
    got_there = [one for one in needed if one is not None]
    return Row(
        policy,
        round(fmean(len(harvest.visited) for harvest in harvests)),
        round(fmean(float(harvest.downloaded[-1]) for harvest in harvests)),
        round(text),
        text / float(best.text[-1]),
        fmean(areas),
        round(fmean(got_there)) if len(got_there) == len(harvests) else None,
        round(fmean(harvest.closed_hosts for harvest in harvests)),
        fmean(float(harvest.seconds[-1]) for harvest in harvests),
        len(harvests),
        min(areas),
        max(areas),
    )
