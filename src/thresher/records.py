"""The records that are passed between packages. All are frozen, and none depends on its producer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Via = Literal["seed", "page", "redirect", "sitemap", "feed", "guess"]
Kind = Literal["html", "sitemap", "feed", "other"]
Truncated = Literal["", "length", "time", "disconnect"]

_ISO_DAY = len("2026-03-01")


class Candidate(Struct, frozen=True, array_like=True, gc=False):
    """A URL that waits in the frontier, with its origin and its history."""

    url: str
    source: str = ""  # the page that linked to it or suggested it; "" for a seed
    via: Via = "seed"
    depth: int = 0  # links followed from a seed
    weight: float = 1.0  # expected yield; under plain policies, while it waits, relative to that of its host
    hops: int = 0  # redirects followed so far
    tries: int = 0  # visits that failed transiently
    spent: int = 0  # body bytes received in failed visits
    lane: int = 0  # group of similar URLs of its host
    hints: bytes = b""  # features from the page that linked to it, for the learned policy


class Reply(Struct, frozen=True, array_like=True):
    """The response of a server: the bytes as received, with their content encoding."""

    url: str
    status: int
    headers: bytes  # status line and header lines, CRLF between and after each
    body: bytes
    fetched: float  # Unix time at which the request was sent
    elapsed: float  # seconds from request to last byte
    address: str  # the IP address actually connected to
    truncated: Truncated = ""

    def __repr__(self) -> str:
        return f"<Reply {self.url!r}, status {self.status}, {len(self.body):,} bytes>"

    def header(self, name: str) -> str | None:
        """Return the first header of that name, decoded as Latin-1, or None."""
        return next(iter(self.header_all(name)), None)

    def header_all(self, name: str) -> list[str]:
        """Return all headers of that name, in order."""
        wanted = name.lower().encode("ascii")
        found = []
        for line in self.headers.split(b"\r\n")[1:]:
            field, colon, value = line.partition(b":")
            if colon and field.strip().lower() == wanted:
                found.append(value.strip().decode("latin-1"))
        return found


class Failure(Struct, frozen=True, array_like=True, tag="failure"):
    """The reason why there is no reply. Faults of the web are values, never exceptions."""

    url: str
    reason: str  # one of a small set: "dns", "timeout", "tls", "blocked address", …
    detail: str = ""
    transient: bool = False  # a later visit may succeed
    elapsed: float = 0.0
    bytes: int = 0  # body bytes received before it failed


class Block(Struct, frozen=True, array_like=True, gc=False):
    """One run of text between block-level tags. 0 is certainly text, 1 certainly boilerplate."""

    text: str
    boilerplate: float
    language: str = ""  # of a paragraph of the main text, if languages of paragraphs are identified


class Link(Struct, frozen=True, array_like=True, gc=False):
    """A link of a page."""

    url: str  # canonical
    anchor: str
    boilerplate: float  # of the block it stands in
    in_text: bool  # in running text, not a menu or a list of links
    rel: str = ""


class LanguageShare(Struct, frozen=True, array_like=True, gc=False):
    """One of up to three languages of the main text."""

    code: str
    bytes: int  # UTF-8 bytes of the main text in it
    share: float  # of the main text, 0 to 1


class Metadata(Struct, frozen=True, array_like=True, gc=False):
    """Statements of a page about itself; "" stands for none that can be believed."""

    title: str = ""  # without the name of the site, if it can be separated
    author: str = ""  # names, with "; " between them
    published: str = ""  # "2026-03-01", or "2026-03-01T09:30:00+01:00" where time and zone are given
    modified: str = ""
    site_name: str = ""
    language_declared: str = ""  # BCP 47: "cs", "pt-BR"


def day_or_none(text: str | None) -> date | None:
    """Return the day that a date or a time in ISO 8601 begins with, None if it names no single day.

    >>> day_or_none("2026-03-01T09:30:00+01:00"), day_or_none("2026-03"), day_or_none("")
    (datetime.date(2026, 3, 1), None, None)
    """
    try:
        return date.fromisoformat((text or "")[:_ISO_DAY])
    except ValueError:
        return None


class SpamSignals(Struct, frozen=True, array_like=True, gc=False):
    """Signs of a generated page, each from 0, not suspicious, to 1, which hardly any good page reaches."""

    repetition: float = 0.0  # the same sentences again and again, or one sentence with gaps filled in
    stuffing: float = 0.0  # one word or phrase more often than in written text
    flatness: float = 0.0  # a list of words without repetition
    incoherence: float = 0.0  # fluent words without sense, such as brackets that never close
    link_farm: float = 0.0  # links to many other sites with the same few anchor words, and little text
    doorway: float = 0.0  # links that differ in one word, on a page about the other words
    sketch: int = 0  # not a sign: 64 bits by which texts of pages are compared; 0: too little text

    @property
    def suspicion(self) -> float:
        """The combination of all signs; several weak ones make a stronger one."""
        innocent = 1.0
        for sign in (
            self.repetition,
            self.stuffing,
            self.flatness,
            self.incoherence,
            self.link_farm,
            self.doorway,
        ):
            innocent *= 1.0 - sign
        return 1.0 - innocent


class Shingles(Struct, frozen=True, array_like=True, gc=False):
    """The shingles of a text, by which near duplicates are found; empty unless they were requested."""

    counts: tuple[int, ...] = ()  # number of shingles of each block; -1 for a block outside the main text
    hashes: bytes = b""  # 8 bytes per shingle, block after block


class ReadResult(Struct, frozen=True, array_like=True, tag="page"):
    """The result of reading a reply."""

    url: str
    kind: Kind
    fault: str = ""  # the reason why the bytes could not be read as their declared type, or ""
    html_bytes: int = 0  # after decompression
    charset_declared: str = ""  # by header, or else by the page itself
    charset: str = ""  # the one used
    title: str = ""  # of the markup; the title in `metadata` is cleaned
    blocks: tuple[Block, ...] = ()
    text: str = ""  # the main text: good blocks, one per line
    languages: tuple[LanguageShare, ...] = ()
    badness: float | None = None  # None: no model for the target language
    links: tuple[Link, ...] = ()
    raw_hash: bytes = b""  # 16 bytes, of the decompressed body
    text_hash: bytes = b""  # 16 bytes, of the main text
    noindex: bool = False
    nofollow: bool = False
    license: str = ""  # URL of a licence the page links to as its own
    opt_out: tuple[str, ...] = ()  # "noai", "tdm-reservation", …
    metadata: Metadata = Metadata()
    spam_signals: SpamSignals = SpamSignals()
    shingles: Shingles = Shingles()


def with_opt_outs(page: ReadResult, opt_outs: Iterable[str]) -> ReadResult:
    """Return a page with opt-outs that its reply does not state, such as the ones of its host's robots.txt.

    >>> with_opt_outs(ReadResult("http://a.cz/", "html", opt_out=("noai",)), ["noai", "tdm-reservation"]).opt_out
    ('noai', 'tdm-reservation')
    """
    merged = tuple(dict.fromkeys((*page.opt_out, *opt_outs)))
    return page if merged == page.opt_out else replace(page, opt_out=merged)


class Verdict(Struct, frozen=True, array_like=True, gc=False):
    """The decision to keep or to reject a page, with the reason."""

    keep: bool
    reason: str = ""  # "" when kept
    language: str = ""  # the main language of the text
    language_share: float = 0.0  # share and bytes of the corpus's language, or of the main one
    language_bytes: int = 0
