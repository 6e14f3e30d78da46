"""Steps written by users: functions from a table of documents to another one, named `module:function`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from thresher.annotate.user_modules import importable_from
from thresher.pipeline import document_shards
from thresher.pipeline.artifacts import Task
from thresher.pipeline.steps.paragraphs import text_columns
from thresher.pipeline.steps.plans import Plan, Step, StepContext
from thresher.pipeline.user_functions import function_of, typed

_OF_TEXT = ("text_bytes", "text_hash")
RUN = "thresher.pipeline.steps.user_step:run"
WRAPPER_VERSION = "own 2"  # of the code around a user's function; part of the keys of its artifacts


def step(place: str, folders: Sequence[str], parameters: dict[str, Any]) -> Step:
    """Return the step that runs a user's function with these parameters on each shard.

    The module is looked for in `folders` as well. Raise UsageError if there is no such function, if it has no
    version, or if it does not take the parameters.
    """
    function = function_of(place, folders)
    typed(place, function, parameters)

    def plan(work: StepContext) -> Plan:
        arguments = {"place": place, "parameters": work.parameters}
        locations = {"folders": msgspec.json.encode(folders).decode()}
        return (
            yield [Task(RUN, (shard,), arguments, (WRAPPER_VERSION,), locations) for shard in work.shards]
        )

    plan.__doc__ = function.__doc__
    version: int = function.version  # type: ignore[attr-defined]
    return Step(place, version, plan, dict)  # type: ignore[arg-type]


def run(
    out: Path, inputs: Sequence[Path], *, place: str, parameters: dict[str, Any], folders: str
) -> dict[str, Any]:
    """Write the documents of a shard as a user's function returns them."""
    searched = msgspec.json.decode(folders, type=list[str])
    function = function_of(place, searched)
    with importable_from(searched):  # the function may import more modules when it is called
        made = _made(function, inputs[0], typed(place, function, parameters))
        return {"documents": document_shards.write(out, made)}


def _made(
    function: Callable[..., pa.Table], shard: Path, parameters: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    for batch in document_shards.batches(shard):
        made = function(pa.Table.from_batches([batch]), **parameters)
        if not isinstance(made, pa.Table):
            raise TypeError(f"a step must return a table of documents, not {type(made).__name__}")
        yield from map(_TextColumns(batch), made.combine_chunks().to_batches())


class _TextColumns:
    """Recomputes the length and the hash of each text that differs from all texts before.

    Other steps compare texts by their hashes. A function that splits texts, or makes them equal, need not know.
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
        renewed = {row: text_columns(every[row][0]) for row in changed}
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
