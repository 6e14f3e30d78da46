"""What a page leads to: its links that may be followed, are in scope and were never seen."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from thresher.config import Scope
from thresher.crawl.scope import Gate
from thresher.crawl.seen import Recent, Seen
from thresher.page import Candidate, Link, Page, Via
from thresher.store.forgotten import Forgotten
from thresher.store.shards import ALONE, Shard
from thresher.url import host as host_of
from thresher.url import key


class Finds:
    """Lets every URL through once."""

    def __init__(
        self, scope: Scope, seen: Seen, forgotten: Forgotten | None = None, shard: Shard = ALONE
    ) -> None:
        """What was forgotten is refused. URLs of other shards go through again after a while: those know better."""
        self._scope = scope
        self._seen = seen
        self._shard = shard
        self._sent = Recent(Seen.RECENT)
        self._gate = Gate(scope)
        self._forgotten = forgotten or Forgotten()

    def links(self, candidate: Candidate, page: Page) -> list[int]:
        """Places of the links that are to be followed and that nobody has seen; from now on they are seen."""
        if page.nofollow or candidate.depth >= self._scope.max_depth:
            return []
        places = [place for place, link in enumerate(page.links) if self._may_follow(link)]
        fresh = self.fresh([page.links[place].url for place in places], host_of(candidate.url))
        return [places[number] for number in fresh]

    def fresh(self, urls: Sequence[str], source: str | None) -> list[int]:
        """Places of URLs that are in scope and that nobody has seen before; from now on they are seen.

        `source` is the host whose page led to them; None: no page did.
        """
        keys = [key(url) for url in urls]
        unseen = self._seen.unseen(keys) if self._shard.count == 1 else self._unsent(keys)
        fresh = [place for place in unseen if self._gate.admits(urls[place], source)]
        if self._forgotten:
            fresh = [place for place in fresh if not self.refuses(urls[place])]
        own = [place for place in fresh if self._shard.owns(host_of(urls[place]))]
        self._seen.add([keys[place] for place in own])
        for place in set(fresh).difference(own):
            self._sent.add(keys[place])
        return fresh

    def _unsent(self, keys: Sequence[bytes]) -> list[int]:
        """Places of keys that were neither seen here nor lately sent to other shards, whosever they are."""
        places = [place for place, key in enumerate(keys) if key not in self._sent]
        return [places[number] for number in self._seen.unseen([keys[place] for place in places])]

    def without_forgotten(self, page: Page) -> Page:
        """A page without its links to what is to stay forgotten: they are not written down again."""
        if not self._forgotten or not any(self.refuses(link.url) for link in page.links):
            return page
        return replace(page, links=tuple(link for link in page.links if not self.refuses(link.url)))

    def refuses(self, url: str) -> bool:
        """Whether a URL is to stay forgotten."""
        return self._forgotten.holds(url)

    def _may_follow(self, link: Link) -> bool:
        return not link.rel or ("nofollow" not in link.rel and (self._scope.feeds or "feed" not in link.rel))


def candidates(source: Candidate, page: Page, links: Sequence[Link]) -> list[Candidate]:
    """Links of a page as URLs to be visited."""
    via: Via = "page" if page.kind == "html" or page.kind == "other" else page.kind  # noqa: PLR1714
    return [Candidate(link.url, source.url, via, source.depth + 1) for link in links]
