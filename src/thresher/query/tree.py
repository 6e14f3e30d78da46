"""What a query says, as a tree: conditions on tokens, patterns of tokens, searches for patterns."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Strategy = Literal["traditional", "shortest", "standard", "longest"]
Operator = Literal["=", "!=", "<", ">", "<=", ">="]
SetOperation = Literal["union", "intersection", "difference"]

WORD = "word"  # the attribute that a mere string is about
HERE = ""  # the token that a condition stands at, where others have labels


# what conditions say


class Attribute(Struct, frozen=True):
    """An attribute of a token, or of the structure round it: `lemma`, `a.lemma`, `match.doc_year`."""

    name: str
    label: str = HERE


class Text(Struct, frozen=True):
    """A string: an expression that a value must match as a whole."""

    pattern: str
    flags: str = ""


class Number(Struct, frozen=True):
    """A whole number."""

    value: int


class Call(Struct, frozen=True):
    """A function: `f(word)`, `int(match.doc_year)`, `distance(a, b)`, `lbound(s)`."""

    name: str
    arguments: tuple[Term, ...]


class Compare(Struct, frozen=True):
    """Two terms and how they must stand to each other."""

    left: Term
    operator: Operator
    right: Term


class Not(Struct, frozen=True):
    condition: Condition


class All(Struct, frozen=True):
    conditions: tuple[Condition, ...]


class Some(Struct, frozen=True):
    conditions: tuple[Condition, ...]


Term = Attribute | Text | Number | Call
Condition = Compare | Not | All | Some | Attribute | Call


# what patterns are made of


class Token(Struct, frozen=True):
    """One token; without a condition, any."""

    condition: Condition | None = None
    label: str = ""
    is_target: bool = False


class Ahead(Struct, frozen=True):
    """The next token must be like this, but is not part of the match here."""

    condition: Condition


class Tag(Struct, frozen=True):
    """The place before the first token of a structure, or behind its last one; of those with some value."""

    structure: str
    closes: bool = False
    tests: tuple[Compare, ...] = ()  # of attributes of the structure


class Region(Struct, frozen=True):
    """A whole structure: `<s/>`, `/region[s]`."""

    structure: str
    tests: tuple[Compare, ...] = ()


class Sequence(Struct, frozen=True):
    parts: tuple[Pattern, ...]


class Choice(Struct, frozen=True):
    parts: tuple[Pattern, ...]


class Repeat(Struct, frozen=True):
    part: Pattern
    least: int
    most: int | None = None  # None: any number


Pattern = Token | Ahead | Tag | Region | Sequence | Choice | Repeat


# what queries are


class Within(Struct, frozen=True):
    """Where a match must lie: in so many structures on end, or in so many tokens."""

    count: int
    structure: str = ""  # "": tokens behind the first one


class Nested(Struct, frozen=True):
    """Matches that lie in those of another pattern, or contain some; or that do not."""

    pattern: Pattern
    contains: bool
    negated: bool = False


class Expand(Struct, frozen=True):
    """Matches grow to the borders of structures."""

    structure: str
    left: bool = True
    right: bool = True


class Find(Struct, frozen=True):
    """All matches of a pattern."""

    pattern: Pattern
    condition: Condition | None = None
    within: Within | None = None
    nested: tuple[Nested, ...] = ()
    cut: int | None = None
    expand: Expand | None = None
    strategy: Strategy | None = None  # None: as the user has set it


class Meet(Struct, frozen=True):
    """Tokens of the first kind that have one of the second near them."""

    first: Meeting
    second: Meeting
    window: tuple[int, int] | str  # tokens to either side, or a structure


class Unite(Struct, frozen=True):
    """Tokens of either kind."""

    first: Meeting
    second: Meeting


class Combine(Struct, frozen=True):
    """Two named results made into one."""

    operation: SetOperation
    first: str
    second: str


class Use(Struct, frozen=True):
    """From here on, search inside a named result."""

    name: str


Meeting = Meet | Unite | Token
Search = Find | Meet | Unite | Token | Combine | Use


class Statement(Struct, frozen=True):
    """A search, and the name that its result gets."""

    search: Search
    name: str = ""
