"""A crawl in shards on paper: how even it is, what shards send each other, and whether anybody is impolite.

python -m bench.shards [--pages 10000000] [--shards 64] [--domains 400000] [--compare]

The web has no pages but those that hashes tell of (`thresher.lab.shards.web`). `--compare`: smaller crawls, too,
with 1, 4, 16, 64 and 256 shards, one in which who has to wait for an address is not told a time of its own, one in
which addresses are lent to whoever alone wants them, and one of a web that is a hundred times smaller, as that of a
small language.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

from bench.measure import emit, say, table
from thresher.lab.shards.board import Terms
from thresher.lab.shards.figures import Course, in_reach, simulate, spread

COMPARED = (1, 4, 16, 64, 256)
COMPARED_PAGES = 20_000  # for each shard …
LEAST_PAGES = 200_000  # … and in all
LENT = 300.0  # seconds: hosts that take turns are visited less often than every 30
CANDIDATE_BYTES = 195  # of a link in a letter, with its source and hints: `python -m bench.costs`
COLUMNS = (
    *("domains", "spread", "lend", "shards", "pages", "pages_per_s", "idle", "least", "median", "most"),
    *("out_per_page", "sent_per_page", "dropped_share", "bytes_per_page", "letters_per_s"),
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
    rows = [_measured(asked.domains, asked.shards, Terms(asked.pages), asked.seed)]
    if asked.compare:
        for shards in COMPARED:
            terms = Terms(max(COMPARED_PAGES * shards, LEAST_PAGES))
            rows.append(_measured(asked.domains, shards, terms, asked.seed))
        rows.append(_measured(asked.domains, 64, Terms(64 * COMPARED_PAGES, spread=0), asked.seed))
        rows.append(_measured(asked.domains, 64, Terms(64 * COMPARED_PAGES, lend=LENT), asked.seed))
        rows.append(_measured(asked.domains // 100, 64, Terms(64 * COMPARED_PAGES), asked.seed))
    table(rows, COLUMNS)


def _measured(domains: int, shards: int, terms: Terms, seed: int) -> dict[str, Any]:
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


def _figures(course: Course) -> dict[str, Any]:
    pages, letters = course.pages, course.letters
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
        "addresses": len(course.web.doors),
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
        "out_per_page": letters.outward / pages,
        "sent_per_page": letters.sent / pages,
        "saved_share": (letters.outward - letters.sent) / max(letters.outward, 1),
        "dropped_share": (letters.received - letters.fresh) / max(letters.received, 1),
        "bytes_per_page": CANDIDATE_BYTES * letters.sent / pages,
        "letters_per_s": letters.letters / course.ended / course.shards,
        "links_per_letter": letters.sent / max(letters.letters, 1),
        "longest_outbox": letters.longest_outbox,
        "asked_per_page": course.questions / pages,
        "refused_per_page": course.refusals / pages,
        "host_gap": course.host_gap(),
        "host_rest": course.host_rest(),
        "address_gap": course.address_gap(),
    }


if __name__ == "__main__":
    main()
