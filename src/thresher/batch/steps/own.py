"""A step of a user's own: a function from a table of documents to another one, named by its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from thresher.batch import shards
from thresher.batch.paragraphs import told
from thresher.batch.pieces import Task
from thresher.batch.steps.plans import Plan, Step, Work
from thresher.batch.users import function_of, looking_in, typed

_OF_TEXT = ("text_bytes", "text_hash")
RUN = "thresher.batch.steps.own:run"
AROUND = "own 2"  # the version of what is done to what a user's function returns


def step(place: str, folders: Sequence[str], parameters: dict[str, Any]) -> Step:
    """What runs a user's function on each shard, with parameters; it is looked for in these folders, too."""
    function = function_of(place, folders)
    typed(place, function, parameters)

    def plan(work: Work) -> Plan:
        asked = {"place": place, "parameters": work.parameters}
        where = {"folders": msgspec.json.encode(folders).decode()}
        return (yield [Task(RUN, (shard,), asked, (AROUND,), where) for shard in work.shards])

    plan.__doc__ = function.__doc__
    version: int = function.version  # type: ignore[attr-defined]
    return Step(place, version, plan, dict)  # type: ignore[arg-type]


def run(
    out: Path, inputs: Sequence[Path], *, place: str, parameters: dict[str, Any], folders: str
) -> dict[str, Any]:
    """The documents of a shard as a user's function makes them."""
    searched = msgspec.json.decode(folders, type=list[str])
    function = function_of(place, searched)
    with looking_in(searched):  # it may import more when it is called
        made = _made(function, inputs[0], typed(place, function, parameters))
        return {"documents": shards.write(out, made)}


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
