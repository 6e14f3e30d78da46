"""Kernels that decide which paragraphs are kept."""

from __future__ import annotations

from typing import Any

from thresher.jit import BYTES, NUMBER, inlined, kernel
from thresher.pipeline.dedup.kernels.table import IDS

UNDECIDED, KEPT, DROPPED = 0, 1, 2
_MAYBE, _SURELY = 1, 2  # the shingle of a slot stands in a paragraph that may be kept, or that is kept


@inlined
def _end_of_owner(owners: Any, begin: int) -> int:
    """Return the end of the entries of a paragraph."""
    end = begin + 1
    while end < len(owners) and owners[end] == owners[begin]:
        end += 1
    return end


@kernel(NUMBER, IDS, IDS, BYTES, BYTES, IDS, IDS, IDS, IDS)
def count_seen(
    ids: Any, owners: Any, fates: Any, marks: Any, seen: Any, perhaps: Any, left_ids: Any, left_owners: Any
) -> int:
    """Count the shingles of each undecided paragraph of a block that were surely and perhaps seen before.

    Return the number of entries that the next round needs. An entry that was surely seen is counted for good and
    not needed again. Neither are the entries of kept paragraphs, as all paragraphs after them were counted, nor
    the entries of dropped ones.
    """
    left = begin = 0
    while begin < len(ids):
        end = _end_of_owner(owners, begin)
        owner = owners[begin]
        if fates[owner] == UNDECIDED:
            for place in range(begin, end):
                mark = marks[ids[place]]
                if mark == _SURELY:
                    seen[owner] += 1
                    continue
                perhaps[owner] += mark == _MAYBE
                left_ids[left] = ids[place]
                left_owners[left] = owner
                left += 1
            for place in range(begin, end):
                marks[ids[place]] = max(marks[ids[place]], _MAYBE)
        elif fates[owner] == KEPT:
            for place in range(begin, end):
                marks[ids[place]] = _SURELY
        begin = end
    return left


@kernel(NUMBER, BYTES, IDS, IDS, IDS)
def judge(fates: Any, least: Any, seen: Any, perhaps: Any) -> int:
    """Decide paragraphs as far as their counts allow, and return the number of undecided ones.

    `least` holds the number of seen shingles from which a paragraph is dropped.
    """
    undecided = 0
    for owner in range(len(fates)):
        if fates[owner] == UNDECIDED:
            if seen[owner] >= least[owner]:
                fates[owner] = DROPPED
            elif seen[owner] + perhaps[owner] < least[owner]:
                fates[owner] = KEPT
            else:
                undecided += 1
    return undecided


@kernel(NUMBER, IDS, IDS, BYTES, BYTES, IDS, IDS)
def decide_in_order(ids: Any, owners: Any, fates: Any, marks: Any, seen: Any, least: Any) -> int:
    """Decide all paragraphs in order and return their number; all paragraphs before them must be decided."""
    decided = begin = 0
    while begin < len(ids):
        end = _end_of_owner(owners, begin)
        owner = owners[begin]
        if fates[owner] == UNDECIDED:
            count = seen[owner]
            for place in range(begin, end):
                count += marks[ids[place]] == _SURELY
            fates[owner] = DROPPED if count >= least[owner] else KEPT
            decided += 1
        if fates[owner] == KEPT:
            for place in range(begin, end):
                marks[ids[place]] = _SURELY
        begin = end
    return decided
