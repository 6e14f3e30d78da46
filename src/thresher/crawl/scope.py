"""Which links may enter the frontier."""

from __future__ import annotations

import re

from thresher.config import ConfigError, Scope
from thresher.url import host as host_of
from thresher.url import host_named, tld, top_level, trap

MAX_KNOWN = 100_000  # hosts


class Gate:
    """Admits the URLs that the user's scope and the signs of traps let through."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._tlds = frozenset(map(_tld, scope.tlds))
        self._skipped = frozenset(name.lower().lstrip(".") for name in scope.skip_extensions)
        self._hosts = frozenset(host_named(name.lstrip(".")) for name in scope.hosts)
        self._known: dict[str, bool] = {}  # links repeat their hosts
        self._include = [re.compile(pattern) for pattern in scope.include]
        self._exclude = [re.compile(pattern) for pattern in scope.exclude]

    def admits(self, url: str, source: str | None) -> bool:
        """Whether a canonical URL found on a page of host `source` (None: a seed) is to be queued."""
        host = host_of(url)
        known = self._known.get(host)
        if known is None:
            known = self._remember(host)
        if not known:
            return False
        if source is not None and not (self._scope.internal if host == source else self._scope.external):
            return False
        path, query, _ = url.partition("?")
        if query and not self._scope.queries:
            return False
        _, dot, extension = path.rpartition("/")[2].rpartition(".")
        if dot and extension.lower() in self._skipped:
            return False
        if self._include and not any(pattern.search(url) for pattern in self._include):
            return False
        if any(pattern.search(url) for pattern in self._exclude):
            return False
        return not trap(url)

    def _remember(self, host: str) -> bool:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[host] = found = self._admits_host(host)
        return found

    def _admits_host(self, host: str) -> bool:
        if self._tlds and tld(host) not in self._tlds:
            return False
        labels = host.partition(":")[0].split(".")
        suffixes = {".".join(labels[start:]) for start in range(len(labels))}
        return not self._hosts or host in self._hosts or not self._hosts.isdisjoint(suffixes)


def _tld(name: str) -> str:
    found = top_level(name)
    if found is None:
        raise ConfigError(
            f"corpus.toml: {name!r} among the tlds of [scope] is no top-level domain; try cz, or for all hosts "
            'under a longer name: hosts = ["co.uk"]'
        )
    return found
