"""Counts of hits match a data frame of all tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support.corpora.query_corpora import Corpus, random_corpus
from thresher.search.analysis import AnalysisError
from thresher.search.analysis.counts import count, distribution, freq, table
from thresher.search.analysis.dispersion import arf_of, deviation, dispersion, juilland
from thresher.search.analysis.subcorpora import define

PAIRS = '[pos="N"] @[pos="V"]'


@pytest.fixture(autouse=True)
def short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make hits come in small parts."""
    monkeypatch.setattr("thresher.search.execution.segment_search.RANGE_SIZES", (64,))


@pytest.fixture(scope="module", params=[1, 2])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = random_corpus(tmp_path_factory.mktemp("corpus"), request.param)
    define(made.index, "late", where={"doc_year": ">=2004"})
    return made


def late(corpus: Corpus) -> pd.DataFrame:
    return corpus.tokens[corpus.tokens.doc_year.astype(int) >= 2004]


def listed(counts: pd.Series) -> list[tuple[str, int]]:
    """Return values with their counts, the most frequent first, then by bytes."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0].encode()))


def test_hits_and_their_documents_are_counted(corpus: Corpus) -> None:
    hits = corpus.tokens[corpus.tokens.lemma == "a"]
    (row,) = count(corpus.index, corpus.index.search('[lemma="a"]')).records()
    assert row == {
        "hits": len(hits),
        "per_million": pytest.approx(len(hits) * 1e6 / len(corpus.tokens)),
        "documents": hits.doc.nunique(),
        "tokens": len(corpus.tokens),
    }
    (fast,) = count(corpus.index, corpus.index.search('[lemma="a"]'), documents=False).records()
    assert fast == {**row, "documents": None}


def test_hits_outside_a_subcorpus_do_not_count(corpus: Corpus) -> None:
    tokens = late(corpus)
    hits = tokens[tokens.lemma == "a"]
    (row,) = count(corpus.index, corpus.index.search('[lemma="a"]'), within="late").records()
    assert (row["hits"], row["documents"], row["tokens"]) == (len(hits), hits.doc.nunique(), len(tokens))


def at(corpus: Corpus, places: np.ndarray, anchors: np.ndarray, attribute: str) -> pd.Series:
    """Return the values at places, except places in another document than their anchors."""
    tokens = corpus.tokens
    known = [
        (place, anchor)
        for place, anchor in zip(places.tolist(), anchors.tolist(), strict=True)
        if 0 <= place < len(tokens) and tokens.doc[place] == tokens.doc[anchor]
    ]
    return tokens[attribute].iloc[[place for place, _ in known]]


@pytest.mark.parametrize("attribute", ["word", "doc_site", "p_kind"])
@pytest.mark.parametrize("steps", [0, 1, -2, 30])
def test_values_are_listed_at_any_place_of_the_hits(corpus: Corpus, attribute: str, steps: int) -> None:
    firsts, lasts = np.array(corpus.hits(PAIRS)).T
    for anchor, where in (("match", firsts), ("matchend", lasts), ("target", lasts)):
        place = f"{attribute}@{anchor}[{steps}]" if steps else f"{attribute}@{anchor}"
        rows = freq(corpus.index, corpus.index.search(PAIRS), by=place).records()
        expected = listed(at(corpus, where + steps, where, attribute).value_counts())
        assert [(row["value"], row["count"]) for row in rows] == expected
        for row in rows:
            assert row["share"] == pytest.approx(row["count"] / len(firsts))
            assert row["per_million"] == pytest.approx(row["count"] * 1e6 / len(corpus.tokens))


def test_whole_matches_are_listed_as_texts(corpus: Corpus) -> None:
    search = corpus.index.search('[lemma="a|b"]+', strategy="longest")
    hits = corpus.places(search.hits())
    texts = pd.Series([" ".join(corpus.tokens.word[first : last + 1]) for first, last in hits])
    rows = freq(corpus.index, search, by="word@node", minimum=2).records()
    expected = [item for item in listed(texts.value_counts()) if item[1] >= 2]
    assert [(row["value"], row["count"]) for row in rows] == expected
    assert any(" " in value for value, _ in expected)


def test_a_truncated_list_reports_the_number_of_all_rows(corpus: Corpus) -> None:
    whole = freq(corpus.index, corpus.index.search("[]"), by="word@match")
    cut = freq(corpus.index, corpus.index.search("[]"), by="word@match", limit=3)
    assert whole.is_whole and not cut.is_whole
    assert cut.stopped == f"the first 3 of {whole.rows.num_rows} rows"
    assert cut.records() == whole.records()[:3]


def test_two_places_make_a_table(corpus: Corpus) -> None:
    firsts, lasts = np.array(corpus.hits(PAIRS)).T
    pairs = pd.DataFrame(
        {"one": corpus.tokens.lemma[firsts].values, "other": corpus.tokens.doc_year[lasts].values}
    ).value_counts()
    rows = table(
        corpus.index, corpus.index.search(PAIRS), rows="lemma@match", columns="doc_year@matchend"
    ).records()
    expected = sorted(((-number, *pair) for pair, number in pairs.items()))
    assert [(-row["count"], row["value1"], row["value2"]) for row in rows] == expected


@pytest.mark.parametrize("by", ["doc_year", "doc_site", "p_kind"])
def test_hits_are_compared_with_the_sizes_of_the_parts_that_they_are_in(corpus: Corpus, by: str) -> None:
    for within, tokens in ((None, corpus.tokens), ("late", late(corpus))):
        rows = distribution(corpus.index, corpus.index.search('"a"'), by=by, within=within).records()
        sizes, hits = tokens[by].value_counts(), tokens[tokens.word == "a"][by].value_counts()
        assert {row["value"]: (row["hits"], row["tokens"]) for row in rows} == {
            value: (hits.get(value, 0), size) for value, size in sizes.items()
        }
        assert [row["hits"] for row in rows] == sorted((row["hits"] for row in rows), reverse=True)
        for row in rows:
            assert row["per_million"] == pytest.approx(row["hits"] * 1e6 / row["tokens"])


def reduced_frequency(places: list[int], size: int) -> float:
    """Return the mean number of parts with a hit, over all cuts of a ring into one part per hit."""
    length = size / len(places)
    distances = [
        (place - before) % size or size for place, before in zip(places, [places[-1], *places], strict=False)
    ]
    return sum(min(distance, length) for distance in distances) / length


@pytest.mark.parametrize("within", [None, "late"])
@pytest.mark.parametrize("parts", ["doc", 7])
def test_dispersion_is_as_its_inventors_define_it(
    corpus: Corpus, within: str | None, parts: str | int
) -> None:
    tokens = (corpus.tokens if within is None else late(corpus)).reset_index(drop=True)
    places = tokens.index[tokens.lemma == "b"].tolist()
    part = tokens.doc if parts == "doc" else pd.Series([i * 7 // len(tokens) for i in range(len(tokens))])
    if parts != "doc":  # part n reaches from floor(n * size / 7) on
        part = pd.cut(
            tokens.index, [n * len(tokens) // 7 - 1 for n in range(7)] + [len(tokens)], labels=False
        )
    frame = (
        pd.DataFrame({"part": part, "hit": tokens.lemma == "b"})
        .groupby("part", sort=False)
        .hit.agg(["sum", "size"])
    )
    rates, shares = frame["sum"] / frame["size"], frame["size"] / len(tokens)
    dp = (frame["sum"] / len(places) - shares).abs().sum() / 2
    (row,) = dispersion(
        corpus.index, corpus.index.search('[lemma="b"]'), parts=parts, within=within
    ).records()
    assert row == {
        "hits": len(places),
        "documents": tokens[tokens.lemma == "b"].doc.nunique(),
        "arf": pytest.approx(reduced_frequency(places, len(tokens))),
        "parts": len(frame),
        "parts_with_hits": int((frame["sum"] > 0).sum()),
        "juilland_d": pytest.approx(1 - rates.std(ddof=0) / rates.mean() / np.sqrt(len(frame) - 1)),
        "dp": pytest.approx(dp),
        "dp_norm": pytest.approx(dp / (1 - shares.min())),
    }


def test_even_hits_have_their_full_reduced_frequency() -> None:
    assert arf_of(np.array([0, 10, 20, 30]), 40) == 4
    assert arf_of(np.array([0, 1, 2, 3]), 4000) == pytest.approx(1.003)
    assert arf_of(np.zeros(0, np.int64), 40) == 0
    assert juilland(np.array([2, 2]), np.array([9, 9])) == 1
    assert juilland(np.array([4, 0]), np.array([9, 9])) == 0
    assert deviation(np.array([0, 5]), np.array([9, 1])) == (pytest.approx(0.9), 1)


@pytest.mark.parametrize("by", ["word@here", "word@node[1]", "@match", "word@match[x]"])
def test_an_invalid_place_is_an_error(corpus: Corpus, by: str) -> None:
    with pytest.raises(AnalysisError, match="invalid place"):
        freq(corpus.index, corpus.index.search('"a"'), by=by)
    with pytest.raises(AnalysisError, match="mark a token"):
        freq(corpus.index, corpus.index.search('"a"'), by="word@target")


def test_an_index_without_documents_has_no_hits(tmp_path: Path) -> None:
    from thresher.search.index.writer import build
    from thresher.search.searcher import Index

    build(tmp_path, [])
    index = Index(tmp_path)
    assert count(index, index.search("[]")).records()[0]["hits"] == 0
    assert freq(index, index.search("[]")).records() == []
    assert dispersion(index, index.search("[]")).records()[0]["juilland_d"] is None
