"""Scatter: write the shingles of a shard in blocks of paragraphs, so that each range of hashes is contiguous.

A shingle takes 12 bytes: its hash and the number of its paragraph in the block. A block has as many shingles as fit
into a share of the memory. In a block, shingles are sorted into buckets by the upper bits of their hashes; within a
bucket they have the order of the text. No paragraph is in two blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.pipeline.dedup.files import DedupFileError, DedupReader, DedupWriter, writing
from thresher.pipeline.dedup.kernels.table import BUCKET_BITS, BUCKETS, into_buckets
from thresher.reader.quality.shingles import MAX_SHINGLED_CHARS, hash_shingles

MEMORY = 1 << 30  # bytes that a worker may take, besides the memory of the program itself
MIN_MEMORY = 1 << 12  # bytes
# Memory for a shingle of a block, so that a block takes a small part of the memory in every step.
RUN_BYTES = 192
MAX_RUNS = 1 << 19  # of a block; more would cost memory and make nothing faster
MAX_PARAGRAPHS = 1 << 20  # of a block
MAX_CHARACTERS = 1 << 17  # hashed together
CHARACTER_BYTES = 32  # of memory while a character is hashed

Hashes = NDArray[np.uint64]
Ids = NDArray[np.uint32]
Numbers = NDArray[np.int64]


class ParagraphBlock(NamedTuple):
    """A range of the paragraphs of a shard, with the offsets of their shingles."""

    first: int
    paragraphs: int
    runs: int
    hashes: int  # offset
    owners: int  # offset


def checked(memory: int) -> int:
    """Return a number of bytes of memory; raise DedupFileError if it is too small."""
    if memory < MIN_MEMORY:
        raise DedupFileError(
            f"memory must be at least {MIN_MEMORY} bytes, got {memory}; try memory = {MEMORY}"
        )
    return memory


def scatter(documents: Iterable[Sequence[str]], output: Path, *, memory: int = MEMORY) -> None:
    """Write the hashed shingles of all paragraphs of a shard's documents.

    The text of a paragraph beyond MAX_SHINGLED_CHARS characters has no shingles.
    """
    checked(memory)
    with writing(output) as writer:
        blocks = ParagraphBlocks(writer, memory)
        words: list[Ids] = []
        sizes: list[int] = []
        for texts, lengths in _together(documents, min(MAX_CHARACTERS, memory // CHARACTER_BYTES)):
            found = hash_shingles(texts)
            blocks.add(found.counts, found.hashes)
            words.append(found.words.astype(np.uint32))
            sizes += lengths
        blocks.close()
        writer.put_named("words", np.concatenate([np.empty(0, np.uint32), *words]))
        writer.put_named("documents", np.array(sizes, np.uint32))


def _together(documents: Iterable[Sequence[str]], most: int) -> Iterator[tuple[list[str], list[int]]]:
    """Yield portions of about `most` characters: paragraphs, and the sizes of the documents that begin in them."""
    texts: list[str] = []
    sizes: list[int] = []
    characters = 0
    for document in documents:
        sizes.append(len(document))
        for text in document:
            texts.append(text[:MAX_SHINGLED_CHARS])
            characters += len(texts[-1])
            if characters >= most:
                yield texts, sizes
                texts, sizes, characters = [], [], 0
    yield texts, sizes


class ParagraphBlocks:
    """A writer of blocks of paragraphs."""

    def __init__(self, writer: DedupWriter, memory: int) -> None:
        self._writer = writer
        self._most = min(MAX_RUNS, memory // RUN_BYTES)
        self._blocks: list[ParagraphBlock] = []
        self._starts: list[Ids] = []
        self._all_counts: list[Ids] = []
        self._begin()

    def _begin(self) -> None:
        self._counts: list[Numbers] = []
        self._hashes: list[Hashes] = []
        self._runs = self._paragraphs = 0

    def add(self, counts: Numbers, hashes: Hashes) -> None:
        """Add paragraphs: the number of shingles of each, and the hashes of all."""
        if self._runs and self._runs + len(hashes) > self._most:
            self._write()
        self._counts.append(counts)
        self._hashes.append(hashes.copy())  # a view would keep a larger array in memory
        self._runs += len(hashes)
        self._paragraphs += len(counts)
        if self._runs > self._most or self._paragraphs > MAX_PARAGRAPHS:
            self._write()

    def _write(self) -> None:
        counts, hashes = np.concatenate(self._counts), np.concatenate(self._hashes)
        first = sum(self._blocks[-1][:2]) if self._blocks else 0
        self._begin()
        starts = np.empty(BUCKETS + 1, np.int64)
        in_buckets, owners = np.empty_like(hashes), np.empty(len(hashes), np.uint32)
        into_buckets(hashes, counts, starts, in_buckets, owners)
        places = self._writer.put(in_buckets), self._writer.put(owners)
        self._blocks.append(ParagraphBlock(first, len(counts), len(hashes), *places))
        self._starts.append(starts.astype(np.uint32))
        self._all_counts.append(counts.astype(np.uint32))

    def close(self) -> None:
        """Write the last block and the tables."""
        if self._counts:
            self._write()
        empty = np.empty(0, np.uint32)
        self._writer.put_named("counts", np.concatenate([empty, *self._all_counts]))
        self._writer.put_named("starts", np.concatenate([empty, *self._starts]))
        self._writer.put_named("blocks", np.array(self._blocks, np.int64).reshape(-1))


class Scattered(DedupReader):
    """A reader of the shingles of a shard."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        rows = self.array("blocks", np.int64).reshape(-1, len(ParagraphBlock._fields))
        self.blocks = [ParagraphBlock(*row) for row in rows.tolist()]
        self.starts = self.array("starts", np.uint32).reshape(-1, BUCKETS + 1).astype(np.int64)

    def __enter__(self) -> Scattered:
        return self

    @property
    def totals(self) -> Numbers:
        """The number of shingles in each bucket."""
        found: Numbers = np.diff(self.starts, axis=1).sum(axis=0, dtype=np.int64)
        return found

    def section(self, block: int, low: int, last: int) -> tuple[int, int]:
        """Return the bounds `[begin, end)` of the shingles of a block in the buckets of a range of hashes."""
        starts = self.starts[block]
        return int(starts[bucket(low)]), int(starts[bucket(last) + 1])

    def hashes(self, block: int, begin: int, end: int) -> Hashes:
        """Return the hashes of shingles `[begin, end)` of a block."""
        return self.part(self.blocks[block].hashes + 8 * begin, np.uint64, end - begin)

    def owners(self, block: int, begin: int, end: int) -> Ids:
        """Return the numbers of the paragraphs of shingles `[begin, end)` of a block."""
        place = self.blocks[block]
        return self.part(place.owners + 4 * begin, np.uint32, end - begin, below=place.paragraphs)


def bucket(hashed: int) -> int:
    """Return the bucket of a hash."""
    return hashed >> (64 - BUCKET_BITS)
