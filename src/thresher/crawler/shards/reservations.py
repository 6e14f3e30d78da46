"""Addresses and texts that several shards share: each is decided by one shard, chosen by its hash."""

from __future__ import annotations

import logging
from collections.abc import Callable

import xxhash

from thresher.crawler.clock import Clock
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.shards.peers import PeerExchange
from thresher.crawler.shards.protocol import ClaimText, ReserveAddress
from thresher.crawler.storage.crawl_writer import CrawlWriter
from thresher.judge import CLAIM_GRANTED, CLAIM_NOT_NEEDED, CLAIM_UNDECIDED, TextClaim
from thresher.store.shard_layout import Shard

_log = logging.getLogger(__name__)

CLAIM_TIMEOUT_S = 30.0  # for another shard to decide about a text
# Time for another shard to reserve an address, and the slack it adds to the address's rest.
ADDRESS_TIMEOUT_S = 0.25
ADDRESS_RETRY_S = 1.0  # after a reservation that came too late


class SharedAddresses:
    """Address reservations across shards."""

    def __init__(self, shard: Shard, politeness: Politeness, exchange: PeerExchange, clock: Clock) -> None:
        self._shard = shard
        self._politeness = politeness
        self._exchange = exchange
        self._clock = clock

    async def reserve(self, address: str) -> float:
        """Return the seconds to wait for an address; if 0, it is reserved for one request now."""
        number = decider(address.encode(), self._shard.count)
        if number == self._shard.number:
            return self._politeness.take_address(address)
        try:
            async with self._clock.timeout(ADDRESS_TIMEOUT_S):
                return float(await self._exchange.request(number, ReserveAddress(address)))
        except TimeoutError:  # a late reservation is void, since other requests may be on their way by now
            return ADDRESS_RETRY_S

    def answer(self, request: ReserveAddress) -> float:
        """Return the seconds that another shard has to wait for an address."""
        return self._politeness.take_address(request.address, ADDRESS_TIMEOUT_S)


class SharedTexts:
    """Text claims across shards.

    A claim is granted when it is committed: the other shard relies on it for as long as this shard's disk lives.
    """

    def __init__(self, shard: Shard, writer: CrawlWriter, exchange: PeerExchange, clock: Clock) -> None:
        self._shard = shard
        self._writer = writer
        self._exchange = exchange
        self._clock = clock
        self._granted: list[Callable[[str], None]] = []  # replies that wait for the next commit

    async def claim(self, text_hash: bytes, url: str) -> TextClaim:
        """Claim a text for a URL; the claim is not needed if this shard decides about it.

        If the deciding shard does not reply in time, the claim is undecided. Then the page may be kept although
        another shard keeps an equal one: an additional copy can be removed by a later step, but a text that no
        shard keeps is lost.
        """
        number = decider(text_hash, self._shard.count)
        if number == self._shard.number:
            return CLAIM_NOT_NEEDED
        try:
            async with self._clock.timeout(CLAIM_TIMEOUT_S):
                owner = await self._exchange.request(number, ClaimText(text_hash, url))
        except TimeoutError:
            _log.warning("shard %d did not decide about the text of %s in time", number, url)
            return CLAIM_UNDECIDED
        return TextClaim.taken(str(owner)) if owner else CLAIM_GRANTED

    def answer(self, request: ClaimText, reply: Callable[[str], None]) -> None:
        """Decide about a text for a page of another shard."""
        if owner := self._writer.claim_text(request.text_hash, request.url):
            reply(owner)
        else:
            self._granted.append(reply)

    def committed(self) -> None:
        """Send the grants that are committed now."""
        for reply in self._granted:
            reply("")
        self._granted = []


def decider(name: bytes, count: int) -> int:
    """Return the number of the shard that decides about an address or the hash of a text."""
    return xxhash.xxh3_64_intdigest(name) % count
