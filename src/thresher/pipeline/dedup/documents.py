"""Near duplicates among documents, found in one process; `paragraphs` does the same for paragraphs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from thresher.pipeline.dedup.conclude import dropped as dropped_of
from thresher.pipeline.dedup.files import number
from thresher.pipeline.dedup.minhash import THRESHOLD, conclude, sign
from thresher.pipeline.dedup.scatter import MEMORY
from thresher.pipeline.steps.plans import run_here
from thresher.pipeline.steps.ranges import FILE, as_output
from thresher.pipeline.steps.similar import clustering

SHARD_DOCUMENTS = 1 << 17


def drop(
    documents: Iterable[Sequence[str]],
    *,
    threshold: float = THRESHOLD,
    memory: int = MEMORY,
    folder: Path | None = None,
    shard_documents: int = SHARD_DOCUMENTS,
) -> Iterator[bool]:
    """Yield, for each document, whether an earlier one is nearly the same.

    Documents are read once, to the end, before the first answer; temporary files are as for `paragraphs.drop`.
    """
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
        clusters = run_here(plan, home).path / FILE
        for place, path in enumerate(signed):
            output = home / "concluded" / path.name
            conclude(path / FILE, output, clusters, first_document=sum(counts[:place]))
            for (gone,) in dropped_of(output):
                yield gone
