"""What is to be known of hosts and answers before there is a page: when, where a redirect leads, robots.txt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec.structs import replace

from thresher.crawl.fetch import Fetcher
from thresher.crawl.politeness import BUSY
from thresher.crawl.resolve import Resolver
from thresher.crawl.robots import MAX_ROBOTS_BYTES
from thresher.page import Failure, Reply
from thresher.read.decode import unpack
from thresher.url import canonical

REDIRECTS = (301, 302, 303, 307, 308)
ROBOTS_REDIRECTS = 5
PASSING = (408, 425, 500, 502, 504, *BUSY)  # statuses worth another try


def received(answer: Reply | Failure) -> int:
    """Body bytes that an answer cost."""
    return len(answer.body) if isinstance(answer, Reply) else answer.bytes


def location(reply: Reply) -> str | None:
    """The canonical URL that a redirect leads to, or None; bytes that are UTF-8 are read as such."""
    value = reply.header("Location") or ""
    with suppress(UnicodeDecodeError):  # then its server meant the bytes as they are
        value = value.encode("latin-1").decode("utf-8")
    return canonical(value, reply.url)


async def address_of(resolver: Resolver, host: str) -> str:
    """The address that a request to a host goes to, which other hosts may share (S6); "" where fetch will tell."""
    addresses = await resolver.resolve(host.partition(":")[0])
    return addresses[0] if isinstance(addresses, tuple) else ""


async def fetch_robots(
    fetcher: Fetcher, url: str, pause: Callable[[str], Awaitable[None]]
) -> tuple[Reply | Failure, int]:
    """robots.txt, unpacked, redirects followed, and the bytes that all replies cost.

    One that came only in part is as good as none. `pause` is awaited before each redirect is followed, with the URL
    that it leads to.
    """
    answer = await fetcher.fetch(url, max_body_bytes=MAX_ROBOTS_BYTES)
    spent = 0
    for _ in range(ROBOTS_REDIRECTS):
        onward = location(answer) if isinstance(answer, Reply) and answer.status in REDIRECTS else None
        if onward is None:
            break
        spent += received(answer)
        await pause(onward)
        answer = await fetcher.fetch(onward, max_body_bytes=MAX_ROBOTS_BYTES)
    if isinstance(answer, Failure):
        return answer, spent
    spent += received(answer)
    unpacked = unpack(answer.body, answer.header("Content-Encoding") or "", 16 * MAX_ROBOTS_BYTES)
    if unpacked.fault or answer.truncated in ("time", "disconnect"):
        fault = unpacked.fault or "truncated"
        return Failure(answer.url, fault, transient=True, elapsed=answer.elapsed), spent
    return replace(answer, body=unpacked.body), spent
