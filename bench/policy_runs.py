"""Policies on one web: what they harvest, politely too, and what they cost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from math import inf
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from bench.policy_webs import Case, documents, host_numbers, inside_hosts
from thresher.config import Policy
from thresher.lab.simulate import (
    FURTHER,
    MOST,
    Harvest,
    Terms,
    area,
    downloads_for,
    ideal,
    known_policy,
    oracle,
    simulate,
)

ORACLE = "oracle"
DETERMINED = ("bfs", "spiderling", "learned", ORACLE)  # chance has no part in these
POLITE = Terms(delay=1.0, connections=50)
WARM_BYTES = 200_000

# NCL-Crawl: 50 seeds on hosts in the language, no links to other hosts, 40 iterations of some 640 documents.
NCL_SEEDS, NCL_PAGES = 50, 25_000
GENEROUS = 100_000  # bytes, more than a page has on average

Figures = dict[str, Any]


class Run(NamedTuple):
    """A harvest, and the processor time of it."""

    harvest: Harvest
    cpu_s: float


class Yardstick(NamedTuple):
    """What the policies on a case are measured by."""

    best: Harvest
    limit: int  # bytes after which nobody is looked at any more
    bfs: Run  # to its end, so it has all that can be reached

    @property
    def most(self) -> float:
        """Nearly all the text that can be reached."""
        return MOST * float(self.bfs.harvest.text[-1])

    def text_after(self, harvest: Harvest, downloaded: float) -> float:
        return float(np.interp(downloaded, harvest.downloaded, harvest.text))


def measured(case: Case, policies: Sequence[str], chances: int) -> Iterator[tuple[Figures, Harvest]]:
    """Each policy on a case in figures, bfs first, with the harvest of its first run."""
    best = ideal(case.record)
    limit = FURTHER * int(best.downloaded[-1])
    yardstick = Yardstick(best, limit, _run(case, "bfs", Terms()))
    for policy in dict.fromkeys(["bfs", *policies]):
        if policy == "bfs":
            runs = [yardstick.bfs]
        else:
            seeds = range(1, 2 if policy in DETERMINED else chances + 1)
            runs = [_run(case, policy, Terms(bytes=limit, seed=seed)) for seed in seeds]
        yield _figures(case, policy, runs, yardstick), runs[0].harvest


def polite(case: Case, policy: str) -> Figures:
    """A policy with rests for hosts and many requests under way."""
    best = ideal(case.record)
    run = _run(case, policy, POLITE._replace(bytes=FURTHER * int(best.downloaded[-1])))
    return {
        "name": "polite",
        **case.names,
        "policy": policy,
        "area": area(run.harvest, best),
        "pages": len(run.harvest.visited),
        "web_s": float(run.harvest.seconds[-1]),
    }


def warm(case: Case, policies: Sequence[str]) -> None:
    """A short crawl under each policy, for all that is compiled or loaded on first use."""
    for policy in policies:
        _crawl(case, policy, Terms(bytes=WARM_BYTES))


def among_good_sites(case: Case, policy: str, pages: int = NCL_PAGES) -> Figures:
    """A crawl as NCL-Crawl's was: how much of what was fetched is in the language, and how much is kept?

    The seeds are good pages of the hosts that have most of them. The ceiling is what one could keep who knows
    every page of these hosts beforehand.
    """
    record = inside_hosts(case.record)
    hosts, good = host_numbers(record), record.worth > 0
    chosen = np.argsort(-np.bincount(hosts, good), kind="stable")[:NCL_SEEDS]
    seeds = [int(np.flatnonzero((hosts == host) & good)[0]) for host in chosen]
    run = _run(case._replace(record=record, seeds=seeds), policy, Terms(bytes=pages * GENEROUS))
    visited = run.harvest.visited[:pages]
    gave_page = documents(record)[visited]
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


def _run(case: Case, policy: str, terms: Terms) -> Run:
    """One crawl on paper, timed."""
    started = time.process_time()
    harvest = _crawl(case, policy, terms)
    return Run(harvest, time.process_time() - started)


def _crawl(case: Case, policy: str, terms: Terms) -> Harvest:
    if policy == ORACLE:
        return oracle(case.record, case.seeds, terms.bytes)
    return simulate(case.record, Policy(name=known_policy(policy)), case.seeds, terms)


def _figures(case: Case, policy: str, runs: Sequence[Run], yardstick: Yardstick) -> Figures:
    areas = [area(run.harvest, yardstick.best) for run in runs]
    needed = downloads_for(yardstick.bfs.harvest, yardstick.most)
    enough = [downloads_for(run.harvest, yardstick.most) for run in runs]
    most = median(inf if one is None else one for one in enough) if enough else inf
    pages = sum(len(run.harvest.visited) for run in runs)
    spent = sum(run.cpu_s for run in runs)
    budget = float(yardstick.best.downloaded[-1])
    at_budget = fmean(yardstick.text_after(run.harvest, budget) for run in runs)
    bfs_at_budget = yardstick.text_after(yardstick.bfs.harvest, budget)
    return {
        "name": "policy",
        **case.names,
        "policy": policy,
        "runs": len(runs),
        "area": fmean(areas),
        "area_min": min(areas),
        "area_max": max(areas),
        "text_share": fmean(float(run.harvest.text[-1]) for run in runs) / float(yardstick.best.text[-1]),
        "most_of_bfs": most / needed if needed and most < inf else None,
        "yield": at_budget / budget,
        "yield_of_bfs": at_budget / bfs_at_budget if bfs_at_budget else None,
        "pages": pages // len(runs),
        "pages_per_s": pages / spent if spent else None,
        "cpu_ms_per_page": 1e3 * spent / pages if pages else None,
    }
