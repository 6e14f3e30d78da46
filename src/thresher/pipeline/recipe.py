"""Recipes: the steps that process a corpus, as corpus.toml lists them."""

from __future__ import annotations

import difflib
from typing import Any, NamedTuple

import msgspec

from thresher.annotate.user_modules import folders_of
from thresher.errors import UsageError
from thresher.pipeline.steps import STEPS, user_step
from thresher.pipeline.steps.plans import Step
from thresher.store.corpus_files import CorpusFiles

# The recipe of a corpus whose corpus.toml has none.
DEFAULT_RECIPE: tuple[dict[str, Any], ...] = (
    {"step": "exact_duplicates"},
    {"step": "near_duplicates"},
    {"step": "statistics"},
)


class RecipeStep(NamedTuple):
    """A step with its parameters."""

    step: Step
    parameters: Any


def recipe(corpus: CorpusFiles) -> list[RecipeStep]:
    """Return the steps of a corpus in order; raise UsageError for a step or parameter that cannot be used."""
    entries = enumerate(corpus.config.process or DEFAULT_RECIPE, 1)
    return [_step_of(dict(entry), number, corpus) for number, entry in entries]


def _step_of(entry: dict[str, Any], number: int, corpus: CorpusFiles) -> RecipeStep:
    where = f"corpus.toml: process {number}"
    name = entry.pop("step", "")
    if not isinstance(name, str) or not name:
        raise UsageError(f'{where} has no step; write step = "NAME", one of {", ".join(STEPS)}')
    if ":" in name:
        try:
            return RecipeStep(user_step.step(name, folders_of(corpus.directory), entry), entry)
        except UsageError as fault:
            raise UsageError(f"{where}: {fault}") from None
    if name not in STEPS:
        near = difflib.get_close_matches(name, STEPS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(STEPS)}, or module:function"
        raise UsageError(f"{where}: unknown step {name!r}; {hint}")
    step = STEPS[name]
    try:
        parameters = msgspec.convert(entry, step.parameters)
        return RecipeStep(step, parameters.ready_for(corpus))
    except msgspec.ValidationError as fault:
        known = ", ".join(field.name for field in msgspec.structs.fields(step.parameters)) or "none"
        raise UsageError(f"{where}, {name}: {fault}; its parameters are {known}") from None
    except UsageError as fault:
        raise UsageError(f"{where}, {name}: {fault}") from None
