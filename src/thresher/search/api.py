"""The queries of a corpus as methods: searches, wordlists, n-grams, keywords, retrieval and subcorpora.

Parameters have the names of the flags of the command line. Analyses are imported when a method is called, since
compiled kernels and Arrow take a moment to load.

The examples in this module query a corpus of two documents:

    The old cat sleeps. Cats sleep. (2001)
    An old dog sleeps. (2010)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from thresher.search.hits import SECONDS, Search, origin

if TYPE_CHECKING:
    from thresher.search.analysis.subcorpora import Subcorpus
    from thresher.search.analysis.tables import ResultTable
    from thresher.search.cql.ast import Strategy
    from thresher.search.searcher import Index


class CorpusQueries:
    """The queries of a corpus, which must have an index."""

    @property
    def index_reader(self) -> Index:
        """The index as it is now."""
        raise NotImplementedError

    def search(
        self,
        cql: str,
        *,
        strategy: Strategy = "standard",
        any_case: bool = False,
        within: str | None = None,
        seconds: float | None = SECONDS,
    ) -> Search:
        """Return the search for a query in CQL, or for plain words.

        >>> corpus.search('[lemma="old"] [pos="NN.*"]').count(), corpus.search("old dog").count()
        (2, 1)

        Parameters
        ----------
        cql
            The query, such as '[lemma="go" & pos!="N.*"]'; or words, such as "for example".
        strategy
            Strategy that selects among overlapping matches: standard, shortest, longest or traditional, as in CQP.
        any_case
            Ignore the case of all strings.
        within
            Name of a subcorpus.
        seconds
            Time limit of each evaluation; `stopped` says if it was reached.

        Raises
        ------
        CqlError
            The query is not CQL, or names an attribute that the index does not have.
        """
        return Search(
            self.index_reader, cql, strategy=strategy, any_case=any_case, within=within, seconds=seconds
        )

    def words(
        self,
        *,
        attribute: str = "",
        matching: str = "",
        flags: str = "",
        within: str | None = None,
        minimum: int = 1,
        sort: str = "count",
        limit: int | None = 1000,
        spread: bool = True,
    ) -> ResultTable:
        """Return the values of an attribute with count, number of documents and average reduced frequency.

        >>> corpus.words(attribute="lemma", matching="s.*")
        value  count  per_million  documents   arf
        sleep      3    272,727.3          2  2.82
        1 row

        Parameters
        ----------
        attribute
            Attribute of tokens; if empty, word.
        matching
            Regular expression that a whole value must match.
        flags
            Flags of the expression: c (any case), d (any accents), l (literal).
        within
            Name of a subcorpus.
        minimum
            Smallest frequency of a row.
        sort
            Column to sort by: count, documents or arf.
        limit
            Number of rows; if None, all rows.
        spread
            Count documents and average reduced frequency, too, which takes a pass over all tokens.
        """
        from thresher.search.analysis.wordlists import words

        return words(
            self.index_reader, attribute=attribute, matching=matching, flags=flags, within=within, minimum=minimum,
            sort=sort, limit=limit, spread=spread,
        )  # fmt: skip

    def ngrams(
        self,
        n: int = 2,
        *,
        attribute: str = "",
        structure: str = "s",
        within: str | None = None,
        minimum: int = 2,
        limit: int | None = 1000,
    ) -> ResultTable:
        """Return sequences of n values with their counts; none crosses the border of a structure.

        >>> corpus.ngrams(2, attribute="pos")
        value    count  per_million
        AJ0 NN1      2    181,818.2
        AT0 AJ0      2    181,818.2
        NN1 VVZ      2    181,818.2
        3 rows
        """
        from thresher.search.analysis.ngrams import ngrams

        return ngrams(
            self.index_reader, n=n, attribute=attribute, structure=structure, within=within, minimum=minimum,
            limit=limit,
        )  # fmt: skip

    def keywords(
        self,
        against: str | Path | CorpusQueries | None = None,
        *,
        within: str | None = None,
        attribute: str = "",
        smoothing: float = 1.0,
        minimum: int = 1,
        sort: str = "keyness",
        limit: int | None = 100,
    ) -> ResultTable:
        """Return values that are more frequent here than in another corpus or subcorpus.

        Parameters
        ----------
        against
            Name of a subcorpus, directory of another corpus, or a corpus; if None, the documents outside `within`.
        within
            Name of the subcorpus whose keywords are returned; if None, of all documents.
        attribute
            Attribute of tokens; if empty, lemma, or word if there are no lemmas.
        smoothing
            Number added to both frequencies per million; the larger it is, the more frequent are the keywords.
        minimum
            Smallest frequency of a row.
        sort
            Measure to sort by: keyness, log_likelihood, log_ratio or percent_difference.
        limit
            Number of rows; if None, all rows.
        """
        from thresher.search.analysis.subcorpora import reference_of
        from thresher.search.analysis.wordlists import keywords

        index = self.index_reader
        reference = against.index_reader if isinstance(against, CorpusQueries) else None
        name: str | None = None
        if isinstance(against, str | Path):
            reference, name = reference_of(index, against)
        return keywords(
            index, reference=reference, against=name, within=within, attribute=attribute,
            smoothing=smoothing, minimum=minimum, sort=sort, limit=limit,
        )  # fmt: skip

    def retrieve(
        self,
        words: str | Sequence[str],
        *,
        unit: str = "doc",
        match: Literal["all", "any"] = "all",
        rank: Mapping[str, float] | None = None,
        meta: Sequence[str] | None = None,
        within: str | None = None,
        limit: int | None = 10,
        longest: int = 100,
    ) -> ResultTable:
        """Return the best documents, paragraphs or sentences that have all words, or any.

        >>> corpus.retrieve("old dog", unit="s").records()[0]["text"]
        'An old dog sleeps'

        Parameters
        ----------
        words
            Words with spaces between them, or a list of words and tokens in CQL.
        unit
            Structure to return: "doc", "p" or "s".
        match
            Whether a unit must have all words or any of them.
        rank
            Weights of quality, authority, recency, length and rarity; rarity alone if None.
        meta
            Attributes of structures that become columns; if None, where the unit comes from.
        within
            Name of a subcorpus.
        limit
            Number of rows; if None, all rows.
        longest
            Number of tokens to return of a unit.
        """
        from thresher.search.analysis.retrieval import retrieve

        index = self.index_reader
        return retrieve(
            index, words=words.split() if isinstance(words, str) else words, unit=unit, match=match,
            weights=rank, meta=origin(index) if meta is None else meta, within=within, limit=limit,
            longest=longest,
        )  # fmt: skip

    def subcorpora(self) -> ResultTable:
        """Return the subcorpora with their sizes and definitions."""
        from thresher.search.analysis.subcorpora import subcorpora

        return subcorpora(self.index_reader)

    def define_subcorpus(
        self, name: str, *, where: Mapping[str, str] | None = None, query: str = ""
    ) -> Subcorpus:
        """Save the documents that meet conditions as a subcorpus, whose name is then a value of `within`.

        >>> made = corpus.define_subcorpus("new", where={"doc_year": ">=2005"})
        >>> corpus.search("old", within="new").count()
        1

        Parameters
        ----------
        name
            Name of the subcorpus; an older one of that name is replaced.
        where
            Conditions by attribute: an expression, one that must not match ("!=forum"), or a bound (">=2005").
        query
            A query in CQL that must have a hit in the document.
        """
        from thresher.search.analysis.subcorpora import define

        return define(self.index_reader, name, where=where, query=query)

    def delete_subcorpus(self, name: str) -> None:
        """Delete a subcorpus; its documents stay in the index."""
        from thresher.search.analysis.subcorpora import delete

        delete(self.index_reader, name)
