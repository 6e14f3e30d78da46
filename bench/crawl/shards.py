"""Simulated crawls in shards: balance, messages between shards, and politeness.

python -m bench.shards [--pages 10000000] [--shards 64] [--domains 400000] [--compare]

The web is virtual (`thresher_lab.shard_simulation.web`). `--compare` adds smaller crawls with 1, 4, 16, 64 and 256
shards; one in which all requests that wait for an address get the same time; one in which addresses are lent to the
only shard that wants them; and one of a web that is a hundred times smaller, as for a small language.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

from bench.measure import emit, say, table
from thresher_lab.shard_simulation.results import CrawlCourse, in_reach, simulate, spread
from thresher_lab.shard_simulation.state import ShardTerms

COMPARED = (1, 4, 16, 64, 256)
COMPARED_PAGES = 20_000  # for each shard
MIN_PAGES = 200_000  # in all
LENT = 300.0  # seconds: hosts that take turns are visited less often than every 30
CANDIDATE_BYTES = 195  # of a link in a message, with its source and hints: `python -m bench.costs`
COLUMNS = (
    *("domains", "spread", "lend", "shards", "pages", "pages_per_s", "idle", "least", "median", "most"),
    *("out_per_page", "sent_per_page", "dropped_share", "bytes_per_page", "messages_per_s"),
    *("asked_per_page", "refused_per_page", "host_gap", "address_gap"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.shards", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--pages", type=int, default=10_000_000)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--domains", type=int, default=400_000, help="registered domains of the web")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--compare", action="store_true", help="smaller crawls with other numbers of shards, too"
    )
    asked = parser.parse_args()
    rows = [_measured(asked.domains, asked.shards, ShardTerms(asked.pages), asked.seed)]
    if asked.compare:
        for shards in COMPARED:
            terms = ShardTerms(max(COMPARED_PAGES * shards, MIN_PAGES))
            rows.append(_measured(asked.domains, shards, terms, asked.seed))
        rows.append(_measured(asked.domains, 64, ShardTerms(64 * COMPARED_PAGES, spread=0), asked.seed))
        rows.append(_measured(asked.domains, 64, ShardTerms(64 * COMPARED_PAGES, lend=LENT), asked.seed))
        rows.append(_measured(asked.domains // 100, 64, ShardTerms(64 * COMPARED_PAGES), asked.seed))
    table(rows, COLUMNS)


def _measured(domains: int, shards: int, terms: ShardTerms, seed: int) -> dict[str, Any]:
    say(f"{shards} shards, {terms.pages:,} pages")
    started = time.perf_counter()
    course = simulate(domains, shards, terms, seed=seed)
    took = time.perf_counter() - started
    row = {
        "name": "shards",
        "seed": seed,
        "spread": terms.spread,
        "lend": terms.lend,
        "domains": domains,
        **_figures(course),
    }
    row |= {"wall_s": took, "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    emit(row)
    return row


def _figures(course: CrawlCourse) -> dict[str, Any]:
    pages, messages = course.pages, course.messages
    half = course.milestones[len(course.milestones) // 2 - 1]
    last = course.milestones[-1]
    speed = (last.pages - half.pages) / (last.seconds - half.seconds)
    reach, biggest = in_reach(course.web, course.shards, course.terms)
    return {
        "shards": course.shards,
        "pages": pages,
        "too_many": pages - course.terms.pages,
        "robots": course.robots,
        "hosts": len(course.web.domains),
        "addresses": len(course.web.address_owners),
        "pages_of_the_web": course.web.pages,
        "seconds": course.ended,
        "pages_per_s": speed,
        "idle": course.idle(half.seconds),
        "idle_at_first": course.idle(),
        **spread(course.fetched)._asdict(),
        "milestones": [(each.pages, each.seconds, *each.by_shard) for each in course.milestones],
        "biggest_domain": course.biggest_domain,
        "waiting": spread(course.waiting),
        "longest_queue": course.longest_queue,
        "in_reach": spread(reach),
        "biggest_in_reach": biggest,
        "out_per_page": messages.outward / pages,
        "sent_per_page": messages.sent / pages,
        "saved_share": (messages.outward - messages.sent) / max(messages.outward, 1),
        "dropped_share": (messages.received - messages.new) / max(messages.received, 1),
        "bytes_per_page": CANDIDATE_BYTES * messages.sent / pages,
        "messages_per_s": messages.messages / course.ended / course.shards,
        "links_per_message": messages.sent / max(messages.messages, 1),
        "longest_outbox": messages.longest_outbox,
        "asked_per_page": course.questions / pages,
        "refused_per_page": course.refusals / pages,
        "host_gap": course.host_gap(),
        "host_rest": course.host_rest(),
        "address_gap": course.address_gap(),
    }


if __name__ == "__main__":
    main()
