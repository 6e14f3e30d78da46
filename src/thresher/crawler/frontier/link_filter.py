"""The filter between pages and the frontier: links that may be followed, are in scope and were never seen."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from thresher.config import ScopeSettings
from thresher.crawler.frontier.seen import SeenUrls
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.crawler.storage.recent_set import RecentSet
from thresher.records import Candidate, Link, ReadResult, Via
from thresher.store.erasure_log import ErasureLog
from thresher.store.shard_layout import ALONE, Shard
from thresher.urls import host as host_of
from thresher.urls import key


class LinkFilter:
    """A filter that lets each URL through once.

    Erased URLs never pass. URLs of other shards are remembered for a while only, since the shard that owns a host
    decides which of its URLs are unseen; so they may pass again.
    """

    def __init__(
        self, scope: ScopeSettings, seen: SeenUrls, erasures: ErasureLog | None = None, shard: Shard = ALONE
    ) -> None:
        self._settings = scope
        self._seen = seen
        self._shard = shard
        self._sent = RecentSet(SeenUrls.RECENT)
        self._scope = UrlScope(scope)
        self._erasures = erasures or ErasureLog()

    def unseen_links(self, candidate: Candidate, page: ReadResult) -> list[int]:
        """Return the indices of a page's links that may be followed and are unseen, and mark them as seen."""
        if page.nofollow or candidate.depth >= self._settings.max_depth:
            return []
        places = [place for place, link in enumerate(page.links) if self._may_follow(link)]
        unseen = self.unseen([page.links[place].url for place in places], host_of(candidate.url))
        return [places[number] for number in unseen]

    def unseen(self, urls: Sequence[str], source: str | None) -> list[int]:
        """Return the indices of URLs that are in scope and unseen, and mark them as seen.

        `source` is the host of the page that links to them, None if no page does.
        """
        keys = [key(url) for url in urls]
        unseen = self._seen.unseen(keys) if self._shard.count == 1 else self._unsent(keys)
        passed = [place for place in unseen if self._scope.admits(urls[place], source)]
        if self._erasures:
            passed = [place for place in passed if not self.is_erased(urls[place])]
        own = [place for place in passed if self._shard.owns(host_of(urls[place]))]
        self._seen.add([keys[place] for place in own])
        for place in set(passed).difference(own):
            self._sent.add(keys[place])
        return passed

    def _unsent(self, keys: Sequence[bytes]) -> list[int]:
        """Return the indices of keys that were neither seen here nor recently sent to another shard."""
        places = [place for place, key in enumerate(keys) if key not in self._sent]
        return [places[number] for number in self._seen.unseen([keys[place] for place in places])]

    def without_erased_links(self, page: ReadResult) -> ReadResult:
        """Return the page without links to erased URLs, so that these are not written to disk again."""
        if not self._erasures or not any(self.is_erased(link.url) for link in page.links):
            return page
        return replace(page, links=tuple(link for link in page.links if not self.is_erased(link.url)))

    def is_erased(self, url: str) -> bool:
        """Return whether the erasure log covers a URL."""
        return self._erasures.holds(url)

    def _may_follow(self, link: Link) -> bool:
        return not link.rel or (
            "nofollow" not in link.rel and (self._settings.feeds or "feed" not in link.rel)
        )


def candidates(source: Candidate, page: ReadResult, links: Sequence[Link]) -> list[Candidate]:
    """Return candidates for links of a page that was fetched for `source`."""
    via: Via = "page" if page.kind == "html" or page.kind == "other" else page.kind  # noqa: PLR1714
    return [Candidate(link.url, source.url, via, source.depth + 1) for link in links]
