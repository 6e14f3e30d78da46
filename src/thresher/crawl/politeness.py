"""Whether and when a host may be visited: robots rules, delays, back-off. There is no switch for robots.txt."""

from __future__ import annotations

import email.utils
import math
from collections import OrderedDict
from collections.abc import Callable

import zstandard
from msgspec import Struct

from thresher.config import Polite
from thresher.crawl.robots import ALLOW_ALL, DISALLOW_ALL, MAX_ROBOTS_BYTES, Robots, parse
from thresher.crawl.state import State, Table
from thresher.page import Failure, Reply

MAX_LOAD_DELAY = 60.0  # a host that answered slowly once is not thought slow for hours
A_MOMENT = 0.05  # seconds by which somebody may come too late
MANY_ADDRESSES = 100_000  # that are remembered before those that may be visited are forgotten
PARSED_ROBOTS = 20_000  # hosts whose parsed rules are kept in memory
BUSY = (429, 503)


class Manners(Struct, array_like=True):
    """What a host asked of us, and how it took our visits; kept over restarts."""

    robots: bytes = b""  # robots.txt, zstd; b"" when there are no rules
    robots_until: float = 0.0  # wall time until which it is believed
    robots_refused: bool = False  # could not be had: nothing may be fetched
    robots_failures: int = 0  # in a row
    crawl_delay: float = 0.0
    backoffs: int = 0  # 429 and 503 in a row
    failures: int = 0  # connections that failed in a row
    until: float = 0.0  # wall time before which the host is not to be visited …
    wait: float = 0.0  # … and how long a wait that was, so that a clock set back cannot prolong it
    dead: str = ""  # why the host was given up


class Politeness:
    """The manners of every host. Times are wall-clock seconds: they outlive the process."""

    def __init__(self, state: State, settings: Polite, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._hosts = Table(state, b"p/", Manners)
        self._parsed: OrderedDict[str, Robots] = OrderedDict()
        # When an address was visited is not on record: where a crawl goes on, each may just have been.
        goes_on = next(state.committed(b"\0", b"\xff"), None) is not None
        self._opening_until = clock() + settings.ip_delay if goes_on else 0.0
        self._address_until: dict[str, float] = {}
        self._address_line: dict[
            str, float
        ] = {}  # when the last who has to wait for an address is to come back

    # robots.txt

    def robots(self, host: str) -> Robots | None:
        """The host's rules, or None if robots.txt must be fetched first."""
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
        if len(self._parsed) > PARSED_ROBOTS:
            self._parsed.popitem(last=False)

    def learn_robots(self, host: str, answer: Reply | Failure) -> Robots:
        """RFC 9309: 4xx allows all; what cannot be reached, 429 and 5xx forbid all until it can be had."""
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
        """The uses by models that the host's robots.txt forbade when it was last had, however long ago."""
        packed = self._hosts[host].robots
        return parse(zstandard.decompress(packed)).opt_outs if packed else ()

    def _robots_retry(self, answer: Reply | Failure, failures: int) -> float:
        """A passing fault is tried again soon, a few times; then the host has to wait."""
        if failures >= self._settings.tries:
            return self._settings.robots_retry
        asked = retry_after(answer, self._clock()) if isinstance(answer, Reply) else None
        backoff = self._settings.backoff * 2.0 ** (failures - 1)
        return max(asked or 0.0, min(backoff, self._settings.robots_retry))

    def robots_wait(self, host: str) -> float:
        """Seconds until robots.txt that could not be had is asked for again."""
        return max(0.0, self._hosts[host].robots_until - self._clock())

    # delays

    def rest(self, host: str, answer: Reply | Failure) -> float:
        """Seconds that the host is to be left alone after this answer."""
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
            wait = max(wait, self._settings.backoff * 2.0 ** min(manners.failures - 1, 8))
        wait = min(wait, 30 * 86_400.0)
        manners.until, manners.wait = self._clock() + wait, wait
        return wait

    def _back_off(self, manners: Manners, reply: Reply) -> float:
        manners.backoffs += 1
        asked = retry_after(reply, self._clock())
        if asked is not None:
            return asked
        return min(self._settings.backoff * 2.0 ** min(manners.backoffs - 1, 16), self._settings.max_backoff)

    def delay(self, host: str) -> float:
        """Seconds between two requests to the host."""
        return max(self._settings.delay, self._hosts[host].crawl_delay)

    def rest_on_opening(self, host: str) -> float:
        """Seconds to leave a host alone when the crawl goes on: what it asked for, and at least one delay,
        since the last visits before a crash may not have been recorded."""
        return max(self.remaining(host), self.delay(host))

    def remaining(self, host: str) -> float:
        """Seconds of the rest that the host was last given, or asked for, which are not over yet."""
        manners = self._hosts[host]
        return min(max(manners.until - self._clock(), 0.0), manners.wait)

    def take_address(self, address: str, slack: float = 0.0) -> float:
        """Seconds to wait for an address; if there are none, a request goes there now, or within the slack.

        Those who have to wait stand in line: if all came back at once, all but one would have come for nothing.
        """
        now, delay = self._clock(), self._settings.ip_delay + slack
        if self._opening_until <= now:
            self._opening_until = 0.0  # for good, also if the clock is set back
        free = self._address_until.get(address, self._opening_until)
        if free <= now:
            if len(self._address_until) > MANY_ADDRESSES:
                self._forget_addresses(now)
            self._address_until[address] = now + delay
            return 0.0
        if free - now <= A_MOMENT:  # somebody before was a little late
            return free - now
        last = self._address_line.get(address, 0.0)
        self._address_line[address] = back = max(free, last + delay + A_MOMENT) if last > now else free
        return back - now

    def _forget_addresses(self, now: float) -> None:
        self._address_until = {a: until for a, until in self._address_until.items() if until > now}
        self._address_line = {a: last for a, last in self._address_line.items() if last > now}

    # hosts that are given up

    def dead(self, host: str) -> str:
        """Why the host was given up, or ""."""
        return self._hosts[host].dead

    def give_up(self, host: str, failure: Failure) -> bool:
        """Whether this failure is the host's last: never visited again."""
        manners = self._hosts.touch(host)
        lasting = failure.reason in ("dns", "blocked address", "blocked port") and not failure.transient
        if lasting or manners.failures >= self._settings.host_failures:
            manners.dead = failure.reason
        return bool(manners.dead)

    def flush(self) -> None:
        self._hosts.flush()


def retry_after(reply: Reply, now: float) -> float | None:
    """Seconds that Retry-After asks for, from a number or a date; None where it says nothing usable.

    A minus or a date gone by is no reason to hurry, and nonsense is not asked for.
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
