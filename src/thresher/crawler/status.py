"""The status of a crawl, as `thresher status --json` prints it. The names in it are a contract.

The field `waiting` says why connections are free, so that a slow crawl explains itself. It costs a look at some
hundred hosts, once per commit.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec import Struct

from thresher.config import Config
from thresher.crawler.crawl_state import CrawlState
from thresher.crawler.policy.yield_stats import YieldTally
from thresher.store.status_totals import SHOWN_HOSTS, share

SAMPLED_HOSTS = 200  # of all hosts that rest, to find the reason

# Limits that keep the next visit from starting, even if the frontier has a URL for it.
LIMITS = {
    "connections": "",  # all are in use: nothing is waited for
    "network": "an answer from any host; none has answered yet",
    "readers": "reader processes, which are busy with pages that are fetched already",
    "budget": "the last pages of the budget",
    "shards": "a portion of the page budget, which the coordinator grants",
    "expansion": "the last visits, before more URLs are looked for",
}
# Reasons why hosts rest, as `Politeness.rest_reason` names them.
RESTS = {
    "delay": "{hosts:,} {noun} between two requests",
    "backoff": "{hosts:,} {noun} after failures or answers 429 and 503",
    "robots": "{hosts:,} {noun} until robots.txt is asked for again",
    "address": "{hosts:,} {noun} until an IP address is free",
}


class Waiting(Struct, frozen=True):
    """Why a crawl has free connections."""

    reason: str
    hosts: int  # that are waited for
    seconds: float | None  # until the first of them may be visited
    text: str  # for people, after the words "waiting for"


def status(config: Config, state: CrawlState, connections: int, limit: str = "") -> dict[str, Any]:
    """Return the status of a crawl; `limit` is the one of LIMITS that keeps the next visit from starting."""
    stats, frontier, yields = state.writer.stats, state.frontier, state.yields
    best, worst = yields.best_and_worst(SHOWN_HOSTS)
    backlog = state.queues.backlog.counts
    count = stats.outcomes.get
    return {
        "language": config.language,
        "policy": config.policy.name,
        "pages": {
            "fetched": stats.fetched,
            "kept": count("kept", 0),
            "ours": stats.ours,
            "failed": count("failed", 0),
            "redirect": count("redirect", 0),
            "disallowed": count("disallowed", 0),
            "quarantined": count("quarantined", 0),
            "rejected": stats.rejected,
        },
        "bytes": {
            "downloaded": stats.downloaded,
            "robots": stats.robots_bytes,
            "text": stats.text_bytes,
        },
        "yield": {
            "bytes": share(stats.text_bytes, stats.downloaded),
            "documents": share(count("kept", 0), stats.fetched),
        },
        "hosts": {
            "seen": frontier.hosts,
            "open": frontier.hosts - frontier.closed_hosts,
            "closed": frontier.closed_hosts,
            "best": [_host(name, tally) for name, tally in best],
            "worst": [_host(name, tally) for name, tally in worst],
        },
        "queue": len(frontier) + backlog.waiting - backlog.closed,
        "queue_closed": frontier.queued_closed + backlog.closed,
        "given_up": backlog.given_up,
        "seen_urls": state.seen.count,
        "connections": connections,
        "waiting_for": frontier.waiting_for,
        "waiting": msgspec.to_builtins(waiting(state, connections, limit)),
        "budget": {
            "pages": config.budget.max_pages,
            "bytes": config.budget.max_bytes,
            "seconds": config.budget.max_time,
        },
        "widening": state.expansion.status(),
        "cycles": state.queues.cycles.table(stats),
        "time": {"wall_s": stats.wall_s, "cpu_s": stats.cpu_s},
    }


def _host(name: str, tally: YieldTally) -> dict[str, Any]:
    return {"host": name, "yield": tally.rate, "pages": tally.pages, "kept": tally.kept}


def waiting(state: CrawlState, connections: int, limit: str) -> Waiting | None:
    """Return why a crawl has free connections; None if it has none, or nothing to fetch."""
    if limit:
        return Waiting(limit, 0, None, LIMITS[limit]) if LIMITS[limit] else None
    frontier = state.frontier
    resting = frontier.resting(SAMPLED_HOSTS)
    if frontier.waiting_for:
        text = (
            f"hosts that promise {frontier.waiting_for:.2f} bytes of text per byte and return soon; "
            "the other hosts promise less (policy.patience)"
        )
        return Waiting("patience", resting.hosts, resting.seconds, text)
    if resting.seconds:
        reasons = Counter(map(state.politeness.rest_reason, resting.sample))
        reason = reasons.most_common(1)[0][0]
        noun = "hosts that rest" if resting.hosts > 1 else "host that rests"
        text = RESTS[reason].format(hosts=resting.hosts, noun=noun)
        if resting.seconds >= 1:
            text += f", the first for another {resting.seconds:.0f} s"
        return Waiting(reason, resting.hosts, resting.seconds, text)
    if connections:
        requests = f"{connections:,} requests" if connections > 1 else "a request"
        return Waiting("answers", 0, None, f"answers to {requests}")
    return None
