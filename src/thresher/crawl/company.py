"""The others of a crawl, as its loop sees them: shards with other hosts, and who leads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thresher.crawl.ending import Ending
from thresher.crawl.ledger import Ledger
from thresher.crawl.politeness import Politeness
from thresher.page import Candidate
from thresher.store.shards import ALONE

Receive = Callable[[Sequence[Candidate]], None]


class Company:
    """No company at all: most crawls are alone. A shard among others has one that does more."""

    shard = ALONE

    somebody_answers = False  # whether any host that was visited has

    def join(
        self,
        ledger: Ledger,  # noqa: ARG002
        polite: Politeness,
        receive: Receive,  # noqa: ARG002
        news: Callable[[], None],  # noqa: ARG002
        fail: Callable[[BaseException], None],  # noqa: ARG002
    ) -> None:
        """The books are open.

        `receive` takes links that others found; `news`: there may be something to do; `fail`: it cannot go on.
        """
        self._polite = polite

    def check(self) -> None:
        """Superseded is raised if another has taken over our hosts."""

    def may_fetch(self, pages: int, wanted: bool = True) -> bool:  # noqa: ARG002
        """Whether this shard may have fetched so many pages, those under way among them.

        `wanted`: there is a URL that may be visited now; or else nothing is asked of others.
        """
        return True

    def post(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Send links, with the next commit, to those whose hosts they lead to; returns those that are ours."""
        return candidates

    async def address_wait(self, address: str) -> float:
        """Seconds to wait for an address, which hosts of other shards may share; it is taken if there are none."""
        return self._polite.take_address(address)

    async def twin(self, text_hash: bytes, url: str) -> str | None:  # noqa: ARG002
        """Who was the first of all shards with a text; "": this URL, from now on; None: our own books tell."""
        return None

    def flush(self) -> None:
        """Hand everything to the state's next commit."""

    def committed(self, status: dict[str, Any]) -> None:
        """All that was flushed is committed; the figures as of now."""

    def ending(self, reason: Ending | None, under_way: int) -> Ending | None:  # noqa: ARG002
        """Why the crawl as a whole ends, told why this shard would, and how many visits are under way."""
        return reason
