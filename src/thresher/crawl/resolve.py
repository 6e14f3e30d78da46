"""Host names to addresses: asked without blocking, remembered, and never a private one among them."""

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
from thresher.crawl import address

MAX_ADDRESSES = 8  # of one host; a name with a thousand is a trick
MAX_NAMES = 100_000  # remembered, about 30 MB; the longest unused are forgotten first
TRIES = 3  # questions lost on the way are asked again within the time
PASSING_SECONDS = 30.0  # a failure in passing is believed no longer than this

# c-ares' ways of saying that there is no such name, or none with an address.
_NO_SUCH_NAME = frozenset(
    (
        aiodns.error.ARES_ENODATA,
        aiodns.error.ARES_ENOTFOUND,
        aiodns.error.ARES_ENONAME,
        aiodns.error.ARES_EBADNAME,
    )
)

_NAME = re.compile(r"[!-~]{1,253}")  # RFC 1035's length; a NUL would end the name for c-ares, not for us

Lookup = Callable[[str], Awaitable[list[str]]]


class Unresolved(Struct, frozen=True, gc=False):
    """Why a host has no address that may be used."""

    reason: Literal["dns", "blocked address"]
    detail: str = ""
    transient: bool = False  # worth another try later


class _Remembered(Struct, frozen=True):
    answer: tuple[str, ...] | Unresolved
    until: float


class Resolver:
    """Finds the addresses of hosts; each name is asked for once at a time and remembered for a while.

    `lookup` gives a name's addresses, an empty list for a name that has none, and raises OSError when it
    cannot tell; without it the system's name servers are asked, or `nameservers`.
    """

    def __init__(
        self,
        settings: config.Fetch,
        *,
        lookup: Lookup | None = None,
        allow: Callable[[str], str] = address.refusal,
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
        self._memory: dict[str, _Remembered] = {}  # the longest unused name first
        self._asking: dict[str, asyncio.Task[tuple[str, ...] | Unresolved]] = {}
        self._dns: aiodns.DNSResolver | None = None

    async def resolve(self, host: str) -> tuple[str, ...] | Unresolved:
        """Public addresses of a host name or address literal, in the order in which to try them."""
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
            # Whoever stops waiting must not take the answer from the others.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():  # by close(), not by whoever waits
                return Unresolved("dns", "the resolver was closed", transient=True)
            raise

    def forget(self, host: str) -> None:
        """Ask anew next time: none of the addresses could be reached."""
        self._memory.pop(host, None)

    async def close(self) -> None:
        """Give up what is being asked and let go of the sockets."""
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
            seconds = min(PASSING_SECONDS, self._settings.dns_negative_seconds)
        else:
            seconds = self._settings.dns_negative_seconds
        self._memory[host] = _Remembered(answer, self._clock() + seconds)
        if len(self._memory) > self._max_names:
            del self._memory[next(iter(self._memory))]

    async def _ask_dns(self, host: str) -> list[str]:
        """IPv4 first, IPv6 for names without: nearly every host has both, and one question is enough."""
        return await self._query(host, "A") or await self._query(host, "AAAA")

    async def _query(self, host: str, kind: Literal["A", "AAAA"]) -> list[str]:
        if self._dns is None:
            # Only inside a running loop. Plain queries know neither search domains nor /etc/hosts:
            # a link to http://intranet/ leads nowhere, whatever the machine it is followed on.
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
