"""Gather: of a range of hashes, those that occur more than once in the corpus, with all places of theirs.

Most runs of words occur once, and are left out. The others go by the number of their slot in a table from now on.
Their places stand block by block in the order of the corpus, so that whoever goes through them needs to remember a
byte for each slot and nothing for a paragraph. The memory of a table is 9 bytes for a slot, of which at most three
in four are taken; how often a hash occurs does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from thresher.batch.near.files import Arrays, NearFault, Writer, writing
from thresher.batch.near.kernels.table import BUCKET_BITS, BUCKETS, by_owner, note, pick
from thresher.batch.near.scatter import MEMORY, Ids, Numbers, Scattered, bucket, checked

MEMORY_FOR_A_HASH = 20  # bytes: 12 in the table, the others for what is read and written meanwhile
LOAD = 0.75  # of a table
FEWEST_SLOTS = 1 << 10
MOST_SLOTS = 1 << 32  # slots have numbers of four bytes
_LAST = (1 << 64) - 1


class Range(NamedTuple):
    """Hashes from the first to the last."""

    low: int
    last: int


class Entries(NamedTuple):
    """Where the places of a block stand."""

    ids: int
    owners: int
    many: int


def plan(scattered: Sequence[Path], memory: int = MEMORY) -> list[Range]:
    """Ranges of hashes that cover all, each with as many as can be gathered in so much memory."""
    room = checked(memory) // MEMORY_FOR_A_HASH
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
        if total > room:  # it stands alone, and even so is too much
            parts = -(-10 * total // (9 * room))
            bounds = [begin + part * width // parts for part in range(parts)]
            ranges += [Range(one, next_one - 1) for one, next_one in pairwise(bounds)]
            ranges.append(Range(bounds[-1], end - 1))
            low, held = end, 0
    if low <= _LAST:
        ranges.append(Range(low, _LAST))
    return ranges


def gather(scattered: Sequence[Path], output: Path, within: Range, *, memory: int = MEMORY) -> None:
    """The places of all hashes of a range that occur more than once in these shards, which stand in order."""
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
    """The hashes of a range, each seen once or more often."""

    def __init__(self, scattered: Sequence[Path], within: Range, memory: int) -> None:
        self._within = within
        self._memory = memory
        runs = 0
        for path in scattered:
            with Scattered(path) as shard:
                runs += int(shard.totals[bucket(within.low) : bucket(within.last) + 1].sum())
        runs = min(runs, memory // MEMORY_FOR_A_HASH)
        self.slots = min(MOST_SLOTS, max(FEWEST_SLOTS, int(runs / LOAD)))
        self._keys = np.empty(self.slots, np.uint64)
        self._states = np.zeros(self.slots, np.uint8)
        self._factor = self.slots / ((within.last - within.low >> 11) + 1)
        self._held = 0

    def note(self, shard: Scattered, block: int) -> None:
        """See the hashes of a block."""
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
            raise NearFault(
                f"{shard.path}: more runs of words have nearly the same hash than there is memory for; "
                f"try memory = {4 * self._memory}"
            )

    def pick(self, shard: Scattered, block: int) -> tuple[Ids, Ids]:
        """The slots of hashes of a block that occur more than once, by their paragraphs, and these."""
        ids, theirs = self._picked(shard, block)
        sorted_ids, sorted_owners = np.empty_like(ids), np.empty_like(theirs)
        by_owner(ids, theirs, shard.blocks[block].paragraphs, sorted_ids, sorted_owners)
        return sorted_ids, sorted_owners

    def _picked(self, shard: Scattered, block: int) -> tuple[Ids, Ids]:
        begin, end = shard.section(block, *self._within)
        hashes, owners = shard.hashes(block, begin, end), shard.owners(block, begin, end)
        ids, theirs = np.empty_like(owners), np.empty_like(owners)
        low, last = np.uint64(self._within.low), np.uint64(self._within.last)
        found = pick(hashes, owners, low, last, self._factor, self._keys, self._states, ids, theirs)
        if found < 0:
            raise NearFault(f"{shard.path} has changed while it was read; run the step again")
        return ids[:found], theirs[:found]


class EntriesWriter:
    """The entries of a file that is being written, block by block."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._rows: list[Entries] = []

    def add(self, ids: Ids, owners: Ids) -> None:
        """Those of the next block."""
        self._rows.append(Entries(self._writer.put(ids), self._writer.put(owners), len(ids)))

    def close(self, slots: int) -> None:
        self._writer.name("entries", np.array(self._rows, np.int64).reshape(-1))
        self._writer.numbers |= {"slots": slots, "entries": sum(row.many for row in self._rows)}


class Gathered(Arrays):
    """Places of a range of hashes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.slots = self.numbers.get("slots", 0)
        self._rows = self.array("entries", np.int64).reshape(-1, len(Entries._fields))

    def __enter__(self) -> Gathered:
        return self

    def entries(self, block: int) -> Entries:
        """Where those of a block stand, by its number in the corpus."""
        if block >= len(self._rows):
            raise NearFault(f"{self.path} was made of other shards; delete it and run the step again")
        return Entries(*self._rows[block].tolist())

    def counts(self) -> Numbers:
        """How many entries each block has."""
        return self._rows[:, Entries._fields.index("many")]

    def read(self, entries: Entries, paragraphs: int) -> tuple[Ids, Ids]:
        """Slots and owners of a block of so many paragraphs."""
        return (
            self.part(entries.ids, np.uint32, entries.many, below=self.slots),
            self.part(entries.owners, np.uint32, entries.many, below=paragraphs),
        )
