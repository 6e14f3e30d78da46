"""Analyses of hits and of whole corpora: a function and a row in `FUNCTIONS` for each.

A function takes an index, a search (or None) and options by name, and returns a `ResultTable`, which `export.write`
writes to a file. With the option `within`, the name of a subcorpus, only its documents count.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from thresher.search.analysis import (
    collocations,
    concordance,
    counts,
    dispersion,
    ngrams,
    retrieval,
    subcorpora,
    wordlists,
)
from thresher.search.analysis.tables import AnalysisError, Concordance, ResultTable

__all__ = ["FUNCTIONS", "AnalysisError", "AnalysisFunction", "Concordance", "ResultTable"]


class AnalysisFunction(Struct, frozen=True):
    """An analysis: a row of `FUNCTIONS`."""

    name: str
    summary: str
    run: Callable[..., ResultTable]
    needs_query: bool = True
    example: str = ""  # a query for which it is useful


_ROWS = (
    AnalysisFunction("kwic", "hits in their context", concordance.kwic, example='[lemma="corpus"]'),
    AnalysisFunction(
        "count", "number of hits and of documents", counts.count, example='[lemma="take"] []{0,3} "part"'
    ),
    AnalysisFunction("freq", "values at a place of the hits", counts.freq, example='[pos="JJ"] "tea"'),
    AnalysisFunction(
        "table", "pairs of values at two places of the hits", counts.table, example='[pos="JJ"] [pos="NN"]'
    ),
    AnalysisFunction("collocates", "words near the hits", collocations.collocates, example='"tea"'),
    AnalysisFunction("distribution", "hits by year, site and the like", counts.distribution, example='"tea"'),
    AnalysisFunction("dispersion", "how evenly hits are spread", dispersion.dispersion, example='"tea"'),
    AnalysisFunction("words", "words by frequency", wordlists.words, needs_query=False),
    AnalysisFunction("ngrams", "sequences of words by frequency", ngrams.ngrams, needs_query=False),
    AnalysisFunction(
        "keywords", "words more frequent here than elsewhere", wordlists.keywords, needs_query=False
    ),
    AnalysisFunction(
        "retrieve", "the best texts that have some words", retrieval.retrieve, needs_query=False
    ),
    AnalysisFunction("subcorpora", "named sets of documents", subcorpora.subcorpora, needs_query=False),
)

FUNCTIONS: dict[str, AnalysisFunction] = {row.name: row for row in _ROWS}
