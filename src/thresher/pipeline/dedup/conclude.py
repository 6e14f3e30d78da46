"""Conclude: derive the dropped paragraphs of a shard from the decisions of the rounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.pipeline.dedup.files import DedupFileError, DedupReader, number, writing
from thresher.pipeline.dedup.kernels.rounds import DROPPED, UNDECIDED
from thresher.pipeline.dedup.rounds import RoundResult, RoundState
from thresher.pipeline.dedup.scatter import Scattered
from thresher.reader.quality.shingles import fates as with_short_ones


class ParagraphLosses(Struct, frozen=True):
    """Counts of the content of a shard, and of the dropped part."""

    documents: int
    emptied: int  # documents without any paragraph left
    paragraphs: int
    dropped: int  # paragraphs
    words: int
    dropped_words: int


def conclude(
    scattered: Path,
    output: Path,
    state: Path,
    advanced: Path | None = None,
    *,
    first_block: int = 0,
) -> None:
    """Write which paragraphs of a shard are dropped; a short one shares the fate of the next that is not short.

    `first_block` is the number of the shard's first block in the corpus.
    """
    with Scattered(scattered) as shard:
        counts, words = shard.array("counts", np.uint32), shard.array("words", np.uint32)
        sizes = shard.array("documents", np.uint32).astype(np.int64)
    dropped = _dropped(state, advanced, first_block)
    if not len(dropped) == len(counts) == len(words) == sizes.sum():
        raise DedupFileError(f"{state} belongs to another shard than {scattered}; run the steps again")
    ends = np.cumsum(sizes)
    _let_short_ones_follow(dropped, counts, ends - sizes, ends)
    write_conclusion(output, dropped, words, sizes)


def write_conclusion(
    output: Path, dropped: NDArray[np.bool_], words: NDArray[np.uint32], sizes: NDArray[np.int64]
) -> None:
    """Write which paragraphs are dropped, with counts; `sizes` are the numbers of paragraphs of each document."""
    with writing(output) as writer:
        writer.put_named("dropped", np.packbits(dropped))
        writer.put_named("documents", sizes)
        writer.numbers |= msgspec.structs.asdict(_count_losses(dropped, words, sizes))


def _dropped(state: Path, advanced: Path | None, first_block: int) -> NDArray[np.bool_]:
    with RoundState(state) as file, RoundResult(advanced) as decided:
        fates = [
            decided.overlay(file.of_block("fates", np.uint8, block), first_block + block)
            for block in range(file.blocks)
        ]
    found = np.concatenate([np.empty(0, np.uint8), *fates])
    if (found == UNDECIDED).any():
        raise DedupFileError(f"not all paragraphs of {state} are decided; run the remaining rounds first")
    dropped: NDArray[np.bool_] = found == DROPPED
    return dropped


def _let_short_ones_follow(
    dropped: NDArray[np.bool_],
    counts: NDArray[np.uint32],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    """Drop paragraphs too short for shingles along with the next longer one, in documents that lose some."""
    losing = np.unique(np.searchsorted(ends, np.flatnonzero(dropped), side="right"))
    for begin, end in zip(begins[losing].tolist(), ends[losing].tolist(), strict=True):
        stays = with_short_ones(counts[begin:end].tolist(), dropped[begin:end].tolist())
        dropped[begin:end] = ~np.array(stays)


def _count_losses(
    dropped: NDArray[np.bool_], words: NDArray[np.uint32], sizes: NDArray[np.int64]
) -> ParagraphLosses:
    gone = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[dropped], minlength=len(sizes))
    return ParagraphLosses(
        documents=len(sizes),
        emptied=int(((gone == sizes) & (gone > 0)).sum()),
        paragraphs=len(dropped),
        dropped=int(dropped.sum()),
        words=int(words.sum()),
        dropped_words=int(words[dropped].sum()),
    )


def dropped(path: Path) -> Iterator[list[bool]]:
    """Yield, for each document of a concluded shard, which of its paragraphs are dropped."""
    with DedupReader(path) as file:
        sizes = file.array("documents", np.int64)
        bits = np.unpackbits(file.array("dropped", np.uint8), count=int(sizes.sum())).astype(bool)
    at = 0
    for size in sizes.tolist():
        yield bits[at : at + size].tolist()
        at += size


def losses(path: Path) -> ParagraphLosses:
    """Return the counts of a concluded shard."""
    return ParagraphLosses(*(number(path, name) for name in ParagraphLosses.__struct_fields__))
