"""The commands that index a corpus and search it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from thresher.cli.app import DONE, FAULT, AsJson, Directory, Many, app, print_json, say, show
from thresher.config import ConfigError

if TYPE_CHECKING:
    from thresher.query.found import Index, Search
    from thresher.query.functions import Table

Flag = Annotated[bool, Parameter(negative=())]
SHOWN_ROWS = 50  # of a table, for people


@app.command
def index(
    directory: Directory,
    *,
    order: str = "",
    annotator: str = "",
    processes: int = 0,
    lowercase: bool = True,
    opted_out: Annotated[bool, Parameter(negative=())] = False,
    rebuild: Annotated[bool, Parameter(negative=())] = False,
    json: AsJson = False,
) -> None:
    """Make a corpus searchable, or bring its index up to date.

    Example: thresher index czech

    Crawled pages and imported texts are split into sentences and words, with lemma and part of speech where an
    annotator for the language is installed; imported tokens are taken as they are. What was indexed before is not
    touched again; what is no longer in the corpus is taken out.

    Parameters
    ----------
    order
        What the best documents have most of, which come first: quality, authority, recency or length; or input, as
        they came. Left out: as before, or quality.
    annotator
        plain, simplemma, hanta, fugashi, jieba, kiwipiepy, pymorphy3, apertium, spacy, stanza, or module:function
        of your own. Left out: the best one for the language that is installed.
    processes
        That annotate at once; left out, one less than there are processors.
    lowercase
        Give tokens the attribute lc, the word in small letters.
    opted_out
        Also pages whose publishers object to their use for machine learning or data mining.
    rebuild
        Throw the index away and start anew.
    """
    from thresher.cli.visiting import counting
    from thresher.query.found import Index
    from thresher.query.update import update
    from thresher.terminal import amount

    start = time.monotonic()
    with counting(None, "tokens") as progress:
        changes = update(
            directory, order=order, annotator=annotator, processes=processes, opted_out=opted_out,
            lowercase=lowercase, rebuild=rebuild, progress=progress,
        )  # fmt: skip
    made = Index(directory)
    size = sum(segment.bytes for segment in made.segments)
    if json:
        print_json(
            {
                "added": changes.added,
                "deleted": changes.deleted,
                "documents": made.documents,
                "tokens": made.tokens,
                "segments": len(made.segments),
                "bytes": size,
                "attributes": made.attributes,
                "structures": made.structures,
                "order": made.manifest.order,
            }
        )
    say(
        f"{changes.added:,} documents added, {changes.deleted:,} deleted in {time.monotonic() - start:.0f} s; "
        f"the index has {made.documents:,} documents with {made.tokens:,} tokens in {amount(size)}"
    )
    if made.tokens:
        say(f"""search it: thresher search {directory} '[word="…"]'""")


@app.command
def search(
    directory: Directory,
    query: Annotated[str, Parameter(help="What to search for, in CQL; some functions need none.")] = "",
    *,
    count: Flag = False,
    spans: Flag = False,
    freq: str = "",
    by: str = "",
    collocates: Flag = False,
    distribution: str = "",
    dispersion: Flag = False,
    words: Flag = False,
    ngrams: int = 0,
    keywords: Flag = False,
    retrieve: str = "",
    strategy: Literal["standard", "shortest", "longest", "traditional"] = "standard",
    any_case: Flag = False,
    context: str = "",
    page: int = 1,
    size: int | None = None,
    sort: str = "",
    sample: int | None = None,
    seed: int = 1,
    keep: str = "",
    drop: str = "",
    window: str = "",
    distinct: str = "",
    attribute: str = "",
    attributes: Annotated[list[str] | None, Many] = None,
    meta: Annotated[list[str] | None, Many] = None,
    matching: str = "",
    unit: Literal["doc", "p", "s"] = "doc",
    rank: Annotated[list[str] | None, Many] = None,
    within: str = "",
    against: str = "",
    minimum: int | None = None,
    limit: int | None = None,
    seconds: float = 60.0,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    format: Literal["csv", "jsonl", "parquet"] | None = None,
    json: AsJson = False,
) -> None:
    """Search a corpus; without more, hits are shown in their context.

    Example: thresher search czech '[lemma="jazyk"] [pos="N.*"]' --freq lemma@matchend

    The query language is CQL: "word", [lemma="go" & pos!="N.*"], sequences, ( | ), ? * + {2,5}, []{0,3} for gaps,
    <s> for borders, labels (a:[] :: a.lemma = …), within s, containing. A search that takes too long is stopped,
    and says so.

    Parameters
    ----------
    count
        Only how many hits there are.
    spans
        The first and last position of each hit.
    freq
        What stands at a place of the hits, by frequency: lemma@match, word@matchend, word@node (the whole match),
        pos@match[1] (one token on), word@target, doc_year.
    by
        With --freq: a second place, for a table of two.
    collocates
        What stands near the hits (see --window, --attribute), by logDice, with MI, MI3, t and log-likelihood.
    distribution
        Hits by an attribute of documents, such as doc_host, doc_tld or doc_year, with relative frequencies.
    dispersion
        How evenly hits are spread: average reduced frequency, Juilland's D, Gries' DP.
    words
        The words of the corpus (see --attribute, --matching); needs no query.
    ngrams
        Words that follow each other, so many at a time; needs no query.
    keywords
        Words that are more frequent than in another corpus or subcorpus (see --against); needs no query.
    retrieve
        The best documents, paragraphs or sentences (see --unit) that have all these words; needs no query.
    strategy
        Which of several matches at a place are kept, as in CQP.
    any_case
        Strings match whatever their case, as if each had %c.
    context
        Tokens on either side, or a structure, such as s.
    page
        Of the lines.
    size
        Lines of a page.
    sort
        left, node or right: lines by the words there.
    sample
        So many lines by chance, the same for the same --seed.
    keep
        Only hits that have such a token in the window, as '[lemma="x"]'.
    drop
        Only hits that have none.
    window
        Tokens round a hit, as -5,5, or a structure, as s.
    distinct
        One hit for each structure of a kind, as doc.
    attribute
        Of collocates, words, n-grams and keywords: word, lc, lemma, pos …
    attributes
        Attributes of the match that are shown.
    meta
        Attributes of structures that are shown: doc_id, doc_year …
    matching
        Only words like this expression.
    unit
        What is retrieved.
    rank
        What units are ranked by, and how much it weighs: quality=1 authority=0.5 recency length rarity.
    within
        Name of a subcorpus (see thresher subcorpora) to stay in.
    against
        Subcorpus, or directory of another corpus, that keywords are compared with.
    minimum
        Frequency that a row must have.
    limit
        Rows at most.
    seconds
        A search may take.
    output
        File for the result; .csv, .jsonl and .parquet tell the format.
    """
    from thresher.query.found import Index
    from thresher.query.functions import FUNCTIONS

    index = Index(directory)
    asked: dict[str, Any] = {"strategy": strategy, "any_case": any_case, "seconds": seconds}
    if (count or spans) and not within and not output:
        _plain_answer(index.search(_needed(query), **asked), spans=spans, json=json)
    chosen: dict[str, dict[str, Any] | None] = {
        "count": {} if count else None,
        "table": {"rows": freq, "columns": by} if freq and by else None,
        "freq": {"by": freq} if freq and not by else None,
        "collocates": {"attribute": attribute, "window": _window(window)} if collocates else None,
        "distribution": {"by": distribution} if distribution else None,
        "dispersion": {} if dispersion else None,
        "words": {"attribute": attribute, "matching": matching} if words else None,
        "ngrams": {"n": ngrams, "attribute": attribute} if ngrams else None,
        "keywords": {"attribute": attribute, **_reference(index, against)} if keywords else None,
        "retrieve": {"words": retrieve.split(), "unit": unit, "meta": meta or (), **_weights(rank)}
        if retrieve
        else None,
    }
    wanted = {name: options for name, options in chosen.items() if options is not None}
    if len(wanted) > 1:
        raise ConfigError(f"{' and '.join(wanted)} cannot be had at once; ask for one after the other")
    name, options = next(iter(wanted.items()), ("kwic", {}))
    if name == "kwic":
        options = {
            "context": int(context) if context.isdigit() else context or 8, "attributes": attributes or (),
            "meta": meta or (), "page": page, "size": size or (None if json or output else 20), "sort": sort,
            "sample": sample, "seed": seed, "keep": keep, "drop": drop, "window": _window(window),
            "distinct": distinct,
        }  # fmt: skip
    options |= {key: value for key, value in (("minimum", minimum), ("limit", limit)) if value is not None}
    function = FUNCTIONS[name]
    under_way = index.search(_needed(query), **asked) if function.needs_query else None
    _show(function.run(index, under_way, within=within or None, **options), name, output, format, json)
    if name == "kwic" and under_way and not json and not output:
        say(f"{under_way.count():,} hits{_because(under_way.stopped)}")


def _needed(query: str) -> str:
    if not query:
        raise ConfigError("""what to search for? For example: thresher search DIR '[lemma="go"]'""")
    return query


def _plain_answer(search: Search, *, spans: bool, json: bool) -> None:
    """How many hits there are, and where."""
    places = list(search.spans()) if spans else []
    hits = len(places) if spans else search.count()
    limited = {"stopped": search.stopped} if search.stopped else {}
    if json:
        print_json({"hits": hits, **({"spans": places} if spans else {}), **limited})
    else:
        for first, last in places:
            print(f"{first}\t{last}")
        say(f"{hits:,} hits{_because(search.stopped)}")
    sys.exit(FAULT if search.stopped else DONE)


def _because(stopped: str) -> str:
    return f" so far: {stopped}" if stopped else ""


def _window(text: str) -> tuple[int, int] | str:
    """A window as it was written: two numbers, or a structure."""
    if not text:
        return -5, 5
    try:
        first, _, last = text.partition(",")
        return int(first), int(last or first)
    except ValueError:
        return text


def _weights(rank: list[str] | None) -> dict[str, Any]:
    if not rank:
        return {}
    pairs = [part.partition("=") for part in rank]
    try:
        return {"weights": {name: float(weight or 1) for name, _, weight in pairs}}
    except ValueError:
        raise ConfigError(
            f"--rank {' '.join(rank)} has no numbers; try --rank quality=1 rarity=0.5"
        ) from None


def _reference(index: Index, against: str) -> dict[str, Any]:
    """What keywords are compared with: a subcorpus of this corpus, or another corpus."""
    from thresher.query.found import Index
    from thresher.query.functions import subcorpora

    if not against or against in subcorpora.names(index):
        return {"against": against or None}
    return {"reference": Index(Path(against))}


def _show(table: Table, name: str, output: Path | None, format: str | None, json: bool) -> None:
    """A result for machines, for a file, or for people."""
    from thresher.query.functions.export import write

    if output:
        write(table, output, format or output.suffix.lstrip("."), spreadsheet=True)
        say(f"{table.rows.num_rows:,} rows written to {output}")
    elif json or format:
        write(table, sys.stdout.buffer, format or "jsonl")
        sys.stdout.buffer.flush()
    else:
        from rich.console import Console

        from thresher.cli.search_views import view
        from thresher.terminal import concordance

        width = Console(stderr=True).width
        show(concordance(table.records(), width) if name == "kwic" else view(table, SHOWN_ROWS))
    if table.stopped:
        say(table.stopped)


@app.command
def subcorpora(
    directory: Directory,
    name: str = "",
    *,
    where: Annotated[list[str] | None, Many] = None,
    query: str = "",
    delete: Flag = False,
    json: AsJson = False,
) -> None:
    """Give documents a name, to search only them; without a name, list what there is.

    Example: thresher subcorpora czech news --where doc_host='.*news.*' 'doc_year=>=2020'

    Parameters
    ----------
    name
        Of the subcorpus.
    where
        What documents must fulfil: an attribute, =, and an expression, !=expression, or a bound as >=2005.
    query
        In CQL: documents with a hit.
    delete
        Forget the name; the documents stay.
    """
    from thresher.query.found import Index
    from thresher.query.functions import FUNCTIONS
    from thresher.query.functions import subcorpora as named

    index = Index(directory)
    if delete:
        named.delete(index, name)
        say(f"{name} is forgotten")
    elif name:
        conditions = {key: value for key, _, value in (part.partition("=") for part in where or ())}
        made = named.define(index, name, where=conditions or None, query=query)
        say(f"{name} has {len(made.keys):,} documents")
    if not name or json:
        _show(FUNCTIONS["subcorpora"].run(index, None), "subcorpora", None, None, json)
