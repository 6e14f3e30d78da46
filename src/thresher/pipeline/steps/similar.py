"""The step `similar_documents`: near-identical documents, found by MinHash as `dedup.minhash` describes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import pyarrow as pa
from msgspec import Meta

from thresher.pipeline import document_shards as shards
from thresher.pipeline.artifacts import ArtifactOutput
from thresher.pipeline.code_digests import digest_with_imports
from thresher.pipeline.steps import ranges
from thresher.pipeline.steps.paragraphs import paragraphs
from thresher.pipeline.steps.plans import Parameters, Plan, Stages, StepContext
from thresher.pipeline.steps.ranges import FILE, Stats, files, gathering, task

_HERE = "thresher.pipeline.steps.similar"


class SimilarDocumentsStep(Parameters, frozen=True):
    """The parameters of the step: the Jaccard similarity from which a document is dropped, and memory."""

    threshold: Annotated[float, Meta(gt=0, le=1)] = 0.8
    memory: Annotated[int, Meta(ge=1 << 20)] = 1 << 30  # bytes of a process


def plan(work: StepContext) -> Plan:
    """Drop documents that are nearly the same as an earlier one."""
    threshold, memory = work.parameters.threshold, work.parameters.memory
    shingles = (digest_with_imports("reader/quality/shingles.py"),)
    signed = yield [task(_HERE, "sign", (shard,), shingles) for shard in work.shards]
    if not signed:
        return []
    counts = [one.report["documents"] for one in signed]
    clusters = yield from clustering(signed, counts, threshold, memory)
    concluded = yield [
        task(_HERE, "conclude", (one, clusters), first=sum(counts[:number]))
        for number, one in enumerate(signed)
    ]
    # Clusters change with every new document, but in most shards the same documents are dropped as in the run
    # before.
    return (yield [task(_HERE, "drop", each) for each in zip(work.shards, concluded, strict=True)])


def clustering(
    signed: Sequence[ArtifactOutput], counts: Sequence[int], threshold: float, memory: int
) -> Stages[ArtifactOutput]:
    """Return the clusters of all documents; `counts` are the numbers of documents of the signed shards."""
    banded = yield [task(_HERE, "band", (one,), threshold=threshold, memory=memory) for one in signed]
    (layout,) = yield [task(ranges.__name__, "lay_out", banded, memory=memory)]
    gathered = yield gathering(banded, layout, memory)
    matched = yield [
        task(_HERE, "match", (part, *banded, *signed), shards=len(signed), threshold=threshold)
        for part in gathered
    ]
    (clusters,) = yield [task(_HERE, "cluster", matched, documents=sum(counts))]
    return clusters


def sign(out: Path, inputs: Sequence[Path]) -> Stats:
    """Write the signatures of the documents of a shard."""
    from thresher.pipeline.dedup.files import number
    from thresher.pipeline.dedup.minhash import sign as sign_documents

    texts = (text for batch in shards.batches(inputs[0], ["text"]) for text in batch.column(0).to_pylist())
    sign_documents((paragraphs(text) for text in texts), out / FILE)
    return {"documents": number(out / FILE, "documents")}


def band(out: Path, inputs: Sequence[Path], *, threshold: float, memory: int) -> Stats:
    """Write the bands of the signatures of a shard."""
    from thresher.pipeline.dedup.minhash import band as band_shard

    band_shard(inputs[0] / FILE, out / FILE, threshold=threshold, memory=memory)
    return {}


def match(out: Path, inputs: Sequence[Path], *, shards: int, threshold: float) -> Stats:
    """Write the pairs of documents that share a band and are similar enough."""
    from thresher.pipeline.dedup.minhash import match as match_part

    part, *others = files(inputs)
    match_part(part, out / FILE, others[:shards], others[shards:], threshold=threshold)
    return {}


def cluster(out: Path, inputs: Sequence[Path], *, documents: int) -> Stats:
    """Write the clusters of similar documents."""
    from thresher.pipeline.dedup.minhash import cluster as cluster_pairs

    cluster_pairs(files(inputs), out / FILE, documents=documents)
    return {}


def conclude(out: Path, inputs: Sequence[Path], *, first: int) -> Stats:
    """Write which documents of a shard are nearly the same as an earlier one."""
    from thresher.pipeline.dedup.minhash import conclude as conclude_shard

    signed, clusters = files(inputs)
    conclude_shard(signed, out / FILE, clusters, first_document=first)
    return {}


def drop(out: Path, inputs: Sequence[Path]) -> Stats:
    """Write the documents of a shard without the dropped ones."""
    from thresher.pipeline.dedup.conclude import dropped

    shard, concluded = inputs
    gone = [flags[0] for flags in dropped(concluded / FILE)]
    return {"documents": shards.write(out, _filtered(shard, iter(gone))), "similar": sum(gone)}


def _filtered(shard: Path, gone: Iterator[bool]) -> Iterator[pa.RecordBatch]:
    for batch in shards.batches(shard):
        yield batch.filter(pa.array([not next(gone) for _ in range(batch.num_rows)], pa.bool_()))
