"""Commands that make a corpus searchable: index, subcorpora."""

from __future__ import annotations

import time
from typing import Annotated

from cyclopts import Parameter

from thresher.cli.app import AsJson, Directory, Many, print_json, say
from thresher.cli.commands.searching.options import (
    DEFAULT_OUTPUT,
    Flag,
    OutputOptions,
    command,
    open_corpus,
    publish,
)
from thresher.cli.log_options import DEFAULT_LOG, LogOptions
from thresher.errors import UsageError
from thresher.wording import counted


@command
def index(
    directory: Directory,
    *,
    order: str = "",
    annotator: str = "",
    processes: int = 0,
    lowercase: bool = True,
    opted_out: Annotated[bool, Parameter(negative=())] = False,
    rebuild: Annotated[bool, Parameter(negative=())] = False,
    log: LogOptions = DEFAULT_LOG,
    json: AsJson = False,
) -> None:
    """Make a corpus searchable, or bring its index up to date.

    Example: thresher index czech
    Example: thresher index german --annotator hanta --rebuild

    Crawled pages and imported texts are split into sentences and words, with
    lemma and part of speech if an annotator for the language is installed;
    imported tokens are taken as they are. New documents are added; documents
    that left the corpus are deleted from the index.

    Parameters
    ----------
    order
        Order of documents and hits: quality, authority, recency, length or input; quality at first, then as before.
    annotator
        plain, simplemma, hanta, fugashi, jieba, kiwipiepy, pymorphy3, apertium, spacy, stanza, or your own
        module:function in the current directory; if left out, as before, or the best one that is installed.
    processes
        Number of processes that annotate; if left out, one fewer than processors.
    lowercase
        Give tokens the attribute lc, the word in lower case.
    opted_out
        Include pages whose publishers object to machine learning or data mining.
    rebuild
        Index all documents again, with the best annotator now installed; the old index is used until the end.
    """
    from thresher.cli.commands.visiting import counting
    from thresher.cli.views.terminal import amount
    from thresher.search.index.update import update
    from thresher.search.searcher import Index

    start = time.monotonic()
    with log.writing(directory, "index"), counting(None, "tokens") as progress:
        changes = update(
            directory, order=order, annotator=annotator, processes=processes, opted_out=opted_out,
            lowercase=lowercase, rebuild=rebuild, progress=progress,
        )  # fmt: skip
    built = Index(directory)
    size = sum(segment.bytes for segment in built.segments)
    if json:
        print_json(
            {
                "added": changes.added,
                "deleted": changes.deleted,
                "documents": built.documents,
                "tokens": built.tokens,
                "segments": len(built.segments),
                "bytes": size,
                "attributes": built.attributes,
                "structures": built.structures,
                "order": built.manifest.order,
                "better_annotator": changes.better_annotator,
            }
        )
    say(
        f"{counted(changes.added, 'document')} added, {changes.deleted:,} deleted in "
        f"{time.monotonic() - start:.0f} s; the index has {counted(built.documents, 'document')} with "
        f"{built.tokens:,} tokens in {amount(size)}"
    )
    if changes.better_annotator:
        say(
            f"the annotator {changes.better_annotator} is installed now and better than the one of this index; "
            f"use it for all documents: thresher index {directory} --rebuild"
        )
    if built.tokens:
        say(f"search it: thresher search {directory} WORD")


@command
def subcorpora(
    directory: Directory,
    name: str = "",
    *,
    where: Annotated[list[str] | None, Many] = None,
    query: str = "",
    delete: Flag = False,
    json: AsJson = False,
) -> None:
    """Name a set of documents, to search only them; without a name, list all.

    Example: thresher subcorpora czech news --where doc_host='.*news.*'
    Example: thresher subcorpora czech new --where doc_year='>=2020'
    Example: thresher search czech jazyk --within news

    Parameters
    ----------
    name
        Name of the subcorpus.
    where
        Conditions on documents: attribute=CONDITION, with an expression, !=expression or a bound such as >=2005.
    query
        Query in CQL that must have a hit in the document.
    delete
        Delete the subcorpus; its documents stay in the index.
    """
    if (where or query or delete) and not name:
        raise UsageError(
            "the name of a subcorpus is missing; for example: thresher subcorpora DIR news --where …"
        )
    if bad := next((part for part in where or () if "=" not in part.replace(">", "=").replace("<", "=")), ""):
        raise UsageError(f"--where must be ATTRIBUTE=CONDITION, got {bad!r}; for example doc_host='.*news.*'")
    corpus = open_corpus(directory)
    if delete:
        corpus.delete_subcorpus(name)
        say(f"the subcorpus {name} is deleted")
    elif name:
        conditions = {key: value for key, _, value in (part.partition("=") for part in where or ())}
        made = corpus.define_subcorpus(name, where=conditions or None, query=query)
        say(f"the subcorpus {name} has {counted(len(made.keys), 'document')}")
    if not name or json:
        none = f"{directory} has no subcorpora; define one: thresher subcorpora {directory} NAME --where doc_host=…"
        publish(corpus.subcorpora(), OutputOptions(json=True) if json else DEFAULT_OUTPUT, none)
