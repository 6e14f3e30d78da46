"""Files that hosts of a toy web serve beside pages: robots.txt, sitemaps and feeds."""

from __future__ import annotations

from html import escape

from msgspec import Struct

from thresher_lab.toyweb.hosts import ToyHost
from thresher_lab.toyweb.plan import FEED_LENGTH, OPEN, PRIVATE, Article, PlannedSpot, article, sitemap_files
from thresher_lab.toyweb.web import ToyWeb

_SITEMAP_NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


class ToyFile(Struct, frozen=True):
    """A text for machines, and the URLs that it names."""

    content_type: str
    text: str
    links: tuple[str, ...] = ()


def compose_file(web: ToyWeb, spot: PlannedSpot) -> ToyFile:
    """Return the robots.txt, sitemap or feed at a spot that has one."""
    home = spot.home
    if spot.kind == "robots":
        return _robots(web, home)
    if spot.kind == "sitemap index":
        return _sitemap_index(web, home)
    if spot.kind == "sitemap":
        return _sitemap(web, home, spot.number)
    return _feed(web, home)


def _robots(web: ToyWeb, home: ToyHost) -> ToyFile:
    lines = ["User-agent: BadBot", "Disallow: /", "", "User-agent: *"]
    if home.crawl_delayed:
        lines.append(f"Crawl-delay: {web.crawl_delay:g}")
    lines += [f"Disallow: {PRIVATE}/", f"Allow: {OPEN}/", "Disallow: /*?print=", ""]
    sitemaps = (_address(home, "/sitemap.xml"),) if home.sitemap else ()
    lines += [f"Sitemap: {url}" for url in sitemaps]
    return ToyFile("text/plain", "\n".join(lines) + "\n", sitemaps)


def _sitemap_index(web: ToyWeb, home: ToyHost) -> ToyFile:
    urls = tuple(_address(home, path) for path in sitemap_files(web, home))
    return ToyFile("application/xml", _xml_list("sitemapindex", "sitemap", urls), urls)


def _sitemap(web: ToyWeb, home: ToyHost, number: int) -> ToyFile:
    first = 1 + (number - 1) * web.sitemap_urls
    numbers = range(first, min(first + web.sitemap_urls, home.pages + 1))
    urls = tuple(_address(home, article(web, home.number, n).path) for n in numbers)
    return ToyFile("application/xml", _xml_list("urlset", "url", urls), urls)


def _xml_list(root: str, item: str, urls: tuple[str, ...]) -> str:
    items = "".join([f"<{item}><loc>{escape(url)}</loc></{item}>\n" for url in urls])
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{_SITEMAP_NAMESPACE}">\n{items}</{root}>\n'
    )


def _feed(web: ToyWeb, home: ToyHost) -> ToyFile:
    pages = feed_articles(web, home)
    urls = tuple(_address(home, page.path) for page in pages)
    text = _atom(home, pages, urls) if home.feed == "atom" else _rss(home, pages, urls)
    return ToyFile(f"application/{home.feed}+xml", text, urls)


def feed_articles(web: ToyWeb, home: ToyHost) -> list[Article]:
    """Return the articles that a feed names, the latest first."""
    latest = range(home.pages, max(0, home.pages - FEED_LENGTH), -1)
    return [article(web, home.number, number) for number in latest]


def _rss(home: ToyHost, pages: list[Article], urls: tuple[str, ...]) -> str:
    items = "".join(
        f"<item><title>{page.title}</title><link>{escape(url)}</link></item>\n"
        for page, url in zip(pages, urls, strict=True)
    )
    about = f"<title>{home.name}</title><link>http://{home.name}/</link><description></description>"
    return f'<?xml version="1.0"?>\n<rss version="2.0"><channel>{about}\n{items}</channel></rss>\n'


def _atom(home: ToyHost, pages: list[Article], urls: tuple[str, ...]) -> str:
    items = "".join(
        f'<entry><title>{page.title}</title><link href="{escape(url)}"/><id>{escape(url)}</id></entry>\n'
        for page, url in zip(pages, urls, strict=True)
    )
    about = f"<title>{home.name}</title><id>http://{home.name}/</id>"
    return f'<?xml version="1.0"?>\n<feed xmlns="http://www.w3.org/2005/Atom">{about}\n{items}</feed>\n'


def _address(home: ToyHost, path: str) -> str:
    return f"http://{home.name}{path}"
