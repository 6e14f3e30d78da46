"""Shingles: hashed sequences of seven words, which near duplicates have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.records import Shingles

# Characters of a text that are hashed, from its beginning, so that a book does not hold up all other pages.
MAX_SHINGLED_CHARS = 200_000
NOT_OF_THE_TEXT = -1


class HashedShingles(NamedTuple):
    """Shingles of several texts: the hashes of one text follow the hashes of the text before."""

    counts: NDArray[np.int64]  # of each text: the number of its shingles
    words: NDArray[np.int64]  # of each text; where there are no spaces, as many as its characters stand for
    hashes: NDArray[np.uint64]


def hash_shingles(texts: Sequence[str]) -> HashedShingles:
    """Return the hashes of all shingles of each text, ignoring case and punctuation.

    Where words are written without spaces, a shingle has as many characters as seven words have on average:
    14 in Chinese and Japanese, 28 in Thai. A shorter text has no shingle. The function is total. It takes
    about 30 bytes of memory for each character.
    """
    from thresher.reader.html.kernels.words import (  # loads numba, which few callers of this module need
        KINDS,
        WORD_WEIGHT,
        hash_runs,
    )

    lowered = [text.lower() for text in texts]
    codes = np.frombuffer("".join(lowered).encode("utf-32-le", "replace"), dtype=np.uint32)
    lengths = np.array(list(map(len, lowered)), dtype=np.int64)
    counts, weights = np.empty_like(lengths), np.empty_like(lengths)
    hashes = np.empty(len(codes), dtype=np.uint64)
    found = hash_runs(codes, KINDS, lengths, counts, weights, hashes)
    return HashedShingles(counts, weights // WORD_WEIGHT, hashes[:found])


def page_shingles(texts: Sequence[str], chosen: Sequence[bool]) -> Shingles:
    """Return the shingles of each chosen text of a page; text beyond MAX_SHINGLED_CHARS has none."""
    shingled, left = [], MAX_SHINGLED_CHARS
    for text, said in zip(texts, chosen, strict=True):
        if said:
            shingled.append(text[:left])
            left = max(0, left - len(text))
    found = hash_shingles(shingled)
    counted = iter(found.counts.tolist())
    return Shingles(
        tuple(next(counted) if said else NOT_OF_THE_TEXT for said in chosen), found.hashes.tobytes()
    )


def fates(counts: Sequence[int], old: Sequence[bool]) -> list[bool]:
    """Return True for the blocks that stay, given the number of their shingles and which are known.

    A negative number marks a block outside the text. A paragraph too short for shingles shares the fate of
    the next longer one, as headings do; at the end, of the last one.

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
