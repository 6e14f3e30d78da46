"""Which documents are exported, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from thresher.config import ConfigError
from thresher.url import host_in, host_named, host_told, tld, top_level

_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_WILD = re.compile(r"[*?\[]")
_SAID = re.compile(r" ([^ ]+):(?: |\Z)")


class About(Struct, frozen=True):
    """What is known of a document that a choice may ask for; None or nothing: nobody knows."""

    language: str = ""
    language_share: float | None = None
    badness: float | None = None
    host: str = ""
    date: str = ""  # when it was published, or else fetched: 2024-05-31, 2024-05, 2024
    license: str = ""
    opted_out: bool = False


class Choice(Struct, frozen=True):
    """What is asked of documents. Those of which the answer is not known are left out, too."""

    languages: tuple[str, ...] = ()
    min_language_share: float = 0.0
    max_badness: float | None = None
    hosts: tuple[str, ...] = ()  # names, with all that is under them, or patterns with * and ?
    tlds: tuple[str, ...] = ()
    since: str = ""  # a date, which itself is among those taken
    until: str = ""
    licenses: tuple[str, ...] = ()  # parts of their names, or patterns with * and ?
    opted_out: bool = False  # also documents whose publishers object

    def objection(self, about: About) -> str:
        """Why a document is left out; nothing if it is not.

        >>> Choice(hosts=("example.cz",)).objection(About(host="www.example.cz"))
        ''
        >>> Choice(since="2024-05").objection(About(date="2023"))
        'date'
        """
        if about.opted_out and not self.opted_out:
            return "opted out"
        if self.languages and about.language not in self.languages:
            return "language"
        if self.min_language_share and (about.language_share or 0.0) < self.min_language_share:
            return "language share"
        if self.max_badness is not None and (about.badness is None or about.badness > self.max_badness):
            return "badness"
        if self.hosts and not any(_is_host(pattern, about.host) for pattern in self.hosts):
            return "host"
        if self.tlds and tld(about.host) not in self.tlds:
            return "tld"
        if not self._is_in_time(about.date):
            return "date"
        if self.licenses and not any(_is_license(pattern, about.license) for pattern in self.licenses):
            return "license"
        return ""

    def _is_in_time(self, date: str) -> bool:
        """A date that tells but the year is compared by the year."""
        if not date:
            return not self.since and not self.until
        common = slice(min(len(date), len(self.since)))
        if date[common] < self.since[common]:
            return False
        common = slice(min(len(date), len(self.until)))
        return date[common] <= self.until[common]


def choice(
    *,
    languages: Iterable[str] = (),
    min_language_share: float = 0.0,
    max_badness: float | None = None,
    hosts: Iterable[str] = (),
    tlds: Iterable[str] = (),
    since: str = "",
    until: str = "",
    licenses: Iterable[str] = (),
    opted_out: bool = False,
) -> Choice:
    """A choice as people write it; ConfigError if it makes no sense."""
    if not 0 <= min_language_share <= 1:
        raise ConfigError(f"a share of {min_language_share:g} is not between 0 and 1; try 0.8")
    for name, date in (("from", since), ("to", until)):
        if date and not _DATE.fullmatch(date):
            raise ConfigError(f"--{name} {date!r} is no date; try 2024-05-31, 2024-05 or 2024")
    common = slice(min(len(since), len(until)))
    if since and until and since[common] > until[common]:
        raise ConfigError(f"--from {since} is after --to {until}; nothing is between them")
    return Choice(
        tuple(languages),
        min_language_share,
        max_badness,
        tuple(map(_host, hosts)),
        tuple(map(_tld, tlds)),
        since,
        until,
        tuple(name.lower() for name in licenses),
        opted_out,
    )


def _host(name: str) -> str:
    """A host as URLs have it; or a pattern, of which the labels with other letters are made so."""
    text = name.strip().lstrip(".")
    if not text or "/" in text:
        raise ConfigError(f"--host {name!r} is no name of a host; try {host_in(name) or 'example.cz'}")
    if not _WILD.search(text):
        return host_named(text)
    return ".".join(
        part if part.isascii() or _WILD.search(part) else host_named(part) for part in text.lower().split(".")
    )


def _tld(name: str) -> str:
    found = top_level(name)
    if found is None:
        raise ConfigError(
            f"--tld {name!r} is no top-level domain; try cz, or for all hosts under a longer name: --host co.uk"
        )
    return found


def _is_host(pattern: str, host: str) -> bool:
    names = (host, host.partition(":")[0])
    if _WILD.search(pattern):
        return any(fnmatchcase(name, pattern) for name in names)
    return any(name == pattern or name.endswith(f".{pattern}") for name in names)


def _is_license(pattern: str, license: str) -> bool:
    name = license.lower()
    return bool(name) and (fnmatchcase(name, pattern) if _WILD.search(pattern) else pattern in name)


# what is known of documents

NEEDED = (
    "language",
    "language_share",
    "badness",
    "host",
    "published",
    "fetched",
    "license",
    "opt_out",
)


def of_pages(batch: pa.RecordBatch) -> Iterator[About]:
    """What is known of crawled pages, row by row."""
    for language, share, badness, host, published, fetched, license, objections in zip(
        *(batch.column(name).to_pylist() for name in NEEDED), strict=True
    ):
        date = _day(published) or _day(fetched)
        yield About(language or "", share, badness, host or "", date, license or "", bool(objections))


def of_import(meta: Mapping[str, str], language: str) -> About:
    """What is known of an imported document by what was said of it, and by the language of its corpus."""
    date = next(
        (day for name in ("published", "date", "year", "fetched") if (day := _day(meta.get(name)))), ""
    )
    return About(
        meta.get("language") or language,
        _number(meta.get("language_share")),
        _number(meta.get("badness")),
        host_told(meta["host"]) if meta.get("host") else host_in(meta.get("url") or meta.get("id", "")),
        date,
        meta.get("license") or meta.get("licence", ""),
        bool(objections_of(meta.get("opt_out", ""))),
    )


def objections_of(text: str) -> list[str]:
    """How a publisher objects, as imports tell it: in a list of JSON, or one after the other.

    >>> objections_of("noai tdm-reservation content-signal: /a ai-train=no")
    ['noai', 'tdm-reservation', 'content-signal: /a ai-train=no']
    >>> objections_of('["noai", "noimageai"]'), objections_of("[]")
    (['noai', 'noimageai'], [])
    """
    try:
        return [name for name in msgspec.json.decode(text, type=list[str]) if name]
    except msgspec.DecodeError:
        # What a header or a robots.txt said begins with a name and a colon, and may have spaces in it.
        plain, *said = _SAID.split(" " + " ".join(text.split()))
        return [
            *plain.split(),
            *(f"{name}: {what}".strip() for name, what in zip(*[iter(said)] * 2, strict=True)),
        ]


def _day(moment: Any) -> str:
    """The date that a time or a text begins with."""
    text = moment.isoformat() if isinstance(moment, datetime) else moment or ""
    found = _DATE.match(text)
    return found[0] if found else ""


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
