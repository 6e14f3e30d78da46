"""Word lists, n-grams, keywords and collocates match a data frame of all tokens."""

from __future__ import annotations

from collections import Counter
from math import log, log2, sqrt

import pandas as pd
import pytest

from support.corpora.query_corpora import Corpus, random_corpus
from thresher.search.analysis import AnalysisError
from thresher.search.analysis import ngrams as ngrams_module
from thresher.search.analysis import scope as scope_module
from thresher.search.analysis.collocations import collocates
from thresher.search.analysis.ngrams import ngrams
from thresher.search.analysis.subcorpora import define
from thresher.search.analysis.wordlists import keywords, words


@pytest.fixture(autouse=True)
def short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make hits come in small parts."""
    monkeypatch.setattr("thresher.search.execution.segment_search.RANGE_SIZES", (64,))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = random_corpus(tmp_path_factory.mktemp("corpus"), 3)
    define(made.index, "late", where={"doc_year": ">=2005"})
    define(made.index, "rare", where={"doc_year": "1999"})
    return made


def part(corpus: Corpus, within: str | None) -> pd.DataFrame:
    years = {None: [1999, 2004, 2005, 2010], "late": [2005, 2010], "rare": [1999]}[within]
    return corpus.tokens[corpus.tokens.doc_year.astype(int).isin(years)].reset_index(drop=True)


def arf(places: list[int], size: int) -> float:
    length = size / len(places)
    distances = [
        (here - before) % size or size for here, before in zip(places, [places[-1], *places], strict=False)
    ]
    return sum(min(distance, length) for distance in distances) / length


@pytest.mark.parametrize("piece", [1 << 22, 30])
@pytest.mark.parametrize("within", [None, "late", "rare"])
def test_a_word_list_has_counts_documents_and_reduced_frequencies(
    corpus: Corpus, within: str | None, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_module, "CHUNK_POSITIONS", piece)  # documents come in many pieces, or in one
    tokens = part(corpus, within)
    rows = words(corpus.index, within=within, attribute="word").records()
    expected = tokens.groupby("word").doc.agg(["size", "nunique"])
    ordered = sorted(expected.index, key=lambda word: (-expected["size"][word], word.encode()))
    assert [row["value"] for row in rows] == ordered
    for row in rows:
        word = row["value"]
        assert (row["count"], row["documents"]) == (expected["size"][word], expected["nunique"][word])
        assert row["per_million"] == pytest.approx(row["count"] * 1e6 / len(tokens))
        assert row["arf"] == pytest.approx(arf(tokens.index[tokens.word == word].tolist(), len(tokens)))


def test_a_word_list_can_be_limited_by_an_expression(corpus: Corpus) -> None:
    rows = words(corpus.index, matching="(a|é).*", flags="cd", minimum=2, sort="documents").records()
    counts = corpus.tokens.word.value_counts()
    alike = {word for word in counts.index if word.lower()[0] in "aeé" and counts[word] >= 2}
    assert {row["value"] for row in rows} == alike
    assert [row["documents"] for row in rows] == sorted((row["documents"] for row in rows), reverse=True)
    quick = words(corpus.index, matching="(a|é).*", flags="cd", minimum=2, spread=False)
    assert quick.columns == ("value", "count", "per_million")
    with pytest.raises(AnalysisError, match="unknown order 'arf'; choose one of count"):
        words(corpus.index, sort="arf", spread=False)
    with pytest.raises(
        AnalysisError, match="unknown attribute of tokens 'tag'; choose one of word, pos, lemma"
    ):
        words(corpus.index, attribute="tag")
    with pytest.raises(AnalysisError, match="limit must be at least 1, got -1"):
        words(corpus.index, limit=-1)


def grams(tokens: pd.DataFrame, n: int, structure: str) -> Counter[str]:
    """Return all n-grams of words, sentence by sentence."""
    found: Counter[str] = Counter()
    for _, some in tokens[tokens[structure].notna()].groupby(structure):
        texts = some.word.tolist()
        found.update(" ".join(texts[start : start + n]) for start in range(len(texts) - n + 1))
    return found


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("within", [None, "late"])
@pytest.mark.parametrize("room", [1 << 26, 50])
def test_n_grams_never_cross_a_sentence(
    corpus: Corpus, n: int, within: str | None, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ngrams_module, "SORTED_NGRAMS", room)  # in one go, or in several
    monkeypatch.setattr(scope_module, "CHUNK_POSITIONS", 100)
    expected = grams(part(corpus, within), n, "s")
    rows = ngrams(corpus.index, n=n, within=within, minimum=1, limit=None).records()
    assert {row["value"]: row["count"] for row in rows} == expected
    assert [row["value"] for row in rows] == sorted(
        expected, key=lambda text: (-expected[text], text.encode())
    )


def test_n_grams_are_exact_where_their_numbers_are_hashed(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = ngrams(corpus.index, n=3, minimum=1, limit=None).records()
    monkeypatch.setattr(ngrams_module, "EXACT_BITS", 1)  # no n-gram fits
    assert ngrams(corpus.index, n=3, minimum=1, limit=None).records() == packed


@pytest.mark.parametrize("structure", ["p", "doc"])
def test_n_grams_cross_no_border_of_the_chosen_structure(corpus: Corpus, structure: str) -> None:
    rows = ngrams(corpus.index, structure=structure, minimum=2, limit=None).records()
    expected = grams(corpus.tokens, 2, structure)
    assert {row["value"]: row["count"] for row in rows} == {k: v for k, v in expected.items() if v >= 2}


def test_an_unknown_structure_of_n_grams_is_refused(corpus: Corpus) -> None:
    with pytest.raises(AnalysisError, match="unknown structure 'none such'; choose one of"):
        ngrams(corpus.index, structure="none such")


def test_the_most_frequent_n_grams_are_the_same_in_any_number_of_shares(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ngrams(corpus.index, minimum=1, limit=None)
    for room in (1 << 26, 40):
        monkeypatch.setattr(ngrams_module, "SORTED_NGRAMS", room)
        cut = ngrams(corpus.index, minimum=1, limit=7)
        assert cut.records() == whole.records()[:7]
        assert cut.stopped == f"the first 7 of {whole.rows.num_rows} rows"
    with pytest.raises(AnalysisError, match="2 to 6"):
        ngrams(corpus.index, n=7)


def likelihood(observed: list[float], expected: list[float]) -> float:
    return 2 * sum(o * log(o / e) for o, e in zip(observed, expected, strict=True) if o > 0)


def test_keywords_compare_a_subcorpus_with_another_or_with_the_rest(corpus: Corpus) -> None:
    for against, other in (
        ("rare", part(corpus, "rare")),
        (None, part(corpus, None).query("doc_year < '2005'")),
    ):
        here, tokens = part(corpus, "late").word.value_counts(), len(part(corpus, "late"))
        there, reference = other.word.value_counts(), len(other)
        rows = keywords(
            corpus.index, within="late", against=against, attribute="word", smoothing=10
        ).records()
        assert {row["value"]: row["count"] for row in rows} == here.to_dict()
        assert [row["keyness"] for row in rows] == sorted((row["keyness"] for row in rows), reverse=True)
        for row in rows:
            a, b = row["count"], int(there.get(row["value"], 0))
            fpm, other_fpm = a * 1e6 / tokens, b * 1e6 / reference
            assert row["reference_count"] == b
            assert row["keyness"] == pytest.approx((fpm + 10) / (other_fpm + 10))
            due = [size * (a + b) / (tokens + reference) for size in (tokens, reference)]
            assert row["log_likelihood"] == pytest.approx(likelihood([a, b], due), abs=1e-9)
            assert row["log_ratio"] == pytest.approx(log2((a / tokens) / ((b or 0.5) / reference)))
            assert row["percent_difference"] == pytest.approx((fpm - other_fpm) * 100 / (other_fpm or 1e-18))


def test_keywords_compare_with_another_index(
    corpus: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = random_corpus(tmp_path_factory.mktemp("reference"), 9, documents=8, run_tokens=40)
    rows = keywords(corpus.index, reference=other.index, attribute="pos", limit=None).records()
    here, there = corpus.tokens.pos.value_counts(), other.tokens.pos.value_counts()
    assert {row["value"]: (row["count"], row["reference_count"]) for row in rows} == {
        pos: (here[pos], there[pos]) for pos in here.index
    }
    with pytest.raises(AnalysisError, match="need something to compare with"):
        keywords(corpus.index)


def near(corpus: Corpus, hits: list[tuple[int, int]], window: tuple[int, int] | str) -> Counter[str]:
    """Return the lemmas around hits, once for each hit."""
    tokens, found = corpus.tokens, Counter[str]()
    for first, last in hits:
        for place in range(max(first - 40, 0), min(last + 40, len(tokens) - 1) + 1):
            end = first if place < first else last
            if first <= place <= last or tokens.doc[place] != tokens.doc[end]:
                continue
            if isinstance(window, str):
                is_near = tokens[window][place] is not None and tokens[window][place] == tokens[window][end]
            else:
                is_near = window[0] <= place - end <= window[1]
            found[tokens.lemma[place]] += is_near
    return +found


@pytest.mark.parametrize("window", [(-5, 5), (1, 3), (-4, -2), (0, 0), "s", "p"])
def test_collocates_are_counted_in_windows_that_end_with_the_document(
    corpus: Corpus, window: tuple[int, int] | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thresher.search.analysis.windows.CHUNK_POSITIONS", 16)
    query = '"a" []'
    hits = corpus.hits(query)
    joint, counts, n = near(corpus, hits, window), corpus.tokens.lemma.value_counts(), len(corpus.tokens)
    rows = collocates(
        corpus.index, corpus.index.search(query), window=window, minimum=2, limit=None
    ).records()
    assert {row["value"]: row["joint"] for row in rows} == {k: v for k, v in joint.items() if v >= 2}
    assert [row["logdice"] for row in rows] == sorted((row["logdice"] for row in rows), reverse=True)
    for row in rows:
        fxy, fx, fy = row["joint"], len(hits), int(counts[row["value"]])
        assert row["count"] == fy
        assert row["expected"] == pytest.approx(fx * fy / n)
        assert row["logdice"] == pytest.approx(14 + log2(2 * fxy / (fx + fy)))
        assert row["mi"] == pytest.approx(log2(fxy * n / (fx * fy)))
        assert row["mi3"] == pytest.approx(log2(fxy**3 * n / (fx * fy)))
        assert row["t_score"] == pytest.approx((fxy - fx * fy / n) / sqrt(fxy))
        observed = [fxy, fx - fxy, fy - fxy, n - fx - fy + fxy]
        expected = [fx * fy / n, fx * (n - fy) / n, (n - fx) * fy / n, (n - fx) * (n - fy) / n]
        assert row["log_likelihood"] == pytest.approx(likelihood(observed, expected))


def test_collocates_in_a_subcorpus_know_nothing_else(corpus: Corpus) -> None:
    search = corpus.index.search('"a"')
    rows = collocates(
        corpus.index, search, within="rare", sort="joint", minimum=1, attribute="word"
    ).records()
    tokens = part(corpus, "rare")
    assert rows and all(row["count"] == (tokens.word == row["value"]).sum() for row in rows)
    assert [row["joint"] for row in rows] == sorted((row["joint"] for row in rows), reverse=True)
    with pytest.raises(AnalysisError, match="unknown structure 'q'; choose one of"):
        collocates(corpus.index, search, window="q")
    with pytest.raises(AnalysisError, match="try -3,2"):
        collocates(corpus.index, search, window=(2, -3))
