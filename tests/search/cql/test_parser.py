"""Queries in CQL become trees, and errors point at their place."""

from __future__ import annotations

from functools import partial
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.search.cql.ast import (  # fmt: skip
    Alternation,
    AndCondition,
    AttributeRef,
    Compare,
    Condition,
    Expand,
    FindQuery,
    FunctionCall,
    LookAhead,
    MeetQuery,
    Nested,
    NotCondition,
    NumberLiteral,
    OrCondition,
    Pattern,
    Region,
    Repeat,
    Sequence,
    SetQuery,
    Statement,
    StringPattern,
    StructureTag,
    Term,
    TokenPattern,
    UnionQuery,
    UseNamed,
    Within,
)
from thresher.search.cql.lexer import DEEPEST_NESTING, CqlError
from thresher.search.cql.parser import parse


def find(query: str) -> FindQuery:
    """Return the only search of a query, for a pattern."""
    (statement,) = parse(query)
    assert isinstance(statement.search, FindQuery)
    return statement.search


def word(pattern: str, flags: str = "", attribute: str = "word") -> Compare:
    return Compare(AttributeRef(attribute), "=", StringPattern(pattern, flags))


def test_a_string_is_a_word() -> None:
    assert find("\"of\" 'the'").pattern == Sequence((TokenPattern(word("of")), TokenPattern(word("the"))))
    assert find('["of"]') == find('[word="of"]') == find('"of"')


def test_quotes_inside_a_string_are_doubled_or_escaped_and_other_escapes_are_left_to_the_expression() -> None:
    assert (
        find(r'"a""b"').pattern
        == find(r'"a\"b"').pattern
        == find("'a\"b'").pattern
        == TokenPattern(word('a"b'))
    )
    assert find(r'"\."').pattern == TokenPattern(word(r"\."))


def test_flags_stand_together_or_apart() -> None:
    assert find('"x" %cd') == find('"x"%d%c') == find('[word="x" %dc]')
    assert find('"x" %cd').pattern == TokenPattern(word("x", "cd"))


def test_and_binds_tighter_than_or_and_an_implication_least() -> None:
    a, b, c = (word(value, attribute="pos") for value in "abc")
    assert find('[pos="a" | pos="b" & pos="c"]').pattern == TokenPattern(
        OrCondition((a, AndCondition((b, c))))
    )
    assert find('[(pos="a" | pos="b") & pos="c"]').pattern == TokenPattern(
        AndCondition((OrCondition((a, b)), c))
    )
    assert find('[pos="a" -> pos="b" | pos="c"]').pattern == TokenPattern(
        OrCondition((NotCondition(a), OrCondition((b, c))))
    )
    assert find('[!pos="a"]').pattern == TokenPattern(NotCondition(a))


def test_sequences_bind_tighter_than_choices_and_repetitions_tightest() -> None:
    a, b = TokenPattern(word("a")), TokenPattern(word("b"))
    assert find('"a" "b" | "b"*').pattern == Alternation((Sequence((a, b)), Repeat(b, 0, None)))
    assert find('("a" | "b"){2,3} []?').pattern == Sequence(
        (Repeat(Alternation((a, b)), 2, 3), Repeat(TokenPattern(), 0, 1))
    )
    for written, bounds in (("+", (1, None)), ("{2}", (2, 2)), ("{2,}", (2, None)), ("{,4}", (0, 4))):
        assert find(f'"a"{written}').pattern == Repeat(a, *bounds)


def test_labels_and_targets_mark_tokens() -> None:
    query = find('a:[pos="N"] @[] b:@[word=a.word] :: distance(a, b) <= 4 & int(match.doc_year) > -3')
    assert query.pattern == Sequence(
        (
            TokenPattern(word("N", attribute="pos"), "a"),
            TokenPattern(is_target=True),
            TokenPattern(Compare(AttributeRef("word"), "=", AttributeRef("word", "a")), "b", is_target=True),
        )
    )
    assert query.condition == AndCondition(
        (
            Compare(FunctionCall("distance", (AttributeRef("a"), AttributeRef("b"))), "<=", NumberLiteral(4)),
            Compare(FunctionCall("int", (AttributeRef("doc_year", "match"),)), ">", NumberLiteral(-3)),
        )
    )


def test_tags_name_places_and_values_of_structures() -> None:
    site = Compare(AttributeRef("site"), "=", StringPattern("x"))
    assert find("<s> [] </s>").pattern == Sequence(
        (StructureTag("s"), TokenPattern(), StructureTag("s", closes=True))
    )
    assert (
        find('<doc_site="x"> []').pattern
        == find('<doc site="x"> []').pattern
        == Sequence((StructureTag("doc", tests=(site,)), TokenPattern()))
    )
    assert find("<s/>").pattern == find("/region[s]").pattern == Region("s")
    assert find('"the" [: pos="A" :]').pattern == Sequence(
        (TokenPattern(word("the")), LookAhead(word("A", attribute="pos")))
    )


def test_clauses_after_a_pattern_may_stand_in_any_order() -> None:
    query = find(
        '(?longest) "a" within 2 s cut 7 :: match.pos = "N" containing "b" within !"c" expand left to p'
    )
    assert query == FindQuery(
        TokenPattern(word("a")),
        Compare(AttributeRef("pos", "match"), "=", StringPattern("N")),
        Within(2, "s"),
        (
            Nested(TokenPattern(word("b")), contains=True),
            Nested(TokenPattern(word("c")), contains=False, negated=True),
        ),
        7,
        Expand("p", left=True, right=False),
        "longest",
    )
    assert find('"a" within 7').within == Within(7)
    assert find('"a" within <s/>').within == find('"a" within s').within == Within(1, "s")


def test_results_have_names_and_are_combined() -> None:
    a = FindQuery(TokenPattern(word("a")))
    assert parse('A = "a"; B = "a"; diff A B') == (
        Statement(a, "A"),
        Statement(a, "B"),
        Statement(SetQuery("difference", "A", "B")),
    )
    assert parse('A = "a" expand to doc; A; "a";')[1:] == (Statement(UseNamed("A")), Statement(a))


def test_tokens_can_be_met() -> None:
    a, b = TokenPattern(word("a")), TokenPattern(word("b"))
    assert parse('MU(meet "a" "b" -5 5)')[0].search == MeetQuery(a, b, (-5, 5))
    assert parse('MU(union (meet "a" "b" s) "b")')[0].search == UnionQuery(MeetQuery(a, b, "s"), b)


@pytest.mark.parametrize(
    ("query", "place", "says"),
    [
        ("", 0, "the query is empty"),
        ('"a" "b', 4, "this string has no closing quote"),
        ('[word="x"', 9, "expected ]"),
        ("[word=]", 6, "expected an attribute"),
        ("[]{3,2}", 2, "{3,2} matches nothing"),
        ('"a" withn s', 4, "expected the end of the query"),
        ('"a" within', 10, "expected ["),
        ("<s", 2, "expected > to end the tag of s"),
        ('("a"', 4, "expected )"),
        ('"a" %z', 4, "unknown flag %z"),
        ('(?best) "a"', 0, "unknown strategy 'best'"),
        ('MU(meet "a" "b")', 15, "expected a number of tokens"),
        ("[5]", 1, "a number alone is not a condition"),
        ('"a" § "b"', 4, "unexpected '§'"),
    ],
)
def test_an_error_points_at_the_place_and_gives_the_reason(query: str, place: int, says: str) -> None:
    with pytest.raises(CqlError) as caught:
        parse(query)
    assert (caught.value.place, says in caught.value.message) == (place, True)
    if query:
        assert str(caught.value).splitlines()[-1] == "  " + " " * place + "^"


@pytest.mark.parametrize("query", ['"\udcff"', "\udcff", '[word="a.*\udcff"]'])
def test_bytes_of_an_argument_that_are_no_text_are_refused(query: str) -> None:
    with pytest.raises(CqlError, match=r"the query must be Unicode text in UTF-8, got '\\udcff' at \d"):
        parse(query)


@pytest.mark.parametrize("piece", ["(", "[!", "[(", "[f(", "MU(", "MU(meet ", "!"])
def test_brackets_without_end_are_refused(piece: str) -> None:
    with pytest.raises(CqlError):
        parse(piece + piece[-1] * 10 * DEEPEST_NESTING)


PIECES = st.sampled_from([*"[](){}<>/\"'=!&|?*+,.:;@%- \n", "word", "s", "within", "MU", "meet", "5", "é"])


@given(st.lists(PIECES).map("".join))
def test_any_text_is_a_query_or_an_error_with_a_place(query: str) -> None:
    try:
        assert parse(query)
    except CqlError as error:
        assert 0 <= error.place <= len(query)


# Random trees are written as a user would write them; parsing has to restore them.

NAMES = st.sampled_from(["word", "lemma", "pos", "a", "within_", "x-y"])
texts = st.builds(
    StringPattern,
    st.text(st.characters(codec="utf-8", exclude_characters='\\"'), max_size=5).map(
        partial(normalize, "NFC")
    ),
    st.sampled_from(["", "c", "cd"]),
)
terms = st.one_of(
    st.builds(AttributeRef, NAMES, st.sampled_from(["", "a", "match"])),
    texts,
    st.builds(NumberLiteral, st.integers(-9, 99)),
    st.builds(FunctionCall, NAMES, st.tuples(st.builds(AttributeRef, NAMES))),
)
comparisons = st.builds(Compare, terms, st.sampled_from(["=", "!=", "<", ">="]), terms)
conditions: st.SearchStrategy[Condition] = st.recursive(
    comparisons,
    lambda part: st.one_of(
        st.builds(NotCondition, part),
        st.builds(AndCondition, st.tuples(part, part)),
        st.builds(OrCondition, st.tuples(part, part, part)),
    ),
    max_leaves=6,
)
tests = st.lists(
    st.builds(Compare, st.builds(AttributeRef, NAMES), st.sampled_from(["=", "!="]), texts), max_size=2
)
atoms = st.one_of(
    st.builds(TokenPattern, st.none() | conditions, st.sampled_from(["", "a"]), st.booleans()),
    st.builds(LookAhead, conditions),
    st.builds(StructureTag, st.sampled_from(["s", "doc"]), st.booleans(), tests.map(tuple)),
    st.builds(Region, st.sampled_from(["s", "doc"]), tests.map(tuple)),
)
patterns: st.SearchStrategy[Pattern] = st.recursive(
    atoms,
    lambda part: st.one_of(
        st.builds(Sequence, st.tuples(part, part)),
        st.builds(Alternation, st.tuples(part, part, part)),
        st.builds(Repeat, part, st.integers(0, 3), st.none() | st.integers(3, 9)),
    ),
    max_leaves=6,
)


def written_term(term: Term) -> str:
    if isinstance(term, AttributeRef):
        return f"{term.label}.{term.name}" if term.label else term.name
    if isinstance(term, StringPattern):
        return f'"{term.pattern}"' + (f" %{term.flags}" if term.flags else "")
    if isinstance(term, NumberLiteral):
        return str(term.value)
    return f"{term.name}({', '.join(map(written_term, term.arguments))})"


def written_condition(condition: Condition) -> str:
    if isinstance(condition, Compare):
        return f"{written_term(condition.left)} {condition.operator} {written_term(condition.right)}"
    if isinstance(condition, NotCondition):
        return f"!({written_condition(condition.condition)})"
    if isinstance(condition, AndCondition | OrCondition):
        sign = " & " if isinstance(condition, AndCondition) else " | "
        return sign.join(f"({written_condition(part)})" for part in condition.conditions)
    return written_term(condition)


def written(pattern: Pattern) -> str:
    match pattern:
        case TokenPattern(condition, label, is_target):
            inside = written_condition(condition) if condition else ""
            return f"{label + ':' if label else ''}{'@' if is_target else ''}[{inside}]"
        case LookAhead(condition):
            return f"[: {written_condition(condition)} :]"
        case StructureTag(structure, closes, tests):
            values = "".join(" " + written_condition(test) for test in tests)
            return f"<{'/' if closes else ''}{structure}{values}>"
        case Region(structure, tests):
            return f"<{structure}{''.join(' ' + written_condition(test) for test in tests)}/>"
        case Sequence(parts):
            return " ".join(f"({written(part)})" for part in parts)
        case Alternation(parts):
            return " | ".join(f"({written(part)})" for part in parts)
        case Repeat(part, least, most):
            return f"({written(part)}){{{least},{'' if most is None else most}}}"


@given(patterns, st.none() | conditions)
def test_a_written_query_is_parsed_to_its_ast(pattern: Pattern, condition: Condition | None) -> None:
    query = written(pattern) + (f" :: {written_condition(condition)}" if condition else "") + " within s"
    assert find(query) == FindQuery(pattern, condition, Within(1, "s"))


def test_case_can_be_left_aside_by_default() -> None:
    assert parse('"Linux" [lemma="x" %d]', any_case=True) == parse('"Linux" %c [lemma="x" %cd]')


def test_strings_are_read_as_values_are_written() -> None:
    assert parse('"e\u0301"') == parse('"\u00e9"')
