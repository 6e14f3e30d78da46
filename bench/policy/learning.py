"""Cost of learning: processor time per page of the learned policy, beside that of bfs.

python -m bench.learning [--pages 4000] [--hosts 100] [--rounds 3]

The same toy web is crawled by the command line under bfs and learned in turns, to as many requests, and the medians
are compared. Under learned more pages are kept and written, which is its purpose, so its own share is measured,
too: the time spent in the policy during a crawl in this process.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import thresher as product
from bench import webs
from bench.contenders import Figures, thresher
from bench.measure import emit, say, table
from thresher.crawler.api import crawl
from thresher.crawler.policy.learned.learned_policy import LearnedPolicy

LANGUAGE = "cs"
POLICIES = ("bfs", "learned")
ASKED = (
    *("weigh_links", "weigh_urls", "prepare_fronts", "release", "standings", "on_taken", "wants_exploration"),
    *("expected_yields", "learn", "flush"),
)
COLUMNS = ("name", "requests", "kept", "cpu_ms_per_page", "steady_ms_per_page")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.learning", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--pages", type=int, default=4_000, help="requests of each crawl")
    parser.add_argument("--hosts", type=int, default=100, help="of the toy web")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rows: list[Figures] = []
    with webs.toy(asked.hosts) as web, tempfile.TemporaryDirectory(prefix="thresher-bench-") as scratch:
        for number in range(asked.rounds):
            for policy in POLICIES:
                say(f"{policy}, round {number + 1}")
                corpus = Path(scratch) / f"{policy}-{number}"
                figures = thresher(corpus, web, LANGUAGE, web.seeds, _settings(policy, asked.pages))
                row = {
                    **figures,
                    "name": policy,
                    "cpu_ms_per_page": 1e3 / figures["pages_per_cpu_s"],
                    "steady_ms_per_page": 1e3 / figures["steady_pages_per_cpu_s"],
                }
                emit(row)
                rows.append(row)
        say("the share of the policy")
        share = policy_share(Path(scratch) / "timed", web, asked.pages)
    steady = {
        policy: median(row["steady_ms_per_page"] for row in rows if row["name"] == policy)
        for policy in POLICIES
    }
    emit(
        {
            "name": "learning",
            **{f"{policy}_ms_per_page": spent for policy, spent in steady.items()},
            "ratio": steady["learned"] / steady["bfs"],
            **share,
        }
    )
    table(rows, COLUMNS)


def _settings(policy: str, pages: int) -> dict[str, dict[str, Any]]:
    """Return settings for a crawl to the last request: no host is closed, no delay is kept."""
    return {
        "policy": {"name": policy, "threshold": "", "patience": 0.0, "floor": 0.0},
        "budget": {"max_pages": pages},
        "polite": {"delay": 0.0, "ip_delay": 0.0, "contact": "bench@example.org"},
    }


def policy_share(directory: Path, web: webs.Web, pages: int) -> Figures:
    """Return the processor time of a crawl in this process, and the share of it spent in the policy."""
    spent = 0

    def timed(name: str) -> Any:
        method = getattr(LearnedPolicy, name)

        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal spent
            before = time.thread_time_ns()
            try:
                return method(*arguments, **named)
            finally:
                spent += time.thread_time_ns() - before

        return call

    plain = {name: getattr(LearnedPolicy, name) for name in ASKED}
    earlier = sum(os.times()[:4])  # of this process and of earlier ones
    try:
        for name in ASKED:
            setattr(LearnedPolicy, name, timed(name))
        settings = _settings("learned", pages)
        crawl(directory, LANGUAGE, web.seeds, settings=settings, connect_to=web.connect_to)
    finally:
        for name, method in plain.items():
            setattr(LearnedPolicy, name, method)
    status = product.open(directory).stats()
    cpu = status["time"]["cpu_s"] - earlier
    requests = status["pages"]["fetched"]
    return {
        "guide_ms_per_page": spent / 1e6 / requests,
        "crawl_ms_per_page": 1e3 * cpu / requests,
        "guide_share": spent / 1e9 / cpu,
    }


if __name__ == "__main__":
    main()
