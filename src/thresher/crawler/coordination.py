"""Coordination of a crawl with other shards: four protocols, and their defaults for a crawl without shards.

A crawl asks others for four things: to take links to their hosts, to reserve an address that hosts of several
shards share (`AddressReservations`), to claim a text so that one shard keeps it, and to grant pages and decide when
the crawl is over. The shards' own classes are in `thresher.crawler.shards`, which imports this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from thresher.crawler.manners.addresses import AddressReservations, LocalAddresses
from thresher.crawler.manners.network_status import NetworkStatus
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.stop_reasons import Ending
from thresher.judge import CLAIM_NOT_NEEDED, TextClaim
from thresher.records import Candidate
from thresher.store.shard_layout import ALONE, Shard


class LinkRouter(Protocol):
    """Delivery of links to the shards that own their hosts."""

    def route(self, links: Sequence[Candidate]) -> Sequence[Candidate]:
        """Send links to their shards with the next commit; return the crawl's own."""


class TextClaims(Protocol):
    """Decisions on which page of several shards keeps a text."""

    async def claim(self, text_hash: bytes, url: str) -> TextClaim:
        """Claim a text for a URL, and wait for the decision; it is not needed if the crawl's own state decides."""


class Lifecycle(Protocol):
    """Grants of pages, and the end of the crawl."""

    def check(self) -> None:
        """Raise Superseded if another process owns the crawl's hosts by now."""

    def may_fetch(self, pages: int, wanted: bool = True) -> bool:
        """Return whether that many pages may have been fetched in all, pages under way included.

        If `wanted` is False, no URL can be visited now, and no more pages are requested from the coordinator.
        """

    def flush(self) -> None:
        """Put everything into the next commit."""

    def committed(self, status: dict[str, Any]) -> None:
        """Take note that everything flushed is committed, with the statistics as of the commit."""

    def ending(self, reason: Ending | None, under_way: int) -> Ending | None:
        """Return why the crawl as a whole ends, None if it continues.

        `reason` is why this process would end, `under_way` is the number of its visits.
        """


class Coordination(NamedTuple):
    """Everything that connects a crawl with other shards."""

    links: LinkRouter
    addresses: AddressReservations
    texts: TextClaims
    lifecycle: Lifecycle
    network: NetworkStatus
    shard: Shard = ALONE


class LocalLinks:
    """Link routing of a crawl without shards: all hosts are its own."""

    def route(self, links: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return all links."""
        return links


class LocalTexts:
    """Text claims of a crawl without shards: its own state knows all texts."""

    async def claim(self, text_hash: bytes, url: str) -> TextClaim:  # noqa: ARG002
        """Return that no claim is needed."""
        return CLAIM_NOT_NEEDED


class LocalLifecycle:
    """Lifecycle of a crawl without shards, which decides for itself."""

    def check(self) -> None:
        """Do nothing: no other process takes over."""

    def may_fetch(self, pages: int, wanted: bool = True) -> bool:  # noqa: ARG002
        """Return True: the budget is watched by the crawl."""
        return True

    def flush(self) -> None:
        """Do nothing."""

    def committed(self, status: dict[str, Any]) -> None:
        """Do nothing."""

    def ending(self, reason: Ending | None, under_way: int) -> Ending | None:  # noqa: ARG002
        """Return the crawl's own reason."""
        return reason


def alone(politeness: Politeness) -> Coordination:
    """Return the coordination of a crawl without shards."""
    return Coordination(
        LocalLinks(), LocalAddresses(politeness), LocalTexts(), LocalLifecycle(), NetworkStatus()
    )
