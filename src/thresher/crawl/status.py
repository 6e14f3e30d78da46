"""The figures of a crawl, as `thresher status --json` tells them. Their names are a contract."""

from __future__ import annotations

from typing import Any

from thresher.config import Config
from thresher.crawl.books import Books
from thresher.crawl.yields import Tally
from thresher.store.figures import SHOWN_HOSTS, share


def status(config: Config, books: Books, connections: int) -> dict[str, Any]:
    """All that is known about a crawl at this moment."""
    figures, frontier, yields = books.ledger.figures, books.frontier, books.yields
    stashed = books.queues.stash.counts
    count = figures.outcomes.get
    return {
        "language": config.language,
        "policy": config.policy.name,
        "pages": {
            "fetched": figures.fetched,
            "kept": count("kept", 0),
            "ours": figures.ours,
            "failed": count("failed", 0),
            "redirect": count("redirect", 0),
            "disallowed": count("disallowed", 0),
            "quarantined": count("quarantined", 0),
            "rejected": figures.rejected,
        },
        "bytes": {
            "downloaded": figures.downloaded,
            "robots": figures.robots_bytes,
            "text": figures.text_bytes,
        },
        "yield": {
            "bytes": share(figures.text_bytes, figures.downloaded),
            "documents": share(count("kept", 0), figures.fetched),
        },
        "hosts": {
            "seen": frontier.hosts,
            "open": frontier.hosts - frontier.closed_hosts,
            "closed": frontier.closed_hosts,
            "best": [_host(name, tally) for name, tally in yields.best(SHOWN_HOSTS)],
            "worst": [_host(name, tally) for name, tally in yields.worst(SHOWN_HOSTS)],
        },
        "queue": len(frontier) + stashed.waiting - stashed.closed,
        "queue_closed": frontier.queued_closed + stashed.closed,
        "given_up": stashed.given_up,
        "seen_urls": books.seen.count,
        "connections": connections,
        "waiting_for": frontier.waiting_for,
        "budget": {
            "pages": config.budget.pages,
            "bytes": config.budget.bytes,
            "seconds": config.budget.seconds,
        },
        "widening": books.widening.status(),
        "cycles": books.queues.cycles.table(figures),
        "time": {"wall_s": figures.wall_s, "cpu_s": figures.cpu_s},
    }


def _host(name: str, tally: Tally) -> dict[str, Any]:
    return {"host": name, "yield": tally.rate, "pages": tally.pages, "kept": tally.kept}
