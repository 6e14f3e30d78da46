"""A recipe: the steps that a corpus is processed by, as corpus.toml lists them."""

from __future__ import annotations

import difflib
from typing import Any, NamedTuple

import msgspec

from thresher.batch.steps import STEPS, own
from thresher.batch.steps.plans import Step
from thresher.batch.users import folders_of
from thresher.config import ConfigError
from thresher.store.corpus import Corpus

# Where corpus.toml has none.
USUAL: tuple[dict[str, Any], ...] = (
    {"step": "exact_duplicates"},
    {"step": "near_duplicates"},
    {"step": "statistics"},
)


class Chosen(NamedTuple):
    """A step with its parameters."""

    step: Step
    parameters: Any


def recipe(corpus: Corpus) -> list[Chosen]:
    """The steps of a corpus, in order; what is wrong with one is told."""
    entries = enumerate(corpus.config.process or USUAL, 1)
    return [_chosen(dict(entry), number, corpus) for number, entry in entries]


def _chosen(entry: dict[str, Any], number: int, corpus: Corpus) -> Chosen:
    where = f"corpus.toml: process {number}"
    name = entry.pop("step", "")
    if not isinstance(name, str) or not name:
        raise ConfigError(f'{where} has no step; write step = "NAME", one of {", ".join(STEPS)}')
    if ":" in name:
        try:
            return Chosen(own.step(name, folders_of(corpus.directory), entry), entry)
        except ConfigError as fault:
            raise ConfigError(f"{where}: {fault}") from None
    if name not in STEPS:
        near = difflib.get_close_matches(name, STEPS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(STEPS)}, or module:function"
        raise ConfigError(f"{where}: there is no step {name!r}; {hint}")
    step = STEPS[name]
    try:
        asked = msgspec.convert(entry, step.parameters)
        return Chosen(step, asked.ready_for(corpus))
    except msgspec.ValidationError as fault:
        known = ", ".join(field.name for field in msgspec.structs.fields(step.parameters)) or "none"
        raise ConfigError(f"{where}, {name}: {fault}; its parameters are {known}") from None
    except ConfigError as fault:
        raise ConfigError(f"{where}, {name}: {fault}") from None
