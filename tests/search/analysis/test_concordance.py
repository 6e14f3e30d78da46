"""Concordances show the requested hits in their context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.corpora.query_corpora import Corpus, random_corpus
from thresher.search.analysis import AnalysisError, ResultTable
from thresher.search.analysis.concordance import kwic
from thresher.search.analysis.subcorpora import define
from thresher.search.index.manifest import writing
from thresher.search.index.writer import tidy
from thresher.search.searcher import Index, RunningSearch

QUERY = '[pos="N"] [pos="V"]'


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = random_corpus(tmp_path_factory.mktemp("corpus"), 5)
    define(made.index, "late", where={"doc_year": ">=2005"})
    return made


@pytest.fixture(autouse=True, params=[1, 1 << 20])
def much_is_little(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make hits come in small parts, with memory released at once or only at the end."""
    monkeypatch.setattr("thresher.search.execution.segment_search.RANGE_SIZES", (64,))
    monkeypatch.setattr("thresher.search.analysis.concordance.HELD_LINES", request.param)


def lines(corpus: Corpus, query: str = QUERY, **options: Any) -> list[dict[str, Any]]:
    """Return the lines of a concordance without the positions of their hits."""
    return placeless(kwic(corpus.index, corpus.index.search(query), **{"size": None, **options}))


def placeless(table: ResultTable) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name not in ("first", "last")}
        for row in table.records()
    ]


def line(corpus: Corpus, number: int, hit: tuple[int, int], context: int | str) -> dict[str, Any]:
    """Return a line, as a loop over all tokens would make it."""
    first, last = hit
    words, documents = corpus.tokens.word.tolist(), corpus.tokens.doc.tolist()
    owners = corpus.tokens[context].tolist() if isinstance(context, str) else documents

    def text(places: range, end: int) -> str:
        near = [place for place in places if owners[place] == owners[end] is not None]
        if isinstance(context, int):
            near = [place for place in near if abs(place - end) <= context]
        return " ".join(words[place] for place in near)

    return {
        "number": number,
        "document": documents[first],
        "left": text(range(first), first),
        "match": " ".join(words[first : last + 1]),
        "right": text(range(last + 1, len(words)), last),
    }


def test_a_line_has_the_positions_of_its_hit(corpus: Corpus) -> None:
    search = corpus.index.search(QUERY)
    rows = kwic(corpus.index, search, size=None).records()
    assert [(row["first"], row["last"]) for row in rows] == list(search.spans())


@pytest.mark.parametrize("context", [8, 2, 0, "s", "p", "doc"])
def test_a_line_has_context_up_to_the_borders_of_its_document_or_structure(
    corpus: Corpus, context: int | str
) -> None:
    expected = [line(corpus, number, hit, context) for number, hit in enumerate(corpus.hits(QUERY), 1)]
    assert lines(corpus, context=context) == expected


def test_a_line_has_attributes_of_its_document_and_tokens(corpus: Corpus) -> None:
    rows = lines(corpus, meta=["doc_year", "doc_site", "p_kind"], attributes=["pos", "lemma"])
    for row, (first, last) in zip(rows, corpus.hits(QUERY), strict=True):
        token = corpus.tokens.iloc[first]
        assert [row[name] for name in ("doc_year", "doc_site", "p_kind")] == [
            token.doc_year, token.doc_site, token.p_kind,
        ]  # fmt: skip
        assert row["match_pos"] == "N V"
        assert row["match_lemma"] == " ".join(corpus.tokens.lemma[first : last + 1])


def test_a_page_asks_for_no_more_hits_than_it_takes(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    first = RunningSearch.first
    monkeypatch.setattr(
        RunningSearch, "first", lambda search, count: asked.append(count) or first(search, count)
    )
    monkeypatch.setattr(RunningSearch, "hits", lambda _: pytest.fail("all hits were asked for"))
    page = kwic(corpus.index, corpus.index.search(QUERY), page=2, size=5)
    assert asked == [11]
    assert not page.is_whole
    monkeypatch.undo()
    assert placeless(page) == lines(corpus)[5:10]


def test_a_page_states_the_size_of_the_whole_result(corpus: Corpus) -> None:
    total = len(corpus.hits(QUERY))
    search = corpus.index.search(QUERY)
    assert kwic(corpus.index, search, size=None).is_whole
    assert kwic(corpus.index, search, size=total).is_whole
    assert kwic(corpus.index, search, size=5, page=2).stopped == f"hits 6 to 10 of {total}"
    assert kwic(corpus.index, corpus.index.search("[]"), size=5).stopped == "hits 1 to 5; there are more"
    beyond = kwic(corpus.index, search, page=1000)
    assert beyond.records() == []
    assert beyond.stopped == f"no hits on page 1,000, as there are {total:,}"


def sort_key(corpus: Corpus, hit: tuple[int, int], sort: str) -> list[str]:
    tokens, (first, last) = corpus.tokens, hit
    places = {
        "left": [place for place in (first - 1, first - 2, first - 3) if place >= 0],
        "node": [*range(first, last + 1)][:3],
        "right": [place for place in (last + 1, last + 2, last + 3) if place < len(tokens)],
    }[sort]
    end = first if sort == "left" else last
    return [
        tokens.word[place].casefold()
        for place in places
        if sort == "node" or tokens.doc[place] == tokens.doc[end]
    ]


@pytest.mark.parametrize("sort", ["left", "node", "right"])
def test_lines_are_sorted_by_words_in_any_case(corpus: Corpus, sort: str) -> None:
    hits = corpus.hits(QUERY)
    # Equals stay in the order of the corpus.
    expected = sorted(hits, key=lambda hit: sort_key(corpus, hit, sort))
    rows = lines(corpus, sort=sort)
    assert rows == [line(corpus, number, hit, 8) for number, hit in enumerate(expected, 1)]
    assert lines(corpus, sort=sort, page=2, size=4) == rows[4:8]


def test_a_sample_is_the_same_for_the_same_seed_even_after_a_merge(tmp_path: Path) -> None:
    corpus = random_corpus(tmp_path, 5, deleted=False)
    some = kwic(corpus.index, corpus.index.search(QUERY), sample=12, seed=7, size=None)
    assert some.stopped == f"a sample of 12 of {len(corpus.hits(QUERY))} hits"
    unnumbered = [{**row, "number": 0} for row in lines(corpus)]
    assert len(placeless(some)) == 12
    assert all({**row, "number": 0} in unnumbered for row in placeless(some))
    assert lines(corpus, sample=12, seed=7) == placeless(some) != lines(corpus, sample=12, seed=8)
    with writing(tmp_path) as writer:
        tidy(writer, all_of_them=True)
    merged = Index(tmp_path)
    assert len(merged.segments) == 1
    assert kwic(merged, merged.search(QUERY), sample=12, seed=7, size=None).records() == some.records()


def test_a_sample_of_more_than_there_is_is_all(corpus: Corpus) -> None:
    assert lines(corpus, sample=10_000) == lines(corpus)


def test_lines_are_kept_or_dropped_by_tokens_near_them(corpus: Corpus) -> None:
    tokens, hits = corpus.tokens, corpus.hits(QUERY)

    def has_it(hit: tuple[int, int]) -> bool:
        first, last = hit
        left = [p for p in range(max(first - 2, 0), first) if tokens.doc[p] == tokens.doc[first]]
        right = [p for p in range(last + 1, min(last + 4, len(tokens))) if tokens.doc[p] == tokens.doc[last]]
        return any(tokens.lemma[place] == "a" for place in [*left, *right])

    with_it = [line(corpus, number, hit, 8) for number, hit in enumerate(filter(has_it, hits), 1)]
    rest = [hit for hit in hits if not has_it(hit)]
    without_it = [line(corpus, number, hit, 8) for number, hit in enumerate(rest, 1)]
    assert with_it and without_it
    assert lines(corpus, keep='[lemma="a"]', window=(-2, 3)) == with_it
    assert lines(corpus, drop='[lemma="a"]', window=(-2, 3)) == without_it
    # Page by page, more hits are asked for until there are enough that are kept.
    assert lines(corpus, keep='[lemma="a"]', window=(-2, 3), size=2, page=3) == with_it[4:6]
    assert lines(corpus, keep='[lemma="a"]', drop='[lemma="a"]') == []


@pytest.mark.parametrize("structure", ["doc", "p", "s"])
def test_one_hit_is_left_for_each_structure(corpus: Corpus, structure: str) -> None:
    firsts: list[tuple[int, int]] = []
    seen = set()
    for hit in corpus.hits(QUERY):
        owner = corpus.tokens[structure][hit[0]]
        if owner is None or owner not in seen:
            firsts.append(hit)
        seen.add(owner)
    expected = [line(corpus, number, hit, 8) for number, hit in enumerate(firsts, 1)]
    assert lines(corpus, distinct=structure) == expected
    assert lines(corpus, distinct=structure, size=3, page=4) == expected[9:12]


def test_lines_are_from_a_subcorpus(corpus: Corpus) -> None:
    years = corpus.tokens.doc_year.astype(int).to_numpy()
    query = "[]{4}"  # reaches from one document into the next
    inside = [hit for hit in corpus.hits(query) if (years[list(hit)] >= 2005).all()]
    expected = [line(corpus, number, hit, 8) for number, hit in enumerate(inside, 1)]
    assert lines(corpus, query, within="late") == expected
    assert lines(corpus, query, within="late", size=3) == expected[:3]


def test_a_search_can_be_asked_again(corpus: Corpus) -> None:
    search = corpus.index.search(QUERY)
    all_of_them = kwic(corpus.index, search, size=None).records()
    assert len(all_of_them) == search.count() == len(list(search.spans()))
    assert kwic(corpus.index, search, size=None).records() == all_of_them
    assert kwic(corpus.index, search, size=3).records() == all_of_them[:3]
    next(search.stream())  # and then no more of them
    assert search.count() == len(all_of_them)
    assert kwic(corpus.index, search, sort="left", size=None).is_whole


def test_a_search_that_was_stopped_is_not_whole(corpus: Corpus) -> None:
    search = corpus.index.search(QUERY, seconds=None, is_cancelled=lambda: True)
    assert kwic(corpus.index, search).stopped == "the search was cancelled"


def test_options_out_of_range_are_refused(corpus: Corpus) -> None:
    for options, message in (
        ({"page": 0}, "must be at least 1, got 0"),
        ({"sort": "up"}, "unknown order 'up'; choose one of left, node, right"),
        ({"distinct": "q"}, "unknown structure 'q'"),
        ({"context": "q"}, "unknown structure 'q'"),
        ({"within": "none"}, "unknown subcorpus 'none'; choose one of late"),
    ):
        with pytest.raises(AnalysisError, match=message):
            lines(corpus, **options)
    assert np.array_equal([row["number"] for row in lines(corpus, size=4)], [1, 2, 3, 4])
