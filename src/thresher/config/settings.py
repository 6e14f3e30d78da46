"""Sections of settings: each setting with its default, its range and its description, in one place.

docs/configuration.md is generated from this module by `thresher config --reference`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from thresher.config.toml_tables import LONGEST_SECONDS, SECONDS, Count, Seconds, Section, Size, about

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

NO_ADDRESS = "none"  # the value of fetch.connect_to that was chosen to lead a corpus to the web

Strings = tuple[str, ...]
PositiveSeconds = Annotated[float, Meta(gt=0, le=LONGEST_SECONDS, extra={"unit": SECONDS})]
LeaseSeconds = Annotated[float, Meta(ge=0.5, le=LONGEST_SECONDS, extra={"unit": SECONDS})]
MANY = 4_096  # processes, more than the largest machine has cores; shards, more than any cluster has machines
Processes = Annotated[int, Meta(ge=0, le=MANY)]

# Extensions of files that hold no page. Nothing is downloaded to find that out.
NO_PAGES = tuple(
    """
    jpg jpeg png gif webp svg ico bmp tif tiff avif psd eps css js
    mp3 mp4 m4a m4v ogg ogv oga wav flac avi mov mkv webm wmv swf
    zip rar 7z tar tgz bz2 xz exe msi dmg iso deb rpm apk jar
    pdf ps doc docx xls xlsx ppt pptx odt ods odp rtf epub mobi
    ttf otf woff woff2 csv tsv ics vcf torrent
    """.split()  # noqa: SIM905 - easier to read than a list of strings
)


class ScopeSettings(Section, frozen=True):
    """The URLs that may enter the frontier."""

    tlds: Annotated[Strings, about("Only hosts under these top-level domains are crawled; empty: all.")] = ()
    hosts: Annotated[Strings, about("Only these hosts and their subdomains are crawled; empty: all.")] = ()
    include: Annotated[
        Strings,
        about("Regular expressions, one of which must match somewhere in the URL; empty: all URLs."),
    ] = ()
    exclude: Annotated[
        Strings, about("Regular expressions, none of which may match anywhere in the URL.")
    ] = ()
    internal: Annotated[bool, about("Links inside a host are followed.")] = True
    external: Annotated[bool, about("Links to other hosts are followed.")] = True
    queries: Annotated[bool, about("URLs with a query are crawled.")] = True
    skip_extensions: Annotated[Strings, about("URLs with one of these extensions are not crawled.")] = (
        NO_PAGES
    )
    max_depth: Annotated[Count, about("Links that a page may be away from a seed.")] = 100
    sitemaps: Annotated[bool, about("Sitemaps that robots.txt names are read for URLs.")] = True
    feeds: Annotated[bool, about("Feeds that pages name are read for URLs.")] = True


class BudgetSettings(Section, frozen=True):
    """The limits that stop a crawl, a host or a domain; 0 is no limit. Runs before this one count."""

    max_pages: Annotated[Count, about("The crawl stops after this many pages.")] = 0
    max_bytes: Annotated[Size, about("The crawl stops after this many bytes downloaded.")] = 0
    max_time: Annotated[Seconds, about("The crawl stops after this long.")] = 0.0
    # Even an endless host ends.
    host_pages: Annotated[Count, about("A host is closed after this many pages.")] = 20_000
    host_bytes: Annotated[Size, about("A host is closed after this many bytes downloaded.")] = 0
    # Wildcard DNS makes an endless number of hosts in one domain.
    domain_pages: Annotated[
        Count, about("The hosts of a registered domain are closed after this many pages together.")
    ] = 100_000
    domain_bytes: Annotated[
        Size, about("The hosts of a registered domain are closed after this many bytes together.")
    ] = 0


class PoliteSettings(Section, frozen=True):
    """The treatment of servers. robots.txt has no switch."""

    contact: Annotated[
        str, about("E-mail address or URL at which webmasters reach you; sent with every request.")
    ] = ""
    delay: Annotated[Seconds, about("Time between two requests to a host.")] = 5.0
    load_share: Annotated[
        float,
        about(
            "Share of a host's time that the crawl may take: after an answer the host rests for the"
            " answer's time divided by this share; 0: the delay alone counts.",
            ge=0,
            le=1,
        ),
    ] = 0.2
    ip_delay: Annotated[Seconds, about("Time between two requests to an IP address.")] = 0.5
    max_crawl_delay: Annotated[
        Seconds, about("A host that asks for a longer Crawl-delay waits for a later crawl.")
    ] = 300.0
    # RFC 9309 allows no more than a day.
    robots_age: Annotated[
        PositiveSeconds,
        about("Time after which robots.txt is fetched again."),
    ] = 86_400.0
    robots_retry: Annotated[
        Seconds, about("Time after which a robots.txt that did not arrive is asked for again.")
    ] = 3_600.0
    tries: Annotated[int, about("Visits of a URL whose failures may pass, before it has failed.", ge=1)] = 3
    host_failures: Annotated[
        int, about("Failed connections in a row after which a host is given up.", ge=1)
    ] = 10
    backoff: Annotated[
        Seconds, about("Rest of a host after its first answer 429 or 503; doubled with each more.")
    ] = 30.0
    max_backoff: Annotated[Seconds, about("Longest such rest, unless the host asks for a longer one.")] = (
        3_600.0
    )


class FetchSettings(Section, frozen=True):
    """The limits of one request. Bytes are counted as received unless said otherwise."""

    connections: Annotated[int, about("Connections that are open at once.", ge=1, le=65_536)] = 200
    connect_to: Annotated[
        str, about("ADDR:PORT that every connection goes to, in plain HTTP; empty or none: the web.")
    ] = ""
    connect_timeout: Annotated[Seconds, about("Time for a connection to open.")] = 15.0
    first_byte_timeout: Annotated[Seconds, about("Time for the first byte of an answer.")] = 30.0
    total_timeout: Annotated[Seconds, about("Time for a whole answer.")] = 90.0
    min_rate: Annotated[Size, about("Bytes per second below which an answer is given up as too slow.")] = 200
    min_rate_seconds: Annotated[int, about("Seconds over which that rate is averaged.", ge=1)] = 20
    max_header_bytes: Annotated[Size, about("Longest headers of an answer.")] = 64 * KIB
    max_body_bytes: Annotated[
        Size, about("Size at which the body of an answer is cut; such an answer counts as failed.")
    ] = 8 * MIB
    max_redirects: Annotated[Count, about("Redirects in a row that are followed.")] = 8
    # Every WARC tool reads gzip, few read br and zstd.
    encodings: Annotated[Strings, about("Content encodings that servers are asked for.")] = ("gzip",)
    ports: Annotated[tuple[int, ...], about("Ports of servers that are connected to.")] = (
        80,
        443,
        8000,
        8008,
        8080,
        8443,
    )
    dns_seconds: Annotated[Seconds, about("Longest time that an answer of DNS is used.")] = 3_600.0
    dns_negative_seconds: Annotated[
        Seconds, about("Time that a name without an address is not asked for again.")
    ] = 600.0
    dns_timeout: Annotated[Seconds, about("Time for an answer of DNS.")] = 10.0

    @property
    def fixed_address(self) -> str:
        """The ADDR:PORT that every connection goes to, "" if connections go to the web."""
        return "" if self.connect_to == NO_ADDRESS else self.connect_to


class ReadSettings(Section, frozen=True):
    """The limits and choices of the reader."""

    processes: Annotated[
        Processes, about("Reader processes; 0: one less than the machine has cores, at least one.")
    ] = 0
    deadline: Annotated[PositiveSeconds, about("Time for reading one page.")] = 20.0
    max_decoded_bytes: Annotated[Size, about("Size at which a page is cut after decompression.")] = 32 * MIB
    max_links: Annotated[Count, about("Links of a page that are read.")] = 10_000
    memory: Annotated[
        Size,
        about("Memory of one reader process; a page that needs more kills it."),
    ] = 2 * GIB
    mode: Annotated[
        Literal["precision", "balanced", "recall"],
        about("Text that may be boilerplate is left out (precision) or taken (recall)."),
    ] = "balanced"
    paragraph_language: Annotated[
        Literal["", "mark", "drop"],
        about("Paragraphs in another language than their page are marked, dropped, or neither."),
    ] = ""
    shingles: Annotated[
        bool,
        about("Shingles of seven words are hashed; judge.near_duplicates switches this on as well."),
    ] = False
    trained_languages: Annotated[
        Strings,
        about(
            "Trained languages that pages are compared with, besides the corpus's own language; all"
            " others that you trained are ignored.",
        ),
    ] = ()


class JudgeSettings(Section, frozen=True):
    """The bounds that a kept page satisfies. 0 switches a bound off."""

    # HeidiX: pages below 2 kB of HTML hold no text.
    min_html_bytes: Annotated[Size, about("Smallest HTML of a kept page.")] = 2_000
    min_text_chars: Annotated[Count, about("Fewest characters in the text of a kept page.")] = 1_000
    language: Annotated[bool, about("Only pages in the corpus's language are kept.")] = True
    min_language_bytes: Annotated[Size, about("Fewest bytes of text in the corpus's language.")] = 0
    max_language_bytes: Annotated[Size, about("Most bytes of text in the corpus's language.")] = 0
    min_language_share: Annotated[
        float, about("Smallest share of the text in the corpus's language.", ge=0, le=1)
    ] = 0.7
    # The working threshold of the HeidiX papers.
    max_badness: Annotated[float, about("Highest Badness of a kept page.", ge=0)] = 10.0
    max_suspicion: Annotated[
        float,
        about("Highest suspicion that a machine made the text; 0.5 is rare among good texts.", ge=0, le=1),
    ] = 0.0
    max_age: Annotated[
        float, about("Most days since Last-Modified; a page without that date passes.", ge=0)
    ] = 0.0
    duplicates: Annotated[bool, about("Exact duplicates of a page's bytes or of its text are dropped.")] = (
        True
    )
    near_duplicates: Annotated[
        bool, about("Paragraphs are dropped if most of their shingles were seen before.")
    ] = False
    near_duplicate_share: Annotated[
        float, about("Share of shingles seen before above which a paragraph is dropped.", gt=0, le=1)
    ] = 0.5
    # 300 million shingles fit into 1 GiB.
    near_duplicate_memory: Annotated[
        Size, about("Memory for shingles; when it is full, the oldest are forgotten.")
    ] = GIB


class StoreSettings(Section, frozen=True):
    """The files that a crawl writes, and their sizes."""

    keep_raw: Annotated[Literal["all", "kept", "none"], about("Pages whose bytes are stored as WARC.")] = (
        "all"
    )
    warc_bytes: Annotated[Size, about("Size after which a new WARC file begins.")] = GIB
    segment_bytes: Annotated[
        Size, about("Size after which an open table segment is sealed into Parquet.")
    ] = 128 * MIB
    links: Annotated[bool, about("The table of links is written.")] = True
    commit_pages: Annotated[int, about("Outcomes after which a commit is made.", ge=1)] = 256
    commit_seconds: Annotated[Seconds, about("Time after which a commit is made.")] = 1.0


PolicyName = Literal["learned", "focus", "bfs", "random", "spiderling", "host-yield", "heidix"]


class PolicySettings(Section, frozen=True):
    """The choice of the next URL."""

    name: Annotated[PolicyName, about("Policy of the frontier.")] = "learned"
    # The rule of SpiderLing.
    threshold: Annotated[
        str,
        about(
            "Formula for the lowest yield of a domain with n pages downloaded, below which it is "
            "closed; empty: none is closed.",
        ),
    ] = "0.01 * (log10(n) - 1)"
    min_pages: Annotated[Count, about("Pages of a domain that are downloaded before it can be closed.")] = 8
    min_bytes: Annotated[Size, about("Bytes of a domain that are downloaded before it can be closed.")] = (
        512_000
    )
    temperature: Annotated[
        float,
        about(
            "host-yield and heidix: at 0 the best host that may be visited is always next; the "
            "higher, the less often it is.",
            ge=0,
        ),
    ] = 1.0
    priorities: Annotated[
        dict[str, float],
        about(
            'host-yield and heidix: prioritisers of URLs with the power of each, such as {"host-yield" = '
            '1.0, "link-context" = 0.5}.'
        ),
    ] = {}  # noqa: RUF012 - msgspec copies it
    patience: Annotated[
        float,
        about(
            "learned: at 0 no connection is ever idle, which takes least time; at 1 connections "
            "wait for the best hosts, which takes least download.",
            ge=0,
            le=1,
        ),
    ] = 0.8
    widen: Annotated[
        bool,
        about(
            "learned, focus, host-yield and heidix: a crawl that runs dry looks for more URLs "
            "around its good pages.",
        ),
    ] = True
    floor: Annotated[
        float,
        about(
            "A crawl that has run dry and looked everywhere ends when it gives less text than this "
            "for each byte downloaded; 0: it continues to the last URL.",
            ge=0,
        ),
    ] = 0.001


class CycleSettings(Section, frozen=True):
    """A crawl in rounds instead of a continuous frontier: links found in a cycle wait for the next one."""

    pages: Annotated[Count, about("URLs of a cycle, the best ones; 0: no cycles.")] = 0
    domain_pages: Annotated[
        Count, about("URLs of a cycle that one registered domain may have; 0: no limit.")
    ] = 0
    count: Annotated[Count, about("The crawl stops after this many cycles; 0: when nothing is left.")] = 0
    # The cyclic selection of HeidiX.
    selection: Annotated[
        bool,
        about(
            "Each cycle is a crawl of its own that fetches this many pages, from the best URLs "
            "found in the one before.",
        ),
    ] = False
    max_badness: Annotated[
        float, about("selection: highest Badness of pages whose URLs are taken.", ge=0)
    ] = 10.0
    max_boilerplate: Annotated[
        float, about("selection: highest boilerplate score of blocks whose URLs are taken.", ge=0)
    ] = 0.5
    seeds: Annotated[int, about("selection: URLs that the next cycle begins with.", ge=1)] = 100_000


class ShardSettings(Section, frozen=True):
    """A crawl in shards: several processes, each with hosts of its own, on one machine or on many."""

    count: Annotated[Processes, about("Number of shards, fixed when the corpus is made; 0: none.")] = 0
    lease: Annotated[
        LeaseSeconds,
        about("Time without a heartbeat after which a shard is replaced."),
    ] = 10.0
    scratch: Annotated[
        str,
        about(
            "Folder on a disk of each machine in which shards work; empty: in the corpus, on a disk"
            " that all machines share.",
        ),
    ] = ""
    snapshot: Annotated[
        PositiveSeconds,
        about("Time between two copies from the scratch folder into the corpus."),
    ] = 60.0
