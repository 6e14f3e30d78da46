"""HTML pages of a toy web: text in its midst, menus, teasers and scripts around it."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from thresher.lab.toyweb.content import archived, directives, paragraphs
from thresher.lab.toyweb.dice import between, draws, roll, unit
from thresher.lab.toyweb.hosts import SECTIONS, Host, host, kin
from thresher.lab.toyweb.plan import (
    LIST_LENGTH,
    TEXT_FATES,
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
LICENCE = "https://creativecommons.org/licenses/by-sa/4.0/"
_SID = "@@@@@@@@"  # stands for the session until the page's own is known
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


class Document(Struct, frozen=True):
    """A page before it is encoded: the parts that a reader would have to find again."""

    language: str
    title: str
    head: str
    body: str
    size: int  # bytes of HTML to aim for
    paragraphs: tuple[str, ...] = ()
    links: tuple[str, ...] = ()  # as written
    nofollow_links: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()


class Chrome(Struct, frozen=True):
    """What all pages of a host have in common."""

    menu: str
    side: str
    foot: str
    links: tuple[str, ...]


def compose(web: ToyWeb, spot: Spot) -> Document:
    """The page at a spot that shows one: an article's text, a list, a calendar, "not found" …"""
    home = spot.home
    if spot.kind == "article":
        document = _article(web, home, article(web, home.number, spot.number))
    elif spot.kind == "front":
        document = _front(web, home)
    elif spot.kind == "list":
        document = _list(web, home, spot.number, spot.page)
    elif spot.kind == "calendar":
        document = _calendar(web, home, spot.number, spot.page)
    elif spot.kind == "deeper":
        document = _deeper(web, home)
    else:
        document = _missing(web, home)
    return _in_session(web, home, spot, document) if home.session else document


def _article(web: ToyWeb, home: Host, page: Article) -> Document:
    asks = directives(web, home, page)
    text = paragraphs(web, home, page)
    bits = draws(roll(web.seed, "links", home.number, page.number), max(web.links, 8)).tolist()
    chrome = _chrome(web, home.number)
    shown = [_with_link(web, home, page, paragraph, b) for paragraph, b in _spread(text, bits)]
    links = [link for _, link in shown if link]
    before, after = linked(web, home, page.number - 1), linked(web, home, page.number + 1)
    count = max(3, web.links - len(chrome.links) - len(links) - 3)
    neighbours = [linked(web, home, page.number + 2 + k) for k in range(count - count // 4)]
    distant = [linked(web, home, 1 + b % home.pages) for b in bits[: count // 4]]
    more, targets = _items(home, [before, after, *neighbours, *distant])
    unloved = _href(home, linked(web, home, 1 + bits[-1] % home.pages).path)
    more += f'<p class="comments"><a rel="nofollow" href="{_escape(unloved)}">&raquo;</a></p>'
    if unit(web.seed, "dead link", home.number, page.number) < web.dead_link:
        targets.append(f"/old/{page.number}")
        more += _links([(targets[-1], page.title)])
    if asks.licensed:
        more += f'<p class="licence"><a rel="license" href="{LICENCE}">CC BY-SA</a></p>'
        targets.append(LICENCE)
    head = f'<meta name="robots" content="{asks.words}">\n' if asks.words and not asks.in_header else ""
    wrap = _PARAGRAPHS[home.layout]
    size = between(web.page_bytes, unit(web.seed, "bytes", home.number, page.number))
    return _document(
        home,
        chrome,
        language=page.language,
        title=page.title,
        head=head,
        text="".join([wrap.format(html) for html, _ in shown]),
        more=more,
        paragraphs=tuple(text),
        links=[*links, *targets],
        nofollow_links=(unloved,),
        size=size if page.fate in TEXT_FATES else size // 3,
    )


def _front(web: ToyWeb, home: Host) -> Document:
    """The front page: latest articles, or a text of its own where it hides what is inside."""
    words = vocabulary(home.front_language)
    title = words.capitalised(words.phrase(roll(web.seed, "host title", home.number), 3))
    sections = [_href(home, list_path(home, section)) for section in range(1, SECTIONS + 1)]
    more = _links([(path, _section_name(web, home, k)) for k, path in enumerate(sections, 1)])
    text: list[str] = []
    if home.kind == "hidden":
        text = words.paragraphs(roll(web.seed, "front text", home.number), web.text_chars[0])
    else:
        latest = [linked(web, home, home.pages - k) for k in range(LIST_LENGTH)]
        teasers, targets = _items(home, latest, phrases=True, key=home.number)
        more, sections = more + teasers, sections + targets
    traps = []
    if home.calendar:
        traps.append(_href(home, "/calendar/2024/01"))
    if home.deeper:
        traps.append(_href(home, "/archive/"))
    more += _links([(trap, "&rarr;") for trap in traps])
    wrap = _PARAGRAPHS[home.layout]
    return _document(
        home,
        _chrome(web, home.number),
        language=home.front_language,
        title=title,
        text="".join([wrap.format(paragraph) for paragraph in text]),
        more=more,
        paragraphs=tuple(text),
        links=[*sections, *traps],
        size=between(web.page_bytes, unit(web.seed, "bytes", home.number)),
    )


def _list(web: ToyWeb, home: Host, section: int, page: int) -> Document:
    more, targets = _items(home, listing(web, home, section, page), phrases=True, key=section)
    for other in (page - 1, page + 1):
        if 1 <= other <= list_pages(home, section):
            targets.append(_href(home, list_path(home, section, other)))
            more += _links([(targets[-1], str(other))])
    size = between(web.page_bytes, unit(web.seed, "list bytes", home.number, section * 1_000 + page))
    title = _section_name(web, home, section)
    return _document(
        home,
        _chrome(web, home.number),
        language=home.front_language,
        title=title,
        more=more,
        links=targets,
        size=size,
    )


def _calendar(web: ToyWeb, home: Host, year: int, month: int) -> Document:
    """A month with its days, the month before and, without end, the one after."""
    days = [linked(web, home, year * 12 + month + day) for day in range(8)]
    more, targets = _items(home, days)
    for step in (-1, 1):
        months = year * 12 + month - 1 + step
        if 1_000 <= months // 12 <= 9_999:
            targets.append(_href(home, f"/calendar/{months // 12:04}/{months % 12 + 1:02}"))
            more += _links([(targets[-1], "&laquo;" if step < 0 else "&raquo;")])
    title = f"{month}/{year}"
    return _document(
        home,
        _chrome(web, home.number),
        language=home.front_language,
        title=title,
        more=more,
        links=targets,
        size=4_000,
    )


def _deeper(web: ToyWeb, home: Host) -> Document:
    """The same article again, and a relative link that makes the path one longer."""
    shown = archived(web, home)
    text = paragraphs(web, home, shown) if shown else []
    wrap = _PARAGRAPHS[home.layout]
    return _document(
        home,
        _chrome(web, home.number),
        language=home.language,
        title=shown.title if shown else home.name,
        text="".join([wrap.format(paragraph) for paragraph in text]),
        more=_links([("more/", "&raquo;")]),
        paragraphs=tuple(text),
        links=["more/"],
        size=web.page_bytes[0],
    )


def _missing(web: ToyWeb, home: Host) -> Document:
    """ "Not found" in the host's language: the same few words whatever was asked for."""
    words = vocabulary(home.front_language)
    text = words.paragraphs(roll(web.seed, "not found", home.number), web.thin_chars[0])
    return _document(
        home,
        _chrome(web, home.number),
        language=home.front_language,
        title="404",
        text=_PARAGRAPHS[home.layout].format(text[0]),
        paragraphs=tuple(text),
        size=4_000,
    )


def _document(
    home: Host,
    chrome: Chrome,
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
) -> Document:
    feeds: tuple[str, ...] = ()
    if home.feed:
        feeds = ("/feed.xml",)
        head += f'<link rel="alternate" type="application/{home.feed}+xml" href="/feed.xml">\n'
    layout = _LAYOUTS[home.layout]
    body = layout.format(
        menu=chrome.menu, side=chrome.side, foot=chrome.foot, title=title, text=text, more=more
    )
    found = (*chrome.links, *(links or ()))
    return Document(language, title, head, body, size, paragraphs, found, nofollow_links, feeds)


def _in_session(web: ToyWeb, home: Host, spot: Spot, document: Document) -> Document:
    """The page with a session in all its links: a new one on every page, so that it never ends."""
    sid = f"{roll(web.seed, f'session {spot.path} {spot.sid}', home.number) & 0xFFFFFFFF:08x}"
    return Document(
        document.language,
        document.title,
        document.head,
        document.body.replace(_SID, sid),
        document.size,
        document.paragraphs,
        tuple([link.replace(_SID, sid) for link in document.links]),
        tuple([link.replace(_SID, sid) for link in document.nofollow_links]),
        document.feeds,
    )


@lru_cache(maxsize=1_024)
def _chrome(web: ToyWeb, number: int) -> Chrome:
    home = host(web, number)
    sections = [
        (_href(home, list_path(home, k)), _section_name(web, home, k)) for k in range(1, SECTIONS + 1)
    ]
    menu = [(_href(home, "/"), home.name), *sections]
    inside = home.kind != "hidden"  # a hidden host does not show from outside what it holds
    latest = [linked(web, home, home.pages - k) for k in range(LATEST if inside else 0)]
    side, teased = _items(home, latest, phrases=True, key=home.number)
    partners = []
    for place in range(PARTNERS):
        bits = roll(web.seed, "partner", number, place)
        same = (bits >> 48) / 0x10000 < SAME_LANGUAGE
        friend = kin(web, home.language, bits) if same else host(web, bits % web.hosts)
        partners.append((f"{'https' if place % 2 else 'http'}://{friend.name}/", friend.name))
    foot = _links(partners) + f"<small>&copy; {home.name}</small>"
    links = (*[path for path, _ in menu], *teased, *[path for path, _ in partners])
    return Chrome(_links(menu), side, foot, links)


def _section_name(web: ToyWeb, home: Host, section: int) -> str:
    words = vocabulary(home.front_language)
    return words.capitalised(words.phrase(roll(web.seed, "section", home.number, section), 1))


def _items(home: Host, pages: list[Article], *, phrases: bool = False, key: int = 0) -> tuple[str, list[str]]:
    """A list of links to articles, with the first words of each if asked for."""
    targets = [_href(home, page.path) for page in pages]
    items = []
    for page, target in zip(pages, targets, strict=True):
        start = ""
        if phrases:
            start = f" <span>{vocabulary(page.language).phrase(key * 1_000 + page.number, 5)} &hellip;</span>"
        items.append(f'<li class="item"><a href="{_escape(target)}">{page.title}</a>{start}</li>\n')
    return f'<ul class="items">\n{"".join(items)}</ul>\n' if items else "", targets


def _links(targets: list[tuple[str, str]]) -> str:
    items = [f'<li><a href="{_escape(target)}">{name}</a></li>\n' for target, name in targets]
    return f"<ul>\n{''.join(items)}</ul>\n" if items else ""


def _spread(text: list[str], bits: list[int]) -> list[tuple[str, int]]:
    """Each paragraph, with random bits where a link is to stand in it and 0 where none is."""
    wanted = between(TEXT_LINKS, bits[0] / 2**64)
    return [(paragraph, bits[1 + k] if k < wanted else 0) for k, paragraph in enumerate(text)]


def _with_link(web: ToyWeb, home: Host, page: Article, paragraph: str, bits: int) -> tuple[str, str]:
    """The paragraph with a few of its words made a link, and where that leads."""
    space = vocabulary(page.language).space
    words = paragraph.split(" ", 7) if space else [*paragraph[:7], paragraph[7:]]
    if not bits or len(words) < 8:
        return paragraph, ""
    if (bits & 0xFFFF) / 0x10000 < TEXT_LINK_ABROAD:
        same = (bits >> 16 & 0xFFFF) / 0x10000 < SAME_LANGUAGE
        away = kin(web, page.language, bits >> 32) if same else host(web, (bits >> 32) % web.hosts)
        scheme = "https" if bits >> 20 & 1 else "http"
        target = f"{scheme}://{elsewhere(web, away, bits >> 24)}"
    else:
        target = _href(home, linked(web, home, 1 + (bits >> 24) % home.pages).path)
    anchor = space.join(words[3:6])
    shown = f'<a href="{_escape(target)}">{anchor}</a>'
    return space.join([*words[:3], shown, *words[6:]]), target


def _href(home: Host, path: str) -> str:
    if home.session:
        path += f"{'&' if '?' in path else '?'}sid={_SID}"
    if home.absolute:
        return f"{'https' if len(path) % 3 == 0 else 'http'}://{home.name}{path}"
    return path


def _escape(href: str) -> str:
    return href.replace("&", "&amp;") if "&" in href else href
