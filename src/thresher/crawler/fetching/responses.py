"""Properties of replies that decide about the next request: statuses, cost, and the target of a redirect."""

from __future__ import annotations

from contextlib import suppress

from thresher.crawler.manners.politeness import BUSY
from thresher.records import Failure, Reply
from thresher.urls import canonical

REDIRECTS = (301, 302, 303, 307, 308)
PASSING = (408, 425, 500, 502, 504, *BUSY)  # statuses that another try may change


def received(answer: Reply | Failure) -> int:
    """Return the body bytes that an answer cost."""
    return len(answer.body) if isinstance(answer, Reply) else answer.bytes


def location(reply: Reply) -> str | None:
    """Return the canonical URL that a redirect leads to, None if it names none; UTF-8 in the header is decoded."""
    value = reply.header("Location") or ""
    with suppress(UnicodeDecodeError):  # then the server meant the bytes as they are
        value = value.encode("latin-1").decode("utf-8")
    return canonical(value, reply.url)


def may_pass(answer: Reply | Failure) -> bool:
    """Return whether another try may bring more than this answer."""
    if isinstance(answer, Failure):
        return answer.transient
    return answer.status in PASSING or answer.truncated == "disconnect"
