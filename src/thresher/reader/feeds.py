"""Sitemaps and feeds: their links, read without an XML parser.

Both are full of faults that stop an XML parser, and an XML parser has features (entities, external documents)
that are dangerous on untrusted input. A linear scan for the few elements that carry links reads the parts
before and after a fault and expands nothing.

Facts about a page besides its address are stored in the `rel` of its link, a mark for each:
`lastmod=2026-01-02`, `hreflang=cs`, `changefreq=daily`, `priority=0.8`. Malformed values give no mark.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterable, Iterator
from math import inf
from typing import Literal

from msgspec.structs import replace

from thresher.reader.html.dates import DAY, credible_date
from thresher.records import Link
from thresher.urls import canonical, domain, host

MAX_ANCHOR = 300  # characters of a title
MAX_CONTENT = 10_000  # characters of an element; longer than any URL that we would follow
SNIFFED_BYTES = 2048

_BOILERPLATE = 0.5  # neither in the text of a page nor in a menu
_ENCODING = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([a-zA-Z0-9_-]{1,20})[\"']")
# Python knows many more codecs; some take quadratic time, some are not even for text.
_CHARSETS = re.compile(
    r"iso-8859-(?:[1-9]|1[013-6])|windows-125[0-8]|koi8-[ru]|gb2312|gbk|gb18030|big5|shift_jis|euc-(?:jp|kr)",
    re.IGNORECASE,
)
_BEFORE_ROOT = re.compile(
    r"\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^<>\[]*(?:\[.*?\]\s*)?>", re.DOTALL | re.IGNORECASE
)
_ROOT = re.compile(r"<(?:[\w.-]++:)?(urlset|sitemapindex|rss|feed|RDF)[\s/>]", re.IGNORECASE)

# The tags that matter: (slash, prefix, name, attributes). An unclosed one ends where the next begins.
_TAG = r"<(?:!--|!\[CDATA\[|({slash})(?:([\w.-]++):)?({names})(?=[\s/>])([^<>]*+)>?)"
_FACTS = ("lastmod", "changefreq", "priority")  # of entries of sitemaps
_DATES = ("pubDate", "published", "updated", "date")  # of items of feeds, in any namespace
_SITEMAP_TAG = re.compile(
    _TAG.format(slash="", names=f"loc|link|url|sitemap|sitemapindex|urlset|{'|'.join(_FACTS)}")
)
_FEED_TAG = re.compile(_TAG.format(slash="/?", names=f"link|title|guid|item|entry|source|{'|'.join(_DATES)}"))
_ATTRIBUTE = re.compile(r"(?<![\w:.-])([\w:.-]++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][a-z0-9]{2,8}){0,2}", re.IGNORECASE)
_FREQUENCY = re.compile(r"always|hourly|daily|weekly|monthly|yearly|never")
_PRIORITY = re.compile(r"0?\.\d{1,3}|[01](?:\.0{0,3})?")
_REFERENCE = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")


def kind_of(head: bytes) -> Literal["sitemap", "feed", ""]:
    """Return the kind of a document by its root element: sitemap, feed or "".

    >>> kind_of(b'<?xml version="1.0"?><rss version="2.0">')
    'feed'
    """
    text = _decoded(head[:SNIFFED_BYTES])
    at = 0
    while skipped := _BEFORE_ROOT.match(text, at):
        at = skipped.end()
    root = _ROOT.match(text, at)
    if not root:
        return ""
    return "sitemap" if root[1].lower() in ("urlset", "sitemapindex") else "feed"


def links(
    body: bytes, base_url: str, kind: Literal["sitemap", "feed"], max_links: int, now: float = inf
) -> tuple[Link, ...]:
    """Return the first `max_links` distinct links of a sitemap or a feed.

    A sitemap may name URLs of its own registered domain only; a feed may link anywhere. Dates after `now`,
    the Unix time of the visit, are ignored. The function is total.
    """
    text = _decoded(body)
    if kind == "feed":
        return _distinct(_feed_links(text, base_url, now), max_links)
    return _distinct(_of_domain(base_url, _sitemap_links(text, base_url, now)), max_links)


def text_sitemap(body: bytes, base_url: str, max_links: int) -> tuple[Link, ...]:
    """Return the first `max_links` distinct links of a sitemap in plain text, one URL on each line."""
    lines = (match[0] for match in re.finditer(r"[^\r\n]+", _decoded(body)))
    return _distinct(_of_domain(base_url, map(_link, lines)), max_links)


def _sitemap_links(text: str, base_url: str, now: float) -> Iterator[Link | None]:
    """Yield the links of each entry, and again with marks that follow later in the entry."""
    own_prefix, rel = None, ""
    page: Link | None = None  # of the entry, once its address was read
    marks: dict[str, str] = {}  # read before the address
    for tag in _tags(_SITEMAP_TAG, text):
        _, prefix, name, attributes = tag.groups()
        if name == "link":
            alternate = _attributes(attributes)
            if "hreflang" in alternate:
                mark = f"alternate {_language_mark(alternate['hreflang'])}".rstrip()
                yield _link(alternate.get("href", ""), base_url, rel=mark)
        elif name in ("sitemapindex", "urlset"):
            own_prefix, rel = prefix, "sitemap" if name == "sitemapindex" else ""
        elif prefix in (None, own_prefix):  # <image:loc> and the like name no page
            content = _content(text, tag.end()).partition("<")[0].strip()
            if name in ("url", "sitemap"):
                page, marks = None, {}
            if name in _FACTS:
                if mark := _mark(name, content, now):
                    marks[name] = mark
                    yield replace(page, rel=mark) if page else None
            # A <sitemap> usually has a <loc>, but some write the URL without.
            elif content and name != "url":
                base = base_url if content.startswith("/") else None
                page = _link(content, base, rel=" ".join(filter(None, (rel, *marks.values()))))
                yield page


def _mark(name: str, content: str, now: float) -> str:
    """Return a fact of an entry as a mark of its link; "" if it is implausible."""
    if name == "lastmod":
        return _date_mark((content,), now)
    form = _FREQUENCY if name == "changefreq" else _PRIORITY
    return f"{name}={content}" if form.fullmatch(content) else ""


def _date_mark(candidates: Iterable[str], now: float) -> str:
    day = credible_date(candidates, now)[:DAY]
    return f"lastmod={day}" if day else ""


def _language_mark(code: str) -> str:
    return f"hreflang={code.lower()}" if _LANGUAGE.fullmatch(code) else ""


def _feed_links(text: str, base_url: str, now: float) -> Iterator[Link | None]:
    """Yield the links of each item; without one, its identifier if that is a URL."""
    item_prefix: str | None = None
    in_item = in_source = False
    title = guid = ""
    urls: list[str] = []
    dates: list[str] = []
    for tag in _tags(_FEED_TAG, text):
        slash, prefix, name, attributes = tag.groups()
        if name in ("item", "entry"):
            yield from _item_links(urls, guid, title, _date_mark(dates, now), base_url)
            in_item, in_source, item_prefix = not slash, False, prefix
            title, guid, urls, dates = "", "", [], []
        elif name == "source":  # another feed that the item was taken from, with a title and links of its own
            in_source = not slash and not attributes.endswith("/")
        elif slash or in_source or not in_item:
            continue
        elif name == "link":
            url = _content(text, tag.end()).strip() if prefix == item_prefix else ""
            urls.append(url or _page_of(_attributes(attributes)))
        elif name in _DATES:
            dates.append(_content(text, tag.end()))
        elif prefix == item_prefix and name == "title":
            title = title or _title(_content(text, tag.end()))
        elif prefix == item_prefix:
            guid = _content(text, tag.end()).strip()
    yield from _item_links(urls, guid, title, _date_mark(dates, now), base_url)


def _item_links(urls: list[str], guid: str, title: str, mark: str, base_url: str) -> Iterator[Link | None]:
    found = [_link(url, base_url, title, mark) for url in urls if url]
    # isPermaLink is ignored, since many items set it wrongly though their only URL is their guid.
    return iter(found or ([_link(guid, anchor=title, rel=mark)] if guid else []))


def _page_of(attributes: dict[str, str]) -> str:
    """Return the target of an Atom link to the page itself: not to the feed, an enclosure, an editor."""
    relation = attributes.get("rel", "alternate").rpartition("/")[2]
    return attributes.get("href", "") if relation == "alternate" else ""


def _tags(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern for tags, outside of comments and CDATA sections."""
    at = 0
    while tag := pattern.search(text, at):
        at = tag.end()
        if tag[3]:
            yield tag
        else:
            end = text.find("-->" if text[at - 1] == "-" else "]]>", at)
            at = end + 3 if end >= 0 else len(text)


def _content(text: str, at: int) -> str:
    """Return the text from a position to the next tag, with references resolved and CDATA opened."""
    parts = []
    while True:
        end = text.find("<", at)
        if end < 0:
            end = len(text)
        parts.append(_resolved(text[at:end][:MAX_CONTENT]))
        if not text.startswith("<![CDATA[", end):
            return "".join(parts)
        close = text.find("]]>", end)
        if close < 0:
            close = len(text)
        parts.append(text[end + len("<![CDATA[") : close][:MAX_CONTENT])
        at = close + len("]]>")


def _attributes(text: str) -> dict[str, str]:
    return {name: _resolved(double or single) for name, double, single in _ATTRIBUTE.findall(text)}


def _resolved(text: str) -> str:
    """Resolve the five entities of XML and character references; other entities stay as they are."""
    return _REFERENCE.sub(lambda reference: html.unescape(reference[0]), text) if "&" in text else text


def _title(text: str) -> str:
    """Return a title on one line; titles are often HTML inside XML, so references are resolved twice."""
    return " ".join(html.unescape(text[: 4 * MAX_ANCHOR]).split())[:MAX_ANCHOR]


def _link(url: str, base_url: str | None = None, anchor: str = "", rel: str = "") -> Link | None:
    href = canonical(url, base_url)
    return Link(href, anchor, _BOILERPLATE, in_text=False, rel=rel) if href else None


def _of_domain(base_url: str, found: Iterable[Link | None]) -> Iterator[Link | None]:
    base = canonical(base_url)
    own_host = host(base) if base else ""
    own = domain(own_host)
    return (link for link in found if link and (host(link.url) == own_host or domain(host(link.url)) == own))


def _distinct(found: Iterable[Link | None], max_links: int) -> tuple[Link, ...]:
    by_url: dict[str, Link] = {}
    for link in found:
        if len(by_url) >= max_links:
            break
        if link:
            earlier = by_url.get(link.url)
            by_url[link.url] = _joined(earlier, link) if earlier else link
    return tuple(by_url.values())


def _joined(one: Link, other: Link) -> Link:
    """Return a link with the marks of another to the same URL; on conflict the first counts."""
    if not other.rel or other.rel == one.rel:
        return one
    marks = one.rel.split()
    known = {mark.partition("=")[0] for mark in marks}
    more = [mark for mark in other.rel.split() if mark.partition("=")[0] not in known]
    return replace(one, rel=" ".join((*marks, *more))) if more else one


def _decoded(body: bytes) -> str:
    """Decode an XML document by its byte order mark or declaration, otherwise as UTF-8."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", "replace")
    if body.startswith((b"<\0", b"\0<")):
        return body.decode("utf-16-le" if body.startswith(b"<") else "utf-16-be", "replace")
    declared = _ENCODING.match(body)
    charset = declared[1].decode("ascii") if declared else ""
    return body.decode(charset if _CHARSETS.fullmatch(charset) else "utf-8-sig", "replace")
