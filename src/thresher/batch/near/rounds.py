"""Rounds: which paragraphs are kept, from what can be said for certain, until all is said.

By definition paragraphs are gone through in the order of the corpus: one is dropped if more than a share of its
runs stand in earlier ones that were kept. Here all are undecided at first. A round counts, for each undecided
paragraph, runs that stand in an earlier paragraph which is kept (surely seen), and others that stand in an earlier
undecided one (perhaps seen). If the former are enough, it is dropped; if both together are not, it is kept.

Why that is exact. Suppose that all decisions so far are those of the definition, which is so when there are none.
What the definition calls seen then lies between the two counts, for dropped paragraphs have no part in either, kept
ones in both, and undecided ones in the upper. So every decision of the round is that of the definition, too. And
there is one in every round: all before the first undecided paragraph are decided, so its two counts are the same.

Copies of copies of parts could be made to need a round each. So where a round decides less than half, or what is
left is little, `advance` goes through the next blocks in order and decides them one by one, as many as the memory
has room for. The number of rounds is bounded by that, whatever the corpus: what is looked at again are entries of
undecided paragraphs, and each round halves these or takes a sixteenth of all runs away, or `memory` of them.

Memory: sifting needs a byte for each slot of a range of hashes, and nine for each paragraph of a block. Deciding
needs thirteen bytes for each paragraph of one shard: 13 MB for a million. Nothing grows with the corpus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.batch.near.files import Arrays, NearFault, writing
from thresher.batch.near.gather import EntriesWriter, Gathered
from thresher.batch.near.kernels.rounds import DROPPED, KEPT, UNDECIDED, count_seen, decide_in_order, judge
from thresher.batch.near.scatter import Ids, Scattered

SHARE = 0.5  # of the runs of a paragraph: if more were seen before, it is dropped (S5)
MEMORY_FOR_AN_ENTRY = 64  # bytes, in `advance`
ADVANCED_BYTES = (
    4  # for each run of the corpus, at most: a few rounds more cost less than so much more memory
)
FEWEST_ENTRIES = 64  # that `advance` takes

Fates = NDArray[np.uint8]


def room_for(runs: int, memory: int) -> int:
    """How many entries `advance` takes, of a corpus of so many runs."""
    return max(FEWEST_ENTRIES, min(memory, runs * ADVANCED_BYTES) // MEMORY_FOR_AN_ENTRY)


def first_blocks(scattered: Sequence[Path]) -> tuple[list[int], int]:
    """The number of the first block of each shard, and how many runs there are in all."""
    found, blocks, runs = [], 0, 0
    for path in scattered:
        found.append(blocks)
        with Scattered(path) as shard:
            blocks += len(shard.blocks)
            runs += sum(block.runs for block in shard.blocks)
    return found, runs


class State(Arrays):
    """What is known of the paragraphs of a shard."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.bounds = self.array("bounds", np.int64).tolist()  # where blocks begin, and the last one ends

    def __enter__(self) -> State:
        return self

    @property
    def blocks(self) -> int:
        return len(self.bounds) - 1

    def stretch(self, name: str, kind: Any, block: int) -> NDArray[Any]:
        """What is known of the paragraphs of one block."""
        begin, end = self.bounds[block : block + 2]
        return self.array(name, kind, begin, end - begin)


class Advanced:
    """What was decided in order: the fates of paragraphs of some blocks, by the block's number in the corpus."""

    def __init__(self, path: Path | None) -> None:
        self._file = Arrays(path) if path else None
        rows = self._file.array("places", np.int64).reshape(-1, 3).tolist() if self._file else []
        self._places = {block: (offset, count) for block, offset, count in rows}

    def __enter__(self) -> Advanced:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def overlay(self, fates: Fates, block: int) -> Fates:
        """The fates of a block, as far as is known."""
        if self._file is None or block not in self._places:
            return fates
        offset, count = self._places[block]
        if count != len(fates):
            raise NearFault(f"{self._file.path} belongs to other shards; delete it and run the step again")
        return self._file.part(offset, np.uint8, count)


def begin(scattered: Path, output: Path, *, share: float = SHARE) -> None:
    """The state of a shard before the first round: a paragraph without runs is kept, no other is decided."""
    if not 0 <= share <= 1:
        raise NearFault(f"share = {share} is not between 0 and 1; try share = {SHARE}")
    with Scattered(scattered) as shard:
        counts = shard.array("counts", np.uint32)
        bounds = [block.first for block in shard.blocks] + [len(counts)]
    fates = np.where(counts == 0, KEPT, UNDECIDED).astype(np.uint8)
    with writing(output) as writer:
        writer.name("bounds", np.array(bounds, np.int64))
        writer.name("least", (np.floor(share * counts) + 1).astype(np.uint32))
        writer.name("seen", np.zeros(len(counts), np.uint32))
        writer.name("fates", fates)
        writer.numbers["undecided"] = int((fates == UNDECIDED).sum())


def sift(gathered: Path, output: Path, states: Sequence[Path], advanced: Path | None = None) -> None:
    """Count, of one range of hashes, the runs of undecided paragraphs that were seen; what is done is left out."""
    with Gathered(gathered) as file, Advanced(advanced) as decided, writing(output) as writer:
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
            fates = decided.overlay(state.stretch("fates", np.uint8, block), place)
            seen, perhaps = (np.zeros(len(fates), np.uint32) for _ in range(2))
            left_ids, left_owners = np.empty_like(ids), np.empty_like(owners)
            many = count_seen(ids, owners, fates, marks, seen, perhaps, left_ids, left_owners)
            left.add(left_ids[:many], left_owners[:many])
            whose = np.flatnonzero(seen | perhaps).astype(np.uint32)
            counted.append((writer.put(np.concatenate([whose, seen[whose], perhaps[whose]])), len(whose)))
        left.close(file.slots)
        writer.name("counted", np.array(counted, np.int64).reshape(-1))


def _blocks(states: Iterable[Path]) -> Iterator[tuple[State, int, int]]:
    """All blocks of the corpus: the state, the number of the block in the shard, and in the corpus."""
    before = 0
    for path in states:
        with State(path) as state:
            for block in range(state.blocks):
                yield state, block, before + block
            before += state.blocks


def decide(
    state: Path, output: Path, sifted: Sequence[Path], advanced: Path | None, first_block: int
) -> None:
    """The next state of a shard, from what was counted in all ranges of hashes."""
    with State(state) as before, Advanced(advanced) as decided:
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
            writer.name(name, array)
        writer.numbers["undecided"] = undecided


def _add_counts(path: Path, first_block: int, bounds: list[int], seen: Ids, perhaps: Ids) -> None:
    """Add what was counted in one range of hashes to the counts of a shard."""
    with Arrays(path) as file:
        rows = file.array("counted", np.int64, 2 * first_block, 2 * (len(bounds) - 1)).reshape(-1, 2)
        for (offset, count), begin, end in zip(rows.tolist(), bounds, bounds[1:], strict=False):
            if count:
                whose = file.part(offset, np.uint32, count, below=end - begin).astype(np.intp) + begin
                seen[whose] += file.part(offset + 4 * count, np.uint32, count)
                perhaps[whose] += file.part(offset + 8 * count, np.uint32, count)


def advance(sifted: Sequence[Path], states: Sequence[Path], output: Path, *, room: int) -> None:
    """Decide the paragraphs of the next blocks, one after the other: as many blocks as have so many entries,
    and at least one."""
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
            theirs = fates[at : at + block.paragraphs]
            at += block.paragraphs
            places.append((block.place, writer.put(theirs), len(theirs)))
        writer.name("places", np.array(places, np.int64).reshape(-1))
        writer.numbers["decided"] = decided


class _Taken(NamedTuple):
    """A block that is decided in order."""

    place: int  # in the corpus
    state: Path
    block: int  # in the shard
    paragraphs: int

    def known(self, name: str, kind: Any) -> NDArray[Any]:
        with State(self.state) as state:
            return state.stretch(name, kind, self.block)


def _next_blocks(sifted: Sequence[Path], states: Sequence[Path], room: int) -> list[_Taken]:
    """The first blocks of which there are entries, until there is no room; nine bytes are a paragraph's."""
    counts: NDArray[np.int64] | None = None
    for path in sifted:
        with Gathered(path) as file:
            found = file.counts()
        counts = found if counts is None else counts + found
    taken: list[_Taken] = []
    cost = 0
    for state, block, place in _blocks(states):
        entries = int(counts[place]) if counts is not None else 0
        paragraphs = state.bounds[block + 1] - state.bounds[block]
        cost += entries + paragraphs * 9 // MEMORY_FOR_AN_ENTRY if entries else 0
        if taken and cost > room:
            break
        if entries:
            taken.append(_Taken(place, state.path, block, paragraphs))
    return taken


def _entries_of(sifted: Sequence[Path], taken: Sequence[_Taken], fates: Fates) -> tuple[Ids, Ids]:
    """The entries of some blocks in all ranges of hashes, by paragraph: numbers of runs, and of paragraphs."""
    all_ids, all_owners = [np.empty(0, np.uint64)], [np.empty(0, np.uint32)]
    for part, path in enumerate(sifted):
        with Gathered(path) as file:
            at = 0
            for block in taken:
                ids, owners = file.read(file.entries(block.place), block.paragraphs)
                owners += np.uint32(at)
                at += block.paragraphs
                matters = fates[owners] != DROPPED
                all_ids.append(ids[matters].astype(np.uint64) | np.uint64(part << 32))
                all_owners.append(owners[matters])
    ids, owners = np.concatenate(all_ids), np.concatenate(all_owners)
    del all_ids, all_owners
    order = np.argsort(owners, kind="stable")
    numbers = np.unique(ids, return_inverse=True)[1].astype(np.uint32)
    return numbers[order], owners[order]
