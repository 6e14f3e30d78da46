"""Retrieval finds the best units, as scoring all of them would."""

from __future__ import annotations

from math import log
from pathlib import Path

import pandas as pd
import pytest

from support.corpora.query_corpora import Corpus, random_corpus
from thresher.search.analysis import AnalysisError, retrieval
from thresher.search.analysis.retrieval import UnitRetriever, retrieve
from thresher.search.analysis.subcorpora import define
from thresher.search.cql.lexer import CqlError
from thresher.search.index.segment_builder import IndexDocument
from thresher.search.index.writer import build
from thresher.search.searcher import Index


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = random_corpus(tmp_path_factory.mktemp("corpus"), 6, documents=60, order="quality", run_tokens=300)
    define(made.index, "late", where={"doc_year": ">=2005"})
    return made


def ranks(corpus: Corpus) -> pd.DataFrame:
    """Return the share of documents that have less, by document and dimension."""
    documents = corpus.documents[["quality", "recency"]].astype("float32")
    documents["length"] = corpus.tokens.groupby("doc").size()
    return documents.apply(lambda column: column.map(lambda one: (column < one).sum() / (len(column) - 1)))


def best(
    corpus: Corpus, words: list[str], unit: str, match: str, weights: dict[str, float], within: str | None
) -> list[tuple[float, int, int]]:
    """Scores, documents and first places of all units that have the words, the best first."""
    tokens = corpus.tokens
    if within:
        tokens = tokens[tokens.doc_year.astype(int) >= 2005]
    units = tokens[tokens[unit].notna()].groupby(unit)
    has = {word: units.word.agg(lambda texts, word=word: (texts.str.lower() == word).any()) for word in words}
    idf = {word: log(len(units) / max(has[word].sum(), 1)) for word in words}
    found, rank = [], ranks(corpus)
    for name, some in units:
        there = [word for word in words if has[word][name]]
        if len(there) == len(words) or (match == "any" and there):
            key = some.doc.iloc[0]
            score = sum(weight * rank[one][key] for one, weight in weights.items() if one != "rarity")
            score += weights.get("rarity", 0) * sum(idf[word] for word in there)
            found.append((-round(score, 9), int(some.place.iloc[0]), key))
    return [(-score, key, place) for score, place, key in sorted(found)]


WEIGHTS = [
    {"quality": 1.0},
    {"recency": 1.0, "quality": 0.37},
    {"length": -1.0, "recency": 0.3},
    {"rarity": 1.0},
    {"rarity": 0.2, "recency": 2.0},
]


@pytest.fixture(autouse=True)
def fresh_dimensions() -> None:
    """Forget blocks that an earlier test made in another size."""
    retrieval._DIMENSIONS.clear()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("unit", ["doc", "p", "s"])
@pytest.mark.parametrize("match", ["all", "any"])
def test_the_best_units_come_first(
    corpus: Corpus, unit: str, match: str, weights: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "BLOCK", 4)
    monkeypatch.setattr(retrieval, "POSITIONS_AT_A_TIME", 64)
    starts = {(row.segment, row.position): row.place for row in corpus.tokens.itertuples()}
    for within in (None, "late"):
        expected = best(corpus, ["a", "bs"], unit, match, weights, within)
        for limit in (3, None):
            table = retrieve(
                corpus.index,
                words=["A", "bs"],
                unit=unit,
                match=match,
                weights=weights,
                within=within,
                limit=limit,
            )
            found = []
            for row in table.records():
                segment = sum(row["first"] >= base for base in corpus.index.bases[1:-1])
                place = starts[segment, row["first"] - corpus.index.bases[segment]]
                found.append((round(row["score"], 9), row["document"], place))
                assert row["text"].split()[0] == corpus.tokens.word[place]
            assert found == expected[:limit]
            assert table.is_whole == (limit is None or len(expected) <= limit)


def test_documents_in_the_order_asked_for_are_looked_at_from_the_first_on(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "BLOCK", 2)
    looked_at: list[tuple[int, int]] = []
    in_block = UnitRetriever._in_block
    monkeypatch.setattr(
        UnitRetriever, "_in_block", lambda self, *block: looked_at.append(block) or in_block(self, *block)
    )
    retrieve(corpus.index, words=["[]"], weights={"quality": 1}, limit=2)
    blocks = sum(-(-len(segment.structures["doc"].firsts) // 2) for segment in corpus.index.segments)
    assert len(looked_at) < blocks / 2
    assert [number for number, _ in looked_at] == sorted(number for number, _ in looked_at)


def test_the_first_of_equal_documents_in_the_corpus_ranks_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "BLOCK", 2)
    # The second block promises more, but its best document does not have the word.
    documents = [(b"a\n", 0.5), (b"b\n", 0.1), (b"b\n", 0.9), (b"a\n", 0.5)]
    build(
        tmp_path,
        [
            IndexDocument(key, word, ("word",), {}, {"quality": good})
            for key, (word, good) in enumerate(documents, 1)
        ],
    )
    (best,) = retrieve(Index(tmp_path), words=["a"], weights={"quality": 1}, limit=1).records()
    assert best["document"] == 1


def test_too_many_blocks_are_searched_together(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = retrieve(corpus.index, words=["bs"], weights={"recency": 1}, limit=5).records()
    monkeypatch.setattr(retrieval, "MOST_BLOCKS", 0)
    assert retrieve(corpus.index, words=["bs"], weights={"recency": 1}, limit=5).records() == usual
    assert usual


def test_a_result_shows_the_parts_of_its_score(corpus: Corpus) -> None:
    table = retrieve(
        corpus.index,
        words=['[lemma="a"]', "b"],
        match="any",
        weights={"rarity": 1, "recency": 2},
        meta=["doc_year"],
        longest=3,
    )
    assert table.columns == (
        "score", "rarity", "recency_rank", "found", "document", "doc_year", "first", "text",
    )  # fmt: skip
    for row in table.records():
        assert row["score"] == pytest.approx(row["rarity"] + 2 * row["recency_rank"])
        assert row["doc_year"] == corpus.documents.doc_year[row["document"]]
        assert len(row["text"].split()) <= 3


def test_faulty_options_are_refused(corpus: Corpus) -> None:
    for options, message in (
        (
            {"words": ["a"], "weights": {"beauty": 1}},
            "unknown dimension 'beauty'; choose one of rarity, quality",
        ),
        ({"words": ["a"], "unit": "q"}, "unknown structure 'q'; choose one of p, s, doc"),
        ({"words": ["a"], "match": "most"}, "choose one of all, any"),
        ({"words": []}, "at least one word"),
        ({"words": ['"a" "b"']}, "more than a token"),
    ):
        with pytest.raises(AnalysisError, match=message):
            retrieve(corpus.index, **options)
    for word in ('[lemma="a"', "\udcff"):
        with pytest.raises(CqlError):
            retrieve(corpus.index, words=[word])
