"""The index of a corpus brought up to date."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import Protocol

from thresher.query import index
from thresher.query.build import Source
from thresher.query.index import Changes
from thresher.query.manifest import writing
from thresher.query.sources import Documents
from thresher.store import corpus as corpora

BEST_FIRST = "quality"  # how documents are ordered if nobody says otherwise


class Indexed(Protocol):
    """What is to be in an index."""

    def keys(self) -> set[int]:
        """What tells documents apart."""

    def new(self, known: Container[int]) -> Iterator[Source]:
        """Those that are not known yet."""


def update(
    directory: Path,
    *,
    order: str = "",
    annotator: str = "",
    processes: int = 0,
    opted_out: bool = False,
    lowercase: bool = True,
    rebuild: bool = False,
    documents: Indexed | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Changes:
    """Bring the index of a corpus up to date: what is new is added, what is gone is deleted.

    Documents are ordered by a dimension (quality, authority, recency, length), the most of it first, or as they
    came (input). `documents` are those of the corpus, unless others are given. `progress` is told how many tokens
    were added so far.
    """
    if documents is None:
        corpus = corpora.open(directory)
        documents = Documents(corpus, annotator=annotator, processes=processes, opted_out=opted_out)
    with writing(directory, anew=rebuild) as writer:
        order = order or writer.manifest.order or BEST_FIRST
        if not writer.manifest.segments:
            writer.start_anew(order)
        keys = documents.keys()
        known = index.known_keys(writer)
        deleted = index.delete(writer, known - keys)
        added = index.add(writer, documents.new(known), lowercase=lowercase, progress=progress)
        index.tidy(writer, order=order)
        return Changes(added.added, deleted, added.tokens, len(writer.manifest.segments))
