"""Kernels that decide which paragraphs are kept."""

from __future__ import annotations

from typing import Any

from thresher.batch.near.kernels.table import IDS
from thresher.read.scan.kernel import BYTES, NUMBER, inlined, kernel

UNDECIDED, KEPT, DROPPED = 0, 1, 2
_MAYBE, _SURELY = 1, 2  # a slot's run stands in a paragraph that may be kept, or is


@inlined
def _stretch(owners: Any, begin: int) -> int:
    """Where the entries of a paragraph end."""
    end = begin + 1
    while end < len(owners) and owners[end] == owners[begin]:
        end += 1
    return end


@kernel(NUMBER, IDS, IDS, BYTES, BYTES, IDS, IDS, IDS, IDS)
def count_seen(
    ids: Any, owners: Any, fates: Any, marks: Any, seen: Any, perhaps: Any, left_ids: Any, left_owners: Any
) -> int:
    """Go through the entries of a block, in order: how many runs of each undecided paragraph were surely seen
    before, and how many others perhaps. What must be looked at again is left; how many entries that are.

    A run that was surely seen is counted for good. A paragraph that is kept has done its part when all that follow
    it were counted; one that is dropped has none.
    """
    left = begin = 0
    while begin < len(ids):
        end = _stretch(owners, begin)
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
    """Decide what can be decided: `least` is how many runs must have been seen for a paragraph to be dropped.

    How many are still undecided.
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
    """Decide one paragraph after the other, all before them being decided; how many were undecided."""
    decided = begin = 0
    while begin < len(ids):
        end = _stretch(owners, begin)
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
