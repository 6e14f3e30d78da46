"""Queries as methods of a corpus: the numbers of the analyses, in tables that people and libraries can read."""

from __future__ import annotations

import sys
from pathlib import Path

import polars
import pytest

from support.corpora.query_corpora import Corpus, random_corpus
from thresher.search.analysis import FUNCTIONS, AnalysisError, ResultTable
from thresher.search.api import CorpusQueries
from thresher.search.cql.lexer import CqlError
from thresher.search.searcher import Index

QUERY = '[lemma="a"] []'


class IndexedCorpus(CorpusQueries):
    """A corpus that is just its index."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @property
    def index_reader(self) -> Index:
        return self._index


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return random_corpus(tmp_path_factory.mktemp("corpus"), 4)


@pytest.fixture(scope="module")
def corpus(made: Corpus) -> IndexedCorpus:
    corpus = IndexedCorpus(made.index)
    corpus.define_subcorpus("late", where={"doc_year": ">=2005"})
    return corpus


def of_function(made: Corpus, name: str, query: str = QUERY, **options: object) -> ResultTable:
    function = FUNCTIONS[name]
    search = made.index.search(query) if function.needs_query else None
    return function.run(made.index, search, **options)


def test_hits_are_counted_and_placed_as_often_as_they_are_asked_for(
    made: Corpus, corpus: IndexedCorpus
) -> None:
    search = corpus.search(QUERY)
    expected = list(made.index.search(QUERY).spans())
    for _ in range(2):
        assert search.count() == len(expected) > 0
        assert list(search.spans()) == expected


def test_the_methods_of_a_search_give_the_tables_of_the_analyses(made: Corpus, corpus: IndexedCorpus) -> None:
    search = corpus.search(QUERY)
    pairs = [
        (search.freq("lemma@matchend"), of_function(made, "freq", by="lemma@matchend")),
        (
            search.freq(("word@match", "doc_year")),
            of_function(made, "table", rows="word@match", columns="doc_year"),
        ),
        (
            search.collocates(window=(-2, 2), minimum=1),
            of_function(made, "collocates", window=(-2, 2), minimum=1),
        ),
        (search.distribution("doc_year"), of_function(made, "distribution", by="doc_year")),
        (search.dispersion(), of_function(made, "dispersion")),
        (search.concordance(meta=(), sort="left"), of_function(made, "kwic", size=None, sort="left")),
    ]
    for found, expected in pairs:
        assert found.records() == expected.records() != []


def test_the_methods_of_a_corpus_give_the_tables_of_the_analyses(made: Corpus, corpus: IndexedCorpus) -> None:
    pairs = [
        (corpus.words(matching="a.*"), of_function(made, "words", matching="a.*")),
        (corpus.ngrams(2), of_function(made, "ngrams", n=2)),
        (corpus.keywords(within="late"), of_function(made, "keywords", within="late")),
        (corpus.keywords("late"), of_function(made, "keywords", against="late")),
        (corpus.keywords(corpus, within="late"), of_function(made, "keywords", against=None, within="late",
         reference=made.index)),
        (corpus.retrieve("a b", meta=()), of_function(made, "retrieve", words=["a", "b"])),
        (corpus.subcorpora(), of_function(made, "subcorpora")),
    ]  # fmt: skip
    for found, expected in pairs:
        assert found.records() == expected.records() != []


def test_a_search_within_a_subcorpus_stays_in_it(made: Corpus, corpus: IndexedCorpus) -> None:
    search = corpus.search(QUERY, within="late")
    expected = of_function(made, "count", within="late").records()[0]["hits"]
    assert 0 < search.count() == len(list(search.spans())) == expected < corpus.search(QUERY).count()
    years = {line["doc_year"] for line in search.concordance(meta=["doc_year"])}
    assert years == {"2005", "2010"}


def test_the_first_lines_are_lines(corpus: IndexedCorpus) -> None:
    lines = corpus.search(QUERY).first(3)
    assert len(lines) == 3
    assert [line["number"] for line in lines] == [1, 2, 3]
    assert all(line["match"] for line in lines)


def test_mistakes_are_errors_before_a_method_is_called(corpus: IndexedCorpus) -> None:
    with pytest.raises(CqlError):
        corpus.search('[word="a"')
    with pytest.raises(CqlError, match="colour"):
        corpus.search('[colour="red"]')
    with pytest.raises(AnalysisError, match="unknown subcorpus 'early'"):
        corpus.search(QUERY, within="early")
    with pytest.raises(AnalysisError, match="neither a subcorpus nor the directory"):
        corpus.keywords("nowhere")


def test_a_result_is_readable_at_a_prompt_and_in_a_notebook(corpus: IndexedCorpus) -> None:
    table = corpus.search(QUERY).freq("word@match", limit=2)
    header, *rows, summary = repr(table).splitlines()
    assert header.split() == ["value", "count", "share", "per_million"]
    assert len(rows) == 2 and summary.startswith("2 rows (the first 2 of")
    assert table._repr_html_().count("<tr>") == 3

    lines = corpus.search(QUERY).concordance(meta=["doc_year"], size=2)
    first, second, summary = repr(lines).splitlines()
    matches = [line["match"] for line in lines]
    assert first.index(matches[0]) == second.index(matches[1])
    assert first.startswith(lines.records()[0]["doc_year"])
    assert summary.startswith("2 lines")
    assert f"<b>{matches[0]}</b>" in lines._repr_html_()


def test_text_of_a_corpus_cannot_be_markup_in_a_notebook() -> None:
    import pyarrow as pa

    table = ResultTable(pa.table({"value": ["<script>", "\x1b[31m"]}))
    assert "<script>" not in table._repr_html_() and "&lt;script&gt;" in table._repr_html_()
    assert "\x1b" not in repr(table)


def test_other_libraries_take_a_result_as_it_is(corpus: IndexedCorpus) -> None:
    table = corpus.words()
    assert polars.DataFrame(table).to_dicts() == table.records()
    assert table.to_pandas().to_dict("records") == table.records()


def test_a_missing_pandas_is_named_with_the_command_that_installs_it(
    corpus: IndexedCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = corpus.words()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AnalysisError, match="pip install pandas"):
        table.to_pandas()


def test_an_open_corpus_answers_queries(tmp_path: Path) -> None:
    import thresher

    made = random_corpus(tmp_path, 4)
    (tmp_path / "corpus.toml").write_text('language = "cs"\n')
    corpus = thresher.open(tmp_path)
    assert corpus.search(QUERY).count() == made.index.search(QUERY).count()


def test_a_search_shows_its_first_lines_in_a_notebook(corpus: IndexedCorpus) -> None:
    search = corpus.search(QUERY)
    assert search._repr_html_() == search.first()._repr_html_()
    assert len(search.to_pandas()) == search.count()


def test_spans_are_a_table_and_pairs(corpus: IndexedCorpus) -> None:
    spans = corpus.search(QUERY).spans()
    assert spans.columns == ("first", "last")
    assert list(spans) == [(row["first"], row["last"]) for row in spans.records()]
    assert repr(spans).splitlines()[0].split() == ["first", "last"]
