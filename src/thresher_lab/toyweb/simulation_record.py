"""The record of a toy web: all pages that an obedient crawler could fetch, from the plan, without a crawl.

URLs, links, texts, duplicates and failures are exact. The bytes of a page on the wire, and its reading, are
measured on a sample of similar pages. The walk goes host by host, since the articles of a host are cached
while it lasts.
"""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from html import unescape

import numpy as np

from thresher.config import FetchSettings, PoliteSettings, ScopeSettings
from thresher.crawler.fetching.responses import PASSING
from thresher.crawler.frontier.url_scope import UrlScope
from thresher.records import Via
from thresher.simulation.record import CrawlRecord
from thresher.urls import canonical
from thresher_lab.toyweb.answers import answer, page_status
from thresher_lab.toyweb.content import ArticleDirectives, archived, directives, paragraphs, recipe
from thresher_lab.toyweb.files import compose_file, feed_articles
from thresher_lab.toyweb.linking import SID, Place, ToyLink, parts, session
from thresher_lab.toyweb.oracle import forbidden, owner, seeds
from thresher_lab.toyweb.page_samples import FILES, PLACES, PageKind, PageOutline, readings, received
from thresher_lab.toyweb.pages import planned_size
from thresher_lab.toyweb.plan import TEXT_FATES, Article, PlannedSpot, article, locate
from thresher_lab.toyweb.web import ToyWeb

TRAP_URLS = 200  # of a host at most: calendars and sessions are endless
OK = 200
_CODES = {place: code for code, place in enumerate(PLACES)}


def record_of(web: ToyWeb, *, trap_urls: int = TRAP_URLS) -> CrawlRecord:
    """Return the record of all pages within reach of the seeds, with only `trap_urls` trap URLs of a host."""
    walk = _Walk(web, trap_urls)
    walk.run(url for given in seeds(web).values() for url in given)
    order = np.array(walk.order, np.int64)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    urls = [walk.urls[number] for number in walk.order]
    likes = list(walk.likes)
    outline = PageOutline(urls, *(np.array(column, np.int64) for column in walk.outline))
    members = outline.members(len(likes))
    reading = readings(web, outline, likes, members)
    starts = np.array(walk.starts, np.int64)
    sources, places = np.repeat(outline.likes, np.diff(starts)), np.frombuffer(walk.places, np.uint8)
    return CrawlRecord(
        urls=urls,
        hosts=walk.hosts,
        bytes=received(web, outline, members) + np.array(walk.spent, np.int64),
        worth=np.array(walk.worth, np.int64),
        originals=np.array(walk.originals, np.int64),
        starts=starts,
        targets=ranks[np.array(walk.targets, np.int64)],
        anchors=walk.anchors,
        boilerplate=reading.boilerplate[sources, places],
        in_text=reading.in_text[sources, places],
        rels={},
        badness=reading.badness[outline.likes],
        listings=walk.listings,
        sitemaps={name: ranks[numbers].tolist() for name, numbers in walk.sitemaps.items() if numbers},
        numbers={key: int(ranks[number]) for key, number in walk.numbers.items() if number >= 0},
        redirects=np.frombuffer(walk.redirects, np.uint8).astype(np.bool_),
        languages=[reading.languages[like] for like in outline.likes.tolist()],
        language=web.target,
    )


class _Walk:
    """Pages in the order of their visits; URLs have numbers in the order of their discovery."""

    def __init__(self, web: ToyWeb, trap_urls: int) -> None:
        self._web = web
        self._trap_urls = trap_urls
        self._scope = UrlScope(ScopeSettings())
        self._tries, self._fetch = PoliteSettings().tries, FetchSettings()
        self._traps: Counter[str] = Counter()  # by host
        # By host: number, spot, redirects. In a plain dict, the first key is slow to find after many deletions.
        self._waiting: OrderedDict[str, deque[tuple[int, PlannedSpot, int]]] = OrderedDict()
        self._texts: dict[str, int] = {}  # bytes of each text that a corpus keeps, by its owner
        self._firsts: dict[str, int] = {}  # row in which each of them occurred first
        self.numbers: dict[str, int] = {}  # of URLs without their schemes; -1: never fetched
        self.urls: list[str] = []
        self.sitemaps: dict[str, list[int]] = {}
        self.likes: dict[PageKind, int] = {}
        # Columns with a row for each visit.
        self.order = array("q")
        self.hosts: list[str] = []
        self.redirects = bytearray()
        self.listings: dict[int, Via] = {}
        self.outline = (array("q"), array("q"), array("q"), array("q"))  # the columns of `PageOutline`
        self.spent = array("q")  # bytes in addition to the page: failed attempts
        self.worth = array("q")
        self.originals = array("q")
        self.starts = array("q", [0])
        # Columns with a row for each link.
        self.targets = array("q")
        self.anchors: list[str] = []
        self.places = bytearray()

    def run(self, start: Iterable[str]) -> None:
        """Walk host by host until no URL is left."""
        for url in start:
            self._number(url)
        while self._waiting:
            name, queue = next(iter(self._waiting.items()))
            if name not in self.sitemaps:
                self.sitemaps[name] = self._named_in_robots(queue[0][1])
            while queue:
                self._visit(name, *queue.popleft())
            del self._waiting[name]

    def _number(self, url: str, redirects: int = 0) -> int:
        """Return the number of a URL and queue it at its first mention; -1 if it is never visited."""
        key = url.partition("://")[2]
        known = self.numbers.get(key)
        if known is not None:
            return known
        if redirects > self._fetch.max_redirects:
            return -1  # Too many redirects; another link may lead there.
        name = key.partition("/")[0]
        spot = locate(self._web, url)
        if (
            spot is None
            or forbidden(spot)
            or not self._scope.admits(url, None)
            or not self._bears(name, spot)
        ):
            self.numbers[key] = -1
            return -1
        number = self.numbers[key] = len(self.urls)
        self.urls.append(url)
        self._waiting.setdefault(name, deque()).append((number, spot, redirects))
        return number

    def _bears(self, name: str, spot: PlannedSpot) -> bool:
        """Return whether a host may have this URL: any but trap URLs beyond the limit."""
        if not spot.sid and spot.kind not in ("calendar", "deeper"):
            return True
        self._traps[name] += 1
        return self._traps[name] <= self._trap_urls

    def _named_in_robots(self, spot: PlannedSpot) -> list[int]:
        """Return the sitemap of a host; the robots.txt of a mirror names that of the host it mirrors."""
        number = self._number(f"http://{spot.home.name}/sitemap.xml") if spot.home.sitemap else -1
        return [number] if number >= 0 else []

    # Rows.

    def _visit(self, name: str, number: int, spot: PlannedSpot, redirects: int) -> None:
        """Add one row, and its links."""
        page = article(self._web, spot.home.number, spot.number) if spot.kind == "article" else None
        self.order.append(number)
        self.hosts.append(name)
        self.redirects.append(False)
        if page and page.fate not in (*TEXT_FATES, "thin"):
            self._fail(self.urls[number], redirects)
        else:
            self._show(name, self.urls[number], spot, page)
        self.starts.append(len(self.targets))

    def _fail(self, url: str, redirects: int) -> None:
        """Add a row without a page: a redirect is followed, a transient failure is tried again."""
        reply = answer(self._web, url)
        location = next((value for field, value in reply.headers if field == "Location"), "")
        target = canonical(location, url) if location else None
        if target:
            self._link(self._number(target, redirects + 1), "", "head")
            self.redirects[-1] = True
        tries = self._tries if reply.status in PASSING else 1
        self._write((-1, 0, 0, 0), tries * len(reply.body), "", 0)

    def _show(self, name: str, url: str, spot: PlannedSpot, page: Article | None) -> None:
        """Add the row of a page, or of a file that names pages."""
        web = self._web
        asks = directives(web, spot.home, page) if page else ArticleDirectives()
        links = _links(web, spot)
        if page_status(spot) == OK and not asks.nofollow:
            self._follow(name, url, spot, links)
        if spot.kind in FILES:
            self.listings[len(self.starts) - 1] = "feed" if spot.kind == "feed" else "sitemap"
        like = _like(web, spot, page, compressed=spot.home.encoding in self._fetch.encodings)
        outline = (
            self.likes.setdefault(like, len(self.likes)),
            0 if spot.kind in FILES else planned_size(web, spot),
            _characters(web, spot, page),
            sum([len(href) + len(words) for part in links.values() for href, words in part]),
        )
        failed = range(web.flaky_attempts if page and page.fate == "flaky" else 0)
        spent = sum(len(answer(web, url, attempt=attempt).body) for attempt in failed)
        text, worth = ("", 0) if asks.noindex else self._worth(spot, page)
        self._write(outline, spent, text, worth)

    def _worth(self, spot: PlannedSpot, page: Article | None) -> tuple[str, int]:
        """Return the owner of the text of a page and its bytes, if a corpus of the target language keeps it."""
        web, home = self._web, spot.home
        shown = archived(web, home) if spot.kind == "deeper" else page
        if shown is None or shown.language != web.target or home.kind == "spam":
            return "", 0
        text, _ = owner(web, spot, page)
        if text not in self._texts:
            written = "\n".join(paragraphs(web, home, shown))
            self._texts[text] = len(written.encode()) if len(written) >= web.min_text_chars else 0
        return text, self._texts[text]

    def _write(self, outline: tuple[int, int, int, int], spent: int, text: str, worth: int) -> None:
        """Add a value to each column; the first of equal texts is the original of the others."""
        for column, value in zip(self.outline, outline, strict=True):
            column.append(value)
        self.spent.append(spent)
        self.worth.append(worth)
        here = len(self.originals)
        self.originals.append(self._firsts.setdefault(text, here) if worth else here)

    # Links.

    def _follow(
        self, name: str, url: str, spot: PlannedSpot, links: Mapping[Place, Sequence[ToyLink]]
    ) -> None:
        """Add one link for each URL; if there are several, the one in the text."""
        site = f"{url.partition(':')[0]}://{name}"
        folder = url.partition("?")[0].rpartition("/")[0] + "/"
        sid = session(self._web, spot) if spot.home.session else ""
        is_full = self._traps[name] >= self._trap_urls
        targets: dict[str, tuple[str, Place]] = {}
        for place, pointers in links.items():
            for href, words in pointers:
                if sid and SID in href:
                    if is_full:
                        continue  # A URL with a session is a trap URL.
                    href = href.replace(SID, sid)  # noqa: PLW2901
                target = site + href if href[0] == "/" else href if "://" in href else folder + href
                if place == "text" or target not in targets:
                    targets[target] = (words, place)
        for target, (words, place) in targets.items():
            self._link(self._number(target), words, place)

    def _link(self, target: int, words: str, place: Place) -> None:
        if target >= 0:
            self.targets.append(target)
            self.anchors.append(unescape(words) if "&" in words else words)
            self.places.append(_CODES[place])


def _links(web: ToyWeb, spot: PlannedSpot) -> Mapping[Place, Sequence[ToyLink]]:
    """Return the links of a page or a file by the part that they stand in."""
    if spot.kind not in FILES:
        return parts(web, spot)
    urls = compose_file(web, spot).links
    titles = (
        [page.title for page in feed_articles(web, spot.home)] if spot.kind == "feed" else [""] * len(urls)
    )
    return {"head": [ToyLink(url, title) for url, title in zip(urls, titles, strict=True)]}


def _like(web: ToyWeb, spot: PlannedSpot, page: Article | None, *, compressed: bool) -> PageKind:
    """Return the kind of a page, of which a sample is measured."""
    home = spot.home
    kind: str = spot.kind
    if kind in FILES:
        form = home.feed if kind == "feed" else home.sitemap
        return PageKind(f"{kind} {form}", "", 0, compressed, legacy=False, stuffed=False)
    language = home.front_language
    if page:
        kind, language = "thin" if page.fate == "thin" else "text", page.language
    elif kind == "deeper":
        shown = archived(web, home)
        language = shown.language if shown else home.language
    elif kind == "front" and home.kind == "hidden":
        kind = "hidden front"
    elif kind == "missing" and home.soft_404:
        kind = "soft 404"
    return PageKind(kind, language, home.layout, compressed, home.legacy, home.kind == "spam")


def _characters(web: ToyWeb, spot: PlannedSpot, page: Article | None) -> int:
    """Return about how many characters of text a page has."""
    home = spot.home
    shown = archived(web, home) if spot.kind == "deeper" else page
    if shown:
        return recipe(web, home, shown).characters
    if spot.kind == "front" and home.kind == "hidden":
        return web.text_chars[0]
    return web.thin_chars[0] if spot.kind == "missing" else 0
