"""Commands that analyse the hits of a query: freq, collocates, distribution, dispersion."""

from __future__ import annotations

from typing import Annotated, Literal

from thresher.cli.app import Directory, Many, say, whole_number
from thresher.cli.commands.searching.options import (
    DEFAULT_MATCHING,
    DEFAULT_OUTPUT,
    Attribute,
    Limit,
    MatchOptions,
    Minimum,
    OutputOptions,
    Query,
    WindowText,
    bounds,
    command,
    open_search,
    publish,
)
from thresher.errors import UsageError


@command
def freq(
    directory: Directory,
    query: Query,
    *,
    by: Annotated[list[str] | None, Many] = None,
    minimum: Minimum = None,
    limit: Limit = None,
    matching: MatchOptions = DEFAULT_MATCHING,
    to: OutputOptions = DEFAULT_OUTPUT,
) -> None:
    """Count the values at a place of the hits, or at two places.

    Example: thresher freq czech '[] "jazyk"' --by lemma@match
    Example: thresher freq czech '"jazyk"' --by word@match doc_year -o years.csv

    Places: lemma@match is the lemma of the first token, word@matchend the
    last word, pos@match[1] the token after the first, word@target the token
    marked by @, word@node the whole match, doc_year an attribute of the
    document.

    Parameters
    ----------
    by
        One or two places; word@node if left out.
    """
    places = by or ["word@node"]
    if len(places) > 2:
        raise UsageError(f"--by takes one place or two, got {len(places)}: {' '.join(places)}")
    search = open_search(directory, query, matching)
    chosen = places[0] if len(places) == 1 else (places[0], places[1])
    publish(search.freq(chosen, **bounds(minimum, limit, to)), to)


@command
def collocates(
    directory: Directory,
    query: Query,
    *,
    attribute: Attribute = "",
    window: WindowText = "",
    sort: Literal["logdice", "mi", "mi3", "t_score", "log_likelihood", "joint"] = "logdice",
    minimum: Minimum = None,
    limit: Limit = None,
    matching: MatchOptions = DEFAULT_MATCHING,
    to: OutputOptions = DEFAULT_OUTPUT,
) -> None:
    """List the words near the hits, with measures of association.

    Example: thresher collocates czech '[lemma="jazyk"]' --window -3,3
    Example: thresher collocates czech jazyk --attribute word --sort mi

    Parameters
    ----------
    sort
        Measure to sort by.
    """
    search = open_search(directory, query, matching)
    options = bounds(minimum, limit, to)
    publish(search.collocates(attribute=attribute, window=window or "-5,5", sort=sort, **options), to)


@command
def distribution(
    directory: Directory,
    query: Query,
    *,
    by: str = "doc_year",
    minimum: Minimum = None,
    limit: Limit = None,
    matching: MatchOptions = DEFAULT_MATCHING,
    to: OutputOptions = DEFAULT_OUTPUT,
) -> None:
    """Count hits by an attribute of documents, with relative frequencies.

    Example: thresher distribution czech '[lemma="jazyk"]' --by doc_host
    Example: thresher distribution czech jazyk --by doc_year -o years.csv

    Parameters
    ----------
    by
        Attribute of a structure: doc_year, doc_host, doc_tld …
    """
    search = open_search(directory, query, matching)
    table = search.distribution(by, **bounds(minimum, limit, to))
    found = [row["value"] for row in table if row["hits"]]
    if not found and to.is_for_people:
        say("nothing found")
        return
    publish(table, to)
    if found == [""]:
        say(f"no document with a hit has a {by}; try another attribute, such as --by doc_host")


@command
def dispersion(
    directory: Directory,
    query: Query,
    *,
    parts: str = "doc",
    matching: MatchOptions = DEFAULT_MATCHING,
    to: OutputOptions = DEFAULT_OUTPUT,
) -> None:
    """Measure how evenly the hits are spread over the corpus.

    Example: thresher dispersion czech '[lemma="jazyk"]'
    Example: thresher dispersion czech jazyk --parts 100

    The measures are average reduced frequency, Juilland's D and Gries' DP.

    Parameters
    ----------
    parts
        doc, or a number of equal parts.
    """
    number = whole_number(parts)
    search = open_search(directory, query, matching)
    publish(search.dispersion(parts=parts if number is None else number), to)
