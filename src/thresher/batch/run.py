"""A recipe run over a corpus: every piece that is not there is made, and what came of it is put on record."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from thresher.batch import records
from thresher.batch.failures import Attempt, Failure, Failures
from thresher.batch.pieces import Output, Task
from thresher.batch.recipe import recipe
from thresher.batch.records import PieceRun, Run, StepRun
from thresher.batch.walk import SOURCE, Walker, until
from thresher.engine.calls import Ended, Engine
from thresher.store import corpus as corpora
from thresher.store.corpus import CorpusError

DEADLINE = 6 * 3_600.0  # seconds for a piece: more is no work, but a fault
KEPT_LOG = 2_000  # letters of what a piece wrote that are put on record
SAVE_EVERY = 1.0  # seconds between two versions of a run's record while it goes on


class Progress(NamedTuple):
    """How far a stage of a run has come."""

    step: str
    function: str
    done: int
    total: int
    left: float | None  # seconds


class MachineFault(CorpusError):
    """A piece could not be made, and it is not to blame."""

    def __init__(self, step: str, fault: str, directory: Path) -> None:
        super().__init__(
            f"{step}: {fault}\nThat is no fault of what is processed; once it is mended, go on with: "
            f"thresher process {directory}"
        )


class Poisoned(CorpusError):
    """Pieces of a stage cannot be made; all others of it are."""

    def __init__(self, step: str, failures: list[Failure], where: Path) -> None:
        self.step, self.failures = step, failures
        count = f"{len(failures)} piece{'s' if len(failures) > 1 else ''} of {step}"
        names = "\n".join(f"{one.key}: {one.fault}" for one in failures[:10])
        super().__init__(
            f"{count} failed each time; their logs are in {where}\n{names}\n"
            f"what they need mended, go on with: thresher process {where.parents[1]} --retry-failed"
        )


def process(
    directory: Path,
    engine: Engine,
    *,
    engine_name: str = "local",
    last_step: str = "",
    retry_failed: bool = False,
    deadline: float = DEADLINE,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Run:
    """Run the recipe of a corpus, as far as its results are not there, up to a step or to its end.

    A piece that failed too often, in this run or in those before, is left alone until `retry_failed`. One that
    takes longer than a deadline, in seconds, has failed.
    """
    directory = directory.absolute()  # whoever makes pieces may be elsewhere
    corpus = corpora.open(directory)
    chosen = until(recipe(corpus), last_step)
    with records.locked(directory) as folder:
        number = max(records.numbers(directory), default=0) + 1
        run = Run(number, time.time(), engine_name, last_step=last_step)
        runner = _Runner(folder, engine, run, deadline, progress)
        runner.pieces.sweep()
        if retry_failed:
            for failure in runner.failures.all():
                runner.failures.forget(failure.key)
        try:
            result = runner.walk(corpus, chosen)
            run.result = [os.path.relpath(shard.path, directory) for shard in result]
            run.state = "done"
        except BaseException as fault:
            run.state = "failed" if isinstance(fault, Poisoned) else "stopped"
            raise
        finally:
            run.ended = time.time()
            records.save(folder, run, durable=True)
        return run


class _Runner(Walker):
    """Makes what is missing."""

    def __init__(
        self,
        folder: Path,
        engine: Engine,
        run: Run,
        deadline: float,
        progress: Callable[[Progress], None],
    ) -> None:
        super().__init__(folder)
        self.deadline = deadline
        self.failures = Failures(folder)
        self._engine, self._run, self._progress = engine, run, progress
        self._saved = 0.0

    def begin(self, label: str, step: StepRun) -> None:
        super().begin(label, step)
        self._run.steps.append(step)

    def end(self, shards: list[Output]) -> None:
        super().end(shards)
        if self.step.name == SOURCE:
            self._run.inputs = {shard.path.name: shard.digest for shard in shards}
        self._save(always=True)

    def stage(self, tasks: list[Task]) -> list[Output]:
        stage = _Stage(self, tasks)
        try:
            failed = stage.finish(self._engine)
        finally:
            self.step.pieces += stage.pieces()
        if failed:
            raise Poisoned(self.step.name, failed, self.folder / "failed")
        return stage.outputs()

    def tell(self, progress: Progress, pieces: Callable[[], list[PieceRun]]) -> None:
        """A stage has come further."""
        self._progress(progress)
        if time.monotonic() - self._saved >= SAVE_EVERY:
            before = self.step.pieces
            self.step.pieces = [*before, *pieces()]
            self._save(always=True)
            self.step.pieces = before

    def _save(self, *, always: bool = False) -> None:
        if always or time.monotonic() - self._saved >= SAVE_EVERY:
            records.save(self.folder, self._run)
            self._saved = time.monotonic()


class _Stage:
    """Tasks that are made at the same time; those of one key are one piece."""

    def __init__(self, runner: _Runner, tasks: list[Task]) -> None:
        self._runner, self._step = runner, runner.step
        self._keys = runner.keys(tasks)
        self._tasks = dict(zip(self._keys, tasks, strict=True))
        self._found: dict[str, Output] = {}
        self._told: dict[str, PieceRun] = {}
        for key, task in self._tasks.items():
            if found := runner.pieces.current(key, task):
                self._found[key] = found
                self._told[key] = PieceRun(key, task.function, "found", found.digest, found.report)
            else:
                self._told[key] = PieceRun(key, task.function, "waiting")
        self._start, self._made = time.monotonic(), 0
        self._total = len(self._tasks) - len(self._found)

    def outputs(self) -> list[Output]:
        return [self._found[key] for key in self._keys]

    def pieces(self) -> list[PieceRun]:
        return [self._told[key] for key in dict.fromkeys(self._keys)]

    def finish(self, engine: Engine) -> list[Failure]:
        """Make all that is missing, trying again what fails; the answer is what was given up."""
        given_up, waiting = [], []
        for key in self._tasks:
            failure = None if key in self._found else self._runner.failures.find(key)
            if failure and failure.is_final:
                self._note(key, state="failed", fault=failure.fault)
                given_up.append(failure)
            elif key not in self._found:
                waiting.append(key)
        while waiting:
            again = []
            for ended in engine.run([self._call(key) for key in waiting]):
                key = waiting[ended.number]
                failure = self._took(key, ended)
                if failure and failure.is_final:
                    given_up.append(failure)
                elif failure:
                    again.append(key)
                self._runner.tell(self._progress(key), self.pieces)
            waiting = again
        return given_up

    def _call(self, key: str) -> Any:
        runner, step = self._runner, self._step
        return runner.pieces.call(key, step.name, step.version, self._tasks[key], runner.deadline)

    def _took(self, key: str, ended: Ended) -> Failure | None:
        """Note how a piece ended; a failure, if it did not end well."""
        attempts = self._told[key].attempts + 1
        found = None if ended.fault else self._runner.pieces.find(key)
        if found:
            self._found[key] = found
            self._made += 1
            self._runner.failures.forget(key)
            self._note(
                key, state="made", digest=found.digest, report=found.report, seconds=ended.seconds,
                cpu_seconds=ended.cpu_seconds, attempts=attempts, fault="", log=ended.log[-KEPT_LOG:],
            )  # fmt: skip
            return None
        fault = ended.fault or "it ended well, but left no result"
        if ended.is_passing:
            raise MachineFault(self._step.name, fault, self._runner.folder.parent)
        attempt = Attempt(time.time(), fault, ended.log, ended.seconds)
        known = self._runner.failures.find(key)
        task = self._tasks[key]
        failure = Failure(
            key, self._step.name, task.function, tuple(str(one.path) for one in task.inputs),
            (*(known.attempts if known else ()), attempt),
        )  # fmt: skip
        self._runner.failures.put(failure)
        state = "failed" if failure.is_final else "waiting"
        self._note(key, state=state, fault=fault, attempts=attempts)
        self._made += failure.is_final
        return failure

    def _note(self, key: str, **changes: Any) -> None:
        self._told[key] = msgspec.structs.replace(self._told[key], **changes)

    def _progress(self, key: str) -> Progress:
        gone = time.monotonic() - self._start
        left = gone / self._made * (self._total - self._made) if self._made else None
        return Progress(self._step.name, self._tasks[key].function, self._made, self._total, left)
