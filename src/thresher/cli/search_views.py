"""What functions of corpora find, for people."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from rich.console import Group
from rich.table import Table as View
from rich.text import Text

from thresher.query.functions import Table
from thresher.terminal import harmless

MOST_OF_A_LINE = 0.5  # that a match may take
HIDDEN = ("document",)  # columns that only machines want


def lines(table: Table, width: int) -> Group:
    """A concordance with its hits below each other; what is too long is cut where it is farthest from the hit."""
    rows = table.records()
    longest = max((len(row["match"]) for row in rows), default=0)
    middle = min(longest, int(width * MOST_OF_A_LINE))
    side = max((width - middle - 4) // 2, 0)
    return Group(*(_line(row, side, middle) for row in rows))


def _line(row: dict[str, Any], side: int, middle: int) -> Text:
    left, right = harmless(row["left"]), harmless(row["right"])
    cut = left if len(left) <= side else "…" + left[len(left) - side + 1 :]
    match = harmless(row["match"], middle)
    padding = " " * (middle - len(match))
    return Text.assemble(
        cut.rjust(side), "  ", (match, "bold"), padding, "  ", harmless(right, side), no_wrap=True
    )


def view(table: Table, rows: int) -> View:
    """So many rows of a table."""
    made = View(box=None, padding=(0, 1), header_style="bold")
    columns = [column for column in table.columns if column not in HIDDEN]
    for column in columns:
        is_text = pa.types.is_string(table.rows.schema.field(column).type)
        made.add_column(
            column.replace("_", " "), justify="left" if is_text else "right", min_width=4 if is_text else None
        )
    for row in table.rows.slice(0, rows).to_pylist():
        made.add_row(*(_cell(row[column]) for column in columns))
    return made


def _cell(value: Any) -> Text:
    if isinstance(value, float):
        return Text(f"{value:,.1f}" if 100 <= abs(value) < 1e9 else f"{value:.3g}")
    if isinstance(value, int):
        return Text(f"{value:,}")
    return Text(harmless(str(value)))
