"""What the plan of a toy web does not tell of its pages, measured on a sample of each kind of them.

The sampled pages are made as the server makes them and read by the reader, so neither can change unnoticed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.config import Fetch
from thresher.lab.toyweb.answers import answer
from thresher.lab.toyweb.content import charset
from thresher.lab.toyweb.files import compose_file
from thresher.lab.toyweb.linking import SID, Place, parts, session
from thresher.lab.toyweb.pages import compose
from thresher.lab.toyweb.plan import Spot, locate
from thresher.lab.toyweb.web import ToyWeb
from thresher.page import Page, Reply
from thresher.read import read
from thresher.read.links import UNKNOWN
from thresher.url import canonical

WEIGHED = 12  # pages of a kind that are made to learn their bytes
READ = 2  # pages of a kind that are read
PLACES: tuple[Place, ...] = ("head", "menu", "side", "text", "more", "foot")
FILES = ("sitemap index", "sitemap", "feed")  # spots that are no pages

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]


class Like(NamedTuple):
    """What pages have in common of which one stands for another."""

    kind: str
    language: str  # "": of a file
    layout: int
    compressed: bool
    legacy: bool
    stuffed: bool

    @property
    def voice(self) -> tuple[str, str, bool]:
        """What the language and the Badness of a page depend on."""
        return self.kind, self.language, self.stuffed


class Outline(NamedTuple):
    """Pages as far as their plan tells: one entry in each column for each."""

    urls: list[str]
    likes: Numbers  # what each is, by its place in a list of `Like`; -1: no page
    room: Numbers  # bytes of HTML that it is filled up to
    characters: Numbers  # of text, about
    markup: Numbers  # characters of the addresses and words of its links

    def members(self, likes: int) -> list[Numbers]:
        """The pages of each kind."""
        order = np.argsort(self.likes, kind="stable")
        return np.split(order, np.searchsorted(self.likes[order], np.arange(likes)))[1:]


class Reading(NamedTuple):
    """How a reader sees pages, by their kind; the last entries are those of what is no page."""

    badness: Reals
    languages: list[str]  # that it finds in most of them
    boilerplate: Reals  # of links, by kind of page and by PLACES
    in_text: NDArray[np.bool_]


def received(web: ToyWeb, outline: Outline, members: Sequence[Numbers]) -> Numbers:
    """The bytes of each body as a crawler receives it: of sampled pages exactly, of others about.

    A page is what is written on it and what fills it up; each is packed at a rate of its own.
    """
    found = np.zeros(len(outline.urls))
    for numbers in members:
        places = _spread(len(numbers), WEIGHED)
        made = [_made(web, outline.urls[number]) for number in numbers[places].tolist()]
        content, body = np.array(made, np.float64).T
        written = _fitted([outline.characters[numbers], outline.markup[numbers]], places, content)
        filler = np.maximum(outline.room[numbers] - written, 0.0)
        found[numbers] = _fitted([written, filler], places, body)
        found[numbers[places]] = body
    return np.maximum(np.rint(found), 0).astype(np.int64)


def _spread(count: int, most: int) -> Numbers:
    """Some places of so many, from the first to the last."""
    return np.linspace(0, count - 1, min(most, count)).astype(np.int64)


def _fitted(features: Sequence[NDArray[np.generic]], places: Numbers, seen: Reals) -> Reals:
    """What is seen at some places, told of all by a linear fit (least squares)."""
    columns = np.column_stack([np.ones(len(features[0])), *features])
    found: Reals = columns @ np.linalg.lstsq(columns[places], seen, rcond=None)[0]
    return found


def _made(web: ToyWeb, url: str) -> tuple[int, int]:
    """Bytes of a page before it is filled up, and of its body on the wire."""
    spot = _spot(web, url)
    body = answer(web, url, accept_encoding=", ".join(Fetch().encodings), attempt=web.flaky_attempts).body
    if spot.kind in FILES:
        return len(compose_file(web, spot).text.encode()), len(body)
    document = compose(web, spot)
    codec = charset(web, spot, document.language).codec
    return len((document.head + document.body).encode(codec, "xmlcharrefreplace")), len(body)


def _spot(web: ToyWeb, url: str) -> Spot:
    spot = locate(web, url)
    assert spot is not None, url  # it was located before
    return spot


def readings(web: ToyWeb, outline: Outline, likes: Sequence[Like], members: Sequence[Numbers]) -> Reading:
    """How a reader for the target language sees each kind of page, on average."""
    badness: dict[object, list[float]] = defaultdict(list)
    languages: dict[object, Counter[str]] = defaultdict(Counter)
    scores: dict[object, list[tuple[float, float]]] = defaultdict(list)
    for like, numbers in zip(likes, members, strict=True):
        if not like.language or like.kind == "missing":
            continue  # nobody reads these
        for number in numbers[_spread(len(numbers), READ)].tolist():
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
    return Reading(
        badness=np.array([*(np.mean(badness.get(like.voice, [np.nan])) for like in likes), np.nan]),
        languages=[*(_mostly(languages[like.voice]) for like in likes), ""],
        boilerplate=table[:, :, 0],
        in_text=table[:, :, 1] > 0.5,
    )


def _mostly(found: Counter[str]) -> str:
    """What more than half of the pages are found to be in, or ""."""
    return next((language for language, count in found.items() if count > found.total() / 2), "")


def _page(web: ToyWeb, url: str) -> Page:
    """A page as it is read."""
    given = answer(web, url, attempt=web.flaky_attempts)
    lines = [f"HTTP/1.1 {given.status} OK", *(f"{name}: {value}" for name, value in given.headers), ""]
    reply = Reply(url, given.status, "\r\n".join(lines).encode("latin-1"), given.body, 0.0, 0.0, "")
    return read(reply, web.target)


def _scores(web: ToyWeb, page: Page) -> Iterator[tuple[Place, float, bool]]:
    """Of each link of a page the part that it stands in, and what the reader makes of it."""
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
