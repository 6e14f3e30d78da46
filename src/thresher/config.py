"""corpus.toml: what the user asked for, typed. Every default stands here, once."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

SCHEMA = 1  # of a corpus directory; a newer one is refused

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


# Extensions of files that hold no page; nothing is downloaded to find that out.
NO_PAGES = (
    *(
        "jpg",
        "jpeg",
        "png",
        "gif",
        "webp",
        "svg",
        "ico",
        "bmp",
        "tif",
        "tiff",
        "avif",
        "psd",
        "eps",
        "css",
        "js",
    ),
    *(
        "mp3",
        "mp4",
        "m4a",
        "m4v",
        "ogg",
        "ogv",
        "oga",
        "wav",
        "flac",
        "avi",
        "mov",
        "mkv",
        "webm",
        "wmv",
        "swf",
    ),
    *("zip", "rar", "7z", "tar", "tgz", "bz2", "xz", "exe", "msi", "dmg", "iso", "deb", "rpm", "apk", "jar"),
    *("pdf", "ps", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp", "rtf", "epub", "mobi"),
    *("ttf", "otf", "woff", "woff2", "csv", "tsv", "ics", "vcf", "torrent"),
)


class ConfigError(Exception):
    """Something the user wrote cannot be used; the message names it and the cure."""


class Section(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table of corpus.toml: unknown names are refused, defaults are not written out."""


class Scope(Section, frozen=True):
    """Which URLs may enter the frontier."""

    tlds: tuple[str, ...] = ()  # empty: any
    hosts: tuple[str, ...] = ()  # these hosts and their subdomains; empty: any
    include: tuple[str, ...] = ()  # regular expressions, one must match somewhere in the URL
    exclude: tuple[str, ...] = ()  # regular expressions, none may match
    internal: bool = True  # links inside a host
    external: bool = True  # links to other hosts
    queries: bool = True  # URLs with a query
    skip_extensions: tuple[str, ...] = NO_PAGES  # of the last part of the path
    max_depth: int = 100  # links from a seed
    sitemaps: bool = True
    feeds: bool = True


class Budget(Section, frozen=True):
    """When to stop; 0 is no limit. The first three stop the crawl, the others a host or a domain."""

    pages: int = 0
    bytes: int = 0
    seconds: float = 0.0
    host_pages: int = 20_000  # even an endless host ends
    host_bytes: int = 0
    domain_pages: int = 100_000  # wildcard DNS makes endless hosts of one domain
    domain_bytes: int = 0


class Polite(Section, frozen=True):
    """How other people's servers are treated. robots.txt has no switch."""

    contact: str = ""  # URL or address that a webmaster can turn to
    delay: float = 5.0  # seconds between requests to a host
    load_share: float = 0.2  # at most this share of a host's time is spent on us: delay >= elapsed / share
    ip_delay: float = 0.5  # seconds between requests to one address, whatever the host
    max_crawl_delay: float = 300.0  # a host that asks for more is parked, never hurried
    robots_age: float = 86_400.0  # RFC 9309: no older than a day
    robots_retry: float = 3_600.0  # before robots.txt that could not be had is tried again
    tries: int = 3  # visits of a URL that fails in passing
    host_failures: int = 10  # connection failures in a row before a host is given up
    backoff: float = 30.0  # first back-off after 429/503, doubled each time
    max_backoff: float = 3_600.0  # a host that asks for longer is parked


class Fetch(Section, frozen=True):
    """Limits of one request. Bytes are as received unless said otherwise."""

    connections: int = 200
    connect_timeout: float = 15.0
    first_byte_timeout: float = 30.0
    total_timeout: float = 90.0
    min_rate: int = 200  # bytes per second, averaged over `min_rate_seconds`
    min_rate_seconds: int = 20
    max_header_bytes: int = 64 * KIB
    max_body_bytes: int = 8 * MIB
    max_redirects: int = 8
    encodings: tuple[str, ...] = ("gzip",)  # asked for; every WARC tool reads gzip, few read br and zstd
    ports: tuple[int, ...] = (80, 443, 8000, 8008, 8080, 8443)
    dns_seconds: float = 3_600.0  # longest that an answer is believed
    dns_negative_seconds: float = 600.0
    dns_timeout: float = 10.0


class Reading(Section, frozen=True):
    """Limits and choices of the reader."""

    processes: int = 0  # 0: one less than the machine's cores, at least one
    deadline: float = 20.0  # seconds for one page
    max_decoded_bytes: int = 32 * MIB  # after decompression
    max_links: int = 10_000
    memory: int = 2 * GIB  # of one reader process
    mode: Literal["precision", "balanced", "recall"] = (
        "balanced"  # text that is in doubt: leave it, or take it
    )
    paragraph_language: Literal["", "mark", "drop"] = ""  # paragraphs in another language than their text
    runs: bool = False  # hash the text's runs of words; judge.near_duplicates switches it on


class Judging(Section, frozen=True):
    """What is kept. 0 switches a bound off."""

    min_html_bytes: int = 2_000  # HeidiX: pages under 2 kB of HTML hold no text
    min_text_chars: int = 1_000
    language: bool = True  # keep only the corpus's language
    min_language_bytes: int = 0
    max_language_bytes: int = 0
    min_language_share: float = 0.7
    max_badness: float = 10.0  # the papers' working threshold
    max_suspicion: float = 0.0  # of 1, that a machine made the text; 0.5 is rare among good texts
    max_age: Annotated[float, Meta(ge=0)] = 0.0  # days since Last-Modified; a page without it passes
    duplicates: bool = True  # drop exact duplicates of raw page and of text
    near_duplicates: bool = False  # drop paragraphs most of whose runs of seven words were seen before …
    near_duplicate_share: Annotated[float, Meta(gt=0, le=1)] = 0.5  # … that is, more than this share
    near_duplicate_memory: Annotated[int, Meta(ge=0)] = GIB  # for 300 million runs; then the oldest go


class Storing(Section, frozen=True):
    """What is written and in what portions."""

    keep_raw: Literal["all", "kept", "none"] = "all"
    warc_bytes: int = GIB  # a new file after this many
    segment_bytes: int = 128 * MIB  # an open segment is sealed into Parquet after this many
    links: bool = True
    commit_pages: int = 256
    commit_seconds: float = 1.0


PolicyName = Literal["learned", "focus", "bfs", "random", "spiderling", "host-yield", "heidix"]


class Policy(Section, frozen=True):
    """How the frontier chooses."""

    name: PolicyName = "learned"
    # SpiderLing: a domain whose yield is below this, with n pages downloaded, is closed ("" closes none) …
    threshold: str = "0.01 * (log10(n) - 1)"
    # … but never before 8 pages or 512 kB, whichever comes later.
    min_pages: int = 8
    min_bytes: int = 512_000
    # host-yield, heidix: at 0 the best host that may be visited is always next; the higher, the less often it is.
    temperature: Annotated[float, Meta(ge=0)] = 1.0
    # What makes a URL good there, with the power that each has: {"host-yield" = 1.0, "link-context" = 0.5}.
    priorities: dict[str, float] = {}
    # learned: between 0, least time, where no connection is ever idle, and 1, least download.
    patience: Annotated[float, Meta(ge=0, le=1)] = 0.8
    # learned, focus, host-yield, heidix: a crawl that runs dry looks for more around its good pages …
    widen: bool = True
    # … and ends where, all of that done, it gives less text than this for each byte; 0: goes on to the last URL.
    floor: Annotated[float, Meta(ge=0)] = 0.001


Count = Annotated[int, Meta(ge=0)]


class Cycles(Section, frozen=True):
    """A crawl in rounds instead of a continuous frontier: what is found in one waits for the next."""

    pages: Count = 0  # URLs of a cycle, those of the highest weight; 0: no cycles
    domain_pages: Count = 0  # of these, at most so many of one registered domain; 0: no limit
    count: Count = 0  # stop after so many cycles; 0: when nothing is left
    # Phases of `pages` fetched instead, each a crawl of its own from the best URLs harvested in the one before; …
    selection: bool = False
    max_badness: float = 10.0  # … of the pages that such URLs are harvested from (HeidiX), …
    max_boilerplate: Annotated[float, Meta(ge=0)] = (
        0.5  # … which is more than that of the blocks they stand in
    )
    seeds: Annotated[int, Meta(ge=1)] = 100_000  # the best so many of them


class Shards(Section, frozen=True):
    """A crawl in shards: several loops, each with hosts of its own, on one machine or on many."""

    count: Count = 0  # fixed when the corpus is made; 0: no shards
    lease: Annotated[float, Meta(ge=0.5)] = 10.0  # seconds without a word after which a shard is replaced
    scratch: str = (
        ""  # folder on each machine in which shards work; empty: in the corpus, which all machines share
    )
    snapshot: Annotated[float, Meta(gt=0)] = 60.0  # seconds between two copies from there into the corpus


class Config(Section, frozen=True):
    """All that was asked of a corpus."""

    language: str = ""
    thresher: str = ""  # version that made the corpus
    schema: int = SCHEMA
    scope: Scope = Scope()
    budget: Budget = Budget()
    polite: Polite = Polite()
    fetch: Fetch = Fetch()
    read: Reading = Reading()
    judge: Judging = Judging()
    store: Storing = Storing()
    policy: Policy = Policy()
    cycles: Cycles = Cycles()
    shards: Shards = Shards()
    # What `thresher process` does, step by step: [[process]] with step = "…" and the parameters of that step.
    process: tuple[dict[str, Any], ...] = ()


def load(directory: Path) -> Config:
    """The config of a corpus; ConfigError names what is wrong with it."""
    path = directory / "corpus.toml"
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"{directory} is not a corpus (it has no corpus.toml); make one: "
            f"thresher crawl {directory} --lang CODE --seeds FILE"
        ) from None
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{path} cannot be read: {fault}") from None
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"{path} is not TOML: {fault}") from None
    return parse(table, str(path))


def parse(table: Mapping[str, Any], where: str = "corpus.toml") -> Config:
    """A config from the tables of corpus.toml.

    >>> parse({"polite": {"dealy": 3}})
    Traceback (most recent call last):
    thresher.config.ConfigError: corpus.toml: polite.dealy is not a setting; did you mean polite.delay?
    """
    schema = table.get("schema", SCHEMA)
    if isinstance(schema, int) and schema > SCHEMA:
        raise ConfigError(
            f"{where}: schema = {schema} was made by a newer thresher ({table.get('thresher', 'unknown')}); "
            f"this one knows schema {SCHEMA}: upgrade with pip install -U thresher"
        )
    _refuse_unknown(Config, table, where, "")
    try:
        config = msgspec.convert(table, Config)
    except msgspec.ValidationError as fault:
        raise ConfigError(_explain(fault, table, where)) from None
    if (scratch := config.shards.scratch) and not Path(scratch).is_absolute():
        raise ConfigError(
            f"{where}: shards.scratch = {_toml(scratch)} is not the whole path of a folder, which shards on other "
            f"machines need; try scratch = {_toml(f'/scratch/{scratch}')}"
        )
    for name in ("include", "exclude"):
        for pattern in getattr(config.scope, name):
            try:
                re.compile(pattern)
            except re.error as fault:
                raise ConfigError(
                    f"{where}: scope.{name} = {pattern!r} is not a regular expression: {fault}"
                ) from None
    return config


def _refuse_unknown(section: type[Struct], table: Mapping[str, Any], where: str, prefix: str) -> None:
    fields = {field.name: field.type for field in msgspec.structs.fields(section)}
    for name, value in table.items():
        if name not in fields:
            near = difflib.get_close_matches(name, fields, n=1, cutoff=0.5)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"known here: {', '.join(fields)}"
            raise ConfigError(f"{where}: {prefix}{name} is not a setting; {hint}")
        inner = fields[name]
        if isinstance(inner, type) and issubclass(inner, Section) and isinstance(value, Mapping):
            _refuse_unknown(inner, value, where, f"{name}.")


def _explain(fault: msgspec.ValidationError, table: Mapping[str, Any], where: str) -> str:
    """msgspec's words with the setting's name, the value given and a value that would do."""
    message, _, path = str(fault).partition(" - at `$.")
    names = path.rstrip("`").split("[")[0].split(".") if path else []
    value: Any = table
    default: Any = Config()
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
        default = getattr(default, name, None)
    if not names:
        return f"{where}: {message}"
    example = "" if isinstance(default, Section) else f"; try {names[-1]} = {_toml(default)}"
    if names == ["process"]:
        example = '; write [[process]] and below it step = "NAME", for each step anew'
    return f"{where}: {'.'.join(names)} = {_toml(value)} cannot be used: {message}{example}"


def _toml(value: Any) -> str:
    """A value as TOML writes it: as JSON does, but for tables and one character that JSON does not escape."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(name)} = {_toml(each)}" for name, each in value.items()) + "}"
    text = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False, default=str)
    return text.replace("\x7f", "\\u007f")


def dump(config: Config) -> str:
    """corpus.toml of a config: what differs from the defaults, and what must always be said."""
    table: dict[str, Any] = msgspec.to_builtins(config)
    lines = ["# What was asked of this corpus. Settings left out have Thresher's defaults.", ""]
    lines += [f"{name} = {_toml(getattr(config, name))}" for name in ("language", "thresher", "schema")]
    for name, section in table.items():
        if isinstance(section, dict) and section:
            lines += ["", f"[{name}]"]
            lines += [f"{field} = {_toml(value)}" for field, value in section.items()]
    for entry in config.process:
        lines += ["", "[[process]]"]
        lines += [f"{field} = {_toml(value)}" for field, value in entry.items()]
    return "\n".join(lines) + "\n"


_UNITS = {"": 1, "k": 1_000, "m": 10**6, "g": 10**9, "t": 10**12}
_TIMES = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def size(text: str) -> int:
    """Bytes as people write them: `500`, `20k`, `1.5GB`."""
    found = re.fullmatch(r"([\d.]+)\s*([kmgt]?)(i?b)?", text.strip(), re.IGNORECASE)
    try:
        if found:
            return round(float(found[1]) * _UNITS[found[2].lower()])
    except ValueError:
        pass
    raise ConfigError(f"{text!r} is not a size; try 500, 20k, 1.5GB")


def duration(text: str) -> float:
    """Seconds as people write them: `90`, `15m`, `2h`, `1.5d`."""
    found = re.fullmatch(r"([\d.]+)\s*([smhd]?)", text.strip(), re.IGNORECASE)
    try:
        if found:
            return float(found[1]) * _TIMES[found[2].lower()]
    except ValueError:
        pass
    raise ConfigError(f"{text!r} is not a time; try 90, 15m, 2h, 1.5d")
