"""Kernels of MinHash: signatures of documents, their bands, pairs that share one, and clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from thresher.jit import NOTHING, NUMBER, NUMBERS, kernel
from thresher.pipeline.dedup.kernels.table import HASHES, IDS
from thresher.reader.html.kernels.words import ODD, mixed

ROWS = types.Array(types.uint32, 2, "C")
NO_DOCUMENT = 0xFFFFFFFF  # no document has this number
_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)


@kernel(NOTHING, HASHES, NUMBERS, IDS, IDS, ROWS)
def sign(hashes: Any, counts: Any, factors: Any, terms: Any, rows: Any) -> None:
    """Compute the signature of each document: the smallest of its hashes under each permutation."""
    place = 0
    permutations = len(factors)
    for document in range(len(counts)):
        row = rows[document]
        row[:] = NO_DOCUMENT
        for _ in range(counts[document]):
            folded = np.uint32(hashes[place] >> _HALF)
            place += 1
            for order in range(permutations):
                row[order] = min(row[order], np.uint32(np.uint32(folded * factors[order]) + terms[order]))


@kernel(NUMBER, ROWS, NUMBERS, NUMBER, NUMBER, HASHES)
def hash_bands(rows: Any, counts: Any, bands: int, height: int, hashes: Any) -> int:
    """Hash the bands of all signatures and return their number; documents without shingles (`counts`) have none."""
    found = 0
    for document in range(len(rows)):
        for band in range(bands if counts[document] else 0):
            value = np.uint64(band + 1) * ODD
            for place in range(band * height, (band + 1) * height):
                value = mixed(value ^ np.uint64(rows[document, place]))
            hashes[found] = value
            found += 1
    return found


@kernel(NUMBER, IDS, IDS, NUMBER, IDS, IDS, HASHES)
def pair(ids: Any, owners: Any, base: int, firsts: Any, latest: Any, pairs: Any) -> int:
    """Pair each document of a slot with the first and the previous one of the slot; return the number of pairs.

    `base` is the number of the block's first document. A pair is one number, with the later document in the upper
    half.
    """
    found = 0
    for place in range(len(ids)):
        slot, document = ids[place], base + np.int64(owners[place])
        if firsts[slot] == NO_DOCUMENT:
            firsts[slot] = document
        elif np.int64(latest[slot]) != document:
            pairs[found] = np.uint64(document) << _HALF | np.uint64(firsts[slot])
            found += 1
            if latest[slot] != firsts[slot]:
                pairs[found] = np.uint64(document) << _HALF | np.uint64(latest[slot])
                found += 1
        latest[slot] = document
    return found


@kernel(NUMBER, HASHES, IDS)
def unite(pairs: Any, parents: Any) -> int:
    """Join the clusters of both documents of each pair; return by how much the number of clusters decreased.

    A cluster is identified by its first document; the parent of a document never comes after it.
    """
    united = 0
    for both in pairs:
        one, other = np.int64(both >> _HALF), np.int64(both & _LOWER)
        while np.int64(parents[one]) != one:
            parents[one] = parents[np.int64(parents[one])]
            one = np.int64(parents[one])
        while np.int64(parents[other]) != other:
            parents[other] = parents[np.int64(parents[other])]
            other = np.int64(parents[other])
        united += one != other
        parents[max(one, other)] = min(one, other)
    return united


@kernel(NOTHING, IDS)
def flatten(parents: Any) -> None:
    """Make the first document of its cluster the parent of every document; parents come first, so one pass does."""
    for document in range(len(parents)):
        parents[document] = parents[np.int64(parents[document])]
