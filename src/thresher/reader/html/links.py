"""Links of a page: canonical, one for each URL, with the score of the block they stand in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from thresher.reader.html.directives import is_licence
from thresher.reader.html.scan_page import Anchors, Markup
from thresher.records import Link
from thresher.urls import MAX_URL_LENGTH, canonical, roots

UNKNOWN = 0.5  # the score of a link that stands in no block

Floats = NDArray[np.float64]

_REFRESH = re.compile(r"\s*[\d.]*+[;,\s]+(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(\S+))", re.IGNORECASE)


def links(markup: Markup, page_url: str, scores: Floats, cut: float, max_links: int) -> tuple[Link, ...]:
    """Return one link for each URL, in page order; of several, the one in the best block.

    Blocks that score below the cut are the text of the page.
    """
    base = canonical(markup.base, page_url) or page_url if markup.base else page_url
    absolute = _Absolute(base)
    said: dict[str, str] = {}  # statements of the head of the page about a URL
    for href, rel in markup.head_links:
        if (url := absolute[href]) and len(url) <= MAX_URL_LENGTH:
            said[url] = f"{said[url]} {rel}" if url in said else rel
    if (refresh := refresh_target(markup)) and (target := canonical(refresh, base)):
        said[target] = f"{said.get(target, '')} refresh".lstrip()
    return _merged(said, _placed(markup, absolute, scores, cut))[:max_links]


def _placed(markup: Markup, absolute: _Absolute, scores: Floats, cut: float) -> dict[str, Link]:
    """Return the links in the body of a page by URL."""
    anchors = markup.anchors
    # Two more blocks: a picture after all text stands in none, so take the last; and -1 is HIDDEN.
    by_block = np.append(scores, (scores[-1] if len(scores) else 1.0, 1.0))
    in_text = (by_block < cut) & ~np.append(markup.mostly_links(), (True, True))
    places, are_in_text = by_block[anchors.blocks].tolist(), in_text[anchors.blocks].tolist()
    best: dict[str | None, int] = {}
    for row, url in enumerate(absolute.all(anchors)):
        earlier = best.setdefault(url, row)
        if earlier != row and places[row] < places[earlier]:
            best[url] = row
    texts, rels = anchors.texts(list(best.values())), anchors.rels
    return {
        url: Link(url, text, places[row], are_in_text[row], rels[row])
        for (url, row), text in zip(best.items(), texts, strict=True)
        if url is not None and len(url) <= MAX_URL_LENGTH
    }


def refresh_target(markup: Markup) -> str:
    """Return the target of a <meta> refresh as written, or ""."""
    for name, content in markup.metas:
        if name == "refresh" and (target := _REFRESH.match(content)):
            return target[1] or target[2] or target[3] or ""
    return ""


def licence(found: Sequence[Link]) -> str:
    """Return the licence that a page links to as its own: by rel="license", or a known one."""
    known = ""
    for link in found:
        if link.rel and "license" in link.rel.split():
            return link.url
        if not known and is_licence(link.url):
            known = link.url
    return known


class _Absolute(dict[str, str | None]):
    """Cache from addresses as written on one page to canonical URLs, or None for unusable addresses."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.before = roots(base)
        self.site = "/".join(base.split("/", 3)[:3]) + "/"

    def all(self, anchors: Anchors) -> list[str | None]:
        """Return the URLs of all links; most need only a prefix."""
        if not self.before:
            return [self[href] for href in anchors.hrefs]
        before = ("", "", *self.before)  # by the shape of an address
        return [
            before[shape] + href if shape else self[href]
            for href, shape in zip(anchors.hrefs, anchors.shapes, strict=True)
        ]

    def __missing__(self, href: str) -> str | None:
        if not href or href.startswith("#"):
            url = None  # to the page itself
        elif href.startswith(("http://", "https://")):
            url = _of_site(href, "")
        elif href.startswith("/") and not href.startswith("//"):
            url = _of_site(href, self.site)
        else:
            url = canonical(href, self.base)
        self[href] = url
        return url


@lru_cache(maxsize=50_000)
def _of_site(href: str, site: str) -> str | None:
    """Resolve an address that means the same on every page of a site; cached, because sites repeat menus."""
    return canonical(href, site or None)


def _merged(said: dict[str, str], placed: dict[str, Link]) -> tuple[Link, ...]:
    """Merge the links of the head into the links of the body, adding links that the body lacks."""
    for url in said.keys() & placed.keys():
        link = placed[url]
        rel = f"{link.rel} {said.pop(url)}".lstrip()
        placed[url] = Link(url, link.anchor, link.boilerplate, link.in_text, rel)
    return (*(Link(url, "", UNKNOWN, False, rel) for url, rel in said.items()), *placed.values())
