"""The contract of a step: a plan that yields tasks and receives their artifacts.

A plan is a generator. It yields the tasks of a stage, which may run at the same time, and is sent their artifacts
in the same order. After its last stage it returns the shards that the next step works on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from msgspec import Struct

from thresher.pipeline.artifacts import ArtifactOutput, Task
from thresher.store.corpus_files import CorpusFiles
from thresher.workers.protocol import function_at

Result = TypeVar("Result")
Stages = Generator[list[Task], list[ArtifactOutput], Result]
Plan = Stages[list[ArtifactOutput]]


def run_here(stages: Stages[Result], folder: Path) -> Result:
    """Run the tasks of all stages in this process, one after the other; return the result of the stages."""
    stage = 0
    try:
        tasks = next(stages)
        while True:
            home = folder / f"{stage:04d}"
            tasks = stages.send([_run(task, home / f"{number:06d}") for number, task in enumerate(tasks)])
            stage += 1
    except StopIteration as ended:
        found: Result = ended.value
        return found


def _run(task: Task, out: Path) -> ArtifactOutput:
    out.mkdir(parents=True)
    function = function_at(task.function)
    report = function(out, [one.path for one in task.inputs], **task.parameters, **task.locations)
    return ArtifactOutput(out, "", report or {})


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a step; a step that has some derives a class."""

    def ready_for(self, _: CorpusFiles, /) -> Self:
        """Return the parameters adapted to a corpus; raise UsageError for values that cannot work with it."""
        return self


def codes(languages: Sequence[str]) -> tuple[str, ...]:
    """Return the codes of languages as the reader names them; raise UsageError for an unknown one."""
    from thresher.reader.language.codes import normalise

    return tuple(normalise(one) or _unknown(one) for one in languages)


def _unknown(language: str) -> str:
    from thresher.reader.language.codes import language_code

    return language_code(language)


class StepContext(Struct, frozen=True):
    """The arguments of a plan: the shards of the step before, the parameters of the step and the corpus."""

    shards: list[ArtifactOutput]
    parameters: Any
    corpus: CorpusFiles


class Step(Struct, frozen=True):
    """A row of STEPS.

    Raise the version whenever the step gives other results for the same input; the former ones are not used then.
    """

    name: str
    version: int
    plan: Callable[[StepContext], Plan]
    parameters: type[Parameters] = Parameters
    settings: tuple[str, ...] = ()  # settings of corpus.toml that the results depend on

    @property
    def summary(self) -> str:
        """The first line of the docstring of the plan."""
        return (self.plan.__doc__ or "").strip().splitlines()[0]
