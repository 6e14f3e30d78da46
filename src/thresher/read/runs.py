"""Runs of words: what two texts have in common that are nearly the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thresher.page import Runs
from thresher.read.scan.words import KINDS, hash_runs

LOOKED_AT = 200_000  # characters of a text, from its beginning: a book must not hold up all other pages
NOT_OF_THE_TEXT = -1


def runs(texts: Sequence[str], chosen: Sequence[bool]) -> Runs:
    """The hashes of all runs of seven words in each chosen text, case and punctuation aside.

    Where words are written without spaces, a run is as many characters as seven words have, about: 14 in Chinese
    and Japanese, 28 in Thai. A text too short for a run, or behind LOOKED_AT, has none. Total: whatever the texts.
    """
    lowered, left = [], LOOKED_AT
    for text, said in zip(texts, chosen, strict=True):
        if said:
            lowered.append(text[:left].lower())
            left = max(0, left - len(text))
    codes = np.frombuffer("".join(lowered).encode("utf-32-le", "replace"), dtype=np.uint32)
    counts, hashes = np.empty(len(lowered), dtype=np.int64), np.empty(len(codes), dtype=np.uint64)
    found = hash_runs(codes, KINDS, np.array(list(map(len, lowered)), dtype=np.int64), counts, hashes)
    counted = iter(counts.tolist())
    return Runs(
        tuple(next(counted) if said else NOT_OF_THE_TEXT for said in chosen), hashes[:found].tobytes()
    )
