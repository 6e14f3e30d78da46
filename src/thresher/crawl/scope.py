"""Which links may enter the frontier."""

from __future__ import annotations

import re

from thresher.config import Scope
from thresher.url import host as host_of
from thresher.url import tld, trap


class Gate:
    """Admits the URLs that the user's scope and the signs of traps let through."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._tlds = frozenset(name.lower().lstrip(".") for name in scope.tlds)
        self._hosts = tuple(name.lower() for name in scope.hosts)
        self._include = [re.compile(pattern) for pattern in scope.include]
        self._exclude = [re.compile(pattern) for pattern in scope.exclude]

    def admits(self, url: str, source: str | None) -> bool:
        """Whether a canonical URL found on a page of host `source` (None: a seed) is to be queued."""
        host = host_of(url)
        if self._tlds and tld(host) not in self._tlds:
            return False
        if self._hosts and not any(host == name or host.endswith(f".{name}") for name in self._hosts):
            return False
        if source is not None and not (self._scope.internal if host == source else self._scope.external):
            return False
        if not self._scope.queries and "?" in url:
            return False
        if self._include and not any(pattern.search(url) for pattern in self._include):
            return False
        if any(pattern.search(url) for pattern in self._exclude):
            return False
        return not trap(url)
