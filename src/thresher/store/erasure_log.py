"""The erasure log: requests to remove documents, and the test by which crawls and imports refuse them later.

DIR/forgotten.jsonl has a line for each request. Beside the request it holds salted hashes of all names in it;
crawls and imports compare URLs, hosts and ids with these hashes.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from thresher.errors import DataError, UsageError
from thresher.files.durable_files import replace
from thresher.urls import canonical, host_in, host_of_metadata, key
from thresher.urls import host as host_of

FILE = "forgotten.jsonl"
MOST_KNOWN = 100_000  # hosts whose result is cached: links repeat them
# The id of a later part of a long document that has none of its own: file, number in it, part.
_PART = re.compile(r"(.+#[0-9]+)#[0-9]+", re.DOTALL)
_WILD = re.compile(r"[*?\[]")


class ErasureRequest(Struct, frozen=True):
    """The URLs, hosts and domains to remove, in canonical form."""

    urls: frozenset[str] = frozenset()  # canonical URLs, and ids of imported documents
    hosts: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()  # with all hosts under them

    def names(self) -> set[str]:
        """Return the names of everything in the request, each with its kind in front."""
        return {
            *(f"url {_address(url, canonical(url))}" for url in self.urls),
            *(f"host {host}" for host in self.hosts),
            *(f"domain {domain}" for domain in self.domains),
        }


class ErasureMatcher:
    """A test whether URLs, documents and hosts are covered by a request.

    >>> ErasureMatcher(ErasureRequest(hosts=frozenset({"a.cz"}))).covers("https://a.cz:8080/x")
    True
    """

    def __init__(self, request: ErasureRequest) -> None:
        self._names = request.names()

    def covers(self, url: str | None) -> bool:
        """Return whether a URL, or the id of a document, is covered."""
        return bool(url) and not self._names.isdisjoint(names_of(url or ""))

    def covers_document(self, id: str, meta: Mapping[str, str]) -> bool:
        """Return whether an imported document is covered, by its id or by its metadata."""
        return any(map(self.covers, [id, *names_of_document(id, meta)])) or self.covers_host(
            meta.get("host", "")
        )

    def covers_host(self, host: str) -> bool:
        """Return whether all pages of a host are covered."""
        return not self._names.isdisjoint(_names_of_host(host_of_metadata(host)))

    def covers_domain(self, domain: str) -> bool:
        """Return whether all hosts of a domain are covered."""
        return not self._names.isdisjoint(_names_of_host(domain)[1:])


def erasure_request(
    *, urls: Iterable[str] = (), hosts: Iterable[str] = (), domains: Iterable[str] = ()
) -> ErasureRequest:
    """Return a request from names as people write them; raise UsageError for none, or one that is not a host."""
    found = ErasureRequest(
        frozenset(_url(name) for name in urls),
        frozenset(_host("host", name) for name in hosts),
        frozenset(_host("domain", name) for name in domains),
    )
    if found == ErasureRequest():
        raise UsageError("nothing to forget; give --url, --host or --domain")
    return found


def _url(name: str) -> str:
    if not name:
        raise UsageError("--url must not be empty; for example https://example.cz/page")
    url = canonical(name) or name
    try:
        url.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"--url {name!r} is not UTF-8, and no document has such an id; give it in UTF-8"
        ) from None
    return url


def _host(option: str, name: str) -> str:
    given = name.strip().removesuffix(".")
    url = canonical(f"http://{given}/")
    host = url.split("/")[2] if url else ""
    if _WILD.search(given) and not host.startswith("["):
        raise UsageError(
            f"--{option} {name!r} is a pattern, and would match nothing; give hosts by their names, or a domain "
            "with all hosts under it: --domain example.cz"
        )
    if given and not all(given.split(".")):
        whole = ".".join(filter(None, given.split("."))) or "example.cz"
        raise UsageError(f"--{option} {name!r} has an empty part between its dots; try {whole}")
    if not url or url.count("/") != 3 or "?" in url:
        raise UsageError(f"--{option} {name!r} is not the name of a {option}; try www.example.cz")
    return _without_port(host)


def names_of(url: str) -> list[str]:
    """Return all names by which a request may cover a URL or the id of a document."""
    known = canonical(url)
    host = host_of(known) if known else host_in(url)
    return [f"url {_address(url, known)}", *(_names_of_host(host) if host else ())]


def names_of_document(id: str, meta: Mapping[str, str]) -> list[str]:
    """Return other names of an imported document: the id it came with, its URL, and the id of its first part."""
    part = None if meta.get("id") else _PART.fullmatch(id)
    return [name for name in (meta.get("id"), meta.get("url"), part[1] if part else "") if name]


def _names_of_host(host: str) -> list[str]:
    name = _without_port(host.rpartition("@")[2])
    labels = name.split(".")
    return [f"host {name}", *(f"domain {'.'.join(labels[start:])}" for start in range(len(labels)))]


def _without_port(host: str) -> str:
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def _address(url: str, known: str | None) -> str:
    """Return the key of a URL, which is the same for http and https; return an id unchanged."""
    return key(known or url).hex() if known or url.startswith(("http://", "https://")) else url


class ErasureEntry(Struct, frozen=True):
    """One request in the log."""

    time: str
    asked: dict[str, list[str]]
    found: dict[str, int]  # number of removed records by kind
    salt: str
    hashes: list[str]


_decode_lines = msgspec.json.Decoder(ErasureEntry).decode_lines
_encode_lines = msgspec.json.Encoder().encode_lines


class ErasureLog:
    """All requests of a corpus, as a test by hashes."""

    def __init__(self, lines: Iterable[ErasureEntry] = ()) -> None:
        self._hashes: dict[str, set[str]] = {}
        for line in lines:
            self._hashes.setdefault(line.salt, set()).update(line.hashes)
        self._known: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._hashes)

    @property
    def salt(self) -> str:
        """The salt of all entries: the existing one, or a new one."""
        return next(iter(self._hashes), "") or secrets.token_hex(16)

    def holds(self, url: str) -> bool:
        """Return whether a URL or an id must be refused."""
        if not self._hashes or not url:
            return False
        address, *of_host = names_of(url)
        return self._any([address]) or (bool(of_host) and self._holds_host(of_host))

    def holds_document(self, meta: Mapping[str, str]) -> bool:
        """Return whether a document that is being imported must be refused, by its metadata."""
        if not self._hashes:
            return False
        host = host_of_metadata(meta.get("host", ""))
        return any(map(self.holds, names_of_document("", meta))) or (
            bool(host) and self._holds_host(_names_of_host(host))
        )

    def _holds_host(self, names: list[str]) -> bool:
        known = self._known.get(names[0])
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[names[0]] = self._any(names)
        return known

    def _any(self, names: Iterable[str]) -> bool:
        return any(hashed(name, salt) in hashes for name in names for salt, hashes in self._hashes.items())


def hashed(name: str, salt: str) -> str:
    """Return the salted hash of a name, which can be compared but not read."""
    data = name.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=salt.encode()[:64], digest_size=16).hexdigest()


def load(directory: Path) -> ErasureLog:
    """Return the erasure log of a corpus."""
    return ErasureLog(_lines(directory / FILE))


def _lines(path: Path) -> list[ErasureEntry]:
    try:
        return _decode_lines(path.read_bytes()) if path.exists() else []
    except msgspec.DecodeError as fault:
        raise DataError(
            f"{path} cannot be read ({fault}); restore it: it lists the documents that must not come back"
        ) from None


def log_request(directory: Path, asked: ErasureRequest, found: Mapping[str, int], now: datetime) -> None:
    """Add a request to the log, durably; a crash leaves the log as it was before or after."""
    path = directory / FILE
    lines = _lines(path)
    salt = ErasureLog(lines).salt
    line = ErasureEntry(
        now.isoformat(timespec="seconds"),
        {name: sorted(getattr(asked, name)) for name in asked.__struct_fields__ if getattr(asked, name)},
        dict(found),
        salt,
        sorted(hashed(name, salt) for name in asked.names()),
    )
    replace(path, _encode_lines([*lines, line]))
