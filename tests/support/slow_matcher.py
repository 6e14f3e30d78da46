"""A slow and obvious matcher of CQL, the reference for the fast one."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import regex

from thresher.search.cql import ast

FARTHEST = 500  # tokens after the first, the limit of matches without `within`


class Region(NamedTuple):
    """A structure from its first to its last token, with its attributes."""

    first: int
    last: int
    attributes: Mapping[str, str] = {}


class Corpus:
    """Columns of tokens, and structures over them."""

    def __init__(
        self, columns: Mapping[str, Sequence[str]], structures: Mapping[str, Sequence[Region]]
    ) -> None:
        self.columns = columns
        self.structures = structures
        self.size = len(next(iter(columns.values())))
        self.starts = {name: {one.first: one for one in regions} for name, regions in structures.items()}
        self.ends = {name: {one.last: one for one in regions} for name, regions in structures.items()}
        self.around: dict[str, list[Region | None]] = {}
        for name, regions in structures.items():
            places: list[Region | None] = [None] * self.size
            for one in regions:
                places[one.first : one.last + 1] = [one] * (one.last - one.first + 1)
            self.around[name] = places
        self.frequencies: dict[str, dict[str, int]] = {}

    def value(self, name: str, position: int) -> str:
        """Return an attribute of a token, or of the structure around it."""
        if name in self.columns:
            return self.columns[name][position]
        structure, _, attribute = name.partition("_")
        region = self.around[structure][position]
        return region.attributes.get(attribute, "") if region else ""

    def frequency(self, name: str, value: str) -> int:
        if name not in self.frequencies:
            counts: dict[str, int] = {}
            for one in self.columns[name]:
                counts[one] = counts.get(one, 0) + 1
            self.frequencies[name] = counts
        return self.frequencies[name].get(value, 0)


class State(NamedTuple):
    """The state of a match: its position, its labels and the structures that it has opened."""

    position: int
    labels: tuple[tuple[str, int], ...] = ()
    opened: tuple[tuple[str, int], ...] = ()


class Matcher:
    """Matcher of patterns in a corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._tests: dict[ast.StringPattern, Callable[[str], bool]] = {}

    # conditions

    def test(self, text: ast.StringPattern) -> Callable[[str], bool]:
        """Return the test of an expression, cached by value."""
        if text not in self._tests:
            plain = "d" in text.flags
            pattern = strip(text.pattern) if plain else text.pattern
            options = regex.IGNORECASE if "c" in text.flags else 0
            expression = regex.compile(regex.escape(pattern) if "l" in text.flags else pattern, options)
            known: dict[str, bool] = {}

            def matches(value: str) -> bool:
                if value not in known:
                    known[value] = bool(expression.fullmatch(strip(value) if plain else value))
                return known[value]

            self._tests[text] = matches
        return self._tests[text]

    def holds(self, condition: ast.Condition, position: int, labels: Mapping[str, int]) -> bool:
        match condition:
            case ast.AndCondition(parts):
                return all(self.holds(part, position, labels) for part in parts)
            case ast.OrCondition(parts):
                return any(self.holds(part, position, labels) for part in parts)
            case ast.NotCondition(part):
                return not self.holds(part, position, labels)
            case ast.Compare(left, operator, right):
                return self.compares(left, operator, right, position, labels)
            case ast.AttributeRef(name, "") if name not in self.corpus.structures:
                return name in labels  # a label is true wherever it stands, also at position 0
            case _:
                return bool(self.term(condition, position, labels))

    def compares(
        self, left: ast.Term, operator: str, right: ast.Term, position: int, labels: Mapping[str, int]
    ) -> bool:
        first = self.term(left, position, labels)
        if first is None:
            return False
        if isinstance(right, ast.StringPattern):
            return self.test(right)(str(first)) == (operator == "=")
        second = self.term(right, position, labels)
        if second is None:
            return False
        return {
            "=": first == second, "!=": first != second,
            "<": first < second, ">": first > second, "<=": first <= second, ">=": first >= second,
        }[operator]  # fmt: skip

    def term(self, term: ast.Term | ast.Condition, position: int, labels: Mapping[str, int]) -> Any:
        match term:
            case ast.NumberLiteral(value):
                return value
            case ast.AttributeRef(name, label):
                if label:
                    return self.corpus.value(name, labels[label]) if label in labels else None
                if name in labels:
                    return labels[name]
                if name in self.corpus.structures:
                    return self.corpus.around[name][position] is not None
                return self.corpus.value(name, position)
            case ast.FunctionCall("lbound", (ast.AttributeRef(name),)):
                return position in self.corpus.starts[name]
            case ast.FunctionCall("rbound", (ast.AttributeRef(name),)):
                return position in self.corpus.ends[name]
            case ast.FunctionCall("distance", (first, second)):
                return self.term(second, position, labels) - self.term(first, position, labels)
            case ast.FunctionCall("distabs", (first, second)):
                return abs(self.term(second, position, labels) - self.term(first, position, labels))
            case ast.FunctionCall("int", (value,)):
                digits = self.term(value, position, labels)
                return int(digits) if digits and digits.isdigit() else None
            case ast.FunctionCall("strlen", (value,)):
                return len(self.term(value, position, labels))
            case ast.FunctionCall("f", (ast.AttributeRef(name) as attribute,)):
                return self.corpus.frequency(name, self.term(attribute, position, labels))
        raise NotImplementedError(term)

    # patterns

    def advance(self, pattern: ast.Pattern, states: set[State], limit: int) -> set[State]:
        """Return all states that a pattern leads to, with no token at the limit or behind it."""
        match pattern:
            case ast.TokenPattern(condition, label, is_target):
                return {
                    self.marked(state, label, is_target)
                    for state in states
                    if state.position < limit
                    and (condition is None or self.holds(condition, state.position, dict(state.labels)))
                }
            case ast.LookAhead(condition):
                size = self.corpus.size
                return {
                    state
                    for state in states
                    if state.position < size and self.holds(condition, state.position, dict(state.labels))
                }
            case ast.StructureTag():
                return {onward for state in states if (onward := self.passed(pattern, state))}
            case ast.Region(structure, tests):
                found = set()
                for state in states:
                    region = self.corpus.starts[structure].get(state.position)
                    if region and self.fits(region, tests) and region.last < limit:
                        found.add(state._replace(position=region.last + 1))
                return found
            case ast.Sequence(parts):
                for part in parts:
                    states = self.advance(part, states, limit)
                return states
            case ast.Alternation(parts):
                return {state for part in parts for state in self.advance(part, states, limit)}
            case ast.Repeat(part, least, most):
                for _ in range(least):
                    states = self.advance(part, states, limit)
                found, unseen, times = set(states), set(states), least
                while unseen and (most is None or times < most):
                    unseen = self.advance(part, unseen, limit) - found
                    found |= unseen
                    times += 1
                return found
        raise NotImplementedError(pattern)

    def marked(self, state: State, label: str, is_target: bool) -> State:
        names = {**dict(state.labels)}
        if label:
            names[label] = state.position
        if is_target:
            names["target"] = state.position
        return State(state.position + 1, tuple(sorted(names.items())), state.opened)

    def passed(self, tag: ast.StructureTag, state: State) -> State | None:
        opened = dict(state.opened)
        if tag.closes:
            region = self.corpus.ends[tag.structure].get(state.position - 1)
            if not region or not self.fits(region, tag.tests):
                return None
            return state if opened.get(tag.structure, region.first) == region.first else None
        region = self.corpus.starts[tag.structure].get(state.position)
        if not region or not self.fits(region, tag.tests):
            return None
        opened[tag.structure] = region.first
        return state._replace(opened=tuple(sorted(opened.items())))

    def fits(self, region: Region, tests: Iterable[ast.Compare]) -> bool:
        for test in tests:
            assert isinstance(test.left, ast.AttributeRef)
            assert isinstance(test.right, ast.StringPattern)
            matches = self.test(test.right)(region.attributes.get(test.left.name, ""))
            if matches != (test.operator == "="):
                return False
        return True

    # searches

    def limit(self, within: ast.Within | None, start: int) -> int:
        """Return the first position that a match from this start must not reach."""
        size = self.corpus.size
        if within is None:
            return min(size, start + FARTHEST + 1)
        if not within.structure:
            return min(size, start + within.count + 1)
        region = self.corpus.around[within.structure][start]
        if region is None:
            return start
        regions = self.corpus.structures[within.structure]
        last = min(regions.index(region) + within.count - 1, len(regions) - 1) if within.count > 1 else 0
        return (regions[last] if within.count > 1 else region).last + 1

    def candidates(self, find: ast.FindQuery, starts: Iterable[int]) -> Iterator[tuple[int, list[State]]]:
        """Yield, for each start, all states in which a match may end, ordered by their ends."""
        for start in starts:
            limit = self.limit(find.within, start)
            ends = []
            for state in self.advance(find.pattern, {State(start)}, limit):
                if state.position <= start or state.position > limit:
                    continue
                labels = {**dict(state.labels), "match": start, "matchend": state.position - 1}
                if find.condition is None or self.holds(find.condition, start, labels):
                    ends.append(state)
            if ends:
                yield start, sorted(ends)

    def spans(
        self, find: ast.FindQuery, strategy: ast.Strategy, starts: Iterable[int] | None = None
    ) -> list[tuple[int, int]]:
        strategy = find.strategy or strategy
        chosen = [
            (start, (ends[-1] if strategy == "longest" else ends[0]).position - 1)
            for start, ends in self.candidates(find, range(self.corpus.size) if starts is None else starts)
        ]
        found = filtered(chosen, strategy)
        return found if find.cut is None else found[: find.cut]


def filtered(spans: Iterable[tuple[int, int]], strategy: ast.Strategy) -> list[tuple[int, int]]:
    """Return the spans that a strategy keeps, in the order of the corpus."""
    ordered = sorted(set(spans))
    if strategy == "traditional":
        return ordered
    if strategy == "standard":
        first: dict[int, int] = {}
        for start, end in ordered:
            first.setdefault(end, start)
        return sorted((start, end) for end, start in first.items())
    kept: list[tuple[int, int]] = []
    if strategy == "longest":
        farthest = -1
        for start, end in ordered:  # a span that ends no later than an earlier one lies inside it
            if end > farthest:
                kept.append((start, end))
                farthest = end
        return kept
    nearest = float("inf")
    for start, end in reversed(ordered):
        if end < nearest:
            kept.append((start, end))
            nearest = end
    return kept[::-1]


def strip(value: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFD", value) if unicodedata.category(char) != "Mn")
