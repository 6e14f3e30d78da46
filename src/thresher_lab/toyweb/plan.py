"""The plan of a toy web: the target of each URL, a pure function of the URL, without a table."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import Literal

import xxhash
from msgspec import Struct

from thresher_lab.toyweb.dice import Shares, between, roll
from thresher_lab.toyweb.hosts import SECTIONS, ToyHost, find_host, host
from thresher_lab.toyweb.texts import text_source
from thresher_lab.toyweb.web import ToyWeb

SpotKind = Literal[
    "robots",
    "sitemap index",
    "sitemap",
    "feed",
    "front",
    "list",
    "article",
    "calendar",
    "deeper",
    "missing",
]
FATES = ("thin", "redirect", "chain", "loop", "lost", "gone", "error", "flaky", "slow", "drip", "file")
TEXT_FATES = ("text", "flaky", "slow", "drip")
LIST_LENGTH = 20
FEED_LENGTH = 20
MOVED_ROBOTS = "/rules/robots.txt"
PRIVATE, OPEN = "/private", "/private/open"  # forbidden, and an allowed part of it
_PATH_WORDS = {
    **{"cs": ("clanek", "rubrika"), "de": ("artikel", "rubrik"), "fr": ("actualite", "rubrique")},
    **{
        "pl": ("artykul", "dzial"),
        "ru": ("statya", "razdel"),
        "tr": ("makale", "bolum"),
        "ja": ("kiji", "bun"),
    },
}
_ANY_PATH_WORDS = ("article", "section")
_NUMBER = tuple(re.compile(p) for p in (r"/(\d+)-[^/]*\.html$", r"-(\d+)/$", r"\?id=(\d+)$", r"/(\d+)$"))
_LIST = re.compile(r"/(\w+)/(\d+)/(\d*)")
_CALENDAR = re.compile(r"/calendar/(\d{4})/(\d{2})")
_DEEPER = re.compile(r"/archive/((?:more/)*)")
_SITEMAP = re.compile(r"/sitemap-(\d+)\.xml(\.gz)?")
_SID = re.compile(r"[?&]sid=([0-9a-f]{8})$")
_HOP = re.compile(r"[?&]hop=(\d{1,3})$")


class Article(Struct, frozen=True, gc=False):
    """One numbered page of a host."""

    number: int
    language: str
    fate: str  # "text" or one of FATES
    area: str  # "", PRIVATE or OPEN
    orphan: bool  # no page links to it
    title: str
    path: str


class PlannedSpot(Struct, frozen=True):
    """The target of a URL."""

    kind: SpotKind
    home: ToyHost  # the host of the page: on a mirror, the mirrored one
    path: str  # without session and hop
    number: int = 0  # of article, section, year, sitemap; how deep
    page: int = 0  # of a list; month of a calendar
    hop: int = -1  # in a chain or loop of redirects; -1: none
    sid: str = ""


@lru_cache(maxsize=1 << 15)
def article(web: ToyWeb, host_number: int, number: int) -> Article:
    """Return the article of a number, 1 to the host's `pages`."""
    home = host(web, host_number)
    bits = xxhash.xxh3_128_intdigest(f"{web.seed} article {host_number} {number}".encode())
    language = home.language
    if home.kind == "mixed":
        language = home.languages[(bits & 0xFFFF) % 3]
    elif (bits & 0xFFFF) / 0x10000 < web.stray:
        language = web.languages[(bits >> 16) % len(web.languages)]
    fate = _fates(web).pick((bits >> 32 & 0xFFFF) / 0x10000)
    if home.kind == "thin" and fate in TEXT_FATES:
        fate = "thin"
    area = ""
    private = (bits >> 48 & 0xFFFF) / 0x10000
    if home.ruled and private < web.private:
        area = OPEN if private < web.private / 3 else PRIVATE
    listed = home.sitemap or (home.feed and number > home.pages - FEED_LENGTH)
    orphan = bool(listed) and (bits >> 64 & 0xFFFF) / 0x10000 < web.orphan
    title_bits = xxhash.xxh3_128_intdigest(b"title" + bits.to_bytes(16))
    if web.text == "sentences":
        title_bits = text_key(web, host_number, number)  # The headline fits the text below it.
    title, slug = text_source(web, language).title(title_bits)
    path = _article_path(home, number, language, area, slug)
    return Article(number, language, fate, area, orphan, title, path)


def text_key(web: ToyWeb, host_number: int, number: int) -> int:
    """Return the key of the text of an article, if it is its own."""
    return roll(web.seed, "text", host_number, number)


def linked(web: ToyWeb, home: ToyHost, number: int) -> Article:
    """Return the article of a number or the next one that pages link to; numbers wrap around."""
    for step in range(home.pages):
        found = article(web, home.number, (number + step - 1) % home.pages + 1)
        if not found.orphan:
            return found
    return article(web, home.number, 1)


def elsewhere(web: ToyWeb, away: ToyHost, bits: int) -> str:
    """Return name and path of some article of another host; a mirror has the paths of the host that it mirrors."""
    shown = host(web, away.mirrors) if away.mirrors >= 0 else away
    return away.name + linked(web, shown, 1 + bits % shown.pages).path


def list_path(home: ToyHost, section: int, page: int = 1) -> str:
    """Return the path of a list of articles; sections and pages count from 1."""
    word = _PATH_WORDS.get(home.front_language, _ANY_PATH_WORDS)[1]
    return f"/{word}/{section}/{page}" if page > 1 else f"/{word}/{section}/"


def listing(web: ToyWeb, home: ToyHost, section: int, page: int) -> list[Article]:
    """Return the articles that a list shows: every `SECTIONS`-th of the host, without orphans."""
    first = section + (page - 1) * LIST_LENGTH * SECTIONS
    numbers = range(first, min(first + LIST_LENGTH * SECTIONS, home.pages + 1), SECTIONS)
    return [found for n in numbers if not (found := article(web, home.number, n)).orphan]


def list_pages(home: ToyHost, section: int) -> int:
    """Return the number of pages of the list of a section."""
    return max(1, -(-len(range(section, home.pages + 1, SECTIONS)) // LIST_LENGTH))


def sitemap_files(web: ToyWeb, home: ToyHost) -> list[str]:
    """Return the paths of the files that the sitemap index names."""
    if not home.sitemap:
        return []
    ending = ".xml.gz" if home.sitemap == "gzip" else ".xml"
    return [f"/sitemap-{k}{ending}" for k in range(1, -(-home.pages // web.sitemap_urls) + 1)]


def redirect_target(web: ToyWeb, home: ToyHost, page: Article, hop: int) -> tuple[int, str]:
    """Return status and Location of an article that has moved."""
    bits = roll(web.seed, "redirect", home.number, page.number)
    status = (301, 302, 307, 308)[bits % 4]
    follower = linked(web, home, page.number + 1)
    if page.fate == "redirect":
        if bits // 4 % 4 == 0:
            return status, f"http://{elsewhere(web, host(web, (bits >> 32) % web.hosts), bits >> 16)}"
        if bits // 4 % 4 == 1:
            return status, f"https://{home.name}{follower.path}"
        return status, follower.path
    query = "&" if "?" in page.path else "?"
    if page.fate == "loop":
        return status, page.path if hop == 0 else f"{page.path}{query}hop=0"
    hop = between(web.chain_hops, (bits >> 8) % 0x10000 / 0x10000) - 1 if hop < 0 else hop
    return status, f"{page.path}{query}hop={hop - 1}" if hop > 0 else follower.path


def locate(web: ToyWeb, url: str) -> PlannedSpot | None:
    """Return the target of a URL, be it "missing"; None if the toy web does not have the host."""
    name, slash, rest = url.partition("://")[2].partition("#")[0].partition("/")
    if not slash and "?" in name:
        name, _, rest = name.partition("?")
        rest = "?" + rest
    served = find_host(web, name)
    if served is None:
        return None
    home = host(web, served.mirrors) if served.mirrors >= 0 else served
    path, sid, hop = "/" + rest, "", -1
    if home.session and (match := _SID.search(path)):
        path, sid = path[: match.start()], match[1]
    if match := _HOP.search(path):
        path, hop = path[: match.start()], int(match[1])
    kind, number, page = _kind(web, home, path, hop)
    return PlannedSpot(kind, home, path, number, page, hop, sid)


def _kind(web: ToyWeb, home: ToyHost, path: str, hop: int) -> tuple[SpotKind, int, int]:
    if hop < 0:
        if path == "/":
            return "front", 0, 0
        if path == "/robots.txt" or (path == MOVED_ROBOTS and home.robots == "moved"):
            return "robots", 0, 0
        if path == "/sitemap.xml" and home.sitemap:
            return "sitemap index", 0, 0
        if path == "/feed.xml" and home.feed:
            return "feed", 0, 0
        if (match := _SITEMAP.fullmatch(path)) and path in sitemap_files(web, home):
            return "sitemap", int(match[1]), 0
        if (match := _LIST.fullmatch(path)) and _is_list(home, path, int(match[2]), int(match[3] or 1)):
            return "list", int(match[2]), int(match[3] or 1)
        if home.calendar and (match := _CALENDAR.fullmatch(path)) and 1 <= int(match[2]) <= 12:
            return "calendar", int(match[1]), int(match[2])
        if home.deeper and (match := _DEEPER.fullmatch(path)):
            return "deeper", match[1].count("/"), 0
    if match := _NUMBER[home.style].search(path):
        number = int(match[1]) if len(match[1]) < 10 else 0
        if 1 <= number <= home.pages:
            found = article(web, home.number, number)
            if found.path == path and (hop < 0 or found.fate in ("chain", "loop")):
                return "article", number, 0
    return "missing", 0, 0


def _is_list(home: ToyHost, path: str, section: int, page: int) -> bool:
    known = 1 <= section <= SECTIONS and 1 <= page <= list_pages(home, section)
    return known and path == list_path(home, section, page)


def published(number: int) -> date:
    """Return the day on which an article appeared; some paths name its year and month."""
    return date(2005 + number % 20, 1 + number % 12, 1 + number % 28)


def _article_path(home: ToyHost, number: int, language: str, area: str, slug: str) -> str:
    start = area + (f"/{language}" if home.prefixed else "")
    if home.style == 0:
        return f"{start}/{_PATH_WORDS.get(language, _ANY_PATH_WORDS)[0]}/{number}-{slug}.html"
    if home.style == 1:
        day = published(number)
        return f"{start}/{day.year}/{day.month:02}/{slug}-{number}/"
    if home.style == 2:
        return f"{start}/index.php?id={number}"
    return f"{start}/{slug}/{number}"


@lru_cache(maxsize=16)
def _fates(web: ToyWeb) -> Shares:
    return Shares([(name, getattr(web, name)) for name in FATES], rest="text")
