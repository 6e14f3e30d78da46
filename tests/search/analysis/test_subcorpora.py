"""A subcorpus is a set of documents that has a name, and stays that set."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from support.corpora.query_corpora import Corpus, random_corpus
from thresher.search.analysis import AnalysisError
from thresher.search.analysis.subcorpora import define, delete, load, meets, names, scope, subcorpora
from thresher.search.index.manifest import writing
from thresher.search.index.writer import delete as delete_documents
from thresher.search.index.writer import tidy
from thresher.search.searcher import Index


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return random_corpus(tmp_path, 8)


def test_documents_are_chosen_by_all_conditions_on_their_attributes(corpus: Corpus) -> None:
    documents = corpus.documents
    defined = define(corpus.index, "a", where={"doc_year": ">=2004", "doc_site": r".*\.(org|com)"})
    chosen = documents[(documents.doc_year >= "2004") & documents.doc_site.str.endswith(("org", "com"))]
    assert list(defined.keys) == sorted(chosen.index)
    assert load(corpus.index, "a") == defined
    assert scope(corpus.index, "a").tokens == corpus.tokens.doc.isin(defined.keys).sum()


def test_documents_are_chosen_by_their_hits(corpus: Corpus) -> None:
    defined = define(corpus.index, "b", where={"doc_year": "!=1999"}, query='"bs" | "cs"')
    tokens = corpus.tokens
    chosen = tokens[tokens.word.isin(["bs", "cs"]) & (tokens.doc_year != "1999")].doc
    assert list(defined.keys) == sorted(set(chosen))
    assert defined.definition.query == '"bs" | "cs"'


def test_a_subcorpus_survives_merges_of_segments_and_loses_deleted_documents(
    tmp_path: Path,
) -> None:
    corpus = random_corpus(tmp_path, deleted=False)
    defined = define(corpus.index, "c", where={"doc_year": "2005|2010"})
    gone, *left = defined.keys
    with writing(tmp_path) as writer:
        tidy(writer, all_of_them=True)
        delete_documents(writer, [gone])
    now = scope(Index(tmp_path), "c")
    assert now.documents == len(left)
    assert now.tokens == corpus.tokens.doc.isin(left).sum()


def test_subcorpora_are_listed_replaced_and_forgotten(corpus: Corpus) -> None:
    assert subcorpora(corpus.index).records() == []
    define(corpus.index, "one", where={"doc_year": "1999"})
    define(corpus.index, "all")
    define(corpus.index, "one", where={"doc_year": "2004"})
    everything, one = subcorpora(corpus.index).records()
    assert (everything["name"], everything["documents"]) == ("all", len(corpus.documents))
    assert everything["tokens"] == len(corpus.tokens)
    assert (one["where"], one["documents"]) == (
        '{"doc_year":"2004"}',
        (corpus.documents.doc_year == "2004").sum(),
    )
    delete(corpus.index, "all")
    assert names(corpus.index) == ["one"]
    with pytest.raises(AnalysisError, match="unknown subcorpus 'all'; choose one of one"):
        delete(corpus.index, "all")


def test_bounds_compare_numbers_as_numbers_and_the_rest_by_bytes() -> None:
    values = pa.array(["9", "10", "10.5", "", "2005-03-01", "ten"])
    assert meets(values, ">=10").tolist() == [False, True, True, False, False, False]
    assert meets(values, "< 10.5").tolist() == [True, True, False, False, False, False]
    assert meets(values, ">2005-02").tolist() == [True, False, False, False, True, True]
    assert meets(values, "!=1.*").tolist() == [True, False, False, True, True, True]
    assert meets(values, "[0-9]+").tolist() == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("name", "where", "message"),
    [
        ("../x", {}, "invalid name of a subcorpus"),
        ("", {}, "invalid name of a subcorpus"),
        (
            "x",
            {"doc_colour": "red"},
            "unknown attribute of documents 'doc_colour'; choose one of doc_site",
        ),
        ("x", {"s_id": "1"}, "unknown attribute of documents 's_id'"),
        ("x", {"doc_year": "("}, "invalid regular expression"),
    ],
)
def test_a_faulty_definition_is_refused(
    corpus: Corpus, name: str, where: dict[str, str], message: str
) -> None:
    with pytest.raises(AnalysisError, match=message):
        define(corpus.index, name, where=where)
    assert names(corpus.index) == []


def test_a_search_that_did_not_end_defines_nothing(corpus: Corpus) -> None:
    with pytest.raises(AnalysisError, match="allow more seconds"):
        define(corpus.index, "x", query="[]", seconds=0)
    assert names(corpus.index) == []


def test_a_damaged_subcorpus_is_an_error(corpus: Corpus) -> None:
    define(corpus.index, "x")
    (corpus.index.directory / "index" / "subcorpora" / "x.json").write_text("{")
    with pytest.raises(AnalysisError, match="define the subcorpus again"):
        scope(corpus.index, "x")
