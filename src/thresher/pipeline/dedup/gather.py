"""Gather: find the hashes of a range that occur more than once in the corpus, with all their places.

Most shingles occur once and are left out. The others are identified by their slot in a hash table from now on.
Their places are stored block by block in the order of the corpus, so that a reader has to remember one byte for
each slot and nothing for a paragraph. The table takes 9 bytes for a slot, and at most three quarters of the slots
are taken; how often a hash occurs does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from thresher.pipeline.dedup.files import DedupFileError, DedupReader, DedupWriter, writing
from thresher.pipeline.dedup.kernels.table import BUCKET_BITS, BUCKETS, by_owner, note, pick
from thresher.pipeline.dedup.scatter import MEMORY, Ids, Numbers, Scattered, bucket, checked

HASH_BYTES = 20  # of memory for a hash: 12 in the table, the others for buffers
MAX_LOAD = 0.75  # share of the slots of a table that may be taken
MIN_SLOTS = 1 << 10
MAX_SLOTS = 1 << 32  # slots have numbers of four bytes
_LAST = (1 << 64) - 1


class Range(NamedTuple):
    """A range of hashes; both bounds belong to it."""

    low: int
    last: int


class Entries(NamedTuple):
    """The offsets and the number of the entries of a block."""

    ids: int
    owners: int
    many: int


def plan(scattered: Sequence[Path], memory: int = MEMORY) -> list[Range]:
    """Return ranges that cover all hashes, each small enough to be gathered in `memory` bytes."""
    room = checked(memory) // HASH_BYTES
    totals = np.zeros(BUCKETS, np.int64)
    for path in scattered:
        with Scattered(path) as shard:
            totals += shard.totals
    ranges: list[Range] = []
    width, low, held = 1 << (64 - BUCKET_BITS), 0, 0
    for number, total in enumerate(totals.tolist()):
        begin, end = number * width, (number + 1) * width
        if held and held + total > room:
            ranges.append(Range(low, begin - 1))
            low, held = begin, 0
        held += total
        if total > room:  # one bucket is too much for a range, so it is divided
            parts = -(-10 * total // (9 * room))
            bounds = [begin + part * width // parts for part in range(parts)]
            ranges += [Range(one, next_one - 1) for one, next_one in pairwise(bounds)]
            ranges.append(Range(bounds[-1], end - 1))
            low, held = end, 0
    if low <= _LAST:
        ranges.append(Range(low, _LAST))
    return ranges


def gather(scattered: Sequence[Path], output: Path, within: Range, *, memory: int = MEMORY) -> None:
    """Write the places of all hashes of a range that occur more than once in these shards."""
    table = _Table(scattered, within, checked(memory))
    for path in scattered:
        with Scattered(path) as shard:
            for block in range(len(shard.blocks)):
                table.note(shard, block)
    with writing(output) as writer:
        entries = EntriesWriter(writer)
        for path in scattered:
            with Scattered(path) as shard:
                for block in range(len(shard.blocks)):
                    entries.add(*table.pick(shard, block))
        entries.close(table.slots)


class _Table:
    """A hash table of the hashes of a range, which knows the ones that occur more than once."""

    def __init__(self, scattered: Sequence[Path], within: Range, memory: int) -> None:
        self._within = within
        self._memory = memory
        runs = 0
        for path in scattered:
            with Scattered(path) as shard:
                runs += int(shard.totals[bucket(within.low) : bucket(within.last) + 1].sum())
        runs = min(runs, memory // HASH_BYTES)
        self.slots = min(MAX_SLOTS, max(MIN_SLOTS, int(runs / MAX_LOAD)))
        self._keys = np.empty(self.slots, np.uint64)
        self._states = np.zeros(self.slots, np.uint8)
        self._factor = self.slots / ((within.last - within.low >> 11) + 1)
        self._held = 0

    def note(self, shard: Scattered, block: int) -> None:
        """Add the hashes of a block."""
        hashes = shard.hashes(block, *shard.section(block, *self._within))
        self._held = note(
            hashes,
            np.uint64(self._within.low),
            np.uint64(self._within.last),
            self._factor,
            self._keys,
            self._states,
            self._held,
        )
        if self._held < 0:
            raise DedupFileError(
                f"{shard.path}: too many shingles have nearly the same hash for memory = {self._memory}; "
                f"try memory = {4 * self._memory}"
            )

    def pick(self, shard: Scattered, block: int) -> tuple[Ids, Ids]:
        """Return the slots of the hashes of a block that occur more than once, and their paragraphs, sorted."""
        ids, owners = self._picked(shard, block)
        sorted_ids, sorted_owners = np.empty_like(ids), np.empty_like(owners)
        by_owner(ids, owners, shard.blocks[block].paragraphs, sorted_ids, sorted_owners)
        return sorted_ids, sorted_owners

    def _picked(self, shard: Scattered, block: int) -> tuple[Ids, Ids]:
        begin, end = shard.section(block, *self._within)
        hashes, owners = shard.hashes(block, begin, end), shard.owners(block, begin, end)
        ids, picked_owners = np.empty_like(owners), np.empty_like(owners)
        low, last = np.uint64(self._within.low), np.uint64(self._within.last)
        found = pick(hashes, owners, low, last, self._factor, self._keys, self._states, ids, picked_owners)
        if found < 0:
            raise DedupFileError(f"{shard.path} has changed while it was read; run the step again")
        return ids[:found], picked_owners[:found]


class EntriesWriter:
    """A writer of entries, block by block."""

    def __init__(self, writer: DedupWriter) -> None:
        self._writer = writer
        self._rows: list[Entries] = []

    def add(self, ids: Ids, owners: Ids) -> None:
        """Write the entries of the next block."""
        self._rows.append(Entries(self._writer.put(ids), self._writer.put(owners), len(ids)))

    def close(self, slots: int) -> None:
        """Write the table of the blocks."""
        self._writer.put_named("entries", np.array(self._rows, np.int64).reshape(-1))
        self._writer.numbers |= {"slots": slots, "entries": sum(row.many for row in self._rows)}


class GatheredRange(DedupReader):
    """A reader of the entries of a range of hashes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.slots = self.numbers.get("slots", 0)
        self._rows = self.array("entries", np.int64).reshape(-1, len(Entries._fields))

    def __enter__(self) -> GatheredRange:
        return self

    def entries(self, block: int) -> Entries:
        """Return the position of the entries of a block, by its number in the corpus."""
        if block >= len(self._rows):
            raise DedupFileError(f"{self.path} was made from other shards; delete it and run the step again")
        return Entries(*self._rows[block].tolist())

    def counts(self) -> Numbers:
        """Return the number of entries of each block."""
        return self._rows[:, Entries._fields.index("many")]

    def read(self, entries: Entries, paragraphs: int) -> tuple[Ids, Ids]:
        """Return the slots and the owners of the entries of a block with so many paragraphs."""
        return (
            self.part(entries.ids, np.uint32, entries.many, below=self.slots),
            self.part(entries.owners, np.uint32, entries.many, below=paragraphs),
        )
