"""What a page asks of robots: not to index, not to follow, not to learn from it; and its licence."""

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


class Directives(NamedTuple):
    """What the headers and the markup of a page ask for."""

    noindex: bool = False
    nofollow: bool = False
    opt_out: tuple[str, ...] = ()


def directives(headers: Headers, metas: Sequence[tuple[str, str]], now: float) -> Directives:
    """Everything that a reply's headers and the page's <meta> elements ask of robots, at a given time."""
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
    return Directives(
        noindex=expired or not asked.isdisjoint(("noindex", "none")),
        nofollow=not asked.isdisjoint(("nofollow", "none")),
        opt_out=tuple(dict.fromkeys(opt_out)),
    )


def is_licence(url: str) -> bool:
    """Whether a link in canonical form leads to a licence that is known to be one."""
    return "creativecommons" in url and _LICENCE.match(url) is not None  # nearly all links do without a match


def _applying(value: str) -> Iterator[str]:
    """The directives of one header or <meta> that are meant for us or for everybody."""
    for_us = True
    for item in value.lower().split(","):
        name, colon, rest = (part.strip() for part in item.partition(":"))
        if colon and name not in _WITH_VALUE and " " not in name:
            for_us = name in (AGENT, "*")  # an agent's name holds until the next one
            name = rest
        if for_us:
            yield name


def _is_past(value: str, now: float) -> bool:
    """Whether `unavailable_after` names a time before now."""
    found = _UNAVAILABLE.search(value)
    if not found:
        return False
    moment = _moment(found[1].strip())
    return moment is not None and moment.timestamp() < now


def _moment(text: str) -> datetime | None:
    """A time as people write it in headers: RFC 822, RFC 850 or ISO 8601."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _refusals(value: str) -> Iterator[str]:
    """The parts of a usage preference that say no: `ai-train=no`, `train-ai=n`."""
    for part in re.split(r"[,;\s]+", value.lower()):
        use, _, answer = part.partition("=")
        if use and answer in ("no", "n"):
            yield part[:60]
