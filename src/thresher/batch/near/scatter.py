"""Scatter: the runs of a shard, in blocks of paragraphs, so that those of any range of hashes stand together.

Of each run there are its hash and the number of its paragraph in the block, 12 bytes. A block has as many runs as
fit into a share of the memory; in it runs are sorted by the upper bits of their hashes, and within such a bucket
they stand as in the text. No paragraph is in two blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.batch.near.files import Arrays, NearFault, Writer, writing
from thresher.batch.near.kernels.table import BUCKET_BITS, BUCKETS, into_buckets
from thresher.read.runs import LOOKED_AT, hashed

MEMORY = 1 << 30  # bytes that a worker may take, besides those that the program itself takes
LEAST_MEMORY = 1 << 12
MEMORY_FOR_A_RUN = 192  # of a block: what a block costs is a small part of the memory in every step
MOST_RUNS = 1 << 19  # of a block: more would cost memory and make nothing faster
MOST_PARAGRAPHS = 1 << 20  # of a block
MOST_CHARACTERS = 1 << 17  # hashed together
MEMORY_FOR_A_CHARACTER = 32

Hashes = NDArray[np.uint64]
Ids = NDArray[np.uint32]
Numbers = NDArray[np.int64]


class Block(NamedTuple):
    """A stretch of the paragraphs of a shard."""

    first: int
    paragraphs: int
    runs: int
    hashes: int  # where they stand
    owners: int


def checked(memory: int) -> int:
    """Memory that something can be done with."""
    if memory < LEAST_MEMORY:
        raise NearFault(f"memory = {memory} bytes is too little; try memory = {MEMORY}")
    return memory


def scatter(documents: Iterable[Sequence[str]], output: Path, *, memory: int = MEMORY) -> None:
    """Hash the runs of all paragraphs of a shard's documents.

    Of a paragraph, what stands behind LOOKED_AT characters has no runs.
    """
    checked(memory)
    with writing(output) as writer:
        blocks = Blocks(writer, memory)
        words: list[Ids] = []
        sizes: list[int] = []
        for texts, lengths in _together(documents, min(MOST_CHARACTERS, memory // MEMORY_FOR_A_CHARACTER)):
            found = hashed(texts)
            blocks.add(found.counts, found.hashes)
            words.append(found.words.astype(np.uint32))
            sizes += lengths
        blocks.close()
        writer.name("words", np.concatenate([np.empty(0, np.uint32), *words]))
        writer.name("documents", np.array(sizes, np.uint32))


def _together(documents: Iterable[Sequence[str]], most: int) -> Iterator[tuple[list[str], list[int]]]:
    """Paragraphs of about so many characters, and how many each document has that begins with one of them."""
    texts: list[str] = []
    sizes: list[int] = []
    characters = 0
    for document in documents:
        sizes.append(len(document))
        for text in document:
            texts.append(text[:LOOKED_AT])
            characters += len(texts[-1])
            if characters >= most:
                yield texts, sizes
                texts, sizes, characters = [], [], 0
    yield texts, sizes


class Blocks:
    """The blocks of a file that is being written."""

    def __init__(self, writer: Writer, memory: int) -> None:
        self._writer = writer
        self._most = min(MOST_RUNS, memory // MEMORY_FOR_A_RUN)
        self._blocks: list[Block] = []
        self._starts: list[Ids] = []
        self._all_counts: list[Ids] = []
        self._begin()

    def _begin(self) -> None:
        self._counts: list[Numbers] = []
        self._hashes: list[Hashes] = []
        self._runs = self._paragraphs = 0

    def add(self, counts: Numbers, hashes: Hashes) -> None:
        """Paragraphs with so many runs each."""
        if self._runs and self._runs + len(hashes) > self._most:
            self._write()
        self._counts.append(counts)
        self._hashes.append(hashes.copy())  # a part of something larger, which should go
        self._runs += len(hashes)
        self._paragraphs += len(counts)
        if self._runs > self._most or self._paragraphs > MOST_PARAGRAPHS:
            self._write()

    def _write(self) -> None:
        counts, hashes = np.concatenate(self._counts), np.concatenate(self._hashes)
        first = sum(self._blocks[-1][:2]) if self._blocks else 0
        self._begin()
        starts = np.empty(BUCKETS + 1, np.int64)
        in_buckets, owners = np.empty_like(hashes), np.empty(len(hashes), np.uint32)
        into_buckets(hashes, counts, starts, in_buckets, owners)
        places = self._writer.put(in_buckets), self._writer.put(owners)
        self._blocks.append(Block(first, len(counts), len(hashes), *places))
        self._starts.append(starts.astype(np.uint32))
        self._all_counts.append(counts.astype(np.uint32))

    def close(self) -> None:
        """Write the last block, and the tables."""
        if self._counts:
            self._write()
        nothing = np.empty(0, np.uint32)
        self._writer.name("counts", np.concatenate([nothing, *self._all_counts]))
        self._writer.name("starts", np.concatenate([nothing, *self._starts]))
        self._writer.name("blocks", np.array(self._blocks, np.int64).reshape(-1))


class Scattered(Arrays):
    """A shard's runs in blocks."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        rows = self.array("blocks", np.int64).reshape(-1, len(Block._fields))
        self.blocks = [Block(*row) for row in rows.tolist()]
        self.starts = self.array("starts", np.uint32).reshape(-1, BUCKETS + 1).astype(np.int64)

    def __enter__(self) -> Scattered:
        return self

    @property
    def totals(self) -> Numbers:
        """How many runs are in each bucket."""
        found: Numbers = np.diff(self.starts, axis=1).sum(axis=0, dtype=np.int64)
        return found

    def section(self, block: int, low: int, last: int) -> tuple[int, int]:
        """Where runs stand in a block whose hashes are in the buckets of a range: from one to before another."""
        starts = self.starts[block]
        return int(starts[bucket(low)]), int(starts[bucket(last) + 1])

    def hashes(self, block: int, begin: int, end: int) -> Hashes:
        return self.part(self.blocks[block].hashes + 8 * begin, np.uint64, end - begin)

    def owners(self, block: int, begin: int, end: int) -> Ids:
        place = self.blocks[block]
        return self.part(place.owners + 4 * begin, np.uint32, end - begin, below=place.paragraphs)


def bucket(hashed: int) -> int:
    """In which bucket a hash is."""
    return hashed >> (64 - BUCKET_BITS)
