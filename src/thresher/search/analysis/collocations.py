"""Collocates: values that stand near hits more often than elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.search.analysis import subcorpora
from thresher.search.analysis.scope import (
    AttributeVocabulary,
    DocumentScope,
    default_attribute,
    frequencies,
    vocabulary,
)
from thresher.search.analysis.tables import ResultTable, first, one_of, ordered
from thresher.search.analysis.windows import Window, check_window, sides, spelled, types_in
from thresher.search.searcher import Index, RunningSearch

Floats = NDArray[np.float64]

WINDOW = (-5, 5)
MEASURES = ("logdice", "mi", "mi3", "t_score", "log_likelihood", "joint")


def collocates(
    index: Index,
    search: RunningSearch,
    *,
    attribute: str = "",
    window: Window = WINDOW,
    within: str | None = None,
    minimum: int = 3,
    sort: str = "logdice",
    limit: int | None = 100,
) -> ResultTable:
    """Return the values near hits with measures of association; every occurrence near every hit counts.

    A token between two hits counts twice, since it is near both. A window has no tokens of the hit itself and ends
    with the document. The attribute is lemma if there are lemmas, or else word.
    """
    one_of(sort, MEASURES, "measure")
    check_window(index, window)
    scope = subcorpora.scope(index, within)
    words = vocabulary(index, attribute or default_attribute(index))
    hits, joint = near(scope, search, words, window)
    kept = np.flatnonzero(joint >= max(minimum, 1))
    counts = frequencies(scope, words)[kept]
    columns: dict[str, Any] = {
        "value": spelled(kept, words.values),
        "joint": joint[kept],
        "count": counts,
        **measures(joint[kept], hits, counts, scope.tokens),
    }
    return first(ordered(pa.table(columns), sort), limit, search.stopped)


def near(
    scope: DocumentScope, search: RunningSearch, words: AttributeVocabulary, window: Window
) -> tuple[int, NDArray[np.int64]]:
    """Return the number of hits, and how often each value stands near one."""
    segments = scope.index.segments
    type_counts = [np.zeros(segment.types, np.int64) for segment in segments]
    total = 0
    for number, hits in scope.stream(search):
        total += len(hits)
        windows = sides(scope.index, segments[number], hits, window)
        for starts, ends in (windows[:2], windows[2:]):
            for types in types_in(segments[number], starts, ends):
                type_counts[number] += np.bincount(types, minlength=segments[number].types)
    joint = np.zeros(len(words.values), np.int64)
    for by_type, counts in zip(words.by_type, type_counts, strict=True):
        joint += np.bincount(by_type, counts, len(joint)).astype(np.int64)
    return total, joint


def measures(
    joint: NDArray[np.int64], hits: int, counts: NDArray[np.int64], tokens: int
) -> Mapping[str, Floats]:
    """Return the measures of association by the formulas of the Sketch Engine."""
    fxy, fx, fy, n = joint.astype(np.float64), float(hits), counts.astype(np.float64), float(tokens)
    expected = fx * fy / n
    return {
        "expected": expected,
        "logdice": 14 + np.log2(2 * fxy / (fx + fy)),
        "mi": np.log2(fxy / expected),
        "mi3": np.log2(fxy**3 / expected),
        "t_score": (fxy - expected) / np.sqrt(fxy),
        "log_likelihood": log_likelihood(fxy, fx, fy, n),
    }


def log_likelihood(fxy: Floats, fx: float, fy: Floats, n: float) -> Floats:
    """Return Dunning's G².

    A value may be near hits more often than there are hits. Cells that would then be negative add nothing.
    """
    observed = (fxy, fx - fxy, fy - fxy, n - fx - fy + fxy)
    expected = (fx * fy / n, fx * (n - fy) / n, (n - fx) * fy / n, (n - fx) * (n - fy) / n)
    total = np.zeros(len(fxy))
    for seen, due in zip(observed, expected, strict=True):
        positive = (seen > 0) & (due > 0)
        total[positive] += seen[positive] * np.log(seen[positive] / due[positive])
    return 2 * total
