"""The hits of a query: counts, positions, concordances and the analyses of hits as methods of `Search`.

Analyses are imported when a method is called, since compiled kernels and Arrow take a moment to load.

The examples in this module query a corpus of two documents:

    The old cat sleeps. Cats sleep. (2001)
    An old dog sleeps. (2010)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas

    from thresher.search.analysis.tables import Concordance, ResultTable, Spans
    from thresher.search.cql.ast import Strategy
    from thresher.search.searcher import Index, RunningSearch

# First and last offset in tokens, such as (-5, 5) or "-5,5"; or a structure, such as "s".
Window = tuple[int, int] | str

SECONDS = 60.0  # time limit of a query
ORIGINS = ("doc_url", "doc_id")  # attributes that say where a line comes from; the first that exists is shown


class Search:
    """The hits of a query. Each method evaluates the query; `stopped` says why the last result is incomplete.

    >>> search = corpus.search('[lemma="sleep"]')
    >>> search
    Search('[lemma="sleep"]')
    >>> search.count()
    3
    >>> search.first(2)
    a                The old cat  sleeps  . Cats sleep
    a  The old cat sleeps . Cats  sleep
    2 lines (hits 1 to 2; there are more)

    In a notebook a search shows its first lines.
    """

    def __init__(
        self,
        index: Index,
        cql: str,
        *,
        strategy: Strategy = "standard",
        any_case: bool = False,
        within: str | None = None,
        seconds: float | None = SECONDS,
    ) -> None:
        self.cql = cql
        self.within = within
        self._index = index
        self._options: dict[str, Any] = {"strategy": strategy, "any_case": any_case, "seconds": seconds}
        # Evaluated as far as the first hits, so that an error in the query is raised here.
        self._prepared: RunningSearch | None = index.search(cql, **self._options)
        if within is not None:
            from thresher.search.analysis.subcorpora import load

            load(index, within)
        self._latest: RunningSearch = self._prepared

    def __repr__(self) -> str:
        where = f", within={self.within!r}" if self.within else ""
        return f"Search({self.cql!r}{where})"

    def _repr_html_(self) -> str:
        return self.first()._repr_html_()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the whole concordance as a pandas DataFrame."""
        return self.concordance().to_pandas()

    @property
    def stopped(self) -> str:
        """The reason why the last result is incomplete, or "" if it is complete."""
        return self._latest.stopped

    def count(self, *, keep: str = "", drop: str = "", window: Window = (-5, 5), distinct: str = "") -> int:
        """Return the number of hits, or of the lines that a concordance with the same conditions has.

        >>> corpus.search("old").count(), corpus.search("old").count(keep='"dog"')
        (2, 1)
        """
        from thresher.search.analysis.counts import count

        search = self._start()
        if keep or drop or distinct:
            from thresher.search.analysis.concordance import count_lines

            return count_lines(
                self._index,
                search,
                keep=keep,
                drop=drop,
                window=window,
                distinct=distinct,
                within=self.within,
            )
        if self.within is None:
            return search.count()
        return int(count(self._index, search, within=self.within).records()[0]["hits"])

    def counts(self) -> ResultTable:
        """Return the number of hits with their relative frequency and the number of documents that have one.

        >>> corpus.search("old").counts()
        hits  per_million  documents  tokens
           2    181,818.2          2      11
        1 row
        """
        from thresher.search.analysis.counts import count

        return count(self._index, self._start(), within=self.within)

    def spans(self) -> Spans:
        """Return the first and the last position of every hit, counted over all tokens of the index.

        >>> spans = corpus.search('"old" []').spans()
        >>> spans
        first  last
            1     2
            8     9
        2 rows
        >>> list(spans)
        [(1, 2), (8, 9)]
        """
        from thresher.search.analysis.positions import spans

        return spans(self._index, self._start(), within=self.within)

    def first(self, count: int = 20) -> Concordance:
        """Return the first lines of the concordance as soon as they are found."""
        return self.concordance(size=count)

    def concordance(
        self,
        *,
        context: int | str = 8,
        attributes: Sequence[str] = (),
        meta: Sequence[str] | None = None,
        page: int = 1,
        size: int | None = None,
        sort: Literal["", "left", "node", "right"] = "",
        sort_words: int = 3,
        sample: int | None = None,
        seed: int = 1,
        keep: str = "",
        drop: str = "",
        window: Window = (-5, 5),
        distinct: str = "",
    ) -> Concordance:
        """Return hits with their context, one line for each.

        >>> corpus.search("old").concordance(context=2, meta=["doc_year"])
        2001  The  old  cat sleeps
        2010   An  old  dog sleeps
        2 lines

        Parameters
        ----------
        context
            Number of tokens on either side, or the name of a structure, such as "s".
        attributes
            Attributes of the match that become columns, such as "pos".
        meta
            Attributes of structures that become columns, such as "doc_year"; if None, where the line comes from.
        page
            Page to return, from 1.
        size
            Lines of a page; if None, all lines.
        sort
            Sort by words to the left, to the right or of the match ("node").
        sort_words
            Number of words by which lines are sorted.
        sample
            Return this many lines at random.
        seed
            The same seed gives the same sample.
        keep
            Keep only hits with such a token in the window, as '[lemma="x"]'.
        drop
            Drop hits with such a token in the window.
        window
            Tokens around the hit for `keep` and `drop`, as (-5, 5), or a structure, as "s".
        distinct
            Return one hit for each structure of this name, as "doc".

        Raises
        ------
        AnalysisError
            An attribute or structure does not exist, or a number is less than 1.
        """
        from thresher.search.analysis.concordance import kwic

        return kwic(
            self._index, self._start(), context=context, attributes=attributes,
            meta=origin(self._index) if meta is None else meta, page=page, size=size, sort=sort,
            sort_words=sort_words, sample=sample, seed=seed, keep=keep, drop=drop, window=window,
            distinct=distinct, within=self.within,
        )  # fmt: skip

    def origins(self, lines: Concordance) -> list[str]:
        """Return the host, or the identifier, and the document number of each line of a concordance.

        >>> search = corpus.search("old")
        >>> search.origins(search.first(2))
        ['a #1', 'b #2']
        """
        from thresher.search.analysis.concordance import origins

        return origins(self._index, lines)

    def freq(
        self,
        by: str | tuple[str, str] = "word@node",
        *,
        minimum: int = 1,
        limit: int | None = None,
    ) -> ResultTable:
        """Return the values at a place of the hits with their frequencies; for two places, of each pair.

        Places are written as `lemma@match`, `word@matchend`, `word@node` (the whole match), `pos@match[1]` (one
        token after the first), `word@target` or `doc_year`.

        >>> corpus.search('[lemma="sleep"]').freq("word@match")
        value   count  share  per_million
        sleeps      2  0.667    181,818.2
        sleep       1  0.333     90,909.1
        2 rows
        >>> corpus.search('[lemma="sleep"]').freq(("word@match", "doc_year"), limit=1)
        value1  value2  count
        sleep   2001        1
        1 row (the first 1 of 3 rows)

        Parameters
        ----------
        by
            A place, or a pair of places.
        minimum
            Smallest frequency of a row.
        limit
            Number of rows; if None, all rows.
        """
        from thresher.search.analysis.counts import freq, table

        options: dict[str, Any] = {"within": self.within, "minimum": minimum, "limit": limit}
        if isinstance(by, str):
            return freq(self._index, self._start(), by=by, **options)
        rows, columns = by
        return table(self._index, self._start(), rows=rows, columns=columns, **options)

    def collocates(
        self,
        *,
        attribute: str = "",
        window: Window = (-5, 5),
        minimum: int = 3,
        sort: str = "logdice",
        limit: int | None = 100,
    ) -> ResultTable:
        """Return the values near the hits with measures of association.

        >>> corpus.search("old").collocates(minimum=2, window=(-3, 3)).records()[0]["value"]
        'sleep'

        Parameters
        ----------
        attribute
            Attribute of tokens; if empty, lemma, or word if there are no lemmas.
        window
            Tokens around the hit, as (-5, 5), or a structure, as "s".
        minimum
            Smallest number of occurrences near hits.
        sort
            Measure to sort by: logdice, mi, mi3, t_score, log_likelihood or joint.
        limit
            Number of rows; if None, all rows.
        """
        from thresher.search.analysis.collocations import collocates

        return collocates(
            self._index, self._start(), attribute=attribute, window=window, within=self.within,
            minimum=minimum, sort=sort, limit=limit,
        )  # fmt: skip

    def distribution(
        self, by: str = "doc_year", *, minimum: int = 0, limit: int | None = None
    ) -> ResultTable:
        """Return hits, tokens and relative frequency by an attribute of structures, such as `doc_host`.

        >>> corpus.search("[]").distribution("doc_year")
        value  hits  tokens  per_million
        2001      7       7  1,000,000.0
        2010      4       4  1,000,000.0
        2 rows
        """
        from thresher.search.analysis.counts import distribution

        return distribution(
            self._index, self._start(), by=by, within=self.within, minimum=minimum, limit=limit
        )

    def dispersion(self, *, parts: str | int = "doc") -> ResultTable:
        """Return average reduced frequency, Juilland's D and Gries' DP over documents or equal parts.

        >>> corpus.search("old").dispersion(parts=2)
        hits  documents   arf  parts  parts_with_hits  juilland_d      dp  dp_norm
           2          2  1.73      2                2       0.909  0.0455   0.0833
        1 row
        """
        from thresher.search.analysis.dispersion import dispersion

        return dispersion(self._index, self._start(), parts=parts, within=self.within)

    def _start(self) -> RunningSearch:
        search, self._prepared = self._prepared, None
        self._latest = search or self._index.search(self.cql, **self._options)
        self._latest.renew()  # the query may have been written a while ago
        return self._latest


def origin(index: Index) -> tuple[str, ...]:
    """Return the attribute that says where a document comes from, if the index has one."""
    known = {f"doc_{name}" for name in index.structures.get("doc", ())}
    return tuple(name for name in ORIGINS if name in known)[:1]
