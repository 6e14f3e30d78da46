"""Flags of `search` that became commands. They work for one more release, with a warning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from thresher.cli.app import say
from thresher.cli.commands.searching.options import (
    MatchOptions,
    OutputOptions,
    given,
    open_corpus,
    open_search,
    publish,
)
from thresher.cli.commands.searching.wordlists import weights_of
from thresher.errors import UsageError

if TYPE_CHECKING:
    from thresher.search.analysis import ResultTable

HiddenText = Annotated[str, Parameter(show=False)]
HiddenFlag = Annotated[bool, Parameter(show=False, negative=())]
HiddenNumber = Annotated[int | None, Parameter(show=False)]


@Parameter(name="*")
@dataclass(frozen=True)
class OldFlags:
    """Flags for analyses and their options that `search` had."""

    freq: HiddenText = ""
    by: HiddenText = ""
    collocates: HiddenFlag = False
    distribution: HiddenText = ""
    dispersion: HiddenFlag = False
    words: HiddenFlag = False
    ngrams: HiddenNumber = None
    keywords: HiddenFlag = False
    retrieve: HiddenText = ""
    attribute: HiddenText = ""
    matching: HiddenText = ""
    unit: HiddenText = "doc"
    rank: Annotated[list[str] | None, Parameter(show=False, consume_multiple=True, negative=())] = None
    against: HiddenText = ""
    minimum: HiddenNumber = None
    limit: HiddenNumber = None


NO_OLD_FLAGS = OldFlags()
ANALYSES = ("freq", "collocates", "distribution", "dispersion", "words", "ngrams", "keywords", "retrieve")
OPTIONS = {
    "by": "freq",
    "attribute": "collocates, words, ngrams and keywords",
    "matching": "words",
    "rank": "retrieve",
    "against": "keywords",
    "minimum": "freq, collocates, words, ngrams and keywords",
    "limit": "freq, collocates, words, ngrams, keywords and retrieve",
}


def run(
    directory: Path,
    query: list[str] | None,
    old: OldFlags,
    window: str,
    meta: list[str] | None,
    matching: MatchOptions,
    to: OutputOptions,
) -> bool:
    """Run the analysis of an old flag; return False if none was given."""
    asked = [name for name in ANALYSES if getattr(old, name)]
    if len(asked) > 1:
        flags = " and ".join(f"--{name}" for name in asked)
        raise UsageError(f"{flags} exclude each other; run a command for each, such as thresher {asked[0]}")
    if not asked:
        if misplaced := next((name for name in OPTIONS if getattr(old, name)), None):
            raise UsageError(f"--{misplaced} is an option of thresher {OPTIONS[misplaced]}")
        return False
    (name,) = asked
    say(
        f"search --{name} is deprecated and will be removed; use: thresher {name} (see thresher {name} --help)"
    )
    publish(_table(name, directory, query, old, window, meta, matching), to)
    return True


def _table(
    name: str,
    directory: Path,
    query: list[str] | None,
    old: OldFlags,
    window: str,
    meta: list[str] | None,
    matching: MatchOptions,
) -> ResultTable:
    attribute, within = old.attribute, matching.within or None
    limits: dict[str, Any] = given(minimum=old.minimum, limit=old.limit)
    if name in ("freq", "collocates", "distribution", "dispersion"):
        search = open_search(directory, query, matching)
        of_hits: dict[str, Callable[[], ResultTable]] = {
            "freq": lambda: search.freq((old.freq, old.by) if old.by else old.freq, **limits),
            "collocates": lambda: search.collocates(attribute=attribute, window=window, **limits),
            "distribution": lambda: search.distribution(old.distribution, **limits),
            "dispersion": search.dispersion,
        }
        return of_hits[name]()
    corpus = open_corpus(directory)
    of_corpus: dict[str, Callable[[], ResultTable]] = {
        "words": lambda: corpus.words(
            attribute=attribute, matching=old.matching, within=within, **limits
        ),
        "ngrams": lambda: corpus.ngrams(old.ngrams or 2, attribute=attribute, within=within, **limits),
        "keywords": lambda: corpus.keywords(old.against or None, attribute=attribute, within=within, **limits),
        "retrieve": lambda: corpus.retrieve(
            old.retrieve, unit=old.unit, rank=weights_of(old.rank), meta=meta or (), within=within,
            **given(limit=old.limit),
        ),
    }  # fmt: skip
    return of_corpus[name]()
