"""Conclude: which paragraphs of a shard stay, and what goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from thresher.batch.near.files import Arrays, NearFault, number, writing
from thresher.batch.near.kernels.rounds import DROPPED, UNDECIDED
from thresher.batch.near.rounds import Advanced, State
from thresher.batch.near.scatter import Scattered
from thresher.read.runs import fates as with_short_ones


class Lost(Struct, frozen=True):
    """How much there was in a shard, and how much of it goes."""

    documents: int
    emptied: int  # documents of which nothing stays
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
    """Which paragraphs of a shard stay: those that were kept, and short ones with the next that is not short.

    `first_block` is the number of the shard's first block in the corpus.
    """
    with Scattered(scattered) as shard:
        counts, words = shard.array("counts", np.uint32), shard.array("words", np.uint32)
        sizes = shard.array("documents", np.uint32).astype(np.int64)
    dropped = _dropped(state, advanced, first_block)
    if not len(dropped) == len(counts) == len(words) == sizes.sum():
        raise NearFault(f"{state} belongs to another shard than {scattered}; run the steps again")
    ends = np.cumsum(sizes)
    _let_short_ones_follow(dropped, counts, ends - sizes, ends)
    write_conclusion(output, dropped, words, sizes)


def write_conclusion(
    output: Path, dropped: NDArray[np.bool_], words: NDArray[np.uint32], sizes: NDArray[np.int64]
) -> None:
    """Write which paragraphs of documents, each of which has so many, are dropped, and how much that is."""
    with writing(output) as writer:
        writer.name("dropped", np.packbits(dropped))
        writer.name("documents", sizes)
        writer.numbers |= msgspec.structs.asdict(_lost(dropped, words, sizes))


def _dropped(state: Path, advanced: Path | None, first_block: int) -> NDArray[np.bool_]:
    with State(state) as file, Advanced(advanced) as decided:
        fates = [
            decided.overlay(file.stretch("fates", np.uint8, block), first_block + block)
            for block in range(file.blocks)
        ]
    found = np.concatenate([np.empty(0, np.uint8), *fates])
    if (found == UNDECIDED).any():
        raise NearFault(f"not all paragraphs of {state} are decided; let the rounds come to their end")
    dropped: NDArray[np.bool_] = found == DROPPED
    return dropped


def _let_short_ones_follow(
    dropped: NDArray[np.bool_],
    counts: NDArray[np.uint32],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    """In documents that lose something, paragraphs too short to tell may go as well."""
    losing = np.unique(np.searchsorted(ends, np.flatnonzero(dropped), side="right"))
    for begin, end in zip(begins[losing].tolist(), ends[losing].tolist(), strict=True):
        stays = with_short_ones(counts[begin:end].tolist(), dropped[begin:end].tolist())
        dropped[begin:end] = ~np.array(stays)


def _lost(dropped: NDArray[np.bool_], words: NDArray[np.uint32], sizes: NDArray[np.int64]) -> Lost:
    gone = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[dropped], minlength=len(sizes))
    return Lost(
        documents=len(sizes),
        emptied=int(((gone == sizes) & (gone > 0)).sum()),
        paragraphs=len(dropped),
        dropped=int(dropped.sum()),
        words=int(words.sum()),
        dropped_words=int(words[dropped].sum()),
    )


def dropped(path: Path) -> Iterator[list[bool]]:
    """Of each document of a shard that was concluded: which of its paragraphs go."""
    with Arrays(path) as file:
        sizes = file.array("documents", np.int64)
        bits = np.unpackbits(file.array("dropped", np.uint8), count=int(sizes.sum())).astype(bool)
    at = 0
    for size in sizes.tolist():
        yield bits[at : at + size].tolist()
        at += size


def lost(path: Path) -> Lost:
    """How much of a shard goes."""
    return Lost(*(number(path, name) for name in Lost.__struct_fields__))
