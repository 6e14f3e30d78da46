"""Options and output that the query commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import Parameter

from thresher.cli.app import Many, OutputName, app, say, show
from thresher.errors import UsageError
from thresher.wording import counted

if TYPE_CHECKING:
    from thresher.corpus import Corpus
    from thresher.search.analysis import ResultTable
    from thresher.search.hits import Search

SHOWN_ROWS = 50  # rows of a table on the terminal
Command = TypeVar("Command", bound=Callable[..., None])


def command(function: Command) -> Command:
    """Add a command of this package to the app. Its help is plain text: other formats would take <s> for markup."""
    app.command(function, group="Search", help_format="plaintext")
    return function


Flag = Annotated[bool, Parameter(negative=())]
Query = Annotated[list[str], Parameter(negative=(), help="Query in CQL, or plain words.")]
WindowText = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="Tokens around the hit, as -3,3, or a structure, as s; -5,5 if left out.",
    ),
]
Attribute = Annotated[str, Parameter(help="Attribute of tokens: word, lc, lemma, pos …")]
Minimum = Annotated[
    int | None, Parameter(help="Smallest frequency of a row; if left out, 2 for ngrams, 3 for collocates.")
]
Limit = Annotated[int | None, Parameter(help="Largest number of rows; a file gets all if left out.")]
Within = Annotated[str, Parameter(help="Name of a subcorpus; see thresher subcorpora.")]
Meta = Annotated[
    list[str] | None, Many, Parameter(help="Attributes of structures to show: doc_url, doc_year …")
]


@Parameter(name="*")
@dataclass(frozen=True)
class MatchOptions:
    """Options for the evaluation of a query."""

    strategy: Annotated[
        Literal["standard", "shortest", "longest", "traditional"],
        Parameter(help="How overlapping matches are selected, as in CQP."),
    ] = "standard"
    any_case: Annotated[Flag, Parameter(help="Ignore the case of all strings, as if each had %c.")] = False
    within: Within = ""
    seconds: Annotated[float, Parameter(help="Time limit of the search.")] = 60.0


@Parameter(name="*")
@dataclass(frozen=True)
class OutputOptions:
    """Options for the output of a result."""

    output: Annotated[
        Path | None,
        OutputName,
        Parameter(help="File for the result; .csv, .tsv, .jsonl or .parquet."),
    ] = None
    format: Annotated[
        Literal["csv", "tsv", "jsonl", "parquet"] | None,
        Parameter(help="Format of the file, or of the result on stdout."),
    ] = None
    json: Annotated[bool, Parameter(name="--json", negative=(), help="JSON on stdout, for machines.")] = False

    @property
    def is_for_people(self) -> bool:
        """True if the result is shown on the terminal."""
        return not (self.json or self.output or self.format)


DEFAULT_MATCHING = MatchOptions()
DEFAULT_OUTPUT = OutputOptions()


def open_corpus(directory: Path) -> Corpus:
    """Open a corpus that has an index; a missing index is reported before anything else."""
    import thresher

    corpus = thresher.open(directory)
    _ = corpus.index_reader
    return corpus


def open_search(directory: Path, query: list[str] | None, matching: MatchOptions) -> Search:
    """Open a corpus and start a search in it."""
    if not query or not " ".join(query).strip():
        raise UsageError("""a query is missing; for example: thresher search DIR '[lemma="go"]'""")
    return open_corpus(directory).search(
        " ".join(query), strategy=matching.strategy, any_case=matching.any_case,
        within=matching.within or None, seconds=matching.seconds,
    )  # fmt: skip


def bounds(minimum: int | None, limit: int | None, to: OutputOptions) -> dict[str, Any]:
    """Return the bounds on rows that were given. Without a limit, a file gets all rows."""
    every = {"limit": None} if limit is None and to.output else {}
    return {**given(minimum=minimum, limit=limit), **every}


def given(**options: int | None) -> dict[str, Any]:
    """Return the options that were given; the others keep the defaults of the analysis."""
    return {name: value for name, value in options.items() if value is not None}


def publish(table: ResultTable, to: OutputOptions, if_empty: str = "nothing found") -> None:
    """Write a table to a file or to stdout; one without rows is a remark."""
    if to.is_for_people:
        from thresher.cli.views.search import units, view

        if table.rows.num_rows:
            shown = SHOWN_ROWS if sys.stdout.isatty() else None
            show(units(table) if "text" in table.columns else view(table, shown))
            if shown and table.rows.num_rows > shown:
                say(f"the first {shown} of {table.rows.num_rows:,} rows; all of them: add -o FILE or > FILE")
        else:
            say(if_empty)
    else:
        write(table, to)
    if table.stopped:
        say(table.stopped)


def write(table: ResultTable, to: OutputOptions) -> None:
    """Write a table to a file, or to stdout for machines."""
    from thresher.search.analysis.export import write as write_table

    if to.output:
        write_table(table, to.output, to.format or to.output.suffix.lstrip("."), spreadsheet=True)
        say(f"{counted(table.rows.num_rows, 'row')} written to {to.output}")
    else:
        write_table(table, sys.stdout.buffer, to.format or "jsonl")
        sys.stdout.buffer.flush()
