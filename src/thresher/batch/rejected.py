"""Pages that a crawl did not keep, chosen from its outcomes to be read and judged again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thresher.batch import shards
from thresher.crawl.politeness import Politeness
from thresher.crawl.state import State
from thresher.store import corpus as corpora
from thresher.store.corpus import CorpusError, aligned
from thresher.store.segments import read_stream
from thresher.store.shards import standing, state_folder
from thresher.store.tables import DOCS, OUTCOMES

KINDS = ("rejected", "quarantined")  # outcomes of pages that were there, and were not kept
DUPLICATES = ("raw duplicate", "text duplicate", "near duplicate")  # of pages that were
AT_ONCE = 1 << 16  # outcomes
# As a shard of documents has them: the names of outcomes are others.
_COLUMNS = {
    "url": "url",
    "host": "host",
    "fetched": "time",
    "depth": "depth",
    "seq": "seq",
    "warc_file": "warc_file",
    "warc_offset": "warc_offset",
}
_SCHEMA = pa.schema([*(DOCS.field(name) for name in _COLUMNS), DOCS.field("opt_out")])


def choose(
    out: Path, inputs: Sequence[Path], *, reasons: Sequence[str], length: int | None, directory: str
) -> dict[str, Any]:
    """The pages of a file of outcomes that were not kept for one of these reasons, and whose raw record was.

    No reasons: all but that there was such a page already. With each page is what the robots.txt of its host says
    of uses by models: it is not on the page.
    """
    file = standing(inputs[0])
    state = _state(file.parents[1])
    try:
        polite = Politeness(state, corpora.open(directory).config.polite, lambda: 0.0)
        counted: Counter[str] = Counter()
        opt_outs = cache(lambda host: list(polite.opt_outs(host)))
        found = (_chosen(batch, reasons, counted, opt_outs) for batch in _batches(file, length))
        pages = shards.write(out, found, _SCHEMA)
    finally:
        state.close()
    return {"pages": pages, "reasons": dict(sorted(counted.items()))}


def _state(part: Path) -> State:
    path = state_folder(part)
    if not path.is_dir():
        raise CorpusError(
            f"{path} is gone, and with it what robots.txt files said of uses by models; restore it, or leave "
            "rejected = true out"
        )
    return State(path, read_only=True)


def _batches(path: Path, length: int | None) -> Iterator[pa.RecordBatch]:
    if length is not None:
        yield from (aligned(batch, OUTCOMES) for batch in read_stream(path, length))
        return
    try:
        with pq.ParquetFile(path) as file:
            present = [name for name in OUTCOMES.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(AT_ONCE, columns=present):
                yield aligned(batch, OUTCOMES)
    except (pa.ArrowException, OSError) as fault:
        raise CorpusError(f"{path} cannot be read: {fault}; restore it") from fault


def _chosen(
    batch: pa.RecordBatch, reasons: Sequence[str], counted: Counter[str], opt_outs: Any
) -> pa.RecordBatch:
    kinds, causes, files = (batch.column(name).to_pylist() for name in ("outcome", "reason", "warc_file"))
    rows = [
        row
        for row, (kind, cause, file) in enumerate(zip(kinds, causes, files, strict=True))
        if kind in KINDS and file is not None and (cause in reasons if reasons else cause not in DUPLICATES)
    ]
    counted.update(str(causes[row]) for row in rows)
    taken = batch.take(pa.array(rows, pa.int64()))
    said = pa.array([opt_outs(host) for host in taken.column("host").to_pylist()], DOCS.field("opt_out").type)
    columns = [taken.column(theirs).cast(_SCHEMA.field(ours).type) for ours, theirs in _COLUMNS.items()]
    return pa.RecordBatch.from_arrays([*columns, said], schema=_SCHEMA)
