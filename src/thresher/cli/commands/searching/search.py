"""The command search: a concordance, the number of hits, or their positions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from thresher.cli.app import Directory, Many, print_json, say, show, whole_number
from thresher.cli.commands.searching import old_flags
from thresher.cli.commands.searching.old_flags import NO_OLD_FLAGS, OldFlags
from thresher.cli.commands.searching.options import (
    DEFAULT_MATCHING,
    DEFAULT_OUTPUT,
    Flag,
    MatchOptions,
    Meta,
    OutputOptions,
    WindowText,
    command,
    open_search,
    publish,
    write,
)
from thresher.cli.exit_codes import DONE, FAULT
from thresher.errors import UsageError
from thresher.wording import counted

if TYPE_CHECKING:
    from thresher.search.hits import Search

PAGE_LINES = 20  # lines of a concordance on the terminal
CONTEXT_TOKENS = 8  # on either side of a hit


@command
def search(
    directory: Directory,
    query: Annotated[list[str] | None, Parameter(negative=(), help="Query in CQL, or plain words.")] = None,
    *,
    count: Flag = False,
    spans: Flag = False,
    context: str = "8",
    meta: Meta = None,
    attributes: Annotated[list[str] | None, Many] = None,
    page: int = 1,
    size: int | None = None,
    sort: Annotated[Literal["left", "node", "right", ""], Parameter(show_choices=False)] = "",
    sample: int | None = None,
    seed: int = 1,
    keep: str = "",
    drop: str = "",
    window: WindowText = "",
    distinct: str = "",
    matching: MatchOptions = DEFAULT_MATCHING,
    to: OutputOptions = DEFAULT_OUTPUT,
    old: OldFlags = NO_OLD_FLAGS,
) -> None:
    """Show the hits of a query in their context, or count them.

    Example: thresher search czech jazyk
    Example: thresher search czech '[lemma="nový"] [lemma="jazyk"]' --count
    Example: thresher search czech '<s> "Ale"' --sort right --meta doc_url

    The query language is CQL: "word", [lemma="go" & pos!="N.*"], sequences,
    ( | ), ? * + {2,5}, []{0,3} for gaps, <s> for borders, labels
    (a:[] :: a.lemma = …), within s, containing. Plain words are searched as
    they are. Analyses of the hits: thresher freq, collocates, distribution,
    dispersion.

    Parameters
    ----------
    count
        Show only the number of hits.
    spans
        Show the first and the last position of each hit.
    context
        Number of tokens on either side, or a structure, such as s.
    attributes
        Attributes of the match to show.
    page
        Page of the concordance.
    size
        Lines of a page; 20, or all for machines.
    sort
        Sort by the words to the left, to the right, or of the match: left, right or node.
    sample
        Show this many lines at random.
    seed
        The same seed gives the same sample.
    keep
        Keep only hits with such a token in the window, as '[lemma="x"]'.
    drop
        Drop hits with such a token in the window.
    distinct
        Show one hit for each structure of this name, as doc.
    """
    if not count and old_flags.run(directory, query, old, window or "-5,5", meta, matching, to):
        return
    matches = open_search(directory, query, matching)
    lines_of: dict[str, Any] = {
        "keep": keep, "drop": drop, "window": window or "-5,5", "distinct": distinct,
    }  # fmt: skip
    narrowed = bool(keep or drop or distinct)
    if spans and narrowed:
        raise UsageError("--spans shows all hits; leave --keep, --drop and --distinct out")
    if (count or spans) and not to.output and (narrowed or not (count and matches.within)):
        _plain_answer(matches, lines_of, spans=spans, json=to.json)
    if count or spans:
        publish(matches.spans() if spans else matches.counts(), to)
        return
    if size is None and to.is_for_people:
        size = PAGE_LINES
    lines = matches.concordance(
        context=_context(context), attributes=attributes or (), meta=meta or (),
        page=page, size=size, sort=sort, sample=sample, seed=seed, **lines_of,
    )  # fmt: skip
    if to.is_for_people:
        from thresher.cli.views.search import concordance

        show(concordance(lines.records(), matches.origins(lines), meta or ()))
    else:
        write(lines, to)
    if lines.stopped:
        say(lines.stopped)
    if not to.is_for_people:
        return
    hits = matches.count()
    if narrowed:
        kept = matches.count(**lines_of)
        say(f"{kept:,} of {counted(hits, 'hit')}{_because(matches.stopped)}")
    elif not lines.stopped.endswith(f" {hits:,}"):  # a number is said once
        say(f"{counted(hits, 'hit')}{_because(matches.stopped)}")


def _context(text: str) -> int | str:
    """Return a number of tokens or the name of a structure; "" is the default."""
    number = whole_number(text)
    return (text or CONTEXT_TOKENS) if number is None else number


def _plain_answer(search: Search, lines_of: dict[str, Any], *, spans: bool, json: bool) -> None:
    """Show the number of hits or their positions, and end the command."""
    places = list(search.spans()) if spans else []
    hits = len(places) if spans else search.count(**lines_of)
    limited = {"stopped": search.stopped} if search.stopped else {}
    if json:
        print_json({"hits": hits, **({"spans": places} if spans else {}), **limited})
    else:
        for first, last in places:
            print(f"{first}\t{last}")
        answer = f"{counted(hits, 'hit')}{_because(search.stopped)}"
        if spans:
            say(answer)
        else:
            print(answer)
    sys.exit(FAULT if search.stopped else DONE)


def _because(stopped: str) -> str:
    return f" so far: {stopped}" if stopped else ""
