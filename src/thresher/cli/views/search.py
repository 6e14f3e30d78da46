"""Show results of queries on the terminal: tables and concordances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from thresher.cli.views.output import PIPE_WIDTH, result_console
from thresher.cli.views.tables import FigureTable
from thresher.cli.views.text import harmless
from thresher.search.analysis import ResultTable
from thresher.search.analysis.display import cell, is_text, shown, shown_columns

MATCH_SHARE = 0.5  # largest share of the width for the match
ORIGIN_WIDTH = 24  # characters on a terminal


def view(table: ResultTable, rows: int | None = None) -> FigureTable:
    """Return a table, or its first rows."""
    columns = shown_columns(table.rows)
    titles = [column.replace("_", " ") for column in columns]
    text = [title for title, column in zip(titles, columns, strict=True) if is_text(table.rows, column)]
    records = table.rows.slice(0, rows).to_pylist()
    return FigureTable(
        titles, ([shown(column, row[column]) for column in columns] for row in records), text=text
    )


def units(table: ResultTable) -> Group:
    """Return documents, paragraphs or sentences, each below its score and its origin."""
    lines: list[Text] = []
    for row in table.records():
        facts = [
            f"{name}={harmless(cell(row[name]))}" for name in shown_columns(table.rows) if name != "text"
        ]
        lines += [Text("  ".join(facts), style="dim"), Text(harmless(row["text"])), Text()]
    return Group(*lines[:-1])


def concordance(
    rows: Sequence[Mapping[str, Any]], origins: Sequence[str], meta: Sequence[str], width: int = 0
) -> Group:
    """Return lines with their hits aligned, each after its origin; other attributes stand below the line.

    Context that is too long is cut where it is farthest from the hit. In a pipe, nothing is cut.
    """
    width = width or result_console().width
    edge = min(max(map(len, origins), default=0), ORIGIN_WIDTH if width < PIPE_WIDTH else width)
    middle = min(max((len(row["match"]) for row in rows), default=0), int(width * MATCH_SHARE))
    room = max((width - edge - middle - 6) // 2, 0)
    left = min(max((len(row["left"]) for row in rows), default=0), room)
    extra = [name for name in rows[0] if name in meta or name.startswith("match_")] if rows else []
    lines: list[Text] = []
    for row, origin in zip(rows, origins, strict=True):
        lines.append(_line(row, _shortened(origin, edge), left, middle, width - edge - left - middle - 6))
        if extra:
            values = "  ".join(f"{name}={harmless(str(row[name]))}" for name in extra)
            lines.append(Text(f"{' ' * edge}  {values}", style="dim", no_wrap=True, overflow="ignore"))
    return Group(*lines)


def _shortened(origin: str, width: int) -> str:
    """Return an origin without the beginning of its host: its end and the number identify it better."""
    clean = harmless(origin)
    return (clean if len(clean) <= width else "…" + clean[len(clean) - width + 1 :]).ljust(width)


def _line(row: Mapping[str, Any], origin: str, side: int, middle: int, rest: int) -> Text:
    left, match = harmless(row["left"]), harmless(row["match"], middle)
    cut = left if len(left) <= side else "…" + left[len(left) - side + 1 :]
    return Text.assemble(
        (origin, "dim"), "  ", cut.rjust(side), "  ", (match, "bold"), " " * (middle - len(match)), "  ",
        harmless(row["right"], max(rest, 1)), no_wrap=True,
    )  # fmt: skip
