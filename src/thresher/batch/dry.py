"""What a run would do, and why, without doing it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

from thresher.batch import records
from thresher.batch.failures import Failures
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
    given_up: int = 0  # of those that are missing: they failed too often, and would not be run


def dry_run(directory: Path, *, last_step: str = "") -> list[WouldRun]:
    """What would be run first; what builds on it can only be told when it is there, so it is not listed."""
    directory = directory.absolute()
    corpus = corpora.open(directory)
    chosen = until(recipe(corpus), last_step)
    (directory / FOLDER).mkdir(exist_ok=True)
    planner = _Planner(directory / FOLDER, records.last(directory))
    with contextlib.suppress(_Unknown):
        planner.walk(corpus, chosen)
    return planner.found


class _Unknown(Exception):
    """What comes next depends on what is not there yet."""


class _Planner(Walker):
    """Tells what is missing."""

    def __init__(self, folder: Path, last: Run | None) -> None:
        super().__init__(folder)
        self._last = dict(zip(last.labels, last.steps, strict=True)) if last else {}
        self._failures = Failures(folder)
        self.found: list[WouldRun] = []

    def stage(self, tasks: list[Task]) -> list[Output]:
        keys = self.keys(tasks)
        found = [self.pieces.current(key, task) for key, task in zip(keys, tasks, strict=True)]
        outputs = [output for output in found if output]
        if len(outputs) < len(tasks):
            missing = {key for key, output in zip(keys, found, strict=True) if not output}
            failed = [self._failures.find(key) for key in missing]
            given_up = sum(failure is not None and failure.is_final for failure in failed)
            function, why = tasks[0].function, self._why(tasks[0].function)
            self.found.append(WouldRun(self.label, function, len(missing), len(set(keys)), why, given_up))
            raise _Unknown
        return outputs

    def _why(self, function: str) -> str:
        before = self._last.get(self.label)
        if before is None:
            return "it was never run"
        if before.version != self.step.version:
            return f"version {before.version} became {self.step.version}"
        if others := records.differing(before.parameters, self.step.parameters):
            return f"other parameters: {', '.join(others)}"
        if others := records.differing(before.settings, self.step.settings):
            return f"other settings: {', '.join(others)}"
        if before.depends.get(function) != self.step.depends.get(function):
            return "other code, models or state"
        return "other inputs" if before.done else "it was not finished"
