"""What can be done with hits and with whole corpora: a function and a row in `FUNCTIONS` each.

A function takes an index, a search (None where it needs none) and options by name, and gives a `Table`, of which
`export.write` makes a file. Where it takes `within`, the name of a subcorpus, nothing outside of that counts.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from thresher.query.functions import (
    collocations,
    concordance,
    counts,
    dispersion,
    ngrams,
    retrieval,
    subcorpora,
    wordlists,
)
from thresher.query.functions.tables import FunctionError, Table

__all__ = ["FUNCTIONS", "Function", "FunctionError", "Table"]


class Function(Struct, frozen=True):
    """Something to do with hits, or with a corpus."""

    name: str
    summary: str
    run: Callable[..., Table]
    needs_query: bool = True
    example: str = ""  # a query that it is good for


_ROWS = (
    Function("kwic", "hits in their context", concordance.kwic, example='[lemma="corpus"]'),
    Function("count", "how many hits there are", counts.count, example='[lemma="take"] []{0,3} "part"'),
    Function("freq", "what stands at a place of the hits", counts.freq, example='[pos="JJ"] "tea"'),
    Function("table", "what stands at two places of the hits", counts.table, example='[pos="JJ"] [pos="NN"]'),
    Function(
        "collocates", "what stands near hits, and how closely", collocations.collocates, example='"tea"'
    ),
    Function("distribution", "hits by what documents tell: year, site", counts.distribution, example='"tea"'),
    Function("dispersion", "whether hits are everywhere", dispersion.dispersion, example='"tea"'),
    Function("words", "the words of a corpus", wordlists.words, needs_query=False),
    Function("ngrams", "words that often follow each other", ngrams.ngrams, needs_query=False),
    Function("keywords", "what is more frequent than elsewhere", wordlists.keywords, needs_query=False),
    Function("retrieve", "the best texts that have some words", retrieval.retrieve, needs_query=False),
    Function("subcorpora", "documents under a name", subcorpora.subcorpora, needs_query=False),
)

FUNCTIONS: dict[str, Function] = {row.name: row for row in _ROWS}
