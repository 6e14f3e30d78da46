"""Requests of a page to robots (noindex, nofollow, opt-outs from text mining), and its licence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple, TypeAlias

AGENT = "thresher"  # the name by which a page may speak to us alone

_WITH_VALUE = frozenset(["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"])
_OPT_OUTS = ("noai", "noimageai")
_UNAVAILABLE = re.compile(r"unavailable_after\s*:\s*([^<>]{6,60})", re.IGNORECASE)
_LICENCE = re.compile(r"https?://(?:www\.)?creativecommons\.org/(?:licenses|publicdomain)/", re.IGNORECASE)


Headers: TypeAlias = Mapping[str, Sequence[str]]  # by lower-cased name


class PageDirectives(NamedTuple):
    """Requests in the headers and the markup of a page."""

    noindex: bool = False
    nofollow: bool = False
    opt_out: tuple[str, ...] = ()


def directives(headers: Headers, metas: Sequence[tuple[str, str]], now: float) -> PageDirectives:
    """Return the requests to robots in a reply's headers and the page's <meta> elements, at a given time."""
    ours = [
        *headers.get("x-robots-tag", ()),
        *(content for name, content in metas if name in ("robots", AGENT)),
    ]
    asked = {directive for value in ours for directive in _applying(value)}
    expired = any(_is_past(value, now) for value in ours)
    opt_out = [word for word in _OPT_OUTS if word in asked]
    reserved = [*headers.get("tdm-reservation", ()), *(c for name, c in metas if name == "tdm-reservation")]
    if any(value.strip() == "1" for value in reserved):
        opt_out.append("tdm-reservation")
    for name in ("content-signal", "content-usage"):
        opt_out += [f"{name}: {signal}" for value in headers.get(name, ()) for signal in _refusals(value)]
    return PageDirectives(
        noindex=expired or not asked.isdisjoint(("noindex", "none")),
        nofollow=not asked.isdisjoint(("nofollow", "none")),
        opt_out=tuple(dict.fromkeys(opt_out)),
    )


def is_licence(url: str) -> bool:
    """Return True if a canonical URL is that of a known licence."""
    return "creativecommons" in url and _LICENCE.match(url) is not None  # nearly all links do without a match


def _applying(value: str) -> Iterator[str]:
    """Yield the directives of one header or <meta> that are addressed to this crawler or to all."""
    for_us = True
    for item in value.lower().split(","):
        name, colon, rest = (part.strip() for part in item.partition(":"))
        if colon and name not in _WITH_VALUE and " " not in name:
            for_us = name in (AGENT, "*")  # an agent's name holds until the next one
            name = rest
        if for_us:
            yield name


def _is_past(value: str, now: float) -> bool:
    """Return True if `unavailable_after` names a time before now."""
    found = _UNAVAILABLE.search(value)
    if not found:
        return False
    moment = _moment(found[1].strip())
    return moment is not None and moment.timestamp() < now


def _moment(text: str) -> datetime | None:
    """Parse a time in a notation of HTTP headers: RFC 822, RFC 850 or ISO 8601."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _refusals(value: str) -> Iterator[str]:
    """Yield the parts of a usage preference that refuse a use: `ai-train=no`, `train-ai=n`."""
    for part in re.split(r"[,;\s]+", value.lower()):
        use, _, answer = part.partition("=")
        if use and answer in ("no", "n"):
            yield part[:60]
