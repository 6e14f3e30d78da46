"""The scope of a crawl: which links may enter the frontier."""

from __future__ import annotations

import re

from thresher.config import ScopeSettings
from thresher.errors import UsageError
from thresher.selection import DocumentFacts, DocumentFilter
from thresher.urls import host as host_of
from thresher.urls import trap

MAX_KNOWN = 100_000  # hosts whose answer is cached


class UrlScope:
    """The rules of `[scope]`, with a check for crawler traps."""

    def __init__(self, scope: ScopeSettings) -> None:
        self._scope = scope
        self._skipped = frozenset(name.lower().lstrip(".") for name in scope.skip_extensions)
        self._hosts = _host_filter(scope)
        self._known: dict[str, bool] = {}  # answers by host, since links repeat their hosts
        self._include = [re.compile(pattern) for pattern in scope.include]
        self._exclude = [re.compile(pattern) for pattern in scope.exclude]

    def admits(self, url: str, source: str | None) -> bool:
        """Return whether a canonical URL may be queued that a page of host `source` links to (None for a seed)."""
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
        return not self._hosts.reason_against(DocumentFacts(host=host))


def _host_filter(scope: ScopeSettings) -> DocumentFilter:
    try:
        return DocumentFilter(hosts=scope.hosts, tlds=scope.tlds)
    except UsageError as fault:
        raise UsageError(f"corpus.toml: in [scope], {fault}") from None
