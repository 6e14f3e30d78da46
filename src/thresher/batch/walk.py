"""The way through a recipe, stage by stage; whoever walks it decides what to do at each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from thresher.batch import records, sources
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
        self.label = SOURCE  # of the step, among those of the recipe

    def walk(self, corpus: Corpus, chosen: list[Chosen]) -> list[Output]:
        """All steps, each with the shards of the one before; the answer is the last ones."""
        labels = records.labels([SOURCE, *(one.step.name for one in chosen)])
        given = sources.documents(corpus, self.folder)
        self.begin(labels[0], self.step)
        made = iter(self.stage([one for one in given if isinstance(one, Task)]))
        shards = [next(made) if isinstance(one, Task) else one for one in given]
        self.end(shards)
        for label, (step, parameters) in zip(labels[1:], chosen, strict=True):
            told = _on_record(parameters)
            settings = _settings(corpus, step.settings)
            self.begin(label, StepRun(step.name, step.version, told, settings=settings))
            plan = step.plan(Work(shards, parameters, corpus))
            try:
                tasks = next(plan)
                while True:
                    self.step.depends |= {task.function: list(task.depends) for task in tasks if task.depends}
                    tasks = plan.send(self.stage(tasks))
            except StopIteration as ended:
                shards = ended.value
            self.end(shards)
        return shards

    def begin(self, label: str, step: StepRun) -> None:
        """A step begins."""
        self.label, self.step = label, step

    def stage(self, tasks: list[Task]) -> list[Output]:
        """What comes of tasks, in their order."""
        raise NotImplementedError

    def end(self, shards: list[Output]) -> None:
        """A step is through."""
        self.step.outputs = [shard.digest for shard in shards]
        self.step.done = True

    def keys(self, tasks: list[Task]) -> list[str]:
        return [key_of(self.step.name, self.step.version, task) for task in tasks]


def _on_record(parameters: Any) -> dict[str, Any]:
    """Parameters as they are read from a record again."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(parameters))
    return found


def _settings(corpus: Corpus, names: Sequence[str]) -> dict[str, Any]:
    """Some settings of a corpus, those of sections as `section.name`, where they are not those by default."""
    told = _on_record(corpus.config)
    return dict(_flat({name: told[name] for name in names if name in told}))


def _flat(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings of sections as `section.name`."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", one) for inner, one in _flat(value))
        else:
            yield name, value


def until(chosen: list[Chosen], name: str) -> list[Chosen]:
    """The steps up to one of them."""
    if not name:
        return chosen
    names = [one.step.name for one in chosen]
    if name not in names:
        raise CorpusError(f"the recipe has no step {name!r}; it has {', '.join(names)}")
    return chosen[: len(names) - names[::-1].index(name)]
