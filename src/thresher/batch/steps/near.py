"""Near duplicates: paragraphs most of whose runs of words stand in earlier ones.

What is done, and why it is exact, is told in `batch/near`; here its work is cut into tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Annotated, NamedTuple

import pyarrow as pa
from msgspec import Meta

from thresher.batch import shards
from thresher.batch.code import digest_of_room
from thresher.batch.paragraphs import left, paragraphs
from thresher.batch.pieces import Output
from thresher.batch.steps import ranges
from thresher.batch.steps.plans import Parameters, Plan, Stages, Work
from thresher.batch.steps.ranges import FILE, Figures, files, gathering, task

_HERE = "thresher.batch.steps.near"


class NearDuplicates(Parameters, frozen=True):
    """From which share of runs seen before a paragraph goes, and how much memory a process may take."""

    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    memory: Annotated[int, Meta(ge=1 << 20)] = 1 << 30


def plan(work: Work) -> Plan:
    """Drop paragraphs most of whose runs of seven words stand in earlier paragraphs that are kept.

    How much of a document is dropped is told with it: one that has less of its own is of lower quality.
    """
    memory, share = work.parameters.memory, work.parameters.share
    words = (digest_of_room("read/runs.py"), digest_of_room("read/scan/words.py"))
    scattered = yield [task(_HERE, "scatter", (shard,), words, memory=memory) for shard in work.shards]
    if not scattered:
        return []
    states, advanced, first_blocks = yield from decisions(scattered, share, memory)
    concluded = yield [
        task(_HERE, "conclude", (runs, state, *advanced), block=block)
        for runs, state, block in zip(scattered, states, first_blocks, strict=True)
    ]
    # What was decided last is about all shards; of most of them, the same paragraphs go as before.
    return (yield [task(_HERE, "leave_out", each) for each in zip(work.shards, concluded, strict=True)])


class Decided(NamedTuple):
    """All paragraphs are decided: `conclude` tells how, from a shard's state and what was decided last."""

    states: list[Output]
    advanced: list[Output]  # one, or none
    first_blocks: list[int]  # the number in the corpus of the first block of each shard


def decisions(scattered: Sequence[Output], share: float, memory: int) -> Stages[Decided]:
    """Decide all paragraphs of shards whose runs were scattered, round by round, as `near/rounds` tells."""
    (layout,) = yield [task(_HERE, "lay_out", scattered, memory=memory)]
    first_blocks: list[int] = layout.report["first_blocks"]
    room: int = layout.report["room"]
    parts = yield gathering(scattered, layout, memory)
    states = yield [task(_HERE, "begin", (one,), share=share) for one in scattered]
    undecided = _sum(states, "undecided")
    advanced: list[Output] = []
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
    return Decided(states, advanced, first_blocks)


def _sum(outputs: Sequence[Output], name: str) -> int:
    return sum(output.report[name] for output in outputs)


# tasks


def scatter(out: Path, inputs: Sequence[Path], *, memory: int) -> Figures:
    """The runs of words of a shard."""
    from thresher.batch.near.scatter import scatter as scatter_runs

    texts = (text for batch in shards.batches(inputs[0], ["text"]) for text in batch.column(0).to_pylist())
    scatter_runs((paragraphs(text) for text in texts), out / FILE, memory=memory)
    return {}


def lay_out(out: Path, inputs: Sequence[Path], *, memory: int) -> Figures:
    """Ranges of hashes, the number of each shard's first block, and how many entries are decided in order."""
    from thresher.batch.near.rounds import first_blocks, room_for

    blocks, runs = first_blocks(files(inputs))
    told = ranges.lay_out(out, inputs, memory=memory)
    return {**told, "first_blocks": blocks, "room": room_for(runs, memory)}


def begin(out: Path, inputs: Sequence[Path], *, share: float) -> Figures:
    """What is known of the paragraphs of a shard before the first round."""
    from thresher.batch.near.rounds import begin as begin_shard

    begin_shard(inputs[0] / FILE, out / FILE, share=share)
    return _told(out, "undecided")


def sift(out: Path, inputs: Sequence[Path], *, states: int) -> Figures:
    """What a round counts in a range of hashes."""
    from thresher.batch.near.rounds import sift as sift_part

    part, *others = files(inputs)
    sift_part(part, out / FILE, others[:states], *others[states:])
    return _told(out, "entries")


def decide(out: Path, inputs: Sequence[Path], *, parts: int, block: int) -> Figures:
    """What a round decides in a shard."""
    from thresher.batch.near.rounds import decide as decide_shard

    state, *others = files(inputs)
    decide_shard(state, out / FILE, others[:parts], next(iter(others[parts:]), None), block)
    return _told(out, "undecided")


def advance(out: Path, inputs: Sequence[Path], *, parts: int, room: int) -> Figures:
    """What is decided in order, where rounds would take long."""
    from thresher.batch.near.rounds import advance as advance_blocks

    everything = files(inputs)
    advance_blocks(everything[:parts], everything[parts:], out / FILE, room=room)
    return _told(out, "decided")


def conclude(out: Path, inputs: Sequence[Path], *, block: int) -> Figures:
    """Which paragraphs of a shard are near duplicates."""
    from thresher.batch.near.conclude import conclude as conclude_shard

    runs, state, *advanced = files(inputs)
    conclude_shard(runs, out / FILE, state, *advanced, first_block=block)
    return {}


def leave_out(out: Path, inputs: Sequence[Path]) -> Figures:
    """The documents of a shard without paragraphs that are near duplicates."""
    from thresher.batch.near.conclude import dropped, lost

    shard, concluded = inputs
    told = lost(concluded / FILE)
    documents = shards.write(out, _left(shard, dropped(concluded / FILE)))
    return {
        "documents": documents,
        "emptied": told.emptied,
        "paragraphs": told.paragraphs,
        "dropped_paragraphs": told.dropped,
        "words": told.words,
        "dropped_words": told.dropped_words,
    }


def _left(shard: Path, flags: Iterator[list[bool]]) -> Iterator[pa.RecordBatch]:
    for batch in shards.batches(shard):
        stays = [[not gone for gone in next(flags)] for _ in range(batch.num_rows)]
        yield left(_with_repeated(batch, stays), stays)


def _with_repeated(batch: pa.RecordBatch, stays: Sequence[Sequence[bool]]) -> pa.RecordBatch:
    """Documents with the share of each that is left out; what was left out before counts, too."""
    name = shards.REPEATED.name
    is_there = name in batch.schema.names
    before = batch.column(name).to_pylist() if is_there else [None] * batch.num_rows
    texts = batch.column("text").to_pylist()
    shares = [
        1.0 - (1.0 - (known or 0.0)) * _kept_share(paragraphs(text), flags)
        for known, text, flags in zip(before, texts, stays, strict=True)
    ]
    others = batch.drop_columns([name]) if is_there else batch
    return others.append_column(shards.REPEATED, pa.array(shares, shards.REPEATED.type))


def _kept_share(texts: Sequence[str], stays: Sequence[bool]) -> float:
    """Of the letters of paragraphs."""
    letters = sum(map(len, texts))
    return sum(map(len, compress(texts, stays))) / letters if letters else 1.0


def _told(out: Path, name: str) -> Figures:
    from thresher.batch.near.files import number

    return {name: number(out / FILE, name)}
