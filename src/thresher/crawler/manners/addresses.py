"""Turns of IP addresses: one request at a time to the hosts behind an address, with a rest in between."""

from __future__ import annotations

from typing import Protocol

from thresher.crawler.manners.politeness import Politeness


class AddressReservations(Protocol):
    """Turns of IP addresses, which hosts of several shards may share."""

    async def reserve(self, address: str) -> float:
        """Return the seconds to wait for an address; if 0, the address is reserved for one request now."""


class LocalAddresses:
    """Address reservations of one process."""

    def __init__(self, politeness: Politeness) -> None:
        self._politeness = politeness

    async def reserve(self, address: str) -> float:
        """Return the seconds to wait for an address; if 0, it is reserved."""
        return self._politeness.take_address(address)
