"""The choice of rejected pages of a crawl, from its outcomes, to be read and judged again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thresher.crawler.manners.politeness import Politeness
from thresher.crawler.storage.kv_state import KeyValueState
from thresher.pipeline import document_shards
from thresher.reasons import DUPLICATES
from thresher.store import corpus_files as corpora
from thresher.store.corpus_files import CorpusError
from thresher.store.schemas import DOCS, OUTCOMES, aligned
from thresher.store.shard_layout import standing, state_folder
from thresher.store.table_segments import read_stream

KINDS = ("rejected", "quarantined")  # outcomes of pages that were fetched but not kept
BATCH_OUTCOMES = 1 << 16
_COLUMNS = {  # of documents, with their names in outcomes
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
    """Write the pages of a file of outcomes that were rejected for one of these reasons and have a raw record.

    Without reasons, all rejected pages but duplicates are chosen. Each gets the opt-outs from the robots.txt of its
    host, which the page itself does not have.
    """
    file = standing(inputs[0])
    state = _state(file.parents[1])
    try:
        polite = Politeness(state, corpora.open(directory).config.polite, lambda: 0.0)
        counted: Counter[str] = Counter()
        opt_outs = cache(lambda host: list(polite.opt_outs(host)))
        found = (_chosen(batch, reasons, counted, opt_outs) for batch in _batches(file, length))
        pages = document_shards.write(out, found, _SCHEMA)
    finally:
        state.close()
    return {"pages": pages, "reasons": dict(sorted(counted.items()))}


def _state(part: Path) -> KeyValueState:
    path = state_folder(part)
    if not path.is_dir():
        raise CorpusError(
            f"{path} is missing, and with it the opt-outs from robots.txt files; restore it, or remove "
            "rejected = true"
        )
    return KeyValueState(path, read_only=True)


def _batches(path: Path, length: int | None) -> Iterator[pa.RecordBatch]:
    if length is not None:
        yield from (aligned(batch, OUTCOMES) for batch in read_stream(path, length))
        return
    try:
        with pq.ParquetFile(path) as file:
            present = [name for name in OUTCOMES.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(BATCH_OUTCOMES, columns=present):
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
    from_robots = pa.array(
        [opt_outs(host) for host in taken.column("host").to_pylist()], DOCS.field("opt_out").type
    )
    columns = [taken.column(theirs).cast(_SCHEMA.field(ours).type) for ours, theirs in _COLUMNS.items()]
    return pa.RecordBatch.from_arrays([*columns, from_robots], schema=_SCHEMA)
