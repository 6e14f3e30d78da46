"""The walk through a recipe, stage by stage; subclasses of RecipeWalker run the stages or only plan them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from thresher.pipeline import sources
from thresher.pipeline.artifacts import ArtifactOutput, ArtifactStore, Task, key_of
from thresher.pipeline.recipe import RecipeStep
from thresher.pipeline.runs import run_log
from thresher.pipeline.runs.run_log import StepRun
from thresher.pipeline.steps.plans import StepContext
from thresher.store.corpus_files import CorpusError, CorpusFiles

SOURCE = "source"  # the step before the first: files of the corpus


class RecipeWalker:
    """A walk through the steps of a recipe; `stage` decides how the artifacts of a stage are had."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.artifacts = ArtifactStore(folder)
        self.step = StepRun(SOURCE, 1, {})
        self.label = SOURCE  # the name of the step, numbered if the recipe has several of that name

    def walk(self, corpus: CorpusFiles, chosen: list[RecipeStep]) -> list[ArtifactOutput]:
        """Walk through all steps, each with the shards of the one before, and return the last shards."""
        labels = run_log.labels([SOURCE, *(one.step.name for one in chosen)])
        inputs = sources.documents(corpus, self.folder)
        self.begin(labels[0], self.step)
        made = iter(self.stage([one for one in inputs if isinstance(one, Task)]))
        shards = [next(made) if isinstance(one, Task) else one for one in inputs]
        self.end(shards)
        for label, (step, parameters) in zip(labels[1:], chosen, strict=True):
            settings = _settings(corpus, step.settings)
            self.begin(label, StepRun(step.name, step.version, _recorded(parameters), settings=settings))
            plan = step.plan(StepContext(shards, parameters, corpus))
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
        """Begin a step."""
        self.label, self.step = label, step

    def stage(self, tasks: list[Task]) -> list[ArtifactOutput]:
        """Return the artifacts of tasks, in their order."""
        raise NotImplementedError

    def end(self, shards: list[ArtifactOutput]) -> None:
        """End a step with the shards that it leaves."""
        self.step.outputs = [shard.digest for shard in shards]
        self.step.done = True

    def keys(self, tasks: list[Task]) -> list[str]:
        """Return the keys of tasks of the current step."""
        return [key_of(self.step.name, self.step.version, task) for task in tasks]


def _recorded(parameters: Any) -> dict[str, Any]:
    """Return parameters as they are read back from the record of a run."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(parameters))
    return found


def _settings(corpus: CorpusFiles, names: Sequence[str]) -> dict[str, Any]:
    """Return the named settings that differ from their defaults; in sections, as `section.name`."""
    changed = _recorded(corpus.config)
    return dict(_flat({name: changed[name] for name in names if name in changed}))


def _flat(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield settings with their names; in sections, as `section.name`."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", one) for inner, one in _flat(value))
        else:
            yield name, value


def until(chosen: list[RecipeStep], name: str) -> list[RecipeStep]:
    """Return the steps up to the last one of that name; "" stands for the end of the recipe."""
    if not name:
        return chosen
    names = [one.step.name for one in chosen]
    if name not in names:
        raise CorpusError(f"the recipe has no step {name!r}; it has {', '.join(names)}")
    return chosen[: len(names) - names[::-1].index(name)]
