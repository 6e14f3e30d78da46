"""Queues of many URLs: time per push and pop as they grow, and memory.

python -m bench.frontier [--sizes 100000,1000000,10000000] [--policies bfs,host-yield]

A hundred URLs for each host, in any order. They are pushed and committed in portions, as pages bring them; then
some are taken and finished and their hosts freed, with a commit after every 256. Each size has its own process.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.measure import emit, say, table
from thresher.config import PolicySettings
from thresher.crawler.frontier.frontier import Frontier
from thresher.crawler.frontier.host_scheduler import make_scheduler
from thresher.crawler.policy.policy import make_policy
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.records import Candidate
from thresher.urls import host as host_of

URLS_PER_HOST = 100
PORTION = 10_000  # URLs pushed between two commits
POPPED = 50_000
PAGES = 256  # popped between two commits
COLUMNS = ("policy", "urls", "push_us", "pop_us", "rss_mb", "disk_mb", "disk_bytes_per_url")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.frontier", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--sizes", default="100000,1000000,10000000")
    parser.add_argument("--policies", default="bfs,host-yield,learned")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # policy,size: measured in this process
    asked = parser.parse_args()
    if asked.one:
        policy, size = asked.one.split(",")
        print(json.dumps(_measured(policy, int(size))))
        return
    rows = []
    for policy in asked.policies.split(","):
        for size in asked.sizes.split(","):
            say(f"{policy}: {int(size):,} URLs")
            command = [sys.executable, "-m", "bench.frontier", "--one", f"{policy},{size}"]
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            row = json.loads(found.splitlines()[-1])
            emit(row)
            rows.append(row)
    table(rows, COLUMNS)


def _measured(name: str, size: int) -> dict[str, Any]:
    """Measure time and space of a queue of this size."""
    dice = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="thresher-bench-") as directory:
        state = KeyValueState(Path(directory))
        settings = msgspec.convert({"name": name}, PolicySettings)
        policy = make_policy(settings, "cs", state, YieldStats(state), dice)
        scheduler = make_scheduler(settings, dice)
        frontier = Frontier(state, lambda: 0.0, policy, scheduler)
        spent = 0.0
        for portion in _portions(size, dice):
            started = time.process_time()
            frontier.add(policy.weigh_urls(portion))
            _commit(frontier, state)
            spent += time.process_time() - started
        push = spent / size
        started = time.process_time()
        for number in range(min(POPPED, size // 2)):
            taken = frontier.take()
            assert taken
            frontier.finish(taken)
            frontier.free(host_of(taken.url), 0.0)
            if number % PAGES == 0:
                _commit(frontier, state)
        pop = (time.process_time() - started) / min(POPPED, size // 2)
        disk = sum(file.stat().st_size for file in Path(directory).iterdir())
        state.close()
    return {
        "name": "frontier",
        "policy": name,
        "urls": size,
        "push_us": 1e6 * push,
        "pop_us": 1e6 * pop,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "disk_mb": disk / 1e6,
        "disk_bytes_per_url": disk / size,
    }


def _portions(size: int, dice: random.Random) -> Iterator[list[Candidate]]:
    """Yield URLs as a crawl finds them: any host, any depth, any weight."""
    hosts = size // URLS_PER_HOST
    for first in range(0, size, PORTION):
        yield [
            Candidate(
                f"https://www.host-{dice.randrange(hosts)}.example/some/path/article-{number}.html",
                f"https://www.host-{dice.randrange(hosts)}.example/some/path/",
                "page",
                dice.randrange(12),
                2.0 ** dice.uniform(-4, 2),
            )
            for number in range(first, min(first + PORTION, size))
        ]


def _commit(frontier: Frontier, state: KeyValueState) -> None:
    frontier.flush()
    state.commit()
    frontier.committed()


if __name__ == "__main__":
    main()
