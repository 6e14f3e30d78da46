"""Runs of words: what two texts have in common that are nearly the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.page import Runs

LOOKED_AT = 200_000  # characters of a text, from its beginning: a book must not hold up all other pages
NOT_OF_THE_TEXT = -1


class Hashed(NamedTuple):
    """Texts as runs of words: the hashes of one text after those of another."""

    counts: NDArray[np.int64]  # of each text: how many runs it has
    words: NDArray[np.int64]  # of each text; where there are no spaces, as many as its characters stand for
    hashes: NDArray[np.uint64]


def hashed(texts: Sequence[str]) -> Hashed:
    """The hashes of all runs of seven words in each text, case and punctuation aside.

    Where words are written without spaces, a run is as many characters as seven words have, about: 14 in Chinese
    and Japanese, 28 in Thai. A text too short for a run has none. Total: whatever the texts. It takes some 30
    bytes of memory for a character.
    """
    from thresher.read.scan.words import (
        KINDS,
        WORD_WEIGHT,
        hash_runs,
    )  # with numba, which few who ask here need

    lowered = [text.lower() for text in texts]
    codes = np.frombuffer("".join(lowered).encode("utf-32-le", "replace"), dtype=np.uint32)
    lengths = np.array(list(map(len, lowered)), dtype=np.int64)
    counts, weights = np.empty_like(lengths), np.empty_like(lengths)
    hashes = np.empty(len(codes), dtype=np.uint64)
    found = hash_runs(codes, KINDS, lengths, counts, weights, hashes)
    return Hashed(counts, weights // WORD_WEIGHT, hashes[:found])


def runs(texts: Sequence[str], chosen: Sequence[bool]) -> Runs:
    """The runs of each chosen text of a page; what stands behind LOOKED_AT has none."""
    looked_at, left = [], LOOKED_AT
    for text, said in zip(texts, chosen, strict=True):
        if said:
            looked_at.append(text[:left])
            left = max(0, left - len(text))
    found = hashed(looked_at)
    counted = iter(found.counts.tolist())
    return Runs(tuple(next(counted) if said else NOT_OF_THE_TEXT for said in chosen), found.hashes.tobytes())


def fates(counts: Sequence[int], old: Sequence[bool]) -> list[bool]:
    """Which blocks stay, given how many runs each has (below 0: it is not of the text) and whether these are old.

    A paragraph too short to tell goes with the next one that is not, as headings do; at the end, with the last.

    >>> fates([0, 5, -1, 0, 3, 0], [False, False, False, False, True, False])
    [True, True, True, False, False, False]
    """
    stays = [not seen for seen in old]
    known = [place for place, count in enumerate(counts) if count > 0]
    following = stays[known[-1]] if known else True
    for place in reversed(range(len(stays))):
        if counts[place] > 0:
            following = stays[place]
        elif counts[place] == 0:
            stays[place] = following
    return stays
