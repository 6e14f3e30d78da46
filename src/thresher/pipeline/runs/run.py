"""Runs of a recipe over a corpus: missing artifacts are made, and the run is recorded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from thresher.pipeline.artifacts import ArtifactOutput, Task
from thresher.pipeline.recipe import recipe
from thresher.pipeline.runs import run_log
from thresher.pipeline.runs.failures import FailedAttempt, FailedTask, FailureLog
from thresher.pipeline.runs.run_log import ArtifactRun, Run, StepRun
from thresher.pipeline.runs.walk import SOURCE, RecipeWalker, until
from thresher.store import corpus_files as corpora
from thresher.store.corpus_files import CorpusError
from thresher.wording import counted
from thresher.workers.protocol import CallResult, Engine

DEADLINE_S = 6 * 3_600.0  # for a task; one that takes longer is taken to hang
RECORDED_LOG_CHARS = 2_000  # of the output of a task, at its end
SAVE_EVERY_S = 1.0  # between two versions of the record of a run that is under way
NAMED_FAILURES = 10  # failed tasks that the message of PoisonedTask names


class StageProgress(NamedTuple):
    """The progress of a stage: artifacts made and still waited for."""

    step: str
    function: str
    done: int
    total: int
    left: float | None  # seconds, estimated; None before the first artifact is made


class MachineError(CorpusError):
    """An artifact could not be made because of the machine: a full disk, a lock, an engine that is away."""

    def __init__(self, step: str, fault: str, directory: Path) -> None:
        super().__init__(
            f"{step}: {fault}\nThe documents are not the cause; once it is mended, continue with: "
            f"thresher process {directory}"
        )


class PoisonedTask(CorpusError):
    """Tasks of a stage failed in every attempt; all others of the stage have been done."""

    def __init__(self, step: str, failures: list[FailedTask], where: Path) -> None:
        self.step, self.failures = step, failures
        count = f"{counted(len(failures), 'task')} of {step}"
        names = "\n".join(f"{one.key}: {one.fault}" for one in failures[:NAMED_FAILURES])
        super().__init__(
            f"{count} failed in every attempt; their logs are in {where}\n{names}\n"
            f"once the cause is mended, continue with: thresher process {where.parents[1]} --retry-failed"
        )


def process(
    directory: Path,
    engine: Engine,
    *,
    engine_name: str = "local",
    last_step: str = "",
    retry_failed: bool = False,
    deadline: float = DEADLINE_S,
    progress: Callable[[StageProgress], None] = lambda _: None,
) -> Run:
    """Run the recipe of a corpus and return the record of the run; artifacts that exist are not made again.

    Parameters
    ----------
    directory
        The corpus.
    engine
        The engine that runs the tasks; the caller closes it.
    engine_name
        Its name, for the record.
    last_step
        The step to end with; "" stands for the last one of the recipe.
    retry_failed
        Also retry tasks that were given up. Otherwise a task that failed MAX_ATTEMPTS times, in this run or in
        earlier ones, is not tried again.
    deadline
        Seconds after which a task is ended and counts as failed.
    progress
        Is called when a stage begins and whenever one of its tasks has ended.

    Raise PoisonedTask if tasks failed in every attempt, MachineError if the machine was the cause.
    """
    directory = directory.absolute()  # tasks may run in another working directory
    corpus = corpora.open(directory)
    chosen = until(recipe(corpus), last_step)
    with run_log.locked(directory) as folder:
        corpora.upgrade(directory)
        number = max(run_log.numbers(directory), default=0) + 1
        run = Run(number, time.time(), engine_name, last_step=last_step)
        runner = _Runner(folder, engine, run, deadline, progress)
        runner.artifacts.sweep()
        if retry_failed:
            for failure in runner.failures.all():
                runner.failures.remove(failure.key)
        try:
            result = runner.walk(corpus, chosen)
            run.result = [os.path.relpath(shard.path, directory) for shard in result]
            run.state = "done"
        except BaseException as fault:
            run.state = "failed" if isinstance(fault, PoisonedTask) else "stopped"
            raise
        finally:
            run.ended = time.time()
            run_log.save(folder, run)
        return run


class _Runner(RecipeWalker):
    """A walk that makes missing artifacts and keeps the record of the run."""

    def __init__(
        self,
        folder: Path,
        engine: Engine,
        run: Run,
        deadline: float,
        progress: Callable[[StageProgress], None],
    ) -> None:
        super().__init__(folder)
        self.deadline = deadline
        self.failures = FailureLog(folder)
        self._engine, self._run, self._progress = engine, run, progress
        self._saved = 0.0

    def begin(self, label: str, step: StepRun) -> None:
        super().begin(label, step)
        self._run.steps.append(step)

    def end(self, shards: list[ArtifactOutput]) -> None:
        super().end(shards)
        if self.step.name == SOURCE:
            self._run.inputs = {shard.path.name: shard.digest for shard in shards}
        self._save()

    def stage(self, tasks: list[Task]) -> list[ArtifactOutput]:
        stage = _Stage(self, tasks)
        try:
            failed = stage.finish(self._engine)
        finally:
            self.step.artifacts += stage.records()
        if failed:
            raise PoisonedTask(self.step.name, failed, self.folder / "failed")
        return stage.outputs()

    def report(self, progress: StageProgress, records: Callable[[], list[ArtifactRun]]) -> None:
        """Report the progress of a stage, and save the record of the run if it is due."""
        self._progress(progress)
        if time.monotonic() - self._saved >= SAVE_EVERY_S:
            before = self.step.artifacts
            self.step.artifacts = [*before, *records()]
            self._save()
            self.step.artifacts = before

    def _save(self) -> None:
        run_log.save(self.folder, self._run)
        self._saved = time.monotonic()


class _Stage:
    """Tasks that may run at the same time; tasks with the same key share an artifact."""

    def __init__(self, runner: _Runner, tasks: list[Task]) -> None:
        self._runner, self._step = runner, runner.step
        self._keys = runner.keys(tasks)
        self._tasks = dict(zip(self._keys, tasks, strict=True))
        self._found: dict[str, ArtifactOutput] = {}
        self._records: dict[str, ArtifactRun] = {}
        for key, task in self._tasks.items():
            if found := runner.artifacts.current(key, task):
                self._found[key] = found
                self._records[key] = ArtifactRun(key, task.function, "found", found.digest, found.report)
            else:
                self._records[key] = ArtifactRun(key, task.function, "waiting")
        self._start, self._made = time.monotonic(), 0
        self._total = len(self._tasks) - len(self._found)

    def outputs(self) -> list[ArtifactOutput]:
        """Return the artifacts in the order of the tasks."""
        return [self._found[key] for key in self._keys]

    def records(self) -> list[ArtifactRun]:
        """Return the records of the artifacts, each once."""
        return [self._records[key] for key in dict.fromkeys(self._keys)]

    def finish(self, engine: Engine) -> list[FailedTask]:
        """Make all missing artifacts, retrying failed tasks, and return the tasks that were given up."""
        given_up, waiting = [], []
        for key in self._tasks:
            failure = None if key in self._found else self._runner.failures.find(key)
            if failure and failure.is_final:
                self._update(key, state="failed", fault=failure.fault)
                given_up.append(failure)
            elif key not in self._found:
                waiting.append(key)
        if waiting:
            self._runner.report(self._progress(waiting[0]), self.records)
        while waiting:
            again = []
            for ended in engine.run([self._call(key) for key in waiting]):
                key = waiting[ended.number]
                failure = self._record_end(key, ended)
                if failure and failure.is_final:
                    given_up.append(failure)
                elif failure:
                    again.append(key)
                self._runner.report(self._progress(key), self.records)
            waiting = again
        return given_up

    def _call(self, key: str) -> Any:
        runner, step = self._runner, self._step
        return runner.artifacts.call(key, step.name, step.version, self._tasks[key], runner.deadline)

    def _record_end(self, key: str, ended: CallResult) -> FailedTask | None:
        """Record the end of a task, return its failure if any; raise MachineError for a fault of the machine."""
        attempts = self._records[key].attempts + 1
        found = None if ended.fault else self._runner.artifacts.find(key)
        if found:
            self._found[key] = found
            self._made += 1
            self._runner.failures.remove(key)
            self._update(
                key, state="made", digest=found.digest, report=found.report, seconds=ended.seconds,
                cpu_seconds=ended.cpu_seconds, attempts=attempts, fault="", log=ended.log[-RECORDED_LOG_CHARS:],
            )  # fmt: skip
            return None
        fault = ended.fault or "it ended without a fault, but left no artifact"
        if ended.is_transient:
            raise MachineError(self._step.name, fault, self._runner.folder.parent)
        attempt = FailedAttempt(time.time(), fault, ended.log, ended.seconds)
        known = self._runner.failures.find(key)
        task = self._tasks[key]
        failure = FailedTask(
            key, self._step.name, task.function, tuple(str(one.path) for one in task.inputs),
            (*(known.attempts if known else ()), attempt),
        )  # fmt: skip
        self._runner.failures.put(failure)
        state = "failed" if failure.is_final else "waiting"
        self._update(key, state=state, fault=fault, attempts=attempts)
        self._made += failure.is_final
        return failure

    def _update(self, key: str, **changes: Any) -> None:
        self._records[key] = msgspec.structs.replace(self._records[key], **changes)

    def _progress(self, key: str) -> StageProgress:
        elapsed = time.monotonic() - self._start
        left = elapsed / self._made * (self._total - self._made) if self._made else None
        return StageProgress(self._step.name, self._tasks[key].function, self._made, self._total, left)
