"""Where the pages of a toy web lead: which links stand in which part of a page, and what they say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct

from thresher.lab.toyweb.content import openings
from thresher.lab.toyweb.dice import between, draws, roll, unit
from thresher.lab.toyweb.hosts import SECTIONS, Host, host, kin
from thresher.lab.toyweb.plan import (
    LIST_LENGTH,
    Article,
    Spot,
    article,
    elsewhere,
    linked,
    list_pages,
    list_path,
    listing,
)
from thresher.lab.toyweb.web import ToyWeb
from thresher.lab.toyweb.words import vocabulary

LATEST = 10  # teasers in the sidebar
PARTNERS = 6  # links to other hosts in the footer
SAME_LANGUAGE = 0.75  # of links to other hosts
TEXT_LINKS = (0, 3)
TEXT_LINK_ABROAD = 0.3  # of links in running text that leave the host
FEED = "/feed.xml"
SID = "@@@@@@@@"  # stands for the session until the page's own is known

Place = Literal["head", "menu", "side", "text", "more", "foot"]
ORDERS: tuple[tuple[Place, ...], ...] = (  # of the parts of a page, by the layout of its host
    ("head", "menu", "text", "more", "side", "foot"),
    ("head", "menu", "side", "text", "more", "foot"),
    ("head", "menu", "side", "text", "more", "foot"),
)


class Pointer(NamedTuple):
    """A link as it is written."""

    href: str
    words: str


class Frame(Struct, frozen=True):
    """The links that all pages of a host have in common."""

    menu: tuple[Pointer, ...]
    side: tuple[Pointer, ...]
    foot: tuple[Pointer, ...]

    @property
    def hrefs(self) -> tuple[str, ...]:
        """All of them, as written."""
        return tuple([pointer.href for part in (self.menu, self.side, self.foot) for pointer in part])


def parts(web: ToyWeb, spot: Spot) -> dict[Place, tuple[Pointer, ...]]:
    """The links of the page at a spot by the part that they stand in, in the order of the page.

    Those that may not be followed and those that leave the toy web are left out.
    """
    home = spot.home
    common = frame(web, home.number)
    found: dict[Place, tuple[Pointer, ...]] = {
        "head": (Pointer(FEED, ""),) if home.feed else (),
        "menu": common.menu,
        "side": common.side,
        "text": (),
        "more": (),
        "foot": common.foot,
    }
    if spot.kind == "article":
        found["text"], found["more"] = _of_article(web, home, article(web, home.number, spot.number))
    elif spot.kind == "front":
        found["more"] = (
            *sections(web, home),
            *to_articles(home, front_articles(web, home)),
            *traps(home),
        )
    elif spot.kind == "list":
        listed = listing(web, home, spot.number, spot.page)
        found["more"] = (*to_articles(home, listed), *pagination(home, spot.number, spot.page))
    elif spot.kind == "calendar":
        days = calendar_articles(web, home, spot.number, spot.page)
        found["more"] = (*to_articles(home, days), *months(home, spot.number, spot.page))
    elif spot.kind == "deeper":
        found["more"] = (Pointer("more/", "&raquo;"),)
    return {place: found[place] for place in ORDERS[home.layout]}


def session(web: ToyWeb, spot: Spot) -> str:
    """The session that all links of a page of a host with sessions carry: a new one on every page."""
    return f"{roll(web.seed, f'session {spot.path} {spot.sid}', spot.home.number) & 0xFFFFFFFF:08x}"


def href(home: Host, path: str) -> str:
    """How pages of a host write a path of theirs."""
    if home.session:
        path += f"{'&' if '?' in path else '?'}sid={SID}"
    if home.absolute:
        return f"{'https' if len(path) % 3 == 0 else 'http'}://{home.name}{path}"
    return path


def to_articles(home: Host, pages: Iterable[Article]) -> tuple[Pointer, ...]:
    """Links to articles by their titles."""
    return tuple([Pointer(href(home, page.path), page.title) for page in pages])


# what pages have in common


@lru_cache(maxsize=1_024)
def frame(web: ToyWeb, number: int) -> Frame:
    """The links that all pages of a host have in common."""
    home = host(web, number)
    menu = (Pointer(href(home, "/"), home.name), *sections(web, home))
    return Frame(menu, to_articles(home, latest(web, home)), _partners(web, home))


def sections(web: ToyWeb, home: Host) -> tuple[Pointer, ...]:
    """Links to the first list of each section."""
    return tuple(
        [
            Pointer(href(home, list_path(home, section)), section_name(web, home, section))
            for section in range(1, SECTIONS + 1)
        ]
    )


def section_name(web: ToyWeb, home: Host, section: int) -> str:
    """The one word that a section goes by."""
    words = vocabulary(home.front_language)
    return words.capitalised(words.phrase(roll(web.seed, "section", home.number, section), 1))


def latest(web: ToyWeb, home: Host) -> list[Article]:
    """The articles beside every page; a hidden host does not show from outside what it holds."""
    shown = LATEST if home.kind != "hidden" else 0
    return [linked(web, home, home.pages - k) for k in range(shown)]


def _partners(web: ToyWeb, home: Host) -> tuple[Pointer, ...]:
    found = []
    for place in range(PARTNERS):
        bits = roll(web.seed, "partner", home.number, place)
        same = (bits >> 48) / 0x10000 < SAME_LANGUAGE
        friend = kin(web, home.language, bits) if same else host(web, bits % web.hosts)
        found.append(Pointer(f"{'https' if place % 2 else 'http'}://{friend.name}/", friend.name))
    return tuple(found)


# articles


def chances(web: ToyWeb, home: Host, page: Article) -> list[int]:
    """The random bits that choose the links of an article."""
    drawn = draws(roll(web.seed, "links", home.number, page.number), max(web.links, 8))
    bits: list[int] = drawn.tolist()
    return bits


def text_chances(bits: list[int]) -> list[int]:
    """Those for each link in the running text; there are no more than paragraphs."""
    return bits[1 : 1 + between(TEXT_LINKS, bits[0] / 2**64)]


def text_target(web: ToyWeb, home: Host, language: str, bits: int) -> str:
    """Where a link in the running text leads: to another article, here or elsewhere."""
    if (bits & 0xFFFF) / 0x10000 >= TEXT_LINK_ABROAD:
        return href(home, linked(web, home, 1 + (bits >> 24) % home.pages).path)
    same = (bits >> 16 & 0xFFFF) / 0x10000 < SAME_LANGUAGE
    away = kin(web, language, bits >> 32) if same else host(web, (bits >> 32) % web.hosts)
    scheme = "https" if bits >> 20 & 1 else "http"
    return f"{scheme}://{elsewhere(web, away, bits >> 24)}"


def further(web: ToyWeb, home: Host, page: Article, bits: list[int], others: int) -> list[Article]:
    """The articles that follow the text: neighbours and some far ones, as many as leave room for `others`."""
    count = max(3, web.links - others - 3)
    near = (page.number - 1, page.number + 1, *range(page.number + 2, page.number + 2 + count - count // 4))
    far = [1 + b % home.pages for b in bits[: count // 4]]
    return [linked(web, home, number) for number in (*near, *far)]


def dead_link(web: ToyWeb, home: Host, page: Article) -> str:
    """The path of a page that was never there, where an article names one."""
    dead = unit(web.seed, "dead link", home.number, page.number) < web.dead_link
    return f"/old/{page.number}" if dead else ""


def _of_article(web: ToyWeb, home: Host, page: Article) -> tuple[tuple[Pointer, ...], tuple[Pointer, ...]]:
    """The links in the text of an article and those after it; no more of the text is written than needed."""
    bits = chances(web, home, page)
    wanted = text_chances(bits)
    words = openings(web, home, page, len(wanted)) if wanted else []
    text = tuple(
        [
            Pointer(text_target(web, home, page.language, chance), said)
            for chance, said in zip(wanted, words, strict=False)
        ]
    )
    others = len(frame(web, home.number).hrefs) + len(text)
    more = to_articles(home, further(web, home, page, bits, others))
    dead = dead_link(web, home, page)
    return text, (*more, Pointer(dead, page.title)) if dead else more


# other pages


def front_articles(web: ToyWeb, home: Host) -> list[Article]:
    """The latest articles; a hidden host shows none of them."""
    shown = LIST_LENGTH if home.kind != "hidden" else 0
    return [linked(web, home, home.pages - k) for k in range(shown)]


def traps(home: Host) -> tuple[Pointer, ...]:
    """The ways from the front page to what never ends."""
    paths = ("/calendar/2024/01",) * home.calendar + ("/archive/",) * home.deeper
    return tuple([Pointer(href(home, path), "&rarr;") for path in paths])


def pagination(home: Host, section: int, page: int) -> tuple[Pointer, ...]:
    """The list before and the list after."""
    last = list_pages(home, section)
    numbers = [other for other in (page - 1, page + 1) if 1 <= other <= last]
    return tuple([Pointer(href(home, list_path(home, section, n)), str(n)) for n in numbers])


def calendar_articles(web: ToyWeb, home: Host, year: int, month: int) -> list[Article]:
    """What a month of the calendar shows."""
    return [linked(web, home, year * 12 + month + day) for day in range(8)]


def months(home: Host, year: int, month: int) -> tuple[Pointer, ...]:
    """The month before and, without end, the one after."""
    found = []
    for step, arrow in ((-1, "&laquo;"), (1, "&raquo;")):
        count = year * 12 + month - 1 + step
        if 1_000 <= count // 12 <= 9_999:
            found.append(Pointer(href(home, f"/calendar/{count // 12:04}/{count % 12 + 1:02}"), arrow))
    return tuple(found)
