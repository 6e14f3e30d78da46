"""Thousands of concurrent HTTP requests in one thread; each of them ends in a Reply or a Failure."""

from __future__ import annotations

import asyncio
import re
import resource
import ssl
import time
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import ada_url
import pycurl
from msgspec import Struct

from thresher import config
from thresher._version import __version__
from thresher.crawler.fetching import address_guard
from thresher.crawler.fetching.curl import REASONS, Driver, Request, Transfer, printable
from thresher.crawler.fetching.dns import Resolver, Unresolved
from thresher.errors import UsageError
from thresher.records import Failure, Reply
from thresher.urls import MAX_URL_LENGTH

__all__ = ["ACCEPT", "REASONS", "Fetcher", "user_agent"]

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.1"
MAX_ATTEMPTS = 3  # addresses of a host that are tried for one request
MAX_RESERVED_FILES = 256  # file descriptors for state, segments, pipes and logs, besides the connections
SWEEP_S = 0.25  # between two looks for requests that are overdue

_URL = re.compile(r"(https?://[^/?#\\]+)([/?][!-\"$-~]*)?(?:#.*)?", re.IGNORECASE | re.DOTALL)
# Files of trusted authorities, by system; libcurl as packaged knows only the second.
_CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def user_agent(contact: str) -> str:
    """Return the User-Agent header: product, version, and a contact for webmasters."""
    return f"Thresher/{__version__} (+{printable(contact)})"


class Fetcher:
    """An HTTP/1.1 client with up to `capacity` connections; further requests wait.

    HTTP/1.1 only: its header bytes can be kept exactly, and with one request at a time per host, the streams of
    HTTP/2 would gain nothing. Nothing is decoded, no redirect is followed, no cookie is kept. With `connect_to`,
    all connections go to one address, in plain HTTP, and no name is looked up.
    """

    def __init__(
        self,
        settings: config.FetchSettings,
        user_agent: str,
        resolver: Resolver | None = None,
        *,
        connect_to: tuple[str, int] | None = None,
        language: str = "",
        clock: Callable[[], float] = time.time,
        allow: Callable[[str], str] = address_guard.refusal,
    ) -> None:
        self._settings = settings
        self._fixed_route = _route(*connect_to) if connect_to else ""
        self._options = _constant_options(settings, user_agent, with_tls=not connect_to)
        self._headers = [f"Accept-Encoding: {', '.join(settings.encodings) or 'identity'}"]
        if language:
            self._headers.append(f"Accept-Language: {language}, *;q=0.5")
        self._resolver = resolver or Resolver(settings, allow=allow)
        self._own_resolver = resolver is None
        self._clock = clock
        self._allow = None if connect_to else allow
        self._capacity = _capacity(settings.connections)
        self._slots = asyncio.Semaphore(self._capacity)
        self._idle: list[Transfer] = []
        self._active: dict[Any, Transfer] = {}  # by curl handle
        self._driver: Driver | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    @classmethod
    def of(
        cls,
        settings: config.Config,
        resolver: Resolver | None,
        connect_to: tuple[str, int] | None,
        wall_clock: Callable[[], float] = time.time,
    ) -> Fetcher:
        """Return the fetcher of a corpus, with its contact and language in the headers."""
        return cls(
            settings.fetch,
            user_agent(settings.polite.contact),
            resolver,
            connect_to=connect_to,
            language=settings.language,
            clock=wall_clock,
        )

    @property
    def capacity(self) -> int:
        """Number of connections that may be open at once."""
        return self._capacity

    async def fetch(
        self, url: str, *, max_body_bytes: int | None = None, accept: str = ACCEPT
    ) -> Reply | Failure:
        """Request a URL; return a value within the time limits, also for every fault of the web."""
        parts = _URL.fullmatch(url) if len(url) <= MAX_URL_LENGTH else None
        origin = _origin(parts[1]) if parts else None
        if parts is None or origin is None:
            return Failure(url, "bad url")
        fixed = self._fixed_route
        if not fixed and origin.port not in self._settings.ports:
            return Failure(url, "blocked port", str(origin.port))
        path = parts[2] or "/"
        async with self._slots:
            now = asyncio.get_running_loop().time()
            request = Request(
                url,
                (origin.plain if fixed else origin.wire) + (path if path[0] == "/" else "/" + path),
                (accept, origin.host_header if fixed else ""),
                self._settings.max_body_bytes if max_body_bytes is None else max_body_bytes,
                now + self._settings.total_timeout,
            )
            if fixed:
                return await self._transfer(request, fixed)
            found = await self._resolver.resolve(origin.host)
            if isinstance(found, Unresolved):
                return Failure(url, found.reason, printable(found.detail), found.transient)
            for usable in found[:MAX_ATTEMPTS]:
                outcome = await self._transfer(request, _route(usable))
                if isinstance(outcome, Reply) or outcome.reason != "connect":
                    return outcome
            self._resolver.forget(origin.host)
            return outcome

    async def close(self) -> None:
        """End all transfers, which fail, and close all sockets."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for transfer in list(self._active.values()):
            transfer.refuse("disconnect", "the fetcher was closed")
            self._finish(transfer.easy, pycurl.E_ABORTED_BY_CALLBACK, "")
        if self._driver is not None:
            self._driver.close()
        for transfer in self._idle:
            transfer.easy.close()
        self._idle.clear()
        if self._own_resolver:
            await self._resolver.close()

    async def _transfer(self, request: Request, route: str) -> Reply | Failure:
        if self._closed:
            return Failure(request.url, "disconnect", "the fetcher was closed", transient=True)
        driver = self._driver
        if driver is None:
            driver = self._driver = Driver(asyncio.get_running_loop(), self._capacity, self._finish)
        transfer = self._idle.pop() if self._idle else Transfer(self._settings, self._options, self._allow)
        if transfer.asked != request.ask:
            transfer.ask(request.ask, self._headers)
        future: asyncio.Future[Reply | Failure] = driver.loop.create_future()
        transfer.begin(request, route, future, self._clock(), driver.loop.time())
        self._active[transfer.easy] = transfer
        driver.start(transfer.easy)
        if self._sweeper is None:
            self._sweeper = driver.loop.call_later(self._sweep_seconds(), self._sweep)
        try:
            return await future
        except asyncio.CancelledError:
            if transfer.future is future:  # otherwise it has ended, and the handle may serve another request
                self._release(transfer)
            raise

    def _finish(self, easy: Any, code: int, message: str) -> None:
        transfer = self._active[easy]
        future = transfer.future
        outcome = transfer.outcome(code, message)
        self._release(transfer)
        if future is not None and not future.done():
            future.set_result(outcome)

    def _release(self, transfer: Transfer) -> None:
        del self._active[transfer.easy]
        if self._driver is not None:
            self._driver.stop(transfer.easy)
        transfer.clear()
        self._idle.append(transfer)

    def _sweep_seconds(self) -> float:
        s = self._settings
        shortest = min(s.first_byte_timeout, s.total_timeout, s.min_rate_seconds)
        return max(0.01, min(SWEEP_S, shortest / 4))

    def _sweep(self) -> None:
        """End overdue transfers; looking at all of them at intervals costs less than a timer for each."""
        self._sweeper = None
        if self._driver is None or not self._active:
            return
        now = self._driver.loop.time()
        for transfer in list(self._active.values()):
            if lateness := transfer.lateness(now):
                transfer.give_up(now)
                self._finish(transfer.easy, pycurl.E_OPERATION_TIMEDOUT, lateness)
        self._sweeper = self._driver.loop.call_later(self._sweep_seconds(), self._sweep)


class _Origin(Struct, frozen=True, gc=False):
    """The parts that all URLs of one host and port share."""

    wire: str  # scheme and authority, normalised
    plain: str  # the same in plain HTTP
    host: str  # without brackets
    port: int
    host_header: str  # for plain HTTP with port 80 of an https URL, which libcurl would leave out


@lru_cache(maxsize=65_536)
def _origin(start: str) -> _Origin | None:
    """Return scheme, host and port of a URL by the WHATWG rules, by which 2130706433 is 127.0.0.1."""
    try:
        url = ada_url.URL(start)
    except ValueError:
        return None
    if not url.hostname:
        return None
    scheme = url.protocol[:-1]
    port = int(url.port) if url.port else {"http": 80, "https": 443}[scheme]
    host_header = f"Host: {url.host}" if scheme == "https" and port == 80 else ""
    return _Origin(
        f"{scheme}://{url.host}", f"http://{url.host}", url.hostname.strip("[]"), port, host_header
    )


@lru_cache(maxsize=65_536)
def _route(ip: str, port: int | None = None) -> str:
    """Return a value of CONNECT_TO that sends every host to an address, and to a port unless that is None."""
    try:
        bracketed = f"[{ip}]" if ip_address(ip).version == 6 else ip
    except ValueError:
        raise UsageError(f"connect-to: {ip!r} is not an IP address; try 127.0.0.1") from None
    return f"::{bracketed}:{'' if port is None else port}"


def _capacity(connections: int) -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return connections
    return max(1, min(connections, files - min(MAX_RESERVED_FILES, files // 2)))


def _ca_bundle() -> str:
    # One file, since libcurl keeps parsed certificates between connections only if they come from a single file.
    for path in (ssl.get_default_verify_paths().cafile, *_CA_BUNDLES):
        if path and Path(path).is_file():
            return path
    raise UsageError("no certificate authorities found: install ca-certificates or set SSL_CERT_FILE")


def _constant_options(
    settings: config.FetchSettings, user_agent: str, *, with_tls: bool
) -> list[tuple[int, Any]]:
    options = [
        (pycurl.USERAGENT, user_agent),
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
        (pycurl.HTTP09_ALLOWED, 0),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        (pycurl.PROXY, ""),  # ignores proxies of the environment
        (pycurl.NOSIGNAL, 1),
        (pycurl.CONNECTTIMEOUT_MS, max(1, round(settings.connect_timeout * 1000))),
        (pycurl.BUFFERSIZE, 64 * config.KIB),
    ]
    if with_tls:
        options.append((pycurl.CAINFO, _ca_bundle()))
    return options
