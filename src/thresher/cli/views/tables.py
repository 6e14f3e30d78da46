"""Tables that fit the terminal without cutting a figure.

Columns of figures are as wide as their figures. Columns of text share the rest: names and URLs are shortened,
running text is folded. If not even that fits, each row becomes a few lines of its own. Output that does not go to
a terminal is wide enough for everything (`thresher.cli.views.output`), so nothing in it is cut.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from thresher.cli.views.text import harmless, shortened

GAPS = (2, 1)  # spaces between columns: the first that fits
INDENT = 2  # spaces before the lines of a row that does not fit one line
SHORTEST_TEXT = 12  # columns of the terminal; names and URLs are not shortened further


class TableRow(NamedTuple):
    """The cells of a row, and their style."""

    cells: Sequence[str]
    style: str = ""


class FigureTable:
    """A table of figures and texts. Columns not named in `text` or `folded` hold figures.

    >>> from rich.console import Console
    >>> table = FigureTable(["host", "pages"], [["a-very-long-name.example.cz", "1,234"]], text=["host"])
    >>> Console(width=30).print(table)
    host                     pages
    a-very-long….example.cz  1,234
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]] = (),
        *,
        text: Collection[str] = (),
        folded: Collection[str] = (),
        title: str = "",
    ) -> None:
        self._columns = columns
        self._shortened = [name in text for name in columns]
        self._folded = [name in folded for name in columns]
        self._title = title
        self.rows: list[TableRow] = []
        for row in rows:
            self.add(*row)

    def add(self, *cells: str, style: str = "") -> None:
        """Add a row; its cells are made harmless."""
        self.rows.append(TableRow([harmless(cell) for cell in cells], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width
        if self._title:
            yield Text(self._title, style="italic")
        for gap in GAPS:
            if widths := self._widths(room - gap * (len(self._columns) - 1)):
                for row in (TableRow(self._columns, "bold"), *self.rows):
                    for line in self._lines(row.cells, widths, " " * gap):
                        yield _line(line, row.style)
                return
        for row in self.rows:
            yield _line(shortened(self._heading(row.cells[0]), room), "bold")
            for line in self._items(row.cells, room - INDENT):
                yield _line(" " * INDENT + line, row.style)

    def _widths(self, room: int) -> list[int] | None:
        """Return the widths of the columns, or None if they need more room than there is."""
        columns = list(zip(self._columns, *(row.cells for row in self.rows), strict=True))
        widths = [max(map(cell_len, column)) for column in columns]
        least = [self._least(place, column, widths[place]) for place, column in enumerate(columns)]
        if sum(least) > room:
            return None
        for _ in range(sum(widths) - room):
            spare = [width - fewest and width for width, fewest in zip(widths, least, strict=True)]
            widths[spare.index(max(spare))] -= 1
        return widths

    def _least(self, place: int, cells: Sequence[str], width: int) -> int:
        """Return the width below which a column is not narrowed."""
        if self._shortened[place]:
            return min(width, SHORTEST_TEXT)
        if self._folded[place]:
            return max(cell_len(word) for cell in cells for word in cell.split() or [""])
        return width

    def _lines(self, cells: Sequence[str], widths: Sequence[int], gap: str) -> Iterator[str]:
        """Yield the lines of a row: one, or more where text is folded."""
        parts = [
            (textwrap.wrap(cell, width) or [""]) if folded else [shortened(cell, width)]
            for cell, width, folded in zip(cells, widths, self._folded, strict=True)
        ]
        for line in zip_longest(*parts, fillvalue=""):
            yield gap.join(map(self._aligned, line, range(len(line)), widths)).rstrip()

    def _aligned(self, cell: str, place: int, width: int) -> str:
        padding = " " * (width - cell_len(cell))
        return cell + padding if self._shortened[place] or self._folded[place] else padding + cell

    def _heading(self, cell: str) -> str:
        return cell if self._shortened[0] else f"{self._columns[0]} {cell}"

    def _items(self, cells: Sequence[str], room: int) -> Iterator[str]:
        """Yield lines with the cells of a row behind the names of their columns; the first cell is left out."""
        line = ""
        for name, cell in zip(self._columns[1:], cells[1:], strict=True):
            for item in textwrap.wrap(f"{name} {cell}", room) if cell else ():
                if line and cell_len(line) + GAPS[0] + cell_len(item) > room:
                    yield line
                    line = ""
                line += " " * GAPS[0] * bool(line) + item
        if line:
            yield line


def _line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ignore")
