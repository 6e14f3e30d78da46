"""Rows of several streams as one, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa


def interleaved(streams: Sequence[Iterator[pa.RecordBatch]], column: str) -> Iterator[pa.RecordBatch]:
    """The rows of streams that each rise in a column, rising all together; a batch of each is in memory."""
    waiting = [(head, stream) for stream in streams if (head := _next(stream)) is not None]
    while waiting:
        bound = min(head[column][-1].as_py() for head, _ in waiting)
        taken, left = [], []
        for head, stream in waiting:
            cut = int(np.searchsorted(head[column].to_numpy(), bound, side="right"))
            taken.append(head.slice(0, cut))
            rest = head.slice(cut) if cut < head.num_rows else _next(stream)
            if rest is not None:
                left.append((rest, stream))
        waiting = left
        yield from pa.Table.from_batches(taken).sort_by(column).combine_chunks().to_batches()


def _next(stream: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next((batch for batch in stream if batch.num_rows), None)
