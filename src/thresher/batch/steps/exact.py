"""Exact duplicates: of documents with the same text, the first in the order of the corpus stays.

Every shard tells the hashes of its texts, in partitions; every partition tells which documents come after another
one of the same hash; for every shard these are put together, and it leaves them out. So no process holds more than
a partition, and a shard is only written anew if others are to be left out of it.
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

from thresher.batch import shards
from thresher.batch.pieces import Task
from thresher.batch.steps.plans import Parameters, Plan, Work

_HERE = "thresher.batch.steps.exact"
FILE = "rows"
_ROW = np.dtype([("high", "<u8"), ("low", "<u8"), ("row", "<u4")])


class Exact(Parameters, frozen=True):
    """In how many partitions: each takes some 30 bytes a document of memory."""

    partitions: Annotated[int, Meta(ge=1, le=4096)] = 8


def plan(work: Work) -> Plan:
    """Of documents with the same text, leave the first."""
    parts: int = work.parameters.partitions
    told = yield [Task(f"{_HERE}:tell", (shard,), {"partitions": parts}) for shard in work.shards]
    doubles = yield [
        Task(f"{_HERE}:compare", tuple(told), {"partition": partition}) for partition in range(parts)
    ]
    gone = yield [
        Task(f"{_HERE}:put_together", tuple(doubles), {"number": number})
        for number in range(len(work.shards))
    ]
    return (yield [Task(f"{_HERE}:leave_out", each) for each in zip(work.shards, gone, strict=True)])


def tell(out: Path, inputs: Sequence[Path], *, partitions: int) -> dict[str, Any]:
    """The hashes of the texts of a shard, a file for each partition."""
    parts = []
    row = 0
    for batch in shards.batches(inputs[0], ["text", "text_hash"]):
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
    """What stands for a text: the hash by which crawls tell duplicates, if it is on record."""
    if known and len(known) == 32:
        return bytes.fromhex(known)
    return xxhash.xxh3_128_digest((text or "").encode("utf-8", "replace"))


def compare(out: Path, inputs: Sequence[Path], *, partition: int) -> dict[str, Any]:
    """The documents of each shard, by row, that come after another one of the same hash."""
    rows = [np.frombuffer((shard / f"{partition:04d}").read_bytes(), _ROW) for shard in inputs]
    every = np.concatenate([np.empty(0, _ROW), *rows])
    order = np.lexsort((np.arange(len(every)), every["low"], every["high"]))
    high, low = every["high"][order], every["low"][order]
    is_double = np.zeros(len(every), np.bool_)
    is_double[order[1:]] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
    start = 0
    for number, some in enumerate(rows):
        doubles = some["row"][is_double[start : start + len(some)]]
        (out / f"{number:06d}").write_bytes(np.sort(doubles).tobytes())
        start += len(some)
    return {"duplicates": int(is_double.sum())}


def put_together(out: Path, inputs: Sequence[Path], *, number: int) -> dict[str, Any]:
    """The documents of one shard, by row, that come after another one like them."""
    gone = [np.frombuffer((one / f"{number:06d}").read_bytes(), "<u4") for one in inputs]
    rows = np.sort(np.concatenate(gone))  # the same, in however many partitions they were found
    (out / FILE).write_bytes(rows.tobytes())
    return {"duplicates": len(rows)}


def leave_out(out: Path, inputs: Sequence[Path]) -> dict[str, Any]:
    """The documents of a shard but those that come after another one like them."""
    shard, doubles = inputs
    gone = np.frombuffer((doubles / FILE).read_bytes(), "<u4")
    return {"documents": shards.write(out, _without(shard, gone)), "duplicates": len(gone)}


def _without(shard: Path, gone: NDArray[np.uint32]) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in shards.batches(shard):
        rows = np.arange(start, start + batch.num_rows)
        yield batch.filter(pa.array(~np.isin(rows, gone)))
        start += batch.num_rows
