"""The oracle: the perfect reading of each URL of a toy web, and the URLs that an obedient crawler can reach."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec import Struct

from thresher.urls import canonical, key
from thresher.urls import host as host_name
from thresher_lab.toyweb.answers import ToyAnswer, answer, page_status
from thresher_lab.toyweb.content import archived, charset, directives, reprinted
from thresher_lab.toyweb.files import compose_file
from thresher_lab.toyweb.hosts import at_rank, spans
from thresher_lab.toyweb.pages import LICENCE, compose
from thresher_lab.toyweb.plan import OPEN, PRIVATE, TEXT_FATES, Article, PlannedSpot, article, locate
from thresher_lab.toyweb.web import ToyWeb

SEEDS_PER_LANGUAGE = 3
MAX_REDIRECTS = 8


class Truth(Struct, frozen=True):
    """All facts about a URL. Links are canonical URLs."""

    url: str
    kind: str  # of spot, or the article's fate: "text", "thin", "list", "redirect", "soft 404", "robots" …
    status: int  # of the answer; of a flaky one, once it succeeds
    language: str = ""
    title: str = ""
    text: str = ""  # paragraphs, one per line, exactly as in a clean text
    charset: str = ""  # the true one
    links: tuple[str, ...] = ()  # that may be followed if `nofollow` is false
    nofollow_links: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()  # named in the page's head
    location: str = ""  # of a redirect
    group: str = ""  # URL of the first page with this text: equal for exact duplicates
    duplicate_of: str | None = None  # the group, where it is another URL
    near_duplicate_of: str | None = None
    disallowed: bool = False  # by robots.txt
    noindex: bool = False
    nofollow: bool = False
    noai: bool = False
    license: str = ""
    junk: bool = False  # no text written by a person
    trap: bool = False  # one of endlessly many
    keepable: bool = False  # good if it is the first of its group to be met
    good: bool = False  # keepable and no duplicate
    reason: str = ""  # why it is not good


def truth(web: ToyWeb, url: str) -> Truth:
    """Return the truth about any URL, in the toy web or not."""
    spot = locate(web, url)
    url = canonical(url) or url
    if spot is None:
        return Truth(url=url, kind="unknown host", status=502, disallowed=True, reason="unknown host")
    if spot.kind in ("robots", "sitemap index", "sitemap", "feed"):
        return _of_file(web, spot, url)
    if spot.kind == "article":
        page = article(web, spot.home.number, spot.number)
        if page.fate not in (*TEXT_FATES, "thin"):
            return _of_failure(web, spot, page, url)
        return _of_page(web, spot, page, url)
    return _of_page(web, spot, None, url)


def seeds(web: ToyWeb) -> dict[str, list[str]]:
    """Return front pages to start from, a few for each language."""
    found: dict[str, list[str]] = {language: [] for language in web.languages}
    for span in spans(web):
        if span.kind in ("rich", "foreign"):
            homes = (at_rank(web, rank) for rank in range(span.start, span.end))
            fronts = (f"http://{home.name}/" for home in homes if home.robots != "broken")
            found[span.language] = list(islice(fronts, SEEDS_PER_LANGUAGE))
    return found


def reachable(
    web: ToyWeb,
    seeds: Iterable[str],
    *,
    host_pages: int | None = None,
    follow: Callable[[str], bool] = lambda _: True,
    max_redirects: int = MAX_REDIRECTS,
) -> Iterator[tuple[str, Truth]]:
    """Yield all URLs that an obedient crawler downloads, breadth first, with the truth about each.

    At most `host_pages` URLs of a host are walked (by default twice as many as the largest host has articles, and
    a few: enough for all hosts but the endless ones), and only URLs that `follow` lets pass.
    """
    limit = host_pages or 2 * web.pages_per_host[1] + 50
    queue: deque[tuple[str, int]] = deque()
    seen: set[bytes] = set()
    taken: Counter[str] = Counter()

    def add(urls: Iterable[str], hops: int = 0) -> None:
        for url in urls:
            name = host_name(url)
            if taken[name] == 0 and locate(web, url) is not None:
                taken[name] += 1
                robots = f"http://{name}/robots.txt"
                seen.add(key(robots))
                queue.append((robots, 0))
            if taken[name] <= limit and key(url) not in seen and hops <= max_redirects and follow(url):
                seen.add(key(url))
                taken[name] += 1
                queue.append((url, hops))

    add(url for seed in seeds if (url := canonical(seed)))
    while queue:
        url, hops = queue.popleft()
        page = truth(web, url)
        if page.disallowed:
            continue
        yield url, page
        if page.location:
            add([page.location], hops + 1)
        if not page.nofollow:
            add(page.links)
            add(page.feeds)


def forbidden(spot: PlannedSpot) -> bool:
    """Return whether robots.txt keeps an obedient crawler away."""
    if spot.path == "/robots.txt":
        return False  # It may always be requested.
    if spot.home.robots == "broken":
        return True  # RFC 9309: an unreachable robots.txt forbids all
    inside = spot.path.startswith(f"{PRIVATE}/") and not spot.path.startswith(f"{OPEN}/")
    return spot.home.ruled and (inside or "?print=" in spot.path)


def _of_file(web: ToyWeb, spot: PlannedSpot, url: str) -> Truth:
    reply = answer(web, url)
    disallowed = forbidden(spot)
    return Truth(
        url=url,
        kind=spot.kind,
        status=reply.status,
        links=_canonical(compose_file(web, spot).links, url) if reply.status == 200 else (),
        location=_location(reply, url),
        disallowed=disallowed,
        reason="disallowed" if disallowed else "no page",
    )


def _of_failure(web: ToyWeb, spot: PlannedSpot, page: Article, url: str) -> Truth:
    reply = answer(web, url)
    disallowed = forbidden(spot)
    return Truth(
        url=url,
        kind=page.fate,
        status=reply.status,
        location=_location(reply, url),
        disallowed=disallowed,
        trap=bool(spot.sid),
        reason="disallowed" if disallowed else page.fate,
    )


def _location(reply: ToyAnswer, url: str) -> str:
    return next((canonical(value, url) or "" for name, value in reply.headers if name == "Location"), "")


def _of_page(web: ToyWeb, spot: PlannedSpot, page: Article | None, url: str) -> Truth:
    home, status, disallowed = spot.home, page_status(spot), forbidden(spot)
    document = compose(web, spot)
    text = "\n".join(document.paragraphs)
    asks = directives(web, home, page) if page else None
    group, near = owner(web, spot, page) if text else ("", None)
    kind = page.fate if page else spot.kind
    if kind == "missing" and status == 200:
        kind = "soft 404"
    junk = kind in ("soft 404", "missing", "calendar") or (
        home.kind == "spam" and kind not in ("front", "list")
    )
    reason = _reason(web, document.language, len(text), status, disallowed=disallowed)
    if not reason:
        reason = "noindex" if asks and asks.noindex else "junk" if junk else ""
    duplicate = group if group and key(group) != key(url) else None
    return Truth(
        url=url,
        kind=kind,
        status=status,
        language=document.language,
        title=document.title,
        text=text,
        charset=charset(web, spot, document.language).codec,
        links=_canonical(document.links, url),
        nofollow_links=_canonical(document.nofollow_links, url),
        feeds=_canonical(document.feeds, url),
        group=group,
        duplicate_of=duplicate,
        near_duplicate_of=near,
        disallowed=disallowed,
        noindex=bool(asks and asks.noindex),
        nofollow=bool(asks and asks.nofollow),
        noai=bool(asks and asks.noai),
        license=LICENCE if asks and asks.licensed else "",
        junk=junk,
        trap=bool(spot.sid) or spot.kind in ("calendar", "deeper"),
        keepable=not reason,
        good=not reason and not duplicate,
        reason=reason or ("duplicate" if duplicate else ""),
    )


def _reason(web: ToyWeb, language: str, length: int, status: int, *, disallowed: bool) -> str:
    if disallowed:
        return "disallowed"
    if status != 200:
        return f"status {status}"
    if length < web.min_text_chars:
        return "too short"
    return "" if language == web.target else "language"


def owner(web: ToyWeb, spot: PlannedSpot, page: Article | None) -> tuple[str, str | None]:
    """Return the URL that a page's text belongs to, and the URL of the text that it was edited from, or None."""
    home = spot.home
    if spot.kind == "deeper":
        page = archived(web, home)
    if page is None:
        return f"http://{home.name}{spot.path}", None
    taken = reprinted(web, home, page)
    own = f"http://{home.name}{page.path}"
    if taken is None:
        return own, None
    giver, given, edited = taken
    source = f"http://{giver.name}{given.path}"
    return (own, source) if edited else (source, None)


def _canonical(hrefs: Iterable[str], base: str) -> tuple[str, ...]:
    found = dict.fromkeys(canonical(href, base) for href in hrefs)
    return tuple(url for url in found if url)
