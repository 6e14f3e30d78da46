"""What hosts and domains gave: text per byte downloaded, live, and SpiderLing's rule that closes the poor ones."""

from __future__ import annotations

import ast
import heapq
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar

import msgspec
from msgspec import Struct, field

from thresher.config import Budget, ConfigError, Policy
from thresher.crawl.state import State, Table
from thresher.url import domain as domain_of
from thresher.url import host as host_of

LOOKED_AT = 10_000  # hosts, for the best and the worst: they are told once a second
WELL_KNOWN = 5  # pages after which a host's yield says something
WEIGHT = 30_000  # bytes after which what a host gave counts as much as what was thought of it before
AT_FIRST = 0.1  # the yield of a web of which nothing is known
LATELY = b"m/lately"
EASED = b"m/eased"  # how often the threshold of closing was lowered
# What is left of the threshold each time; in the end nothing is closed whose yield is above the floor.
SHARES = (1.0, 1 / 4, 1 / 16, 1 / 64, 0.0)
LOW_YIELD = "low yield"

_encode = msgspec.msgpack.Encoder().encode


class Tally(Struct, array_like=True):
    """What was downloaded from a host or a domain and what came of it."""

    pages: int = 0
    kept: int = 0
    bytes: int = 0
    text_bytes: int = 0

    @property
    def rate(self) -> float:
        """The yield (S1): bytes of text that entered the corpus per byte downloaded."""
        return self.text_bytes / self.bytes if self.bytes else 0.0

    def expected(self, before: float) -> float:
        """The yield to expect of what comes next, if that is what was thought beforehand."""
        return (self.text_bytes + WEIGHT * before) / (self.bytes + WEIGHT)

    def count(self, downloaded: int, text: int) -> None:
        self.pages += 1
        self.kept += text > 0
        self.bytes += downloaded
        self.text_bytes += text

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.pages + other.pages,
            self.kept + other.kept,
            self.bytes + other.bytes,
            self.text_bytes + other.text_bytes,
        )

    def since(self, before: Tally) -> Tally:
        """What was added after it was like that."""
        return Tally(
            self.pages - before.pages,
            self.kept - before.kept,
            self.bytes - before.bytes,
            self.text_bytes - before.text_bytes,
        )


class Lately(Struct, array_like=True):
    """What the last pages gave, in portions, so that a window over them is never far from its length."""

    PORTION: ClassVar[int] = 20  # pages
    PORTIONS: ClassVar[int] = 51  # so that there are 1,000 pages whatever the last one has

    pages: int = 0  # of the whole crawl, as far as they had a body: an answer without one says nothing
    portions: list[Tally] = field(default_factory=list)

    def count(self, downloaded: int, text: int) -> None:
        if not downloaded:
            return
        if not self.portions or self.portions[-1].pages >= self.PORTION:
            self.portions.append(Tally())
            del self.portions[: -self.PORTIONS]
        self.portions[-1].count(downloaded, text)
        self.pages += 1

    def last(self, pages: int) -> Tally:
        """The last so many pages together, or a few more; fewer where there are no more."""
        window = Tally()
        for portion in reversed(self.portions):
            if window.pages >= pages:
                break
            window = window + portion
        return window


class Yields:
    """Tallies of every host and every registered domain, and of what came last."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.hosts = Table(state, b"yh/", Tally)
        self.domains = Table(state, b"yd/", Tally)
        self._all = Table(state, b"ya/", Tally)  # of one record: all hosts together
        self.lately = msgspec.msgpack.decode(state.get(LATELY) or _encode(Lately()), type=Lately)

    @property
    def overall(self) -> Tally:
        """All hosts together."""
        return self._all[""]

    def learn(self, host: str, downloaded: int, text: int) -> None:
        """A page of that host was downloaded and gave that much new text (0: none)."""
        self.hosts.touch(host).count(downloaded, text)
        self.domains.touch(domain_of(host)).count(downloaded, text)
        self._all.touch("").count(downloaded, text)
        self.lately.count(downloaded, text)

    def promise(self, host: str) -> float:
        """The yield to expect of a host: of one hardly known, that of its domain, or else of all hosts."""
        overall = self.overall.expected(AT_FIRST)
        return self.hosts[host].expected(self.domains[domain_of(host)].expected(overall))

    def expected(self, urls: Iterable[str]) -> list[float]:
        """The weight of each URL: what its host promises."""
        promises: dict[str, float] = {}
        weights = []
        for host in map(host_of, urls):
            if host not in promises:
                promises[host] = self.promise(host)
            weights.append(promises[host])
        return weights

    def best(self, count: int) -> list[tuple[str, Tally]]:
        """Hosts with the highest yields, of those known well enough to tell and in memory."""
        return heapq.nlargest(count, self._well_known(), key=lambda item: item[1].rate)

    def worst(self, count: int) -> list[tuple[str, Tally]]:
        """Hosts that took the most bytes for the least text."""
        return heapq.nsmallest(count, self._well_known(), key=lambda item: (item[1].rate, -item[1].bytes))

    def _well_known(self) -> Iterator[tuple[str, Tally]]:
        some = islice(self.hosts.in_memory(), LOOKED_AT)
        return ((name, tally) for name, tally in some if tally.pages >= WELL_KNOWN)

    def flush(self) -> None:
        for table in (self.hosts, self.domains, self._all):
            table.flush()
        self._state.put(LATELY, _encode(self.lately))


def eased(state: State) -> int:
    """How often the threshold of closing was lowered in a crawl."""
    return msgspec.msgpack.decode(state.get(EASED) or _encode(0), type=int)


class Closing:
    """When to download nothing more from a host: its budget is spent, or its domain's yield is too poor."""

    def __init__(self, policy: Policy, budget: Budget, eased: int = 0) -> None:
        """`eased`: how often the threshold was lowered, each time to a share of it, and never below the floor."""
        self._budget = budget
        self._share = SHARES[eased]
        self._policy = policy
        closes = policy.name in ("learned", "spiderling") and policy.threshold
        self._threshold = compile_threshold(policy.threshold) if closes else None

    def reason(self, host: Tally, domain: Tally, under_way: int = 0) -> str:
        """Why the host is closed, or ""; pages under way count as pages, but nothing is known of their yield."""
        budget = self._budget
        if _spent(host.pages + under_way, budget.host_pages) or _spent(host.bytes, budget.host_bytes):
            return "host budget"
        if _spent(domain.pages + under_way, budget.domain_pages) or _spent(domain.bytes, budget.domain_bytes):
            return "domain budget"
        if (
            self._threshold
            and domain.pages >= self._policy.min_pages
            and domain.bytes >= self._policy.min_bytes
            and domain.rate < self._eased(self._threshold(domain.pages))
        ):
            return LOW_YIELD
        return ""

    def _eased(self, threshold: float) -> float:
        return min(threshold, max(self._policy.floor, threshold * self._share))


def _spent(amount: int, budget: int) -> bool:
    return 0 < budget <= amount


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
_TRIED = (
    *range(1, 1_001),
    *(10**power for power in range(4, 13)),
)  # pages for which a threshold must be known


def compile_threshold(expression: str) -> Callable[[int], float]:
    """The threshold t(n) for n pages, from an expression of n (S2); none where it cannot be computed.

    An expression that fails for some number of pages that domains have is refused.

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
        raise ConfigError(f"policy.threshold = {expression!r} cannot be computed{pages}; {known}") from None

    def threshold(n: int) -> float:
        try:
            return float(_evaluate(tree, n))
        except _FAULTS:  # a rule that says nothing about n pages closes no domain with as many
            return -math.inf

    return threshold


def _evaluate(node: ast.AST, n: int) -> float:
    """Only arithmetic: nothing in corpus.toml is ever run as Python."""
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
