"""What is to be known of answers before there is a page: where a redirect leads, and a whole robots.txt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec.structs import replace

from thresher.crawl.fetch import Fetcher
from thresher.crawl.loop import REDIRECTS, ROBOTS_REDIRECTS
from thresher.crawl.robots import MAX_ROBOTS_BYTES
from thresher.page import Failure, Reply
from thresher.read.decode import unpack
from thresher.url import canonical


def received(answer: Reply | Failure) -> int:
    """Body bytes that an answer cost."""
    return len(answer.body) if isinstance(answer, Reply) else answer.bytes


def location(reply: Reply) -> str | None:
    """The canonical URL that a redirect leads to, or None; bytes that are UTF-8 are read as such."""
    value = reply.header("Location") or ""
    with suppress(UnicodeDecodeError):  # then its server meant the bytes as they are
        value = value.encode("latin-1").decode("utf-8")
    return canonical(value, reply.url)


async def fetch_robots(
    fetcher: Fetcher, url: str, pause: Callable[[str], Awaitable[None]]
) -> Reply | Failure:
    """robots.txt, unpacked, redirects followed; one that came only in part is as good as none.

    `pause` is awaited before each redirect is followed, with the URL that it leads to.
    """
    answer = await fetcher.fetch(url, max_body_bytes=MAX_ROBOTS_BYTES)
    for _ in range(ROBOTS_REDIRECTS):
        onward = location(answer) if isinstance(answer, Reply) and answer.status in REDIRECTS else None
        if onward is None:
            break
        await pause(onward)
        answer = await fetcher.fetch(onward, max_body_bytes=MAX_ROBOTS_BYTES)
    if isinstance(answer, Failure):
        return answer
    unpacked = unpack(answer.body, answer.header("Content-Encoding") or "", 16 * MAX_ROBOTS_BYTES)
    if unpacked.fault or answer.truncated in ("time", "disconnect"):
        return Failure(answer.url, unpacked.fault or "truncated", transient=True, elapsed=answer.elapsed)
    return replace(answer, body=unpacked.body)
