"""robots.txt by RFC 9309: parsed as leniently as by the large search engines, matched in linear time.

Where the RFC and common practice differ on percent-encoding, the stricter reading is taken: a Disallow
matches in either form, an Allow only as it was written.
"""

from __future__ import annotations

import codecs
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import isnan
from typing import TypeAlias
from urllib.parse import quote

from msgspec import Struct

from thresher.urls import canonical

MAX_ROBOTS_BYTES = 500 * 1024  # RFC 9309 asks for at least this much; the rest is ignored
MAX_LINE_BYTES = 16_663  # eight times the longest URL of old browsers; the rest of a line is ignored
MAX_SITEMAPS = 500
MAX_OPT_OUTS = 50
MAX_CRAWL_DELAY = 1e9  # seconds; longer ones are cut, so that sums of delays stay finite

# Piecewise search may cost (characters of the path) x (longest piece) for each rule. Files designed to be this
# expensive are matched by sets of positions instead, which cost the same for every path.
_PIECEWISE_LIMIT = 5_000_000

_NAMES = {
    b"user-agent": "agent",
    b"useragent": "agent",
    b"user agent": "agent",
    b"allow": "allow",
    b"disallow": "disallow",
    b"dissallow": "disallow",
    b"dissalow": "disallow",
    b"disalow": "disallow",
    b"diasllow": "disallow",
    b"disallaw": "disallow",
    b"crawl-delay": "delay",
    b"crawldelay": "delay",
    b"sitemap": "sitemap",
    b"site-map": "sitemap",
    b"content-signal": "content-signal",
    b"content-usage": "content-usage",
}
# A known name, any text up to a colon, and the value; without a colon, white space and exactly one word. The
# possessive quantifiers `*+` and `++` exclude backtracking.
_LINE = re.compile(
    rb"^[ \t\v\f]*+"
    rb"(user(?:-?|[ ](?=[^#\n]*:))agent|allow|disallow|dissallow|dissalow|disalow|diasllow|disallaw"
    rb"|crawl-?delay|site-?map|content-signal|content-usage)"
    rb"(?:[^:#\n]*+:([^#\n]*+)|[^\s:#]*+[ \t]++([^\s#]++)[ \t\v\f]*+(?:#|$))",
    re.IGNORECASE | re.MULTILINE,
)
_LONG_LINE = re.compile(rb"^(.{%d}).+" % MAX_LINE_BYTES, re.MULTILINE)
_PRODUCT_TOKEN = re.compile(rb"[a-zA-Z_-]*")
_EVERY_AGENT = re.compile(rb"\*(?:\s|$)")
_UTF8_BOM = re.compile(rb"\xef(?:\xbb\xbf?)?")  # its beginning alone is stripped too
_ESCAPE = re.compile(rb"%[0-9a-fA-F]{2}|[\x80-\xff]")
_UNRESERVED = re.compile(r"%(?:2D|2E|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_PATH = re.compile(r"(?:[^/?;#]*://|//)?[^/?;#]*([^#]*)")
_INDEX_PAGE = re.compile(r"(.*/)index\.htm[^/]*", re.DOTALL)
# Parts of the names of uses in Content-Signal and Content-Usage.
_AI_WORDS = frozenset({"ai", "genai", "bots"})

_Lines: TypeAlias = defaultdict[str, list[bytes]]  # name of a line -> values, of all groups for one agent


class _Wildcard(Struct, frozen=True, gc=False):
    """A pattern with a `*` somewhere before its end."""

    weight: int
    pattern: str  # without the `$` that anchors it
    head: str
    middle: tuple[str, ...]
    tail: str | None  # the end of an anchored path; None: the pattern is not anchored

    def found_in(self, path: str) -> bool:
        """Return whether the pattern matches; each piece is matched at its first occurrence."""
        if not path.startswith(self.head):
            return False
        at = len(self.head)
        for piece in self.middle:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return self.tail is None or (len(path) - len(self.tail) >= at and path.endswith(self.tail))


class _Positions:
    """Matches patterns against one path by sets of positions, each set the bits of one integer."""

    def __init__(self, path: str) -> None:
        self._end = len(path)
        self._where: dict[str, int] = {}
        for at, char in enumerate(path):
            self._where[char] = self._where.get(char, 0) | 1 << at

    def match(self, rule: _Wildcard) -> bool:
        """Return the same as `rule.found_in(path)`."""
        reached = 1
        for char in rule.pattern:
            if char == "*":
                reached = -(reached & -reached)  # the first position and every later one
            else:
                reached = (reached & self._where.get(char, 0)) << 1
                if not reached:
                    return False
        return rule.tail is None or bool(reached >> self._end & 1)


class _Rules(Struct, frozen=True):
    """All patterns of one kind; the weight of a pattern is its length."""

    prefixes: dict[str, int]
    lengths: tuple[int, ...]  # of the prefixes, rising
    exact: dict[str, int]
    wildcards: tuple[_Wildcard, ...]  # falling by weight
    cost: int  # of piecewise search, for each character of a path

    def longest(self, path: str) -> int:
        """Return the weight of the longest pattern that matches the path, or 0."""
        best = self.exact.get(path, 0)
        size = len(path)
        for length in self.lengths:
            if length > size:
                break
            best = max(best, self.prefixes.get(path[:length], 0))
        if not self.wildcards:
            return best
        hostile = self.cost * size > _PIECEWISE_LIMIT
        match = _Positions(path).match if hostile else None
        for rule in self.wildcards:
            if rule.weight <= best:
                break
            if match(rule) if match else rule.found_in(path):
                return rule.weight
        return best


class Robots(Struct, frozen=True):
    """The rules of a robots.txt for one agent."""

    allow: _Rules
    disallow: _Rules
    crawl_delay: float | None = None  # seconds
    sitemaps: tuple[str, ...] = ()  # canonical URLs
    opt_outs: tuple[str, ...] = ()  # "content-signal: ai-train=no"

    def allows(self, url: str) -> bool:
        r"""Return whether the agent may fetch a URL of this host; robots.txt itself is always allowed.

        >>> parse(b"user-agent: *\ndisallow: /a").allows("http://a.cz/ab")
        False
        """
        path = _path(url)
        against = self.disallow.longest(_decoded(path))
        return against == 0 or path == "/robots.txt" or self.allow.longest(path) >= against


def parse(body: bytes, agent: str = "Thresher") -> Robots:
    """Parse the rules, delay, sitemaps and opt-outs for an agent; any bytes are valid."""
    preamble: _Lines = defaultdict(list)
    ours: _Lines = defaultdict(list)
    everyone: _Lines = defaultdict(list)
    others: _Lines = defaultdict(list)
    token = agent.lower().encode("utf-8", "surrogatepass")
    addressed = preamble
    named = in_rules = False
    for name, value in _lines(body):
        if name == "agent":
            if in_rules:
                in_rules, addressed = False, others
            if _PRODUCT_TOKEN.match(value)[0].lower() == token:  # type: ignore[index]  # always matches
                named, addressed = True, ours
            elif addressed is not ours:
                addressed = everyone if _EVERY_AGENT.match(value) or addressed is everyone else others
        elif name == "sitemap":
            preamble[name].append(value)  # valid for all agents, in any group
        else:
            addressed[name].append(value)
            # Search engines let only rules end the list of agents that a group is for.
            in_rules = in_rules or name in ("allow", "disallow")
    group = ours if named else everyone
    return Robots(
        allow=_rules(_allowed(set(group["allow"]))),
        disallow=_rules(_decoded(_escaped(value)) for value in set(group["disallow"])),
        # Of several delays the longest counts: never faster than asked.
        crawl_delay=max((d for d in map(_delay, group["delay"]) if d is not None), default=None),
        sitemaps=_sitemaps(preamble["sitemap"]),
        opt_outs=_opt_outs(preamble, ours, everyone),
    )


def _lines(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the known lines as pairs of name and value."""
    text = _text(body[:MAX_ROBOTS_BYTES]).replace(b"\r", b"\n")
    if len(body) > MAX_ROBOTS_BYTES:  # half a line could mean something else
        text = text[: text.rfind(b"\n") + 1] or text
    if len(text) > MAX_LINE_BYTES:
        text = _LONG_LINE.sub(rb"\1", text)
    for name, value, word in _LINE.findall(text):
        yield _NAMES[name.lower()], (value or word).strip()


def _text(body: bytes) -> bytes:
    """Return the body in UTF-8 or an ASCII superset, without byte order mark and NULs."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        body = body.decode("utf-16", "replace").encode("utf-8", "replace")
    elif body.startswith(b"\xef"):
        body = _UTF8_BOM.sub(b"", body, count=1)
    return body.replace(b"\0", b"")  # noise, or UTF-16 without a byte order mark


def _allowed(values: Iterable[bytes]) -> Iterator[str]:
    for value in values:
        pattern = _escaped(value)
        yield pattern
        index_page = _INDEX_PAGE.fullmatch(pattern) if "/index.htm" in pattern else None
        if index_page:  # an allowed index page allows its directory
            yield index_page[1] + "$"


def _rules(patterns: Iterable[str]) -> _Rules:
    prefixes: dict[str, int] = {}
    exact: dict[str, int] = {}
    wildcards: list[_Wildcard] = []
    for pattern in set(patterns) - {""}:
        weight = len(pattern)
        anchored = pattern.endswith("$")
        rest = pattern[:-1] if anchored else pattern.rstrip("*")
        if "*" in rest:
            wildcards.append(_wildcard(rest, weight, anchored))
        elif anchored:
            exact[rest] = weight
        else:
            prefixes[rest] = max(weight, prefixes.get(rest, 0))
    return _Rules(
        prefixes=prefixes,
        lengths=tuple(sorted(set(map(len, prefixes)))),
        exact=exact,
        wildcards=tuple(sorted(wildcards, key=lambda rule: -rule.weight)),
        cost=sum(max(map(len, rule.middle), default=0) for rule in wildcards),
    )


def _wildcard(pattern: str, weight: int, anchored: bool) -> _Wildcard:
    head, *others = pattern.split("*")
    tail = others.pop() if anchored else None
    return _Wildcard(weight, pattern, head, tuple(filter(None, others)), tail)


def _path(url: str) -> str:
    """Return path and query of a URL, from the first slash, with percent-encodings in upper case."""
    path: str = _PATH.match(url)[1]  # type: ignore[index]  # every string matches
    if not path.startswith("/"):
        path = "/" + path
    return _PERCENT.sub(lambda m: m[0].upper(), path) if "%" in path else path


def _escaped(value: bytes) -> str:
    """Return a pattern in ASCII: other bytes percent-encoded, percent-encodings in upper case."""
    if b"%" in value or not value.isascii():
        value = _ESCAPE.sub(lambda m: m[0].upper() if len(m[0]) == 3 else b"%%%02X" % ord(m[0]), value)
    return value.decode("ascii")


def _decoded(path: str) -> str:
    """Return the form that RFC 9309 compares: percent-encoded only where necessary."""
    if not path.isascii():
        path = quote(path, safe="".join(map(chr, range(128))), errors="replace")
    return _UNRESERVED.sub(lambda m: chr(int(m[0][1:], 16)), path) if "%" in path else path


def _delay(value: bytes) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return None if isnan(seconds) or seconds < 0 else min(seconds, MAX_CRAWL_DELAY)


def _sitemaps(lines: list[bytes]) -> tuple[str, ...]:
    urls = (canonical(line.decode("utf-8", "replace")) for line in lines[:MAX_SITEMAPS])
    return tuple(dict.fromkeys(url for url in urls if url))


def _opt_outs(*groups: _Lines) -> tuple[str, ...]:
    """Return the uses by models that are forbidden, each with its path if it names one."""
    found: dict[str, None] = {}
    for name in ("content-signal", "content-usage"):
        for line in [line for group in groups for line in group[name]][:MAX_OPT_OUTS]:
            text = line.decode("utf-8", "replace")
            scope, space, uses = text.partition(" ") if text.startswith("/") else ("", "", text)
            for use in uses.lower().split(",")[:MAX_OPT_OUTS]:
                label, _, answer = (part.strip(' \t"') for part in use.partition("="))
                if answer in ("n", "no") and not _AI_WORDS.isdisjoint(label.split("-")):
                    found[f"{name}: {scope}{space}{label}={answer}"] = None
    return tuple(found)[:MAX_OPT_OUTS]


ALLOW_ALL = parse(b"")
DISALLOW_ALL = parse(b"user-agent: *\ndisallow: /")
