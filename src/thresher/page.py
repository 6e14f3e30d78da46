"""The records that travel from room to room. All are frozen; none knows how it was made."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Via = Literal["seed", "page", "redirect", "sitemap", "feed", "guess"]
Kind = Literal["html", "sitemap", "feed", "other"]
Truncated = Literal["", "length", "time", "disconnect"]


class Candidate(Struct, frozen=True, array_like=True, gc=False):
    """A URL that waits in the frontier, and how it came there."""

    url: str
    source: str = ""  # the page that linked to it, or that it was guessed from; "" for a seed
    via: Via = "seed"
    depth: int = 0  # links followed from a seed
    weight: float = (
        1.0  # expected yield; of plain policies, while it waits, as a multiple of what its host promises
    )
    hops: int = 0  # redirects followed so far
    tries: int = 0  # visits that failed in a way worth trying again
    spent: int = 0  # body bytes received in those visits
    lane: int = 0  # which URLs of its host it is like
    hints: bytes = b""  # what the page that linked to it tells of it, for a policy that learns


class Reply(Struct, frozen=True, array_like=True):
    """What a server answered: the bytes as they came, content encoding kept."""

    url: str
    status: int
    headers: bytes  # status line and header lines, CRLF between and after each
    body: bytes
    fetched: float  # Unix time at which the request was sent
    elapsed: float  # seconds from request to last byte
    address: str  # the IP address actually connected to
    truncated: Truncated = ""

    def header(self, name: str) -> str | None:
        """The first header of that name, decoded as Latin-1, or None."""
        return next(iter(self.header_all(name)), None)

    def header_all(self, name: str) -> list[str]:
        """Every header of that name, in order."""
        wanted = name.lower().encode("ascii")
        found = []
        for line in self.headers.split(b"\r\n")[1:]:
            field, colon, value = line.partition(b":")
            if colon and field.strip().lower() == wanted:
                found.append(value.strip().decode("latin-1"))
        return found


class Failure(Struct, frozen=True, array_like=True, tag="failure"):
    """Why there is no reply. The web's faults are values, never exceptions."""

    url: str
    reason: str  # one of a small set: "dns", "timeout", "tls", "blocked address", …
    detail: str = ""
    transient: bool = False  # worth another try later
    elapsed: float = 0.0
    bytes: int = 0  # body bytes received before it failed


class Block(Struct, frozen=True, array_like=True, gc=False):
    """One run of text between block-level tags. 0 is certainly text, 1 certainly boilerplate."""

    text: str
    boilerplate: float
    language: str = ""  # of a paragraph of the main text, where languages of paragraphs are asked for


class Link(Struct, frozen=True, array_like=True, gc=False):
    """A link as it stands on a page."""

    url: str  # canonical
    anchor: str
    boilerplate: float  # of the block it stands in
    in_text: bool  # in running text, not a menu or a list of links
    rel: str = ""


class LanguageShare(Struct, frozen=True, array_like=True, gc=False):
    """One of up to three languages of the main text (N1)."""

    code: str
    bytes: int  # UTF-8 bytes of the main text in it
    share: float  # of the main text, 0 to 1


class Metadata(Struct, frozen=True, array_like=True, gc=False):
    """What a page says of itself; "" where it says nothing that can be believed."""

    title: str = ""  # without the name of the site, where that can be told
    author: str = ""  # names, with "; " between them
    published: str = ""  # "2026-03-01", or "2026-03-01T09:30:00+01:00" where time and zone are given
    modified: str = ""
    site_name: str = ""
    language_declared: str = ""  # BCP 47: "cs", "pt-BR"


class Signs(Struct, frozen=True, array_like=True, gc=False):
    """Signs that nobody wrote a page, each from 0, nothing suspicious, to 1, where hardly any good page is."""

    repetition: float = 0.0  # the same sentences again and again, or one sentence with gaps filled in
    stuffing: float = 0.0  # one word or phrase more often than any writer has use for it
    flatness: float = 0.0  # a list of words, none of which comes back
    incoherence: float = 0.0  # words that follow each other well, about nothing: brackets that never close
    link_farm: float = 0.0  # many other sites, called by the same few words, and little text
    doorway: float = 0.0  # a fan of links that differ in one word, on a page about the rest
    sketch: int = 0  # no sign, but 64 bits by which texts of pages are compared; 0: too little text

    @property
    def suspicion(self) -> float:
        """All signs together: several weak ones are one stronger."""
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


class Runs(Struct, frozen=True, array_like=True, gc=False):
    """The runs of words of a text, by which near duplicates are known; empty unless they were asked for."""

    counts: tuple[int, ...] = ()  # of each block: how many runs it has; -1 where it is not of the main text
    hashes: bytes = b""  # 8 bytes for each run, block after block


class Page(Struct, frozen=True, array_like=True, tag="page"):
    """What a reader found in a reply."""

    url: str
    kind: Kind
    fault: str = ""  # why the bytes could not be read as what they claim, or ""
    html_bytes: int = 0  # after decompression
    charset_declared: str = ""  # by header or, failing that, by the page itself
    charset: str = ""  # the one used
    title: str = ""  # of the markup; `metadata` has the one of the text
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
    signs: Signs = Signs()
    runs: Runs = Runs()


class Verdict(Struct, frozen=True, array_like=True, gc=False):
    """Keep the page or not, and why not."""

    keep: bool
    reason: str = ""  # "" when kept
    language: str = ""  # the main language of the text
    language_share: float = 0.0  # share and bytes of the corpus's language, or of the main one
    language_bytes: int = 0
