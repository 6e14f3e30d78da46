"""Commands without a query: words, ngrams, keywords, retrieve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import Parameter

from thresher.cli.app import Directory, Many
from thresher.cli.commands.searching.options import (
    DEFAULT_OUTPUT,
    Attribute,
    Limit,
    Meta,
    Minimum,
    OutputOptions,
    Within,
    bounds,
    command,
    given,
    open_corpus,
    publish,
)
from thresher.errors import UsageError


@command
def words(
    directory: Directory,
    *,
    attribute: Attribute = "",
    matching: str = "",
    flags: str = "",
    sort: Literal["count", "documents", "arf"] = "count",
    spread: bool = True,
    within: Within = "",
    minimum: Minimum = None,
    limit: Limit = None,
    to: OutputOptions = DEFAULT_OUTPUT,
) -> None:
    """List the words of a corpus by frequency.

    Example: thresher words czech --attribute lemma --limit 5000 -o lemmas.csv
    Example: thresher words czech --matching '.*ovat' --minimum 10

    Parameters
    ----------
    matching
        Regular expression that the whole word must match.
    flags
        Flags of the expression: c (any case), d (any accents), l (literal).
    sort
        Column to sort by: count, documents or arf (average reduced frequency).
    spread
        Count documents and average reduced frequency, too, which takes a pass over all tokens.
    """
    table = open_corpus(directory).words(
        attribute=attribute, matching=matching, flags=flags, sort=sort, spread=spread, within=within or None,
        **bounds(minimum, limit, to),
    )  # fmt: skip
    publish(table, to)


@command
def ngrams(
    directory: Directory,
    n: int = 2,
    *,
    attribute: Attribute = "",
    structure: str = "s",
    within: Within = "",
    minimum: Minimum = None,
    limit: Limit = None,
    to: OutputOptions = DEFAULT_OUTPUT,
) -> None:
    """List sequences of n words by frequency.

    Example: thresher ngrams czech 3 --minimum 5

    Parameters
    ----------
    n
        Number of words, 2 to 6.
    structure
        Structure whose borders a sequence must not cross.
    """
    table = open_corpus(directory).ngrams(
        n, attribute=attribute, structure=structure, within=within or None,
        **bounds(minimum, limit, to),
    )  # fmt: skip
    publish(table, to)


@command
def keywords(
    directory: Directory,
    *,
    against: str = "",
    within: Within = "",
    attribute: Attribute = "",
    smoothing: float = 1.0,
    sort: Literal["keyness", "log_likelihood", "log_ratio", "percent_difference"] = "keyness",
    minimum: Minimum = None,
    limit: Limit = None,
    to: OutputOptions = DEFAULT_OUTPUT,
) -> None:
    """List words that are more frequent here than elsewhere.

    Example: thresher keywords czech --within news
    Example: thresher keywords czech --against ../slovak --limit 50

    Parameters
    ----------
    against
        Subcorpus, or directory of another corpus, to compare with; if left out, the documents outside --within.
    smoothing
        Number added to both frequencies per million; a larger one favours frequent words.
    sort
        Measure to sort by.
    """
    table = open_corpus(directory).keywords(
        against or None, within=within or None, attribute=attribute, smoothing=smoothing, sort=sort,
        **bounds(minimum, limit, to),
    )  # fmt: skip
    publish(table, to)


@command
def retrieve(
    directory: Directory,
    words: Annotated[list[str], Parameter(negative=())],
    *,
    unit: Literal["doc", "p", "s"] = "doc",
    match: Literal["all", "any"] = "all",
    rank: Annotated[list[str] | None, Many] = None,
    meta: Meta = None,
    within: Within = "",
    limit: Limit = None,
    longest: int = 100,
    to: OutputOptions = DEFAULT_OUTPUT,
) -> None:
    """Show the best documents, paragraphs or sentences that have some words.

    Example: thresher retrieve czech uhelný důl --unit p
    Example: thresher retrieve czech důl --rank quality=1 rarity=0.5

    Parameters
    ----------
    words
        Words in any case, or tokens in CQL, as '[lemma="důl"]'.
    unit
        Structure to show: documents, paragraphs or sentences.
    match
        Whether a unit must have all words or any of them.
    rank
        Weights of quality, authority, recency, length and rarity.
    longest
        Tokens of a unit to show.
    """
    asked = " ".join(words).split() if not any(word.startswith(("[", '"', "'")) for word in words) else words
    shown: Sequence[str] | None = meta or (None if to.is_for_people else ())
    table = open_corpus(directory).retrieve(
        asked, unit=unit, match=match, rank=weights_of(rank), within=within or None, longest=longest, meta=shown,
        **given(limit=limit),
    )  # fmt: skip
    publish(table, to)


def weights_of(rank: list[str] | None) -> dict[str, float] | None:
    """Return the weights in `--rank quality=1 rarity`."""
    if not rank:
        return None
    pairs = [part.partition("=") for part in rank]
    try:
        return {name: float(weight or 1) for name, _, weight in pairs}
    except ValueError:
        raise UsageError(
            f"--rank takes names with numbers, got {' '.join(rank)}; try --rank quality=1 rarity=0.5"
        ) from None
