"""The records that travel from room to room. All are frozen; none knows how it was made."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Via = Literal["seed", "page", "redirect", "sitemap", "feed"]
Kind = Literal["html", "sitemap", "feed", "other"]
Truncated = Literal["", "length", "time", "disconnect"]


class Candidate(Struct, frozen=True, array_like=True, gc=False):
    """A URL that waits in the frontier, and how it came there."""

    url: str
    source: str = ""  # the page that linked to it; "" for a seed
    via: Via = "seed"
    depth: int = 0  # links followed from a seed
    weight: float = 1.0  # expected yield
    hops: int = 0  # redirects followed so far
    tries: int = 0  # visits that failed in a way worth trying again
    spent: int = 0  # body bytes received in those visits


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


class Page(Struct, frozen=True, array_like=True, tag="page"):
    """What a reader found in a reply."""

    url: str
    kind: Kind
    fault: str = ""  # why the bytes could not be read as what they claim, or ""
    html_bytes: int = 0  # after decompression
    charset_declared: str = ""  # by header or, failing that, by the page itself
    charset: str = ""  # the one used
    title: str = ""
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


class Verdict(Struct, frozen=True, array_like=True, gc=False):
    """Keep the page or not, and why not."""

    keep: bool
    reason: str = ""  # "" when kept
    language: str = ""  # the main language of the text
    language_share: float = 0.0  # share and bytes of the corpus's language, or of the main one
    language_bytes: int = 0
