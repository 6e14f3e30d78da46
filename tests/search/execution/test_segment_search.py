"""Limits of matches, refused queries, and searches that are stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.corpora.token_documents import Documents, found, new_segment
from thresher.search.cql.lexer import CqlError
from thresher.search.cql.parser import parse
from thresher.search.execution.conditions import Conditions
from thresher.search.execution.matcher import SearchStopped
from thresher.search.execution.segment_search import Deadline
from thresher.search.script import ScriptEvaluator


def test_a_match_has_at_most_501_tokens_unless_a_structure_limits_it(folder: Path) -> None:
    long: Documents = [("x", [[[("a", "N"), *[("b", "V")] * 600, ("c", "D"), *[("b", "V")] * 10]]])]
    segment = new_segment(long, folder)
    assert found(segment, '"a" []* "c"', "standard") == []
    assert found(segment, '"a" []* "c" within s', "standard") == [(0, 601)]
    assert found(segment, '"b" []* "c"', "traditional")[0] == (101, 601)


@pytest.mark.parametrize("query", ["[]*", '"a"?', "[]{0,3}", '("a"* | "b")', '<s> "a"?'])
def test_a_pattern_that_can_match_no_token_is_refused(query: str, folder: Path) -> None:
    with pytest.raises(CqlError, match="can match no token"):
        found(new_segment([("x", [[[("a", "N")]]])], folder), query, "standard")


@pytest.mark.parametrize(
    ("query", "spans"),
    [
        ("<s/> <s> within 3", [(0, 3)]),
        ("[]+ </p> within p", [(0, 3), (4, 4004)]),
        ('[]+ [: word="b" :] within p', [(0, 3)]),
    ],
)
def test_tags_and_lookaheads_right_after_a_match_are_found(
    query: str, spans: list[tuple[int, int]], folder: Path
) -> None:
    # So many tokens that a lookup of tags and rare words pays.
    corpus: Documents = [
        ("x", [[[("a", "N")] * 4]]),
        ("x", [[[("b", "N"), *[("c", "V")] * 4000]]]),
    ]
    assert found(new_segment(corpus, folder), query, "longest") == spans


def test_a_match_excluded_by_another_stays_excluded_in_the_next_range(folder: Path) -> None:
    words = ["c"] * 100
    words[50] = words[56] = "a"  # the second match reaches beyond the first 64 positions
    words[58] = "b"  # ends where the first does
    corpus: Documents = [("x", [[[(word, "N") for word in words]]])]
    assert found(new_segment(corpus, folder), '("a" []{8} | "b")', "standard") == [(50, 58), (56, 64)]


def test_a_tag_alone_matches_nothing(folder: Path) -> None:
    assert found(new_segment([("x", [[[("a", "N")]]])], folder), "<s>", "standard") == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ('[lema="a"]', "no attribute lema; they have word, pos"),
        ("<q> []", "unknown structure 'q'; choose one of"),
        ('[_.doc_yaer="1"]', "unknown attribute 'doc_yaer'; choose one of doc_"),
        ('[word = b.word] "a"', "no token has the label b"),
        ("[] :: shoe(match.word) = 3", "choose one of f\\(word\\)"),
        ('[word > "a"]', "is no"),
        ('"a" within q', "unknown structure 'q'"),
        ("[word]", "is no condition on a token; write word="),
        ('"(a"', "invalid regular expression"),
        ("A = []; difference A B", "unknown result 'B'; choose one of A"),
        ('"a"; "b"', "need a name"),
        ('"a" expand to q', "unknown structure 'q'"),
        ("MU(meet [] [] q)", "unknown structure 'q'"),
        ("([]{100}){300}", "too long"),
        ("(" * 60 + "[]" + ")+" * 60, "too long"),
        ('"a" ' * 30_000, "at most 100,000 characters"),
        ("[" + "word='a' -> " * 200 + "word='b']", "conditions joined by ->"),
    ],
)
def test_a_faulty_query_is_refused_with_the_reason(query: str, message: str, folder: Path) -> None:
    segment = new_segment([("x", [[[("a", "N")]]])], folder)
    with pytest.raises(CqlError, match=message):
        found(segment, query, "standard")


def test_deep_and_long_queries_are_evaluated(folder: Path) -> None:
    segment = new_segment([("x", [[[("a", "N"), ("b", "V")]]])], folder)
    assert found(segment, "(" * 90 + '"a"' + ")" * 90, "standard") == [(0, 0)]
    assert found(segment, "(" * 90 + '"a"' + ")?" * 90 + ' "b"', "standard") == [(0, 1)]
    assert found(segment, " ".join(f'"w{number}"' for number in range(2_000)), "standard") == []
    deep = 'a.pos="V" | (' * 80 + 'a.pos="N"' + ")" * 80
    assert found(segment, f"a:[] [] :: {deep}", "standard") == [(0, 1)]
    assert found(segment, f"a:[] [{deep}]", "standard") == [(0, 1)]


def test_a_pattern_with_too_many_ways_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.search.execution.matcher.MOST_WAYS", 50)
    segment = new_segment([("x", [[[("a", "N")] * 90]])], folder)
    with pytest.raises(CqlError, match="50 ways"):
        found(segment, "[]* a:[] []* b:[] []* [word != a.word & word = b.word]", "standard")


def test_a_search_stops_at_its_deadline_and_when_it_is_cancelled(folder: Path) -> None:
    segment = new_segment([("x", [[[("a", "N")] * 90]])], folder)
    for deadline in (Deadline(seconds=0), Deadline(is_cancelled=lambda: True)):
        with pytest.raises(SearchStopped):
            list(ScriptEvaluator([Conditions(segment)], "standard", deadline).parts(parse('"a"')))
