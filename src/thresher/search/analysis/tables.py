"""Tables that analyses return, and the functions that make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct

from thresher.errors import UsageError
from thresher.search.analysis import display
from thresher.search.cql.lexer import unknown
from thresher.wording import NO_PANDAS

if TYPE_CHECKING:
    import pandas

MILLION = 1_000_000


class ResultTable(Struct, frozen=True):
    """Rows of an analysis. `stopped` is the reason why rows are missing, or "" if none are.

    At a prompt and in a notebook the result shows its first rows. `to_pandas` and `records` return all of them.
    Libraries that read Arrow tables take a result as it is: `polars.DataFrame(result)`, or DuckDB by its name.

    >>> table = ResultTable(pa.table({"value": ["tea", "coffee"], "count": [1200, 7]}))
    >>> table
    value   count
    tea     1,200
    coffee      7
    2 rows
    >>> table.records()[1]
    {'value': 'coffee', 'count': 7}
    """

    rows: pa.Table
    stopped: str = ""

    @property
    def is_whole(self) -> bool:
        """True if no rows are missing."""
        return not self.stopped

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.rows.column_names)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        return self.rows.to_pylist()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame."""
        try:
            return self.rows.to_pandas()
        except ImportError:
            raise AnalysisError(NO_PANDAS) from None

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows by the Arrow C stream interface, by which other libraries read them."""
        export: Any = self.rows.__arrow_c_stream__
        return export(requested_schema)

    def __len__(self) -> int:
        return self.rows.num_rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.rows.to_batches():
            yield from batch.to_pylist()

    def __repr__(self) -> str:
        return display.table_text(self.rows, self.stopped)

    def _repr_html_(self) -> str:
        return display.table_html(self.rows, self.stopped)


class Concordance(ResultTable, frozen=True):
    """Lines of a concordance: hits with their context."""

    def __repr__(self) -> str:
        return display.concordance_text(self.rows, self.stopped)

    def _repr_html_(self) -> str:
        return display.concordance_html(self.rows, self.stopped)


class Spans(ResultTable, frozen=True):
    """First and last positions of hits. Iteration yields pairs of numbers."""

    def __iter__(self) -> Iterator[tuple[int, int]]:  # type: ignore[override]
        for batch in self.rows.to_batches():
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class AnalysisError(UsageError):
    """An option of an analysis that cannot be used. The message names values that can."""


def reasons(*parts: str) -> str:
    """Join the reasons why rows are missing, each once."""
    return "; ".join(dict.fromkeys(part for part in parts if part))


def ordered(rows: pa.Table, by: str, then: Sequence[str] = ("value",)) -> pa.Table:
    """Sort rows by a column, largest first; equal rows by the bytes of their values."""
    return rows.sort_by([(by, "descending"), *((name, "ascending") for name in then)])


def first(rows: pa.Table, limit: int | None, stopped: str = "") -> ResultTable:
    """Return the first rows; if rows are left out, `stopped` says so."""
    if limit is not None and limit < 1:
        raise AnalysisError(f"limit must be at least 1, got {limit}")
    if limit is None or rows.num_rows <= limit:
        return ResultTable(rows, stopped)
    return ResultTable(
        rows.slice(0, limit), reasons(stopped, f"the first {limit:,} of {rows.num_rows:,} rows")
    )


def summed(parts: Iterable[pa.Table], keys: Sequence[str], counts: Sequence[str] = ("count",)) -> pa.Table:
    """Add up the counts of several parts of a corpus, by the values in the key columns."""
    types: dict[str, Any] = {**dict.fromkeys(keys, pa.string()), **dict.fromkeys(counts, pa.int64())}
    schema = pa.schema(types)
    every = pa.concat_tables([schema.empty_table(), *(part.select(schema.names) for part in parts)])
    found = every.group_by(list(keys), use_threads=False).aggregate([(name, "sum") for name in counts])
    return found.rename_columns(schema.names)


def one_of(value: str, known: Iterable[str], kind: str) -> str:
    """Return the value, or raise AnalysisError if it is not known."""
    names = list(known)
    if value not in names:
        raise AnalysisError(unknown(kind, value, names))
    return value
