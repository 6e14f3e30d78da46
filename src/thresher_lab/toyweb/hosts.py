"""Hosts of a toy web: each is a pure function of its number."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from thresher_lab.toyweb.dice import Shares, between, roll, shuffled, unit, unshuffled
from thresher_lab.toyweb.web import ToyWeb

HostKind = Literal["rich", "hidden", "mixed", "spam", "thin", "mirror", "foreign"]
TARGET_KINDS = ("rich", "hidden", "mixed", "spam")
RANDOM_HOSTS = 2_000  # In webs with at least so many hosts, each trait has about its share by chance.
SECTIONS = 5

# Top-level domains of languages, where they differ from the code.
_TLDS = {
    **{"cs": "cz", "en": "co.uk", "ar": "eg", "ja": "jp", "zh": "cn", "ko": "kr", "el": "gr", "da": "dk"},
    **{"sv": "se", "nb": "no", "uk": "ua", "fa": "ir", "he": "co.il", "hi": "in", "vi": "vn", "tr": "com.tr"},
}
_GENERIC_TLDS = ("com", "org", "net", "info")
_NAMES = {
    "cs": ("zpravy", "noviny", "obec", "denik", "kultura"),
    "de": ("nachrichten", "zeitung", "verein", "gemeinde", "kultur"),
    "fr": ("nouvelles", "journal", "mairie", "culture", "courrier"),
    "pl": ("wiadomosci", "gazeta", "gmina", "kultura", "kurier"),
    "ru": ("novosti", "gazeta", "gorod", "kultura", "vestnik"),
    "tr": ("haberler", "gazete", "belediye", "kultur", "gundem"),
}
_ANY_NAMES = ("news", "portal", "magazine", "forum", "journal")
_NUMBER_IN_NAME = re.compile(r"-(\d{1,12})\.")


class ToyHost(Struct, frozen=True):
    """One host: its pages and the behaviour of its server."""

    number: int
    name: str
    kind: HostKind
    language: str
    front_language: str
    languages: tuple[str, ...]  # of a mixed host: its three, the target among them; else just its own
    prefixed: bool  # the path names the language
    pages: int
    style: int  # of URLs, 0 to 3
    layout: int  # of HTML, 0 to 2
    encoding: str  # "gzip", "br", "zstd", "identity"
    robots: str  # "rules", "missing", "broken", "moved"
    sitemap: str  # "", "plain", "gzip"
    feed: str  # "", "rss", "atom"
    mirrors: int = -1  # the host whose pages it shows, or -1
    chunked: bool = False
    crawl_delayed: bool = False
    legacy: bool = False
    absolute: bool = False
    calendar: bool = False
    session: bool = False
    deeper: bool = False
    soft_404: bool = False

    @property
    def ruled(self) -> bool:
        """True if its robots.txt forbids the private pages."""
        return self.robots in ("rules", "moved")


class PageSpan(Struct, frozen=True):
    """A range of ranks that hold hosts of one kind and language."""

    kind: HostKind
    language: str
    start: int
    end: int


@lru_cache(maxsize=16)
def spans(web: ToyWeb) -> tuple[PageSpan, ...]:
    """Return all hosts by rank: hosts with the target language first, other languages last."""
    shares: tuple[tuple[HostKind, float], ...] = (
        ("rich", web.rich_hosts),
        ("hidden", web.hidden_hosts),
        ("mixed", web.mixed_hosts),
        ("spam", web.spam_hosts),
        ("thin", web.thin_hosts),
        ("mirror", web.mirror_hosts),
    )
    result: list[PageSpan] = []
    start, total = 0, 0.0
    for kind, share in shares:
        total += share
        end = min(web.hosts, round(web.hosts * total))
        if kind == "rich" and share:
            end = max(1, end)  # The smallest web has good pages, too.
        result.append(PageSpan(kind=kind, language=web.target, start=start, end=max(start, end)))
        start = result[-1].end
    others = [language for language in web.languages if language != web.target]
    for place, language in enumerate(others, 1):
        end = result[5].end + (web.hosts - result[5].end) * place // len(others)
        result.append(PageSpan(kind="foreign", language=language, start=start, end=end))
        start = end
    return tuple(result)


@lru_cache(maxsize=8_192)
def host(web: ToyWeb, number: int) -> ToyHost:
    """Return the host of a number below `web.hosts`."""
    rank = shuffled(web.seed, web.hosts, number)
    span = next(span for span in spans(web) if span.start <= rank < span.end)
    place_in_span = rank - span.start
    others = [language for language in web.languages if language != web.target]
    language = front = span.language
    languages: tuple[str, ...] = (language,)
    if span.kind == "hidden":
        front = others[place_in_span % len(others)]
    elif span.kind == "mixed":
        languages = (
            web.target,
            others[place_in_span % len(others)],
            others[(place_in_span + 1) % len(others)],
        )
        front = languages[place_in_span % 3]
    elif span.kind == "thin":
        front = language = web.languages[place_in_span % len(web.languages)]
        languages = (language,)

    def dealt(trait: str) -> float:
        return _dealt(web, trait, number)

    sitemap = dealt("sitemap") / web.sitemap if web.sitemap else 1.0
    feed = dealt("feed") / web.feed if web.feed else 1.0
    robots = _robots(web).pick(dealt("robots"))
    return ToyHost(
        number=number,
        name=_name(web, number, front),
        kind=span.kind,
        language=language,
        front_language=front,
        languages=languages,
        prefixed=span.kind == "mixed" and place_in_span % 2 == 0,
        pages=_pages(web, number),
        style=roll(web.seed, "style", number) % 4,
        layout=roll(web.seed, "layout", number) % 3,
        encoding=_encodings(web).pick(dealt("encoding")),
        robots=robots,
        sitemap=""
        if sitemap >= 1 or robots in ("missing", "broken")
        else "gzip"
        if sitemap < 0.4
        else "plain",
        feed="" if feed >= 1 else "atom" if feed < 0.4 else "rss",
        mirrors=_mirrored(web, place_in_span) if span.kind == "mirror" else -1,
        chunked=dealt("chunked") < web.chunked,
        crawl_delayed=dealt("crawl delay") < web.crawl_delayed,
        legacy=dealt("legacy") < web.legacy,
        absolute=dealt("absolute") < web.absolute_links,
        calendar=dealt("calendar") < web.calendar,
        session=dealt("session") < web.session,
        deeper=dealt("deeper") < web.deeper,
        soft_404=dealt("soft 404") < web.soft_404,
    )


def find_host(web: ToyWeb, name: str) -> ToyHost | None:
    """Return the host of a name (a port is ignored), or None if the toy web does not have it."""
    name = name.lower().partition(":")[0]
    match = _NUMBER_IN_NAME.search(name)
    number = int(match[1]) if match else web.hosts
    if number >= web.hosts:
        return None
    found = host(web, number)
    return found if found.name == name else None


def host_in_language(web: ToyWeb, language: str, bits: int) -> ToyHost:
    """Return some host of a language, or any host if no host has this language alone."""
    same = [s for s in spans(web) if s.language == language and s.kind in (*TARGET_KINDS, "foreign")]
    start, end = same[0].start, same[-1].end
    if start == end:
        start, end = 0, web.hosts
    return at_rank(web, start + bits % (end - start))


def origin(web: ToyWeb, language: str, bits: int) -> ToyHost | None:
    """Return some host that holds only this language, from which texts are reprinted, or None."""
    span = next(s for s in spans(web) if s.language == language and s.kind in ("rich", "foreign"))
    return at_rank(web, span.start + bits % (span.end - span.start)) if span.end > span.start else None


def at_rank(web: ToyWeb, rank: int) -> ToyHost:
    """Return the host of a rank; ranks are ordered by kind, numbers are not."""
    return host(web, unshuffled(web.seed, web.hosts, rank))


def _dealt(web: ToyWeb, trait: str, number: int) -> float:
    """Return a number in [0, 1) that decides about a trait; in small webs its share of hosts is exact."""
    if web.hosts >= RANDOM_HOSTS:
        return unit(web.seed, trait, number)
    return (shuffled(roll(web.seed, trait), web.hosts, number) + 0.5) / web.hosts


def _mirrored(web: ToyWeb, place: int) -> int:
    """Return by turns a host rich in the target language and one of another language."""
    rich, foreign = spans(web)[0], spans(web)[-1]
    span = rich if place % 2 == 0 or foreign.start == foreign.end else foreign
    if span.start == span.end:
        return -1  # There is nothing to mirror, so it shows its own pages.
    return unshuffled(web.seed, web.hosts, span.start + place // 2 % (span.end - span.start))


def _name(web: ToyWeb, number: int, language: str) -> str:
    bits = roll(web.seed, "name", number)
    hinted = unit(web.seed, "hinted", number) < web.hinted
    words = _NAMES.get(language, _ANY_NAMES) if hinted else _ANY_NAMES
    tld = _TLDS.get(language, language) if hinted else _GENERIC_TLDS[bits % 4]
    label = f"{words[bits // 4 % len(words)]}-{number}"
    if unit(web.seed, "hosted", number) < web.hosted:
        return f"{label}.free-pages.{tld}"
    if hinted and bits // 64 % 4 == 0:
        return f"{language}.{label}.com"
    return f"{label}.{tld}"


def _pages(web: ToyWeb, number: int) -> int:
    """Return the number of articles; most hosts are small."""
    found = between(web.pages_per_host, unit(web.seed, "pages", number) ** web.pages_power)
    return min(found, web.pages_per_host[1])


@lru_cache(maxsize=16)
def _robots(web: ToyWeb) -> Shares:
    moods = (("missing", web.robots_missing), ("broken", web.robots_broken), ("moved", web.robots_moved))
    return Shares(moods, rest="rules")


@lru_cache(maxsize=16)
def _encodings(web: ToyWeb) -> Shares:
    return Shares((("gzip", web.gzip), ("br", web.brotli), ("zstd", web.zstd)), rest="identity")
