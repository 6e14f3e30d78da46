"""CQL: queries as people write them. `parse` makes a tree of one; an error points at the place that went wrong.

    [lemma="take"] []{0,5} @[pos="NN.*"] :: match.doc_year = "2005" within s

A pattern is made of tokens, each with a condition, in sequences, choices and repetitions, with tags of structures
between them. Behind it stand a condition on the whole match, what it must lie in, and how many are wanted. The
language is that of CWB's CQP; `<s/>` and `containing` come from the Sketch Engine.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import cast, get_args

from thresher.query import tree
from thresher.query.pieces import DEEPEST, CqlError, Pieces

STRATEGIES: tuple[tree.Strategy, ...] = get_args(tree.Strategy)
OPERATORS: tuple[tree.Operator, ...] = get_args(tree.Operator)
SET_OPERATIONS: dict[str, tree.SetOperation] = {
    "union": "union",
    "join": "union",
    "intersection": "intersection",
    "intersect": "intersection",
    "inter": "intersection",
    "difference": "difference",
    "diff": "difference",
}
FLAGS = "cdl"  # whatever the case, whatever the accents, letter by letter
RESERVED = frozenset({"within", "containing", "cut", "expand", "MU", *SET_OPERATIONS})
LONGEST = 100_000  # letters of a query


def parse(query: str, *, any_case: bool = False) -> tuple[tree.Statement, ...]:
    """The statements of a query; there is one, but for named results. `any_case` means %c with every string.

    >>> parse('"of" "the"')[0].search.pattern.parts[0].condition.right.pattern
    'of'
    """
    if len(query) > LONGEST:
        raise CqlError(f"the query is too long: it has more than {LONGEST:,} letters")
    return _Reader(query, "c" if any_case else "").statements()


class _Reader(Pieces):
    def __init__(self, query: str, flags: str) -> None:
        super().__init__(query)
        self._flags = flags

    # statements

    def statements(self) -> tuple[tree.Statement, ...]:
        found = []
        while self._here.kind != "end":
            found.append(self._statement())
            if not self._skip(";") and self._here.kind != "end":
                self._fail("expected the end of the query, within, containing, cut, expand or ::")
        if not found:
            self._fail('the query is empty; try "word" or [lemma="word"]')
        return tuple(found)

    def _statement(self) -> tree.Statement:
        name = ""
        if self._here.kind == "name" and self._ahead().text == "=":
            name = self._take().text
            self._take()
        return tree.Statement(self._search(), name)

    def _search(self) -> tree.Search:
        if self._here.kind == "name" and self._here.text in SET_OPERATIONS:
            operation = SET_OPERATIONS[self._take().text]
            return tree.Combine(
                operation, self._name("the name of a result"), self._name("the name of a result")
            )
        if self._skip("MU"):
            self._need("(", "after MU")
            found = self._inside(self._meeting)
            self._need(")", "at the end of MU")
            return found
        if self._here.kind == "name" and self._ahead().text in (";", ""):
            return tree.Use(self._take().text)
        return self._find()

    def _meeting(self) -> tree.Meeting:
        if self._skip("("):
            found = self._inside(self._meeting)
            self._need(")", "at the end of this part of MU")
            return found
        if self._skip("meet"):
            first, second = self._inside(self._meeting), self._inside(self._meeting)
            return tree.Meet(first, second, self._window())
        if self._skip("union"):
            return tree.Unite(self._inside(self._meeting), self._inside(self._meeting))
        return self._token()

    def _window(self) -> tuple[int, int] | str:
        if self._here.kind == "name":
            return self._take().text
        return self._signed(), self._signed()

    def _signed(self) -> int:
        sign = -1 if self._skip("-") else 1
        return sign * self._number("a number of tokens, as -5 5, or a structure, as s")

    def _find(self) -> tree.Find:
        strategy = self._strategy()
        pattern = self._pattern()
        condition = self._condition() if self._skip("::") else None
        within: tree.Within | None = None
        nested: list[tree.Nested] = []
        cut: int | None = None
        expand: tree.Expand | None = None
        while True:
            if self._is("within", "containing"):
                contains = self._take().text == "containing"
                bound = None if contains else self._within()
                if bound:
                    within = bound
                else:
                    negated = self._skip("!")
                    nested.append(tree.Nested(self._pattern(), contains, negated))
            elif self._skip("cut"):
                cut = self._number("how many matches are wanted")
            elif self._skip("expand"):
                expand = self._expand()
            elif condition is None and self._skip("::"):
                condition = self._condition()
            else:
                return tree.Find(pattern, condition, within, tuple(nested), cut, expand, strategy)

    def _strategy(self) -> tree.Strategy | None:
        if self._here.kind != "strategy":
            return None
        name = self._here.text[2:-1].strip()
        if name not in STRATEGIES:
            self._fail(f"{name} is no strategy; there are {', '.join(STRATEGIES)}", self._here)
        self._take()
        return name

    def _within(self) -> tree.Within | None:
        """A number of tokens or structures; None if a pattern follows."""
        if self._here.kind == "number":
            count = int(self._take().text)
            return tree.Within(count, self._take().text if self._names_structure() else "")
        if self._names_structure():
            return tree.Within(1, self._take().text)
        if self._is("<") and self._ahead(2).text == "/>" and self._ahead().kind == "name":
            self._take()
            structure = self._take().text
            self._take()
            return tree.Within(1, structure)
        return None

    def _names_structure(self) -> bool:
        return self._here.kind == "name" and self._here.text not in RESERVED and self._ahead().text != ":"

    def _expand(self) -> tree.Expand:
        left = right = True
        if self._is("left", "right"):
            left = self._take().text == "left"
            right = not left
        self._need("to", "a structure, as in expand to s")
        return tree.Expand(self._name("a structure, as in expand to s"), left, right)

    # patterns

    def _pattern(self) -> tree.Pattern:
        parts = [self._sequence()]
        while self._skip("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else tree.Choice(tuple(parts))

    def _sequence(self) -> tree.Pattern:
        parts = [self._item()]
        while self._starts_item():
            parts.append(self._item())
        return parts[0] if len(parts) == 1 else tree.Sequence(tuple(parts))

    def _starts_item(self) -> bool:
        if self._here.kind in ("string", "region") or self._is("[", "[:", "(", "<", "</", "@"):
            return True
        return self._here.kind == "name" and self._ahead().text == ":"

    def _item(self) -> tree.Pattern:
        part = self._atom()
        while (bounds := self._repeat()) is not None:
            part = tree.Repeat(part, *bounds)
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
        self._need("}", "after how often: {2}, {2,}, {2,5} or {,5}")
        if most is not None and most < least:
            self._fail(f"at least {least} times and at most {most} is never", opening)
        return least, most

    def _atom(self) -> tree.Pattern:
        if self._skip("("):
            pattern = self._inside(self._pattern)
            self._need(")", "to end what ( began")
            return pattern
        if self._skip("[:"):
            condition = self._condition()
            self._need(":]", "to end what [: began")
            return tree.Ahead(condition)
        if self._here.kind == "region":
            self._take()
            structure = self._name("a structure, as in /region[s]")
            self._need("]", "after the structure")
            return tree.Region(structure)
        if self._is("<", "</"):
            return self._tag()
        return self._token()

    def _tag(self) -> tree.Tag | tree.Region:
        closes = self._take().text == "</"
        name = self._name("the name of a structure, as in <s>")
        tests: list[tree.Compare] = []
        if self._is("=", "!="):  # CQP's way: the attribute is part of the name
            structure, _, attribute = name.partition("_")
            tests.append(self._test(tree.Attribute(attribute)))
            name = structure
        while self._here.kind == "name":
            tests.append(self._test(tree.Attribute(self._take().text)))
            self._skip("&")
        if not closes and self._skip("/>"):
            return tree.Region(name, tuple(tests))
        self._need(">", f"to end the tag of {name}")
        return tree.Tag(name, closes, tuple(tests))

    def _test(self, attribute: tree.Attribute) -> tree.Compare:
        if not self._is("=", "!="):
            self._fail(f"expected = or != after {attribute.name}")
        operator = cast(tree.Operator, self._take().text)
        return tree.Compare(attribute, operator, self._text("the value of the attribute, in quotes"))

    def _token(self) -> tree.Token:
        label, is_target = "", False
        if self._here.kind == "name" and self._ahead().text == ":":
            label = self._take().text
            self._take()
        if self._skip("@"):
            is_target = True
            if self._here.kind == "number" and self._ahead().text == ":":
                self._fail("there is one target: write @ without a number")
        if self._here.kind == "string":
            text = self._text("a word")
            return tree.Token(tree.Compare(tree.Attribute(tree.WORD), "=", text), label, is_target)
        self._need("[", 'or "word": a token is a string, or a condition in brackets')
        condition = None if self._is("]") else self._condition()
        self._need("]", "to end what [ began")
        return tree.Token(condition, label, is_target)

    def _text(self, what: str) -> tree.Text:
        if self._here.kind != "string":
            self._fail(f"expected {what}")
        written = self._take().text
        quote, inside = written[0], written[1:-1]
        pattern = inside.replace(quote * 2, quote).replace("\\" + quote, quote)
        pattern = unicodedata.normalize("NFC", pattern)  # as values are
        flags = self._flags
        while self._here.kind == "flags":
            piece = self._take()
            for flag in piece.text[1:]:
                if flag not in FLAGS:
                    self._fail(
                        f"%{flag} is no flag; there are %c (any case), %d (any accents), %l (literally)",
                        piece,
                    )
            flags += piece.text[1:]
        return tree.Text(pattern, "".join(sorted(set(flags))))

    # conditions

    def _condition(self) -> tree.Condition:
        premises = [self._either()]
        while self._skip("->"):
            premises.append(self._either())
            if len(premises) > DEEPEST:
                self._fail(f"more than {DEEPEST} conditions that depend on each other")
        condition = premises.pop()
        for premise in reversed(premises):
            condition = tree.Some((tree.Not(premise), condition))
        return condition

    def _either(self) -> tree.Condition:
        return self._joined("|", self._both, tree.Some)

    def _both(self) -> tree.Condition:
        return self._joined("&", self._single, tree.All)

    def _joined(
        self,
        sign: str,
        part: Callable[[], tree.Condition],
        whole: Callable[[tuple[tree.Condition, ...]], tree.Condition],
    ) -> tree.Condition:
        parts = [part()]
        while self._skip(sign):
            parts.append(part())
        return parts[0] if len(parts) == 1 else whole(tuple(parts))

    def _single(self) -> tree.Condition:
        if self._skip("!"):
            return tree.Not(self._inside(self._single))
        if self._skip("("):
            condition = self._inside(self._condition)
            self._need(")", "to end what ( began")
            return condition
        start = self._here
        left = self._term()
        if self._is(*OPERATORS):
            operator = cast(tree.Operator, self._take().text)
            return tree.Compare(left, operator, self._term())
        if isinstance(left, tree.Text):
            return tree.Compare(tree.Attribute(tree.WORD), "=", left)
        if isinstance(left, tree.Number):
            self._fail("a number alone says nothing; compare it with something", start)
        return left

    def _term(self) -> tree.Term:
        if self._here.kind == "string":
            return self._text("a value")
        if self._here.kind == "number" or self._is("-"):
            sign = -1 if self._skip("-") else 1
            return tree.Number(sign * self._number("a number"))
        name = self._name("an attribute, as lemma, a value in quotes or a number")
        if self._skip("("):
            arguments = [self._inside(self._term)]
            while self._skip(","):
                arguments.append(self._inside(self._term))
            self._need(")", f"to end what {name}( began")
            return tree.Call(name, tuple(arguments))
        if self._skip("."):
            return tree.Attribute(self._name(f"an attribute of {name}"), tree.HERE if name == "_" else name)
        return tree.Attribute(name)
