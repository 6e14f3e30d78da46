"""Collocates: what stands near hits more often than elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from thresher.query.found import Index, Search
from thresher.query.functions import subcorpora
from thresher.query.functions.scope import Scope, Vocabulary, default_attribute, frequencies, vocabulary
from thresher.query.functions.tables import Table, first, one_of, ordered
from thresher.query.functions.windows import Window, sides, spelled, types_in

Floats = NDArray[np.float64]

WINDOW = (-5, 5)
MEASURES = ("logdice", "mi", "mi3", "t_score", "log_likelihood", "joint")


def collocates(
    index: Index,
    search: Search,
    *,
    attribute: str = "",
    window: Window = WINDOW,
    within: str | None = None,
    minimum: int = 3,
    sort: str = "logdice",
    limit: int | None = 100,
) -> Table:
    """Values near hits, with their measures of association; every occurrence near every hit counts.

    So a token between two hits counts twice, as it is near both. Windows have none of the hit itself, and end with
    the document. The attribute is lemma, if there is one, or else word.
    """
    one_of(sort, MEASURES, "measure")
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


def near(scope: Scope, search: Search, words: Vocabulary, window: Window) -> tuple[int, NDArray[np.int64]]:
    """How many hits there are, and how often each value stands near one."""
    segments = scope.index.segments
    kinds = [np.zeros(segment.types, np.int64) for segment in segments]
    total = 0
    for number, hits in scope.stream(search):
        total += len(hits)
        round_them = sides(scope.index, segments[number], hits, window)
        for starts, ends in (round_them[:2], round_them[2:]):
            for types in types_in(segments[number], starts, ends):
                kinds[number] += np.bincount(types, minlength=segments[number].types)
    joint = np.zeros(len(words.values), np.int64)
    for by_type, counts in zip(words.by_type, kinds, strict=True):
        joint += np.bincount(by_type, counts, len(joint)).astype(np.int64)
    return total, joint


def measures(
    joint: NDArray[np.int64], hits: int, counts: NDArray[np.int64], tokens: int
) -> Mapping[str, Floats]:
    """How strongly values go with hits, by the formulas of the Sketch Engine."""
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
    """Dunning's G² of what is together and what is not.

    A value may be near hits more often than there are hits; cells that would be negative then add nothing.
    """
    observed = (fxy, fx - fxy, fy - fxy, n - fx - fy + fxy)
    expected = (fx * fy / n, fx * (n - fy) / n, (n - fx) * fy / n, (n - fx) * (n - fy) / n)
    total = np.zeros(len(fxy))
    for seen, due in zip(observed, expected, strict=True):
        some = (seen > 0) & (due > 0)
        total[some] += seen[some] * np.log(seen[some] / due[some])
    return 2 * total
