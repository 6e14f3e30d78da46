"""What functions of corpora find, for people."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from rich.table import Table as View
from rich.text import Text

from thresher.query.functions import Table
from thresher.terminal import harmless

HIDDEN = ("document",)  # columns that only machines want


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
