"""What a run would do, and why, without doing it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

from thresher.batch import records
from thresher.batch.pieces import Output, Task
from thresher.batch.recipe import recipe
from thresher.batch.records import FOLDER, Run
from thresher.batch.walk import Walker, until
from thresher.store import corpus as corpora


class WouldRun(NamedTuple):
    """A stage of which pieces are missing."""

    step: str
    function: str
    missing: int
    total: int
    why: str


def dry_run(directory: Path, *, last_step: str = "") -> list[WouldRun]:
    """What would be run first; what builds on it can only be told when it is there, so it is not listed."""
    corpus = corpora.open(directory)
    chosen = until(recipe(corpus), last_step)
    (directory / FOLDER).mkdir(exist_ok=True)
    earlier = records.runs(directory)
    planner = _Planner(directory / FOLDER, earlier[-1] if earlier else None)
    with contextlib.suppress(_Unknown):
        planner.walk(corpus, chosen)
    return planner.found


class _Unknown(Exception):
    """What comes next depends on what is not there yet."""


class _Planner(Walker):
    """Tells what is missing."""

    def __init__(self, folder: Path, last: Run | None) -> None:
        super().__init__(folder)
        self._last = last
        self.found: list[WouldRun] = []

    def stage(self, tasks: list[Task]) -> list[Output]:
        found = [self.pieces.current(key, task) for key, task in zip(self.keys(tasks), tasks, strict=True)]
        outputs = [output for output in found if output]
        if len(outputs) < len(tasks):
            missing = len(tasks) - len(outputs)
            self.found.append(WouldRun(self.step.name, tasks[0].function, missing, len(tasks), self._why()))
            raise _Unknown
        return outputs

    def _why(self) -> str:
        before = (
            next((one for one in self._last.steps if one.name == self.step.name), None)
            if self._last
            else None
        )
        if before is None:
            return "it was never run"
        if before.version != self.step.version:
            return f"version {before.version} became {self.step.version}"
        ours, theirs = self.step.parameters, before.parameters
        if others := [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]:
            return f"other parameters: {', '.join(others)}"
        return "other inputs" if before.done else "it was not finished"
