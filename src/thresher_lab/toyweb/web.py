"""The parameters of a toy web: the proportions of its kinds of hosts and pages."""

from __future__ import annotations

from typing import Any, Literal, Self

import msgspec
from msgspec import Struct

# The parameters that `ToyWeb.calm` sets to zero.
NASTY = (
    *("thin_hosts", "spam_hosts", "mirror_hosts", "calendar", "session", "deeper", "soft_404"),
    *("robots_broken", "robots_moved", "crawl_delayed", "private", "legacy", "undeclared", "mislabelled"),
    *("thin", "redirect", "chain", "loop", "lost", "gone", "error", "flaky", "slow", "drip", "file"),
    *("noindex", "nofollow", "noai", "reprint", "near_duplicate", "stray", "orphan", "dead_link"),
)

# The languages that there are grammars of sentences for; see `thresher_lab.toyweb.texts`.
READABLE_LANGUAGES = ("cs", "en", "de", "ru", "tr")


class ToyWeb(Struct, frozen=True, cache_hash=True, kw_only=True, forbid_unknown_fields=True):
    """All parameters of a toy web. Proportions are shares of hosts or of pages, 0 to 1."""

    hosts: int = 60
    seed: int = 1
    target: str = "cs"
    languages: tuple[str, ...] = ("cs", "en", "de", "ru", "tr", "fr", "pl", "ar", "ja")
    text: Literal["words", "sentences"] = "words"  # Sentences need no wordfreq; see `readable`.
    pages_per_host: tuple[int, int] = (20, 80)  # articles; lists, calendars and so on come on top
    pages_power: float = 2.0  # the higher, the fewer hosts hold most of the pages
    page_bytes: tuple[int, int] = (8_000, 25_000)  # of HTML, markup included
    text_chars: tuple[int, int] = (1_500, 6_000)
    thin_chars: tuple[int, int] = (60, 400)
    min_text_chars: int = 1_000  # of a good page
    links: int = 40  # of an article, about
    edited_words: float = 0.02  # of a near-duplicate

    # Kinds of hosts; the rest hold other languages.
    rich_hosts: float = 0.07  # the target language throughout
    hidden_hosts: float = 0.04  # a front page in another language, the target language inside
    mixed_hosts: float = 0.08  # the target language and two others, by path or without a sign
    spam_hosts: float = 0.04  # words of the target language, but no sentences
    thin_hosts: float = 0.08  # lists of links and pages of a line or two
    mirror_hosts: float = 0.06  # another host's pages, byte for byte

    # Properties of hosts.
    hinted: float = 0.6  # The name hints at the language.
    hosted: float = 0.15  # one of many hosts of a registered domain
    calendar: float = 0.05
    session: float = 0.05
    deeper: float = 0.05
    soft_404: float = 0.08
    robots_missing: float = 0.15
    robots_broken: float = 0.04
    robots_moved: float = 0.06
    crawl_delayed: float = 0.1
    sitemap: float = 0.4
    feed: float = 0.5
    gzip: float = 0.6
    brotli: float = 0.1
    zstd: float = 0.1
    chunked: float = 0.4
    legacy: float = 0.2  # an encoding older than UTF-8
    absolute_links: float = 0.3

    # Fates of articles; the rest are texts.
    thin: float = 0.08
    redirect: float = 0.04
    chain: float = 0.01
    loop: float = 0.01
    lost: float = 0.02  # 404
    gone: float = 0.01  # 410
    error: float = 0.01  # 500
    flaky: float = 0.01  # 503 or 429 for a while
    slow: float = 0.01
    drip: float = 0.01
    file: float = 0.01  # a PDF

    # Properties of articles.
    stray: float = 0.05  # in another language than its host
    private: float = 0.08  # under a path that robots.txt forbids; a third of them allowed again
    orphan: float = 0.05  # linked from a sitemap or feed alone
    reprint: float = 0.04  # another host's text in one's own menus
    near_duplicate: float = 0.04  # another host's text with a few words changed
    dead_link: float = 0.03  # a link to a page that never existed
    noindex: float = 0.02
    nofollow: float = 0.02
    noai: float = 0.03
    licensed: float = 0.04
    undeclared: float = 0.03  # no charset in header or page
    mislabelled: float = 0.02  # the header names a wrong charset

    # Time, in seconds.
    crawl_delay: float = 1.0
    slow_seconds: float = 1.0
    drip_seconds: float = 2.0
    retry_after: int = 1
    flaky_attempts: int = 1  # that fail before one succeeds
    chain_hops: tuple[int, int] = (2, 12)
    sitemap_urls: int = 40  # in one file

    def __post_init__(self) -> None:
        if self.hosts < 1:
            raise ValueError(f"hosts must be at least 1, got {self.hosts}")
        if self.target not in self.languages:
            raise ValueError(f"target = {self.target!r} is not among the languages; add it to `languages`")
        if len(set(self.languages)) < 3:
            raise ValueError(f"languages must be at least three, for mixed hosts; got {self.languages}")
        if self.text == "sentences" and (unknown := set(self.languages) - set(READABLE_LANGUAGES)):
            raise ValueError(
                f"languages = {self.languages}: no sentences in {', '.join(sorted(unknown))}; choose from "
                f"{', '.join(READABLE_LANGUAGES)}"
            )
        for name in (field for field, kind in self.__annotations__.items() if kind == "float"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")

    @classmethod
    def calm(cls, **changes: Any) -> Self:
        """Return a web without faults, except for the given ones: `ToyWeb.calm(calendar=0.1)`."""
        return cls(**{**dict.fromkeys(NASTY, 0.0), **changes})

    @classmethod
    def readable(cls, **changes: Any) -> Self:
        """Return a web of sentences that people can read, in the languages that there are grammars for."""
        return cls(**{"text": "sentences", "languages": READABLE_LANGUAGES, **changes})

    @classmethod
    def benchmark(cls, **changes: Any) -> Self:
        """Return a calm web of pages as large and as well linked as real ones, all in gzip."""
        size = {"pages_per_host": (100, 1_000), "page_bytes": (30_000, 80_000), "links": 80}
        return cls.calm(**{**size, "gzip": 1.0, "brotli": 0.0, "zstd": 0.0, **changes})

    @classmethod
    def papers(cls, **changes: Any) -> Self:
        """Return a web as poor as in the papers: half a million pages, one byte in a hundred worth keeping.

        SpiderLing: of the bytes that a plain crawl downloads, uncompressed, 0.4 to 3 % become text of the corpus;
        good hosts are few and give about a tenth; hosts differ by orders of magnitude in their yield.
        """
        size = {
            "hosts": 5_000,
            "pages_per_host": (5, 1_000),
            "pages_power": 10.0,
            "page_bytes": (12_000, 40_000),
        }
        kinds = {"rich_hosts": 0.05, "hidden_hosts": 0.02, "mixed_hosts": 0.05}
        waste = {"spam_hosts": 0.06, "thin_hosts": 0.12, "mirror_hosts": 0.08}
        traps = {"calendar": 0.02, "session": 0.02, "deeper": 0.02}
        plain = {"gzip": 0.0, "brotli": 0.0, "zstd": 0.0}
        return cls(**{**size, **kinds, **waste, **traps, **plain, **changes})

    def but(self, **changes: Any) -> Self:
        """Return the same web with some parameters changed."""
        return msgspec.structs.replace(self, **changes)
