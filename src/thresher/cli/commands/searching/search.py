"""The command search: a concordance, the number of hits, or their positions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

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
    window_of,
    write,
)
from thresher.cli.exit_codes import DONE, FAULT
from thresher.wording import counted

if TYPE_CHECKING:
    from thresher.search.hits import Search

PAGE_LINES = 20  # lines of a concordance on the terminal


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
    sort: Literal["left", "node", "right"] | None = None,
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
        Sort by the words to the left, to the right, or of the match (node).
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
    if old_flags.run(directory, query, old, window_of(window), meta, matching, to):
        return
    number = whole_number(context)
    found = open_search(directory, query, matching)
    if (count or spans) and not to.output and not (count and found.within):
        _plain_answer(found, spans=spans, json=to.json)
    if count:
        publish(found.counts(), to)
        return
    if size is None and to.is_for_people:
        size = PAGE_LINES
    lines = found.concordance(
        context=context if number is None else number, attributes=attributes or (), meta=meta or (),
        page=page, size=size, sort=sort or "", sample=sample,
        seed=seed, keep=keep, drop=drop, window=window_of(window), distinct=distinct,
    )  # fmt: skip
    if to.is_for_people:
        from thresher.cli.views.search import concordance

        show(concordance(lines.records(), found.origins(lines), meta or ()))
    else:
        write(lines, to)
    if lines.stopped:
        say(lines.stopped)
    if to.is_for_people and not lines.stopped.endswith(f" {found.count():,}"):  # a number is said once
        say(f"{counted(found.count(), 'hit')}{_because(found.stopped)}")


def _plain_answer(search: Search, *, spans: bool, json: bool) -> None:
    """Show the number of hits or their positions, and end the command."""
    places = list(search.spans()) if spans else []
    hits = len(places) if spans else search.count()
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
