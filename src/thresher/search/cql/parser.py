"""Parser of CQL, the query language: `parse` returns the AST of a query; an error points at the faulty place.

    [lemma="take"] []{0,5} @[pos="NN.*"] :: match.doc_year = "2005" within s

A pattern consists of tokens, each with a condition, in sequences, alternations and repetitions, with tags of
structures between them. After the pattern come a condition on the whole match, the structure or patterns that a
match must lie in or contain, and the number of matches wanted. The language is that of CWB's CQP; `<s/>` and
`containing` come from the Sketch Engine.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import cast, get_args

from thresher.search.cql import ast
from thresher.search.cql.lexer import DEEPEST_NESTING, CqlError, LexemeStream, unknown

STRATEGIES: tuple[ast.Strategy, ...] = get_args(ast.Strategy)
OPERATORS: tuple[ast.Operator, ...] = get_args(ast.Operator)
SET_OPERATIONS: dict[str, ast.SetOperation] = {
    "union": "union",
    "join": "union",
    "intersection": "intersection",
    "intersect": "intersection",
    "inter": "intersection",
    "difference": "difference",
    "diff": "difference",
}
FLAGS = "cdl"  # any case, any accents, literal
RESERVED = frozenset({"within", "containing", "cut", "expand", "MU", *SET_OPERATIONS})
LONGEST_QUERY = 100_000  # characters
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


def parse(query: str, *, any_case: bool = False) -> tuple[ast.Statement, ...]:
    """Return the statements of a query: one, unless it names results. `any_case` gives every string the flag %c.

    Raises CqlError.

    >>> parse('"of" "the"')[0].search.pattern.parts[0].condition.right.pattern
    'of'
    """
    check_text(query)
    return _Parser(query, "c" if any_case else "").statements()


def check_text(query: str) -> None:
    """Raise CqlError for a query that is too long, or that has bytes of an argument that are not UTF-8."""
    if len(query) > LONGEST_QUERY:
        raise CqlError(f"the query must have at most {LONGEST_QUERY:,} characters, got {len(query):,}")
    if found := _LONE_SURROGATE.search(query):
        raise CqlError(f"the query must be Unicode text in UTF-8, got {found[0]!r} at {found.start() + 1:,}")


class _Parser(LexemeStream):
    """Recursive-descent parser: a method for each rule of the grammar."""

    def __init__(self, query: str, flags: str) -> None:
        super().__init__(query)
        self._flags = flags

    # statements

    def statements(self) -> tuple[ast.Statement, ...]:
        found = []
        while self._here.kind != "end":
            found.append(self._statement())
            if not self._skip(";") and self._here.kind != "end":
                self._fail("expected the end of the query, within, containing, cut, expand or ::")
        if not found:
            self._fail('the query is empty; try "word" or [lemma="word"]')
        return tuple(found)

    def _statement(self) -> ast.Statement:
        name = ""
        if self._here.kind == "name" and self._ahead().text == "=":
            name = self._take().text
            self._take()
        return ast.Statement(self._search(), name)

    def _search(self) -> ast.Search:
        if self._here.kind == "name" and self._here.text in SET_OPERATIONS:
            operation = SET_OPERATIONS[self._take().text]
            return ast.SetQuery(
                operation, self._name("the name of a result"), self._name("the name of a result")
            )
        if self._skip("MU"):
            self._need("(", "after MU")
            found = self._inside(self._meeting)
            self._need(")", "at the end of MU")
            return found
        if self._here.kind == "name" and self._ahead().text in (";", ""):
            return ast.UseNamed(self._take().text)
        return self._find()

    def _meeting(self) -> ast.Meeting:
        if self._skip("("):
            found = self._inside(self._meeting)
            self._need(")", "at the end of this part of MU")
            return found
        if self._skip("meet"):
            first, second = self._inside(self._meeting), self._inside(self._meeting)
            return ast.MeetQuery(first, second, self._window())
        if self._skip("union"):
            return ast.UnionQuery(self._inside(self._meeting), self._inside(self._meeting))
        return self._token()

    def _window(self) -> tuple[int, int] | str:
        if self._here.kind == "name":
            return self._take().text
        return self._signed(), self._signed()

    def _signed(self) -> int:
        sign = -1 if self._skip("-") else 1
        return sign * self._number("a number of tokens, as -5 5, or a structure, as s")

    def _find(self) -> ast.FindQuery:
        strategy = self._strategy()
        pattern = self._pattern()
        condition = self._condition() if self._skip("::") else None
        within: ast.Within | None = None
        nested: list[ast.Nested] = []
        cut: int | None = None
        expand: ast.Expand | None = None
        while True:
            if self._is("within", "containing"):
                contains = self._take().text == "containing"
                bound = None if contains else self._within()
                if bound:
                    within = bound
                else:
                    negated = self._skip("!")
                    nested.append(ast.Nested(self._pattern(), contains, negated))
            elif self._skip("cut"):
                cut = self._number("the number of matches, as in cut 10")
            elif self._skip("expand"):
                expand = self._expand()
            elif condition is None and self._skip("::"):
                condition = self._condition()
            else:
                return ast.FindQuery(pattern, condition, within, tuple(nested), cut, expand, strategy)

    def _strategy(self) -> ast.Strategy | None:
        if self._here.kind != "strategy":
            return None
        name = self._here.text[2:-1].strip()
        if name not in STRATEGIES:
            self._fail(unknown("strategy", name, STRATEGIES), self._here)
        self._take()
        return name

    def _within(self) -> ast.Within | None:
        """Return the number of tokens or structures after `within`, or None if a pattern follows."""
        if self._here.kind == "number":
            count = int(self._take().text)
            return ast.Within(count, self._take().text if self._names_structure() else "")
        if self._names_structure():
            return ast.Within(1, self._take().text)
        if self._is("<") and self._ahead(2).text == "/>" and self._ahead().kind == "name":
            self._take()
            structure = self._take().text
            self._take()
            return ast.Within(1, structure)
        return None

    def _names_structure(self) -> bool:
        is_label = self._ahead().text == ":"
        return self._here.kind == "name" and self._here.text not in RESERVED and not is_label

    def _expand(self) -> ast.Expand:
        left = right = True
        if self._is("left", "right"):
            left = self._take().text == "left"
            right = not left
        self._need("to", "a structure, as in expand to s")
        return ast.Expand(self._name("a structure, as in expand to s"), left, right)

    # patterns

    def _pattern(self) -> ast.Pattern:
        parts = [self._sequence()]
        while self._skip("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else ast.Alternation(tuple(parts))

    def _sequence(self) -> ast.Pattern:
        parts = [self._item()]
        while self._is_at_item():
            parts.append(self._item())
        return parts[0] if len(parts) == 1 else ast.Sequence(tuple(parts))

    def _is_at_item(self) -> bool:
        if self._here.kind in ("string", "region") or self._is("[", "[:", "(", "<", "</", "@"):
            return True
        return self._here.kind == "name" and self._ahead().text == ":"

    def _item(self) -> ast.Pattern:
        part = self._atom()
        while (bounds := self._repeat()) is not None:
            part = ast.Repeat(part, *bounds)
        return part

    def _repeat(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("?", (0, 1)), ("*", (0, None)), ("+", (1, None))):
            if self._skip(sign):
                return bounds
        opening = self._here
        if not self._skip("{"):
            return None
        least = int(self._take().text) if self._here.kind == "number" else 0
        most: int | None = least
        if self._skip(","):
            most = int(self._take().text) if self._here.kind == "number" else None
        self._need("}", "at the end of a repetition: {2}, {2,}, {2,5} or {,5}")
        if most is not None and most < least:
            self._fail(f"{{{least},{most}}} matches nothing; try {{{most},{least}}}", opening)
        return least, most

    def _atom(self) -> ast.Pattern:
        if self._skip("("):
            pattern = self._inside(self._pattern)
            self._need(")", "to close (")
            return pattern
        if self._skip("[:"):
            condition = self._condition()
            self._need(":]", "to close [:")
            return ast.LookAhead(condition)
        if self._here.kind == "region":
            self._take()
            structure = self._name("a structure, as in /region[s]")
            self._need("]", "after the structure")
            return ast.Region(structure)
        if self._is("<", "</"):
            return self._tag()
        return self._token()

    def _tag(self) -> ast.StructureTag | ast.Region:
        closes = self._take().text == "</"
        name = self._name("the name of a structure, as in <s>")
        tests: list[ast.Compare] = []
        if self._is("=", "!="):  # as in CQP, the attribute is part of the name
            structure, _, attribute = name.partition("_")
            tests.append(self._test(ast.AttributeRef(attribute)))
            name = structure
        while self._here.kind == "name":
            tests.append(self._test(ast.AttributeRef(self._take().text)))
            self._skip("&")
        if not closes and self._skip("/>"):
            return ast.Region(name, tuple(tests))
        self._need(">", f"to end the tag of {name}")
        return ast.StructureTag(name, closes, tuple(tests))

    def _test(self, attribute: ast.AttributeRef) -> ast.Compare:
        if not self._is("=", "!="):
            self._fail(f"expected = or != after {attribute.name}")
        operator = cast(ast.Operator, self._take().text)
        return ast.Compare(attribute, operator, self._text("the value of the attribute, in quotes"))

    def _token(self) -> ast.TokenPattern:
        label, is_target = "", False
        if self._here.kind == "name" and self._ahead().text == ":":
            label = self._take().text
            self._take()
        if self._skip("@"):
            is_target = True
            if self._here.kind == "number" and self._ahead().text == ":":
                self._fail("a query has only one target; write @ without a number")
        if self._here.kind == "string":
            text = self._text("a word")
            return ast.TokenPattern(ast.Compare(ast.AttributeRef(ast.WORD), "=", text), label, is_target)
        self._need("[", 'or "word": a token is a string, or a condition in brackets')
        condition = None if self._is("]") else self._condition()
        self._need("]", "to close [")
        return ast.TokenPattern(condition, label, is_target)

    def _text(self, expected: str) -> ast.StringPattern:
        if self._here.kind != "string":
            self._fail(f"expected {expected}")
        written = self._take().text
        quote, inside = written[0], written[1:-1]
        pattern = inside.replace(quote * 2, quote).replace("\\" + quote, quote)
        pattern = unicodedata.normalize("NFC", pattern)  # values in the index are normalised too
        flags = self._flags
        while self._here.kind == "flags":
            lexeme = self._take()
            for flag in lexeme.text[1:]:
                if flag not in FLAGS:
                    self._fail(
                        f"unknown flag %{flag}; choose from %c (any case), %d (any accents), %l (literal)",
                        lexeme,
                    )
            flags += lexeme.text[1:]
        return ast.StringPattern(pattern, "".join(sorted(set(flags))))

    # conditions

    def _condition(self) -> ast.Condition:
        premises = [self._either()]
        while self._skip("->"):
            premises.append(self._either())
            if len(premises) > DEEPEST_NESTING:
                self._fail(f"more than {DEEPEST_NESTING} conditions joined by ->")
        condition = premises.pop()
        for premise in reversed(premises):
            condition = ast.OrCondition((ast.NotCondition(premise), condition))
        return condition

    def _either(self) -> ast.Condition:
        return self._joined("|", self._both, ast.OrCondition)

    def _both(self) -> ast.Condition:
        return self._joined("&", self._single, ast.AndCondition)

    def _joined(
        self,
        sign: str,
        part: Callable[[], ast.Condition],
        whole: Callable[[tuple[ast.Condition, ...]], ast.Condition],
    ) -> ast.Condition:
        parts = [part()]
        while self._skip(sign):
            parts.append(part())
        return parts[0] if len(parts) == 1 else whole(tuple(parts))

    def _single(self) -> ast.Condition:
        if self._skip("!"):
            return ast.NotCondition(self._inside(self._single))
        if self._skip("("):
            condition = self._inside(self._condition)
            self._need(")", "to close (")
            return condition
        start = self._here
        left = self._term()
        if self._is(*OPERATORS):
            operator = cast(ast.Operator, self._take().text)
            return ast.Compare(left, operator, self._term())
        if isinstance(left, ast.StringPattern):
            return ast.Compare(ast.AttributeRef(ast.WORD), "=", left)
        if isinstance(left, ast.NumberLiteral):
            self._fail("a number alone is not a condition; compare it with another value", start)
        return left

    def _term(self) -> ast.Term:
        if self._here.kind == "string":
            return self._text("a value")
        if self._here.kind == "number" or self._is("-"):
            sign = -1 if self._skip("-") else 1
            return ast.NumberLiteral(sign * self._number("a number"))
        name = self._name("an attribute, as lemma, a value in quotes or a number")
        if self._skip("("):
            arguments = [self._inside(self._term)]
            while self._skip(","):
                arguments.append(self._inside(self._term))
            self._need(")", f"to close {name}(")
            return ast.FunctionCall(name, tuple(arguments))
        if self._skip("."):
            return ast.AttributeRef(self._name(f"an attribute of {name}"), ast.HERE if name == "_" else name)
        return ast.AttributeRef(name)
