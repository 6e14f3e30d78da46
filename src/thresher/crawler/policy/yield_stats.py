"""Yields of hosts and domains while a crawl runs, and SpiderLing's rule that closes poor domains."""

from __future__ import annotations

import ast
import heapq
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar, TypeAlias

import msgspec
from msgspec import Struct, field

from thresher.config import BudgetSettings, PolicySettings
from thresher.crawler.storage.keys import (
    ALL_YIELDS,
    CLOSING_RELAXATIONS,
    DOMAIN_YIELDS,
    HOST_YIELDS,
    RECENT_YIELD,
)
from thresher.crawler.storage.kv_state import KeyValueState, StateTable, remove_names
from thresher.errors import UsageError
from thresher.urls import domain as domain_of
from thresher.urls import host as host_of

MAX_RANKED_HOSTS = 10_000  # looked at for the best and the worst, since status is computed every second
MIN_RANKED_PAGES = 5  # of a host that may be among the best or the worst
PRIOR_BYTES = 30_000  # weight of the prior: with as many bytes downloaded, both count the same
PRIOR_YIELD = 0.1  # expected before any page was downloaded
# Share of the threshold that is left each time it is lowered. With the last one, only the floor counts.
THRESHOLD_SHARES = (1.0, 1 / 4, 1 / 16, 1 / 64, 0.0)
LOW_YIELD = "low yield"
MAX_CACHED_THRESHOLDS = 100_000  # values of one formula, by pages

_encode = msgspec.msgpack.Encoder().encode


class YieldTally(Struct, array_like=True):
    """Counts of a host or a domain: pages, documents kept, bytes downloaded, bytes of text."""

    pages: int = 0
    kept: int = 0
    bytes: int = 0
    text_bytes: int = 0

    @property
    def rate(self) -> float:
        """The yield: bytes of text that entered the corpus per byte downloaded."""
        return self.text_bytes / self.bytes if self.bytes else 0.0

    def expected(self, before: float) -> float:
        """Return the expected yield of the next page, shrunk towards `before`."""
        return (self.text_bytes + PRIOR_BYTES * before) / (self.bytes + PRIOR_BYTES)

    def count(self, downloaded: int, text: int) -> None:
        """Add one page."""
        self.pages += 1
        self.kept += text > 0
        self.bytes += downloaded
        self.text_bytes += text

    def __add__(self, other: YieldTally) -> YieldTally:
        """Return the sum of both."""
        return YieldTally(
            self.pages + other.pages,
            self.kept + other.kept,
            self.bytes + other.bytes,
            self.text_bytes + other.text_bytes,
        )

    def since(self, before: YieldTally) -> YieldTally:
        """Return the counts added since an earlier tally."""
        return YieldTally(
            self.pages - before.pages,
            self.kept - before.kept,
            self.bytes - before.bytes,
            self.text_bytes - before.text_bytes,
        )


class RecentYield(Struct, array_like=True):
    """Yield of the most recent pages, in portions of a few pages, so that windows need little memory."""

    PORTION: ClassVar[int] = 20  # pages
    PORTIONS: ClassVar[int] = 51  # at least 1,000 pages, even if the last portion has just begun

    pages: int = 0  # with a body, in the whole crawl
    portions: list[YieldTally] = field(default_factory=list)

    def count(self, downloaded: int, text: int) -> None:
        """Add one page; an answer without a body does not count."""
        if not downloaded:
            return
        if not self.portions or self.portions[-1].pages >= self.PORTION:
            self.portions.append(YieldTally())
            del self.portions[: -self.PORTIONS]
        self.portions[-1].count(downloaded, text)
        self.pages += 1

    def last(self, pages: int) -> YieldTally:
        """Return the sum of the last `pages` pages, rounded up to whole portions; fewer if there are no more."""
        window = YieldTally()
        for portion in reversed(self.portions):
            if window.pages >= pages:
                break
            window = window + portion
        return window


RankedHosts: TypeAlias = list[tuple[str, YieldTally]]


class YieldStats:
    """Tallies of every host and registered domain, and of the most recent pages."""

    def __init__(self, state: KeyValueState) -> None:
        self._state = state
        self.hosts = StateTable(state, HOST_YIELDS, YieldTally)
        self.domains = StateTable(state, DOMAIN_YIELDS, YieldTally)
        self._all = StateTable(state, ALL_YIELDS, YieldTally)  # one record: all hosts together
        self.recent = msgspec.msgpack.decode(
            state.get(RECENT_YIELD) or _encode(RecentYield()), type=RecentYield
        )

    @property
    def overall(self) -> YieldTally:
        """The tally of all hosts together."""
        return self._all[""]

    def learn(self, host: str, downloaded: int, text: int) -> None:
        """Count a page of a host; `text` is the bytes of text that it added to the corpus."""
        self.hosts.touch(host).count(downloaded, text)
        self.domains.touch(domain_of(host)).count(downloaded, text)
        self._all.touch("").count(downloaded, text)
        self.recent.count(downloaded, text)

    def promise(self, host: str) -> float:
        """Return the expected yield of a host, shrunk towards its domain, and that towards all hosts."""
        overall = self.overall.expected(PRIOR_YIELD)
        return self.hosts[host].expected(self.domains[domain_of(host)].expected(overall))

    def expected(self, urls: Iterable[str]) -> list[float]:
        """Return the expected yield of the host of each URL."""
        promises: dict[str, float] = {}
        weights = []
        for host in map(host_of, urls):
            if host not in promises:
                promises[host] = self.promise(host)
            weights.append(promises[host])
        return weights

    def best_and_worst(self, count: int) -> tuple[RankedHosts, RankedHosts]:
        """Return the hosts with the highest yields, and of all others the hosts with the lowest, largest first.

        Only hosts in memory with enough pages are ranked. No host is in both lists.
        """
        best = heapq.nlargest(count, self._well_known(), key=lambda item: item[1].rate)
        names = {name for name, _ in best}
        others = (item for item in self._well_known() if item[0] not in names)
        return best, heapq.nsmallest(count, others, key=lambda item: (item[1].rate, -item[1].bytes))

    def _well_known(self) -> Iterator[tuple[str, YieldTally]]:
        some = islice(self.hosts.in_memory(), MAX_RANKED_HOSTS)
        return ((name, tally) for name, tally in some if tally.pages >= MIN_RANKED_PAGES)

    def flush(self) -> None:
        """Add the tallies that changed to the next commit of the state."""
        for table in (self.hosts, self.domains, self._all):
            table.flush()
        self._state.put(RECENT_YIELD, _encode(self.recent))


def remove(
    state: KeyValueState, covers_host: Callable[[str], bool], covers_domain: Callable[[str], bool]
) -> None:
    """Remove the yields of covered hosts and domains; this joins the next commit."""
    remove_names(state, HOST_YIELDS, covers_host)
    remove_names(state, DOMAIN_YIELDS, covers_domain)


def relaxations(state: KeyValueState) -> int:
    """Return how many times the threshold of a crawl was lowered."""
    return msgspec.msgpack.decode(state.get(CLOSING_RELAXATIONS) or _encode(0), type=int)


def store_relaxations(state: KeyValueState, times: int) -> None:
    """Note that the threshold was lowered so many times, with the next commit of the state."""
    state.put(CLOSING_RELAXATIONS, _encode(times))


class DomainClosing:
    """The rule that closes hosts: a spent budget of host or domain, or a poor yield of the domain."""

    def __init__(self, policy: PolicySettings, budget: BudgetSettings, relaxations: int = 0) -> None:
        """Close by the given settings; `relaxations` counts how many times the threshold was lowered."""
        self._budget = budget
        self._share = THRESHOLD_SHARES[relaxations]
        self._policy = policy
        closes = policy.name in ("learned", "spiderling") and policy.threshold
        self._threshold = compile_threshold(policy.threshold) if closes else None

    def reason(self, host: YieldTally, domain: YieldTally, under_way: int = 0) -> str:
        """Return why a host is closed, or ""; `under_way` pages count for page budgets only."""
        budget = self._budget
        # Written out, since every visit asks twice.
        if 0 < budget.host_pages <= host.pages + under_way or 0 < budget.host_bytes <= host.bytes:
            return "host budget"
        if 0 < budget.domain_pages <= domain.pages + under_way or 0 < budget.domain_bytes <= domain.bytes:
            return "domain budget"
        if (
            self._threshold
            and domain.pages >= self._policy.min_pages
            and domain.bytes >= self._policy.min_bytes
            and domain.rate < self._relaxed_threshold(self._threshold(domain.pages))
        ):
            return LOW_YIELD
        return ""

    def _relaxed_threshold(self, threshold: float) -> float:
        return min(threshold, max(self._policy.floor, threshold * self._share))


_OPERATORS: dict[type, Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "log10": math.log10,
    "log": math.log,
    "sqrt": math.sqrt,
    "min": min,
    "max": max,
}


_FAULTS = (ValueError, TypeError, ArithmeticError, RecursionError, MemoryError)
# Numbers of pages for which a threshold must have a value.
_TRIED = (*range(1, 1_001), *(10**power for power in range(4, 13)))


def compile_threshold(expression: str) -> Callable[[int], float]:
    """Compile an expression of n, the pages of a domain, into the threshold t(n).

    UsageError if it has no value for a number of pages that domains have. For other numbers without a value the
    threshold is minus infinity, which closes nothing.

    >>> round(compile_threshold("0.01 * (log10(n) - 1)")(1000), 3)
    0.02
    """
    known = f"it may use n, numbers, + - * /, brackets and {', '.join(_FUNCTIONS)}"
    pages = ""
    try:
        tree = ast.parse(expression, mode="eval").body
        for n in _TRIED:
            pages = f" for n = {n}"
            float(_evaluate(tree, n))
    except (SyntaxError, *_FAULTS):
        raise UsageError(f"policy.threshold = {expression!r} cannot be computed{pages}; {known}") from None

    # Every visit compares the domain's yield with it, and many domains have the same number of pages.
    @lru_cache(maxsize=MAX_CACHED_THRESHOLDS)
    def threshold(n: int) -> float:
        try:
            return float(_evaluate(tree, n))
        except _FAULTS:
            return -math.inf

    return threshold


def _evaluate(node: ast.AST, n: int) -> float:
    """Evaluate arithmetic of n and known functions; nothing in corpus.toml is run as Python."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id="n"):
            return n
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_evaluate(left, n), _evaluate(right, n))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, n)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            values: list[Any] = [_evaluate(argument, n) for argument in arguments]
            return _FUNCTIONS[name](*values)
    raise ValueError(ast.dump(node))
