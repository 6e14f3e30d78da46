"""The toy web that its own tests walk, and its answers as a client sees them."""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape

from thresher_lab.toyweb import ToyAnswer, ToyWeb, Truth, answer, seeds

WEB = ToyWeb(slow_seconds=0.05, drip_seconds=0.1)
Walk = dict[str, Truth]


def all_seeds(web: ToyWeb) -> list[str]:
    """Return the seeds of all languages."""
    return [url for urls in seeds(web).values() for url in urls]


@lru_cache(maxsize=10_000)
def settled(web: ToyWeb, url: str, accept_encoding: str) -> ToyAnswer:
    """Return the answer to a URL once a flaky server has settled."""
    return answer(web, url, accept_encoding=accept_encoding, attempt=web.flaky_attempts)


def plain_body(web: ToyWeb, url: str) -> bytes:
    """Return the body of an answer without a content coding."""
    return settled(web, url, "").body


def headers(web: ToyWeb, url: str) -> dict[str, str]:
    """Return the headers of an answer to a client that takes all codings."""
    return dict(settled(web, url, "gzip, br, zstd").headers)


def words_of(html: str) -> str:
    """Return the text between the tags of a page."""
    return unescape(re.sub(r"<[^>]*>", "", html))


def first(walked: Walk, kind: str) -> str:
    """Return the first URL of a kind."""
    return next(url for url, found in walked.items() if found.kind == kind)
