"""Word lists of a corpus, and keywords: words more frequent in one corpus than in another."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher.search.analysis import subcorpora
from thresher.search.analysis.dispersion import spreads
from thresher.search.analysis.scope import (
    AttributeVocabulary,
    DocumentScope,
    default_attribute,
    frequencies,
    main_attribute,
    vocabulary,
)
from thresher.search.analysis.tables import MILLION, AnalysisError, ResultTable, first, one_of, ordered
from thresher.search.analysis.windows import spelled
from thresher.search.cql.ast import StringPattern
from thresher.search.execution.type_conditions import like
from thresher.search.searcher import Index, RunningSearch

Floats = NDArray[np.float64]

ORDERS = ("count", "documents", "arf")
KEYNESS = ("keyness", "log_likelihood", "log_ratio", "percent_difference")
SMALLEST_FREQUENCY = 1e-18  # divisor in place of a frequency of 0; by Gabrielatos and Marchi
HALF_A_HIT = 0.5  # in place of a count of 0; by Hardie


def words(
    index: Index,
    _: RunningSearch | None = None,
    *,
    attribute: str = "",
    matching: str = "",
    flags: str = "",
    within: str | None = None,
    minimum: int = 1,
    sort: str = "count",
    limit: int | None = 1000,
    spread: bool = True,
) -> ResultTable:
    """Return the values of an attribute with counts, numbers of documents and average reduced frequency.

    `matching` is a regular expression as in CQL; `flags` are c (any case), d (any accents), l (literal). Counts are
    in the index; the other columns take a pass over all tokens, which `spread=False` avoids.
    """
    known = ORDERS if spread else ORDERS[:1]
    one_of(sort, known, "order")
    scope = subcorpora.scope(index, within)
    known_words = vocabulary(index, attribute or main_attribute(index))
    counts = frequencies(scope, known_words)
    wanted = counts >= max(minimum, 1)
    if flags.strip("cdl"):
        raise AnalysisError(f"flags must be c (any case), d (any accents) or l (literal), got {flags!r}")
    if matching:
        wanted &= _matching(
            index, known_words, attribute or main_attribute(index), StringPattern(matching, flags)
        )
    kept = np.flatnonzero(wanted)
    columns = {
        "value": spelled(kept, known_words.values),
        "count": pa.array(counts[kept]),
        "per_million": pa.array(counts[kept] * MILLION / max(scope.tokens, 1)),
    }
    if spread:
        found = spreads(scope, known_words, counts)
        columns |= {"documents": pa.array(found.documents[kept]), "arf": pa.array(found.arf[kept])}
    return first(ordered(pa.table(columns), sort), limit)


def _matching(
    index: Index, known: AttributeVocabulary, attribute: str, text: StringPattern
) -> NDArray[np.bool_]:
    wanted = np.zeros(len(known.values), np.bool_)
    for segment, numbers in zip(index.segments, known.by_value, strict=True):
        if attribute in segment.attributes:
            wanted[numbers[like(segment.attributes[attribute], text)]] = True
    return wanted


def keywords(
    index: Index,
    _: RunningSearch | None = None,
    *,
    reference: Index | None = None,
    within: str | None = None,
    against: str | None = None,
    attribute: str = "",
    smoothing: float = 1.0,
    minimum: int = 1,
    sort: str = "keyness",
    limit: int | None = 100,
) -> ResultTable:
    """Return values that are more frequent here than in a reference: another index, or a subcorpus of one.

    Without a reference, a subcorpus is compared with the rest of its index. `keyness` is the ratio of the
    frequencies per million with the smoothing added to both ("simple maths"): the larger the smoothing, the more
    frequent are the keywords.
    """
    one_of(sort, KEYNESS, "measure")
    if smoothing <= 0:
        raise AnalysisError(f"smoothing must be positive, got {smoothing}; try 1")
    attribute = attribute or default_attribute(index)
    focus = subcorpora.scope(index, within)
    if reference is None and against is None:
        if within is None:
            raise AnalysisError(
                "keywords need something to compare with: give another corpus or a subcorpus as `against`, "
                "or one as `within` to compare it with the rest"
            )
        other = focus.others()
    else:
        other = subcorpora.scope(reference or index, against)
    rows = _beside(_list(focus, attribute), _list(other, attribute))
    rows = rows.filter(pc.field("count") >= max(minimum, 1))
    here, there = (np.asarray(rows[name], np.float64) for name in ("count", "reference_count"))
    for name, figures in _compared(here, focus.tokens, there, other.tokens, smoothing).items():
        rows = rows.append_column(name, pa.array(figures))
    return first(ordered(rows, sort), limit)


def _list(scope: DocumentScope, attribute: str) -> pa.Table:
    known = vocabulary(scope.index, attribute)
    counts = frequencies(scope, known)
    (kept,) = np.nonzero(counts)
    return pa.table({"value": spelled(kept, known.values), "count": pa.array(counts[kept])})


def _beside(here: pa.Table, there: pa.Table) -> pa.Table:
    """Return counts with the counts of the same values elsewhere, which may be 0."""
    places = pc.index_in(here["value"], value_set=there["value"]).fill_null(there.num_rows)
    counts = np.append(np.asarray(there["count"], np.int64), 0)
    return here.append_column("reference_count", pa.array(counts[np.asarray(places)]))


def _compared(
    here: Floats, tokens: int, there: Floats, reference: int, smoothing: float
) -> dict[str, Floats]:
    size, other = max(tokens, 1), max(reference, 1)
    often, often_there = here * MILLION / size, there * MILLION / other
    due, due_there = size * (here + there) / (size + other), other * (here + there) / (size + other)
    both = here * np.log(here / due) + there * np.log(np.where(there > 0, there, 1) / due_there)
    rate, rate_there = here / size, np.where(there > 0, there, HALF_A_HIT) / other
    base = np.maximum(often_there, SMALLEST_FREQUENCY)
    return {
        "per_million": often,
        "reference_per_million": often_there,
        "keyness": (often + smoothing) / (often_there + smoothing),
        "log_likelihood": 2 * both,
        "log_ratio": np.log2(rate / rate_there),
        "percent_difference": (often - often_there) * 100 / base,
    }
