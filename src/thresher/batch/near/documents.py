"""Document level, all in one process, as `paragraphs` has it for paragraphs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from thresher.batch.near.conclude import dropped as dropped_of
from thresher.batch.near.files import number
from thresher.batch.near.minhash import THRESHOLD, conclude, sign
from thresher.batch.near.scatter import MEMORY
from thresher.batch.steps.plans import followed
from thresher.batch.steps.ranges import FILE, as_output
from thresher.batch.steps.similar import clustering

SHARD_DOCUMENTS = 1 << 17


def drop(
    documents: Iterable[Sequence[str]],
    *,
    threshold: float = THRESHOLD,
    memory: int = MEMORY,
    folder: Path | None = None,
    shard_documents: int = SHARD_DOCUMENTS,
) -> Iterator[bool]:
    """For each document, whether it goes: an earlier one is nearly the same. Through files, as for paragraphs."""
    with tempfile.TemporaryDirectory(prefix="near-", dir=folder) as name:
        home = Path(name)
        signed: list[Path] = []
        counts: list[int] = []
        rest = iter(documents)
        for first in rest:
            signed.append(home / "signed" / f"{len(signed):06d}")
            sign(chain([first], islice(rest, shard_documents - 1)), signed[-1] / FILE)
            counts.append(number(signed[-1] / FILE, "documents"))
        plan = clustering([as_output(path) for path in signed], counts, threshold, memory)
        clusters = followed(plan, home).path / FILE
        for place, path in enumerate(signed):
            output = home / "concluded" / path.name
            conclude(path / FILE, output, clusters, first_document=sum(counts[:place]))
            for (gone,) in dropped_of(output):
                yield gone
