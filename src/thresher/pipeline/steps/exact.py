"""The step `exact_duplicates`: of documents with the same text, the first in the order of the corpus stays.

1. `hash_texts` hashes the texts of a shard and divides the hashes into partitions.
2. `find_repeats` compares the hashes of one partition in all shards.
3. `merge` gathers the repeated documents of a shard from all partitions.
4. `drop` writes a shard without them.

So no process holds more than one partition, and a shard is written again only if other documents of it are dropped
than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import xxhash
from msgspec import Meta
from numpy.typing import NDArray

from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import Task
from thresher.pipeline.steps.plans import Parameters, Plan, StepContext

_HERE = "thresher.pipeline.steps.exact"
FILE = "rows"
_ROW = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<u4")])


class ExactDuplicatesStep(Parameters, frozen=True):
    """The parameters of the step: the number of partitions. A partition takes 30 bytes of memory per document."""

    partitions: Annotated[int, Meta(ge=1, le=4096)] = 8


def plan(work: StepContext) -> Plan:
    """Drop documents with the text of an earlier document."""
    parts: int = work.parameters.partitions
    hashed = yield [Task(f"{_HERE}:hash_texts", (shard,), {"partitions": parts}) for shard in work.shards]
    repeated = yield [
        Task(f"{_HERE}:find_repeats", tuple(hashed), {"partition": partition}) for partition in range(parts)
    ]
    merged = yield [
        Task(f"{_HERE}:merge", tuple(repeated), {"number": number}) for number in range(len(work.shards))
    ]
    return (yield [Task(f"{_HERE}:drop", each) for each in zip(work.shards, merged, strict=True)])


def hash_texts(out: Path, inputs: Sequence[Path], *, partitions: int) -> dict[str, Any]:
    """Write the hashes of the texts of a shard, in a file for each partition."""
    parts = []
    row = 0
    for batch in document_shards.batches(inputs[0], ["text", "text_hash"]):
        texts = batch.column("text").to_pylist()
        digests = b"".join(map(_digest, texts, batch.column("text_hash").to_pylist()))
        rows = np.empty(len(texts), _ROW)
        halves = np.frombuffer(digests, "<u8").reshape(-1, 2)
        rows["high"], rows["low"] = halves[:, 0], halves[:, 1]
        rows["row"] = np.arange(row, row + len(texts))
        parts.append(rows)
        row += len(texts)
    every = np.concatenate([np.empty(0, _ROW), *parts])
    owners = every["high"] % np.uint64(partitions)
    for partition in range(partitions):
        (out / f"{partition:04d}").write_bytes(every[owners == partition].tobytes())
    return {"documents": row}


def _digest(text: str | None, known: str | None) -> bytes:
    """Return the recorded hash of a text, by which crawls find duplicates, or else a hash of the whole text."""
    if known and len(known) == 32:
        return bytes.fromhex(known)
    return xxhash.xxh3_128_digest((text or "").encode("utf-8", "replace"))


def find_repeats(out: Path, inputs: Sequence[Path], *, partition: int) -> dict[str, Any]:
    """Write, for each shard, the rows of documents with the hash of an earlier document."""
    rows = [np.frombuffer((shard / f"{partition:04d}").read_bytes(), _ROW) for shard in inputs]
    every = np.concatenate([np.empty(0, _ROW), *rows])
    order = np.lexsort((np.arange(len(every)), every["low"], every["high"]))
    high, low = every["high"][order], every["low"][order]
    is_repeated = np.zeros(len(every), np.bool_)
    is_repeated[order[1:]] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
    start = 0
    for number, of_shard in enumerate(rows):
        repeated = of_shard["row"][is_repeated[start : start + len(of_shard)]]
        (out / f"{number:06d}").write_bytes(np.sort(repeated).tobytes())
        start += len(of_shard)
    return {"duplicates": int(is_repeated.sum())}


def merge(out: Path, inputs: Sequence[Path], *, number: int) -> dict[str, Any]:
    """Write the rows of all repeated documents of one shard."""
    repeated = [np.frombuffer((one / f"{number:06d}").read_bytes(), "<u4") for one in inputs]
    rows = np.sort(np.concatenate(repeated))  # sorted, so that the number of partitions makes no difference
    (out / FILE).write_bytes(rows.tobytes())
    return {"duplicates": len(rows)}


def drop(out: Path, inputs: Sequence[Path]) -> dict[str, Any]:
    """Write the documents of a shard without the repeated ones."""
    shard, repeated = inputs
    rows = np.frombuffer((repeated / FILE).read_bytes(), "<u4")
    return {"documents": document_shards.write(out, _without(shard, rows)), "duplicates": len(rows)}


def _without(shard: Path, dropped: NDArray[np.uint32]) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in document_shards.batches(shard):
        rows = np.arange(start, start + batch.num_rows)
        yield batch.filter(pa.array(~np.isin(rows, dropped)))
        start += batch.num_rows
