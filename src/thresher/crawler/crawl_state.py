"""The state of a crawl: everything that it remembers, opened together and committed together."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from thresher.config import Config
from thresher.crawler.clock import SYSTEM_CLOCK, Clock
from thresher.crawler.frontier.expansion import Expansion
from thresher.crawler.frontier.frontier import Frontier
from thresher.crawler.frontier.link_filter import LinkFilter
from thresher.crawler.frontier.manager import FrontierManager
from thresher.crawler.frontier.seen import SeenUrls
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.policy.policy import CrawlPolicy
from thresher.crawler.policy.yield_stats import YieldStats
from thresher.crawler.storage.crawl_writer import CrawlWriter
from thresher.crawler.storage.near_duplicates import NearDuplicateFilter
from thresher.judge import Judge
from thresher.store import erasure_log
from thresher.store.known_pages import ImportedPages
from thresher.store.shard_layout import ALONE, Shard


class CrawlState:
    """Found and seen URLs, hosts, yields, policy, statistics and files of one crawl process.

    The code that opens a state closes it: `contextlib.closing(CrawlState(directory, config))`.
    """

    def __init__(
        self,
        directory: Path,
        config: Config,
        *,
        shard: Shard = ALONE,
        root: Path | None = None,
        clock: Clock = SYSTEM_CLOCK,
        random: Random | None = None,
    ) -> None:
        """Open the state in a directory; of a shard, `root` is the corpus that the directory belongs to.

        `clock` measures turns of hosts and budgets. Rests that outlive the process, and the times of outcomes, are
        wall times. `random` makes the random choices of policies; seed it to repeat a crawl.
        """
        root = root or directory
        self.config = config
        self.shard = shard
        self.clock = clock
        imported = ImportedPages.of(root) if config.judge.duplicates else None
        self.writer = CrawlWriter(directory, config, clock.wall, shard, imported)
        kv = self.writer.kv
        self.seen = SeenUrls(kv)
        self.link_filter = LinkFilter(config.scope, self.seen, erasure_log.load(root), shard)
        self.yields = YieldStats(kv)
        self.politeness = Politeness(kv, config.polite, clock.wall)
        self.queues = FrontierManager(
            kv,
            config,
            self.yields,
            self.politeness,
            is_resumed=self.seen.count > 0,
            clock=clock.now,
            shard=shard,
            random=random,
        )
        self.near_duplicates = NearDuplicateFilter(kv, config.judge) if config.judge.near_duplicates else None
        self.judge = Judge(config, self.writer, self.near_duplicates)
        self.expansion = Expansion(directory, config, kv, self.yields, self.politeness.robots)

    @property
    def frontier(self) -> Frontier:
        """The frontier of this moment; between cycles it is replaced."""
        return self.queues.frontier

    @property
    def policy(self) -> CrawlPolicy:
        """The policy of this moment; it is replaced with the frontier."""
        return self.queues.policy

    def flush(self) -> None:
        """Put everything into the next commit."""
        self.yields.flush()
        self.politeness.flush()
        self.queues.flush()
        self.expansion.flush()

    def commit(self, status: dict[str, Any]) -> None:
        """Make everything so far durable, and publish the statistics."""
        self.writer.commit(status)
        self.frontier.committed()

    def close(self) -> None:
        """Close all files; changes since the last commit are dropped."""
        self.writer.close()
