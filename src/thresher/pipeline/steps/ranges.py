"""Tasks over ranges of hashes, shared by the steps `near_duplicates` and `similar_documents`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from thresher.pipeline.artifacts import ArtifactOutput, Task

FILE = "hashes"

Stats = dict[str, Any]


def task(
    module: str, name: str, inputs: Sequence[ArtifactOutput], depends: Sequence[str] = (), **parameters: Any
) -> Task:
    """Return the task that calls a function of a module."""
    return Task(f"{module}:{name}", tuple(inputs), parameters, tuple(depends))


def gathering(inputs: Sequence[ArtifactOutput], layout: ArtifactOutput, memory: int) -> list[Task]:
    """Return the tasks that gather all ranges of a layout."""
    return [
        task(__name__, "gather", inputs, low=low, last=last, memory=memory)
        for low, last in layout.report["ranges"]
    ]


def as_output(folder: Path) -> ArtifactOutput:
    """Return a folder with a file of hashes as an input for `run_here`, which needs no digest."""
    return ArtifactOutput(folder, "")


def files(inputs: Sequence[Path]) -> list[Path]:
    """Return the files of hashes in folders."""
    return [path / FILE for path in inputs]


def lay_out(out: Path, inputs: Sequence[Path], *, memory: int) -> Stats:
    """Plan ranges of hashes that fit into memory; bounds are strings, since JSON readers may round such numbers."""
    from thresher.pipeline.dedup.gather import plan

    ranges = [[str(one.low), str(one.last)] for one in plan(files(inputs), memory)]
    (out / FILE).write_bytes(msgspec.json.encode(ranges))
    return {"ranges": ranges}


def gather(out: Path, inputs: Sequence[Path], *, low: str, last: str, memory: int) -> Stats:
    """Write the hashes of a range that occur more than once."""
    from thresher.pipeline.dedup import gather as gathering_of

    within = gathering_of.Range(int(low), int(last))
    gathering_of.gather(files(inputs), out / FILE, within, memory=memory)
    return {}
