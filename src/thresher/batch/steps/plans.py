"""What a step is: a plan that hands out tasks and is sent what came of them.

A plan is a generator. It yields the tasks of a stage, which may be run at the same time; it is sent their results,
in the same order, and goes on with the next stage, until it returns the shards that the next step works on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from msgspec import Struct

from thresher.batch.pieces import Output, Task
from thresher.engine.calls import function_at
from thresher.store.corpus import Corpus

Result = TypeVar("Result")
Stages = Generator[list[Task], list[Output], Result]
Plan = Stages[list[Output]]


def followed(stages: Stages[Result], folder: Path) -> Result:
    """What comes of stages whose tasks are all done here and now, one after the other, in a folder."""
    stage = 0
    try:
        tasks = next(stages)
        while True:
            home = folder / f"{stage:04d}"
            tasks = stages.send([_done(task, home / f"{number:06d}") for number, task in enumerate(tasks)])
            stage += 1
    except StopIteration as ended:
        found: Result = ended.value
        return found


def _done(task: Task, out: Path) -> Output:
    out.mkdir(parents=True)
    function = function_at(task.function)
    report = function(out, [one.path for one in task.inputs], **task.parameters, **task.where)
    return Output(out, "", report or {})


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """What can be asked of a step; one that has parameters has a class of its own."""

    def ready_for(self, _: Corpus, /) -> Self:
        """The same for a corpus; ConfigError if they make no sense there."""
        return self


def codes(languages: Sequence[str]) -> tuple[str, ...]:
    """The codes of languages that a user wrote; ConfigError offers others for those that nobody knows."""
    from thresher.read.codes import normalise

    return tuple(normalise(one) or _unknown(one) for one in languages)


def _unknown(language: str) -> str:
    from thresher.crawl.start import language_code  # with all of a crawl: only who errs waits for it

    return language_code(language)


class Work(Struct, frozen=True):
    """What a plan is made for."""

    shards: list[Output]
    parameters: Any
    corpus: Corpus


class Step(Struct, frozen=True):
    """A row of STEPS. Its version changes with what it does: then its results are made anew."""

    name: str
    version: int
    plan: Callable[[Work], Plan]
    parameters: type[Parameters] = Parameters
    settings: tuple[str, ...] = ()  # of corpus.toml, on which it depends as well

    @property
    def summary(self) -> str:
        return (self.plan.__doc__ or "").strip().splitlines()[0]
