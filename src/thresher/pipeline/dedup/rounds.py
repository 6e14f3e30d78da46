"""Rounds: decide which paragraphs are kept, in parallel, with the same result as one pass over the corpus.

By definition, paragraphs are taken in the order of the corpus, and one is dropped if more than a share of its
shingles stand in earlier paragraphs that were kept. Here all are undecided at first. A round counts, for each
undecided paragraph, the shingles that stand in an earlier kept paragraph (surely seen), and the others that stand
in an earlier undecided one (perhaps seen). If the former are enough, the paragraph is dropped; if both together are
not enough, it is kept.

The result is exact. Suppose that all decisions so far agree with the definition, which is true at the beginning.
The number of seen shingles then lies between the two counts: dropped paragraphs contribute to neither, kept
paragraphs to both, undecided ones to the upper count. So every decision of the round agrees with the definition as
well. Each round decides at least one paragraph: all before the first undecided one are decided, so its two counts
are equal.

Copies of parts of copies could be built to need a round each. So if a round decides less than half, or if little is
left, `advance` decides the next blocks in order, as many as fit into memory. That bounds the number of rounds for
any corpus: each round halves the entries of undecided paragraphs, or decides a sixteenth of all shingles, or as
many as fit into `memory`.

Memory: `sift` needs one byte for each slot of a range of hashes and nine for each paragraph of a block. `decide`
needs thirteen bytes for each paragraph of one shard: 13 MB for a million. Nothing grows with the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.pipeline.dedup.files import DedupFileError, DedupReader, writing
from thresher.pipeline.dedup.gather import EntriesWriter, GatheredRange
from thresher.pipeline.dedup.kernels.rounds import (
    DROPPED,
    KEPT,
    UNDECIDED,
    count_seen,
    decide_in_order,
    judge,
)
from thresher.pipeline.dedup.scatter import Ids, Scattered

SHARE = 0.5  # of the shingles of a paragraph; if more stand in earlier paragraphs, it is dropped
ENTRY_BYTES = 64  # of memory for an entry in `advance`
# Memory of `advance` for each shingle of the corpus, at most: some more rounds cost less than more memory.
ADVANCED_BYTES = 4
MIN_ENTRIES = 64  # that `advance` takes

Fates = NDArray[np.uint8]


def room_for(runs: int, memory: int) -> int:
    """Return the number of entries that `advance` takes, given the number of shingles of the corpus."""
    return max(MIN_ENTRIES, min(memory, runs * ADVANCED_BYTES) // ENTRY_BYTES)


def first_blocks(scattered: Sequence[Path]) -> tuple[list[int], int]:
    """Return the number of the first block of each shard, and the number of all shingles."""
    found, blocks, runs = [], 0, 0
    for path in scattered:
        found.append(blocks)
        with Scattered(path) as shard:
            blocks += len(shard.blocks)
            runs += sum(block.runs for block in shard.blocks)
    return found, runs


class RoundState(DedupReader):
    """A reader of the state of the paragraphs of a shard."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.bounds = self.array(
            "bounds", np.int64
        ).tolist()  # the begins of all blocks, and the end of the last

    def __enter__(self) -> RoundState:
        return self

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return len(self.bounds) - 1

    def of_block(self, name: str, kind: Any, block: int) -> NDArray[Any]:
        """Return a named array for the paragraphs of one block."""
        begin, end = self.bounds[block : block + 2]
        return self.array(name, kind, begin, end - begin)


class RoundResult:
    """The decisions of `advance`: fates of the paragraphs of some blocks, by the block's number in the corpus."""

    def __init__(self, path: Path | None) -> None:
        self._file = DedupReader(path) if path else None
        rows = self._file.array("places", np.int64).reshape(-1, 3).tolist() if self._file else []
        self._places = {block: (offset, count) for block, offset, count in rows}

    def __enter__(self) -> RoundResult:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def overlay(self, fates: Fates, block: int) -> Fates:
        """Return the fates of a block as they were decided in order, or else the given ones."""
        if self._file is None or block not in self._places:
            return fates
        offset, count = self._places[block]
        if count != len(fates):
            raise DedupFileError(
                f"{self._file.path} belongs to other shards; delete it and run the step again"
            )
        return self._file.part(offset, np.uint8, count)


def begin(scattered: Path, output: Path, *, share: float = SHARE) -> None:
    """Write the state of a shard before the first round: paragraphs without shingles are kept, others undecided."""
    if not 0 <= share <= 1:
        raise DedupFileError(f"share must be between 0 and 1, got {share}; try share = {SHARE}")
    with Scattered(scattered) as shard:
        counts = shard.array("counts", np.uint32)
        bounds = [block.first for block in shard.blocks] + [len(counts)]
    fates = np.where(counts == 0, KEPT, UNDECIDED).astype(np.uint8)
    with writing(output) as writer:
        writer.put_named("bounds", np.array(bounds, np.int64))
        writer.put_named("least", (np.floor(share * counts) + 1).astype(np.uint32))
        writer.put_named("seen", np.zeros(len(counts), np.uint32))
        writer.put_named("fates", fates)
        writer.numbers["undecided"] = int((fates == UNDECIDED).sum())


def sift(gathered: Path, output: Path, states: Sequence[Path], advanced: Path | None = None) -> None:
    """Count the seen shingles of undecided paragraphs in one range of hashes; omit entries that are settled."""
    with GatheredRange(gathered) as file, RoundResult(advanced) as decided, writing(output) as writer:
        marks = np.zeros(file.slots, np.uint8)
        left = EntriesWriter(writer)
        counted = []
        for state, block, place in _blocks(states):
            entries = file.entries(place)
            ids, owners = file.read(entries, state.bounds[block + 1] - state.bounds[block])
            if not len(ids):
                left.add(ids, owners)
                counted.append((writer.end, 0))
                continue
            fates = decided.overlay(state.of_block("fates", np.uint8, block), place)
            seen, perhaps = (np.zeros(len(fates), np.uint32) for _ in range(2))
            left_ids, left_owners = np.empty_like(ids), np.empty_like(owners)
            many = count_seen(ids, owners, fates, marks, seen, perhaps, left_ids, left_owners)
            left.add(left_ids[:many], left_owners[:many])
            changed = np.flatnonzero(seen | perhaps).astype(np.uint32)
            counts = np.concatenate([changed, seen[changed], perhaps[changed]])
            counted.append((writer.put(counts), len(changed)))
        left.close(file.slots)
        writer.put_named("counted", np.array(counted, np.int64).reshape(-1))


def _blocks(states: Iterable[Path]) -> Iterator[tuple[RoundState, int, int]]:
    """Yield all blocks of the corpus: the state of the shard, the block's number in the shard and in the corpus."""
    before = 0
    for path in states:
        with RoundState(path) as state:
            for block in range(state.blocks):
                yield state, block, before + block
            before += state.blocks


def decide(
    state: Path, output: Path, sifted: Sequence[Path], advanced: Path | None, first_block: int
) -> None:
    """Write the next state of a shard, from the counts of all ranges of hashes."""
    with RoundState(state) as before, RoundResult(advanced) as decided:
        bounds, least = before.bounds, before.array("least", np.uint32)
        fates, seen = before.array("fates", np.uint8), before.array("seen", np.uint32)
        for block in range(before.blocks):
            begin, end = bounds[block : block + 2]
            fates[begin:end] = decided.overlay(fates[begin:end], first_block + block)
    perhaps = np.zeros_like(seen)
    for path in sifted:
        _add_counts(path, first_block, bounds, seen, perhaps)
    undecided = judge(fates, least, seen, perhaps)
    with writing(output) as writer:
        for name, array in (
            ("bounds", np.array(bounds, np.int64)), ("least", least), ("seen", seen), ("fates", fates)
        ):  # fmt: skip
            writer.put_named(name, array)
        writer.numbers["undecided"] = undecided


def _add_counts(path: Path, first_block: int, bounds: list[int], seen: Ids, perhaps: Ids) -> None:
    """Add the counts of one range of hashes to the counts of a shard."""
    with DedupReader(path) as file:
        rows = file.array("counted", np.int64, 2 * first_block, 2 * (len(bounds) - 1)).reshape(-1, 2)
        for (offset, count), begin, end in zip(rows.tolist(), bounds, bounds[1:], strict=False):
            if count:
                places = file.part(offset, np.uint32, count, below=end - begin).astype(np.intp) + begin
                seen[places] += file.part(offset + 4 * count, np.uint32, count)
                perhaps[places] += file.part(offset + 8 * count, np.uint32, count)


def advance(sifted: Sequence[Path], states: Sequence[Path], output: Path, *, room: int) -> None:
    """Decide the paragraphs of the next blocks in order: blocks with up to `room` entries, and at least one."""
    taken = _next_blocks(sifted, states, room)
    fates, seen, least = (
        np.concatenate([np.empty(0, kind), *(block.known(name, kind) for block in taken)])
        for name, kind in (("fates", np.uint8), ("seen", np.uint32), ("least", np.uint32))
    )
    ids, owners = _entries_of(sifted, taken, fates)
    decided = decide_in_order(ids, owners, fates, np.zeros(len(ids), np.uint8), seen, least)
    with writing(output) as writer:
        at, places = 0, []
        for block in taken:
            of_block = fates[at : at + block.paragraphs]
            at += block.paragraphs
            places.append((block.place, writer.put(of_block), len(of_block)))
        writer.put_named("places", np.array(places, np.int64).reshape(-1))
        writer.numbers["decided"] = decided


class _Taken(NamedTuple):
    """A block to be decided in order."""

    place: int  # in the corpus
    state: Path
    block: int  # in the shard
    paragraphs: int

    def known(self, name: str, kind: Any) -> NDArray[Any]:
        with RoundState(self.state) as state:
            return state.of_block(name, kind, self.block)


def _next_blocks(sifted: Sequence[Path], states: Sequence[Path], room: int) -> list[_Taken]:
    """Return the first blocks with entries that fit into `room`; a paragraph counts nine bytes."""
    counts: NDArray[np.int64] | None = None
    for path in sifted:
        with GatheredRange(path) as file:
            found = file.counts()
        counts = found if counts is None else counts + found
    taken: list[_Taken] = []
    cost = 0
    for state, block, place in _blocks(states):
        entries = int(counts[place]) if counts is not None else 0
        paragraphs = state.bounds[block + 1] - state.bounds[block]
        cost += entries + paragraphs * 9 // ENTRY_BYTES if entries else 0
        if taken and cost > room:
            break
        if entries:
            taken.append(_Taken(place, state.path, block, paragraphs))
    return taken


def _entries_of(sifted: Sequence[Path], taken: Sequence[_Taken], fates: Fates) -> tuple[Ids, Ids]:
    """Return the entries of some blocks in all ranges of hashes, by paragraph: their shingles and paragraphs."""
    all_ids, all_owners = [np.empty(0, np.uint64)], [np.empty(0, np.uint32)]
    for part, path in enumerate(sifted):
        with GatheredRange(path) as file:
            at = 0
            for block in taken:
                ids, owners = file.read(file.entries(block.place), block.paragraphs)
                owners += np.uint32(at)
                at += block.paragraphs
                relevant = fates[owners] != DROPPED
                all_ids.append(ids[relevant].astype(np.uint64) | np.uint64(part << 32))
                all_owners.append(owners[relevant])
    ids, owners = np.concatenate(all_ids), np.concatenate(all_owners)
    del all_ids, all_owners
    order = np.argsort(owners, kind="stable")
    numbers = np.unique(ids, return_inverse=True)[1].astype(np.uint32)
    return numbers[order], owners[order]
