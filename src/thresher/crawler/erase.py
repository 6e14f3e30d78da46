"""Erasure of URLs from the state of a crawl: queues, hosts, claims and hashes.

Each owner of keys removes its own entries; this module only gives the order. A kill in between leaves queues that
are as good as before, so the erasure can be repeated.
"""

from __future__ import annotations

from itertools import chain

from thresher.crawler.frontier import backlog, stored_queue
from thresher.crawler.manners import politeness
from thresher.crawler.policy import yield_stats
from thresher.crawler.shards import outbox
from thresher.crawler.storage import crawl_writer
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.store.erasure_log import ErasureMatcher


def count_waiting(state: KeyValueState, erased: ErasureMatcher) -> int:
    """Return how many of the URLs that wait are to be erased."""
    waiting = chain(
        stored_queue.candidates(state), backlog.candidates(state), outbox.waiting_candidates(state)
    )
    return sum(erased.covers(candidate.url) for candidate in waiting)


def clear_queues(state: KeyValueState, erased: ErasureMatcher) -> None:
    """Remove URLs from all queues, and the records of their hosts and domains. Commits as it goes."""
    backlog.remove(state, erased.covers)
    stored_queue.remove(state, erased.covers, erased.covers_host)
    outbox.remove(state, erased.covers)
    crawl_writer.remove_claims(state, erased.covers)
    politeness.remove(state, erased.covers_host)
    yield_stats.remove(state, erased.covers_host, erased.covers_domain)
    state.commit()
