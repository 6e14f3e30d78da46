"""A step of a user's own: a function from a table of documents to another one, named by its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from thresher.batch import shards
from thresher.batch.pieces import Task
from thresher.batch.steps.plans import Plan, Work
from thresher.config import ConfigError
from thresher.engine.calls import function_at

RUN = "thresher.batch.steps.own:run"


def found(place: str) -> Callable[..., pa.Table]:
    """The user's function; what is wrong with it is told."""
    try:
        function: Callable[..., pa.Table] = function_at(place)
    except (ImportError, AttributeError, ValueError, AssertionError) as fault:
        raise ConfigError(
            f"the step {place!r} cannot be imported: {fault}; it must be a function, module:function"
        ) from None
    if not isinstance(getattr(function, "version", None), int):
        name = place.partition(":")[2]
        raise ConfigError(f"the step {place!r} has no version; write {name}.version = 1 below it")
    return function


def plan(place: str) -> Callable[[Work], Plan]:
    """What runs a user's function on each shard."""

    def each(work: Work) -> Plan:
        told = {"place": place, "parameters": work.parameters}
        return (yield [Task(RUN, (shard,), told) for shard in work.shards])

    each.__doc__ = found(place).__doc__
    return each


def run(out: Path, inputs: Sequence[Path], *, place: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The documents of a shard as a user's function makes them."""
    return {"documents": shards.write(out, _made(found(place), inputs[0], parameters))}


def _made(
    function: Callable[..., pa.Table], shard: Path, parameters: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    for batch in shards.batches(shard):
        made = function(pa.Table.from_batches([batch]), **parameters)
        if not isinstance(made, pa.Table):
            raise TypeError(f"a step must return a table of documents, not {type(made).__name__}")
        yield from made.combine_chunks().to_batches()
