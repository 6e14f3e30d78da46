"""HTML pages of a toy web: a text between menus, teasers and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from thresher_lab.toyweb.content import archived, directives, paragraphs
from thresher_lab.toyweb.dice import between, roll, unit
from thresher_lab.toyweb.hosts import ToyHost, host
from thresher_lab.toyweb.linking import (
    FEED,
    SID,
    ToyLink,
    calendar_articles,
    chances,
    dead_link,
    frame,
    front_articles,
    further,
    href,
    latest,
    months,
    pagination,
    section_name,
    sections,
    session,
    text_chances,
    text_target,
    traps,
)
from thresher_lab.toyweb.plan import TEXT_FATES, Article, PlannedSpot, article, linked, listing, published
from thresher_lab.toyweb.texts import text_source
from thresher_lab.toyweb.web import ToyWeb

SMALL_PAGE = 4_000  # bytes of a calendar's month, or of "not found"
LICENCE = "https://creativecommons.org/licenses/by-sa/4.0/"
_LAYOUTS = (
    "<header><nav>{menu}</nav></header>\n<main><article><h1>{title}</h1>\n{text}</article>\n"
    "<section>{more}</section></main>\n<aside>{side}</aside>\n<footer>{foot}</footer>",
    '<div id="top"><div class="nav">{menu}</div></div>\n<div class="left">{side}</div>\n'
    '<div class="content"><h1>{title}</h1>\n{text}</div>\n<div class="related">{more}</div>\n'
    '<div class="foot">{foot}</div>',
    '<table width="100%"><tr><td colspan="2">{menu}</td></tr>\n<tr><td width="200" valign="top">{side}</td>\n'
    '<td valign="top"><font size="5"><b>{title}</b></font><br><br>\n{text}{more}</td></tr></table>\n'
    "<center>{foot}</center>",
)
_PARAGRAPHS = ("<p>{}</p>\n", '<div class="par">{}</div>\n', "{}<br><br>\n")


class ToyPage(Struct, frozen=True):
    """A page before it is encoded, in the parts that a reader has to find again."""

    language: str
    title: str
    head: str
    body: str
    size: int  # bytes of HTML to aim for
    paragraphs: tuple[str, ...] = ()
    links: tuple[str, ...] = ()  # as written
    nofollow_links: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()


class PageChrome(Struct, frozen=True):
    """The HTML that all pages of a host have in common."""

    menu: str
    side: str
    foot: str
    links: tuple[str, ...]


def compose(web: ToyWeb, spot: PlannedSpot) -> ToyPage:
    """Return the page at a spot that shows one: an article, a list, a calendar, "not found" and so on."""
    home, size = spot.home, planned_size(web, spot)
    if spot.kind == "article":
        document = _article(web, home, article(web, home.number, spot.number), size)
    elif spot.kind == "front":
        document = _front(web, home, size)
    elif spot.kind == "list":
        document = _list(web, home, spot.number, spot.page, size)
    elif spot.kind == "calendar":
        document = _calendar(web, home, spot.number, spot.page, size)
    elif spot.kind == "deeper":
        document = _deeper(web, home, size)
    else:
        document = _missing(web, home, size)
    return _in_session(web, spot, document) if home.session else document


def planned_size(web: ToyWeb, spot: PlannedSpot) -> int:
    """Return the bytes of HTML that the page at a spot is filled up to, if it is smaller."""
    home = spot.home
    if spot.kind == "article":
        size = between(web.page_bytes, unit(web.seed, "bytes", home.number, spot.number))
        return size if article(web, home.number, spot.number).fate in TEXT_FATES else size // 3
    if spot.kind == "front":
        return between(web.page_bytes, unit(web.seed, "bytes", home.number))
    if spot.kind == "list":
        place = spot.number * 1_000 + spot.page
        return between(web.page_bytes, unit(web.seed, "list bytes", home.number, place))
    return web.page_bytes[0] if spot.kind == "deeper" else SMALL_PAGE


def _article(web: ToyWeb, home: ToyHost, page: Article, size: int) -> ToyPage:
    asks = directives(web, home, page)
    text = paragraphs(web, home, page)
    bits = chances(web, home, page)
    chrome = _chrome(web, home.number)
    shown, links = _with_links(web, home, page, text, text_chances(bits))
    more, targets = _items(web, home, further(web, home, page, bits, len(chrome.links) + len(links)))
    unloved = href(home, linked(web, home, 1 + bits[-1] % home.pages).path)
    more += f'<p class="comments"><a rel="nofollow" href="{_escape(unloved)}">&raquo;</a></p>'
    if dead := dead_link(web, home, page):
        targets.append(dead)
        more += _links([ToyLink(dead, page.title)])
    if asks.licensed:
        more += f'<p class="licence"><a rel="license" href="{LICENCE}">CC BY-SA</a></p>'
        targets.append(LICENCE)
    head = f'<meta name="robots" content="{asks.words}">\n' if asks.words and not asks.in_header else ""
    if web.text == "sentences":
        day = published(page.number)
        head += f'<meta property="article:published_time" content="{day.isoformat()}">\n'
    wrap = _PARAGRAPHS[home.layout]
    return _document(
        home,
        chrome,
        language=page.language,
        title=page.title,
        head=head,
        text="".join([wrap.format(html) for html in shown]),
        more=more,
        paragraphs=tuple(text),
        links=[*links, *targets],
        nofollow_links=(unloved,),
        size=size,
    )


def _front(web: ToyWeb, home: ToyHost, size: int) -> ToyPage:
    """Return the front page: the latest articles, or a text of its own if the host hides its articles."""
    words = text_source(web, home.front_language)
    title = words.capitalised(words.phrase(roll(web.seed, "host title", home.number), 3))
    text: list[str] = []
    if home.kind == "hidden":
        text = words.paragraphs(roll(web.seed, "front text", home.number), web.text_chars[0])
    menu, ways = sections(web, home), traps(home)
    teasers, targets = _items(web, home, front_articles(web, home), phrases=True, key=home.number)
    wrap = _PARAGRAPHS[home.layout]
    return _document(
        home,
        _chrome(web, home.number),
        language=home.front_language,
        title=title,
        text="".join([wrap.format(paragraph) for paragraph in text]),
        more=_links(menu) + teasers + _links(ways),
        paragraphs=tuple(text),
        links=[*_hrefs(menu), *targets, *_hrefs(ways)],
        size=size,
    )


def _list(web: ToyWeb, home: ToyHost, section: int, page: int, size: int) -> ToyPage:
    more, targets = _items(web, home, listing(web, home, section, page), phrases=True, key=section)
    others = pagination(home, section, page)
    return _document(
        home,
        _chrome(web, home.number),
        language=home.front_language,
        title=section_name(web, home, section),
        more=more + "".join([_links([other]) for other in others]),
        links=[*targets, *_hrefs(others)],
        size=size,
    )


def _calendar(web: ToyWeb, home: ToyHost, year: int, month: int, size: int) -> ToyPage:
    more, targets = _items(web, home, calendar_articles(web, home, year, month))
    others = months(home, year, month)
    return _document(
        home,
        _chrome(web, home.number),
        language=home.front_language,
        title=f"{month}/{year}",
        more=more + "".join([_links([other]) for other in others]),
        links=[*targets, *_hrefs(others)],
        size=size,
    )


def _deeper(web: ToyWeb, home: ToyHost, size: int) -> ToyPage:
    """Return the same article again, with a relative link that makes the path one longer."""
    shown = archived(web, home)
    text = paragraphs(web, home, shown) if shown else []
    wrap = _PARAGRAPHS[home.layout]
    return _document(
        home,
        _chrome(web, home.number),
        language=shown.language if shown else home.language,
        title=shown.title if shown else home.name,
        text="".join([wrap.format(paragraph) for paragraph in text]),
        more=_links([ToyLink("more/", "&raquo;")]),
        paragraphs=tuple(text),
        links=["more/"],
        size=size,
    )


def _missing(web: ToyWeb, home: ToyHost, size: int) -> ToyPage:
    """Return "not found" in the language of the host: the same few words for every URL."""
    words = text_source(web, home.front_language)
    text = words.paragraphs(roll(web.seed, "not found", home.number), web.thin_chars[0])
    return _document(
        home,
        _chrome(web, home.number),
        language=home.front_language,
        title="404",
        text=_PARAGRAPHS[home.layout].format(text[0]),
        paragraphs=tuple(text),
        size=size,
    )


def _document(
    home: ToyHost,
    chrome: PageChrome,
    *,
    language: str,
    title: str,
    size: int,
    head: str = "",
    text: str = "",
    more: str = "",
    paragraphs: tuple[str, ...] = (),
    links: list[str] | None = None,
    nofollow_links: tuple[str, ...] = (),
) -> ToyPage:
    feeds: tuple[str, ...] = ()
    if home.feed:
        feeds = (FEED,)
        head += f'<link rel="alternate" type="application/{home.feed}+xml" href="{FEED}">\n'
    layout = _LAYOUTS[home.layout]
    body = layout.format(
        menu=chrome.menu, side=chrome.side, foot=chrome.foot, title=title, text=text, more=more
    )
    found = (*chrome.links, *(links or ()))
    return ToyPage(language, title, head, body, size, paragraphs, found, nofollow_links, feeds)


def _in_session(web: ToyWeb, spot: PlannedSpot, document: ToyPage) -> ToyPage:
    """Return the page with its session in all its links."""
    sid = session(web, spot)
    return ToyPage(
        document.language,
        document.title,
        document.head,
        document.body.replace(SID, sid),
        document.size,
        document.paragraphs,
        tuple([link.replace(SID, sid) for link in document.links]),
        tuple([link.replace(SID, sid) for link in document.nofollow_links]),
        document.feeds,
    )


@lru_cache(maxsize=1_024)
def _chrome(web: ToyWeb, number: int) -> PageChrome:
    home, common = host(web, number), frame(web, number)
    side, _ = _items(web, home, latest(web, home), phrases=True, key=home.number)
    foot = _links(common.foot) + f"<small>&copy; {home.name}</small>"
    return PageChrome(_links(common.menu), side, foot, common.hrefs)


def _items(
    web: ToyWeb, home: ToyHost, pages: list[Article], *, phrases: bool = False, key: int = 0
) -> tuple[str, list[str]]:
    """Return a list of links to articles, on request with the first words of each, and their targets."""
    targets = [href(home, page.path) for page in pages]
    items = []
    for page, target in zip(pages, targets, strict=True):
        start = ""
        if phrases:
            words = text_source(web, page.language).phrase(key * 1_000 + page.number, 5)
            start = f" <span>{words} &hellip;</span>"
        items.append(f'<li class="item"><a href="{_escape(target)}">{page.title}</a>{start}</li>\n')
    return f'<ul class="items">\n{"".join(items)}</ul>\n' if items else "", targets


def _links(targets: Sequence[ToyLink]) -> str:
    items = [f'<li><a href="{_escape(target)}">{words}</a></li>\n' for target, words in targets]
    return f"<ul>\n{''.join(items)}</ul>\n" if items else ""


def _hrefs(targets: Sequence[ToyLink]) -> list[str]:
    return [pointer.href for pointer in targets]


def _with_links(
    web: ToyWeb, home: ToyHost, page: Article, text: list[str], bits: list[int]
) -> tuple[list[str], list[str]]:
    """Return the paragraphs, with a link in each of the first ones, and the targets of these links."""
    space = text_source(web, page.language).space
    shown, targets = [], []
    for paragraph, chance in zip(text, bits, strict=False):
        words = paragraph.split(" ", 7) if space else [*paragraph[:7], paragraph[7:]]
        targets.append(text_target(web, home, page.language, chance))
        link = f'<a href="{_escape(targets[-1])}">{space.join(words[3:6])}</a>'
        shown.append(space.join([*words[:3], link, *words[6:]]))
    return [*shown, *text[len(shown) :]], targets


def _escape(href: str) -> str:
    return href.replace("&", "&amp;") if "&" in href else href
