"""Scripts evaluate named results, set operations, nested patterns, MU queries, cut and expand."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from support.corpora.token_documents import SLOW, Documents, documents, found, matched, new_segment, plain
from support.samples.cql_strategies import endings, patterns, token
from support.slow_matcher import Matcher, filtered
from thresher.search.cql import ast
from thresher.search.cql.parser import parse
from thresher.search.execution.conditions import Conditions
from thresher.search.execution.segment_search import Deadline, PatternSearch

names = st.sampled_from(["s", "p", "doc"])


@SLOW
@given(corpus=documents, one=token, other=token, third=token)
def test_named_results_have_union_intersection_and_difference(
    corpus: Documents, one: str, other: str, third: str, folder: Path
) -> None:
    segment, script = new_segment(corpus, folder), f"A = {one} {other}; B = {one} {third}; "
    first, second = (
        set(found(segment, f"{one} {other}", "standard")),
        set(found(segment, f"{one} {third}", "standard")),
    )
    assert found(segment, script + "union A B", "standard") == sorted(first | second)
    assert found(segment, script + "intersection A B", "standard") == sorted(first & second)
    assert found(segment, script + "difference A B", "standard") == sorted(first - second)


@SLOW
@given(corpus=documents, pattern=patterns, region=patterns)
def test_a_search_inside_a_result_finds_matches_within_its_regions(
    corpus: Documents, pattern: str, region: str, folder: Path
) -> None:
    segment, reference = new_segment(corpus, folder), plain(corpus)
    regions = matched(segment, region, "longest")
    search = parse(pattern)[0].search
    assert isinstance(search, ast.FindQuery)
    matched(segment, pattern, "standard")
    inside = found(segment, f"A = (?longest) {region}; A; {pattern}", "traditional")
    candidates = Matcher(reference).candidates(search, range(reference.size))
    expected_inside = []
    for start, ends in candidates:
        fitting = [
            state.position - 1
            for state in ends
            if any(first <= start and state.position - 1 <= last for first, last in regions)
        ]
        expected_inside += [(start, min(fitting))] if fitting else []
    assert inside == filtered(expected_inside, "traditional")


@SLOW
@given(corpus=documents, pattern=patterns, inner=patterns, negated=st.sampled_from(["", "!"]))
def test_matches_contain_others_or_lie_in_them(
    corpus: Documents, pattern: str, inner: str, negated: str, folder: Path
) -> None:
    segment = new_segment(corpus, folder)
    outside = matched(segment, pattern, "standard")
    small, large = matched(segment, inner, "shortest"), matched(segment, inner, "longest")
    assert found(segment, f"{pattern} containing {negated}({inner})", "standard") == [
        (first, last)
        for first, last in outside
        if any(first <= start and end <= last for start, end in small) != bool(negated)
    ]
    assert found(segment, f"{pattern} within {negated}({inner})", "standard") == [
        (first, last)
        for first, last in outside
        if any(start <= first and last <= end for start, end in large) != bool(negated)
    ]


@SLOW
@given(
    corpus=documents,
    one=token,
    other=token,
    structure=names,
    least=st.integers(-4, 2),
    more=st.integers(0, 4),
)
def test_tokens_meet_in_windows_and_structures(
    corpus: Documents, one: str, other: str, structure: str, least: int, more: int, folder: Path
) -> None:
    segment, reference = new_segment(corpus, folder), plain(corpus)
    positions = [first for first, _ in found(segment, one, "standard")]
    others = [first for first, _ in found(segment, other, "standard")]
    window = f"MU(meet {one} {other} {least} {least + more})"
    assert found(segment, window, "standard") == [
        (place, place)
        for place in positions
        if any(least <= second - place <= least + more for second in others)
    ]
    around = reference.around[structure]
    assert found(segment, f"MU(meet {one} {other} {structure})", "standard") == [
        (place, place)
        for place in positions
        if around[place] and any(around[place] == around[second] for second in others)
    ]
    assert found(segment, f"MU(union {one} {other})", "standard") == [
        (place, place) for place in sorted({*positions, *others})
    ]


@SLOW
@given(corpus=documents, pattern=patterns, structure=names, most=st.integers(0, 5))
def test_matches_are_expanded_and_cut(
    corpus: Documents, pattern: str, structure: str, most: int, folder: Path
) -> None:
    segment, around = new_segment(corpus, folder), plain(corpus).around[structure]
    every = matched(segment, pattern, "standard")
    assert found(segment, f"{pattern} cut {most}", "standard") == every[:most]
    expanded = {
        (left.first if (left := around[first]) else first, right.last if (right := around[last]) else last)
        for first, last in every
    }
    assert found(segment, f"{pattern} expand to {structure}", "standard") == sorted(expanded)


@SLOW
@given(corpus=documents, pattern=patterns, ending=endings)
def test_a_count_is_that_of_the_matches(corpus: Documents, pattern: str, ending: str, folder: Path) -> None:
    segment = new_segment(corpus, folder)
    spans = matched(segment, pattern + ending, "standard")
    find = parse(pattern + ending)[0].search
    assert isinstance(find, ast.FindQuery)
    assert PatternSearch(Conditions(segment), find, "standard").count(Deadline()) == len(spans)
