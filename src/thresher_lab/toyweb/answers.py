"""Answers of the server of a toy web: a pure function of web, URL and number of the attempt."""

from __future__ import annotations

import gzip
from functools import lru_cache

import brotli
import msgspec
import zstandard
from isal import igzip
from msgspec import Struct

from thresher_lab.toyweb.content import charset, directives
from thresher_lab.toyweb.dice import draws, roll
from thresher_lab.toyweb.files import compose_file
from thresher_lab.toyweb.pages import ToyPage, compose
from thresher_lab.toyweb.plan import MOVED_ROBOTS, PlannedSpot, article, locate, redirect_target
from thresher_lab.toyweb.web import ToyWeb

ALL_ENCODINGS = "gzip, br, zstd"
_STATUS_OF_FATE = {"lost": 404, "gone": 410, "error": 500}
_FILLER_BYTES = 1 << 18


class ToyAnswer(Struct, frozen=True):
    """An answer as it goes over the wire, without its framing."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    delay: float = 0.0  # seconds before the first byte
    drip: float = 0.0  # seconds over which the body is spread
    chunked: bool = False
    flaky: bool = False  # The answer to the next attempt may differ.


def answer(web: ToyWeb, url: str, *, accept_encoding: str = ALL_ENCODINGS, attempt: int = 0) -> ToyAnswer:
    """Return the answer to a GET of a URL at an attempt, the first being 0.

    Only answers marked `flaky` depend on the attempt, so a server counts the attempts of these alone.
    """
    spot = locate(web, url)
    if spot is None:
        return _plain(502, "no such host")
    if spot.kind == "robots":
        return _robots(web, spot, accept_encoding)
    if spot.kind in ("sitemap index", "sitemap", "feed"):
        return _file(web, spot, accept_encoding)
    if spot.kind == "article":
        return _article(web, spot, accept_encoding, attempt)
    return _page(web, spot, accept_encoding)


def page_status(spot: PlannedSpot) -> int:
    """Return the status of a spot that is shown as a page."""
    return 404 if spot.kind == "missing" and not spot.home.soft_404 else 200


def _article(web: ToyWeb, spot: PlannedSpot, accept_encoding: str, attempt: int) -> ToyAnswer:
    home = spot.home
    page = article(web, home.number, spot.number)
    if page.fate in ("redirect", "chain", "loop"):
        status, location = redirect_target(web, home, page, spot.hop)
        return _plain(status, "moved", ("Location", location))
    if page.fate in _STATUS_OF_FATE:
        return _plain(_STATUS_OF_FATE[page.fate], page.fate)
    if page.fate == "flaky" and attempt < web.flaky_attempts:
        status = 503 if roll(web.seed, "flaky", home.number, page.number) % 3 else 429
        return _plain(status, "later", ("Retry-After", str(web.retry_after)), flaky=True)
    if page.fate == "file":
        noise = draws(roll(web.seed, "file", home.number, page.number), 512).tobytes()
        return ToyAnswer(200, [("Content-Type", "application/pdf")], b"%PDF-1.4\n" + noise + b"\n%%EOF\n")
    shown = _page(web, spot, accept_encoding)
    asks = directives(web, home, page)
    if asks.words and asks.in_header:
        shown.headers.append(("X-Robots-Tag", asks.words))
    if page.fate in ("slow", "drip"):
        delay, drip = (web.slow_seconds, 0.0) if page.fate == "slow" else (0.0, web.drip_seconds)
        return msgspec.structs.replace(shown, delay=delay, drip=drip)
    return shown


def _page(web: ToyWeb, spot: PlannedSpot, accept_encoding: str) -> ToyAnswer:
    document = compose(web, spot)
    declared = charset(web, spot, document.language)
    content_type = f"text/html; charset={declared.header}" if declared.header else "text/html"
    html = _html(document, declared.codec, declared.meta)
    body, coding = _encoded(html, spot.home.encoding, accept_encoding)
    headers = [("Content-Type", content_type), *coding]
    return ToyAnswer(page_status(spot), headers, body, chunked=spot.home.chunked)


def _robots(web: ToyWeb, spot: PlannedSpot, accept_encoding: str) -> ToyAnswer:
    if spot.home.robots == "missing":
        return _plain(404, "none")
    if spot.home.robots == "broken":
        return _plain(500, "broken")
    if spot.home.robots == "moved" and spot.path != MOVED_ROBOTS:
        return _plain(301, "moved", ("Location", MOVED_ROBOTS))
    return _file(web, spot, accept_encoding)


def _file(web: ToyWeb, spot: PlannedSpot, accept_encoding: str) -> ToyAnswer:
    file = compose_file(web, spot)
    text = file.text.encode()
    if spot.kind == "sitemap" and spot.home.sitemap == "gzip":
        return ToyAnswer(200, [("Content-Type", "application/gzip")], gzip.compress(text, mtime=0))
    body, coding = _encoded(text, spot.home.encoding, accept_encoding)
    return ToyAnswer(200, [("Content-Type", file.content_type), *coding], body, chunked=spot.home.chunked)


def _plain(status: int, text: str, *headers: tuple[str, str], flaky: bool = False) -> ToyAnswer:
    return ToyAnswer(status, [("Content-Type", "text/plain"), *headers], text.encode(), flaky=flaky)


def _html(document: ToyPage, codec: str, meta: str) -> bytes:
    """Return the page, filled up with style and script to its size."""
    declaration = f'<meta charset="{meta}">\n' if meta else ""
    top = f"<!DOCTYPE html>\n<html><head>\n{declaration}<title>{document.title}</title>\n{document.head}"
    head = top.encode(codec, "xmlcharrefreplace")
    body = document.body.encode(codec, "xmlcharrefreplace")
    room = document.size - len(head) - len(body)
    style = _filler(room // 3, ".c%d-%d { margin: %dpx; color: #%06x; }\n")
    script = _filler(room - room // 3, "w.q%d.push([%d, %d, 'k%06x']);\n")
    middle, end = b"</style></head>\n<body>\n", b"</script></body></html>\n"
    return b"".join([head, b"<style>\n", style, middle, body, b"\n<script>\n", script, end])


def _filler(size: int, line: str) -> bytes:
    """Return about `size` bytes of style or script."""
    pool = _pool(line)
    return pool[: pool.rfind(b"\n", 0, min(size, len(pool))) + 1] if size > 0 else b""


@lru_cache(maxsize=4)
def _pool(line: str) -> bytes:
    numbers = draws(7, 8_192).tolist()
    lines = [line % (bits % 97, bits >> 8 & 0xFF, bits >> 16 & 0x3F, bits >> 40) for bits in numbers]
    return "".join(lines).encode()[:_FILLER_BYTES]


def _encoded(body: bytes, coding: str, accepted: str) -> tuple[bytes, list[tuple[str, str]]]:
    """Return the body in the coding of the host if the client accepts it, otherwise as it is, and the header."""
    if coding == "identity" or not _accepts(accepted, coding):
        return body, []
    if coding == "gzip":
        body = igzip.compress(body, 1, mtime=0)
    elif coding == "br":
        body = brotli.compress(body, quality=1)
    else:
        body = zstandard.ZstdCompressor(level=1).compress(body)
    return body, [("Content-Encoding", coding)]


@lru_cache(maxsize=64)
def _accepts(accepted: str, coding: str) -> bool:
    for choice in accepted.lower().split(","):
        name, _, weight = choice.partition(";")
        if name.strip() in (coding, "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
