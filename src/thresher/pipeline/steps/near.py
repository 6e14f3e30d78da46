"""The step `near_duplicates`: paragraphs that mostly repeat earlier ones are dropped.

The algorithm, and why it is exact, is described in `thresher.pipeline.dedup`; this module divides it into tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Annotated, NamedTuple

import pyarrow as pa
from msgspec import Meta

from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import ArtifactOutput
from thresher.pipeline.code_digests import digest_with_imports
from thresher.pipeline.steps import ranges
from thresher.pipeline.steps.paragraphs import paragraphs, without_paragraphs
from thresher.pipeline.steps.plans import Parameters, Plan, Stages, StepContext
from thresher.pipeline.steps.ranges import FILE, Stats, files, gathering, task

_HERE = "thresher.pipeline.steps.near"


class NearDuplicatesStep(Parameters, frozen=True):
    """The parameters of the step: the share of known shingles above which a paragraph is dropped, and memory."""

    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    memory: Annotated[int, Meta(ge=1 << 20)] = 1 << 30  # bytes of a process


def plan(work: StepContext) -> Plan:
    """Drop paragraphs with most of their shingles in earlier paragraphs that are kept.

    The dropped share of a document is stored with it: a document with little text of its own is of lower quality.
    """
    memory, share = work.parameters.memory, work.parameters.share
    shingles = (digest_with_imports("reader/quality/shingles.py"),)
    scattered = yield [task(_HERE, "scatter", (shard,), shingles, memory=memory) for shard in work.shards]
    if not scattered:
        return []
    states, advanced, first_blocks = yield from decisions(scattered, share, memory)
    concluded = yield [
        task(_HERE, "conclude", (runs, state, *advanced), block=block)
        for runs, state, block in zip(scattered, states, first_blocks, strict=True)
    ]
    # The decisions depend on all shards, but for most shards they are the same as in the run before. Then
    # `conclude` writes the same bytes again, and the shard need not be written.
    return (yield [task(_HERE, "drop", each) for each in zip(work.shards, concluded, strict=True)])


class DecidedRound(NamedTuple):
    """The artifacts from which `conclude` derives the decisions on all paragraphs."""

    states: list[ArtifactOutput]  # of each shard
    advanced: list[ArtifactOutput]  # the last decisions in order: one artifact, or none
    first_blocks: list[int]  # the number in the corpus of the first block of each shard


def decisions(scattered: Sequence[ArtifactOutput], share: float, memory: int) -> Stages[DecidedRound]:
    """Decide all paragraphs of scattered shards, round by round, as described in `dedup.rounds`."""
    (layout,) = yield [task(_HERE, "lay_out", scattered, memory=memory)]
    first_blocks: list[int] = layout.report["first_blocks"]
    room: int = layout.report["room"]
    parts = yield gathering(scattered, layout, memory)
    states = yield [task(_HERE, "begin", (one,), share=share) for one in scattered]
    undecided = _sum(states, "undecided")
    advanced: list[ArtifactOutput] = []
    while undecided:
        sifted = yield [task(_HERE, "sift", (part, *states, *advanced), states=len(states)) for part in parts]
        states = yield [
            task(_HERE, "decide", (state, *sifted, *advanced), parts=len(sifted), block=block)
            for state, block in zip(states, first_blocks, strict=True)
        ]
        parts, advanced = sifted, []
        before, undecided = undecided, _sum(states, "undecided")
        if undecided and (_sum(parts, "entries") <= room or 2 * undecided > before):
            advanced = yield [task(_HERE, "advance", (*parts, *states), parts=len(parts), room=room)]
            undecided -= _sum(advanced, "decided")
    return DecidedRound(states, advanced, first_blocks)


def _sum(outputs: Sequence[ArtifactOutput], name: str) -> int:
    return sum(output.report[name] for output in outputs)


# ── Tasks ──


def scatter(out: Path, inputs: Sequence[Path], *, memory: int) -> Stats:
    """Write the shingles of a shard."""
    from thresher.pipeline.dedup.scatter import scatter as scatter_runs

    texts = (
        text for batch in document_shards.batches(inputs[0], ["text"]) for text in batch.column(0).to_pylist()
    )
    scatter_runs((paragraphs(text) for text in texts), out / FILE, memory=memory)
    return {}


def lay_out(out: Path, inputs: Sequence[Path], *, memory: int) -> Stats:
    """Plan ranges of hashes, the number of each shard's first block, and the entries that fit into `advance`."""
    from thresher.pipeline.dedup.rounds import first_blocks, room_for

    blocks, runs = first_blocks(files(inputs))
    layout = ranges.lay_out(out, inputs, memory=memory)
    return {**layout, "first_blocks": blocks, "room": room_for(runs, memory)}


def begin(out: Path, inputs: Sequence[Path], *, share: float) -> Stats:
    """Write the state of the paragraphs of a shard before the first round."""
    from thresher.pipeline.dedup.rounds import begin as begin_shard

    begin_shard(inputs[0] / FILE, out / FILE, share=share)
    return _number(out, "undecided")


def sift(out: Path, inputs: Sequence[Path], *, states: int) -> Stats:
    """Write the counts of a round for one range of hashes."""
    from thresher.pipeline.dedup.rounds import sift as sift_part

    part, *others = files(inputs)
    sift_part(part, out / FILE, others[:states], *others[states:])
    return _number(out, "entries")


def decide(out: Path, inputs: Sequence[Path], *, parts: int, block: int) -> Stats:
    """Write the state of a shard after a round."""
    from thresher.pipeline.dedup.rounds import decide as decide_shard

    state, *others = files(inputs)
    decide_shard(state, out / FILE, others[:parts], next(iter(others[parts:]), None), block)
    return _number(out, "undecided")


def advance(out: Path, inputs: Sequence[Path], *, parts: int, room: int) -> Stats:
    """Write the decisions on the next blocks, made in order where rounds would take long."""
    from thresher.pipeline.dedup.rounds import advance as advance_blocks

    everything = files(inputs)
    advance_blocks(everything[:parts], everything[parts:], out / FILE, room=room)
    return _number(out, "decided")


def conclude(out: Path, inputs: Sequence[Path], *, block: int) -> Stats:
    """Write which paragraphs of a shard are near duplicates."""
    from thresher.pipeline.dedup.conclude import conclude as conclude_shard

    runs, state, *advanced = files(inputs)
    conclude_shard(runs, out / FILE, state, *advanced, first_block=block)
    return {}


def drop(out: Path, inputs: Sequence[Path]) -> Stats:
    """Write the documents of a shard without paragraphs that are near duplicates."""
    from thresher.pipeline.dedup.conclude import dropped, losses

    shard, concluded = inputs
    counts = losses(concluded / FILE)
    documents = document_shards.write(out, _filtered(shard, dropped(concluded / FILE)))
    return {
        "documents": documents,
        "emptied": counts.emptied,
        "paragraphs": counts.paragraphs,
        "dropped_paragraphs": counts.dropped,
        "words": counts.words,
        "dropped_words": counts.dropped_words,
    }


def _filtered(shard: Path, flags: Iterator[list[bool]]) -> Iterator[pa.RecordBatch]:
    for batch in document_shards.batches(shard):
        stays = [[not gone for gone in next(flags)] for _ in range(batch.num_rows)]
        yield without_paragraphs(_with_repeated(batch, stays), stays)


def _with_repeated(batch: pa.RecordBatch, stays: Sequence[Sequence[bool]]) -> pa.RecordBatch:
    """Return documents with their dropped shares in the column REPEATED, including drops of earlier steps."""
    name = document_shards.REPEATED.name
    has_column = name in batch.schema.names
    before = batch.column(name).to_pylist() if has_column else [None] * batch.num_rows
    texts = batch.column("text").to_pylist()
    shares = [
        1.0 - (1.0 - (known or 0.0)) * _kept_share(paragraphs(text), flags)
        for known, text, flags in zip(before, texts, stays, strict=True)
    ]
    others = batch.drop_columns([name]) if has_column else batch
    return others.append_column(document_shards.REPEATED, pa.array(shares, document_shards.REPEATED.type))


def _kept_share(texts: Sequence[str], stays: Sequence[bool]) -> float:
    """Return the share of the characters of paragraphs that stay."""
    characters = sum(map(len, texts))
    return sum(map(len, compress(texts, stays))) / characters if characters else 1.0


def _number(out: Path, name: str) -> Stats:
    """Return a number of the file that a task has written, as its report."""
    from thresher.pipeline.dedup.files import number

    return {name: number(out / FILE, name)}
