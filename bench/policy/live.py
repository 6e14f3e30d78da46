"""A crawl over HTTP beside the same crawl simulated, to check that simulations predict real crawls.

There is a second between requests to a host, as on the real web, so that politeness decides the order of visits,
and not the speed of this machine.

Which large host is found first is a matter of chance, over HTTP as in simulation. So the crawl is compared with the
mean of several simulations with other response times; the distance of each of these from the mean of the others is
reported, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import thresher as product
from bench.contenders import thresher
from bench.measure import say
from bench.policy.runs import Figures
from bench.webs import Web
from thresher.config import PolicySettings
from thresher.simulation.record import load
from thresher.simulation.simulate import Harvest, SimulationTerms, ideal, simulate
from thresher_lab.toyweb import ToyWeb, seeds, serve
from thresher_lab.toyweb.simulation_record import record_of

HOSTS = 2_000
PAGES = (30, 30)  # of a host; where sizes differ, chance decides: two live crawls were 0.14 apart
DELAY = 1.0  # seconds between two requests to a host
CONNECTIONS = 50
CHANCES = 5  # simulated crawls
FURTHER = 2  # times the downloads of the ideal
POINTS = 500  # at which the two curves are compared


class Comparison(NamedTuple):
    """Figures of the comparison, with the live, the mean simulated and the ideal harvest."""

    figures: Figures
    live: Harvest
    paper: Harvest
    best: Harvest


def compared(hosts: int = HOSTS) -> Comparison:
    """Run the learned policy on a toy web of small hosts, over HTTP and simulated, to the same number of bytes."""
    web = ToyWeb.papers(
        hosts=hosts,
        pages_per_host=PAGES,
        crawl_delay=DELAY,
        slow_seconds=0.1,
        drip_seconds=0.2,
    )
    say(f"live: planning a toy web of {hosts:,} hosts")
    record = record_of(web)
    best = ideal(record)
    limit = int(FURTHER * best.downloaded[-1])
    start = seeds(web)[web.target]
    say(f"live: crawling it until {limit / 1e6:,.0f} MB are downloaded")
    live, latency, figures = _live(web, start, limit)
    papers = [
        simulate(
            record,
            PolicySettings(name="learned"),
            record.find(start),
            SimulationTerms(DELAY, CONNECTIONS, latency, limit, seed),
        )
        for seed in range(1, CHANCES + 1)
    ]
    paper = mean(papers)
    by_chance = [
        distances(one, mean([other for other in papers if other is not one]))["largest_distance"]
        for one in papers
    ]
    return Comparison(
        {
            "name": "live",
            "hosts": hosts,
            "pages": figures["requests"],
            "wall_s": figures["wall_s"],
            "paper_s": float(np.mean([one.seconds[-1] for one in papers])),
            "latency_s": latency,
            "live_text": int(live.text[-1]),
            "paper_text": int(paper.text[-1]),
            **distances(live, paper),
            "distance_by_chance": max(by_chance),
        },
        live,
        paper,
        best,
    )


def mean(harvests: Sequence[Harvest]) -> Harvest:
    """Return the average harvest of several crawls after as many bytes, without their visits and times."""
    end = min(int(harvest.downloaded[-1]) for harvest in harvests)
    bytes_ = np.linspace(0.0, end, POINTS + 1)[1:]
    texts = [np.interp(bytes_, np.append(0, one.downloaded), np.append(0, one.text)) for one in harvests]
    text = np.mean(texts, axis=0).astype(np.int64)
    return Harvest(np.zeros(0, np.int64), np.zeros(0), bytes_.astype(np.int64), text)


def distances(one: Harvest, other: Harvest) -> dict[str, float]:
    """Return the largest and the mean distance of two harvests, as a share of the text at the end."""
    end = float(min(one.downloaded[-1], other.downloaded[-1]))
    bytes_ = np.linspace(0.0, end, POINTS + 1)
    texts = [
        np.interp(bytes_, np.append(0, harvest.downloaded), np.append(0, harvest.text))
        for harvest in (one, other)
    ]
    apart = np.abs(texts[0] - texts[1]) / max(texts[0][-1], texts[1][-1])
    return {"largest_distance": float(apart.max()), "mean_distance": float(apart.mean())}


def _live(web: ToyWeb, start: list[str], limit: int) -> tuple[Harvest, float, Figures]:
    """Return the harvest of a crawl over HTTP, its response times and its cost."""
    settings: dict[str, dict[str, Any]] = {
        "policy": {"name": "learned"},
        "budget": {"max_bytes": limit},
        "polite": {"delay": DELAY, "ip_delay": 0.0},
        "fetch": {"connections": CONNECTIONS},
        "store": {"keep_raw": "none"},
    }
    with tempfile.TemporaryDirectory(prefix="thresher-bench-") as scratch, serve(web) as server:
        corpus = Path(scratch) / "corpus"
        figures = thresher(corpus, Web("toy", server.connect_to, start, []), web.target, start, settings)
        record, latency = load(corpus), _latency(corpus)
    visited = np.arange(len(record.urls))
    gained = np.where(record.originals == visited, record.worth, 0)
    return Harvest(visited, np.zeros(0), record.bytes.cumsum(), gained.cumsum()), latency, figures


def _latency(corpus: Path) -> float:
    """Return the median response time: the gap between two requests to a host beyond its delay, in seconds."""
    requests: dict[str, list[float]] = {}
    for row in product.open(corpus).outcomes(["time", "host", "outcome"]).to_pylist():
        if row["outcome"] != "disallowed":
            requests.setdefault(row["host"], []).append(row["time"].timestamp())
    return (
        float(np.median(np.concatenate([np.diff(sorted(moments)) for moments in requests.values()]))) - DELAY
    )
