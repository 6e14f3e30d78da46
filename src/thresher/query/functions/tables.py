"""What functions find: rows under names, and whether they are all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from thresher.config import ConfigError

MILLION = 1_000_000


class Table(Struct, frozen=True):
    """Rows under names, and why they are not all that there is, if so."""

    rows: pa.Table
    stopped: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.stopped

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.rows.column_names)

    def records(self) -> list[dict[str, Any]]:
        return self.rows.to_pylist()


class FunctionError(ConfigError):
    """An option that cannot be; the message tells the cure."""


def reasons(*parts: str) -> str:
    """Why rows are missing, each reason once."""
    return "; ".join(dict.fromkeys(part for part in parts if part))


def ordered(rows: pa.Table, by: str, then: Sequence[str] = ("value",)) -> pa.Table:
    """Rows with the most of a figure first; equals in the order of their values' bytes."""
    return rows.sort_by([(by, "descending"), *((name, "ascending") for name in then)])


def first(rows: pa.Table, limit: int | None, stopped: str = "") -> Table:
    """So many rows; where that leaves some out, the table says so."""
    if limit is None or rows.num_rows <= limit:
        return Table(rows, stopped)
    return Table(rows.slice(0, limit), reasons(stopped, f"the first {limit} of {rows.num_rows} rows"))


def summed(parts: Iterable[pa.Table], keys: Sequence[str], counts: Sequence[str] = ("count",)) -> pa.Table:
    """Counts of several parts of a corpus added up, by the values that they are of."""
    kinds: dict[str, Any] = {**dict.fromkeys(keys, pa.string()), **dict.fromkeys(counts, pa.int64())}
    schema = pa.schema(kinds)
    every = pa.concat_tables([schema.empty_table(), *(part.select(schema.names) for part in parts)])
    found = every.group_by(list(keys), use_threads=False).aggregate([(name, "sum") for name in counts])
    return found.rename_columns(schema.names)


def one_of(value: str, known: Iterable[str], what: str) -> str:
    """A value, if it is among those that are known."""
    names = list(known)
    if value not in names:
        raise FunctionError(f"{value} is no {what}; there are {', '.join(names)}")
    return value
