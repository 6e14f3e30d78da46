"""Numbers in messages, and results at a prompt and in notebooks, for every package that reports."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from thresher.errors import UsageError

if TYPE_CHECKING:
    import pandas

NO_PANDAS = "to_pandas() needs pandas, which is not installed; run: pip install pandas"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "hit"), counted(1200, "hit"), counted(0, "page")
    ('1 hit', '1,200 hits', '0 pages')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class ReportView:
    """The views of a report in notebooks: its rows as a table. A report is one row unless it defines `rows`."""

    __slots__ = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return the facts of the report, by name."""
        return [{name: getattr(self, name) for name in type(self).__struct_fields__}]  # type: ignore[attr-defined]

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise UsageError(NO_PANDAS) from None
        return pandas.DataFrame(self.rows())

    def _repr_html_(self) -> str:
        rows = self.rows()
        head = "".join(f"<th>{escape(str(name))}</th>" for name in (rows[0] if rows else ()))
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row.values()) + "</tr>"
            for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: Any) -> str:
    """Return a fact as people read it.

    >>> _text(1200), _text({"badness": 2}), _text(("a", "b")), _text(None)
    ('1,200', 'badness 2', 'a, b', '')
    """
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)
