"""Politeness: robots rules, delays and back-off of every host. There is no switch for robots.txt.

Nothing here opens a connection: callers fetch robots.txt and report answers. Times are wall-clock seconds of an
injected clock, since they outlive the process.
"""

from __future__ import annotations

import email.utils
import math
from collections import OrderedDict
from collections.abc import Callable

import zstandard
from msgspec import Struct

from thresher.config import PoliteSettings
from thresher.crawler.manners.robots import ALLOW_ALL, DISALLOW_ALL, MAX_ROBOTS_BYTES, Robots, parse
from thresher.crawler.storage.keys import HOST_MANNERS
from thresher.crawler.storage.kv_state import KeyValueState, StateTable, remove_names
from thresher.records import Failure, Reply

MAX_LOAD_DELAY = 60.0  # seconds of rest after one slow answer
ADDRESS_SLACK_S = 0.05  # by which a request may come later than its place in the line of an address
MAX_ADDRESSES = 100_000  # in memory before addresses that may be visited again are dropped
MAX_PARSED_ROBOTS = 20_000  # hosts with parsed rules in memory
MAX_REST_S = 30 * 86_400.0  # even if a host asks for more
MAX_DOUBLINGS = 8  # of the back-off after failures
MAX_BUSY_DOUBLINGS = 16  # of the back-off after 429 and 503, which max_backoff bounds as well
BUSY = (429, 503)


class HostManners(Struct, array_like=True):
    """The rules and the recent answers of a host; stored in the state."""

    robots: bytes = b""  # robots.txt, zstd; b"" when there are no rules
    robots_until: float = 0.0  # wall time at which robots.txt must be fetched again
    robots_refused: bool = False  # robots.txt could not be fetched, so no page may be fetched
    robots_failures: int = 0  # in a row
    crawl_delay: float = 0.0
    backoffs: int = 0  # 429 and 503 in a row
    failures: int = 0  # connections that failed in a row
    until: float = 0.0  # wall time before which the host is not visited
    wait: float = 0.0  # length of that rest, so that a clock set back cannot prolong it
    dead_reason: str = ""  # why the host was given up


class Politeness:
    """Rules, rests and back-off of every host and address of a crawl, with its memory in the state."""

    def __init__(self, state: KeyValueState, settings: PoliteSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._hosts = StateTable(state, HOST_MANNERS, HostManners)
        self._parsed: OrderedDict[str, Robots] = OrderedDict()
        # Visits of addresses are not stored: when a crawl resumes, each address may just have been visited.
        resumes = next(state.committed(b"\0", b"\xff"), None) is not None
        self._opening_until = clock() + settings.ip_delay if resumes else 0.0
        self._opened = clock()
        self._address_until: dict[str, float] = {}
        self._address_line: dict[str, float] = {}  # the time given to the last request in line for an address

    # robots.txt

    def robots(self, host: str) -> Robots | None:
        """Return the rules of a host, or None if robots.txt must be fetched first."""
        manners = self._hosts[host]
        if self._clock() >= manners.robots_until:
            return None
        if manners.robots_refused:
            return DISALLOW_ALL
        if not manners.robots:
            return ALLOW_ALL
        rules = self._parsed.get(host)
        if rules is None:
            rules = parse(zstandard.decompress(manners.robots))
            self._remember(host, rules)
        return rules

    def _remember(self, host: str, rules: Robots) -> None:
        self._parsed[host] = rules
        if len(self._parsed) > MAX_PARSED_ROBOTS:
            self._parsed.popitem(last=False)

    def learn_robots(self, host: str, answer: Reply | Failure) -> Robots:
        """Store the answer to a request for robots.txt and return its rules.

        By RFC 9309, 4xx allows everything. An unreachable file, 429 and 5xx forbid everything until it is fetched.
        """
        manners = self._hosts.touch(host)
        self._parsed.pop(host, None)
        status = answer.status if isinstance(answer, Reply) else 0
        unreachable = status in (0, 429) or status >= 500
        manners.robots_refused = unreachable
        manners.robots_failures = manners.robots_failures + 1 if unreachable else 0
        if unreachable:
            manners.robots_until = self._clock() + self._robots_retry(answer, manners.robots_failures)
            return DISALLOW_ALL
        manners.robots_until = self._clock() + self._settings.robots_age
        if status != 200:
            manners.robots, manners.crawl_delay = b"", 0.0
            return ALLOW_ALL
        body = answer.body[:MAX_ROBOTS_BYTES] if isinstance(answer, Reply) else b""
        rules = parse(body)
        manners.robots = zstandard.compress(body) if body.strip() else b""
        manners.crawl_delay = rules.crawl_delay or 0.0
        self._remember(host, rules)
        return rules

    def opt_outs(self, host: str) -> tuple[str, ...]:
        """Return the uses by models that the last known robots.txt of a host forbids, however old it is."""
        packed = self._hosts[host].robots
        return parse(zstandard.decompress(packed)).opt_outs if packed else ()

    def _robots_retry(self, answer: Reply | Failure, failures: int) -> float:
        """Return seconds until robots.txt is requested again: soon for the first failures, then `robots_retry`."""
        if failures >= self._settings.tries:
            return self._settings.robots_retry
        asked = retry_after(answer, self._clock()) if isinstance(answer, Reply) else None
        backoff = self._settings.backoff * 2.0 ** (failures - 1)
        return max(asked or 0.0, min(backoff, self._settings.robots_retry))

    def robots_wait(self, host: str) -> float:
        """Return seconds until a robots.txt that could not be fetched is requested again."""
        return max(0.0, self._hosts[host].robots_until - self._clock())

    # delays

    def rest(self, host: str, answer: Reply | Failure) -> float:
        """Count an answer of a host; return the seconds for which it must not be visited."""
        manners = self._hosts.touch(host)
        wait = self.delay(host)
        if self._settings.delay:
            share = self._settings.load_share
            wait = max(wait, min(answer.elapsed / share if share else 0.0, MAX_LOAD_DELAY))
        if isinstance(answer, Reply):
            manners.failures = 0
            if answer.status in BUSY:
                wait = max(wait, self._back_off(manners, answer))
            else:
                manners.backoffs = 0
        elif answer.transient:
            manners.failures += 1
            wait = max(wait, self._settings.backoff * 2.0 ** min(manners.failures - 1, MAX_DOUBLINGS))
        wait = min(wait, MAX_REST_S)
        manners.until, manners.wait = self._clock() + wait, wait
        return wait

    def _back_off(self, manners: HostManners, reply: Reply) -> float:
        manners.backoffs += 1
        asked = retry_after(reply, self._clock())
        if asked is not None:
            return asked
        doublings = min(manners.backoffs - 1, MAX_BUSY_DOUBLINGS)
        return min(self._settings.backoff * 2.0**doublings, self._settings.max_backoff)

    def delay(self, host: str) -> float:
        """Return the seconds between two requests to a host."""
        return max(self._settings.delay, self._hosts[host].crawl_delay)

    def rest_on_opening(self, host: str) -> float:
        """Return the seconds for which a host must rest when the crawl resumes.

        At least one delay, since the last visits before a crash may not have been stored.
        """
        return max(self.remaining(host), self.delay(host))

    def remaining(self, host: str) -> float:
        """Return the seconds that are left of the current rest of a host."""
        manners = self._hosts[host]
        return min(max(manners.until - self._clock(), 0.0), manners.wait)

    def rest_reason(self, host: str) -> str:
        """Return why a host that rests does so: delay, backoff, robots or address."""
        manners = self._hosts[host]
        if manners.robots_refused and self._clock() < manners.robots_until:
            return "robots"
        is_opening = self._clock() - self._opened < self.delay(host)  # see rest_on_opening
        if self.remaining(host) or is_opening:
            return "backoff" if manners.backoffs or manners.failures else "delay"
        return "address"

    def take_address(self, address: str, slack: float = 0.0) -> float:
        """Reserve an address for a request now; return 0, or the seconds to wait before the next attempt.

        Requests that must wait are given different times, in line. If all of them came back at once, all but one
        would have to wait again. `slack` is added to the rest of the address, for a request that is sent later.
        """
        now, delay = self._clock(), self._settings.ip_delay + slack
        if self._opening_until <= now:
            self._opening_until = 0.0  # permanently, even if the clock is set back
        free = self._address_until.get(address, self._opening_until)
        if free <= now:
            if len(self._address_until) > MAX_ADDRESSES:
                self._forget_addresses(now)
            self._address_until[address] = now + delay
            return 0.0
        if free - now <= ADDRESS_SLACK_S:  # the request before was a little late
            return free - now
        last = self._address_line.get(address, 0.0)
        self._address_line[address] = back = max(free, last + delay + ADDRESS_SLACK_S) if last > now else free
        return back - now

    def _forget_addresses(self, now: float) -> None:
        self._address_until = {a: until for a, until in self._address_until.items() if until > now}
        self._address_line = {a: last for a, last in self._address_line.items() if last > now}

    # hosts that are given up

    def dead_reason(self, host: str) -> str:
        """Return why a host was given up, or ""."""
        return self._hosts[host].dead_reason

    def give_up(self, host: str, failure: Failure) -> bool:
        """Return whether the host is given up after this failure, so that it is never visited again."""
        manners = self._hosts.touch(host)
        lasting = failure.reason in ("dns", "blocked address", "blocked port") and not failure.transient
        if lasting or manners.failures >= self._settings.host_failures:
            manners.dead_reason = failure.reason
        return bool(manners.dead_reason)

    def flush(self) -> None:
        """Add the hosts that changed to the next commit of the state."""
        self._hosts.flush()


def remove(state: KeyValueState, covers_host: Callable[[str], bool]) -> None:
    """Remove the manners of covered hosts; this joins the next commit."""
    remove_names(state, HOST_MANNERS, covers_host)


def retry_after(reply: Reply, now: float) -> float | None:
    """Return the seconds that Retry-After asks for, as a number or a date; None if it cannot be used.

    Negative numbers, past dates and anything that cannot be parsed count as no header.
    """
    value = reply.header("Retry-After")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - now
        except (ValueError, TypeError, OverflowError):
            return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None
