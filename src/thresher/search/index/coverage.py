"""Count the documents that an index lacks. It happens before each search, so only footers of files are read."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow.parquet as pq
from msgspec import Struct

from thresher.search.index import manifest
from thresher.store import corpus_files, imported_files, partition
from thresher.store.checked_files import arrow_faults
from thresher.store.corpus_files import CorpusFiles
from thresher.store.partition import TableFile
from thresher.store.shard_layout import followed

COLUMN = "seq"  # any short column serves to count the rows of a segment that is still written to
LISTING_ATTEMPTS = 10  # a crawl may seal a file, and so delete its stream, after it was listed


class Shortfall(Struct, frozen=True):
    """Documents that a corpus has and its index lacks."""

    directory: Path
    indexed: int
    documents: int
    command: str  # that made the index

    def __str__(self) -> str:
        again = (
            f"run: thresher index {self.directory}"
            if self.command == "index"
            else f"run the recipe of the index again: thresher process {self.directory}"
        )
        return f"the index holds {self.indexed:,} of {self.documents:,} documents; {again}"


def rows(corpus: CorpusFiles) -> int:
    """Return the number of documents in a corpus, counted from the footers of its files."""
    for _ in range(LISTING_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError):
            imported = sum(file.rows for file in imported_files.files(corpus.directory))
            return imported + sum(map(_rows_of, corpus.files("docs")))
    return len(corpus)


def _rows_of(file: TableFile) -> int:
    if file.length is None:
        with arrow_faults(file.path):
            return followed(file.path, lambda path: pq.read_metadata(path).num_rows)
    return sum(batch.num_rows for batch in partition.segment(file, [COLUMN], 1))


def shortfall(directory: Path) -> Shortfall | None:
    """Return how many documents the index of a corpus lacks, or None if it lacks none.

    Documents that were left out on purpose are not missing: the index records how many documents it was to hold
    and how many rows the corpus had then. An index of an older version has no such record; of these, only an
    empty one is reported.
    """
    index = manifest.read(directory)
    if index is None:
        return None
    now = rows(corpus_files.open(directory))
    origin = index.origin or manifest.IndexOrigin(documents=index.documents or now, rows=now)
    # Documents that were erased from corpus and index make the difference negative.
    documents = origin.documents + now - origin.rows
    if index.documents >= documents:
        return None
    return Shortfall(directory, index.documents, documents, origin.command)
