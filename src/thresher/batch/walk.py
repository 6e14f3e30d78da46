"""The way through a recipe, stage by stage; whoever walks it decides what to do at each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from thresher.batch import sources
from thresher.batch.pieces import Output, Pieces, Task, key_of
from thresher.batch.recipe import Chosen
from thresher.batch.records import StepRun
from thresher.batch.steps.plans import Work
from thresher.store.corpus import Corpus, CorpusError

SOURCE = "source"  # the step before the first: files of the corpus


class Walker:
    """Goes through a recipe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pieces = Pieces(folder)
        self.step = StepRun(SOURCE, 1, {})

    def walk(self, corpus: Corpus, chosen: list[Chosen]) -> list[Output]:
        """All steps, each with the shards of the one before; the answer is the last ones."""
        sealed, open_ones = sources.sealed(corpus, self.folder)
        self.begin(self.step)
        shards = [*sealed, *self.stage(open_ones)]
        self.end(shards)
        for step, parameters in chosen:
            told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(parameters))  # as it is on record
            self.begin(StepRun(step.name, step.version, told))
            plan = step.plan(Work(shards, parameters, corpus))
            try:
                tasks = next(plan)
                while True:
                    tasks = plan.send(self.stage(tasks))
            except StopIteration as ended:
                shards = ended.value
            self.end(shards)
        return shards

    def begin(self, step: StepRun) -> None:
        """A step begins."""
        self.step = step

    def stage(self, tasks: list[Task]) -> list[Output]:
        """What comes of tasks, in their order."""
        raise NotImplementedError

    def end(self, shards: list[Output]) -> None:
        """A step is through."""
        self.step.outputs = [shard.digest for shard in shards]
        self.step.done = True

    def keys(self, tasks: list[Task]) -> list[str]:
        return [key_of(self.step.name, self.step.version, task) for task in tasks]


def until(chosen: list[Chosen], name: str) -> list[Chosen]:
    """The steps up to one of them."""
    if not name:
        return chosen
    names = [one.step.name for one in chosen]
    if name not in names:
        raise CorpusError(f"the recipe has no step {name!r}; it has {', '.join(names)}")
    return chosen[: len(names) - names[::-1].index(name)]
