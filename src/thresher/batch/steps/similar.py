"""Documents nearly the same as an earlier one, by MinHash: told in `batch/near/minhash`, cut into tasks here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import pyarrow as pa
from msgspec import Meta

from thresher.batch import shards
from thresher.batch.code import digest_of_room
from thresher.batch.paragraphs import paragraphs
from thresher.batch.pieces import Output
from thresher.batch.steps import ranges
from thresher.batch.steps.plans import Parameters, Plan, Stages, Work
from thresher.batch.steps.ranges import FILE, Figures, files, gathering, task

_HERE = "thresher.batch.steps.similar"


class SimilarDocuments(Parameters, frozen=True):
    """From which similarity (Jaccard's, of runs of seven words) a document goes; memory of a process."""

    threshold: Annotated[float, Meta(gt=0, le=1)] = 0.8
    memory: Annotated[int, Meta(ge=1 << 20)] = 1 << 30


def plan(work: Work) -> Plan:
    """Of documents that are nearly the same, leave the first."""
    threshold, memory = work.parameters.threshold, work.parameters.memory
    words = (digest_of_room("read/runs.py"), digest_of_room("read/scan/words.py"))
    signed = yield [task(_HERE, "sign", (shard,), words) for shard in work.shards]
    if not signed:
        return []
    counts = [one.report["documents"] for one in signed]
    clusters = yield from clustering(signed, counts, threshold, memory)
    concluded = yield [
        task(_HERE, "conclude", (one, clusters), first=sum(counts[:number]))
        for number, one in enumerate(signed)
    ]
    # Clusters change with every document; of most shards, the same are left out as before.
    return (yield [task(_HERE, "leave_out", each) for each in zip(work.shards, concluded, strict=True)])


def clustering(
    signed: Sequence[Output], counts: Sequence[int], threshold: float, memory: int
) -> Stages[Output]:
    """The clusters of all documents of shards, each of which has so many and was signed."""
    banded = yield [task(_HERE, "band", (one,), threshold=threshold, memory=memory) for one in signed]
    (layout,) = yield [task(ranges.__name__, "lay_out", banded, memory=memory)]
    gathered = yield gathering(banded, layout, memory)
    matched = yield [
        task(_HERE, "match", (part, *banded, *signed), shards=len(signed), threshold=threshold)
        for part in gathered
    ]
    (clusters,) = yield [task(_HERE, "cluster", matched, documents=sum(counts))]
    return clusters


def sign(out: Path, inputs: Sequence[Path]) -> Figures:
    """Signatures of the documents of a shard."""
    from thresher.batch.near.files import number
    from thresher.batch.near.minhash import sign as sign_documents

    texts = (text for batch in shards.batches(inputs[0], ["text"]) for text in batch.column(0).to_pylist())
    sign_documents((paragraphs(text) for text in texts), out / FILE)
    return {"documents": number(out / FILE, "documents")}


def band(out: Path, inputs: Sequence[Path], *, threshold: float, memory: int) -> Figures:
    """Bands of signatures."""
    from thresher.batch.near.minhash import band as band_shard

    band_shard(inputs[0] / FILE, out / FILE, threshold=threshold, memory=memory)
    return {}


def match(out: Path, inputs: Sequence[Path], *, shards: int, threshold: float) -> Figures:
    """Pairs of documents that are similar enough, of those that share a band."""
    from thresher.batch.near.minhash import match as match_part

    part, *others = files(inputs)
    match_part(part, out / FILE, others[:shards], others[shards:], threshold=threshold)
    return {}


def cluster(out: Path, inputs: Sequence[Path], *, documents: int) -> Figures:
    """Clusters of similar documents."""
    from thresher.batch.near.minhash import cluster as cluster_pairs

    cluster_pairs(files(inputs), out / FILE, documents=documents)
    return {}


def conclude(out: Path, inputs: Sequence[Path], *, first: int) -> Figures:
    """Which documents of a shard are nearly the same as an earlier one."""
    from thresher.batch.near.minhash import conclude as conclude_shard

    signed, clusters = files(inputs)
    conclude_shard(signed, out / FILE, clusters, first_document=first)
    return {}


def leave_out(out: Path, inputs: Sequence[Path]) -> Figures:
    """The documents of a shard but those that are nearly the same as an earlier one."""
    from thresher.batch.near.conclude import dropped

    shard, concluded = inputs
    gone = [flags[0] for flags in dropped(concluded / FILE)]
    return {"documents": shards.write(out, _left(shard, iter(gone))), "similar": sum(gone)}


def _left(shard: Path, gone: Iterator[bool]) -> Iterator[pa.RecordBatch]:
    for batch in shards.batches(shard):
        yield batch.filter(pa.array([not next(gone) for _ in range(batch.num_rows)], pa.bool_()))
