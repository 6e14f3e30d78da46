"""A corpus that can be searched: what `thresher.open` gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.store import corpus as store

if TYPE_CHECKING:
    from thresher.query.found import Index, Search
    from thresher.query.functions import Table


class Corpus(store.Corpus):
    """Everything that was committed to a corpus, and its index."""

    _index: Index | None = None

    @property
    def index(self) -> Index:
        """The index as it is now; `thresher index` makes it."""
        from thresher.query import manifest
        from thresher.query.found import Index

        if self._index is None or self._index.manifest != manifest.read(self.directory):
            self._index = Index(self.directory)
        return self._index

    def search(self, query: str, **options: Any) -> Search:
        """Search for what a query in CQL describes; options are those of `Index.search`.

        >>> search = open("czech").search('[lemma="jazyk"]')  # doctest: +SKIP
        >>> search.count(), list(search.spans())[:2]  # doctest: +SKIP
        (1203, [(155, 155), (1811, 1811)])
        """
        return self.index.search(query, **options)

    def ask(self, function: str, query: str = "", **options: Any) -> Table:
        """What one of `thresher.query.functions.FUNCTIONS` makes of a query, or of the whole corpus.

        >>> open("czech").ask("freq", '[pos="ADJ"] "jazyk"', by="lemma@match").rows  # doctest: +SKIP
        """
        from thresher.query.functions import FUNCTIONS
        from thresher.query.functions.tables import one_of

        chosen = FUNCTIONS[one_of(function, FUNCTIONS, "function")]
        index = self.index
        return chosen.run(index, index.search(query) if chosen.needs_query else None, **options)


def open(directory: str | os.PathLike[str]) -> Corpus:
    """The corpus in a directory."""
    found = store.open(Path(directory))
    return Corpus(found.directory, found.config)
