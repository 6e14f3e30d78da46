"""Crawls in shards against a crawl without: the cost of coordination, in local processes and on a Ray cluster.

python -m bench.scaling [--pages 40000] [--hosts 160] [--shards 1,2,4] [--engines local,ray] [--rounds 1]

All crawl the toy web, pages of 30 to 80 KB, until their budget is spent. Processor time is that of all processes of
a crawl from birth to death, including coordinator, readers and Ray's daemons; the web server is not counted. The
cost of starting is measured with a budget of one page. Contenders take turns.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench import webs
from bench.contenders import write_settings
from bench.measure import below, emit, own_cpu_seconds, run, say, table

SPENT = 3  # exit code of a crawl that was stopped by its budget
PR_SET_CHILD_SUBREAPER = 36
COLUMNS = (
    *(
        "name",
        "shards",
        "pages",
        "wall_s",
        "cpu_s",
        "startup_cpu_s",
        "pages_per_cpu_s",
        "steady_pages_per_cpu_s",
    ),
    *("rss_mb", "against_plain", "steady_against_plain", "pages_per_shard"),
)

Figures = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scaling", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--pages", type=int, default=40_000)
    parser.add_argument("--hosts", type=int, default=160, help="of the toy web")
    parser.add_argument("--shards", default="1,2,4")
    parser.add_argument("--engines", default="local,ray")
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    # Orphans, such as Ray's daemons, become our children, so that their time is counted.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    contenders = [("plain", 0)]
    contenders += [
        (engine, int(count)) for engine in asked.engines.split(",") for count in asked.shards.split(",")
    ]
    spent: dict[tuple[str, int], list[Figures]] = defaultdict(list)
    with webs.toy(asked.hosts) as web:
        for number in range(asked.rounds):
            for contender in contenders:
                say(f"round {number + 1}: {contender[0]}, {contender[1] or 'no'} shards")
                spent[contender].append(_crawl(web, *contender, asked.pages))
                starting = _crawl(web, *contender, 1)
                spent[contender][-1]["startup_cpu_s"] = starting["cpu_s"]
    rows = [_together(found) for found in spent.values()]
    for row in rows:
        for field in ("pages_per_cpu_s", "steady_pages_per_cpu_s"):
            kind = field.removesuffix("pages_per_cpu_s")
            row[f"{kind}against_plain"] = row[field] / rows[0][field]
        emit(row)
    table(rows, COLUMNS)
    emit({"name": "ratios", **_ratios(rows)})


def _ratios(rows: list[Figures]) -> Figures:
    """Return pages per processor second relative to the fewest shards, and of Ray relative to local engines."""
    rates = {(row["name"], row["shards"]): row["pages_per_cpu_s"] for row in rows if row["shards"]}
    fewest = min(shards for _, shards in rates)
    found = {
        f"{engine}, {shards} shards against {fewest}": rate / rates[engine, fewest]
        for (engine, shards), rate in rates.items()
        if shards > fewest
    }
    found |= {
        f"ray against local, {shards} shards": rate / rates["local", shards]
        for (engine, shards), rate in rates.items()
        if engine == "ray" and ("local", shards) in rates
    }
    return found


def _crawl(web: webs.Web, engine: str, shards: int, pages: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="thresher-bench-") as scratch:
        directory = Path(scratch) / "corpus"
        settings: dict[str, dict[str, Any]] = {
            "policy": {"name": "bfs"},
            "budget": {"max_pages": pages},
            "shards": {"count": shards},
        }
        write_settings(directory, web, "cs", settings)
        seeds = Path(scratch) / "seeds.txt"
        seeds.write_text("\n".join(web.seeds))
        command = [sys.executable, "-m", "thresher.cli", "crawl", directory, "--json", "--seeds", seeds]
        command += ["--connect-to", web.connect_to, "--engine", engine if shards else "local"]
        meter = _Meter()
        usage = run(command, accept=(0, SPENT), look=meter.look)
        status = json.loads(usage.output)
        return {
            "name": engine,
            "shards": shards,
            "pages": status["pages"]["fetched"],
            "kept": status["pages"]["kept"],
            "wall_s": usage.wall_s,
            "cpu_s": meter.seconds,
            "rss_mb": usage.rss_mb,
            "pages_per_shard": [row["fetched"] for row in status.get("shards", [])],
        }


class _Meter:
    """Processor time of all processes started since, as last observed for each."""

    def __init__(self) -> None:
        self._before = set(below(os.getpid()))
        self._seen: dict[int, float] = {}

    def look(self) -> None:
        for pid in below(os.getpid()):
            if pid not in self._before:
                self._seen[pid] = max(self._seen.get(pid, 0.0), own_cpu_seconds(pid))

    @property
    def seconds(self) -> float:
        return sum(self._seen.values())


def _together(found: list[Figures]) -> Figures:
    """Return the sums over all rounds and the ratios that follow from them."""
    sums = {name: sum(one[name] for one in found) for name in ("pages", "cpu_s", "startup_cpu_s", "wall_s")}
    return {
        **found[0],
        **sums,
        "rss_mb": max(one["rss_mb"] for one in found),
        "pages_per_cpu_s": sums["pages"] / sums["cpu_s"],
        "steady_pages_per_cpu_s": sums["pages"] / (sums["cpu_s"] - sums["startup_cpu_s"]),
    }


if __name__ == "__main__":
    main()
