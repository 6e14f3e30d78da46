"""Results as plain text and HTML, for a Python prompt and for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa

SHOWN_ROWS = 20
CELL_WIDTH = 40  # characters of a text in a cell
LINE_WIDTH = 110  # characters of a concordance line
MATCH_SHARE = 0.5  # of a line, at most
ORIGIN_WIDTH = 28
UNKNOWN = "(unknown)"
HIDDEN_COLUMNS = ("document", "first", "last", "number")  # keys and positions: for programs


def printable(text: str, width: int = 0) -> str:
    r"""Replace characters that could drive a terminal, and cut the text to a width.

    >>> printable("red\x1b[31m", 5)
    'red�…'
    """
    clean = "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)
    return clean if not width or len(clean) <= width else clean[: width - 1] + "…"


def cell(value: Any) -> str:
    """Return a value as a table shows it: numbers with as many digits as can be read at a glance.

    >>> cell(1234), cell(0.123456), cell(1234.56)
    ('1,234', '0.123', '1,234.6')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:,.1f}" if 100 <= abs(value) < 1e9 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def shown(column: str, value: Any) -> str:
    """Return a value of a column as a table shows it; a value that is missing in the texts is named as such.

    >>> shown("value", ""), shown("title", "")
    ('(unknown)', '')
    """
    return UNKNOWN if value == "" and column.startswith("value") else cell(value)


def shown_columns(rows: pa.Table) -> list[str]:
    """Return the columns of a table that people read: without keys and positions, if there are others."""
    return [name for name in rows.column_names if name not in HIDDEN_COLUMNS] or rows.column_names


def table_text(rows: pa.Table, stopped: str) -> str:
    """Return the first rows as aligned columns."""
    names = shown_columns(rows)
    are_text = [is_text(rows, name) for name in names]
    lines = [
        names,
        *([printable(shown(name, row[name]), CELL_WIDTH) for name in names] for row in _head(rows)),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [
        "  ".join(
            text.ljust(width) if left else text.rjust(width)
            for text, width, left in zip(line, widths, are_text, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*aligned, _summary(rows, "rows", stopped)])


def table_html(rows: pa.Table, stopped: str) -> str:
    """Return the first rows as an HTML table."""
    names = shown_columns(rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(_html_cell(shown(name, row[name]), is_text(rows, name)) for name in names) + "</tr>"
        for row in _head(rows)
    )
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{escape(_summary(rows, 'rows', stopped))}</p>"
    )


def concordance_text(rows: pa.Table, stopped: str) -> str:
    """Return the first lines with their hits below each other, behind where they come from."""
    lines = _head(rows)
    origins = [printable(_origin(rows, line), ORIGIN_WIDTH) for line in lines]
    edge = max(map(len, origins), default=0)
    longest = max((len(line["match"]) for line in lines), default=0)
    middle = min(longest, int(LINE_WIDTH * MATCH_SHARE))
    room = max((LINE_WIDTH - edge - middle - 6) // 2, 10)
    side = min(max((len(line["left"]) for line in lines), default=0), room)
    shown = []
    for origin, line in zip(origins, lines, strict=True):
        left, right = printable(line["left"]), printable(line["right"], room)
        left = left if len(left) <= side else "…" + left[len(left) - side + 1 :]
        middle_text = printable(line["match"], middle).ljust(middle)
        start = f"{origin.ljust(edge)}  " if edge else ""
        shown.append(f"{start}{left.rjust(side)}  {middle_text}  {right}".rstrip())
    return "\n".join([*shown, _summary(rows, "lines", stopped)])


def concordance_html(rows: pa.Table, stopped: str) -> str:
    """Return the first lines as an HTML table with the hits in the middle."""
    body = "".join(
        f"<tr><td>{escape(_origin(rows, line))}</td>"
        f'<td style="text-align: right">{escape(line["left"])}</td>'
        f'<td style="text-align: center"><b>{escape(line["match"])}</b></td>'
        f'<td style="text-align: left">{escape(line["right"])}</td></tr>'
        for line in _head(rows)
    )
    return f"<table><tbody>{body}</tbody></table><p>{escape(_summary(rows, 'lines', stopped))}</p>"


def _head(rows: pa.Table) -> Sequence[Mapping[str, Any]]:
    found: list[dict[str, Any]] = rows.slice(0, SHOWN_ROWS).to_pylist()
    return found


def is_text(rows: pa.Table, name: str) -> bool:
    """Return whether a column holds text."""
    return bool(pa.types.is_string(rows.schema.field(name).type))


def _origin(rows: pa.Table, line: Mapping[str, Any]) -> str:
    """Return the attributes of structures of a line, which stand before the left context."""
    names = shown_columns(rows)
    return "  ".join(str(line[name]) for name in names[: names.index("left")])


def _html_cell(text: str, left: bool) -> str:
    return f'<td style="text-align: {"left" if left else "right"}">{escape(text)}</td>'


def _summary(rows: pa.Table, plural: str, stopped: str) -> str:
    count = rows.num_rows
    noun = plural if count != 1 else plural.removesuffix("s")
    shown = f", the first {SHOWN_ROWS} shown" if count > SHOWN_ROWS else ""
    why = f" ({stopped})" if stopped else ""
    return f"{count:,} {noun}{shown}{why}"
