"""The links of a page: canonical, one for each URL, with the score of the block they stand in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from thresher.page import Link
from thresher.read.directives import is_licence
from thresher.read.html import HIDDEN, UNPLACED, Anchor, Markup
from thresher.read.text import one_line
from thresher.url import canonical

MAX_ANCHOR = 200  # characters of a link's text that are kept
TEXT = 0.5  # blocks that score below this are text
UNKNOWN = 0.5  # the score of a link that stands in no block

_REFRESH = re.compile(r"\s*[\d.]*+[;,\s]+(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(\S+))", re.IGNORECASE)


def links(markup: Markup, page_url: str, scores: Sequence[float], max_links: int) -> tuple[Link, ...]:
    """One link for each URL, in the order of the page; where there are several, the one in the best text."""
    absolute = _Absolute(canonical(markup.base, page_url) or page_url if markup.base else page_url)
    said: dict[str, str] = {}  # what the head of the page says of a URL
    placed: dict[str, Link] = {}
    for anchor in markup.anchors:
        if anchor.href.startswith("#") or (url := absolute[anchor.href]) is None:
            continue
        if anchor.block == UNPLACED:
            said[url] = f"{said[url]} {anchor.rel}" if url in said else anchor.rel
        elif (earlier := placed.get(url)) is None:
            if len(placed) < max_links:
                placed[url] = _link(anchor, url, markup, scores)
        elif earlier.boilerplate > _score(anchor, scores):
            placed[url] = _link(anchor, url, markup, scores)
    target = absolute[refresh_target(markup)]
    if target:
        said[target] = f"{said.get(target, '')} refresh".lstrip()
    return _merged(said, placed)[:max_links]


def refresh_target(markup: Markup) -> str:
    """Where the page sends its reader after a while, as written, or ""."""
    for name, content in markup.metas:
        if name == "refresh" and (target := _REFRESH.match(content)):
            return target[1] or target[2] or target[3] or ""
    return ""


def licence(found: Sequence[Link]) -> str:
    """The licence that a page links to as its own: by rel="license", or a known one."""
    declared = next((link.url for link in found if "license" in link.rel.split()), "")
    return declared or next((link.url for link in found if is_licence(link.url)), "")


class _Absolute(dict[str, str | None]):
    """Canonical URLs by the way they are written on one page; each is worked out once."""

    def __init__(self, base: str) -> None:
        super().__init__({"": None})  # an empty link leads to the page itself
        self.base = base

    def __missing__(self, href: str) -> str | None:
        url = self[href] = canonical(href, self.base)
        return url


def _score(anchor: Anchor, scores: Sequence[float]) -> float:
    """The score of the block a link stands in. A picture after all text stands in none: take the last."""
    if anchor.block == HIDDEN or not scores:
        return 1.0
    return scores[min(anchor.block, len(scores) - 1)]


def _link(anchor: Anchor, url: str, markup: Markup, scores: Sequence[float]) -> Link:
    text = one_line(anchor.text[: 4 * MAX_ANCHOR])[:MAX_ANCHOR] if anchor.text else ""
    score = _score(anchor, scores)
    block = anchor.block
    in_text = score < TEXT and block < len(scores) and 2 * markup.linked[block] < len(markup.texts[block])
    return Link(url, text, score, in_text, anchor.rel)


def _merged(said: dict[str, str], placed: dict[str, Link]) -> tuple[Link, ...]:
    """What the head says of a URL goes to its link on the page, or makes a link of its own."""
    for url in said.keys() & placed.keys():
        link = placed[url]
        rel = f"{link.rel} {said.pop(url)}".lstrip()
        placed[url] = Link(url, link.anchor, link.boilerplate, link.in_text, rel)
    return (*(Link(url, "", UNKNOWN, False, rel) for url, rel in said.items()), *placed.values())
