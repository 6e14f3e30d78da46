"""A subcorpus is a set of documents that has a name, and stays that set."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from query_corpora import Corpus, random_corpus
from thresher.query.found import Index
from thresher.query.functions import FunctionError
from thresher.query.functions.subcorpora import define, delete, load, meets, names, scope, subcorpora
from thresher.query.index import delete as delete_documents
from thresher.query.index import tidy
from thresher.query.manifest import writing


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


def test_documents_are_chosen_by_what_is_found_in_them(corpus: Corpus) -> None:
    defined = define(corpus.index, "b", where={"doc_year": "!=1999"}, query='"bs" | "cs"')
    tokens = corpus.tokens
    chosen = tokens[tokens.word.isin(["bs", "cs"]) & (tokens.doc_year != "1999")].doc
    assert list(defined.keys) == sorted(set(chosen))
    assert defined.definition.query == '"bs" | "cs"'


def test_a_subcorpus_stays_the_same_when_segments_are_merged_and_loses_what_is_deleted(
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
    with pytest.raises(FunctionError, match="no subcorpus all; there is one"):
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
        ("../x", {}, "no name for a subcorpus"),
        ("", {}, "no name for a subcorpus"),
        ("x", {"doc_colour": "red"}, "no attribute doc_colour; there are doc_site, doc_year"),
        ("x", {"s_id": "1"}, "no attribute s_id"),
        ("x", {"doc_year": "("}, "is no expression"),
    ],
)
def test_what_defines_nothing_is_told(corpus: Corpus, name: str, where: dict[str, str], message: str) -> None:
    with pytest.raises(FunctionError, match=message):
        define(corpus.index, name, where=where)
    assert names(corpus.index) == []


def test_a_search_that_did_not_end_defines_nothing(corpus: Corpus) -> None:
    with pytest.raises(FunctionError, match="allow more seconds"):
        define(corpus.index, "x", query="[]", seconds=-1)
    assert names(corpus.index) == []


def test_a_damaged_subcorpus_is_told(corpus: Corpus) -> None:
    define(corpus.index, "x")
    (corpus.index.directory / "index" / "subcorpora" / "x.json").write_text("{")
    with pytest.raises(FunctionError, match="define the subcorpus again"):
        scope(corpus.index, "x")
