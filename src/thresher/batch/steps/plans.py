"""What a step is: a plan that hands out tasks and is sent what came of them.

A plan is a generator. It yields the tasks of a stage, which may be run at the same time; it is sent their results,
in the same order, and goes on with the next stage, until it returns the shards that the next step works on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from msgspec import Struct

from thresher.batch.pieces import Output, Task
from thresher.store.corpus import Corpus

Plan = Generator[list[Task], list[Output], list[Output]]


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """What can be asked of a step; one that has parameters has a class of its own."""


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
    parameters: type[Struct] = Parameters

    @property
    def summary(self) -> str:
        return (self.plan.__doc__ or "").strip().splitlines()[0]
