"""Dry runs: the first stage that a run would make, and the reason."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

from thresher.pipeline.artifacts import ArtifactOutput, Task
from thresher.pipeline.recipe import recipe
from thresher.pipeline.runs import run_log
from thresher.pipeline.runs.failures import FailureLog
from thresher.pipeline.runs.run_log import FOLDER, Run
from thresher.pipeline.runs.walk import RecipeWalker, until
from thresher.store import corpus_files as corpora


class PlannedStep(NamedTuple):
    """A stage with missing artifacts."""

    step: str
    function: str
    missing: int
    total: int
    why: str
    given_up: int = 0  # missing artifacts that failed too often and would not be made


def dry_run(directory: Path, *, last_step: str = "") -> list[PlannedStep]:
    """Return the stage that would run first, if any.

    The stages that build on it are not listed, since their tasks are known only when its artifacts are there.
    """
    directory = directory.absolute()
    corpus = corpora.open(directory)
    chosen = until(recipe(corpus), last_step)
    planner = _Planner(directory / FOLDER, run_log.last(directory))
    with contextlib.suppress(_Unknown):
        planner.walk(corpus, chosen)
    return planner.found


class _Unknown(Exception):
    """The next stage is unknown, as artifacts that it builds on are missing."""


class _Planner(RecipeWalker):
    """A walk that stops at the first stage with missing artifacts."""

    def __init__(self, folder: Path, last: Run | None) -> None:
        super().__init__(folder)
        self._last = dict(zip(last.labels, last.steps, strict=True)) if last else {}
        self._failures = FailureLog(folder)
        self.found: list[PlannedStep] = []

    def stage(self, tasks: list[Task]) -> list[ArtifactOutput]:
        keys = self.keys(tasks)
        found = [self.artifacts.current(key, task) for key, task in zip(keys, tasks, strict=True)]
        outputs = [output for output in found if output]
        if len(outputs) < len(tasks):
            missing = {key for key, output in zip(keys, found, strict=True) if not output}
            failed = [self._failures.find(key) for key in missing]
            given_up = sum(failure is not None and failure.is_final for failure in failed)
            function, why = tasks[0].function, self._why(tasks[0].function)
            self.found.append(PlannedStep(self.label, function, len(missing), len(set(keys)), why, given_up))
            raise _Unknown
        return outputs

    def _why(self, function: str) -> str:
        before = self._last.get(self.label)
        if before is None:
            return "it has not run before"
        if before.version != self.step.version:
            return f"version {before.version} became {self.step.version}"
        if others := run_log.differing(before.parameters, self.step.parameters):
            return f"other parameters: {', '.join(others)}"
        if others := run_log.differing(before.settings, self.step.settings):
            return f"other settings: {', '.join(others)}"
        if before.depends.get(function) != self.step.depends.get(function):
            return "other code, models or state"
        return "other inputs" if before.done else "it did not finish"
