"""A step of a user's own: a function from a table of documents to another one, named by its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from thresher.batch import shards
from thresher.batch.paragraphs import told
from thresher.batch.pieces import Task
from thresher.batch.steps.plans import Plan, Work
from thresher.config import ConfigError
from thresher.engine.calls import function_at

_OF_TEXT = ("text_bytes", "text_hash")
RUN = "thresher.batch.steps.own:run"
AROUND = "own 2"  # the version of what is done to what a user's function returns


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
        asked = {"place": place, "parameters": work.parameters}
        return (yield [Task(RUN, (shard,), asked, (AROUND,)) for shard in work.shards])

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
        yield from map(_Renewal(batch), made.combine_chunks().to_batches())


class _Renewal:
    """Tells the length and the hash of texts anew where they are not those of a document that was there before.

    Other steps tell texts apart by their hashes, and a function that takes texts apart, or makes them equal, need
    not know of that.
    """

    def __init__(self, before: pa.RecordBatch) -> None:
        self._known = set(_texts(before))

    def __call__(self, made: pa.RecordBatch) -> pa.RecordBatch:
        if "text" not in made.schema.names:
            raise TypeError(f"a step must leave the column text; it left {', '.join(made.schema.names)}")
        every = list(_texts(made))
        changed = [row for row, one in enumerate(every) if one not in self._known]
        if not changed:
            return made
        renewed = {row: told(every[row][0]) for row in changed}
        for name in _OF_TEXT:
            if (place := made.schema.get_field_index(name)) >= 0:
                values: list[Any] = made.column(name).to_pylist()
                for row, columns in renewed.items():
                    values[row] = columns[name]
                field = made.schema.field(place)
                made = made.set_column(place, field, pa.array(values, field.type))
        return made


def _texts(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    names = [name for name in ("text", *_OF_TEXT) if name in batch.schema.names]
    return zip(*(batch.column(name).to_pylist() for name in names), strict=True)
