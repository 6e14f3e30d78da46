"""The books of a crawl: all that it remembers, opened together and committed together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from thresher.config import Config
from thresher.crawl.frontier import Frontier
from thresher.crawl.guide import Guide
from thresher.crawl.imported import Imported
from thresher.crawl.ledger import Ledger
from thresher.crawl.novelty import Novelty
from thresher.crawl.politeness import Politeness
from thresher.crawl.queues import Queues
from thresher.crawl.seen import Seen
from thresher.crawl.widen import Widening
from thresher.crawl.yields import Yields
from thresher.store.shards import Shard


class Books:
    """What was found, what was seen, what waits, who is to be left alone, and what all of it was worth."""

    def __init__(
        self, directory: Path, config: Config, clock: Callable[[], float], shard: Shard, root: Path
    ) -> None:
        """`root`: the corpus; of a shard, the directory is a part of it."""
        imported = Imported.of(root) if config.judge.duplicates else None
        self.ledger = Ledger(directory, config, clock, shard, imported)
        state = self.ledger.state
        self.seen = Seen(state)
        self.yields = Yields(state)
        self.polite = Politeness(state, config.polite, clock)
        goes_on = self.seen.count > 0
        self.queues = Queues(state, config, self.yields, self.polite, goes_on=goes_on, shard=shard)
        self.novelty = Novelty(state, config.judge) if config.judge.near_duplicates else None
        self.widening = Widening(directory, config, state, self.yields, self.polite.robots)

    @property
    def frontier(self) -> Frontier:
        return self.queues.frontier

    @property
    def guide(self) -> Guide:
        return self.queues.guide

    def flush(self) -> None:
        """Hand everything to the state's next commit."""
        self.yields.flush()
        self.polite.flush()
        self.queues.flush()
        self.widening.flush()

    def commit(self, status: dict[str, Any]) -> None:
        """Make everything so far durable, the figures as of now with it."""
        self.ledger.commit(status)
        self.frontier.committed()

    def close(self) -> None:
        self.ledger.close()
