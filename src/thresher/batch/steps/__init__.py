"""The steps that a recipe can have: a plan and a row in STEPS for each."""

from __future__ import annotations

from thresher.batch.steps import exact, filters, indexing, languages, near, reread, similar, statistics
from thresher.batch.steps.plans import Step

_ROWS = (
    Step("exact_duplicates", 1, exact.plan, exact.Exact),
    Step("filter", 1, filters.plan, filters.Filter),
    Step("index", 2, indexing.plan, indexing.Indexing, ("language",)),
    Step("near_duplicates", 2, near.plan, near.NearDuplicates),
    Step("paragraph_language", 1, languages.plan, languages.Languages, ("language",)),
    Step("reread", 2, reread.plan, reread.Reread, ("language", "read", "judge")),
    Step("similar_documents", 1, similar.plan, similar.SimilarDocuments),
    Step("statistics", 1, statistics.plan, statistics.Statistics),
)
STEPS: dict[str, Step] = {row.name: row for row in _ROWS}
