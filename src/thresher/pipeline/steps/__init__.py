"""The steps that a recipe can have: a plan and a row in STEPS for each."""

from __future__ import annotations

from thresher.pipeline.steps import exact, filters, indexing, languages, near, reread, similar, statistics
from thresher.pipeline.steps.plans import Step

_ROWS = (
    Step("exact_duplicates", 1, exact.plan, exact.ExactDuplicatesStep),
    Step("filter", 2, filters.plan, filters.FilterStep),
    Step("index", 2, indexing.plan, indexing.IndexStep, ("language",)),
    Step("near_duplicates", 2, near.plan, near.NearDuplicatesStep),
    Step("paragraph_language", 1, languages.plan, languages.ParagraphLanguageStep, ("language",)),
    Step("reread", 2, reread.plan, reread.RereadStep, ("language", "read", "judge")),
    Step("similar_documents", 1, similar.plan, similar.SimilarDocumentsStep),
    Step("statistics", 2, statistics.plan, statistics.StatisticsStep),
)
STEPS: dict[str, Step] = {row.name: row for row in _ROWS}
