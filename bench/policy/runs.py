"""Policies on one web: their harvests, also polite ones, and their costs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from math import inf
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from bench.policy.webs import Case, host_numbers, inside_hosts
from thresher.config import PolicySettings
from thresher.simulation.comparison import TEXT_GOAL, known_policy
from thresher.simulation.simulate import (
    HARVEST_LIMIT,
    Harvest,
    SimulationTerms,
    area,
    downloads_for,
    ideal,
    oracle,
    simulate,
)

ORACLE = "oracle"
DETERMINED = ("bfs", "spiderling", "focus", "learned", ORACLE)  # policies without randomness
POLITE = SimulationTerms(delay=1.0, connections=50)
WARM_BYTES = 200_000
# Share of the downloads that bfs needs for most of the text; other policies are followed as far as that.
FOLLOWED = 0.25

# NCL-Crawl: 50 seeds on hosts in the language, no links to other hosts, some 25,000 documents. Here the hosts have
# 26,000 in all, so later requests would only find the rest of them.
NCL_SEEDS, NCL_PAGES = 50, 20_000
GENEROUS = 100_000  # bytes, more than a page has on average

Figures = dict[str, Any]


class Run(NamedTuple):
    """A harvest, and the processor time of its crawl."""

    harvest: Harvest
    cpu_s: float


class Yardstick(NamedTuple):
    """Measures that the policies on a case are compared by."""

    best: Harvest
    bfs: Run  # to its end, so it has all that can be reached

    @property
    def most(self) -> float:
        """Text that counts as most of it: 90 % of all that can be reached."""
        return TEXT_GOAL * float(self.bfs.harvest.text[-1])

    @property
    def needed(self) -> int:
        """Bytes that bfs downloads for most of the text."""
        return downloads_for(self.bfs.harvest, self.most) or 0

    @property
    def limit(self) -> int:
        """Bytes after which a policy counts as never reaching most of the text."""
        return max(HARVEST_LIMIT * int(self.best.downloaded[-1]), int(FOLLOWED * self.needed))


def measured(case: Case, policies: Sequence[str], chances: int) -> Iterator[tuple[Figures, Harvest]]:
    """Return the figures of each policy on a case, bfs first, with the harvest of its first run."""
    yardstick = Yardstick(ideal(case.record), _run(case, "bfs", SimulationTerms()))
    for policy in dict.fromkeys(["bfs", *policies]):
        if policy == "bfs":
            runs = [yardstick.bfs]
        else:
            seeds = range(1, 2 if policy in DETERMINED else chances + 1)
            runs = [_run(case, policy, SimulationTerms(bytes=yardstick.limit, seed=seed)) for seed in seeds]
        shown = _until(runs[0].harvest, HARVEST_LIMIT * int(yardstick.best.downloaded[-1]))
        yield _figures(case, policy, runs, yardstick), shown


def polite(case: Case, policy: str) -> Figures:
    """Return the figures of a policy with delays for hosts and many requests under way."""
    best = ideal(case.record)
    run = _run(case, policy, POLITE._replace(bytes=HARVEST_LIMIT * int(best.downloaded[-1])))
    return {
        "name": "polite",
        **case.names,
        "policy": policy,
        "area": area(run.harvest, best),
        "pages": len(run.harvest.visited),
        "web_s": float(run.harvest.seconds[-1]),
    }


def warm(case: Case, policies: Sequence[str]) -> None:
    """Run a short crawl under each policy, to compile and load everything that first use needs."""
    for policy in policies:
        _crawl(case, policy, SimulationTerms(bytes=WARM_BYTES))


def among_good_sites(case: Case, policy: str, pages: int = NCL_PAGES) -> Figures:
    """Run a crawl like NCL-Crawl's; return the shares of fetched pages in the language and of kept ones.

    The seeds are good pages of the hosts that have most of them. The ceiling is the share for a crawler that knows
    every page of these hosts beforehand.
    """
    record = inside_hosts(case.record)
    hosts, good = host_numbers(record), record.worth > 0
    chosen = np.argsort(-np.bincount(hosts, good), kind="stable")[:NCL_SEEDS]
    seeds = [int(np.flatnonzero((hosts == host) & good)[0]) for host in chosen]
    run = _run(case._replace(record=record, seeds=seeds), policy, SimulationTerms(bytes=pages * GENEROUS))
    visited = run.harvest.visited[:pages]
    gave_page = record.are_pages[visited]
    ours = np.array([record.languages[number] == record.language for number in visited.tolist()])
    there = int((good & np.isin(hosts, chosen)).sum())
    return {
        "name": "among good sites",
        "web": case.web,
        "policy": policy,
        "pages": len(visited),
        "documents": int(gave_page.sum()),
        "in_language": float(ours.sum() / max(1, gave_page.sum())),  # of documents, as the paper counts
        "kept": float(good[visited].mean()),  # of all that was fetched
        "kept_at_best": min(there, len(visited)) / max(1, len(visited)),
    }


def _run(case: Case, policy: str, terms: SimulationTerms) -> Run:
    """Run one simulated crawl and time it."""
    started = time.process_time()
    harvest = _crawl(case, policy, terms)
    return Run(harvest, time.process_time() - started)


def _crawl(case: Case, policy: str, terms: SimulationTerms) -> Harvest:
    if policy == ORACLE:
        return oracle(case.record, case.seeds, terms.bytes)
    return simulate(case.record, PolicySettings(name=known_policy(policy)), case.seeds, terms)


def _figures(case: Case, policy: str, runs: Sequence[Run], yardstick: Yardstick) -> Figures:
    areas = [area(run.harvest, yardstick.best) for run in runs]
    enough = [downloads_for(run.harvest, yardstick.most) for run in runs]
    most = median(inf if one is None else one for one in enough)
    pages = sum(len(run.harvest.visited) for run in runs)
    spent = sum(run.cpu_s for run in runs)
    budget = float(yardstick.best.downloaded[-1])
    text = fmean(_text_after(run.harvest, budget) for run in runs)
    return {
        "name": "policy",
        **case.names,
        "policy": policy,
        "runs": len(runs),
        "area": fmean(areas),
        "area_min": min(areas),
        "area_max": max(areas),
        "most_of_bfs": most / yardstick.needed if most < inf else None,
        "yield": text / budget,
        "yield_of_bfs": text / max(1.0, _text_after(yardstick.bfs.harvest, budget)),
        "pages": pages // len(runs),
        "pages_per_s": pages / spent,
        "cpu_ms_per_page": 1e3 * spent / pages,
    }


def _until(harvest: Harvest, downloaded: int) -> Harvest:
    """Return the part of a harvest up to so many bytes."""
    end = int(np.searchsorted(harvest.downloaded, downloaded)) + 1
    return harvest._replace(
        visited=harvest.visited[:end],
        seconds=harvest.seconds[:end],
        downloaded=harvest.downloaded[:end],
        text=harvest.text[:end],
    )


def _text_after(harvest: Harvest, downloaded: float) -> float:
    return float(np.interp(downloaded, harvest.downloaded, harvest.text))
