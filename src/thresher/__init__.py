"""Thresher builds clean, searchable web corpora in any language, with as little downloading as possible.

>>> import thresher
>>> corpus = thresher.open("czech")                # doctest: +SKIP
>>> corpus.docs(["url", "text"]).to_pandas()       # doctest: +SKIP
>>> corpus.search('[lemma="jazyk"]').count()       # doctest: +SKIP

The other verbs stand in their rooms: `thresher.crawl.start.crawl`, `thresher.read.read`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thresher._version import __version__

if TYPE_CHECKING:
    from thresher.query.corpus import open as open

__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    # Reader processes import this package too; they need no Arrow.
    if name == "open":
        from thresher.query.corpus import open

        return open
    raise AttributeError(f"module 'thresher' has no attribute {name!r}")
