"""Patterns match as the slow and obvious matcher does, in any corpus and for any query."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.corpora.token_documents import (
    SLOW,
    STRATEGIES,
    Documents,
    check,
    documents,
    found,
    new_segment,
    spans_of,
)
from support.samples.cql_strategies import endings, patterns, token
from thresher.search.cql.lexer import CqlError
from thresher.search.cql.parser import parse
from thresher.search.execution.conditions import Conditions
from thresher.search.execution.segment_search import Deadline, joined_hits
from thresher.search.script import ScriptEvaluator


@SLOW
@given(corpus=documents, pattern=patterns, ending=endings)
def test_patterns_match_like_the_slow_matcher(
    corpus: Documents, pattern: str, ending: str, folder: Path
) -> None:
    check(corpus, pattern + ending, folder)


@SLOW
@given(corpus=documents, pattern=patterns, ending=endings)
def test_the_matcher_finds_the_matches_of_the_automaton(
    corpus: Documents, pattern: str, ending: str, folder: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.search.execution.lazy_dfa.MOST_SIGNS", 0)
        check(corpus, pattern + ending, folder)


# The cost of a check at a candidate: nothing, so that conditions are checked, or so much that all are looked up.
costs = st.sampled_from([0.0, 1e12])


@SLOW
@given(corpus=documents, pattern=patterns, ending=endings, check_cost=costs)
def test_conditions_that_are_looked_up_first_exclude_no_match(
    corpus: Documents, pattern: str, ending: str, check_cost: float, folder: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # In a small corpus, a lookup of conditions must seem to pay, or all candidates are tried.
        patch.setattr("thresher.search.execution.planner.CandidatePlanner._expected", lambda *_: 1.0)
        patch.setattr("thresher.search.execution.planner.NS_PER_TRIED_CANDIDATE", 1e12)
        patch.setattr("thresher.search.execution.planner.NS_PER_CHECKED_CANDIDATE", check_cost)
        check(corpus, pattern + ending, folder)


def test_a_match_may_need_a_token_in_a_later_structure_than_its_first(folder: Path) -> None:
    sentences = [[("a", "N")], [("a", "N"), ("a", "N")]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.search.execution.planner.CandidatePlanner._expected", lambda *_: 1.0)
        patch.setattr("thresher.search.execution.planner.NS_PER_TRIED_CANDIDATE", 1e12)
        for count in (1, 2, 3):
            check([("1999", [sentences])], f'<s/> [] "a" within {count} s', folder)


labelled = st.sampled_from(["a:[]", 'a:[word="a|b"]', 'a:[pos!="V"]', 'a:"a"'])
bound = st.sampled_from(
    [
        "[word = a.word]", "[pos = a.pos & word != a.word]", '[word="a" | pos = a.pos]', "[]", '[pos="N"]',
        "[!(word = a.word)]", "[_.doc_id = a.doc_id]", "[a & pos!=a.pos]", '[a.pos="N"]',
        "[lbound(s) & word=a.word]",
    ]
)  # fmt: skip
gaps = st.one_of(st.just(""), st.just("[]{0,2}"), st.just("[]*"), patterns)
wholes = st.sampled_from(
    [
        "", ":: a.pos = matchend.pos", ":: match.word != matchend.word", ":: int(match.doc_year) < 2001",
        ':: a.pos != "N" & a.doc_id = matchend.doc_id', ":: distance(a, matchend) <= 2",
        ":: distabs(matchend, a) > 1",
        ":: f(a.word) > 2 | a.p_n = \"1\"", ":: !(a.word = match.word)",
        ":: int(a.word) = int(matchend.word)", ":: int(a.doc_year) = int(match.doc_year)",
        ":: strlen(a.word) = strlen(match.word)",
    ]
)  # fmt: skip


@SLOW
@given(
    corpus=documents,
    parts=st.one_of(
        st.tuples(labelled, gaps, bound, gaps),
        st.tuples(gaps, labelled, bound),
        st.tuples(labelled, bound, bound),
        st.tuples(bound, labelled, bound, labelled),
    ),
    whole=wholes,
    ending=endings,
    check_cost=costs,
)
def test_labels_are_set_at_their_tokens(
    corpus: Documents, parts: tuple[str, ...], whole: str, ending: str, check_cost: float, folder: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.search.execution.planner.NS_PER_CHECKED_CANDIDATE", check_cost)
        check(corpus, " ".join([*parts, whole]) + ending, folder)


@SLOW
@given(corpus=documents, pattern=patterns, target=token, ending=endings)
def test_a_target_is_in_its_match(
    corpus: Documents, pattern: str, target: str, ending: str, folder: Path
) -> None:
    segment = new_segment(corpus, folder)
    query = f"{pattern} @{target}{ending}"
    parts = ScriptEvaluator([Conditions(segment)], "standard", Deadline()).parts(parse(query))
    hits = joined_hits([part.hits for part in parts])
    assert found(segment, f"{pattern} {target}{ending}", "standard") == spans_of(hits)
    assert hits.targets is not None
    assert hits.targets.tolist() == hits.lasts.tolist()


LEXEMES = r"""
"a" 'b' "(" [] [ ] ( ) {1,2} { } * + ? | & ! = != < > <s> </p> <s/> /region[s] :: within containing s doc word pos
a: b: @ a.word match.pos _.doc_year int( f(word) distance(a,b) lbound(s) 1 500 , ; A= A cut MU(meet union difference
%c %d -> [: :] (?longest) - \ ́ expand to
"""
lexemes = st.sampled_from([*LEXEMES.split(), "\x00", "\n"])


@SLOW
@given(corpus=documents, query=st.lists(lexemes, max_size=12).map(" ".join))
def test_any_query_is_answered_or_refused_with_a_message(corpus: Documents, query: str, folder: Path) -> None:
    segment = new_segment(corpus, folder)
    for strategy in STRATEGIES:
        try:
            spans = found(segment, query, strategy)
        except CqlError as fault:
            assert str(fault)
        else:
            assert all(0 <= first <= last < segment.size for first, last in spans)
