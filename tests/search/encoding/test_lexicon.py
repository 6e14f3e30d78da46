"""A lexicon finds the values that an expression matches, as a plain loop over all values would."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.search.cql.ast import StringPattern
from thresher.search.cql.regex import ExpressionError
from thresher.search.cql.regex_literals import FIRST, LAST, needs, spelled_out
from thresher.search.encoding.lexicon import Lexicon, beginning, build, find, matching, strip

WORDS = st.text(st.sampled_from("abci.é́řß|(İ") | st.characters(codec="utf-8"), max_size=6)
SIGNS = r"""
a b c ab abc é . \. .* b? c+ a* a{2} b{0,2} [ab] [^a] []a] (a|b) (abc)? (ab)+ | \x61 \pL \p{L} \d [[:alpha:]] (?i)a
\Qa.b\E
"""
PIECES = st.sampled_from(SIGNS.split())
expressions = st.lists(PIECES, max_size=5).map("".join)


def values(lexicon: Lexicon, numbers: np.ndarray) -> list[str]:
    return [lexicon.values[int(number)].as_py() for number in numbers]


def whole(values: list[str], expression: str) -> list[str]:
    """Return the values that an expression matches as a whole; letters and digits are of all scripts."""
    meant = expression.replace("[[:alpha:]]", r"\p{L}").replace(r"\d", r"\p{Nd}")
    matched = pc.match_substring_regex(pa.array(values, pa.string()), rf"\A(?:{meant})\z").to_pylist()
    return [value for value, is_match in zip(values, matched, strict=True) if is_match]


@given(st.lists(WORDS, max_size=30), expressions)
def test_an_expression_finds_all_that_it_matches(words: list[str], expression: str) -> None:
    lexicon = build(sorted(set(words)))
    expected = sorted(whole(list(set(words)), expression), key=str.encode)
    assert values(lexicon, matching(lexicon, StringPattern(expression))) == expected


@given(st.lists(WORDS, min_size=1, max_size=10), expressions)
def test_a_matching_value_has_the_literals_of_the_expression(words: list[str], expression: str) -> None:
    for word in whole(words, expression):
        assert all(part in f"{FIRST}{word}{LAST}" for part in needs(expression))


@given(st.lists(WORDS, max_size=20), WORDS)
def test_values_are_found_by_themselves_and_by_their_beginnings(words: list[str], sought: str) -> None:
    lexicon = build(sorted(set(words)))
    ordered = sorted(set(words), key=str.encode)
    assert lexicon.values.to_pylist() == ordered
    assert find(lexicon, sought) == (ordered.index(sought) if sought in ordered else None)
    start, end = beginning(lexicon, sought)
    assert ordered[start:end] == [word for word in ordered if word.startswith(sought)]


@given(st.lists(WORDS, max_size=20), WORDS)
def test_a_literal_is_no_expression(words: list[str], literal: str) -> None:
    lexicon = build(sorted({*words, literal}))
    assert values(lexicon, matching(lexicon, StringPattern(literal, "l"))) == [literal]
    assert literal in values(lexicon, matching(lexicon, StringPattern(literal, "cl")))


def test_needs_are_beginnings_and_insides() -> None:
    assert needs("inter.*") == (f"{FIRST}inter",)
    assert needs(r"pre.*tion\.") == (f"{FIRST}pre", f"tion.{LAST}")
    assert needs("colou?r(s|ed)?") == (f"{FIRST}colo", "r")
    assert needs("a|an") == needs("(?i)abc") == ()


@given(st.lists(WORDS, max_size=10), expressions)
def test_enumerated_values_are_all_that_match(words: list[str], expression: str) -> None:
    spelled = spelled_out(expression)
    if spelled is not None:
        assert whole(list({*words, *spelled}), expression) == [
            word for word in {*words, *spelled} if word in spelled
        ]


def test_few_values_are_spelled_out() -> None:
    assert spelled_out("the|an?") == ["the", "an", "a"]
    assert sorted(spelled_out("colou?r(s|ed)?") or []) == [
        "color", "colored", "colors", "colour", "coloured", "colours",
    ]  # fmt: skip
    assert spelled_out(r"\.\.\.") == ["..."]
    for endless in ("a*", "[a-z]", "[^a]", ".", "(?i)a", "(?:a|b)", "a{2}", "(a|b", r"\d", "[ab]" * 20):
        assert spelled_out(endless) is None


def test_case_and_accents_can_be_left_aside() -> None:
    lexicon = build(
        sorted(["Répertoire", "répertoire", "repertoire", "ß", "ẞ", "ss", "İ", "i", "I", "ø", "o"])
    )
    assert values(lexicon, matching(lexicon, StringPattern("RÉPERTOIRE", "c"))) == [
        "Répertoire",
        "répertoire",
    ]
    assert len(matching(lexicon, StringPattern("REPERTOIRE", "cd"))) == 3
    assert values(lexicon, matching(lexicon, StringPattern(".*é.*", "d"))) == [
        "Répertoire",
        "repertoire",
        "répertoire",
    ]
    assert values(lexicon, matching(lexicon, StringPattern("ß", "c"))) == ["ß", "ẞ"]
    assert values(lexicon, matching(lexicon, StringPattern("i", "c"))) == ["I", "i"]
    assert values(lexicon, matching(lexicon, StringPattern("I", "d"))) == ["I", "İ"]
    assert values(lexicon, matching(lexicon, StringPattern("o", "d"))) == ["o"]
    assert strip("ǟÅ") == "aA"


@pytest.mark.parametrize("expression", ["(", ")", "a)|(b", "a{2,1}", "[", "(?=a", r"(a)\2"])
def test_an_invalid_expression_is_an_error(expression: str) -> None:
    with pytest.raises(ExpressionError):
        matching(build(["a", "abc"]), StringPattern(expression))


def test_letters_of_all_scripts_are_letters() -> None:
    lexicon = build(sorted(["ab1", "žába", "деревня", "x-y", "٣", "«"]))
    assert len(matching(lexicon, StringPattern(r"\w+"))) == 4
    assert values(lexicon, matching(lexicon, StringPattern(r"\d"))) == ["٣"]
    assert values(lexicon, matching(lexicon, StringPattern("[[:alpha:]]+"))) == ["žába", "деревня"]
    assert values(lexicon, matching(lexicon, StringPattern(r"[^\W]+\b"))) == ["ab1", "žába", "деревня", "٣"]
    assert values(lexicon, matching(lexicon, StringPattern("[[:punct:]]"))) == ["«"]


def test_expressions_with_lookaround_are_supported() -> None:
    lexicon = build(sorted(["xy", "yx", "xx", "abab", "abba"]))
    assert values(lexicon, matching(lexicon, StringPattern("(?=.*x)(?=.*y).*"))) == ["xy", "yx"]
    assert values(lexicon, matching(lexicon, StringPattern(r"(..)\1"))) == ["abab"]


def test_an_expression_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.search.cql.regex.BACKTRACKING_TIME_S", 0.05)
    with pytest.raises(ExpressionError, match="takes too long"):
        matching(build(["a" * 40]), StringPattern(r"((a|aa)+)+\1b"))


@given(st.lists(WORDS, max_size=40), expressions, st.sampled_from(["", "c", "d", "cd"]), st.data())
def test_all_matching_values_among_the_candidates_are_found(
    words: list[str], expression: str, flags: str, data: st.DataObject
) -> None:
    lexicon = build(sorted(set(words)))
    some = {number for number in range(len(lexicon.values)) if data.draw(st.booleans())}
    every = set(matching(lexicon, StringPattern(expression, flags)).tolist())
    found = set(
        matching(lexicon, StringPattern(expression, flags), np.array(sorted(some), np.uint32)).tolist()
    )
    assert every & some <= found <= every
