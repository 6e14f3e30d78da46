"""Resolution of host names to public addresses, without blocking, with a cache."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import Literal

import aiodns
from msgspec import Struct

from thresher import config
from thresher.crawler.fetching import address_guard

MAX_ADDRESSES = 8  # of one host; names with hundreds of them are attacks
MAX_NAMES = 100_000  # in the cache, about 30 MB; the least recently used are dropped first
TRIES = 3  # queries for a name within `fetch.dns_timeout`, since queries may be lost
TRANSIENT_S = 30.0  # for which a transient failure stays in the cache, at most

# Errors of c-ares for a name that does not exist or has no address.
_NO_SUCH_NAME = frozenset(
    (
        aiodns.error.ARES_ENODATA,
        aiodns.error.ARES_ENOTFOUND,
        aiodns.error.ARES_ENONAME,
        aiodns.error.ARES_EBADNAME,
    )
)

_NAME = re.compile(r"[!-~]{1,253}")  # at most as long as RFC 1035 allows; c-ares would end the name at a NUL

Lookup = Callable[[str], Awaitable[list[str]]]


class Unresolved(Struct, frozen=True, gc=False):
    """The reason why a host has no usable address."""

    reason: Literal["dns", "blocked address"]
    detail: str = ""
    transient: bool = False  # whether a later try may succeed


class _Remembered(Struct, frozen=True):
    answer: tuple[str, ...] | Unresolved
    until: float


class Resolver:
    """A caching resolver that asks for each name once at a time.

    `lookup` returns the addresses of a name, an empty list if it has none, and raises OSError if that is unknown.
    Without it, the name servers of the system are asked, or `nameservers`.
    """

    def __init__(
        self,
        settings: config.FetchSettings,
        *,
        lookup: Lookup | None = None,
        allow: Callable[[str], str] = address_guard.refusal,
        clock: Callable[[], float] = time.monotonic,
        max_names: int = MAX_NAMES,
        nameservers: Sequence[str] = (),
    ) -> None:
        self._settings = settings
        self._lookup = lookup or self._ask_dns
        self._refusal = allow
        self._clock = clock
        self._max_names = max_names
        self._nameservers = nameservers
        self._memory: dict[str, _Remembered] = {}  # the least recently used name first
        self._asking: dict[str, asyncio.Task[tuple[str, ...] | Unresolved]] = {}
        self._dns: aiodns.DNSResolver | None = None

    async def resolve(self, host: str) -> tuple[str, ...] | Unresolved:
        """Return the public addresses of a host name or address literal, in the order in which to try them."""
        remembered = self._memory.pop(host, None)
        if remembered is not None and self._clock() < remembered.until:
            self._memory[host] = remembered
            return remembered.answer
        if _is_literal(host):
            return self._judge([host])
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.ensure_future(self._learn(host))
        try:
            # A caller that is cancelled must not cancel the query that others wait for.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():  # by close(), not by the caller
                return Unresolved("dns", "the resolver was closed", transient=True)
            raise

    def forget(self, host: str) -> None:
        """Drop a host from the cache, since none of its addresses could be reached."""
        self._memory.pop(host, None)

    async def close(self) -> None:
        """Cancel all queries and close the sockets."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._dns is not None:
            await self._dns.close()
            self._dns = None

    async def _learn(self, host: str) -> tuple[str, ...] | Unresolved:
        try:
            answer = await self._ask(host)
            self._remember(host, answer)
            return answer
        finally:
            del self._asking[host]

    async def _ask(self, host: str) -> tuple[str, ...] | Unresolved:
        if not _NAME.fullmatch(host):
            return Unresolved("dns", "not a host name")
        try:
            async with asyncio.timeout(self._settings.dns_timeout):
                found = await self._lookup(host)
        except TimeoutError:
            return Unresolved("dns", "no answer in time", transient=True)
        except OSError as fault:
            return Unresolved("dns", str(fault), transient=True)
        return self._judge(found)

    def _judge(self, found: list[str]) -> tuple[str, ...] | Unresolved:
        if not found:
            return Unresolved("dns", "no such host")
        usable = tuple(a for a in dict.fromkeys(found[: 4 * MAX_ADDRESSES]) if not self._refusal(a))
        if not usable:
            return Unresolved("blocked address", f"{found[0]} is {self._refusal(found[0])}")
        return usable[:MAX_ADDRESSES]

    def _remember(self, host: str, answer: tuple[str, ...] | Unresolved) -> None:
        if not isinstance(answer, Unresolved):
            seconds = self._settings.dns_seconds
        elif answer.transient:
            seconds = min(TRANSIENT_S, self._settings.dns_negative_seconds)
        else:
            seconds = self._settings.dns_negative_seconds
        self._memory[host] = _Remembered(answer, self._clock() + seconds)
        if len(self._memory) > self._max_names:
            del self._memory[next(iter(self._memory))]

    async def _ask_dns(self, host: str) -> list[str]:
        """Return IPv4 addresses, or IPv6 ones of a name without: most hosts have both, and one query is enough."""
        return await self._query(host, "A") or await self._query(host, "AAAA")

    async def _query(self, host: str, kind: Literal["A", "AAAA"]) -> list[str]:
        if self._dns is None:
            # Made here, since it needs a running loop. Plain queries use neither search domains nor /etc/hosts,
            # so a link to http://intranet/ leads nowhere on any machine.
            wait = self._settings.dns_timeout / TRIES
            self._dns = aiodns.DNSResolver(self._nameservers or None, timeout=wait, tries=TRIES)
        try:
            result = await self._dns.query_dns(host, kind)
        except aiodns.error.DNSError as fault:
            if fault.args[0] in _NO_SUCH_NAME:
                return []
            raise OSError(*fault.args) from fault
        addresses = (getattr(record.data, "addr", None) for record in result.answer)  # CNAMEs have none
        return [found for found in addresses if found]


def _is_literal(host: str) -> bool:
    if ":" not in host and not host[-1:].isdigit():
        return False  # no top-level domain ends in a digit
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
