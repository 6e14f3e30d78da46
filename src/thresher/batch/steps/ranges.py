"""Tasks over ranges of hashes: what near duplicates of paragraphs and of documents have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from thresher.batch.pieces import Output, Task

FILE = "hashes"

Figures = dict[str, Any]


def task(
    module: str, name: str, inputs: Sequence[Output], depends: Sequence[str] = (), **parameters: Any
) -> Task:
    """A task of a module."""
    return Task(f"{module}:{name}", tuple(inputs), parameters, tuple(depends))


def gathering(inputs: Sequence[Output], layout: Output, memory: int) -> list[Task]:
    """The tasks that gather all ranges of a layout."""
    return [
        task(__name__, "gather", inputs, low=low, last=last, memory=memory)
        for low, last in layout.report["ranges"]
    ]


def as_output(folder: Path) -> Output:
    """A folder with a file of hashes that no task made: whoever follows a plan here needs no digest of it."""
    return Output(folder, "")


def files(inputs: Sequence[Path]) -> list[Path]:
    """The files of hashes in folders."""
    return [path / FILE for path in inputs]


def lay_out(out: Path, inputs: Sequence[Path], *, memory: int) -> Figures:
    """Ranges that fit into memory; as texts, for such numbers are too large for some who read JSON."""
    from thresher.batch.near.gather import plan

    ranges = [[str(one.low), str(one.last)] for one in plan(files(inputs), memory)]
    (out / FILE).write_bytes(msgspec.json.encode(ranges))
    return {"ranges": ranges}


def gather(out: Path, inputs: Sequence[Path], *, low: str, last: str, memory: int) -> Figures:
    """Hashes of a range that occur more than once."""
    from thresher.batch.near import gather as gathering_of

    within = gathering_of.Range(int(low), int(last))
    gathering_of.gather(files(inputs), out / FILE, within, memory=memory)
    return {}
