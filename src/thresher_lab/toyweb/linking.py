"""Links of the pages of a toy web: in which part of a page they stand, their targets and their words."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct

from thresher_lab.toyweb.content import openings
from thresher_lab.toyweb.dice import between, draws, roll, unit
from thresher_lab.toyweb.hosts import SECTIONS, ToyHost, host, host_in_language
from thresher_lab.toyweb.plan import (
    LIST_LENGTH,
    Article,
    PlannedSpot,
    article,
    elsewhere,
    linked,
    list_pages,
    list_path,
    listing,
)
from thresher_lab.toyweb.texts import text_source
from thresher_lab.toyweb.web import ToyWeb

LATEST = 10  # teasers in the sidebar
PARTNERS = 6  # links to other hosts in the footer
SAME_LANGUAGE = 0.75  # of links to other hosts
TEXT_LINKS = (0, 3)
TEXT_LINK_ABROAD = 0.3  # of links in running text that leave the host
FEED = "/feed.xml"
SID = "@@@@@@@@"  # a placeholder for the session of the page

Place = Literal["head", "menu", "side", "text", "more", "foot"]
ORDERS: tuple[tuple[Place, ...], ...] = (  # of the parts of a page, by the layout of its host
    ("head", "menu", "text", "more", "side", "foot"),
    ("head", "menu", "side", "text", "more", "foot"),
    ("head", "menu", "side", "text", "more", "foot"),
)


class ToyLink(NamedTuple):
    """A link as it is written."""

    href: str
    words: str


class PageFrame(Struct, frozen=True):
    """The links that all pages of a host have in common."""

    menu: tuple[ToyLink, ...]
    side: tuple[ToyLink, ...]
    foot: tuple[ToyLink, ...]

    @property
    def hrefs(self) -> tuple[str, ...]:
        """All of them, as written."""
        return tuple([pointer.href for part in (self.menu, self.side, self.foot) for pointer in part])


def parts(web: ToyWeb, spot: PlannedSpot) -> dict[Place, tuple[ToyLink, ...]]:
    """Return the links of the page at a spot by the part that they stand in, in the order of the page.

    Links that may not be followed and links out of the toy web are left out.
    """
    home = spot.home
    common = frame(web, home.number)
    links: dict[Place, tuple[ToyLink, ...]] = {
        "head": (ToyLink(FEED, ""),) if home.feed else (),
        "menu": common.menu,
        "side": common.side,
        "text": (),
        "more": (),
        "foot": common.foot,
    }
    if spot.kind == "article":
        links["text"], links["more"] = _of_article(web, home, article(web, home.number, spot.number))
    elif spot.kind == "front":
        links["more"] = (
            *sections(web, home),
            *to_articles(home, front_articles(web, home)),
            *traps(home),
        )
    elif spot.kind == "list":
        listed = listing(web, home, spot.number, spot.page)
        links["more"] = (*to_articles(home, listed), *pagination(home, spot.number, spot.page))
    elif spot.kind == "calendar":
        days = calendar_articles(web, home, spot.number, spot.page)
        links["more"] = (*to_articles(home, days), *months(home, spot.number, spot.page))
    elif spot.kind == "deeper":
        links["more"] = (ToyLink("more/", "&raquo;"),)
    return {place: links[place] for place in ORDERS[home.layout]}


def session(web: ToyWeb, spot: PlannedSpot) -> str:
    """Return the session that all links of a page carry, on hosts with sessions: a new one on every page."""
    return f"{roll(web.seed, f'session {spot.path} {spot.sid}', spot.home.number) & 0xFFFFFFFF:08x}"


def href(home: ToyHost, path: str) -> str:
    """Return a path as pages of its host write it."""
    if home.session:
        path += f"{'&' if '?' in path else '?'}sid={SID}"
    if home.absolute:
        return f"{'https' if len(path) % 3 == 0 else 'http'}://{home.name}{path}"
    return path


def to_articles(home: ToyHost, pages: Iterable[Article]) -> tuple[ToyLink, ...]:
    """Return links to articles by their titles."""
    return tuple([ToyLink(href(home, page.path), page.title) for page in pages])


# Links that all pages of a host have in common.


@lru_cache(maxsize=1_024)
def frame(web: ToyWeb, number: int) -> PageFrame:
    """Return the links that all pages of a host have in common."""
    home = host(web, number)
    menu = (ToyLink(href(home, "/"), home.name), *sections(web, home))
    return PageFrame(menu, to_articles(home, latest(web, home)), _partners(web, home))


def sections(web: ToyWeb, home: ToyHost) -> tuple[ToyLink, ...]:
    """Return links to the first list of each section."""
    return tuple(
        [
            ToyLink(href(home, list_path(home, section)), section_name(web, home, section))
            for section in range(1, SECTIONS + 1)
        ]
    )


def section_name(web: ToyWeb, home: ToyHost, section: int) -> str:
    """Return the name of a section, one word."""
    words = text_source(web, home.front_language)
    return words.capitalised(words.phrase(roll(web.seed, "section", home.number, section), 1))


def latest(web: ToyWeb, home: ToyHost) -> list[Article]:
    """Return the articles listed beside every page; a hidden host lists none, so that its front shows no text."""
    shown = LATEST if home.kind != "hidden" else 0
    return [linked(web, home, home.pages - k) for k in range(shown)]


def _partners(web: ToyWeb, home: ToyHost) -> tuple[ToyLink, ...]:
    found = []
    for place in range(PARTNERS):
        bits = roll(web.seed, "partner", home.number, place)
        same = (bits >> 48) / 0x10000 < SAME_LANGUAGE
        friend = host_in_language(web, home.language, bits) if same else host(web, bits % web.hosts)
        found.append(ToyLink(f"{'https' if place % 2 else 'http'}://{friend.name}/", friend.name))
    return tuple(found)


# Links of articles.


def chances(web: ToyWeb, home: ToyHost, page: Article) -> list[int]:
    """Return the random bits that choose the links of an article."""
    drawn = draws(roll(web.seed, "links", home.number, page.number), max(web.links, 8))
    bits: list[int] = drawn.tolist()
    return bits


def text_chances(bits: list[int]) -> list[int]:
    """Return the bits for each link in the running text; there are at most as many as paragraphs."""
    return bits[1 : 1 + between(TEXT_LINKS, bits[0] / 2**64)]


def text_target(web: ToyWeb, home: ToyHost, language: str, bits: int) -> str:
    """Return the target of a link in the running text: another article, here or elsewhere."""
    if (bits & 0xFFFF) / 0x10000 >= TEXT_LINK_ABROAD:
        return href(home, linked(web, home, 1 + (bits >> 24) % home.pages).path)
    same = (bits >> 16 & 0xFFFF) / 0x10000 < SAME_LANGUAGE
    away = host_in_language(web, language, bits >> 32) if same else host(web, (bits >> 32) % web.hosts)
    scheme = "https" if bits >> 20 & 1 else "http"
    return f"{scheme}://{elsewhere(web, away, bits >> 24)}"


def further(web: ToyWeb, home: ToyHost, page: Article, bits: list[int], others: int) -> list[Article]:
    """Return the articles listed after the text: near and far ones, as many as leave room for `others`."""
    count = max(3, web.links - others - 3)
    near = (page.number - 1, page.number + 1, *range(page.number + 2, page.number + 2 + count - count // 4))
    far = [1 + b % home.pages for b in bits[: count // 4]]
    return [linked(web, home, number) for number in (*near, *far)]


def dead_link(web: ToyWeb, home: ToyHost, page: Article) -> str:
    """Return the path of a page that never existed, if the article links to one, or ""."""
    dead = unit(web.seed, "dead link", home.number, page.number) < web.dead_link
    return f"/old/{page.number}" if dead else ""


def _of_article(web: ToyWeb, home: ToyHost, page: Article) -> tuple[tuple[ToyLink, ...], tuple[ToyLink, ...]]:
    """Return the links in the text of an article and the links after it, without composing the whole text."""
    bits = chances(web, home, page)
    wanted = text_chances(bits)
    words = openings(web, home, page, len(wanted)) if wanted else []
    text = tuple(
        [
            ToyLink(text_target(web, home, page.language, chance), said)
            for chance, said in zip(wanted, words, strict=False)
        ]
    )
    others = len(frame(web, home.number).hrefs) + len(text)
    more = to_articles(home, further(web, home, page, bits, others))
    dead = dead_link(web, home, page)
    return text, (*more, ToyLink(dead, page.title)) if dead else more


# Links of other pages.


def front_articles(web: ToyWeb, home: ToyHost) -> list[Article]:
    """Return the latest articles; a hidden host shows none of them."""
    shown = LIST_LENGTH if home.kind != "hidden" else 0
    return [linked(web, home, home.pages - k) for k in range(shown)]


def traps(home: ToyHost) -> tuple[ToyLink, ...]:
    """Return the links from the front page to endless pages."""
    paths = ("/calendar/2024/01",) * home.calendar + ("/archive/",) * home.deeper
    return tuple([ToyLink(href(home, path), "&rarr;") for path in paths])


def pagination(home: ToyHost, section: int, page: int) -> tuple[ToyLink, ...]:
    """Return links to the list before and the list after."""
    last = list_pages(home, section)
    numbers = [other for other in (page - 1, page + 1) if 1 <= other <= last]
    return tuple([ToyLink(href(home, list_path(home, section, n)), str(n)) for n in numbers])


def calendar_articles(web: ToyWeb, home: ToyHost, year: int, month: int) -> list[Article]:
    """Return the articles that a month of the calendar shows."""
    return [linked(web, home, year * 12 + month + day) for day in range(8)]


def months(home: ToyHost, year: int, month: int) -> tuple[ToyLink, ...]:
    """Return links to the month before and to the month after, which never ends."""
    found = []
    for step, arrow in ((-1, "&laquo;"), (1, "&raquo;")):
        count = year * 12 + month - 1 + step
        if 1_000 <= count // 12 <= 9_999:
            found.append(ToyLink(href(home, f"/calendar/{count // 12:04}/{count % 12 + 1:02}"), arrow))
    return tuple(found)
