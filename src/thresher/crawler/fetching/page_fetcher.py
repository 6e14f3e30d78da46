"""The polite way to fetch a page: permission, robots.txt, turns of addresses, the request, the class of its answer.

A visit to a URL is a state machine of two steps, each of which returns a value:

    permission(url)   Allowed, Disallowed, Wait, RobotsFetched or HostLost
    fetch_page(url)   FetchedPage, Redirect, Retry or FetchFailure

The caller owns the schedule. A crawl puts a URL that must wait back into its frontier and queues redirects there; a
visitor of a list of URLs sleeps and follows redirects itself. Both ask for permission again after `Wait` and
`RobotsFetched`, since a host serves one request per turn and robots.txt has used it.

robots.txt has no switch: `fetch_page` is called only after `Allowed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from thresher.config import Config
from thresher.crawler.clock import SYSTEM_CLOCK, Clock
from thresher.crawler.fetching.dns import Resolver
from thresher.crawler.fetching.responses import REDIRECTS, location, may_pass, received
from thresher.crawler.manners.addresses import AddressReservations
from thresher.crawler.manners.network_status import NetworkStatus
from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.manners.robots import DISALLOW_ALL, MAX_ROBOTS_BYTES, Robots
from thresher.reader.encoding.decode import unpack
from thresher.records import Failure, Reply
from thresher.urls import host as host_of

ROBOTS_REDIRECTS = 5  # RFC 9309, 2.3.1.2: at least five are followed
MAX_UNPACKED_ROBOTS = 16 * MAX_ROBOTS_BYTES

REASON_RESTING = "asked to wait"
REASON_NO_ROBOTS = "robots.txt is unavailable"
REASON_NO_NETWORK = "no network"


class UrlFetcher(Protocol):
    """Anything that turns a URL into a reply or a failure, as `Fetcher` does."""

    async def fetch(self, url: str, *, max_body_bytes: int | None = None) -> Reply | Failure:
        """Request a URL; every fault of the web is a value."""


class Allowed(Struct, frozen=True):
    """Permission: the URL may be requested now, and its address is reserved."""

    robots: Robots


class Disallowed(Struct, frozen=True):
    """No permission: robots.txt disallows the URL."""


class Wait(Struct, frozen=True):
    """No permission yet: ask again after some seconds."""

    seconds: float
    reason: str
    received: int = 0  # bytes of robots.txt


class RobotsFetched(Struct, frozen=True):
    """No permission yet: the host's turn went to its robots.txt."""

    robots: Robots
    rest_s: float  # seconds until the next request to the host
    received: int


class HostLost(Struct, frozen=True):
    """No permission, ever: the host was given up."""

    failure: Failure
    rest_s: float = 0.0
    received: int = 0  # bytes of robots.txt


Permission = Allowed | Disallowed | Wait | RobotsFetched | HostLost


class FetchedPage(Struct, frozen=True):
    """A complete reply with status 200."""

    answer: Reply
    rest_s: float  # seconds until the next request to the host, as for all results


class Redirect(Struct, frozen=True):
    """A redirect that may be followed."""

    answer: Reply
    rest_s: float
    target: str  # canonical


class Retry(Struct, frozen=True):
    """A failure that may pass, with a try left."""

    answer: Reply | Failure
    rest_s: float
    counts: bool = True  # as a try; not while the network seems to be missing


class FetchFailure(Struct, frozen=True):
    """The final answer for a URL that gives no page."""

    answer: Reply | Failure
    rest_s: float
    reason: str
    detail: str = ""
    host_lost: bool = False  # the host was given up with it


FetchResult = FetchedPage | Redirect | Retry | FetchFailure


class PageFetcher:
    """The polite fetcher of one crawl or one list of URLs."""

    def __init__(
        self,
        config: Config,
        fetcher: UrlFetcher,
        politeness: Politeness,
        addresses: AddressReservations,
        *,
        resolver: Resolver | None = None,
        network: NetworkStatus | None = None,
        check: Callable[[], None] = lambda: None,
        host_rest: Callable[[str], float] = lambda _: 0.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Connect the parts of a polite fetch.

        Parameters
        ----------
        config
            Politeness and the limit of redirects.
        fetcher
            Sends the requests; the caller closes it.
        politeness
            Rules and rests of hosts.
        addresses
            Turns of addresses.
        resolver
            Finds the addresses that take turns. None if all connections go to one place: then every host stands for
            an address of its own.
        network
            Decides whether failures may come from a missing network. By default they never do.
        check
            Called before each request; raises if another process owns the hosts by now.
        host_rest
            Seconds that a host still has to rest, for callers that keep no schedule of hosts.
        clock
            Measures the waits between redirects of robots.txt.
        """
        self._polite = config.polite
        self._max_redirects = config.fetch.max_redirects
        self._fetcher = fetcher
        self._politeness = politeness
        self._addresses = addresses
        self._resolver = resolver
        self._network = network or NetworkStatus(online=True)
        self._check = check
        self._host_rest = host_rest
        self._clock = clock

    async def permission(self, url: str) -> Permission:
        """Return whether a URL may be requested now, and reserve its address if so.

        Fetches robots.txt if it is unknown or too old, once the host and its address have their turn.
        """
        host = host_of(url)
        if reason := self._politeness.dead_reason(host):
            return HostLost(Failure(url, reason, "the host was given up"))
        robots = self._politeness.robots(host)
        if robots is DISALLOW_ALL:
            return Wait(self._politeness.robots_wait(host), REASON_NO_ROBOTS)
        if robots is not None and not robots.allows(url):
            return Disallowed()
        if wait := self._host_rest(host) or await self._address_wait(host):
            return Wait(wait, REASON_RESTING)
        return Allowed(robots) if robots is not None else await self._fetch_robots(url, host)

    async def fetch_page(self, url: str, *, hops: int = 0, tries: int = 0) -> FetchResult:
        """Request a permitted URL and return the class of its answer; note how the host took it.

        `hops` redirects were followed to the URL, and `tries` requests for it have failed before.
        """
        self._check()
        host = host_of(url)
        answer = await self._fetcher.fetch(url)
        if self._network.is_offline(answer):
            return Retry(answer, self._polite.backoff, counts=False)
        rest_s = self._politeness.rest(host, answer)
        if isinstance(answer, Reply):
            if answer.status == 200 and not answer.truncated:
                return FetchedPage(answer, rest_s)
            if answer.status in REDIRECTS:
                return self._redirect(url, answer, rest_s, hops)
        elif self._politeness.give_up(host, answer):
            return FetchFailure(answer, rest_s, answer.reason, answer.detail, host_lost=True)
        if may_pass(answer) and tries + 1 < self._polite.tries:
            return Retry(answer, rest_s)
        if isinstance(answer, Failure):
            return FetchFailure(answer, rest_s, answer.reason, answer.detail)
        reason = "truncated" if answer.status == 200 else f"http {answer.status}"
        return FetchFailure(answer, rest_s, reason, answer.truncated)

    def _redirect(self, url: str, reply: Reply, rest_s: float, hops: int) -> Redirect | FetchFailure:
        target = location(reply)
        if target is None:
            return FetchFailure(reply, rest_s, "bad redirect")
        if hops >= self._max_redirects or target == url:
            return FetchFailure(reply, rest_s, "redirect loop", target)
        return Redirect(reply, rest_s, target)

    async def _address_wait(self, host: str) -> float:
        """Reserve the address of a host and return 0, or return the seconds to wait for it.

        A host without an address gets its turn: the request itself reports why there is none.
        """
        if self._resolver is None:
            return 0.0
        found = await self._resolver.resolve(host.partition(":")[0])
        return await self._addresses.reserve(found[0]) if isinstance(found, tuple) else 0.0

    async def _fetch_robots(self, url: str, host: str) -> RobotsFetched | Wait | HostLost:
        """Spend the host's turn on robots.txt."""
        answer, cost = await self._robots_answer(f"{url.partition(':')[0]}://{host}/robots.txt")
        if self._network.is_offline(answer):
            return Wait(self._polite.backoff, REASON_NO_NETWORK, cost)
        if isinstance(answer, Failure) and self._politeness.give_up(host, answer):
            return HostLost(answer, self._politeness.rest(host, answer), cost)
        robots = self._politeness.learn_robots(host, answer)
        return RobotsFetched(robots, self._politeness.rest(host, answer), cost)

    async def _robots_answer(self, url: str) -> tuple[Reply | Failure, int]:
        """Return robots.txt, unpacked, with redirects followed, and the bytes of all replies.

        A reply that was cut off is a failure, since the missing rules may be the ones that matter.
        """
        self._check()
        answer = await self._fetcher.fetch(url, max_body_bytes=MAX_ROBOTS_BYTES)
        cost = 0
        for _ in range(ROBOTS_REDIRECTS):
            onward = location(answer) if isinstance(answer, Reply) and answer.status in REDIRECTS else None
            if onward is None:
                break
            cost += received(answer)
            await self._wait_for_turn(onward)
            answer = await self._fetcher.fetch(onward, max_body_bytes=MAX_ROBOTS_BYTES)
        if isinstance(answer, Failure):
            return answer, cost
        cost += received(answer)
        unpacked = unpack(answer.body, answer.header("Content-Encoding") or "", MAX_UNPACKED_ROBOTS)
        if unpacked.fault or answer.truncated in ("time", "disconnect"):
            fault = unpacked.fault or "truncated"
            return Failure(answer.url, fault, transient=True, elapsed=answer.elapsed), cost
        return replace(answer, body=unpacked.body), cost

    async def _wait_for_turn(self, url: str) -> None:
        """Wait before robots.txt is requested behind a redirect: for the host's delay and for its address."""
        host = host_of(url)
        await self._clock.sleep(self._politeness.delay(host))
        while wait := await self._address_wait(host):
            await self._clock.sleep(wait)
        self._check()
