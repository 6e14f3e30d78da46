"""Positions of hits in the index."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from thresher.search.analysis import subcorpora
from thresher.search.analysis.tables import Spans
from thresher.search.searcher import Index, RunningSearch


def spans(index: Index, search: RunningSearch, *, within: str | None = None) -> Spans:
    """Return the first and the last position of every hit, counted over all tokens of the index."""
    parts = search.stream() if within is None else subcorpora.scope(index, within).stream(search)
    firsts, lasts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, hits in parts:
        base = index.bases[number]
        firsts.append(hits.firsts.astype(np.int64) + base)
        lasts.append(hits.lasts.astype(np.int64) + base)
    rows = pa.table({"first": np.concatenate(firsts), "last": np.concatenate(lasts)})
    return Spans(rows, search.stopped)
