"""Paragraph level, all in one process: for those who have a corpus at hand, of any size."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from thresher.batch.near.conclude import conclude
from thresher.batch.near.conclude import dropped as dropped_of
from thresher.batch.near.rounds import SHARE
from thresher.batch.near.scatter import MEMORY, scatter
from thresher.batch.steps.near import decisions
from thresher.batch.steps.plans import followed
from thresher.batch.steps.ranges import FILE, as_output, files

SHARD_PARAGRAPHS = 1 << 20
MEMORY_FOR_A_PARAGRAPH = 128  # of a shard, in the end


def drop(
    documents: Iterable[Sequence[str]],
    *,
    share: float = SHARE,
    memory: int = MEMORY,
    folder: Path | None = None,
    shard_paragraphs: int = SHARD_PARAGRAPHS,
) -> Iterator[list[bool]]:
    """For each document, which of its paragraphs go: most of their runs of words stand in earlier ones that stay.

    Documents are read once, to the end, before the first answer. What they leave meanwhile is in files, in a folder
    that is made for it (within `folder`, if given) and goes with the last answer.

    >>> tale = "Once upon a time there was a hedgehog who read."
    >>> list(drop([[tale, "The end."], ["Heading", tale.upper()]]))
    [[False, False], [True, True]]
    """
    with tempfile.TemporaryDirectory(prefix="near-", dir=folder) as name:
        home = Path(name)
        scattered = []
        most = min(shard_paragraphs, memory // MEMORY_FOR_A_PARAGRAPH)
        for number, shard in enumerate(_shards(documents, most)):
            scattered.append(home / "scattered" / f"{number:06d}")
            scatter(shard, scattered[-1] / FILE, memory=memory)
        found = followed(decisions([as_output(path) for path in scattered], share, memory), home)
        advanced = files([one.path for one in found.advanced])
        for path, state, block in zip(scattered, found.states, found.first_blocks, strict=True):
            output = home / "concluded" / path.name
            conclude(path / FILE, output, state.path / FILE, *advanced, first_block=block)
            yield from dropped_of(output)


def _shards(documents: Iterable[Sequence[str]], most: int) -> Iterator[Iterable[Sequence[str]]]:
    """Documents in portions of about so many paragraphs, each of which must be taken before the next."""
    rest = iter(documents)

    def some(first: Sequence[str]) -> Iterator[Sequence[str]]:
        taken = len(first)
        yield first
        while taken < most:
            try:
                document = next(rest)
            except StopIteration:
                return
            taken += len(document)
            yield document

    for first in rest:
        yield some(first)
