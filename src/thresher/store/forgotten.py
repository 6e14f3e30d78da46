"""What a corpus was asked to forget: who is meant, what is written down of it, and how it is refused later.

DIR/forgotten.jsonl has a line for each time that somebody asked. Beside what was asked it has salted hashes, by
which crawls and imports know what they must not bring back.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from thresher.config import ConfigError
from thresher.store.files import StoreError, sync_directory
from thresher.url import canonical, host_in, host_told, key
from thresher.url import host as host_of

FILE = "forgotten.jsonl"
MOST_KNOWN = 100_000  # hosts whose answer is remembered: links repeat them
# The id of a later part of a long document that has none of its own: file, number in it, part.
_PART = re.compile(r"(.+#[0-9]+)#[0-9]+", re.DOTALL)
_WILD = re.compile(r"[*?\[]")


class Wish(Struct, frozen=True):
    """Whom to forget; all of it as URLs have it."""

    urls: frozenset[str] = frozenset()  # canonical ones, and ids of imported documents
    hosts: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()  # with all hosts under them

    def names(self) -> set[str]:
        """All that is asked, each under a name that tells its kind."""
        return {
            *(f"url {_address(url, canonical(url))}" for url in self.urls),
            *(f"host {host}" for host in self.hosts),
            *(f"domain {domain}" for domain in self.domains),
        }


class Meant:
    """Tells who is meant by a wish.

    >>> Meant(Wish(hosts=frozenset({"a.cz"}))).covers("https://a.cz:8080/x")
    True
    """

    def __init__(self, wish: Wish) -> None:
        self._names = wish.names()

    def covers(self, url: str | None) -> bool:
        """Whether a URL, or the id of a document, is meant."""
        return bool(url) and not self._names.isdisjoint(names_of(url or ""))

    def covers_document(self, id: str, meta: Mapping[str, str]) -> bool:
        """Whether an imported document is meant, by its id or by what is known of it."""
        return any(map(self.covers, [id, *names_of_document(id, meta)])) or self.covers_host(
            meta.get("host", "")
        )

    def covers_host(self, host: str) -> bool:
        """Whether all pages of a host are meant."""
        return not self._names.isdisjoint(_names_of_host(host_told(host)))

    def covers_domain(self, domain: str) -> bool:
        """Whether all hosts of a domain are meant."""
        return not self._names.isdisjoint(_names_of_host(domain)[1:])


def wish(*, urls: Iterable[str] = (), hosts: Iterable[str] = (), domains: Iterable[str] = ()) -> Wish:
    """A wish as people write it; ConfigError if it names nothing, or something that is no host."""
    found = Wish(
        frozenset(_url(name) for name in urls),
        frozenset(_host("host", name) for name in hosts),
        frozenset(_host("domain", name) for name in domains),
    )
    if found == Wish():
        raise ConfigError("forget what? Give --url, --host or --domain")
    return found


def _url(name: str) -> str:
    if not name:
        raise ConfigError("--url '' is no URL; try https://example.cz/page")
    url = canonical(name) or name
    try:
        url.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"--url {name!r} is not UTF-8, and no document has such an id; give it in UTF-8"
        ) from None
    return url


def _host(option: str, name: str) -> str:
    given = name.strip().removesuffix(".")
    url = canonical(f"http://{given}/")
    host = url.split("/")[2] if url else ""
    if _WILD.search(given) and not host.startswith("["):
        raise ConfigError(
            f"--{option} {name!r} is a pattern, and would match nothing; give hosts by their names, or a domain "
            "with all hosts under it: --domain example.cz"
        )
    if given and not all(given.split(".")):
        whole = ".".join(filter(None, given.split("."))) or "example.cz"
        raise ConfigError(f"--{option} {name!r} has an empty part between its dots; try {whole}")
    if not url or url.count("/") != 3 or "?" in url:
        raise ConfigError(f"--{option} {name!r} is no name of a {option}; try www.example.cz")
    return _without_port(host)


def names_of(url: str) -> list[str]:
    """All names under which a URL, or the id of a document, may be meant."""
    known = canonical(url)
    host = host_of(known) if known else host_in(url)
    return [f"url {_address(url, known)}", *(_names_of_host(host) if host else ())]


def names_of_document(id: str, meta: Mapping[str, str]) -> list[str]:
    """What else an imported document is known by: its URL, the id it came with, and that of its first part."""
    part = None if meta.get("id") else _PART.fullmatch(id)
    return [name for name in (meta.get("id"), meta.get("url"), part[1] if part else "") if name]


def _names_of_host(host: str) -> list[str]:
    name = _without_port(host.rpartition("@")[2])
    labels = name.split(".")
    return [f"host {name}", *(f"domain {'.'.join(labels[start:])}" for start in range(len(labels)))]


def _without_port(host: str) -> str:
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def _address(url: str, known: str | None) -> str:
    """http and https of one address are one URL; an id stands for itself."""
    return key(known or url).hex() if known or url.startswith(("http://", "https://")) else url


class Line(Struct, frozen=True):
    """One time that somebody asked."""

    time: str
    asked: dict[str, list[str]]
    found: dict[str, int]  # how many of what there were to be removed
    salt: str
    hashes: list[str]


_decode_lines = msgspec.json.Decoder(Line).decode_lines
_encode_lines = msgspec.json.Encoder().encode_lines


class Forgotten:
    """All that a corpus was ever asked to forget."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self._hashes: dict[str, set[str]] = {}
        for line in lines:
            self._hashes.setdefault(line.salt, set()).update(line.hashes)
        self._known: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._hashes)

    @property
    def salt(self) -> str:
        """That of all lines: the one that is there, or a new one."""
        return next(iter(self._hashes), "") or secrets.token_hex(16)

    def holds(self, url: str) -> bool:
        """Whether a URL or an id is one to be refused."""
        if not self._hashes or not url:
            return False
        address, *of_host = names_of(url)
        return self._any([address]) or (bool(of_host) and self._holds_host(of_host))

    def holds_document(self, meta: Mapping[str, str]) -> bool:
        """Whether a document about to be imported is one to be refused, by what is known of it."""
        if not self._hashes:
            return False
        host = host_told(meta.get("host", ""))
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
    """A name that nobody can read, but that can be known again."""
    data = name.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, key=salt.encode()[:64], digest_size=16).hexdigest()


def load(directory: Path) -> Forgotten:
    """What a corpus was asked to forget."""
    return Forgotten(_lines(directory / FILE))


def _lines(path: Path) -> list[Line]:
    try:
        return _decode_lines(path.read_bytes()) if path.exists() else []
    except msgspec.DecodeError as fault:
        raise StoreError(
            f"{path} cannot be read ({fault}); restore it: it tells what must stay forgotten"
        ) from None


def write_down(directory: Path, asked: Wish, found: Mapping[str, int], now: datetime) -> None:
    """Add a line, whole or not at all."""
    path = directory / FILE
    lines = _lines(path)
    salt = Forgotten(lines).salt
    line = Line(
        now.isoformat(timespec="seconds"),
        {name: sorted(getattr(asked, name)) for name in asked.__struct_fields__ if getattr(asked, name)},
        dict(found),
        salt,
        sorted(hashed(name, salt) for name in asked.names()),
    )
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as out:
        out.write(_encode_lines([*lines, line]))
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(path)
    sync_directory(directory)
