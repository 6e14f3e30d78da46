"""The AST of CQL: conditions on tokens, patterns of tokens, and searches for patterns."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Strategy = Literal["traditional", "shortest", "standard", "longest"]
Operator = Literal["=", "!=", "<", ">", "<=", ">="]
SetOperation = Literal["union", "intersection", "difference"]

WORD = "word"  # the attribute of a string without a name
HERE = ""  # label of the token that has the condition


# conditions


class AttributeRef(Struct, frozen=True):
    """An attribute of a token, or of the structure round it: `lemma`, `a.lemma`, `match.doc_year`."""

    name: str
    label: str = HERE


class StringPattern(Struct, frozen=True):
    """A string: a regular expression that a whole value must match."""

    pattern: str
    flags: str = ""


class NumberLiteral(Struct, frozen=True):
    """A whole number."""

    value: int


class FunctionCall(Struct, frozen=True):
    """A function: `f(word)`, `int(match.doc_year)`, `distance(a, b)`, `lbound(s)`."""

    name: str
    arguments: tuple[Term, ...]


class Compare(Struct, frozen=True):
    """A comparison of two terms."""

    left: Term
    operator: Operator
    right: Term


class NotCondition(Struct, frozen=True):
    """A negated condition: `!pos="N"`."""

    condition: Condition


class AndCondition(Struct, frozen=True):
    """Conditions that must all hold, joined by `&`."""

    conditions: tuple[Condition, ...]


class OrCondition(Struct, frozen=True):
    """Conditions of which one must hold, joined by `|`."""

    conditions: tuple[Condition, ...]


Term = AttributeRef | StringPattern | NumberLiteral | FunctionCall
Condition = Compare | NotCondition | AndCondition | OrCondition | AttributeRef | FunctionCall


# patterns


class TokenPattern(Struct, frozen=True):
    """A token that meets a condition; without one, any token."""

    condition: Condition | None = None
    label: str = ""
    is_target: bool = False


class LookAhead(Struct, frozen=True):
    """A condition on the next token, which does not become part of the match: `[: pos="N" :]`."""

    condition: Condition


class StructureTag(Struct, frozen=True):
    """The place before the first token of a structure, or after its last one: `<s>`, `</s>`."""

    structure: str
    closes: bool = False
    tests: tuple[Compare, ...] = ()  # of attributes of the structure


class Region(Struct, frozen=True):
    """A whole structure: `<s/>`, `/region[s]`."""

    structure: str
    tests: tuple[Compare, ...] = ()


class Sequence(Struct, frozen=True):
    """Patterns that follow each other."""

    parts: tuple[Pattern, ...]


class Alternation(Struct, frozen=True):
    """Patterns of which one must match, joined by `|`."""

    parts: tuple[Pattern, ...]


class Repeat(Struct, frozen=True):
    """A pattern that matches several times in sequence."""

    part: Pattern
    least: int
    most: int | None = None  # None: any number


Pattern = TokenPattern | LookAhead | StructureTag | Region | Sequence | Alternation | Repeat


# queries


class Within(Struct, frozen=True):
    """A limit to a match: a number of consecutive structures, or of tokens."""

    count: int
    structure: str = ""  # empty: at most `count` tokens after the first one


class Nested(Struct, frozen=True):
    """A filter on matches: they must lie in a match of another pattern or contain one, or must not."""

    pattern: Pattern
    contains: bool
    negated: bool = False


class Expand(Struct, frozen=True):
    """An extension of matches to the borders of structures."""

    structure: str
    left: bool = True
    right: bool = True


class FindQuery(Struct, frozen=True):
    """A search for all matches of a pattern."""

    pattern: Pattern
    condition: Condition | None = None
    within: Within | None = None
    nested: tuple[Nested, ...] = ()
    cut: int | None = None
    expand: Expand | None = None
    strategy: Strategy | None = None  # None: the strategy that is given with the query


class MeetQuery(Struct, frozen=True):
    """A search for tokens of the first set that have a token of the second set near them."""

    first: Meeting
    second: Meeting
    window: tuple[int, int] | str  # first and last offset in tokens, or a structure


class UnionQuery(Struct, frozen=True):
    """A search for tokens of either set."""

    first: Meeting
    second: Meeting


class SetQuery(Struct, frozen=True):
    """A set operation on two named results."""

    operation: SetOperation
    first: str
    second: str


class UseNamed(Struct, frozen=True):
    """A statement after which searches stay inside a named result."""

    name: str


Meeting = MeetQuery | UnionQuery | TokenPattern
Search = FindQuery | MeetQuery | UnionQuery | TokenPattern | SetQuery | UseNamed


class Statement(Struct, frozen=True):
    """A search, and the name of its result."""

    search: Search
    name: str = ""
