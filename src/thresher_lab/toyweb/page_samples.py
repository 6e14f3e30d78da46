"""Properties of toy pages that follow from no plan, measured on a sample of each kind of page.

The samples are composed as the server composes them and read by the reader, so a change of either is noticed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.config import FetchSettings
from thresher.reader import read
from thresher.reader.html.links import UNKNOWN
from thresher.records import ReadResult, Reply
from thresher.urls import canonical
from thresher_lab.toyweb.answers import answer
from thresher_lab.toyweb.content import charset
from thresher_lab.toyweb.files import compose_file
from thresher_lab.toyweb.linking import SID, Place, parts, session
from thresher_lab.toyweb.pages import compose
from thresher_lab.toyweb.plan import PlannedSpot, locate
from thresher_lab.toyweb.web import ToyWeb

MEASURED_PAGES = 12  # of a kind, whose bytes are measured
READ_PAGES = 2  # of a kind, which the reader reads
PLACES: tuple[Place, ...] = ("head", "menu", "side", "text", "more", "foot")
FILES = ("sitemap index", "sitemap", "feed")  # kinds of spots that are not pages

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]


class PageKind(NamedTuple):
    """The common properties of pages of which one can represent the others."""

    kind: str
    language: str  # "" for a file
    layout: int
    compressed: bool
    legacy: bool
    stuffed: bool

    @property
    def voice(self) -> tuple[str, str, bool]:
        """The properties that language and Badness of a page depend on."""
        return self.kind, self.language, self.stuffed


class PageOutline(NamedTuple):
    """Pages as they are planned: one entry in each column for each page."""

    urls: list[str]
    likes: Numbers  # index of each in a list of `PageKind`; -1: no page
    room: Numbers  # bytes of HTML that it is filled up to
    characters: Numbers  # of text, about
    markup: Numbers  # characters of the addresses and words of its links

    def members(self, likes: int) -> list[Numbers]:
        """Return the pages of each kind."""
        order = np.argsort(self.likes, kind="stable")
        return np.split(order, np.searchsorted(self.likes[order], np.arange(likes)))[1:]


class SampledReading(NamedTuple):
    """Readings of pages by their kind; the last entries are for URLs without a page."""

    badness: Reals
    languages: list[str]  # of most pages of the kind
    boilerplate: Reals  # of links, by kind of page and by PLACES
    in_text: NDArray[np.bool_]


def received(web: ToyWeb, outline: PageOutline, members: Sequence[Numbers]) -> Numbers:
    """Return the bytes of each body as a crawler receives it: exact for sampled pages, about right for others.

    A page consists of written text and of filler; each has a compression rate of its own.
    """
    found = np.zeros(len(outline.urls))
    for numbers in members:
        places = _spread(len(numbers), MEASURED_PAGES)
        made = [_made(web, outline.urls[number]) for number in numbers[places].tolist()]
        content, body = np.array(made, np.float64).T
        written = _fitted([outline.characters[numbers], outline.markup[numbers]], places, content)
        filler = np.maximum(outline.room[numbers] - written, 0.0)
        found[numbers] = _fitted([written, filler], places, body)
        found[numbers[places]] = body
    return np.maximum(np.rint(found), 0).astype(np.int64)


def _spread(count: int, most: int) -> Numbers:
    """Return at most `most` places out of `count`, from the first to the last."""
    return np.linspace(0, count - 1, min(most, count)).astype(np.int64)


def _fitted(features: Sequence[NDArray[np.generic]], places: Numbers, seen: Reals) -> Reals:
    """Return values for all places, by a linear fit (least squares) to the values seen at some of them."""
    columns = np.column_stack([np.ones(len(features[0])), *features])
    found: Reals = columns @ np.linalg.lstsq(columns[places], seen, rcond=None)[0]
    return found


def _made(web: ToyWeb, url: str) -> tuple[int, int]:
    """Return the bytes of a page before it is filled up, and of its body on the wire."""
    spot = _spot(web, url)
    body = answer(
        web, url, accept_encoding=", ".join(FetchSettings().encodings), attempt=web.flaky_attempts
    ).body
    if spot.kind in FILES:
        return len(compose_file(web, spot).text.encode()), len(body)
    document = compose(web, spot)
    codec = charset(web, spot, document.language).codec
    return len((document.head + document.body).encode(codec, "xmlcharrefreplace")), len(body)


def _spot(web: ToyWeb, url: str) -> PlannedSpot:
    spot = locate(web, url)
    assert spot is not None, url  # It was located before.
    return spot


def readings(
    web: ToyWeb, outline: PageOutline, likes: Sequence[PageKind], members: Sequence[Numbers]
) -> SampledReading:
    """Return how a reader for the target language reads each kind of page, on average."""
    badness: dict[object, list[float]] = defaultdict(list)
    languages: dict[object, Counter[str]] = defaultdict(Counter)
    scores: dict[object, list[tuple[float, float]]] = defaultdict(list)
    for like, numbers in zip(likes, members, strict=True):
        if not like.language or like.kind == "missing":
            continue  # Crawlers do not read these.
        for number in numbers[_spread(len(numbers), READ_PAGES)].tolist():
            page = _page(web, outline.urls[number])
            badness[like.voice].append(np.nan if page.badness is None else page.badness)
            languages[like.voice][page.languages[0].code if page.languages else ""] += 1
            for place, boilerplate, in_text in _scores(web, page):
                scores[like.kind, like.layout, place].append((boilerplate, in_text))
    table = np.full((len(likes) + 1, len(PLACES), 2), (UNKNOWN, 0.0))
    for row, like in enumerate(likes):
        for column, place in enumerate(PLACES):
            if found := scores.get((like.kind, like.layout, place)):
                table[row, column] = np.mean(found, axis=0)
    return SampledReading(
        badness=np.array([*(np.mean(badness.get(like.voice, [np.nan])) for like in likes), np.nan]),
        languages=[*(_mostly(languages[like.voice]) for like in likes), ""],
        boilerplate=table[:, :, 0],
        in_text=table[:, :, 1] > 0.5,
    )


def _mostly(found: Counter[str]) -> str:
    """Return the language that more than half of the pages were identified as, or ""."""
    return next((language for language, count in found.items() if count > found.total() / 2), "")


def _page(web: ToyWeb, url: str) -> ReadResult:
    """Return the reading of a page."""
    given = answer(web, url, attempt=web.flaky_attempts)
    lines = [f"HTTP/1.1 {given.status} OK", *(f"{name}: {value}" for name, value in given.headers), ""]
    reply = Reply(url, given.status, "\r\n".join(lines).encode("latin-1"), given.body, 0.0, 0.0, "")
    return read(reply, web.target)


def _scores(web: ToyWeb, page: ReadResult) -> Iterator[tuple[Place, float, bool]]:
    """Yield the part of the page that each link stands in, with the scores that the reader gives to it."""
    spot = _spot(web, page.url)
    sid = session(web, spot)
    places: dict[str | None, Place] = {}
    for place, pointers in parts(web, spot).items():
        for pointer in pointers:
            url = canonical(pointer.href.replace(SID, sid), page.url)
            if place == "text" or url not in places:
                places[url] = place
    for link in page.links:
        if link.url in places:
            yield places[link.url], link.boilerplate, link.in_text
