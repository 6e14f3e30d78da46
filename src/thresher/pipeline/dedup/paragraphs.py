"""Near duplicates among paragraphs, found in one process, for documents in any number."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from thresher.pipeline.dedup.conclude import conclude
from thresher.pipeline.dedup.conclude import dropped as dropped_of
from thresher.pipeline.dedup.rounds import SHARE
from thresher.pipeline.dedup.scatter import MEMORY, scatter
from thresher.pipeline.steps.near import decisions
from thresher.pipeline.steps.plans import run_here
from thresher.pipeline.steps.ranges import FILE, as_output, files

SHARD_PARAGRAPHS = 1 << 20
PARAGRAPH_BYTES = 128  # of memory that a paragraph of a shard takes in `conclude`


def drop(
    documents: Iterable[Sequence[str]],
    *,
    share: float = SHARE,
    memory: int = MEMORY,
    folder: Path | None = None,
    shard_paragraphs: int = SHARD_PARAGRAPHS,
) -> Iterator[list[bool]]:
    """Yield, for each document, which of its paragraphs are dropped, as most of their shingles are in earlier ones.

    Documents are read once, to the end, before the first answer. Intermediate files are in a temporary folder
    (within `folder`, if given), which is removed after the last answer.

    >>> tale = "Once upon a time there was a hedgehog who read."
    >>> list(drop([[tale, "The end."], ["Heading", tale.upper()]]))
    [[False, False], [True, True]]
    """
    with tempfile.TemporaryDirectory(prefix="near-", dir=folder) as name:
        home = Path(name)
        scattered = []
        most = min(shard_paragraphs, memory // PARAGRAPH_BYTES)
        for number, shard in enumerate(_shards(documents, most)):
            scattered.append(home / "scattered" / f"{number:06d}")
            scatter(shard, scattered[-1] / FILE, memory=memory)
        found = run_here(decisions([as_output(path) for path in scattered], share, memory), home)
        advanced = files([one.path for one in found.advanced])
        for path, state, block in zip(scattered, found.states, found.first_blocks, strict=True):
            output = home / "concluded" / path.name
            conclude(path / FILE, output, state.path / FILE, *advanced, first_block=block)
            yield from dropped_of(output)


def _shards(documents: Iterable[Sequence[str]], most: int) -> Iterator[Iterable[Sequence[str]]]:
    """Yield documents in portions of about `most` paragraphs; each must be consumed before the next."""
    rest = iter(documents)

    def portion(first: Sequence[str]) -> Iterator[Sequence[str]]:
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
        yield portion(first)
