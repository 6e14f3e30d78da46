"""A toy web as a record: all that an obedient crawler could fetch, told from the web's plan, without a crawl.

URLs, links, texts, duplicates and failures are exact. How many bytes a page has on the wire, and what a
reader makes of it, is measured on a sample of its like. The walk goes host by host: whatever is asked of a
host is answered quickest while its articles are still in memory.
"""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from html import unescape

import numpy as np

from thresher.config import Fetch, Polite, Scope
from thresher.crawl.answers import PASSING
from thresher.crawl.scope import Gate
from thresher.lab.record import Record
from thresher.lab.toysample import FILES, PLACES, Like, Outline, readings, received
from thresher.lab.toyweb.answers import answer, page_status
from thresher.lab.toyweb.content import Directives, archived, directives, paragraphs, recipe
from thresher.lab.toyweb.files import compose_file, feed_articles
from thresher.lab.toyweb.linking import SID, Place, Pointer, parts, session
from thresher.lab.toyweb.oracle import forbidden, owner, seeds
from thresher.lab.toyweb.pages import planned_size
from thresher.lab.toyweb.plan import TEXT_FATES, Article, Spot, article, locate
from thresher.lab.toyweb.web import ToyWeb
from thresher.page import Via
from thresher.url import canonical

TRAP_URLS = 200  # of a host: calendars and sessions have no end
OK = 200
_CODES = {place: code for code, place in enumerate(PLACES)}


def record_of(web: ToyWeb, *, trap_urls: int = TRAP_URLS) -> Record:
    """What a crawl from the seeds of all languages could meet, with only so many trap URLs of a host."""
    walk = _Walk(web, trap_urls)
    walk.run(url for given in seeds(web).values() for url in given)
    order = np.array(walk.order, np.int64)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    urls = [walk.urls[number] for number in walk.order]
    likes = list(walk.likes)
    outline = Outline(urls, *(np.array(column, np.int64) for column in walk.outline))
    members = outline.members(len(likes))
    reading = readings(web, outline, likes, members)
    starts = np.array(walk.starts, np.int64)
    sources, places = np.repeat(outline.likes, np.diff(starts)), np.frombuffer(walk.places, np.uint8)
    return Record(
        urls=urls,
        hosts=walk.hosts,
        bytes=received(web, outline, members) + np.array(walk.spent, np.int64),
        worth=np.array(walk.worth, np.int64),
        twins=np.array(walk.twins, np.int64),
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
    """All that is met, in the order of the visits; URLs have numbers in the order of their discovery."""

    def __init__(self, web: ToyWeb, trap_urls: int) -> None:
        self._web = web
        self._trap_urls = trap_urls
        self._gate = Gate(Scope())
        self._tries, self._fetch = Polite().tries, Fetch()
        self._traps: Counter[str] = Counter()  # by host
        # By host: number, what it is, redirects. A plain dict that lost many is slow to tell its first.
        self._waiting: OrderedDict[str, deque[tuple[int, Spot, int]]] = OrderedDict()
        self._texts: dict[str, int] = {}  # bytes of each text that is worth something, by its owner
        self._firsts: dict[str, int] = {}  # where each of them was met first
        self.numbers: dict[str, int] = {}  # of URLs without their schemes; -1: not to be fetched
        self.urls: list[str] = []
        self.sitemaps: dict[str, list[int]] = {}
        self.likes: dict[Like, int] = {}
        # by visit
        self.order = array("q")
        self.hosts: list[str] = []
        self.redirects = bytearray()
        self.listings: dict[int, Via] = {}
        self.outline = (array("q"), array("q"), array("q"), array("q"))  # the columns of `Outline`
        self.spent = array("q")  # bytes beside those of a page
        self.worth = array("q")
        self.twins = array("q")
        self.starts = array("q", [0])
        # by link
        self.targets = array("q")
        self.anchors: list[str] = []
        self.places = bytearray()

    def run(self, start: Iterable[str]) -> None:
        """Walk host by host until nothing is left."""
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
        """The number of a URL, which is to be visited from the first time on; -1 if it never is."""
        key = url.partition("://")[2]
        known = self.numbers.get(key)
        if known is not None:
            return known
        if redirects > self._fetch.max_redirects:
            return -1  # not on this way; another may lead there
        name = key.partition("/")[0]
        spot = locate(self._web, url)
        if spot is None or forbidden(spot) or not self._gate.admits(url, None) or not self._bears(name, spot):
            self.numbers[key] = -1
            return -1
        number = self.numbers[key] = len(self.urls)
        self.urls.append(url)
        self._waiting.setdefault(name, deque()).append((number, spot, redirects))
        return number

    def _bears(self, name: str, spot: Spot) -> bool:
        """Whether a host may have this URL too, for it is no trap or one of its first."""
        if not spot.sid and spot.kind not in ("calendar", "deeper"):
            return True
        self._traps[name] += 1
        return self._traps[name] <= self._trap_urls

    def _named_in_robots(self, spot: Spot) -> list[int]:
        """The sitemap of a host; the robots.txt of a mirror names that of the host it mirrors."""
        number = self._number(f"http://{spot.home.name}/sitemap.xml") if spot.home.sitemap else -1
        return [number] if number >= 0 else []

    # what a URL gives

    def _visit(self, name: str, number: int, spot: Spot, redirects: int) -> None:
        """One row, and the links that go with it."""
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
        """No page: a redirect leads on, and what may pass is tried again."""
        reply = answer(self._web, url)
        location = next((value for field, value in reply.headers if field == "Location"), "")
        target = canonical(location, url) if location else None
        if target:
            self._link(self._number(target, redirects + 1), "", "head")
            self.redirects[-1] = True
        tries = self._tries if reply.status in PASSING else 1
        self._write((-1, 0, 0, 0), tries * len(reply.body), "", 0)

    def _show(self, name: str, url: str, spot: Spot, page: Article | None) -> None:
        """A page, or a file that names pages."""
        web = self._web
        asks = directives(web, spot.home, page) if page else Directives()
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

    def _worth(self, spot: Spot, page: Article | None) -> tuple[str, int]:
        """Whose text a page shows and the bytes of it, if a corpus of the target language keeps it."""
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
        """A row for each visit; of equal texts the first is the twin of all."""
        for column, value in zip(self.outline, outline, strict=True):
            column.append(value)
        self.spent.append(spent)
        self.worth.append(worth)
        here = len(self.twins)
        self.twins.append(self._firsts.setdefault(text, here) if worth else here)

    # where a URL leads

    def _follow(self, name: str, url: str, spot: Spot, links: Mapping[Place, Sequence[Pointer]]) -> None:
        """One link for each URL; where there are several, the one in the text."""
        site = f"{url.partition(':')[0]}://{name}"
        folder = url.partition("?")[0].rpartition("/")[0] + "/"
        sid = session(self._web, spot) if spot.home.session else ""
        is_full = self._traps[name] >= self._trap_urls
        found: dict[str, tuple[str, Place]] = {}
        for place, pointers in links.items():
            for href, words in pointers:
                if sid and SID in href:
                    if is_full:
                        continue  # a URL with a session is a trap's
                    href = href.replace(SID, sid)  # noqa: PLW2901
                target = site + href if href[0] == "/" else href if "://" in href else folder + href
                if place == "text" or target not in found:
                    found[target] = (words, place)
        for target, (words, place) in found.items():
            self._link(self._number(target), words, place)

    def _link(self, target: int, words: str, place: Place) -> None:
        if target >= 0:
            self.targets.append(target)
            self.anchors.append(unescape(words) if "&" in words else words)
            self.places.append(_CODES[place])


def _links(web: ToyWeb, spot: Spot) -> Mapping[Place, Sequence[Pointer]]:
    """The links of a page or a file by the part that they stand in."""
    if spot.kind not in FILES:
        return parts(web, spot)
    urls = compose_file(web, spot).links
    titles = (
        [page.title for page in feed_articles(web, spot.home)] if spot.kind == "feed" else [""] * len(urls)
    )
    return {"head": [Pointer(url, title) for url, title in zip(urls, titles, strict=True)]}


def _like(web: ToyWeb, spot: Spot, page: Article | None, *, compressed: bool) -> Like:
    """What can stand for this page in a sample."""
    home = spot.home
    kind: str = spot.kind
    if kind in FILES:
        form = home.feed if kind == "feed" else home.sitemap
        return Like(f"{kind} {form}", "", 0, compressed, legacy=False, stuffed=False)
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
    return Like(kind, language, home.layout, compressed, home.legacy, home.kind == "spam")


def _characters(web: ToyWeb, spot: Spot, page: Article | None) -> int:
    """About how much text a page holds."""
    home = spot.home
    shown = archived(web, home) if spot.kind == "deeper" else page
    if shown:
        return recipe(web, home, shown).characters
    if spot.kind == "front" and home.kind == "hidden":
        return web.text_chars[0]
    return web.thin_chars[0] if spot.kind == "missing" else 0
