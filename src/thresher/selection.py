"""The document filter of exports, recipes, the judge and the scope of a crawl.

Exports and the step `filter` give it all facts about a document; the judge gives it the measures of a page's text
(share of the language, Badness, suspicion), and the scope gives it the host of a URL, the only fact that is known
before the download.

Two rules hold wherever documents are selected. A host name stands for the host and all its subdomains. A document
whose value is unknown does not meet a bound on that value, unless the filter has `keep_unknown`; exclusions
(`not_hosts`, `opted_out`) apply to known values only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields, force_setattr

from thresher import reasons
from thresher.errors import UsageError
from thresher.urls import host_in, host_named, tld, top_level

if TYPE_CHECKING:  # the judge works without Arrow
    import pyarrow as pa

DATE = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?")
_WILDCARD = re.compile(r"[*?]")

# The columns of the table of documents that each field of DocumentFacts is read from.
_COLUMNS = {
    "language": ("language",),
    "language_share": ("language_share",),
    "badness": ("badness",),
    "suspicion": ("suspicion",),
    "chars": ("text",),
    "host": ("host",),
    "date": ("published", "fetched"),
    "license": ("license",),
    "opted_out": ("opt_out",),
}


class DocumentFacts(Struct, frozen=True, gc=False):
    """The properties of a document that a filter may ask about; None and "" mean unknown."""

    language: str = ""
    language_share: float | None = None
    badness: float | None = None
    suspicion: float | None = None
    chars: int | None = None  # of its text
    host: str = ""
    date: str = ""  # of publication, or else of the download: 2024-05-31, 2024-05 or 2024
    license: str = ""
    opted_out: bool = False


class DocumentFilter(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """Conditions on documents; a document is selected if it meets all of them.

    Hosts, top-level domains, dates and licences are checked and brought to canonical form on construction;
    UsageError names the one that cannot be used.

    >>> DocumentFilter(hosts=["Example.CZ"]).hosts
    ('example.cz',)
    """

    languages: tuple[str, ...] = ()  # codes; empty: any
    min_language_share: float = 0.0  # of the corpus's language in the text
    max_badness: float | None = None
    max_suspicion: float = 1.0  # 1: any; see `SpamSignals.suspicion`
    min_chars: int = 0
    hosts: tuple[str, ...] = ()  # names, each with its subdomains, or patterns with * and ?; empty: any
    not_hosts: tuple[str, ...] = ()
    tlds: tuple[str, ...] = ()
    since: str = ""  # a date; it belongs to the period
    until: str = ""
    licenses: tuple[str, ...] = ()  # parts of their addresses, or patterns with * and ?
    opted_out: bool = False  # also documents whose publishers opted out of text mining
    keep_unknown: bool = False  # a document of which a value is unknown meets a bound on it

    def __post_init__(self) -> None:
        """Check the conditions and bring them to the form that documents have."""
        for name in ("min_language_share", "max_suspicion"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise UsageError(f"{name} must be between 0 and 1, got {value:g}; for example 0.8")
        if self.max_badness is not None and not self.max_badness >= 0:
            raise UsageError(f"max_badness must be a number of at least 0, got {self.max_badness:g}")
        for name in ("since", "until"):
            value = getattr(self, name)
            if value and not DATE.fullmatch(value):
                raise UsageError(
                    f"{name} must be a date, got {value!r}; for example 2024-05-31, 2024-05 or 2024"
                )
        common = slice(min(len(self.since), len(self.until)))
        if self.since and self.until and self.since[common] > self.until[common]:
            raise UsageError(f"since = {self.since} is after until = {self.until}; exchange them")
        force_setattr(self, "languages", tuple(self.languages))
        for name in ("hosts", "not_hosts"):
            force_setattr(self, name, tuple(host_pattern(host) for host in getattr(self, name)))
        force_setattr(self, "tlds", tuple(map(top_level_domain, self.tlds)))
        force_setattr(self, "licenses", tuple(name.lower() for name in self.licenses))

    def reason_against(self, facts: DocumentFacts) -> str:
        """Return the first reason for which a document is left out, or "" if it is selected.

        >>> DocumentFilter(hosts=("example.cz",)).reason_against(DocumentFacts(host="www.example.cz"))
        ''
        >>> DocumentFilter(since="2024-05").reason_against(DocumentFacts(date="2023"))
        'date'
        """
        for test in self._tests:
            if not test.passes(getattr(facts, test.fact)):
                return test.reason
        return ""

    def reasons(self, batch: pa.RecordBatch) -> list[str]:
        """Return the reason for which each row of a batch of documents is left out, or ""."""
        found = [""] * batch.num_rows
        for test in self._tests:
            for row, value in enumerate(_values(batch, test.fact)):
                if not found[row] and not test.passes(value):
                    found[row] = test.reason
        return found

    def conditions(self) -> dict[str, Any]:
        """Return the conditions that differ from their defaults, by name."""
        return {
            field.name: value
            for field in fields(DocumentFilter)
            if (value := getattr(self, field.name)) != field.default
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that `reasons` reads."""
        return tuple(dict.fromkeys(column for test in self._tests for column in _COLUMNS[test.fact]))

    @cached_property
    def _tests(self) -> tuple[_Test, ...]:
        """The tests of this filter, in the order in which reasons are given."""
        found: list[_Test] = []

        def bound(reason: str, fact: str, meets: Callable[[Any], bool]) -> None:
            unknown = self.keep_unknown
            found.append(_Test(reason, fact, lambda value: unknown if value in (None, "") else meets(value)))

        if not self.opted_out:
            found.append(_Test(reasons.OPTED_OUT, "opted_out", lambda opted_out: not opted_out))
        if self.languages:
            bound(reasons.LANGUAGE, "language", frozenset(self.languages).__contains__)
        if self.min_language_share:
            bound(reasons.LANGUAGE_SHARE, "language_share", self.min_language_share.__le__)
        if (most := self.max_badness) is not None:
            bound(reasons.BADNESS, "badness", lambda badness: badness <= most)
        if self.max_suspicion < 1:
            bound(reasons.SUSPICIOUS, "suspicion", lambda suspicion: suspicion <= self.max_suspicion)
        if self.min_chars:
            bound(reasons.TOO_SHORT, "chars", lambda chars: chars >= self.min_chars)
        if self.hosts:
            bound(reasons.HOST, "host", HostPatterns(self.hosts).matches)
        if self.not_hosts:
            excluded = HostPatterns(self.not_hosts)
            found.append(_Test(reasons.HOST, "host", lambda host: not (host and excluded.matches(host))))
        if self.tlds:
            bound(reasons.TLD, "host", lambda host: tld(host) in self.tlds)
        if self.since or self.until:
            bound(reasons.DATE, "date", self._is_in_period)
        if self.licenses:
            bound(reasons.LICENSE, "license", self._is_licensed)
        return tuple(found)

    def _is_in_period(self, day: str) -> bool:
        """Compare dates as far as both are given: 2024 is within a period that begins in 2024-05."""
        first, last = self.since[: len(day)], self.until[: len(day)]
        return (not first or day[: len(first)] >= first) and (not last or day[: len(last)] <= last)

    def _is_licensed(self, license: str) -> bool:
        name = license.lower()
        return any(
            fnmatchcase(name, wanted) if _WILDCARD.search(wanted) else wanted in name
            for wanted in self.licenses
        )


# The flags of the command line that name the fields of DocumentFilter otherwise.
_FLAGS = {"lang": "languages", "host": "hosts", "not_host": "not_hosts", "tld": "tlds", "license": "licenses"}


def document_filter(where: DocumentFilter | Mapping[str, Any]) -> DocumentFilter:
    """Return the filter with these conditions, named as flags of `thresher export` or as fields of the filter.

    One value may stand where several are possible, and dates may be dates.

    >>> document_filter({"host": "Example.CZ", "since": date(2024, 5, 31)}).conditions()
    {'hosts': ('example.cz',), 'since': '2024-05-31'}
    """
    if isinstance(where, DocumentFilter):
        return where
    if not isinstance(where, Mapping):
        raise UsageError(f"conditions must be a mapping, such as {{'max_badness': 10}}; got {where!r}")
    known = {field.name: field.default for field in fields(DocumentFilter)}
    found: dict[str, Any] = {}
    for name, value in where.items():
        field = _FLAGS.get(name, name)
        if field not in known:
            choice = ", ".join([*_FLAGS, *(other for other in known if other not in _FLAGS.values())])
            raise UsageError(f"unknown condition {name!r}; choose one of {choice}")
        if isinstance(known[field], tuple):
            value = tuple(value) if isinstance(value, list | tuple | set) else (value,)  # noqa: PLW2901
        found[field] = day_of(value) if isinstance(value, date) else value
    if "languages" in found:
        from thresher.reader.language.codes import language_code

        found["languages"] = tuple(map(language_code, found["languages"]))
    try:
        return msgspec.convert(found, DocumentFilter)
    except msgspec.ValidationError as fault:
        expected, _, place = str(fault).partition(" - at `$.")
        raise UsageError(f"the condition {place.rstrip('`') or where} cannot be used: {expected}") from None


class _Test(Struct, frozen=True):
    reason: str
    fact: str  # the field of DocumentFacts that it looks at
    passes: Callable[[Any], bool]


class HostPatterns:
    """Host names, each with its subdomains, and patterns with `*` and `?`.

    A name without a port matches hosts on any port.

    >>> hosts = HostPatterns(["example.cz", "*.blog.sk"])
    >>> hosts.matches("www.example.cz:8080"), hosts.matches("my.blog.sk"), hosts.matches("blog.sk")
    (True, True, False)
    """

    def __init__(self, names: Iterable[str]) -> None:
        patterns = {host_pattern(name) for name in names}
        self._wild = tuple(sorted(pattern for pattern in patterns if _WILDCARD.search(pattern)))
        self._names = frozenset(patterns.difference(self._wild))

    def __bool__(self) -> bool:
        return bool(self._names or self._wild)

    def matches(self, host: str) -> bool:
        """Return whether a host of a canonical URL, with or without a port, is one of these."""
        if host in self._names:
            return True
        name = host.partition(":")[0] if not host.startswith("[") else host.partition("]")[0] + "]"
        for known in {host, name}:
            rest = known
            while rest:
                if rest in self._names:
                    return True
                rest = rest.partition(".")[2]
        return any(fnmatchcase(known, pattern) for known in {host, name} for pattern in self._wild)


def host_pattern(name: str) -> str:
    """Return a host name or pattern as people write it in the form that canonical URLs have.

    >>> host_pattern("Президент.РФ"), host_pattern(".example.cz"), host_pattern("*.президент.рф")
    ('xn--d1abbgf6aiiy.xn--p1ai', 'example.cz', '*.xn--d1abbgf6aiiy.xn--p1ai')
    """
    text = name.strip().lstrip(".")
    if not text or "/" in text:
        raise UsageError(f"{name!r} is not a host name; write {host_in(name) or 'example.cz'}")
    if not _WILDCARD.search(text):
        return host_named(text)
    return ".".join(
        label if label.isascii() or _WILDCARD.search(label) else host_named(label)
        for label in text.lower().split(".")
    )


def day_of(value: Any) -> str:
    """Return the date that a date, a time or a text begins with, as text; "" if there is none.

    >>> day_of("2026-03-01T09:30:00+01:00"), day_of("2026-03"), day_of("in spring"), day_of(None)
    ('2026-03-01', '2026-03', '', '')
    """
    text = value.isoformat() if isinstance(value, date | datetime) else value or ""
    found = DATE.match(text)
    return found[0] if found else ""


def top_level_domain(name: str) -> str:
    """Return a top-level domain as people write it in the form of `urls.tld`; raise UsageError for other text.

    >>> top_level_domain(".РФ")
    'xn--p1ai'
    """
    found = top_level(name)
    if found is None:
        raise UsageError(
            f"{name!r} is not a top-level domain; write cz, or for all hosts under a longer name: hosts co.uk"
        )
    return found


def _values(batch: pa.RecordBatch, fact: str) -> Iterable[Any]:
    """Return one field of DocumentFacts for each row of a batch."""
    columns = [batch.column(name) for name in _COLUMNS[fact]]
    if fact == "chars":
        import pyarrow as pa
        import pyarrow.compute as pc

        texts: Any = columns[0]
        return list(pa.array(pc.utf8_length(texts)).to_pylist())
    values = [column.to_pylist() for column in columns]
    if fact == "date":
        return [day_of(published) or day_of(fetched) for published, fetched in zip(*values, strict=True)]
    return values[0]
